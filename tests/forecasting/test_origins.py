"""Observations and origins against loops."""

import numpy as np
import pytest
from forecasting_validation import make_validation_of, make_walks, overlapping_rows

from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting._origins import split_at_ends
from sklearn_attention.forecasting._season_length import choose_lookback, min_series_length
from sklearn_attention.forecasting._table import positions, spread_over_phases

LOOKBACK, HORIZON = 5, 3
LENGTHS = 30, 24, 9, 6


def make(features=True):
    """Series of several lengths, the last too short for a window and a horizon."""
    rng = np.random.default_rng(0)
    values = [rng.normal(size=n) for n in LENGTHS]
    parts = [rng.normal(size=(n + 2, 4)) for n in LENGTHS] if features else None
    return Table.from_arrays(values, features=parts, future_columns=np.array([1, 3]))


def slow_origins(lookback, horizon):
    for i, n in enumerate(LENGTHS):
        for t in range(n + 1):
            if t >= lookback and t + horizon <= n:
                yield i, t


def row(table, step):
    """A row of a table, the first or last beyond its ends."""
    return table[min(max(step, 0), len(table) - 1)]


@pytest.mark.parametrize(("lookback", "horizon"), [(LOOKBACK, HORIZON), (8, 1)])
def test_origins_are_those_of_a_loop(lookback, horizon):
    found = Origins.within(make(), horizon, lookback)
    expected = list(slow_origins(lookback, horizon))
    np.testing.assert_array_equal(np.stack([found.series, found.n_known], axis=1), expected)
    assert len(found) == len(expected)


def test_what_is_known_and_what_follows_are_those_of_a_loop():
    observations = make()
    series, known = positions(0, observations.lengths + 1)  # from nothing known to all
    origins = Origins(observations, series, known, HORIZON)
    assert set(zip(origins.series, origins.n_known, strict=True)) >= {(0, 0), (0, 30), (3, 6)}
    lags = np.array([1, 4, 3])
    past, targets = origins.past(LOOKBACK), origins.targets()
    before, steps = origins.lagged(lags), origins.target_steps
    past_features = origins.past_features(LOOKBACK)
    future_features = origins.future_features()
    for k, (i, t) in enumerate(zip(origins.series, origins.n_known, strict=True)):
        values = observations.observations[i]
        table = observations.features[observations.series == i]
        window = [row(values, max(s, 0)) for s in range(t - LOOKBACK, t)]
        np.testing.assert_array_equal(past[k], window)
        ahead = list(range(t, t + HORIZON))
        np.testing.assert_array_equal(steps[k], ahead)
        expected = [values[s] if s < len(values) else np.nan for s in ahead]
        np.testing.assert_array_equal(targets[k], expected)
        expected = [row(table, s) for s in range(t - LOOKBACK, t)]
        np.testing.assert_array_equal(past_features[k], expected)
        expected = [row(table, s)[[1, 3]] for s in ahead]
        np.testing.assert_array_equal(future_features[k], expected)
        if t > 0:
            found = [s - lag for s, lag in zip(ahead, lags, strict=True)]
            expected = [values[s] if s >= 0 else np.nan for s in found]
            np.testing.assert_array_equal(before[k], expected)


@pytest.mark.parametrize("fraction", [0.05, 0.2, 0.6])
def test_the_last_origins_of_each_series_are_held_out(fraction):
    train, holdout = split_at_ends(Origins.within(make(), HORIZON, LOOKBACK), fraction)
    for i in range(4):
        own = [t for j, t in slow_origins(LOOKBACK, HORIZON) if j == i]
        n_held_out = max(1, int(len(own) * fraction)) if own else 0
        held_out = own[len(own) - n_held_out :]
        np.testing.assert_array_equal(holdout.n_known[holdout.series == i], held_out)
        learned = [t for t in own if t + HORIZON <= held_out[0]] if own else []
        np.testing.assert_array_equal(train.n_known[train.series == i], learned)
    assert set(holdout.series) == {0, 1, 2}
    assert 0 in train.series


@pytest.mark.parametrize("lengths", [(12,), (400, 7, 3, 15)])
def test_validation_origins_come_in_blocks_of_time(lengths):
    validation = make_validation_of(make_walks(lengths))
    tests, block = validation.tests, validation.block
    assert np.isfinite(tests.targets()[:, 0]).all()
    assert (tests.n_known >= 4).all()
    for i, n in enumerate(lengths):
        own = tests.series == i
        # All series that are long enough are validated.
        assert own.any() == (n > 4)
        if own.any():
            order = np.argsort(tests.n_known[own])
            assert (np.diff(tests.n_known[own][order]) > 0).all()
            assert (np.diff(block[own][order]) <= 0).all()
            assert block[own].min() == 0
            assert block[own].max() <= 4
    assert validation.n_blocks <= 5


@pytest.mark.parametrize(
    ("lengths", "horizon", "span"),
    [
        ([300], 5, (180, 5)),  # sixty percent
        ([60], 8, (24, 4)),  # three horizons of a short one
        ([100] * 30, 3, (18, 3)),  # six horizons of a panel
    ],
)
def test_origins_span_the_end_of_a_series(lengths, horizon, span):
    known = make_validation_of(make_walks(lengths), horizon=horizon).tests.n_known
    assert (lengths[0] - known.min(), lengths[0] - known.max()) == span


@pytest.mark.parametrize("lengths", [(200,), (22, 70)])
def test_what_overlaps_is_what_a_loop_finds(lengths):
    validation = make_validation_of(make_walks(lengths))
    origins = validation.origins
    for block in range(validation.n_blocks):
        found = validation.overlapping(origins.series, origins.n_known, block)
        for i in range(len(lengths)):
            own = origins.series == i
            expected = overlapping_rows(validation, i, block)
            np.testing.assert_array_equal(origins.n_known[own & found], expected)


def test_many_series_that_can_be_validated_are_a_panel():
    assert make_validation_of(make_walks([20] * 30)).is_panel
    assert not make_validation_of(make_walks([20] * 29)).is_panel
    assert not make_validation_of(make_walks([4] * 30)).is_panel
    rare = [
        np.where(np.arange(20) % 3 == 0, own - own.min(), 0) for own in make_walks([20] * 30)
    ]
    validation = make_validation_of([*make_walks([20] * 29), *rare])
    np.testing.assert_array_equal(validation.is_intermittent, [False] * 29 + [True] * 30)
    assert not validation.is_panel


def choose(n, lookback="auto", horizon=1, season_length=1):
    return choose_lookback(n, lookback, horizon, season_length)


def test_windows_are_as_long_as_seasons_horizons_and_series_let_them():
    assert choose(400, season_length=12) == 36
    assert choose(400, horizon=50) == 50
    assert choose(400) == 10
    assert choose(60, season_length=12) == 15
    assert choose(4) == choose(12, horizon=5) == 1
    assert min_series_length(5) == 12
    with pytest.raises(ValueError, match="has 11 samples, but horizon=5 needs at least 12"):
        choose(11, horizon=5)
    # A given one is kept while there is room.
    assert choose(30, 25, horizon=2) == 25
    with pytest.warns(
        UserWarning, match=r"lookback=26 leaves too few .*windows in a series of 30 steps"
    ):
        assert choose(30, 26, horizon=2) == 25


@pytest.mark.parametrize("n", [2400, 24_000, 100_003])
def test_positions_are_spread_over_phases(n):
    """Each phase has its share, also if all phases are at multiples of the distance."""
    np.testing.assert_array_equal(spread_over_phases(n, n), np.arange(n))
    for most in (n // 24, n // 12, n // 7, n // 2, 2 * n // 3, n - 1):
        chosen = spread_over_phases(n, most)
        assert len(np.unique(chosen)) == len(chosen) == most
        assert chosen[-1] == n - 1
        assert np.diff(chosen, prepend=-1).max() <= 2 * max(2, n / most)
        for m in (2, 7, 24):
            counts = np.bincount(chosen % m, minlength=m)
            assert np.abs(counts - most / m).max() <= max(5, 0.02 * most)
