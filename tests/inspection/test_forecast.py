"""Displays of forecasts, whatever form series have."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.dates import date2num
from numpy.testing import assert_allclose

from sklearn_attention import KernelForecaster
from sklearn_attention.inspection import ForecastDisplay


def test_history_forecast_fan_and_what_happened(analogs, series):
    display = ForecastDisplay.from_estimator(analogs, y=series[-12:], coverage=[0.9, 0.5])
    told = analogs.predict(coverage=[0.9, 0.5])
    past, happened, forecast = display.ax_.lines
    assert_allclose(forecast.get_ydata(), told["forecast"])
    assert_allclose(date2num(forecast.get_xdata()), date2num(told.index))
    assert_allclose(past.get_ydata(), series[-60:-12])
    assert_allclose(happened.get_ydata(), series[-12:])
    assert len(display.ax_.collections) == 2
    assert_allclose(display.intervals[0.9], told[["lower_90", "upper_90"]])
    widths = [np.ptp(area.get_paths()[0].vertices[:, 1]) for area in display.ax_.collections]
    assert widths[0] >= widths[1]  # the wider below


def test_similar_windows_are_marked_where_they_were_and_do_not_overlap(
    analogs, candidates, series
):
    table = analogs.explain(k=len(series))
    ends = series.index.get_indexer(table["time"])
    # One after another, each at least a window from those before it.
    expected = []
    for place, end in enumerate(ends):
        if all(abs(end - ends[other]) >= analogs.lookback_ for other in expected):
            expected.append(place)
    assert expected[3] > 3  # heavier ones overlap
    display = ForecastDisplay.from_estimator(analogs, n_analogs=4)
    for (weight, window), place in zip(display.analogs, expected[:4], strict=True):
        assert weight == table["weight"][place]
        assert window.index[analogs.lookback_ - 1] == table["time"][place]
        assert_allclose(window, series[window.index])
        assert len(window) == analogs.lookback_ + 12
    with pytest.raises(ValueError, match=r"n_analogs=1.*TransformerForecaster does not have"):
        ForecastDisplay.from_estimator(candidates, n_analogs=1)


def _long(frame):
    return pd.concat(
        pd.DataFrame({"unique_id": name, "ds": own.index, "y": own.to_numpy()})
        for name, own in frame.items()
    )


_FORMS = {
    "long": _long,
    "array": lambda frame: frame.to_numpy(),
    "periods": lambda frame: frame.to_period("M"),
    "polars": lambda frame: pl.DataFrame({"ds": frame.index.tolist()} | frame.to_dict("list")),
}


@pytest.mark.parametrize("form", _FORMS)
def test_one_of_several_series_in_every_form(form, series):
    frame = pd.DataFrame({"a": series, "b": 10 - series})
    model = KernelForecaster(6, lookback=12, bandwidth=1.0).fit(_FORMS[form](frame))
    name = model.observed_.names[1]
    display = ForecastDisplay.from_estimator(model, series=name, coverage=0.8)
    alone = KernelForecaster(6, lookback=12, bandwidth=1.0).fit(frame)
    expected = alone.predict(coverage=0.8)["b"]
    assert_allclose(display.forecast, expected["forecast"])
    assert_allclose(display.intervals[0.8], expected[["lower_80", "upper_80"]])
    assert_allclose(display.history, 10 - series[-24:])
    if form != "array":
        assert (display.forecast.index == expected.index).all()
        assert (display.history.index == series.index[-24:]).all()
    first = ForecastDisplay.from_estimator(model, coverage=0.8)
    assert_allclose(first.history, series[-24:])


def test_one_series_without_a_column_of_its_name(series):
    rows = series.rename("y").rename_axis("ds").reset_index()
    models = [KernelForecaster(6, lookback=12).fit(past[:200]) for past in (rows, series)]
    found, expected = (
        ForecastDisplay.from_estimator(model, y=y)
        for model, y in zip(models, (rows[200:], series[200:]), strict=True)
    )
    for name in ("forecast", "history", "actual"):
        assert_allclose(getattr(found, name)[:6], getattr(expected, name)[:6])
    assert (found.forecast.index == expected.forecast.index).all()


def test_an_array_is_numbered(series):
    model = KernelForecaster(6, lookback=12).fit(series.to_numpy())
    display = ForecastDisplay.from_estimator(model, 3, coverage=[], y=[1.0, 2.0, 3.0, 4.0])
    assert display.forecast.index.tolist() == [240, 241, 242]
    assert display.actual.tolist() == [1, 2, 3]


def test_what_happened_is_a_column_of_a_frame(series):
    frame = pd.DataFrame({"a": series, "b": 10 - series}).to_period("M")
    model = KernelForecaster(6, lookback=12, bandwidth=1.0).fit(frame[:-6])
    display = ForecastDisplay.from_estimator(model, y=frame[-6:], series="b", coverage=[])
    assert_allclose(display.actual, 10 - series[-6:])
    assert (display.actual.index == series.index[-6:]).all()
    other = frame[-6:].rename(columns={"b": "c"})
    with pytest.raises(ValueError, match=" the series to be drawn: pass"):
        ForecastDisplay.from_estimator(model, y=other, series="b", coverage=[])
    with pytest.raises(ValueError, match=r"y has shape \(6, 2\)"):
        ForecastDisplay.from_estimator(model, y=frame[-6:].to_numpy(), series="b", coverage=[])


def test_what_happened_is_in_rows_of_a_frame(series):
    frame = pd.DataFrame({"a": series, "b": 10 - series})
    model = KernelForecaster(6, lookback=12, bandwidth=1.0).fit(_long(frame[:-6]))
    later = _long(frame[-6:]).sample(frac=1, random_state=0)
    later["ds"] = pd.DatetimeIndex(later["ds"]).strftime("%Y-%m-%d")
    display = ForecastDisplay.from_estimator(model, y=later, series="b", coverage=[])
    assert_allclose(display.actual, 10 - series[-6:])
    assert (display.actual.index == series.index[-6:]).all()
    with pytest.raises(ValueError, match="y has no values of the series 'a': pass"):
        ForecastDisplay.from_estimator(model, y=_long(frame[["b"]]), series="a", coverage=[])


@pytest.mark.parametrize(("n_features", "several"), [(2, False), (6, True)])
def test_bars_are_what_features_add(n_features, several):
    rng = np.random.default_rng(0)
    days = pd.date_range("2024", periods=90)
    X = pd.DataFrame(rng.random((90, n_features)), days).add_prefix("x")
    effect = np.arange(n_features, 0, -1.0) * np.where(np.arange(n_features) % 2, -1, 1)
    y = pd.Series(20 + X.to_numpy() @ effect + 0.1 * rng.normal(size=90), days)
    y = pd.DataFrame({"north": y, "south": 2 * y}) if several else y
    model = KernelForecaster(5, lookback=7).fit(X[:-5], y[:-5])
    options = {"series": "south"} if several else {}
    display = ForecastDisplay.from_estimator(model, X[-5:], effects=True, **options)
    told = model.explain_features(X[-5:])
    told = told["south"] if several else told
    assert_allclose(display.effects, told)
    labels = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    named = [f"x{i}" for i in range(n_features)] if n_features < 4 else ["2 others"]
    assert {*named, "x0", "forecast if features were usual"} <= {*labels}
    heights = [sum(bar.get_height() for bar in group) for group in display.ax_.containers]
    assert_allclose(np.sum(heights), told.iloc[:, 1:].to_numpy().sum())
    # Bars upwards begin at the usual forecast or at the end of another.
    usual = told["usual"].to_numpy()
    first = [bar.get_y() for bar in display.ax_.containers[0]]
    assert_allclose(first, usual)
