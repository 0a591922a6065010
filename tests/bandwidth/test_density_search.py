"""Bandwidths of densities: where their criteria are best."""

import itertools
import math

import numpy as np
import pytest

from sklearn_attention import Columns
from sklearn_attention.bandwidth import _density_search
from sklearn_attention.bandwidth._density import (
    ConditionalLikelihood,
    DensityLikelihood,
)
from sklearn_attention.bandwidth._density_search import ConditionalSearch, DensitySearch
from sklearn_attention.bandwidth._search import Rows
from sklearn_attention.kernels import Gaussian
from sklearn_attention.kernels._base import as_kernel


def density_bandwidth(X, kernel, observe=None, **options):
    """Bandwidths and the criterion there."""
    options = {"columns": Columns.numbers(X.shape[1])} | options
    rows = Rows(X=X, **options)
    return DensitySearch().choose(rows, kernel, observe).warn()[:2]


def conditional_bandwidth(X, y, columns=None, **given):
    """Bandwidths of features and target, and the criterion there."""
    rows = Rows(X=X, values=y[:, None], columns=columns or Columns.numbers(X.shape[1]))
    found, value, *_ = ConditionalSearch(Gaussian(), **given).choose(rows, Gaussian())
    return found[:-1], found[-1], value


class TestSearch:
    def test_all_rows_of_one_feature_are_looked_at(self, monkeypatch):
        X = np.random.default_rng(0).normal(size=(300, 1))
        expected, _ = density_bandwidth(X, Gaussian())
        monkeypatch.setattr(_density_search, "MAX_SEARCH_ROWS", 100)
        all_rows, _ = density_bandwidth(X, Gaussian())
        assert all_rows == pytest.approx(expected, rel=1e-3)
        monkeypatch.setattr(_density_search, "MAX_ROWS_IN_LINEAR_TIME", 100)
        sample, _ = density_bandwidth(X, Gaussian(), random_state=0)
        assert sample != pytest.approx(expected, rel=0.01)

    @pytest.mark.parametrize("kernel", ["epanechnikov", "gaussian"])
    def test_no_grid_is_better(self, rows, kernel):
        kernel, X = as_kernel(kernel), rows[:, [0, 2]]
        value = DensityLikelihood(X, kernel)
        bandwidth, score = density_bandwidth(X, kernel)
        assert score == pytest.approx(value(bandwidth), rel=1e-9)
        grid = np.geomspace(0.1, 10, 12)
        assert score >= max(value([a, 5 * b]) for a, b in itertools.product(grid, grid))

    def test_no_grid_is_better_for_conditional_densities(self, rows):
        X, y = rows[:, [0]], np.sin(rows[:, 0]) + 0.1 * rows[:, 2]
        h, g, likelihood = conditional_bandwidth(X, y)
        value = ConditionalLikelihood(X, y, Gaussian(), Gaussian())
        assert likelihood == pytest.approx(value([*h, g]), rel=1e-12)
        grid = itertools.product(np.geomspace(0.05, 10, 12), np.geomspace(0.05, 5, 12))
        assert likelihood >= max(value(point) for point in grid)

    def test_only_what_is_not_given_is_searched(self, rows):
        X, y = rows[:, [0, 2]], rows[:, 0]
        free = conditional_bandwidth(X, y, bandwidth=np.array([0.5, 6.0]))
        np.testing.assert_allclose(free[0], [0.5, 6.0], rtol=1e-14)
        held = conditional_bandwidth(X, y, target_bandwidth=0.25)
        assert held[1] == pytest.approx(0.25, rel=1e-14)
        assert held[0][1] > held[0][0]

    @pytest.mark.filterwarnings("ignore:bandwidth=.* a wide background")
    def test_many_features_in_small_units(self):
        X = np.random.default_rng(0).normal(size=(10, 60))
        found, score = density_bandwidth(X, Gaussian())
        small, other = density_bandwidth(1e-6 * X, Gaussian())
        np.testing.assert_allclose(small, 1e-6 * found, rtol=1e-6)
        assert other == pytest.approx(score - 60 * math.log(1e-6))

    def test_large_data_are_sampled_and_carried_over(self, monkeypatch):
        X = np.random.default_rng(0).normal(size=(300, 2))
        X[:, 1] = X[:, 1] > 0
        monkeypatch.setattr(_density_search, "MAX_SEARCH_ROWS", 100)
        columns = {"columns": Columns(("numeric", "unordered"), (None, range(2)))}
        found, _ = density_bandwidth(X, Gaussian(), random_state=7, **columns)
        rows = np.random.RandomState(7).choice(300, 100, replace=False)
        small, _ = density_bandwidth(X[rows], Gaussian(), **columns)
        np.testing.assert_allclose(found, small * [3 ** (-1 / 5), 3 ** (-2 / 5)], rtol=5e-3)

    def test_of_many_rows_a_few_choose_the_start(self, monkeypatch):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(100, 3))
        X[:, 1], X[:, 2] = X[:, 0] + 0.3 * X[:, 1], X[:, 2] > 0
        columns = {
            "columns": Columns(("numeric",) * 2 + ("unordered",), (None, None, range(2)))
        }
        _, expected = density_bandwidth(X, Gaussian(), **columns)
        monkeypatch.setattr(_density_search, "_SUBSET_ROWS", 40)
        bandwidth, score = density_bandwidth(X, Gaussian(), **columns)
        assert score == pytest.approx(expected, abs=1e-3)
        shuffled, _ = density_bandwidth(rng.permutation(X), Gaussian(), **columns)
        np.testing.assert_allclose(shuffled, bandwidth, rtol=1e-6)

    def test_copies_end_at_the_floor_with_a_warning(self):
        X = np.repeat(np.random.default_rng(0).normal(size=(30, 1)), 2, axis=0)
        with pytest.warns(UserWarning, match="bandwidth='likelihood' ended at its floor"):
            found, _ = density_bandwidth(X, Gaussian())
        assert found > 0

    def test_one_row_is_not_enough(self):
        with pytest.raises(ValueError, match=r"two rows .*got n_samples=1: pass more"):
            density_bandwidth(np.zeros((1, 1)), Gaussian())
