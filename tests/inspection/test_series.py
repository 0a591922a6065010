"""One of several series by its name, and times that matplotlib takes."""

import pandas as pd
import pytest

from sklearn_attention.inspection._series import plain_times, series_position


@pytest.mark.parametrize(("series", "names"), [("z", ["a", "b"]), (0, ["a"])])
def test_what_is_no_series(series, names):
    with pytest.raises(ValueError, match=rf"series={series!r} is none .* pass one of \['a'"):
        series_position(series, names)


def test_periods_become_their_first_day():
    months = pd.period_range("2024-01", periods=3, freq="M")
    expected = pd.DatetimeIndex(["2024-01-01", "2024-02-01", "2024-03-01"])
    assert plain_times(months).equals(expected)
