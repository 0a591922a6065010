"""The background of densities, images in bounds, and criteria with both."""

import itertools

import numpy as np
import pytest
from scipy.stats import kstest
from scipy.stats import t as student
from slow_background import slow_background

from sklearn_attention import Columns
from sklearn_attention import bandwidth as bw
from sklearn_attention.bandwidth import _background
from sklearn_attention.bandwidth._background import (
    Background,
    center_and_scale,
    fold,
    reflections,
)
from sklearn_attention.kernels import Epanechnikov, Gaussian, Logistic
from sklearn_attention.kernels._categorical import level_table

BOUNDS = np.array([[0.0, np.inf], [-1.0, 4.0], [-np.inf, np.inf]])
COLUMNS = Columns(("numeric", "numeric", "unordered"), (None, None, range(3)))


@pytest.fixture
def bounded():
    rng = np.random.default_rng(0)
    numbers = rng.exponential(size=14), rng.uniform(-1, 4, size=14)
    return np.column_stack([*numbers, rng.integers(3, size=14)])


def one_column(low, high, center=0.3, scale=2.0):
    columns, bounds = Columns.numbers(1), np.array([[low, high]], dtype=float)
    return Background(np.array([center]), np.array([scale]), columns, bounds)


INTERVALS = [(-np.inf, np.inf), (0.0, np.inf), (-np.inf, 1.0), (0.0, 1.0)]


class TestBackground:
    @pytest.mark.parametrize("ends", INTERVALS)
    def test_draws(self, ends):
        background = one_column(*ends)
        drawn = background.draw(np.random.RandomState(0), 2000)
        assert ((ends[0] <= drawn) & (drawn <= ends[1])).all()
        share = student(2, 0.3, 2.0).cdf
        uniform = (share(drawn[:, 0]) - share(ends[0])) / (share(ends[1]) - share(ends[0]))
        assert kstest(uniform, "uniform").pvalue > 0.01

    def test_of_rows(self, bounded, weights):
        found = Background(*center_and_scale(bounded, COLUMNS, weights[:14]), COLUMNS, BOUNDS)
        expected = [
            slow_background(bounded, x, COLUMNS, weights[:14], BOUNDS)[1] for x in bounded
        ]
        np.testing.assert_allclose(np.exp(found.log_density(bounded)), expected, rtol=1e-11)

    def test_a_row_of_weight_two_is_the_row_twice_where_most_rows_are_equal(self):
        X = np.append(np.zeros(12), [3.0, -1.0])[:, None]
        weights = np.append(np.repeat([4, 2], 6), [3, 1])
        columns = Columns.numbers(1)
        expected = center_and_scale(X, columns, weights.astype(float))
        repeated = np.repeat(X, weights, axis=0)
        np.testing.assert_allclose(expected, center_and_scale(repeated, columns))
        # Most rows are equal, so that the scale is the standard deviation.
        assert expected[1] == pytest.approx(repeated.std())

    def test_share(self):
        assert _background.background_mixing_weight(9) == pytest.approx(0.1)
        assert _background.background_mixing_weight(
            4, np.array([5.0, 5, 0, 0])
        ) == pytest.approx(1 / 3)


@pytest.mark.parametrize("ends", INTERVALS[1:])
def test_places_are_folded_to_where_their_images_are(ends):
    x = np.random.default_rng(0).uniform(0, 1, size=(1, 1))
    images = np.array([*reflections(x, np.array([ends]), 3.5)]).ravel()
    np.testing.assert_allclose(fold(images, *ends), x.ravel().repeat(len(images)))
    assert images[0] == x
    assert len(np.unique(images.round(9))) == len(images)
    if ends == (0.0, 1.0):  # all that are up to 3.5 from it
        assert len(images) == 9
        assert images.min() < -3
        assert images.max() > 4


def slow_sum(kernel, x, keys, weights, bandwidth):
    """Density at a row within `BOUNDS`, of keys and their nearest images."""
    table, _ = level_table("unordered", 3, bandwidth[2])
    total = 0.0
    for w, key in zip(weights, keys, strict=True):
        images = (key[0], -key[0]), (key[1], -2 - key[1], 8 - key[1])
        for place in itertools.product(*images):
            term = w * table[int(x[2]), int(key[2])]
            for j in (0, 1):
                h = bandwidth[j]
                term *= kernel([[x[j] / h]], [[place[j] / h]])[0, 0] / h
            total += term
    return total / weights.sum()


class TestCriteriaInBounds:
    @pytest.mark.parametrize("kernel", [Gaussian(), Epanechnikov()])
    def test_likelihood(self, bounded, weights, kernel):
        point, expected, w = np.array([0.7, 0.9, 0.3]), 0.0, weights[:14]
        for i, x in enumerate(bounded):
            others = np.arange(14) != i
            density = slow_sum(kernel, x, bounded[others], w[others], point)
            share, background = slow_background(bounded, x, COLUMNS, w, BOUNDS)
            mixed = (1 - share) * density + share * background
            expected += w[i] * np.log(mixed) / w.sum()
        criterion = bw.DensityLikelihood(
            bounded, kernel, columns=COLUMNS, sample_weight=w, bounds=BOUNDS
        )
        assert criterion(point) == pytest.approx(expected, rel=1e-11)

    @pytest.mark.parametrize("kernel", [Gaussian(), Logistic()])
    def test_gradient(self, bounded, weights, kernel):
        criterion = bw.DensityLikelihood(
            bounded, kernel, columns=COLUMNS, sample_weight=weights[:14], bounds=BOUNDS
        )
        point = np.array([0.71, 0.93, 0.3])
        _, gradient = criterion(point, eval_gradient=True)
        steps = 1e-6 * np.diag(point)
        slopes = [(criterion(point + s) - criterion(point - s)) / (2 * s.max()) for s in steps]
        np.testing.assert_allclose(gradient, slopes, atol=2e-6)
