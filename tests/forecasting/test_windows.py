"""Windows against loops: keys, levels, units and what followed."""

import numpy as np
import pytest

from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting._origins import (
    Windows,
    by_group,
    choose_lookback,
    least_length,
)

LOOKBACK, HORIZON = 4, 3
UNIT = np.array([[2.0], [5.0]])
LEVELS = {
    "standard": lambda past: past.mean(),
    "last": lambda past: past[-1],
    None: lambda past: 0.0,
    3: lambda past: past[-3:].mean(),
}


def make(known=(), n_features=3):
    """An origin in each of two series, where the second has fewer steps than a window."""
    rng = np.random.default_rng(0)
    values = [100 + rng.normal(size=n) for n in (20, 9)]
    features = [rng.normal(size=(n, n_features)) for n in (25, 14)] if n_features else None
    table = Table.of(values, features=features, known=np.array(known, dtype=int))
    return Origins.at_ends(table, HORIZON).at(np.array([0, 1]), np.array([12, 3]))


@pytest.mark.parametrize("normalize", LEVELS)
def test_windows_and_what_followed_are_relative_to_a_level_and_in_a_unit(normalize):
    origins = make(n_features=0)
    windows = Windows.before(origins, LOOKBACK, normalize, UNIT)
    assert len(windows) == 2
    for row, past in enumerate(origins.past(LOOKBACK)):
        level = LEVELS[normalize](past)
        unit = past.std() if normalize == "standard" else UNIT[row, 0]
        followed = origins.targets()[row]
        np.testing.assert_allclose(windows.keys[row], (past - level) / unit)
        np.testing.assert_allclose(windows.values[row], (followed - level) / unit)
        np.testing.assert_allclose(windows.level[row], [level])
        np.testing.assert_allclose(windows.unit[row], [unit])


@pytest.mark.parametrize("known", [(), (0, 2), (0, 1, 2)])
def test_features_follow_the_steps_of_a_window(known):
    origins = make(known)
    windows = Windows.before(origins, LOOKBACK, "last")
    table = np.split(origins.table.features, [25])
    others = [column for column in range(3) if column not in known]
    for row, (i, first) in enumerate(zip(origins.series, origins.known, strict=True)):
        past = [table[i][max(first - LOOKBACK + s, 0), others] for s in range(LOOKBACK)]
        later = [table[i][first + s, list(known)] for s in range(HORIZON)]
        expected = np.concatenate([np.ravel(past), np.ravel(later)])
        np.testing.assert_array_equal(windows.keys[row, LOOKBACK:], expected)


def test_positions_are_grouped_by_their_labels():
    labels = np.array([3, -1, 3, 0, -1, 3])
    found = {label: list(rows) for label, rows in by_group(labels)}
    assert found == {-1: [1, 4], 0: [3], 3: [0, 2, 5]}
    assert list(by_group(labels[:0])) == []


def choose(n, lookback="auto", horizon=1, season_length=1):
    return choose_lookback(n, lookback, horizon, season_length)


def test_auto():
    assert choose(400, season_length=12) == 36
    assert choose(400, horizon=50) == 50
    assert choose(400) == 10
    assert choose(60, season_length=12) == 15
    assert choose(4) == 1


def test_a_number_is_kept_while_there_is_room():
    assert choose(30, 7, horizon=2) == 7
    assert choose(30, 25, horizon=2) == 25
    with pytest.warns(UserWarning, match="lookback=26 leaves too few .* shrinks to 25"):
        assert choose(30, 26, horizon=2) == 25


def test_too_short_a_series():
    assert choose(12, horizon=5) == 1
    assert least_length(5) == 12
    with pytest.raises(ValueError, match="has 11 samples, but horizon=5 needs at least 12"):
        choose(11, horizon=5)


@pytest.mark.parametrize("lookback", [0, "long", None])
def test_nonsense(lookback):
    with pytest.raises(ValueError, match="lookback="):
        choose(60, lookback)
