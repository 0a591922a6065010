"""Windows against loops, and the rules that choose their sizes."""

import numpy as np
import pandas as pd
import pytest
from forecasting_data import make_values

from sklearn_attention.datasets import make_periodic_series
from sklearn_attention.forecasting import Windows
from sklearn_attention.forecasting._measures import measure
from sklearn_attention.forecasting._season import season_of, season_of_values
from sklearn_attention.forecasting._series import read_panel
from sklearn_attention.forecasting._windows import choose_lookback

SIZES = LOOKBACK, HORIZON = 5, 3


def make_panel():
    """Three series: whole, beginning late, and too short for a window."""
    frame = pd.DataFrame({name: make_values(30, i) for i, name in enumerate("abc")})
    frame.iloc[:6, 1] = np.nan
    frame.iloc[7:, 2] = np.nan
    return read_panel(frame)


def slow_windows(panel, features, known):
    for i, values in enumerate(panel.values):
        for t in range(LOOKBACK, len(values) - HORIZON + 1):
            before, after = slice(t - LOOKBACK, t), slice(t, t + HORIZON)
            yield (
                i, panel.starts[i] + t, values[before], features[i][before],
                features[i][after][:, known], values[after],
            )  # fmt: skip


def test_windows_are_those_of_a_loop():
    panel = make_panel()
    rng = np.random.default_rng(0)
    features = [rng.normal(size=(len(values), 4)) for values in panel.values]
    known = np.array([1, 3])
    windows = Windows(panel, features, known, *SIZES, measure(panel.values))
    expected = list(zip(*slow_windows(panel, features, known), strict=True))
    batch = windows.batch()
    found = (
        windows.series, windows.origins, batch.past, batch.past_features,
        batch.future_features, batch.target,
    )  # fmt: skip
    for mine, slow in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, slow)
    for i, level in zip(windows.series, batch.level, strict=True):
        assert level == panel.values[i].mean()
    np.testing.assert_allclose(batch.unit[0], panel.values[0].std())
    some = windows.take([4, 20]).batch()
    np.testing.assert_array_equal(some.past, batch.past[[4, 20]])
    np.testing.assert_array_equal(windows.batch([7]).target, batch.target[[7]])
    without = Windows(panel, None, known[:0], *SIZES, measure(panel.values))
    assert without.batch().past_features is None


@pytest.mark.parametrize("fraction", [0.05, 0.2, 0.6])
def test_nothing_of_the_holdout_is_learned_from(fraction):
    panel = make_panel()
    windows = Windows(panel, None, np.arange(0), *SIZES, measure(panel.values))
    train, holdout = windows.split(fraction)
    assert train.origins.max() + HORIZON <= holdout.origins.min()
    assert abs(len(holdout) / len(windows) - fraction) < 0.06
    assert set(train.series) == {0, 1}


class TestLookback:
    def choose(self, n, lookback="auto", horizon=1, season_length=1):
        return choose_lookback(
            read_panel(np.arange(n) ** 1.5), lookback, horizon, season_length
        )

    def test_auto(self):
        assert self.choose(400, season_length=12) == 36
        assert self.choose(400, horizon=50) == 50
        assert self.choose(400) == 10
        assert self.choose(60, season_length=12) == 15
        assert self.choose(4) == 1

    def test_a_number_is_kept_while_there_is_room(self):
        assert self.choose(30, 7, horizon=2) == 7
        assert self.choose(30, 25, horizon=2) == 25
        with pytest.warns(UserWarning, match="lookback=26 leaves too few .* shrinks to 25"):
            assert self.choose(30, 26, horizon=2) == 25

    def test_too_short_a_series(self):
        assert self.choose(12, horizon=5) == 1
        with pytest.raises(ValueError, match="has 11 samples, but horizon=5 needs at least 12"):
            self.choose(11, horizon=5)

    @pytest.mark.parametrize("lookback", [0, -3, 2.5, "long", None])
    def test_nonsense(self, lookback):
        with pytest.raises(ValueError, match="lookback="):
            self.choose(60, lookback)


class TestSeason:
    @pytest.mark.parametrize(
        ("freq", "expected"),
        [
            ("MS", 12), ("ME", 12), ("BME", 12), ("QS", 4), ("QE-NOV", 4), ("W-MON", 52),
            ("B", 5), ("D", 7), ("h", 24), ("10min", 144), ("30min", 48), ("15s", 240),
            ("2MS", 6), ("2h", 12),
        ],
    )  # fmt: skip
    def test_of_the_frequency(self, freq, expected):
        index = pd.date_range("2000-01-01", periods=2 * expected, freq=freq)
        noise = np.random.default_rng(0).normal(size=len(index))
        assert season_of(read_panel(pd.Series(noise, index)), "auto") == expected
        if freq in ("MS", "QE-NOV"):
            periods = pd.Series(noise, index.to_period())
            assert season_of(read_panel(periods), "auto") == expected

    @pytest.mark.parametrize("period", [4, 7, 12, 24])
    def test_of_the_autocorrelation(self, period):
        steps = np.arange(400)
        noise = np.random.default_rng(0).normal(size=400)
        values = 1e6 + 3 * steps + 5 * np.sin(2 * np.pi * steps / period) + noise
        assert season_of_values(values) == period

    def test_of_a_period_that_is_no_whole_number_of_steps(self):
        for name in ("sine", "square", "growing_sine"):
            assert season_of_values(make_periodic_series(name, 1000)) == 63

    def test_there_may_be_none(self):
        rng = np.random.default_rng(0)
        for values in (rng.normal(size=300), np.ones(50), 3.0 * np.arange(50), np.ones(3)):
            assert season_of_values(values) == 1

    def test_a_year_of_weeks_needs_two(self):
        index = pd.date_range("2000-01-03", periods=60, freq="W-MON")
        values = np.sin(2 * np.pi * np.arange(60) / 6)
        assert season_of(read_panel(pd.Series(values, index)), "auto") == 6

    def test_as_given(self):
        assert season_of(read_panel(np.ones(9)), 5) == 5
        with pytest.raises(ValueError, match="season_length=0"):
            season_of(read_panel(np.ones(9)), 0)
