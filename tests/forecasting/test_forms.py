"""Series of all forms come in, and forecasts go out in the same."""

import numpy as np
import pandas as pd
import pytest
from forecasting_data import make_series, make_values

from sklearn_attention import KernelForecaster
from sklearn_attention.forecasting._forms import read_series


def make_frame(kind="MS"):
    frame = pd.DataFrame({name: make_series(kind, seed=i) for i, name in enumerate("ab")})
    frame.columns.name = "site"
    return frame


def fit(y, horizon=3, **parameters):
    parameters = {"lookback": 12, "bandwidth": 1.0} | parameters
    return KernelForecaster(horizon, **parameters).fit(y)


@pytest.mark.parametrize("kind", ["10min", "period"])
def test_a_series_comes_back_as_a_series(kind):
    series = make_series(kind)
    model = fit(series[:-9].astype(np.float32))
    for steps, found in [(3, model.predict()), (9, model.predict(9)), (5, model.predict(5))]:
        assert found.dtype == np.float32
        assert found.name == "load"
        pd.testing.assert_index_equal(found.index, series.index[-9:][:steps], exact=True)
        assert getattr(found.index, "freq", None) == getattr(series.index, "freq", None)
    intervals = model.predict_interval(4)
    pd.testing.assert_index_equal(intervals.index, series.index[-9:-5], exact=True)
    assert list(intervals.columns) == ["lower", "upper"]
    assert list(model.predict_quantiles().columns) == [0.1, 0.5, 0.9]


def test_shorter_series_of_a_frame_are_forecast_up_to_the_common_steps():
    frame = make_frame()
    frame.iloc[:7, 0] = np.nan
    frame.iloc[-4:, 1] = np.nan
    found = fit(frame).predict(3)
    apart = fit({"a": frame["a"].dropna(), "b": frame["b"].dropna()})
    own = apart.predict(7)
    assert own["b"].index[0] == frame.index[-4]
    np.testing.assert_allclose(found["a"], own["a"][:3])
    np.testing.assert_allclose(found["b"], own["b"][4:])
    pd.testing.assert_index_equal(found.index, own["b"].index[4:])


SERIES = make_series()
HOURS = pd.Series(make_values(40), pd.date_range("2024-01-01", periods=40, freq="2h"))
GAP = HOURS.drop(HOURS.index[[4, 9]])
GAPS = "has gaps in its index: 2024-01-01 08:00:00, 2024-01-01 18:00:00 miss"


# 2012 was meant.
MISTYPED = pd.Series(
    np.arange(68.0),
    [*pd.date_range("2011-11-01", "2011-12-31"), *pd.date_range("2011-01-01", "2011-01-07")],
)


def changed(places, value, dtype=float):
    series = SERIES.astype(dtype)
    series.iloc[places] = value
    return series


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (changed([4, 9], np.nan), r"NaN.*'load' at 2015-05-01, 2015-10-01.*interpolate"),
        (changed([0], np.nan), "NaN.*at 2015-01-01: pass .*, or drop the rows at the ends"),
        (changed([4], "many", object), "'load'.*entry 'many' at row 4.*to_numeric"),
        (SERIES.to_numpy() * 1j, "Complex data not supported"),
        (np.ones((3, 3, 3)), r"ndarray, of shape \(3, 3, 3\), is not"),
        ([[1.0, 2.0], [3.0]], r"an array of one or two.*series of different lengths"),
        ({"a": SERIES, "b": SERIES.to_numpy()}, "both Series and arrays"),
        ({"a": np.ones((3, 3))}, r"X\['a'\] has shape \(3, 3\)"),
        (pd.concat({"a": SERIES, "b": SERIES[::-1]}), r"X\['b'\].*not sorted"),
        (MISTYPED, "X has .* not sorted .2011-01-01 comes after 2011-12-31.: .*sort_index"),
        ({"a": MISTYPED}, r"X\['a'\] has .* not sorted .2011-01-01 comes after 2011-12-31"),
        (MISTYPED.sort_index(), "no freq.* gap between 2011-01-07, 2011-11-01: correct"),
        ([10**400, *range(30)], "has the entry 10+"),
        (
            {"a": HOURS, "b": HOURS[:20].shift(freq="1h")},
            r"X\['b'\] has steps that the",
        ),
        ({"a": HOURS, "b": GAP}, rf"X\['b'\] {GAPS}"),
        (pd.concat({"a": HOURS, "b": GAP}), rf"X\['b'\] {GAPS}"),
        (pd.concat({"u": pd.concat({"a": SERIES})}), "index of 3 levels: pass two"),
        (make_frame().stack().to_frame("u").assign(v=1), r"columns \['u', 'v'\]"),
    ],
)
def test_bad_series(y, message):
    model = KernelForecaster(lookback=12)
    with pytest.raises(ValueError, match=f"(?s){message}"):
        model.fit(y)
    assert vars(model) == vars(KernelForecaster(lookback=12))


def test_indexes_of_other_zones_and_resolutions_go_together():
    series = make_series("10min")
    parts = {"a": series[:30], "b": series[4:40].tz_convert("UTC")}
    table = read_series(parts)
    assert table.starts.tolist() == [0, 4]
    assert len(table.time) == 40
    days = make_series("B")
    other = days[3:50].set_axis(days.index[3:50].as_unit("ns"))
    assert read_series({"a": days[:20], "b": other}).starts.tolist() == [0, 3]
    with pytest.raises(
        ValueError,
        match=r"^X\['b'\] has an index of dtype .*, but the series are .* Europe/Berlin\]",
    ):
        fit({"a": series, "b": series[:40].tz_localize(None)})


def test_columns_are_cut_where_they_begin_and_end():
    values = np.full((9, 4), np.nan)
    values[2:7, 0], values[:, 1], values[8, 3] = 1.0, 2.0, 3.0
    values[4, 0] = np.nan
    with pytest.raises(ValueError, match=r"values \(NaN\) in series 2"):
        fit(values)
    table = read_series(values, earlier=read_series(np.ones((2, 4))))
    assert table.names == [0, 1, 2, 3]
    assert table.starts.tolist() == [4, 2, 0, 10]
    assert table.lengths.tolist() == [5, 9, 0, 1]
    np.testing.assert_array_equal(table.observations[0], values[2:7, 0])
    # A single one, or all together, have not ended but lack values.
    for lacking in (values[:, 2:3], values[:, [2, 2]]):
        table = read_series(lacking, earlier=read_series(np.ones((2, lacking.shape[1]))))
        assert table.row_counts.tolist() == [9] * lacking.shape[1]
        assert np.isnan(table.value).all()
