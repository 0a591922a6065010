"""Rules and the leave-one-out search, against formulas and brute force."""

import itertools
import math
import warnings

import numpy as np
import pytest

from sklearn_attention.bandwidth import (
    SMOOTHER_CRITERIA,
    criterion_of_candidates,
    feature_spread,
    leave_one_out_error,
    minimize_scale,
    rule_bandwidth,
    select_bandwidth,
)
from sklearn_attention.bandwidth._search import MAX_SEARCH_ROWS, SearchData
from sklearn_attention.kernels import (
    Boxcar,
    Epanechnikov,
    Gaussian,
    Laplacian,
    Matern32,
    Periodic,
    Silverman,
    Triangular,
)


class TestRules:
    X = np.array([[0.0, 5.0, 3.0], [2.0, 5.0, -1.0], [4.0, 5.0, 0.0], [0.0, 5.0, 7.0]])

    @pytest.mark.parametrize(
        ("rule", "factor"), [("scott", 4 ** (-1 / 7)), ("silverman", 5 ** (-1 / 7))]
    )
    def test_formula(self, rule, factor):
        spread = [math.sqrt(2.75), 1.0, math.sqrt(59 / 4 - (9 / 4) ** 2)]
        expected = factor * np.array(spread)
        np.testing.assert_allclose(rule_bandwidth(self.X, Gaussian(), rule), expected)

    def test_canonical_ratio(self):
        ratio = 1.7188 / 0.7764
        wider = rule_bandwidth(self.X, Epanechnikov())
        np.testing.assert_allclose(wider, ratio * rule_bandwidth(self.X, Gaussian()), rtol=1e-4)
        for kernel in (Silverman(), Matern32()):
            np.testing.assert_allclose(
                rule_bandwidth(self.X, kernel), rule_bandwidth(self.X, Gaussian())
            )

    def test_weights_count_rows(self):
        weight = np.array([3, 1, 0, 2])
        repeated = np.repeat(self.X, weight, axis=0)
        np.testing.assert_allclose(
            rule_bandwidth(self.X, Gaussian(), "silverman", weight),
            rule_bandwidth(repeated, Gaussian(), "silverman"),
        )

    def test_a_constant_feature_has_spread_one(self):
        X = np.full((10, 2), 0.1)
        X[:, 1] += 1e6  # whose mean is not exact
        np.testing.assert_array_equal(feature_spread(X), [1.0, 1.0])

    def test_unknown_rule(self):
        with pytest.raises(ValueError, match="rule='thumb' is unknown: choose from"):
            rule_bandwidth(self.X, Gaussian(), "thumb")


class TestMinimizeScale:
    @pytest.mark.parametrize("target", [0.0123, 0.5, 77.0])
    def test_smooth_valley(self, target):
        scale, value = minimize_scale(lambda h: (np.log(h / target) ** 2, False), 1e-3, 1e3)
        assert scale == pytest.approx(target, rel=1e-3)
        assert value < 1e-6

    @pytest.mark.parametrize("phase", np.linspace(0, 6, 13))
    def test_the_deepest_of_many_valleys(self, phase):
        def bumpy(h):
            x = np.log(h)
            return np.cos(2.5 * x + phase) + 0.02 * (x - 1) ** 2, False

        grid = np.exp(np.linspace(np.log(1e-3), np.log(1e3), 20_001))
        brute = min(bumpy(h)[0] for h in grid)
        assert minimize_scale(bumpy, 1e-3, 1e3)[1] <= brute + 1e-6

    def test_infinite_and_nan_regions(self):
        def partly(h):
            return np.where(h < 0.1, np.nan, np.where(h > 10, np.inf, (h - 2) ** 2)), False

        assert minimize_scale(partly, 1e-3, 1e3)[0] == pytest.approx(2, rel=1e-3)
        assert minimize_scale(lambda h: (h * np.nan, False), 1, 2)[1] == np.inf

    def test_minimum_at_an_end(self):
        assert minimize_scale(lambda h: (h, False), 0.5, 2)[0] == pytest.approx(0.5, rel=1e-3)
        assert minimize_scale(lambda h: (-h, False), 0.5, 2)[0] == pytest.approx(2, rel=1e-3)

    def test_stops_when_asked_and_counts_candidates(self):
        calls = []

        def criterion(h):
            calls.extend(h)
            return np.cos(40 * np.log(h)), False

        minimize_scale(criterion, 1e-3, 1e3)
        assert 60 < len(calls) < 200
        seen = []

        def stopped(h):
            seen.extend(h)
            return -h, True

        scale, _ = minimize_scale(stopped, 1, 2, step=0.1)
        assert scale == pytest.approx(max(seen))
        assert len(seen) == 8

    def test_of_equals_the_widest(self):
        assert minimize_scale(lambda h: (h * 0, False), 1, 100)[0] == pytest.approx(100)


def brute_force_error(X, values, kernel, bandwidth, weight):
    """Leave each row out and average the others, one by one."""
    total = 0.0
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        w = kernel(X[[i]] / bandwidth, X[others] / bandwidth)[0] * weight[others]
        total += weight[i] * ((values[i] - w @ values[others] / w.sum()) ** 2).mean()
    return total / weight.sum()


class TestLeaveOneOut:
    @pytest.mark.parametrize("kernel", [Gaussian(), Matern32(), Silverman()], ids=repr)
    @pytest.mark.parametrize("bandwidth", [0.2, 1.0, np.array([0.3, 2.0])])
    def test_error_equals_leaving_out(self, kernel, bandwidth):
        rng = np.random.default_rng(0)
        X, values = rng.normal(size=(40, 2)), rng.normal(size=(40, 3))
        weight = rng.uniform(0.2, 2, 40)
        error = leave_one_out_error(X, values, kernel, bandwidth, sample_weight=weight)
        expected = brute_force_error(X, values, kernel, bandwidth, weight)
        assert error == pytest.approx(expected, rel=1e-10)

    @pytest.mark.parametrize("kernel", [Gaussian(), Epanechnikov(), Triangular()], ids=repr)
    @pytest.mark.parametrize("seed", range(4))
    def test_search_finds_the_brute_force_minimum(self, kernel, seed):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 1, (60, 1))
        values = np.sin(12 * X) + 0.3 * rng.normal(size=(60, 1))
        _, error, *_ = select_bandwidth(X, values, kernel)
        grid = np.geomspace(0.005, 3, 300)
        brute = criterion_of_candidates(X, values, kernel, list(grid)).min()
        # Compact kernels make curves with kinks; a percent of a percent is no miss.
        assert error <= brute * (1 + 1e-4)

    def test_boxcar_search_comes_close_on_a_curve_of_steps(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 1, (60, 1))
        values = np.sin(12 * X) + 0.3 * rng.normal(size=(60, 1))
        _, error, *_ = select_bandwidth(X, values, Boxcar())
        grid = np.geomspace(0.005, 3, 500)
        brute = criterion_of_candidates(X, values, Boxcar(), list(grid)).min()
        assert error <= brute * 1.02

    def test_one_scale_on_each_spread(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 2)) * [1.0, 1000.0]
        values = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(80, 1))
        bandwidth, _, *_ = select_bandwidth(X, values, Gaussian())
        ratio = bandwidth / feature_spread(X)
        assert ratio[0] == pytest.approx(ratio[1])

    def test_units_do_not_matter(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 2))
        values = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(80, 1))
        bandwidth, error, *_ = select_bandwidth(X, values, Gaussian())
        scaled, same, *_ = select_bandwidth(X * [1e-6, 1e4] + 7, values, Gaussian())
        np.testing.assert_allclose(scaled, bandwidth * [1e-6, 1e4], rtol=2e-3)
        assert same == pytest.approx(error, rel=1e-6)

    def test_cps71(self, data_folder):
        import pandas as pd

        frame = pd.read_csv(data_folder / "curves" / "cps71.csv.gz")
        X, values = frame[["age"]].to_numpy(float), frame[["logwage"]].to_numpy()
        bandwidth, error, *_ = select_bandwidth(X, values, Gaussian())
        weight = np.ones(len(X))
        grid = np.concatenate([np.geomspace(0.5, 10, 10), np.linspace(1.85, 1.95, 11)])
        curve = [brute_force_error(X, values, Gaussian(), h, weight) for h in grid]
        assert error <= min(curve)
        assert bandwidth[0] == pytest.approx(grid[np.argmin(curve)], abs=0.01)
        # R's np documents 1.892 for this regression.
        assert bandwidth[0] == pytest.approx(1.892, abs=1e-3)

    @pytest.mark.parametrize("n_features", [1, 2])
    @pytest.mark.parametrize("kernel", [Gaussian(), Epanechnikov()], ids=repr)
    def test_many_rows_are_glanced_at_and_then_looked_at(self, n_features, kernel, monkeypatch):
        monkeypatch.setattr("sklearn_attention.bandwidth._search.MAX_SEARCH_ROWS", 150)
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

    @pytest.mark.parametrize("d", [1, 2, 3])
    def test_very_many_rows_are_sampled_and_rescaled(self, d, monkeypatch):
        limits = {"MAX_KEYS": 300, "MAX_KEYS_IN_LINEAR_TIME": {1: 300, 2: 300}}
        for name, limit in limits.items():
            monkeypatch.setattr(f"sklearn_attention.bandwidth._search.{name}", limit)
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 1, (1200, d))
        values = np.sin(12 * X[:, :1]) + 0.3 * rng.normal(size=(1200, 1))
        rows = np.random.RandomState(0).choice(1200, 300, replace=False)
        bandwidth, _, *_ = select_bandwidth(X, values, Gaussian(), random_state=0)
        sample, _, *_ = select_bandwidth(X[rows], values[rows], Gaussian())
        # The sample's own spread differs a little: only the scale is carried over.
        assert bandwidth[0] == pytest.approx(sample[0] * 4 ** (-1 / (d + 4)), rel=2e-2)

    @pytest.mark.parametrize("kernel", [Gaussian(), Epanechnikov()], ids=repr)
    @pytest.mark.parametrize("far", [1e2, 1e6])
    def test_one_far_row_changes_little(self, far, kernel):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(499, 1))
        values = np.sin(3 * X) + 0.3 * rng.normal(size=(499, 1))
        alone, _, *_ = select_bandwidth(X, values, kernel)
        X, values = np.append(X, [[far]], axis=0), np.append(values, [[0.3]], axis=0)
        found, _, *_ = select_bandwidth(X, values, kernel)
        assert found[0] == pytest.approx(alone[0], rel=0.1)

    @pytest.mark.parametrize("degree", [0, 1])
    @pytest.mark.parametrize("kernel", [Gaussian(), Laplacian()], ids=repr)
    def test_heavy_tails(self, kernel, degree):
        rng = np.random.default_rng(1)
        X = rng.standard_cauchy(size=(500, 1))
        values = np.sin(4 * np.arctan(X)) + 0.3 * rng.normal(size=(500, 1))
        bandwidth, error, *_ = select_bandwidth(X, values, kernel, degree=degree)
        grid = bandwidth[0] * np.geomspace(1e-3, 1e3, 25)
        errors = [leave_one_out_error(X, values, kernel, h, degree=degree) for h in grid]
        assert error <= 1.01 * min(errors)

    def test_all_rows_of_a_feature_are_looked_at(self):
        rng = np.random.default_rng(0)
        n = MAX_SEARCH_ROWS + 1000
        X = rng.normal(size=(n, 1))
        values = np.sin(5 * X) + 0.3 * rng.normal(size=(n, 1))
        first, second = (
            select_bandwidth(X, values, Gaussian(), random_state=seed)[0] for seed in (0, 1)
        )
        assert first == second

    def test_constant_values_take_the_widest(self):
        X = np.random.default_rng(0).normal(size=(40, 1))
        for degree, criterion in itertools.product((0, 1), SMOOTHER_CRITERIA):
            bandwidth, value, *_ = select_bandwidth(
                X, np.full((40, 1), 0.1), Gaussian(), criterion, degree=degree
            )
            assert criterion == "aicc" or value < 1e-200
            assert bandwidth[0] > np.ptp(X)

    def test_outputs_count_alike(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 1))
        values = np.hstack([np.sin(6 * X), X]) + 0.2 * rng.normal(size=(200, 2))
        found = [
            select_bandwidth(X, values * units, Gaussian(), standardize=True)[0][0]
            for units in ([1, 1], [1, 1e6], [1e6, 1])
        ]
        np.testing.assert_allclose(found, found[0], rtol=1e-6)

    def test_a_flat_minimum_is_doubtful(self):
        # Noise that is alike in neighbouring rows.
        rng = np.random.default_rng(0)
        X = np.linspace(0, 1, 150)[:, None]
        noise = np.convolve(rng.normal(size=152), [0.63, 0.7, 0.63], "valid")
        values = (np.sin(3 * X[:, 0]) + noise)[:, None]
        _, _, results, doubts = select_bandwidth(X, values, Gaussian(), "penalized-loo")
        assert "leave-one-out error is flat" in doubts[0]
        freedom = results["degrees_of_freedom"]
        assert (np.diff(results["bandwidth"][:, 0]) > 0).all()
        assert freedom[0] > freedom[-1]
        assert results["criterion"].shape == results["loo_error"].shape == freedom.shape

    def test_the_ends_of_the_range_are_doubtful(self, monkeypatch):
        rng = np.random.default_rng(0)
        X = np.linspace(0, 1, 100)[:, None]
        values = np.sin(6 * X) + 0.1 * rng.normal(size=(100, 1))
        found = select_bandwidth(X, np.tile([[1.0], [-1.0]], (50, 1)), Gaussian())
        assert "no dependence on X was found" in found.doubts[0]
        assert select_bandwidth(X, values, Gaussian()).doubts == []
        monkeypatch.setattr(
            "sklearn_attention.bandwidth._search.search_range", lambda *_: (1.0, 10.0)
        )
        found = select_bandwidth(X, values, Gaussian())
        assert "ended at the narrowest bandwidth" in found.doubts[0]

    @pytest.mark.slow
    def test_a_period_is_not_carried_over(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 20, (2 * MAX_SEARCH_ROWS, 1))
        values = np.sin(2 * np.pi * X)
        kernel = Periodic(length_scale=0.3)
        bandwidth, error, *_ = select_bandwidth(X, values, kernel)
        assert leave_one_out_error(X, values, kernel, bandwidth) < 2 * error

    @pytest.mark.parametrize("scale", [1e-200, 1e-170, 1e160, 1e200])
    def test_extreme_units(self, scale):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 1))
        values = np.sin(X) + 0.1 * rng.normal(size=(60, 1))
        bandwidth, error, *_ = select_bandwidth(X, values, Gaussian())
        of_y, _, *_ = select_bandwidth(X, values * scale, Gaussian())
        np.testing.assert_allclose(of_y, bandwidth, rtol=2e-3)
        of_x, same, *_ = select_bandwidth(X * scale, values, Gaussian())
        np.testing.assert_allclose(of_x / scale, bandwidth, rtol=2e-3)
        assert same == pytest.approx(error, rel=1e-6)
        np.testing.assert_allclose(
            rule_bandwidth(X * scale, Gaussian()) / scale, rule_bandwidth(X, Gaussian())
        )

    def test_copies_are_left_out_together(self):
        rng = np.random.default_rng(0)
        X, values = rng.normal(size=(60, 1)), rng.normal(size=(60, 1))
        values += np.sin(3 * X)
        half = np.arange(90) % 60
        found = select_bandwidth(X[half], values[half], Gaussian())
        weight = np.repeat([2.0, 1.0], 30)
        expected = select_bandwidth(X, values, Gaussian(), sample_weight=weight)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
        assert found[1] == pytest.approx(expected[1])

    def test_equal_classes_are_no_copies(self):
        X = np.random.default_rng(0).integers(0, 5, size=(60, 1)).astype(float)
        values = (X > 2).astype(float)
        data = SearchData(X, values, "loo", None, 0)
        assert data.n_samples == 60

    def test_noise_takes_the_mean(self):
        rng = np.random.default_rng(3)
        X, values = rng.normal(size=(200, 1)), rng.normal(size=(200, 1))
        bandwidth, error, *_ = select_bandwidth(X, values, Gaussian())
        assert bandwidth[0] > 1
        assert error == pytest.approx(values.var(), rel=0.05)

    def test_all_rows_in_one_place(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bandwidth, _, *_ = select_bandwidth(
                np.ones((5, 2)), np.arange(5.0)[:, None], Gaussian()
            )
        assert np.isfinite(bandwidth).all()

    def test_weightless_rows_are_absent(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 1))
        values = np.sin(3 * X) + 0.3 * rng.normal(size=(60, 1))
        weight = np.repeat([1.0, 0.0], [50, 10])
        found = select_bandwidth(X, values, Gaussian(), sample_weight=weight)
        expected = select_bandwidth(X[:50], values[:50], Gaussian())
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)

    def test_a_single_row(self):
        with pytest.raises(ValueError, match="n_samples=1: pass a number"):
            select_bandwidth(np.ones((1, 1)), np.ones((1, 1)), Gaussian())

    @pytest.mark.parametrize("empty", ["raise", "nan"])
    def test_every_row_must_be_predicted_where_asked(self, empty):
        X = np.array([[0.0], [0.1], [0.2], [10.0]])
        values = np.arange(4.0)[:, None]
        bandwidth, _, *_ = select_bandwidth(X, values, Boxcar(), empty=empty)
        assert bandwidth[0] >= 9.8
