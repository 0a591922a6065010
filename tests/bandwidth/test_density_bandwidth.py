"""Criteria of density estimates: equal to their definitions."""

import itertools
import math

import numpy as np
import pytest
from every_kernel import DENSITIES
from scipy.integrate import quad
from slow_background import slow_background

from sklearn_attention import Columns
from sklearn_attention import bandwidth as bw
from sklearn_attention.bandwidth import _convolution, _density
from sklearn_attention.kernels import (
    AitchisonAitken,
    Boxcar,
    Epanechnikov,
    Gaussian,
    LiRacine,
    Logistic,
    SmoothingKernel,
    Tricube,
)
from sklearn_attention.kernels._base import as_kernel
from sklearn_attention.kernels._product_kernel import mixed_kernel

COLUMNS = Columns(
    ("numeric", "unordered", "numeric", "ordered"), (None, range(3), None, range(4))
)
CATEGORIES = Columns(COLUMNS.kinds[1::2], COLUMNS.categories[1::2])
every_kernel = pytest.mark.parametrize("kernel", DENSITIES)
KINDS = bw.DensityLikelihood, bw.DensityLeastSquares
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
        found = _density._of_others(np.array([1.0, 1e48, 2.0]))
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
@pytest.mark.parametrize(("kind", "tolerance"), [(KINDS[0], 1e-6), (KINDS[1], 1e-9)])
def test_gradient(rows, weights, kind, kernel, tolerance):
    value = kind(rows, as_kernel(kernel), columns=COLUMNS, sample_weight=weights)
    _, gradient = value(BANDWIDTH, eval_gradient=True)
    np.testing.assert_allclose(gradient, differences(value, BANDWIDTH), atol=tolerance)


class TestLeastSquares:
    @pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
    def test_is_the_slow_double_sum(self, rows, weights, kernel):
        rows, weights = rows[:5], weights[:5]
        kernel, columns = as_kernel(kernel), {"columns": COLUMNS}
        square = 0.0
        levels = list(itertools.product(range(3), range(4)))
        for (i, x), (k, z) in itertools.product(enumerate(rows), enumerate(rows)):
            term = weights[i] * weights[k] / weights.sum() ** 2
            for j in (0, 2):
                t = abs(x[j] - z[j]) / BANDWIDTH[j]
                term *= slow_convolution(kernel, t) / BANDWIDTH[j]
            categories = [
                slow_kernel(kernel, level, x[[1, 3]], BANDWIDTH[[1, 3]], CATEGORIES)
                * slow_kernel(kernel, level, z[[1, 3]], BANDWIDTH[[1, 3]], CATEGORIES)
                for level in levels
            ] if term else [0.0]  # fmt: skip
            square += term * sum(categories)
        left_out = 0.0
        for i, row in enumerate(rows):
            others = np.arange(len(rows)) != i
            left_out += weights[i] * slow_density(
                kernel, row, rows[others], weights[others], BANDWIDTH
            )
        expected = square - 2 * left_out / weights.sum()
        value = bw.DensityLeastSquares(rows, kernel, **columns, sample_weight=weights)(
            BANDWIDTH
        )
        assert value == pytest.approx(expected, rel=1e-11)


def slow_convolution(kernel, t):
    """The kernel convolved with itself, by adaptive quadrature between its kinks."""
    if t >= 2 * kernel.support:
        return 0.0
    reach = min(kernel.support, 60.0)
    kinks = [point for point in (t - reach, -reach, 0, t, reach) if t - reach <= point <= reach]
    edges = sorted(set(kinks))

    def product(v):
        return float(
            kernel.profile(np.float64(v**2)) * kernel.profile(np.float64((t - v) ** 2))
        )

    pairs = itertools.pairwise(edges)
    return sum(quad(product, *pair, epsabs=1e-14, epsrel=1e-13)[0] for pair in pairs)


class TestConvolution:
    @every_kernel
    def test_equals_quadrature(self, kernel):
        kernel = as_kernel(kernel)
        ways = [_convolution.self_convolution(kernel, n_parts) for n_parts in (1, 2)]
        ways.append([(1.0, _convolution.TabulatedConvolution(kernel), 1.0)])
        for t in (0.0, 0.03, 0.5, 1.0, 1.7, 2.0, 5.0):
            expected = slow_convolution(kernel, t)
            for parts in ways:
                found = sum(
                    factor * part.profile(np.array((t / widening) ** 2))
                    for factor, part, widening in parts
                )
                assert found == pytest.approx(expected, abs=1e-10)

    def test_reach_of_tails_that_do_not_fall_too_slowly(self):
        assert _convolution.kernel_reach(Boxcar()) == 1
        assert 8 < _convolution.kernel_reach(Gaussian()) < 12

        class Cauchy(SmoothingKernel):
            roughness, second_moment = 1 / (2 * math.pi), math.inf

            def profile(self, squared):
                return 1 / (math.pi * (1 + squared))

            def radial_moment(self, order):
                return math.inf

        with pytest.raises(ValueError, match=r"falls too slowly.*'gaussian'"):
            _convolution.kernel_reach(Cauchy())


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
    """With a gradient only the Gaussian takes linear time."""
    make, bounds = PLACES[places]
    X = make(np.random.default_rng(0))[:, None]
    options = {"sample_weight": np.resize(weights, len(X))}
    options |= {} if bounds is None else {"bounds": np.array(bounds)}
    for kind in KINDS:
        criterion = kind(X, as_kernel(kernel), **options)
        with monkeypatch.context() as patch:
            patch.setattr(_density, "Line", lambda *_: None)
            by_pairs = kind(X, as_kernel(kernel), **options)
        for h in (1.1e-3, 0.123, 1.07, 50.0):
            pairs, slope = by_pairs([h], eval_gradient=True)
            assert criterion([h]) == pytest.approx(pairs, rel=1e-8, abs=1e-10)
            _, found = criterion([h], eval_gradient=True)
            assert found == pytest.approx(slope, rel=1e-7, abs=1e-9)
