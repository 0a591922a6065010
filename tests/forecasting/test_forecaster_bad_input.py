"""Data and parameters that a forecaster refuses, or makes the best of."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from forecasting_data import make_series

from sklearn_attention import KernelForecaster, TransformerForecaster

SERIES = make_series()
MONTHS = pd.DateOffset(months=2)
X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), SERIES.index, ["wind", "sun"])


def holed(frame, row, column, value):
    frame = frame.copy()
    frame.iloc[row, column] = value
    return frame


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"horizon": 0}, "horizon=0"),
        ({"missing": "drop"}, "missing='drop' is unknown"),
        ({"bounds": (1, 0)}, r"bounds=\(1, 0\) is not valid: pass 'auto', None"),
        ({"horizon": 2, "lookback": 50, "validation_fraction": 0.9}, "leaves none of 9"),
        ({"kernel": "silverman"}, "kernel='silverman' takes negative values"),
        ({"kernel": lambda X, Y: X @ Y.T}, "kernel=.* takes negative values"),
        ({"bandwidth": [1.0, 2.0]}, r"bandwidth=.* shape \(2,\)"),
        ({"past_features": "wind"}, "past_features='wind' is not valid: pass a list"),
        ({"past_features": ["rain"]}, r"'rain', which is not a column of.*\['wind', 'sun'\]"),
    ],
)
def test_parameters(parameters, message):
    model = KernelForecaster(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X, SERIES)
    assert vars(model) == vars(KernelForecaster(**parameters))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (X[:40], r"X does not cover y: it has no rows for 2018-05-01, .* and 15 more in"),
        (pd.concat([X, X]), "X has an index with duplicates, 2015-01-01, 2015-02-01"),
        (X.set_axis(["sun", "sun"], axis=1), r"X has columns of the same name, \['sun', 'sun'"),
        (X.reset_index(drop=True), "dtype int64, but the series are datetime64"),
        (X.assign(load=SERIES), "column 'load', which is the target 'load' itself"),
        (X.assign(place=["here", 2] * 30), "X has texts in column 'place', .*encode it first"),
        (holed(X, 7, 1, np.nan), "NaN. in column 'sun' in 'load' at 2015-08-01: pass"),
        (holed(X, 0, 1, np.nan), "NaN. .* at 2015-01-01: drop the rows at the ends"),
    ],
)
def test_features(features, message):
    with pytest.raises(ValueError, match=message):
        KernelForecaster().fit(features, SERIES)


@pytest.mark.parametrize(
    ("future", "message"),
    [
        (None, r"X=None has no features, but .* with \['wind', 'sun'\]: pass these as col"),
        (7, r"X=7 has no features, but KernelForecaster .*'wind', 'sun'.*row for each step\.$"),
        ("2020", "X='2020' has no features, but KernelForecaster was fitted with .*'wind'"),
        (X[50:].drop(X.index[52]), "no rows for 2019-05-01"),
        (X.index[50:], r"X has no features, but .* fitted with \['wind', 'sun'\]"),
        (holed(X[50:], 1, 0, np.nan), "NaN. in column 'wind' in 'load' at 2019-04-01"),
        (
            X[50:].set_axis(X.index[50:] + pd.Timedelta(1, "D")),
            "that the series, which begins at",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_features_to_forecast_from(future, message):
    model = KernelForecaster(2, lookback=5, bandwidth=1.0).fit(X[:50], SERIES[:50])
    with pytest.raises(ValueError, match=message):
        model.predict(future)


@pytest.mark.parametrize(
    ("future", "message"),
    [
        (10**30, r"X=1000000.* is not valid: pass an integer below 2\*\*63"),
        (True, r"X=True is not valid: .*a number of steps and a date"),
        (X[50:], "(?s)is not an index, and KernelForecaster was fitted without"),
        (pd.Index(["a"]), "to_datetime"),
    ],
)
def test_steps_to_forecast(future, message):
    model = KernelForecaster(2, lookback=5, bandwidth=1.0).fit(SERIES[:50])
    with pytest.raises(ValueError, match=message):
        model.predict(future)


def test_bad_histories():
    model = KernelForecaster(3, lookback=12, bandwidth=1.0).fit(SERIES)
    with pytest.raises(ValueError, match=r"history has 11 steps .* lookback_=12"):
        model.predict(history=SERIES[:11])
    with pytest.raises(ValueError, match="history has missing values"):
        model.predict(history=SERIES.where(SERIES.index != SERIES.index[55]))


NAMED = r"X has no features, but KernelForecaster was fitted with \['wind', 'sun'\]: pass"


def test_a_forecast_needs_only_features_that_are_known_beforehand():
    model = KernelForecaster(2, lookback=5, bandwidth=1.0, past_features=["wind"])
    with pytest.raises(ValueError, match=r"X=None has no features, .*\['sun'\]: pass"):
        model.fit(X, SERIES).predict()
    assert len(model.predict(X[["sun"]][-2:].set_axis(SERIES.index[-2:] + MONTHS))) == 2
    assert len(model.fit(X[["wind"]], SERIES).predict()) == 2
    rows = SERIES.rename("y").rename_axis("ds").reset_index()
    model = KernelForecaster(2, lookback=5, bandwidth=1.0).fit(rows.assign(x=range(60)))
    with pytest.raises(ValueError, match=r"X has no features, but .* with \['x'\]"):
        model.backtest(rows)


def test_later_observations():
    model = KernelForecaster(2, lookback=5, bandwidth=1.0).fit(X[:50], SERIES[:50])
    for method in (model.score, model.update, model.backtest):
        for series in (SERIES[50:], pl.Series(SERIES[50:].to_numpy())):
            with pytest.raises(ValueError, match=NAMED + r" .*, and the series as y\.$"):
                method(series)
    assert len(model.backtest(X, SERIES, cv=2)) == 4
    for method in (model.score, model.update):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            method(pl.from_pandas(X[50:]), SERIES[52:])
    with pytest.raises(ValueError, match="X=None is not valid"):
        model.score(None, SERIES[50:])
    panel = KernelForecaster(2, lookback=5, bandwidth=1.0)
    panel.fit({"a": SERIES[:50], "b": SERIES[:50]})
    with pytest.raises(ValueError, match=r"series \['c'\], but .* fitted on \['a', 'b'\]"):
        panel.score({"c": SERIES[50:]})
    with pytest.raises(ValueError, match=r"UTC., but the series are datetime64"):
        panel.update({"a": SERIES[50:].tz_localize("UTC")})


@pytest.mark.parametrize(
    ("method", "given"),
    [
        *(("predict_interval", {"coverage": bad}) for bad in (0, 90, "most")),
        *(("predict_quantiles", {"quantiles": bad}) for bad in ([], [0.5, 1.0], [0.5, 0.5])),
    ],
)
def test_levels_are_probabilities(method, given):
    model = KernelForecaster(lookback=5, bandwidth=1.0).fit(SERIES)
    with pytest.raises(ValueError, match=f"{next(iter(given))}="):
        getattr(model, method)(**given)


def test_each_coverage_has_columns_of_its_own():
    model = KernelForecaster(lookback=5, bandwidth=1.0)
    for method in (model.fit(SERIES).predict, partial(model.backtest, SERIES)):
        with pytest.raises(ValueError, match=r"coverage=\[.*has a probability twice"):
            method(coverage=[0.5, 0.8, 0.80000001])


def test_new_series_of_zeros_may_follow_logarithms():
    model = TransformerForecaster(3, log=True, candidates=["classical"]).fit({"a": SERIES})
    model.update({"b": SERIES[:9] * 0})
    found = model.predict(coverage=0.5)
    assert (found["b"].abs() < SERIES.min()).all(axis=None)
    with pytest.raises(ValueError, match="a series has only negative values"):
        model.update({"c": -SERIES[:9]}).predict()


def test_a_stretch_without_change_does_not_spoil_the_average():
    series = make_series(n=60).copy()
    series.iloc[20:40] = series.iloc[20] + 1e-9 * np.arange(20)
    model = KernelForecaster(3, lookback=6).fit(series)
    assert np.abs(model.analogs_.values).max() < 20
    assert np.abs(model.predict(history=series[28:36]) - series.iloc[20]).max() < 1e-6
