"""The search of one scale on all features, against brute force."""

import numpy as np
import pytest
from leave_one_out import leave_one_out_error

from sklearn_attention import NadarayaWatsonRegressor
from sklearn_attention._column_stats import feature_std
from sklearn_attention.attention import LeaveOneOut
from sklearn_attention.bandwidth import select_bandwidth
from sklearn_attention.kernels import Epanechnikov, Gaussian


def test_bandwidths_that_leave_windows_empty_are_not_chosen():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(100, 1))
    y = np.sin(5 * X[:, 0]) + 0.1 * rng.normal(size=100)
    model = NadarayaWatsonRegressor("epanechnikov", empty="nan").fit(X, y)
    assert np.isnan(model.bandwidth_search_["loo_error"][0])
    assert np.isfinite(model.loo_residuals_).all()
    usual = NadarayaWatsonRegressor("epanechnikov", empty="nearest").fit(X, y)
    np.testing.assert_allclose(model.bandwidth_, usual.bandwidth_, rtol=1e-2)


class TestLeaveOneOut:
    @pytest.mark.parametrize(
        ("n_features", "kernel"), [(1, Gaussian()), (2, Epanechnikov())], ids=repr
    )
    def test_many_rows_are_glanced_at_and_then_looked_at(self, n_features, kernel, monkeypatch):
        monkeypatch.setattr("sklearn_attention.bandwidth._one_scale.MAX_SEARCH_ROWS", 150)
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 1, (200, n_features))
        values = np.sin(12 * X[:, :1]) + 0.3 * rng.normal(size=(len(X), 1))
        bandwidth, error, *_ = select_bandwidth(X, values, kernel, random_state=0)
        assert error == pytest.approx(leave_one_out_error(X, values, kernel, bandwidth))
        for factor in np.geomspace(0.3, 3, 12):
            other = leave_one_out_error(X, values, kernel, factor * bandwidth)
            assert error <= other * (1 + 1e-4)
        again, same, *_ = select_bandwidth(X, values, kernel, random_state=0)
        np.testing.assert_array_equal(again, bandwidth)
        assert same == error

    def test_degrees_of_freedom_are_those_of_all_rows(self, monkeypatch):
        X = np.random.default_rng(0).uniform(size=(300, 3))
        whole = select_bandwidth(X, np.sin(6 * X[:, :1]), Gaussian(), "gcv").results
        # A third of the rows is predicted.
        monkeypatch.setattr("sklearn_attention.bandwidth._one_scale.MAX_PAIRS", 300 * 100)
        some = select_bandwidth(
            X, np.sin(6 * X[:, :1]), Gaussian(), "gcv", random_state=0
        ).results
        common, ours, theirs = np.intersect1d(
            some["bandwidth"][:, 0], whole["bandwidth"][:, 0], return_indices=True
        )
        assert len(common) > 10
        np.testing.assert_allclose(
            some["degrees_of_freedom"][ours], whole["degrees_of_freedom"][theirs], rtol=0.15
        )

    @pytest.mark.parametrize("d", [1, 3])
    def test_very_many_rows_are_sampled_and_rescaled(self, d, monkeypatch):
        limits = {"MAX_KEYS": 300, "MAX_KEYS_IN_LINEAR_TIME": {1: 300, 2: 300}}
        for name, limit in limits.items():
            monkeypatch.setattr(f"sklearn_attention.bandwidth._one_scale.{name}", limit)
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 1, (1200, d))
        values = np.sin(12 * X[:, :1]) + 0.3 * rng.normal(size=(1200, 1))
        rows = np.random.RandomState(0).choice(1200, 300, replace=False)
        bandwidth, _, *_ = select_bandwidth(X, values, Gaussian(), random_state=0)
        sample, _, *_ = select_bandwidth(X[rows], values[rows], Gaussian())
        # The sample's own spread differs a little: only the scale is carried over.
        assert bandwidth[0] == pytest.approx(sample[0] * 4 ** (-1 / (d + 4)), rel=2e-2)

    @pytest.mark.parametrize(
        ("empty", "partitioned"), [("nearest", False), ("nearest", True), ("nan", False)]
    )
    def test_windows_of_lines_are_widened_unless_they_are_in_partitions(
        self, empty, partitioned
    ):
        X = np.random.default_rng(0).exponential(size=(20, 1))
        values = np.sin(3 * X)
        tables = X, values
        if partitioned:
            arrays = pytest.importorskip("dask.array")
            tables = (arrays.from_array(table, (8, 1)) for table in tables)
        found = select_bandwidth(*tables, Gaussian(), degree=1, empty=empty)
        widen = empty == "nearest" and not partitioned
        smoother = LeaveOneOut(
            X, values, Gaussian(), bandwidth=feature_std(X), degree=1, widen=widen
        )
        tried = found.results["bandwidth"][:, 0] / feature_std(X)
        expected, error = smoother.scores(tried).left_out, found.results["loo_error"]
        known = np.isfinite(error)
        assert widen <= known.all()
        np.testing.assert_allclose(error[known], expected[known], rtol=1e-6)

    def test_a_flat_minimum_is_doubtful(self):
        # Noise that is alike in neighbouring rows.
        rng = np.random.default_rng(0)
        X = np.linspace(0, 1, 150)[:, None]
        noise = np.convolve(rng.normal(size=152), [0.63, 0.7, 0.63], "valid")
        values = (np.sin(3 * X[:, 0]) + noise)[:, None]
        _, _, results, warnings, *_ = select_bandwidth(X, values, Gaussian(), "penalized-loo")
        assert "leave-one-out error is flat" in warnings[0]
        assert "set gap=0 to about n_samples ** (1 / 3)" in warnings[0]
        freedom = results["degrees_of_freedom"]
        assert (np.diff(results["bandwidth"][:, 0]) > 0).all()
        assert freedom[0] > freedom[-1]
        assert results["criterion"].shape == results["loo_error"].shape == freedom.shape

    def test_the_ends_of_the_range_are_doubtful(self, monkeypatch):
        rng = np.random.default_rng(0)
        X = np.linspace(0, 1, 100)[:, None]
        values = np.sin(6 * X) + 0.1 * rng.normal(size=(100, 1))
        found = select_bandwidth(X, np.tile([[1.0], [-1.0]], (50, 1)), Gaussian())
        assert "no dependence on X was found" in found.warnings[0]
        assert select_bandwidth(X, values, Gaussian()).warnings == []
        monkeypatch.setattr(
            "sklearn_attention.bandwidth._one_scale.search_range", lambda *_, **__: (1.0, 10.0)
        )
        found = select_bandwidth(X, values, Gaussian())
        assert "ended at the narrowest bandwidth" in found.warnings[0]
        assert "set gap to about n_samples ** (1 / 3) if rows are in order" in found.warnings[0]


def test_the_best_scale_of_a_sample_may_be_near_the_narrowest_one(monkeypatch):
    # The grid below the first scale of the search, which is the lowest already, has no points.
    monkeypatch.setattr("sklearn_attention.bandwidth._one_scale.MAX_SEARCH_ROWS", 50)
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(150, 4))
    y = np.sin(5 * (X[:, 0] + X[:, 1] - X[:, 2])) + 0.1 * rng.normal(size=150)
    choice = select_bandwidth(X, y[:, None], Gaussian(), "penalized-loo", degree=1)
    assert (choice.bandwidth > 0).all()
