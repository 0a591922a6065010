"""Criteria of density estimates: equal to their definitions."""

import math

import numpy as np
import pytest
from every_kernel import DENSITIES
from slow_background import slow_background

from sklearn_attention import Columns
from sklearn_attention import bandwidth as bw
from sklearn_attention.bandwidth import _background
from sklearn_attention.kernels import (
    AitchisonAitken,
    Epanechnikov,
    Gaussian,
    LiRacine,
    Logistic,
    Tricube,
)
from sklearn_attention.kernels._base import as_kernel
from sklearn_attention.kernels._product_kernel import mixed_kernel

COLUMNS = Columns(
    ("numeric", "unordered", "numeric", "ordered"), (None, range(3), None, range(4))
)
CATEGORIES = Columns(COLUMNS.kinds[1::2], COLUMNS.categories[1::2])
every_kernel = pytest.mark.parametrize("kernel", DENSITIES)
BANDWIDTH = np.array([1.1, 0.3, 4.0, 0.4])


def slow_kernel(kernel, x, key, bandwidth, columns=COLUMNS):
    """Product over the columns, one pair of rows."""
    product, n_levels = 1.0, columns.n_levels
    for j, kind in enumerate(columns.kinds):
        h = bandwidth[j]
        if kind == "numeric":
            product *= kernel([[x[j] / h]], [[key[j] / h]])[0, 0] / h
        elif kind == "unordered":
            product *= AitchisonAitken(n_levels[j], h)([[x[j]]], [[key[j]]])[0, 0]
        else:
            levels = [[level] for level in range(n_levels[j])]
            mass = LiRacine(h)(levels, [[key[j]]]).sum()
            product *= LiRacine(h)([[x[j]]], [[key[j]]])[0, 0] / mass
    return product


def slow_density(kernel, x, keys, weights, bandwidth, **columns):
    values = [slow_kernel(kernel, x, key, bandwidth, **columns) for key in keys]
    return np.dot(weights, values) / np.sum(weights)


def differences(function, point):
    """Gradient by central differences."""
    steps = 1e-6 * np.abs(point)[:, None] * np.eye(len(point))
    return np.array(
        [(function(point + s) - function(point - s)) / (2 * s.max()) for s in steps]
    )


class TestLikelihood:
    @pytest.mark.parametrize("kernel", [Gaussian(), Tricube()])
    def test_is_the_log_density_from_all_other_rows(self, rows, weights, kernel):
        expected = 0.0
        for i, row in enumerate(rows):
            others = np.arange(len(rows)) != i
            density = slow_density(kernel, row, rows[others], weights[others], BANDWIDTH)
            share, background = slow_background(rows, row, COLUMNS, weights)
            log_density = math.log((1 - share) * density + share * background)
            expected += weights[i] * log_density / weights.sum()
        value = bw.DensityLikelihood(rows, kernel, columns=COLUMNS, sample_weight=weights)(
            BANDWIDTH
        )
        assert value == pytest.approx(expected, rel=1e-12)

    def test_one_row_may_outweigh_all_others(self):
        found = _background.leave_one_out_mass(np.array([1.0, 1e48, 2.0]))
        np.testing.assert_array_equal(found, [1e48, 3, 1e48])

    @pytest.mark.parametrize("kernel", [Gaussian(), Epanechnikov()])
    def test_rows_out_of_reach_have_the_background(self, kernel):
        X = np.array([[0.0], [1.0], [50.0]])
        value, gradient = bw.DensityLikelihood(X, kernel)([1e-3], eval_gradient=True)
        densities = [share * g for share, g in (slow_background(X, x) for x in X)]
        assert value == pytest.approx(np.mean(np.log(densities)), rel=1e-12)
        assert gradient == 0


# Convolutions are formulas, polynomials and tables.
@pytest.mark.parametrize("kernel", ["gaussian", "tricube", "logistic"])
def test_gradient(rows, weights, kernel):
    value = bw.DensityLikelihood(
        rows, as_kernel(kernel), columns=COLUMNS, sample_weight=weights
    )
    _, gradient = value(BANDWIDTH, eval_gradient=True)
    np.testing.assert_allclose(gradient, differences(value, BANDWIDTH), atol=1e-6)


class TestConditionalLikelihood:
    @pytest.mark.parametrize(
        ("kernel", "of_targets"), [(Gaussian(), Epanechnikov()), (Epanechnikov(), Gaussian())]
    )
    def test_is_the_log_density_from_all_other_rows(self, rows, weights, kernel, of_targets):
        y = rows[:, 0] + rows[:, 1]
        compare = mixed_kernel(kernel, COLUMNS, BANDWIDTH)
        scaled = compare.rescale(rows, np.array([1.1, 1, 4.0, 1]))
        K, total = compare(scaled), 0.0
        for i in range(len(rows)):
            others = np.arange(len(rows)) != i
            w = weights[others] * K[i, others]
            spread = of_targets([[y[i] / 0.7]], y[others, None] / 0.7)[0] / 0.7
            density = w @ spread / w.sum() if w.sum() > 0 else 0.0
            share, background = slow_background(y[:, None], y[[i]], weights=weights)
            total += weights[i] * math.log((1 - share) * density + share * background)
        value = bw.ConditionalLikelihood(
            rows, y, kernel, of_targets, columns=COLUMNS, sample_weight=weights
        )([*BANDWIDTH, 0.7])
        assert value == pytest.approx(total / weights.sum(), rel=1e-11)

    @pytest.mark.parametrize("kernel", ["laplacian", "matern32", "gaussian"])
    def test_one_feature_given(self, kernel, rows):
        X, y = rows[:, [0]], rows[:, 2]
        value = bw.ConditionalLikelihood(X, y, as_kernel(kernel), Gaussian())
        pairs, _ = value([0.5, 2.0], eval_gradient=True)
        assert value([0.5, 2.0]) == pytest.approx(pairs, rel=1e-9)

    @pytest.mark.parametrize("kernel", ["tricube", "matern32", "laplacian"])
    def test_gradient(self, rows, weights, kernel):
        y = rows[:, 0] + rows[:, 1]
        value = bw.ConditionalLikelihood(
            rows, y, as_kernel(kernel), Logistic(), columns=COLUMNS, sample_weight=weights
        )
        point = np.append(BANDWIDTH, 0.7)
        _, gradient = value(point, eval_gradient=True)
        np.testing.assert_allclose(gradient, differences(value, point), atol=2e-6)


PLACES = {
    "heavy tails": (lambda rng: rng.standard_cauchy(size=100), None),
    "rounded": (lambda rng: np.round(rng.normal(size=100), 1), None),
    "outlier": (lambda rng: np.append(rng.normal(size=99), 1e6), None),
    "bounds": (lambda rng: np.append(rng.exponential(size=98), [0.0, 40]), [[0.0, 60.0]]),
    "one bound": (lambda rng: np.append(rng.exponential(size=99), 0), [[0.0, np.inf]]),
}


@pytest.mark.parametrize(
    ("kernel", "places"),
    [
        ("gaussian", "outlier"), ("tricube", "heavy tails"), ("boxcar", "rounded"),
        ("gaussian", "bounds"), ("epanechnikov", "one bound"),
    ],
)  # fmt: skip
def test_one_feature_in_linear_time_equals_all_pairs(kernel, places, weights, monkeypatch):
    make, bounds = PLACES[places]
    X = make(np.random.default_rng(0))[:, None]
    options = {"sample_weight": np.resize(weights, len(X))}
    options |= {} if bounds is None else {"bounds": np.array(bounds)}
    criterion = bw.DensityLikelihood(X, as_kernel(kernel), **options)
    assert criterion.in_linear_time
    for h in (1.1e-3, 0.123, 1.07, 50.0):
        pairs, _ = criterion([h], eval_gradient=True)
        assert criterion([h]) == pytest.approx(pairs, rel=1e-8, abs=1e-10)
