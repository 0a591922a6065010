"""Tables and series in every form that users have them in, drawn at random.

Cells of one kind in a container of another, for an estimator; a calendar, for a forecaster.
"""

import decimal
import functools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse
import torch
from every_estimator import EVERY, answer
from fuzz_calls import Call
from sklearn.base import clone

from sklearn_attention import KernelForecaster, TransformerForecaster

N = 24  # rows
_DAY = pd.Timestamp("2024-02-27")


def _objects(cells, *others):
    """An object array in which every fourth cell is another."""
    found = np.empty(len(cells), dtype=object)
    found[:] = list(cells)
    for k, other in enumerate(others):
        found[k::4] = [other] * len(found[k::4])
    return found


def _numbers(n):
    return np.random.default_rng(0).normal(size=n).round(2)


def _letters(n):
    return np.resize(list("abc"), n)


# Cells of one column, of the type that their name says.
CELLS = {
    "float": _numbers,
    **{t: functools.partial(lambda t, n: abs(_numbers(n) * 9).astype(t), t)
       for t in ("f2", "f4", ">f8", "i1", "u1", "u8", "i8", "?", "U", "S", "c16")},
    "longdouble": lambda n: _numbers(n).astype(np.longdouble),
    **{f"numbers and {other}": functools.partial(lambda o, n: _objects(_numbers(n), o), other)
       for other in (None, np.nan, pd.NA, pd.NaT, "", "a", True, decimal.Decimal("1.5"), 1j)},
    **{f"flags and {other}": functools.partial(lambda o, n: _objects(_numbers(n) > 0, o), other)
       for other in (None, np.nan, pd.NA, "a", 2)},
    **{f"texts and {other}": functools.partial(lambda o, n: _objects(_letters(n), o), other)
       for other in (None, np.nan, pd.NA, 1, True, b"a")},
    "decimals": lambda n: _objects([decimal.Decimal(str(x)) for x in _numbers(n)]),
    "texts": _letters,
    "texts of numbers": lambda n: _numbers(n).astype(str).astype(object),
    "days": lambda n: pd.date_range(_DAY, periods=n),
    "hours of a zone": lambda n: pd.date_range(_DAY, periods=n, freq="h", tz="Asia/Kolkata"),
    "dates": lambda n: _objects(pd.date_range(_DAY, periods=n).date),
    "spans": lambda n: pd.to_timedelta(np.arange(n), unit="h"),
    "months": lambda n: pd.period_range("2020-01", periods=n, freq="M"),
    "intervals": lambda n: pd.interval_range(0, n),
    "categories": lambda n: pd.Categorical(_letters(n)),
    "categories and none": lambda n: pd.Categorical(_objects(_letters(n), None)),
    "categories of numbers": lambda n: pd.Categorical(np.resize([1, 2, 5], n)),
    "ordered": lambda n: pd.Categorical(_letters(n), list("cab"), ordered=True),
    **{f"{t} and NA": functools.partial(
        lambda t, n: pd.array(_objects(np.arange(n) % 2 == 0, pd.NA), dtype=t), t)
       for t in ("boolean", "Int64", "Float64")},
    "strings": lambda n: pd.array(_letters(n), dtype="string"),
    "strings and NA": lambda n: pd.array(_objects(_letters(n), pd.NA), dtype="string"),
    "sparse": lambda n: pd.arrays.SparseArray(_numbers(n)),
    "lists": lambda n: _objects([[1.0, 2.0]] * n),
    "ragged lists": lambda n: _objects([[1.0] * (1 + i % 3) for i in range(n)]),
    "arrays": lambda n: _objects([np.arange(3.0) for _ in range(n)]),
    "series": lambda n: _objects([pd.Series(np.arange(3.0)) for _ in range(n)]),
    "dicts": lambda n: _objects([{"a": 1} for _ in range(n)]),
    "tensors": lambda n: _objects([torch.ones(2) for _ in range(n)]),
    "NaN alone": lambda n: np.full(n, np.nan),
    "None alone": lambda n: _objects([None] * n),
}  # fmt: skip


def _frame(cells):
    return pd.DataFrame({"a": _numbers(len(cells)), "b c": cells})


def _array(cells):
    cells = np.asarray(cells)
    numbers = _numbers(len(cells)).astype(cells.dtype if cells.dtype.kind in "fiub" else object)
    return np.column_stack([numbers, cells])


def _dask(make):
    import dask.array as da
    import dask.dataframe as dd

    def parts(cells):
        made = make(cells)
        if isinstance(made, pd.DataFrame):
            return dd.from_pandas(made, npartitions=3)
        return da.from_array(made, chunks=(7, *made.shape[1:]))

    return parts


TABLES = {
    "array": _array,
    "one column": lambda cells: np.asarray(cells)[:, None],
    "matrix of lists": lambda cells: _array(cells).tolist(),
    "masked": lambda cells: np.ma.array(_array(cells), mask=np.eye(len(cells), 2) > 0),
    "records": lambda cells: _frame(cells).to_records(index=False),
    "sparse": lambda cells: scipy.sparse.csr_array(_array(cells)),
    "tensor with grad": lambda cells: torch.tensor(_array(cells)).requires_grad_(),
    "frame": _frame,
    "columns of two levels": lambda cells: _frame(cells).set_axis(
        pd.MultiIndex.from_tuples([("x", "a"), ("x", "b")]), axis=1
    ),
    "columns of one name": lambda cells: _frame(cells).set_axis(["a", "a"], axis=1),
    "columns of mixed names": lambda cells: _frame(cells).set_axis([1, "a"], axis=1),
    "series": lambda cells: pd.Series(cells),
    "polars": lambda cells: pl.from_pandas(_frame(cells)),
    "lazy polars": lambda cells: pl.from_pandas(_frame(cells)).lazy(),
    "arrow": lambda cells: pl.from_pandas(_frame(cells)).to_arrow(),
    "columns in a dict": lambda cells: dict(_frame(cells)),
    "dask": _dask(_frame),
    "dask array": _dask(_array),
}  # fmt: skip
COLUMNS = {
    "array": np.asarray,
    "column": lambda cells: np.asarray(cells)[:, None],
    "list": list,
    "masked": lambda cells: np.ma.array(cells, mask=np.arange(len(cells)) == 3),
    "series": pd.Series,
    "frame": lambda cells: pd.DataFrame({"t": cells}),
    "polars": lambda cells: pl.from_pandas(pd.Series(cells)),
    "sparse": lambda cells: scipy.sparse.csr_array(np.asarray(cells)[:, None]),
    "tensor with grad": lambda cells: torch.tensor(np.asarray(cells)).requires_grad_(),
    "dask": _dask(np.asarray),
}  # fmt: skip
_TABULAR = [
    name for name in EVERY
    if "orecaster" not in type(EVERY[name]).__name__
    and name not in ("language model", "translator")
]  # fmt: skip


class Impossible(Exception):
    """There is no such container of such cells."""


def _made(make, cells):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(cells)
    except Exception as error:  # of NumPy, pandas, polars: no concern of this package
        raise Impossible from error


def table_call(rng):
    """A fit, or a question to a fitted estimator, with one argument in a drawn form."""
    name = _TABULAR[rng.integers(len(_TABULAR))]
    roles = ["X", "X", "queries", "y", "sample_weight"]
    roles += ["scored"] if hasattr(EVERY[name], "score") else []
    role = roles[rng.integers(len(roles))]
    kind = list(CELLS)[rng.integers(len(CELLS))]
    containers = TABLES if role in ("X", "queries") else COLUMNS
    container = list(containers)[rng.integers(len(containers))]
    given = _made(containers[container], CELLS[kind](N))
    model = clone(EVERY[name])
    if "bandwidth" in model.get_params() and rng.random() < 0.8:
        model.set_params(bandwidth="scott")
    X, y = _array(_numbers(N)), np.sin(np.arange(N))
    X[:, 1] += np.arange(N) / 9
    if type(model).__name__.endswith("Classifier"):
        y = np.where(np.sin(np.arange(N)) > 0, "b", "a")
    label = f"{type(model).__name__}: {role} of {kind} in {container}"

    def call():
        if role == "X":
            return answer(model.fit(given, y), (given, y))
        if role == "y":
            return answer(model.fit(X, given), (X, given))
        if role == "sample_weight":
            return answer(model.fit(X, y, sample_weight=given), (X, y))
        model.fit(X, y)
        return answer(model, (given, y)) if role == "queries" else model.score(X, given)

    return Call(label, call)


_ZONES = [None, None, "UTC", "Europe/Berlin", "America/Santiago", "Asia/Kolkata",
          "Australia/Lord_Howe", "America/Havana"]  # fmt: skip
_HOLIDAY = pd.offsets.CustomBusinessDay(holidays=["2024-03-01"])
CALENDARS = {
    **dict.fromkeys(("D", "h", "15min", "s", "W", "W-WED", "MS", "ME", "QS-FEB", "YS", "YE-JUN",
                     "B", "BME", "2D", "36h", "SMS", "2W", "3MS", "7min")),
    "holidays": _HOLIDAY,
    "six days": pd.offsets.CustomBusinessDay(weekmask="Mon Tue Wed Thu Fri Sat"),
    "months apart": pd.DateOffset(months=1),
    "days apart": pd.DateOffset(days=3),
    "of business": pd.offsets.BusinessHour(start="08:00", end="20:00"),
    "last of business": pd.offsets.CustomBusinessMonthEnd(),
}  # fmt: skip


def _days(rng, n):
    """A calendar's index, with its frequency or without."""
    name = list(CALENDARS)[rng.integers(len(CALENDARS))]
    zone = _ZONES[rng.integers(len(_ZONES))]
    start = ["2024-02-28", "2019-12-31 10:00", "1999-06-15"][rng.integers(3)]
    try:
        index = pd.date_range(start, periods=n, freq=CALENDARS[name] or name)
        index = index if zone is None else index.tz_localize(zone, nonexistent="shift_forward")
    except Exception as error:
        raise Impossible from error
    kept = rng.random() < 0.4
    return f"{name} in {zone}{' with freq' * kept}", index if kept else index._with_freq(None)


def _days_as(convert):
    def make(rng, n):
        name, index = _days(rng, n)
        return name, convert(index)

    return make


def _periods(rng, n):
    freq = "MDQWY"[rng.integers(5)]
    return freq, pd.period_range("2024", periods=n, freq=freq)


INDEXES = {
    "stamps": _days,
    "stamps in s": _days_as(lambda index: index.as_unit("s")),
    "objects": _days_as(lambda index: index.astype(object)),
    "texts": _days_as(lambda index: index.astype(str)),
    "dates": lambda rng, n: ("", pd.Index(_objects(pd.date_range("2024", periods=n).date))),
    "periods": _periods,
    "whole": lambda rng, n: ("", pd.Index(np.arange(1990, 1990 + n))),
    "floats": lambda rng, n: ("", pd.Index(np.arange(n) / 4)),
    "every third": lambda rng, n: ("", pd.RangeIndex(0, 3 * n, 3)),
    "spans": lambda rng, n: ("", pd.to_timedelta(np.arange(n), unit="h")),
    "texts alone": lambda rng, n: ("", pd.Index([f"step {i}" for i in range(n)])),
}  # fmt: skip
DAMAGES = {
    "whole": lambda index, rng: index,
    "unsorted": lambda index, rng: index[rng.permutation(len(index))],
    "twice": lambda index, rng: index[np.sort(rng.integers(len(index), size=len(index)))],
    "absent": lambda index, rng: index.delete([3, 9]),
    "missing": lambda index, rng: index[:-1].append(pd.Index([pd.NaT])),
}
# Others are those of tests/forecasting/test_one_form.py.
_FORMS = "series", "frame", "tidy", "polars"


def _form(form, index, values):
    """Series in a form."""
    if form == "series":
        return pd.Series(values, index, name="t")
    if form == "frame":
        return pd.DataFrame({"u": values, "v": values[::-1]}, index)
    names, both = np.repeat(["u", "v"], len(index)), np.append(values, -values)
    tidy = pd.DataFrame({"unique_id": names, "ds": index.append(index), "y": both})
    return tidy if form == "tidy" else pl.from_pandas(tidy)


def series_call(rng):
    """A fit of a forecaster and what follows, on a drawn calendar in a drawn form."""
    n = 60
    kind, damage = (list(x)[rng.integers(len(x))] for x in (INDEXES, DAMAGES))
    damage = damage if rng.random() < 0.4 else "whole"
    calendar, index = INDEXES[kind](rng, n)
    form = _FORMS[rng.integers(len(_FORMS))]

    def make(index):
        index = DAMAGES[damage](index, rng)
        values = np.sin(np.arange(len(index))) + 5 + rng.normal(size=len(index)) / 9
        parts = slice(None), slice(len(index) - 10), slice(len(index) - 10, None)
        return [_form(form, index[part], values[part]) for part in parts]

    whole, first, rest = _made(make, index)
    until = 3  # steps, where there is no date
    if not isinstance(index[-1], str) and damage != "missing":
        until = _made(lambda index: index[-1] + 3 * (index[-1] - index[-2]), index)
    model = KernelForecaster(horizon=3, lookback=4)
    if rng.random() < 0.1:
        model = TransformerForecaster(horizon=3, candidates=["classical"])
    model.set_params(missing=["raise", "interpolate"][rng.integers(2)])
    what = ["predict", "five", "interval", "until", "update", "backtest"][rng.integers(6)]
    name = f"{type(model).__name__}(missing={model.missing!r}).{what}"
    label = f"{name}: {form} of {kind} ({calendar}), {damage}"

    def call():
        model.fit(first if what == "update" else whole)
        if what == "five":
            return model.predict(5)
        if what == "interval":
            return model.predict_interval(coverage=0.8)
        if what == "until":
            return model.predict(until)
        if what == "update":
            return model.update(rest).predict()
        return model.backtest(whole, cv=2) if what == "backtest" else model.predict()

    return Call(label, call)


def draw_form(rng):
    """A call about a table, or about series; None where there is no such container."""
    try:
        return table_call(rng) if rng.random() < 0.6 else series_call(rng)
    except Impossible:
        return None
