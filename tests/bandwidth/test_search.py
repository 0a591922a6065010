"""What searches share: trials, ranges, and rows without outliers."""

import numpy as np
import pytest

from sklearn_attention import (
    AdaptiveBandwidth,
    Columns,
    ConditionalKernelDensity,
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonCV,
    NadarayaWatsonRegressor,
)
from sklearn_attention.bandwidth import select_bandwidth
from sklearn_attention.bandwidth._search import Rows, Trials, search_range
from sklearn_attention.kernels import Gaussian


def make_rows(n=50, **options):
    X = np.random.default_rng(0).normal(size=(n, 2)) * [1.0, 9.0]
    values = np.arange(n)[:, None] * 100.0
    return Rows(**{"X": X, "values": values, "columns": Columns.numbers(2)} | options)


class TestTrials:
    rows = make_rows(empty="nan", degree=1)

    def test_errors_are_not_the_end_of_a_search(self):
        trials = Trials("loo", self.rows)
        with pytest.raises(KeyError, match="of the kernel"), trials:
            raise KeyError("of the kernel")

    def test_nothing_is_finite(self):
        message = r"bandwidth='aicc' found no bandwidth at which empty='nan' .*degree=1"
        with pytest.raises(ValueError, match=message), Trials("aicc", self.rows):
            pass
        densities = Trials("likelihood", make_rows(values=None))
        message = "at which the criterion is finite: pass numbers"
        with pytest.raises(ValueError, match=message), densities:
            densities.add(np.inf, "a")


class TestRange:
    @pytest.mark.parametrize("n_features", [1, 2])
    def test_from_neighbours_to_the_extent(self, n_features):
        Z = np.repeat(np.linspace(0, 1, 11)[:, None], n_features, axis=1)
        low, high = search_range(Z, 2.0)
        length = np.sqrt(n_features)
        np.testing.assert_allclose([low, high], [0.2 * 2 * 0.1 * length, 3 * 2 * length])
        assert search_range(np.repeat(Z, 2, axis=0), 2.0) == (low, high)

    def test_all_rows_in_one_place(self):
        assert search_range(np.ones((5, 3)), 2.0) == (1.0, 4.0)

    def test_densities_of_a_grid_are_no_narrower_than_its_steps(self):
        grid = np.repeat(np.arange(10.0), 3)[:, None]
        assert search_range(grid, 1.0, of_density=True)[0] == 1.0
        assert search_range(grid, 1.0)[0] == pytest.approx(0.2)

    def test_densities_have_a_floor_in_the_width_of_most_rows(self):
        x = np.append(1e-12 * np.arange(50), np.linspace(1, 2, 50))[:, None]
        low, _ = search_range(x, 1.0, of_density=True)
        assert low == pytest.approx(1e-6 * np.subtract(*np.quantile(x, [0.9, 0.1])))
        assert search_range(x, 1.0)[0] < 1e-10


def test_doubts_are_warnings_of_the_fit_but_not_of_the_function():
    X, y = np.linspace(0, 1, 100)[:, None], np.tile([1.0, -1.0], 50)
    assert len(select_bandwidth(X, y[:, None], Gaussian()).warnings) == 1
    with pytest.warns(UserWarning, match="no dependence on X was found"):
        NadarayaWatsonRegressor(bandwidth="loo").fit(X, y)


@pytest.mark.parametrize("n_features", [1, 2])
def test_a_range_beside_which_all_distances_vanish(n_features):
    Z = np.repeat(np.append(np.linspace(0, 1e-300, 20), 1.0)[:, None], n_features, axis=1)
    low, high = search_range(Z, 1.0)
    assert 0 < low <= 1e-150 * high
    assert (low / high) ** 2 > 0


def table_rows(X, weights=None):
    kinds = tuple("unordered" if np.ptp(x) == 2 else "numeric" for x in X.T)
    categories = tuple((0, 1, 2) if kind == "unordered" else None for kind in kinds)
    return Rows(X=X, columns=Columns(kinds, categories), sample_weight=weights)


class TestOutliers:
    def test_rows_far_from_most_have_no_weight(self):
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.uniform(size=(60, 3)), np.arange(60) % 3])
        X[7, :2], X[9, 1] = (1e9, -1e300), 120.0
        found = table_rows(X).without_outliers()
        expected = np.ones(60)
        expected[[7, 9]] = 0.0
        np.testing.assert_array_equal(found.sample_weight, expected)
        np.testing.assert_array_equal(found.has_outliers, [True, True, False, False])
        given = np.arange(60.0)
        found = table_rows(X, given).without_outliers()
        np.testing.assert_array_equal(found.sample_weight, given * expected)

    def test_other_rows_stay(self):
        rng = np.random.default_rng(0)
        tail = np.r_[rng.uniform(size=192), np.linspace(2, 40, 8)]
        # Of every second row a sample of all is told.
        both = np.where(np.arange(4000) % 2, 1000.0, 1.0) * rng.uniform(size=4000)
        few = np.r_[np.linspace(0, 1, 9), 1e6]
        for x in (rng.normal(size=500), np.arange(100) == 9, tail, both, few):
            rows = table_rows(x[:, None].astype(np.float64))
            assert rows.without_outliers() is rows
        # What most rows have is told by those that have weight.
        X, weights = np.full((100, 1), 1e6), np.repeat([0.0, 1.0], [40, 60])
        X[40:, 0] = np.linspace(0, 1, 60)
        found = table_rows(X, weights).without_outliers()
        np.testing.assert_array_equal(found.sample_weight, weights)

    @pytest.mark.parametrize(
        "model",
        [
            NadarayaWatsonRegressor(),
            NadarayaWatsonRegressor("epanechnikov", bandwidth="aicc", per_feature=False),
            NadarayaWatsonRegressor(bandwidth="scott"),
            NadarayaWatsonRegressor(bandwidth="knn-loo"),
            NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth(5)),
            pytest.param(NadarayaWatsonRegressor(gap=1), marks=pytest.mark.slow),
            NadarayaWatsonCV(["gaussian"]),
            pytest.param(LocalPolynomialRegressor(structure="joint"), marks=pytest.mark.slow),
            pytest.param(LocalPolynomialRegressor(), marks=pytest.mark.slow),
            LocalPolynomialRegressor(degree=1, structure="joint"),
            pytest.param(LocalPolynomialCV(["gaussian"]), marks=pytest.mark.slow),
            pytest.param(ConditionalKernelDensity(), marks=pytest.mark.slow),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("cell", [300.0, 1e15])
    def test_a_row_with_an_outlier_changes_nothing_elsewhere(self, model, cell):
        """It makes the deviation of the feature huge, which is the unit of bandwidths."""
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(60, 2))
        y = np.sin(4 * X[:, 1]) + X[:, 0] + 0.1 * rng.normal(size=60)
        X[0, 0] = cell
        with_it = model.fit(X, y).predict(X[1:])
        # Splines are smooth in ranks, too, which an outlier moves by a row. The noise is 0.1.
        tolerance = 0.04 if getattr(model, "structure", "joint") == "auto" else 0.01
        expected = model.fit(X[1:], y[1:]).predict(X[1:])
        np.testing.assert_allclose(with_it, expected, atol=tolerance)


def test_trials_that_differ_by_rounding_are_equally_good():
    trials = Trials("loo", None)
    for value, scale in ((2.0, 1.0), (2.0 * (1 + 1e-15), 3.0), (2.0 * (1 - 1e-15), 2.0)):
        trials.add(value, scale, tie=-scale)
    assert trials.best == 3.0
    trials.add(1.9, 0.5, tie=-0.5)
    assert trials.best == 0.5
