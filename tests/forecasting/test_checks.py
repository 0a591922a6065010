"""Mistakes in data are refused, with a remedy."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from forecasting_data import (
    fit,
    make_features,
    make_panel,
    make_series,
    make_values,
    new,
    tidy_of,
)

from sklearn_attention import KernelForecaster, TransformerForecaster
from sklearn_attention.forecasting import Table
from sklearn_attention.forecasting._checks import fill_line, fill_seasonal, fill_values

A, B = make_panel().values()
WIDE = pd.DataFrame({"a": A, "b": make_series(seed=1)})
X = make_features()


@pytest.mark.parametrize(("first", "second"), [(A, X), (A.tolist(), X[["sun"]])])
def test_series_before_features_are_refused(first, second):
    message = r"X is one-dimensional.* the order is fit\(X, y\)"
    for method in (new().fit, new().backtest, fit(X, A).update, fit(X, A).score):
        with pytest.raises(ValueError, match=message):
            method(first, second)
    with pytest.raises(ValueError, match=r"y of shape .*, as if .* the order is fit\(X"):
        fit(A.to_numpy(), X.to_numpy())


FEATURE = pd.Series(["mild", None] * 30, A.index, name="f", dtype="string")
DATES = A.rename_axis("date").reset_index()
GAP = A.mask(A.index == A.index[5])
TEXTS = r"y \('f'\) has the entry 'mild'.*is not a number.*before the series, fit\(X, y\)"
NO_DATES = r"X has dates in its column 'date': make them the index, X.set_index\('date'\)"
STORES = pd.DataFrame({"store": ["a"] * 60 + ["b"] * 60, "date": 2 * list(A.index)})
STORES["sales"] = np.random.default_rng(0).normal(size=120)
NAMES = "rename the columns: 'unique_id' .*, 'ds' .* and 'y'"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((A, FEATURE), TEXTS),
        ((WIDE.to_numpy(), FEATURE), TEXTS),
        ((DATES,), NO_DATES),
        ((DATES.astype({"date": str}),), NO_DATES),
        ((DATES.assign(date=DATES["date"].dt.date),), NO_DATES),
        ((STORES,), f"X has dates in its column 'date', several times the same. .*{NAMES}"),
        ((pl.from_pandas(STORES),), f"X has dates in its column 'date', several .*{NAMES}"),
        ((pl.from_pandas(DATES),), r"'date': rename it, X.rename\({'date': 'ds'}\)"),
        ((STORES.set_index("date"),), f"X has an index with duplicates, .*{NAMES}"),
        ((STORES.rename(columns={"date": "ds", "sales": "y"}),), f"duplicates, .*{NAMES}"),
        ((STORES.drop(columns="date"),), rf"X \('store'\) has the entry 'a' .*{NAMES}"),
        ((DATES[["load"]].drop([3, 4]),), f"gaps in its index: 3, 4 .*set_index.*{NAMES}"),
        # The only series is not called None, or 0.
        ((GAP.to_numpy(),), r"X has missing values \(NaN\) at 5"),
        ((GAP.reset_index(drop=True).rename(None),), r"X has missing values \(NaN\) at 5"),
        ((GAP.reset_index(drop=True),), r"X has missing values \(NaN\) in 'load' at 5"),
    ],
)
def test_what_can_be_no_series_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        new().fit(*data)


@pytest.mark.parametrize("form", [lambda y: y, lambda y: {"north": y, "south": A}])
def test_a_line_in_the_place_of_a_season_is_warned_of(form):
    short, long = (A.where((np.arange(60) < 40) | (np.arange(60) >= n)) for n in (51, 52))
    model = new(missing="interpolate", season_length=12)
    model.fit(form(short))
    message = "X has no values in '(north|load)' from 2018-05-01 to 2019-04-01, .*'seasonal'"
    with pytest.warns(UserWarning, match=message):
        model.fit(form(long))
    # The remedy is followed by no warning.
    model.set_params(missing="seasonal").fit(form(long))
    with pytest.warns(UserWarning, match="X has no values.* from 2018-05-01 to 2019-04-01"):
        new(missing="interpolate").fit(A[:40]).update(A[52:])


def test_tables_of_series_and_dates_are_forecast_as_the_messages_say():
    names = {"store": "unique_id", "date": "ds", "sales": "y"}
    assert len(fit(STORES.rename(columns=names)).predict()) == 6
    assert len(fit(DATES.set_index("date")).predict()) == 3
    assert len(fit(pl.from_pandas(DATES).rename({"date": "ds"})).predict()) == 3
    # Texts of which none is a number are no numbers that were misread.
    with pytest.raises(ValueError, match="entry 'a'") as caught:
        new().fit(STORES.drop(columns="date").astype({"store": "category"}))
    assert "to_numeric" not in str(caught.value)
    # Numbers with a plain index are several series.
    numbers = STORES.assign(store=[1] * 60 + [2] * 60, date=2 * list(range(60)))
    assert list(fit(numbers).predict()) == ["store", "date", "sales"]


@pytest.mark.parametrize("kind", [pd.Series, lambda i: list(map(str, i))])
def test_dates_are_the_index_of_series_without_one(kind):
    expected = fit(A).predict()
    for y in (A.to_numpy(), A.reset_index(drop=True)):
        found = fit(kind(A.index), y).predict()
        pd.testing.assert_series_equal(
            found, expected, check_names=False, check_index_type=False, check_freq=False
        )
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fit(kind(A.index), A.to_numpy()[1:])


def test_leakage_is_seen_in_any_series_but_not_in_what_is_past():
    frame = pd.DataFrame({"a": A, "b": make_values(seed=3)}, A.index)
    with pytest.raises(ValueError, match="'sun', which is the target 'b' itself"):
        KernelForecaster().fit(X.assign(sun=frame["b"]), frame)
    with pytest.raises(ValueError, match="column 1, which is the target"):
        KernelForecaster().fit(X.assign(sun=A).to_numpy(), A.to_numpy())
    KernelForecaster(past_features=["sun"]).fit(X.assign(sun=A), A)
    constant = pd.Series(1.0, A.index)
    KernelForecaster().fit(X.assign(sun=1.0), constant)


@pytest.mark.parametrize("kind", [KernelForecaster, TransformerForecaster])
def test_what_has_no_finite_square_is_refused(kind):
    wave = 10 + np.sin(np.arange(60.0))
    large = {"a": wave, "b": wave * 1e160}
    with pytest.raises(ValueError, match=r"X has values of 1e150 or more in 'b' .*divide all"):
        kind(3).fit(large)
    with pytest.raises(ValueError, match="X has values of 1e150 or more in column 0 at 0"):
        kind(3).fit((wave * 1e160)[:, None], wave)
    model = kind(3).fit(wave)
    with pytest.raises(ValueError, match="history has values of 1e150 or more"):
        model.predict(history=wave * 1e160)
    small = {"a": wave, "b": wave * 1e-106}
    known = model.predict()
    with pytest.raises(ValueError, match=r"series in 'b' are all smaller.*multiply all"):
        model.fit(small)
    np.testing.assert_array_equal(model.predict(), known)
    for scale in (1e148, 1e-88):
        found = kind(3).fit(wave * scale).predict_interval(6, coverage=0.99)
        expected = model.predict_interval(6, coverage=0.99)
        np.testing.assert_allclose(found / scale, expected, rtol=1e-6)


STEPS = np.arange(60)
EXACT = 5 + 0.3 * STEPS + np.tile([0.0, 4.0, -1.0, 2.0, 7.0, 1.0], 10)


def without(values, places):
    values = values.copy()
    values[places] = np.nan
    return values


def slow_fill(values, season):
    """Each missing value from one season before and one after, by loops."""
    n, filled = len(values), values.copy()
    for t in np.flatnonzero(np.isnan(values)):
        guesses = []
        for other in (-season, season):
            pairs = [
                (u, values[u] - values[u + other])
                for u in range(n)
                if 0 <= u + other < n and not np.isnan(values[u] - values[u + other])
            ]
            beside = values[t + other] if 0 <= t + other < n else np.nan
            if pairs and not np.isnan(beside):
                guesses.append(beside + np.interp(t, *zip(*pairs, strict=True)))
        filled[t] = np.mean(guesses) if guesses else fill_line(values)[t]
    return filled


@pytest.mark.parametrize("season", [1, 6, 60])
def test_seasonal_filling_is_a_loop(season):
    rng = np.random.default_rng(0)
    values = without(rng.normal(size=60), rng.choice(np.arange(1, 59), 25, replace=False))
    expected = fill_line(values) if season == 1 else slow_fill(values, season)
    np.testing.assert_allclose(fill_seasonal(values, season), expected)


def test_gaps_are_filled_series_by_series():
    first, second = without(EXACT, [3, 4]), EXACT[:20] * 2
    table = Table.from_arrays([first, second, without(EXACT, [9])], starts=np.array([5, 0, 0]))
    options = {"season_length": 6, "what": "y"}
    line = fill_values(table, missing="interpolate", **options)
    expected = [fill_line(first), second, fill_line(table.observations[2])]
    np.testing.assert_array_equal(line.value, np.concatenate(expected))
    seasonal = fill_values(table, missing="seasonal", **options)
    np.testing.assert_allclose(seasonal.observations[0], EXACT)
    with pytest.raises(ValueError, match=r"y has missing values \(NaN\) in 0 at 8, 9: pass"):
        fill_values(table, missing="raise", **options)
    assert fill_values(line, missing="raise", **options) is line
    assert np.isnan(table.value).sum() == 3


@pytest.mark.parametrize(
    ("form", "missing"), [("array", "seasonal"), ("frame", "interpolate"), ("tidy", "seasonal")]
)
def test_a_series_is_shorter_where_values_at_its_ends_are_missing(form, missing):
    def formed(series):
        return {
            "array": series.to_numpy(), "frame": series.to_frame(),
            "tidy": tidy_of(pd.concat({"a": series})),
        }[form]  # fmt: skip

    holes = A.mask(np.isin(np.arange(60), [0, 1, 30, 58, 59]))
    model = fit(formed(holes), missing=missing)
    short = fit(formed(holes[2:58]), missing=missing)
    np.testing.assert_array_equal(model.observed_.value, short.observed_.value)
    # Rows that there are for all are not forecast, as in frames with series that end earlier.
    aligned = form != "tidy"
    n, skipped = (5, 2) if aligned else (3, 0)
    forecasts = model.predict(), short.predict(history=formed(holes)), short.predict(n)
    if form == "tidy":
        forecasts = [forecast["forecast"] for forecast in forecasts]
    found, recent, expected = forecasts
    np.testing.assert_array_equal(found, expected[skipped:])
    np.testing.assert_array_equal(recent, found)
    with pytest.raises(
        ValueError, match=r"missing values .NaN.*pass missing='interpolate' .* drop the rows"
    ):
        fit(formed(holes))
    with pytest.raises(ValueError, match=r"has only missing values \(NaN\)"):
        fit(formed(holes * np.nan), missing=missing)
