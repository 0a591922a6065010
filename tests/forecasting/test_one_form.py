"""One table, and one forecast, whatever the form, the calendar, the gaps and the features."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from forecasting_data import new
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_attention.forecasting._output_forms import to_library

N, FURTHER = 30, 5
DAYS = pd.date_range("2024-08-20", periods=N + FURTHER)
CLOSED = pd.offsets.CustomBusinessDay(weekmask="Mon Tue Wed Thu Fri Sat")
CALENDARS = {
    "days": DAYS,
    "days of a zone": DAYS.tz_localize("America/Santiago", nonexistent="shift_forward"),
    "seconds": DAYS.as_unit("s"),
    "hours of a zone": pd.date_range(
        "2024-10-27", periods=N + FURTHER, freq="h", tz="Europe/Berlin"
    ),
    "month ends": pd.date_range("2020-01-31", periods=N + FURTHER, freq="ME"),
    "the 15th": pd.date_range("2020-01-15", periods=N + FURTHER, freq=pd.DateOffset(months=1)),
    "open days": pd.date_range("2024-08-20", periods=N + FURTHER, freq=CLOSED),
    "periods": pd.period_range("2020-01", periods=N + FURTHER, freq="M"),
    "texts": DAYS.strftime("%Y-%m-%d"),
    "dates": pd.Index(DAYS.date),
    "numbers": pd.RangeIndex(4, 4 + 3 * (N + FURTHER), 3),
}
FORMS = "dict", "long", "unsorted long", "long_frame", "tidy", "polars tidy", "frame", "polars"
COLUMNS = ["x", "z"]


@st.composite
def panels(draw):
    """A calendar, series {name: Series} on it with gaps, what features are of, and a form."""
    kind, form = draw(st.sampled_from(sorted(CALENDARS))), draw(st.sampled_from(FORMS))
    index, rng = CALENDARS[kind], np.random.default_rng(draw(st.integers(0, 99)))
    names = draw(st.sampled_from([["b", "a", "c"], ["u"], [7, 2], ["é", "x y"]]))
    series, names = {}, list(map(str, names)) if form == "polars" else names
    for name in names:
        start, stop = draw(st.integers(0, 6)), N - draw(st.sampled_from([0, 0, 3]))
        # Where days are absent, it is not known whether the shop was open.
        absent = draw(st.sets(st.integers(start + 5, stop - 4), max_size=4))
        absent = set() if kind == "open days" else absent
        steps = [i for i in range(start, stop) if i not in absent]
        series[name] = pd.Series(rng.normal(10, 2, len(steps)), index[steps])
    features = draw(st.sampled_from(["none", "of time", "of series"]))
    if (kind == "periods" and "polars" in form) or (
        features == "of series" and form in ("frame", "polars")
    ):
        form = "dict"
    return kind, series, features, form, draw(st.sampled_from(["zero", "interpolate"]))


def slow(series, index, missing):
    """First step, and values with those that lack filled."""
    first, *_, last = index.get_indexer(series.index)
    whole = series.reindex(index[first : last + 1])
    return first, whole.fillna(0.0) if missing == "zero" else whole.interpolate()


def formed(series, cells, form):
    """X and y of a form; `cells` are features {name: frame} of series, or of time, or None."""
    of_series = isinstance(cells, dict)
    long = pd.concat(series, names=["unique_id", "ds"]).rename("y")
    X = cells
    if of_series:
        X = {name: cells[name].loc[own.index] for name, own in series.items()}
        X = pd.concat(X, names=["unique_id", "ds"])
    if "long" in form:
        long = (
            long.sort_index(level=1, sort_remaining=False) if form == "unsorted long" else long
        )
        return X, long.to_frame() if form == "long_frame" else long
    if "tidy" in form:
        rows = long.reset_index()
        if of_series:
            rows = rows.merge(X.reset_index(), on=["unique_id", "ds"], how="left")
        rows = rows.sample(frac=1, random_state=0)
        rows = in_polars(rows) if form == "polars tidy" else rows
        return (None, rows) if of_series or cells is None else (X, rows)
    if form == "dict":
        return X, series
    wide = pd.DataFrame(series).sort_index()
    return X, in_polars(wide.rename_axis("ds").reset_index()) if form == "polars" else wide


def in_polars(frame):
    columns = {str(name): column.tolist() for name, column in frame.items()}
    if frame["ds"].dtype.kind == "M":
        columns["ds"] = to_library(frame[["ds"]], "polars")["ds"]
    return pl.DataFrame(columns)


def of(cells, name):
    """Features of a series."""
    return cells[name] if isinstance(cells, dict) else cells


def cells_of(kind, names, features):
    """Features of all steps of a calendar, {name: DataFrame} or one for all."""
    index, rng = CALENDARS[kind], np.random.default_rng(0)
    drawn = [pd.DataFrame(rng.normal(size=(len(index), 2)), index, COLUMNS) for _ in names]
    own = dict(zip(names, drawn, strict=True))
    return {"none": None, "of time": drawn[0], "of series": own}[features]


def by_step(found):
    """Forecasts of any form, {(name, step): forecast}, steps as texts."""
    if isinstance(found, pl.DataFrame):
        found = found.to_pandas()
        found = found if "unique_id" in found else found.set_index("ds")
    if isinstance(found, dict):
        found = pd.concat(found)
    elif "unique_id" in found:
        found = found.set_index(["unique_id", "ds"])["forecast"]
    elif isinstance(found, pd.DataFrame):
        found = found.iloc[:, 0] if found.index.nlevels == 2 else found.unstack()
    found = found.rename(lambda step: str(step).removesuffix(" 00:00:00"), level=1)
    return {(str(name), step): value for (name, step), value in found.items()}


@pytest.mark.parametrize("n_panels", [5, pytest.param(150, marks=pytest.mark.slow)])
def test_every_form_is_one_table_and_one_forecast(n_panels):
    forms = set()

    @settings(max_examples=n_panels, deadline=None)
    @given(panels())
    def check(panel):
        forms.add(panel[3])
        check_forms(panel)

    check()
    assert len(forms) > 2 or n_panels < 10  # a few may be of one form


def check_forms(panel):
    kind, series, features, form, missing = panel
    names = list(series)
    index, cells = CALENDARS[kind], cells_of(kind, list(series), features)
    model = new(FURTHER, missing=missing).fit(*formed(series, cells, form))
    table = model.observed_
    assert sorted(map(str, table.names)) == sorted(map(str, series))
    first = min(list(index).index(own.index[0]) for own in series.values())
    for i, name in enumerate(table.names):
        start, values = slow(series[name], index, missing)
        assert table.starts[i] == start - first
        np.testing.assert_allclose(table.observations[i], values)
        if cells is not None:
            expected = of(cells, name).iloc[start : start + len(values)]
            # Those of rows that are absent are interpolated.
            kept = expected.index.isin(series[name].index) | (features == "of time")
            found = table.features[table.series == i]
            np.testing.assert_array_equal(found[kept], expected[kept])
    ends = {name: 1 + list(index).index(own.index[-1]) for name, own in series.items()}
    if form in ("frame", "polars") and len(set(ends.values())) > 1:
        return  # these begin after the last of all
    expected = new(FURTHER, missing=missing).fit(*formed(series, cells, "dict"))
    later = asked = None
    if cells is not None:
        later = {name: of(cells, name)[end : end + FURTHER] for name, end in ends.items()}
        asked = later = pd.concat(later, names=["unique_id", "ds"])
        asked = asked.reset_index() if "tidy" in form else asked
        asked = asked.loc[names[0]] if form in ("frame", "polars") else asked
    found, expected = by_step(model.predict(asked)), by_step(expected.predict(later))
    assert found.keys() == expected.keys()
    np.testing.assert_allclose([found[key] for key in expected], [*expected.values()])
