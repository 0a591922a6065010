"""Windows against loops: keys, levels, units and what followed."""

import pytest

from sklearn_attention.forecasting._origins import (
    choose_lookback,
    least_length,
)

LOOKBACK, HORIZON = 4, 3


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
