"""Intervals and quantiles from errors on a hold-out."""

from dataclasses import replace

import numpy as np
import pytest
from forecasting_data import make_series
from scipy.stats import t as student
from slow_cases import slow_but

from sklearn_attention import KernelForecaster, TransformerForecaster
from sklearn_attention.forecasting import Calibration, Forecaster, Forecasts, Origins, Table
from sklearn_attention.forecasting._calibration import interval_shift
from sklearn_attention.forecasting._origins import split_at_ends
from sklearn_attention.forecasting._residual_sizes import (
    random_walk_sizes,
)


class Last(Forecaster):
    """Repeats the last value."""

    def _learn(self, table, report):
        self.lookback_ = self.lookback
        origins = Origins.within(table, self.horizon_, self.lookback_)
        _, holdout = split_at_ends(origins, 0.2)
        self.calibration_ = Calibration.fit(self._forecasts(holdout))

    def _forecasts(self, origins, levels=None):
        return Forecasts(origins, np.repeat(origins.past(1), self.horizon_, axis=1))


def forecasts_with(errors, disagreement=None):
    """Forecasts of a series, whose unit is 1, that miss it by some errors."""
    n, horizon = errors.shape
    table = Table.from_arrays([np.arange(1.0 + n * horizon) % 2])
    first, known = np.zeros(n, dtype=np.int64), 1 + horizon * np.arange(n)
    origins = Origins.at_ends(table, horizon).at_steps(first, known)
    return Forecasts(origins, origins.targets() - errors, disagreement)


def make_errors(n=39, horizon=2):
    """Errors that grow with the steps ahead; (n, horizon, 1)."""
    return np.random.default_rng(0).normal(size=(n, horizon, 1)) * [[1], [3], [4]][:horizon]


# Of 100 times .55, which is a little more than 55, the 55th counts.
@pytest.mark.parametrize(("n", "coverage"), [(9, 0.9), (99, 0.9), (99, 0.55)])
def test_the_margin_is_the_smallest_score_of_enough_rank(n, coverage):
    residuals = np.random.default_rng(0).normal(size=(n, 1, 1))
    scores = sorted(np.abs(residuals).ravel())
    expected = scores[round((n + 1) * coverage) - 1]
    for side in (-1, 1):
        level = (1 + side * coverage) / 2
        assert interval_shift(residuals, np.array([0.5]), level) == side * expected
    # Steps are pooled, and those that were not observed do not count.
    pooled = np.concatenate([residuals, np.full((1, 1, 1), np.nan)]).reshape(-1, 2, 1)
    assert interval_shift(pooled, np.array([0.5]), level) == expected


def test_without_origins_errors_are_those_of_a_random_walk():
    series = [np.array([1.0, 3.0, 2.0]), np.array([5.0, 5.0, 8.0, 6.0])]
    ends = Origins.at_ends(Table.from_arrays(series), 4)
    forecasts = Forecasts(ends.take(slice(0)), np.empty((0, 4)))
    found = Calibration.fit(forecasts)
    walks = random_walk_sizes(4, 2.5)
    mean = walks.mean()
    np.testing.assert_allclose(found.unit, [1.5 * mean, 5 / 3 * mean])
    np.testing.assert_allclose(found.profile, walks / mean)
    residuals = found.scaled_residuals[:, 0, 0]
    np.testing.assert_allclose(np.abs(residuals).mean(), 1, rtol=0.1)
    # Shaped as a distribution of as many differences as the series have.
    shape = student.ppf(0.9, 2.5) / student.ppf(0.7, 2.5)
    ratio = np.quantile(residuals, 0.9) / np.quantile(residuals, 0.7)
    assert ratio == pytest.approx(shape, rel=0.1)
    # Quantiles may have no spread.
    quantiles = replace(forecasts, quantiles=np.empty((0, 4, 2)))
    of_levels = Calibration.fit(quantiles, levels=[0.1, 0.5]).scaled_residuals
    np.testing.assert_allclose(of_levels, np.repeat(found.scaled_residuals, 2, axis=2))


def test_the_margin_of_quantiles_is_how_far_the_truth_lies_outside():
    rng = np.random.default_rng(0)
    truth, levels = rng.normal(size=(50, 1)), np.array([0.1, 0.5, 0.9])
    quantiles = np.array([-0.8, 0.1, 0.7])
    errors = truth[:, :, None] - quantiles
    margin = interval_shift(errors, levels, 0.9)
    assert interval_shift(errors, levels, 0.1) == -margin
    outside = sorted(max(-0.8 - y, y - 0.7) for y in truth[:, 0])
    assert margin == outside[int(np.ceil(51 * 0.8)) - 1]
    inside = np.mean((truth >= -0.8 - margin) & (truth <= 0.7 + margin))
    assert 0.8 <= inside <= 0.84


def test_intervals_are_those_of_the_errors_on_the_holdout():
    series = make_series(n=320)
    model = Last(3, lookback=4).fit(series)
    starts = range(4, 320 - 3 + 1)
    holdout = starts[int(np.ceil(0.8 * len(starts))) :]
    errors = np.array([[series.iloc[t + s] - series.iloc[t - 1] for s in range(3)]
                       for t in holdout])[:, :, None]  # fmt: skip
    profile = model.calibration_.profile
    scores = np.sort(np.abs(errors[:, :, 0] / profile), axis=None)
    margin = profile * scores[int(np.ceil(0.8 * (len(scores) + 1))) - 1]
    found = model.predict_interval(7, coverage=0.8)
    # In every horizon the squares grow by what lies between the first and the last step.
    growth = np.clip((margin[2] ** 2 - margin[0] ** 2) * 3 / 2, 0, margin[2] ** 2)
    last = series.iloc[-1]
    widths = np.sqrt(margin[np.arange(7) % 3] ** 2 + np.arange(7) // 3 * growth)
    np.testing.assert_allclose(found["lower"], last - widths)
    np.testing.assert_allclose(found["upper"], last + widths)
    quantiles = model.predict_quantiles(quantiles=(0.25, 0.5, 0.9))
    for level in (0.25, 0.5, 0.9):
        expected = last + profile * np.quantile(errors[:, :, 0] / profile, level)
        np.testing.assert_allclose(quantiles[level], expected)


def test_errors_of_a_block_are_in_units_of_the_others():
    errors, block = make_errors(80, horizon=1)[..., 0], np.repeat(np.arange(5), 16)
    larger = np.where(block[:, None] == 2, 1.5 * errors, errors)
    found, other = (
        Calibration.fit(forecasts_with(own), block=block).scaled_residuals
        for own in (errors, larger)
    )
    np.testing.assert_allclose(other[block == 2], 1.5 * found[block == 2])
    assert (np.abs(other[block != 2]) < np.abs(found[block != 2])).all()


def test_errors_grow_with_the_disagreement_of_candidates():
    rng = np.random.default_rng(0)
    apart = rng.uniform(0, 2, size=(4000, 1))
    errors = np.sqrt(1 + apart) * rng.normal(size=(4000, 1))
    forecasts = forecasts_with(errors, apart)
    found = Calibration.fit(forecasts, block=np.zeros(4000, dtype=np.int64))
    ends = found.intervals(forecasts, [0.9])[:, 0]
    truth = forecasts.origins.targets()
    inside = (ends[:, :1] <= truth) & (ends[:, 1:] >= truth)
    for some in (apart < 0.5, apart > 1.5):
        assert 0.88 < inside[some].mean() < 0.93
    width = np.ptp(ends, axis=1) / np.sqrt(1 + apart[:, 0] / found.mean_size)
    np.testing.assert_allclose(width, width[0])
    # After a jump candidates are far apart, but errors are no more than twice as large.
    ends = found.intervals(replace(forecasts, ensemble_mad=apart + 1e3), [0.9])[:, 0]
    np.testing.assert_allclose(np.ptp(ends, axis=1), 2 * width)


@pytest.mark.parametrize("kind", [Last, KernelForecaster])
def test_intervals_nest_whatever_else_is_wanted(kind):
    rng = np.random.default_rng(0)
    values = rng.choice([0.0, 0.0, 1.0, 5.0], size=60) + 0.1 * rng.random(60)
    model = kind(3, lookback=4).fit(values)
    coverages = [0.9, 0.5, 0.6, 0.85, 0.91, 0.3]
    ends = model.predict(coverage=coverages)[:, 1:].reshape(3, -1, 2)
    order = np.argsort(coverages)
    assert (np.diff(ends[:, order, 0], axis=1) <= 0).all()
    assert (np.diff(ends[:, order, 1], axis=1) >= 0).all()
    for place, coverage in enumerate(coverages):
        found = model.predict_interval(coverage=coverage)
        np.testing.assert_array_equal(found, ends[:, place])


def test_many_quantiles_do_not_cross():
    series = np.cumsum(np.random.default_rng(0).normal(size=80))
    model = KernelForecaster(3, lookback=4, bandwidth=1.0).fit(series)
    levels = np.arange(1, 100) / 100
    found = model.predict_quantiles(7, levels)
    assert (np.diff(found, axis=1) >= 0).all()
    np.testing.assert_array_equal(model.predict_quantiles(7, levels[::-1]), found[:, ::-1])


def test_intervals_follow_errors_since_the_fit():
    rng, inside = np.random.default_rng(0), {True: [], False: []}
    calm, wild = rng.normal(size=400), 4 * rng.normal(size=240)
    series = np.cumsum(np.concatenate([calm, wild]))
    model = Last(4, lookback=4).fit(series[:400])
    width = np.ptp(model.predict_interval(), axis=1)
    for end in range(400, 636, 4):
        lower, upper = model.predict_interval().T
        truth = series[end : end + 4]
        inside[end >= 440].append((lower <= truth) & (truth <= upper))
        model.update(truth)
    assert np.mean(inside[False]) < 0.75
    assert 0.83 < np.mean(inside[True]) < 0.95
    # Fresh series are not those that errors were seen of.
    fresh = model.predict_interval(history=series[-10:])
    np.testing.assert_allclose(np.ptp(fresh, axis=1), width)


def make_drifting(horizon=2):
    """Calibration of three series by errors of 2, and later origins where errors are 6."""
    one, until = np.ones(3), np.array([10, 10, 4])
    residuals, profile = np.full((5, horizon, 1), -2.0), np.ones(horizon)
    calibration = Calibration(
        np.array([0.5]), residuals, profile, one, one, (1.0, 1.0), until, 1, np.inf * one, until
    )
    table = Table.from_arrays([np.zeros(13), np.zeros(10), np.zeros(60)])
    return calibration, Origins.at_ends(table, horizon)


def test_drift_counts_horizons_beside_those_held_out():
    calibration, ends = make_drifting()
    since, rows = calibration.origins_since(ends)
    assert sorted(since.n_known[rows[0][rows[0] >= 0]]) == [10, 11]
    assert (rows[1] == -1).all()
    own = since.n_known[rows[2][rows[2] >= 0]]
    assert len(own) == 20
    assert (own.min(), own.max()) == (4, 58)
    found = calibration.drift(Forecasts(since, np.full((len(since), 2), 6.0)), rows, ends)
    horizons = np.array([1.5, 0.0, 28.0])
    np.testing.assert_allclose(found, 1 + 2 * horizons / (horizons + 2))
    # Nothing is known of forecasts of a history by a model that has learned from the series.
    assert len(calibration.origins_since(ends, is_history=True)[0]) == 0


def test_residuals_of_a_new_series_count_in_its_history():
    calibration, _ = make_drifting()
    # One is constant at first; its units are those of what is known in the end.
    values = np.where(np.arange(60) < 30, 0.0, np.arange(60) % 2)
    table = Table.from_arrays([values, values[:2]], training_index=np.array([-1, -1]))
    ends = Origins.at_ends(table, 2)
    since, rows = calibration.origins_since(ends, is_history=True)
    known = since.n_known[rows[0][rows[0] >= 0]]
    assert (len(known), known.min(), known.max()) == (20, 20, 58)
    assert (rows[1] == -1).all()
    drift = calibration.drift(Forecasts(since, since.targets() + 5.0), rows, ends)
    # Held-out residuals are 2 on average, in units of mean differences.
    ratio, n_horizons = 5 / 2 / np.abs(np.diff(values)).mean(), 20
    np.testing.assert_allclose(drift, [ratio ** (n_horizons**2 / (n_horizons**2 + 1)), 1.0])


def _hardly_changed(n):
    """Series that are constant, or a season, but for a few steps."""
    last, dip = np.zeros((2, n))
    last[-1], dip[-4] = 1.0, -2.0
    near = 1e-7 * np.random.default_rng(0).normal(size=n)
    season = np.sin(np.arange(n) * np.pi / 6)
    return {
        "last": last, "dip": dip, "near constant": near + last, "season": season + last,
        "step": 1.0 * (np.arange(n) >= n // 2), "stairs": np.floor(np.arange(n) / 12),
    }  # fmt: skip


@pytest.mark.parametrize("level", slow_but([5.0], [-1e6, 0.0, 5.0]))
@pytest.mark.parametrize("n", slow_but([30], [30, 60, 120]))
@pytest.mark.parametrize(
    "name",
    slow_but(["last", "dip", "near constant"], _hardly_changed(30)),
)
@pytest.mark.parametrize("forecaster", [KernelForecaster, TransformerForecaster])
def test_intervals_of_series_that_hardly_changed(forecaster, name, n, level):
    y = level + _hardly_changed(n)[name]
    most = 10 * np.abs(np.diff(y)).max() * np.sqrt(np.arange(1, 7))
    model = forecaster(3).fit(y)
    for later in ([], [y[-1] + 1.0]):
        if later:
            model.update(np.array(later))
        forecast = model.predict(6)
        for coverage in (0.5, 0.9, 0.99):
            lower, upper = model.predict_interval(6, coverage=coverage).T
            assert (lower <= forecast).all()
            assert (forecast <= upper).all()
            assert (np.maximum(upper - forecast, forecast - lower) <= most).all()
            ends = model.predict_quantiles(6, [(1 - coverage) / 2, (1 + coverage) / 2])
            assert (np.abs(ends - forecast[:, None]) <= most[:, None]).all()


def test_intervals_after_a_break_are_wider():
    rng = np.random.default_rng(0)
    calm, block = rng.normal(size=(200, 1)), np.repeat([4, 3, 2, 1, 0], 40)
    broken = np.where(block[:, None] == 0, 4 * calm, calm)
    units = [
        Calibration.fit(forecasts_with(errors), block=block).unit / np.abs(errors).mean()
        for errors in (calm, broken)
    ]
    np.testing.assert_allclose(units, [[1.0], [1.6]], rtol=0.1)


def test_a_break_does_not_count_twice():
    """Its residuals are divided by at least 0.7 of what they are multiplied by later."""
    rng = np.random.default_rng(0)
    calm, block = rng.normal(size=(200, 1)), np.repeat([4, 3, 2, 1, 0], 40)
    errors = np.where(block[:, None] == 0, 40 * calm, calm)
    found = Calibration.fit(forecasts_with(errors), block=block)
    unit = found.unit[0] / 1.6  # the latest block widens
    largest = np.abs(found.scaled_residuals).max()
    assert largest == pytest.approx(np.abs(errors).max() / (0.7 * unit), rel=1e-6)
