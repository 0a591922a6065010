"""Features of series: separating both, and placing rows of features on their steps."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_consistent_length

from .._columns import UNORDERED, Columns, read_table, to_pandas
from ._checks import fill_features
from ._read import SERIES, TIME, as_array, dated, features_of, is_tidy, split_tidy
from ._time import as_index

# Levels of a category that have a column of their own, at most: the most frequent ones.
_MOST_LEVELS = 64


def separate(X, y):
    """Features, None if there are none, and series, of what is passed to `fit`.

    Also "X" or "y", what the series were passed as.
    """
    X, y = dated(X), dated(y)
    if y is None:
        if isinstance(X, pd.Index):
            raise ValueError("X is only an index, and y is None: pass the series as X or as y.")
        return *(split_tidy(X) if is_tidy(X) else (None, X)), "X"
    _refuse_swapped(X, y)
    if isinstance(X, pd.Index) and not isinstance(y, pd.Series | pd.DataFrame | dict):
        y = as_array(y, "y")
        check_consistent_length(X, y)
        # Forecasts then have an index too.
        y = (pd.Series if y.ndim == 1 else pd.DataFrame)(y, index=X)
    if is_tidy(y):
        return *_beside_tidy(X, y), "y"
    if is_tidy(X):
        check_consistent_length(X, y)
        _check_index(as_index(X.index), y)
        return *split_tidy(X, y), "y"
    if X is not None and not isinstance(y, dict) and not _shared(split_index(X)[1], y):
        try:
            check_consistent_length(X, y)
        except ValueError as error:
            later = "one for each of y, such as X.loc[y.index], and those of later steps to"
            raise ValueError(f"{error}: pass rows of X, {later} predict.") from error
    return X, y, "y"


def _refuse_swapped(X, y):
    """Raise if X in one dimension can be no feature of the series y."""
    if X is None or isinstance(X, pd.Index) or np.ndim(X) != 1:
        return
    shape = f"{type(X).__name__} of shape {np.shape(X)}"
    if _dates_of(X) is not None:
        raise ValueError(
            f"X is a {shape} with dates, which are no feature: pass them as an index, "
            "fit(pandas.DatetimeIndex(X), y)."
        )
    if getattr(y, "ndim", 1) == 2 and not is_tidy(y):
        kind = f"a frame with the columns {list(y)}" if hasattr(y, "columns") else "a table"
        raise ValueError(
            f"X is one-dimensional ({shape}) and y {kind}, as if the series came first: the "
            "order is fit(X, y), features before series. One feature of several series is "
            "passed as a frame, X.to_frame()."
        )


def _dates_of(X):
    """Dates in one dimension that are no index, as an index; None for others."""
    if isinstance(X, pd.Index) or np.ndim(X) != 1 or len(X) == 0:
        return None
    index = as_index(pd.Index(X))
    return index if isinstance(index, pd.DatetimeIndex | pd.PeriodIndex) else None


def _beside_tidy(X, y):
    """Features beside a tidy frame of series: a row for each of its rows, or for each time."""
    further, target = split_tidy(y, what="y")
    if further is not None:
        raise ValueError(
            f"y has the features {list(further)} beside X: pass them in X, or all in one frame."
        )
    if X is None or isinstance(X, pd.Index):
        return X, target
    X = to_pandas(X)
    if not isinstance(X, pd.Series | pd.DataFrame):
        raise ValueError(
            f"X is of type {type(X).__name__} beside a frame with the column {SERIES!r}: pass "
            "features as further columns of that frame."
        )
    if X.index.equals(y.index):
        keys = {name: y[name] for name in (SERIES, TIME)}
        X = features_of(pd.DataFrame(X).assign(**keys))
    return X, target


def split_index(X):
    """The table of features, which may have no columns, and the index of X, if any."""
    if isinstance(X, pd.Index):
        return pd.DataFrame(index=X), as_index(X)
    index = as_index(X.index) if isinstance(X, pd.Series | pd.DataFrame) else None
    X = to_pandas(X)
    return X.to_frame() if isinstance(X, pd.Series) else X, index


def index_of_rows(index, y):
    """Index of rows of features: their own, which has to be that of the series, or the series'.

    None where rows follow one another; `y` is from :func:`separate`.
    """
    if is_tidy(y) or _shared(index, y):
        return index
    _check_index(index, y)
    return y.index if index is None and isinstance(y, pd.Series | pd.DataFrame) else index


def _shared(index, y):
    """True if rows of features are about times, and series one below the other."""
    rows = getattr(y, "index", None)
    if index is None or not isinstance(rows, pd.MultiIndex):
        return False
    if isinstance(index, pd.DatetimeIndex | pd.PeriodIndex):
        return True
    # Numbers may count rows: as many as all series have together are meant to be theirs.
    of_rows = len(index) == len(rows) and rows.get_level_values(0).nunique() > 1
    return not isinstance(index, pd.MultiIndex) and not of_rows


def _check_index(index, y):
    """Rows of features and of a series with an index must be about the same steps."""
    other = as_index(y.index) if isinstance(y, pd.Series | pd.DataFrame) else None
    if index is None or other is None or index.equals(other):
        return
    both = zip(index, other, strict=False)
    mine, theirs = next((pair for pair in both if pair[0] != pair[1]), (index[0], other[0]))
    raise ValueError(
        f"X and y have different indexes ({mine} beside {theirs}): pass both the same, for "
        "example with X.loc[y.index]."
    )


def read_features(forecaster, table, *, reset, may_lack=()):
    """Features as numbers; columns are learned by a forecaster, or compared."""
    # A frame may have no columns, and may lack those of `may_lack`, which become missing
    # values.
    lacking = []
    if isinstance(table, pd.DataFrame) and table.shape[1] == 0:
        if forecaster.n_features_in_ > len(may_lack):
            raise ValueError(
                f"X has 0 features, but {type(forecaster).__name__} was fitted with "
                f"{forecaster.n_features_in_}: pass X with their columns."
            )
        return np.full((len(table), len(source_of(forecaster.columns_))), np.nan)
    if isinstance(table, pd.DataFrame) and set(may_lack) - set(table.columns):
        names, levels = forecaster.feature_names_in_, forecaster.columns_.categories
        lacking = [j for j, name in enumerate(names) if name not in table.columns]
        lacking = [j for j in lacking if names[j] in may_lack]
        # Any value that can be read is enough.
        table = table.assign(**{names[j]: levels[j][0] if levels[j] else 0 for j in lacking})
        table = table.reindex(columns=[name for name in names if name in table.columns])
    if reset:
        forecaster.columns_ = _most_frequent(Columns.learn(table), table)
    checks = {"dtype": np.float64, "ensure_all_finite": False}
    cells = read_table(forecaster, forecaster.columns_, table, reset=reset, **checks)
    if lacking:
        cells[:, lacking] = np.nan
    return _one_hot(cells, forecaster.columns_)


def _most_frequent(columns, table):
    """Columns with so many levels of each category at most; the others are unknown."""
    categories = list(columns.categories)
    for j, levels in enumerate(categories):
        if columns.kinds[j] == UNORDERED and len(levels) > _MOST_LEVELS:
            codes = np.asarray(columns.encode(table))[:, j].astype(np.int64)
            often = np.argsort(-np.bincount(codes), kind="stable")[:_MOST_LEVELS]
            categories[j] = tuple(levels[code] for code in np.sort(often))
    return replace(columns, categories=tuple(categories))


def _one_hot(cells, columns):
    """Numbers, and 0 or 1 for each level of unordered categories, of numbers and codes.

    NaN stays NaN. Ordered categories are the numbers of their levels.
    """
    if UNORDERED not in columns.kinds:
        return cells
    parts = [cells[:, :0]]
    for j, kind in enumerate(columns.kinds):
        part = cells[:, [j]]
        if kind == UNORDERED:
            flags = (part == np.arange(columns.n_levels[j])).astype(np.float64)
            part = np.where(np.isnan(part), np.nan, flags)
        parts.append(part)
    return np.hstack(parts)


def source_of(columns):
    """Column of X from which each column of features is made; (n_columns_of_features,)."""
    pairs = zip(columns.kinds, columns.n_levels, strict=True)
    widths = [n if kind == UNORDERED else 1 for kind, n in pairs]
    return np.repeat(np.arange(len(widths)), widths)


def read_rows(forecaster, X, table):
    """Features (n_rows, n_features) of the rows of X beside a fitted table, and their index.

    The index is None where rows follow one another.
    """
    if isinstance(X, dict) or np.ndim(X) == 0:
        raise ValueError(
            f"X={X!r} is not valid: pass None, the number of steps, a date, an index, or "
            "features."
        )
    X = dated(X)
    if table.form.kind == "tidy" and is_tidy(X):
        # Steps to be forecast, and values not known then, are not read.
        lacks = "y" not in getattr(forecaster, "feature_names_in_", ())
        X = features_of(X.drop(columns="y", errors="ignore") if lacks else X)
    if not forecaster.n_features_in_:
        dates = _dates_of(X)
        X = dates if dates is not None else X.index if isinstance(X, pd.Series) else X
    given, index = split_index(X)
    n_columns, name = (*np.shape(given), 1)[1], type(forecaster).__name__
    if n_columns and forecaster.n_features_in_ == 0:
        if index is None:
            raise ValueError(
                f"X={X!r} has no index, and {name} was fitted without features: pass the "
                "number of steps as an int, or an index."
            )
        raise ValueError(
            f"X has {n_columns} features, but {name} was fitted without: pass only their index."
        )
    if index is not None and table.time.kind == "position" and not isinstance(X, pd.Index):
        index = None  # what was fitted has no steps that these could be
    if np.shape(given)[0] == 0:
        raise ValueError("X has 0 rows: pass one for each step to forecast.")
    if n_columns == 0 and index is None:
        given = pd.DataFrame(index=range(len(given)))
    past_names = forecaster.past_names_
    return read_features(forecaster, given, reset=False, may_lack=past_names), index


class Rows(NamedTuple):
    """Rows of features, and the steps of series that they are about, several for each of them.

    `series`, `step` and `row`, which number the rows of `features`, are of shape (n_placed,).
    """

    series: np.ndarray
    step: np.ndarray
    row: np.ndarray
    features: np.ndarray

    def take(self, kept):
        """Some of the steps."""
        return self._replace(series=self.series[kept], step=self.step[kept], row=self.row[kept])


def place(features, index, table, begins):
    """Place rows of features on the steps of a table."""
    # An index has steps, for all series alike, or series and step, in two levels. Rows without
    # an index are consecutive, from a step `begins` of each series on.
    n_rows, n_series = len(features), len(table)
    if not isinstance(index, pd.MultiIndex):
        steps = np.arange(n_rows) if index is None else table.time.positions(index)
        begins = begins if index is None else np.zeros(n_series, dtype=np.int64)
        series = np.repeat(np.arange(n_series), n_rows)
        step = np.tile(steps, n_series) + begins[series]
        return Rows(series, step, np.tile(np.arange(n_rows), n_series), features)
    tidy = table.form.kind == "tidy"
    if not (table.form.long or table.form.kind == "dict") or index.nlevels != 2 + tidy:
        wanted = "the columns 'unique_id' and 'ds', or " if tidy else ""
        raise ValueError(
            f"X has an index of {index.nlevels} levels, but y is not long: pass X with "
            f"{wanted}only the index of the time."
        )
    of_row, steps = index.get_level_values(0), index.get_level_values(1)
    series = pd.Index(table.names, tupleize_cols=False).get_indexer(of_row)
    if (series < 0).any():
        unknown = sorted(map(str, set(of_row[series < 0])))
        raise ValueError(f"X has rows of unknown series, {unknown}: fit them first.")
    return Rows(series, _positions(table, series, steps), np.arange(n_rows), features)


def _positions(table, series, steps):
    """Positions of steps, each once in a series."""
    distinct = steps.unique()
    try:
        found = table.time.positions(distinct)[distinct.get_indexer(steps)]
    except ValueError:
        found = np.zeros(len(steps), dtype=np.int64)
    if len(np.unique(series * (found.max() + 1) + found)) < len(found):
        for i in np.unique(series):  # errors are about one series
            table.time.positions(steps[series == i])
    return found


def with_features(table, rows, least=None):
    """A table with the features of every row; all that have a value need some.

    With a `least` so many steps at the end of each series do: it begins where there are some.
    """
    place = rows.step - table.starts[rows.series]
    inside = (place >= 0) & (place < table.counts[rows.series])
    target = table.first[rows.series[inside]] + place[inside]
    features = np.full((len(table.value), rows.features.shape[1]), np.nan)
    features[target] = rows.features[rows.row[inside]]
    lacks = ~np.isnan(table.value)
    lacks[target] = False
    lost = np.flatnonzero(lacks)
    if len(lost) and least is not None:
        begin = table.first.copy()
        np.maximum.at(begin, table.series[lost], lost + 1)
        stop = table.first + table.counts
        begin = np.minimum(begin, np.maximum(stop - least, table.first))
        kept = np.arange(len(features)) >= begin[table.series]
        table, features = table.of_rows(np.flatnonzero(kept)), features[kept]
        lost = np.searchsorted(np.flatnonzero(kept), lost[kept[lost]])
    if len(lost):
        steps = table.step[lost[table.series[lost] == table.series[lost[0]]]]
        steps = table.time.name_steps(steps)
        whose = "y" if least is None else "history"
        raise ValueError(f"X has no rows for {steps}, where {whose} has values: add them.")
    return replace(table, features=features)


def with_later_features(table, rows, steps, horizon, missing):
    """A table with the features known beforehand of `rows`, also of later steps."""
    # `steps` (n_series,) are the last ones to forecast of each series: later rows reach there,
    # and as far into the horizon as there are some.
    known, ahead = table.known, np.maximum(steps + 1 - table.ends, 0)
    if not len(known):
        return table
    place = rows.step - table.starts[rows.series]
    within = rows.take((place >= 0) & (rows.step < table.ends[rows.series]))
    target = table.first[within.series] + within.step - table.starts[within.series]
    features = table.features.copy()
    features[target[:, None], known] = within.features[within.row[:, None], known]
    table = fill_features(replace(table, features=features), missing)
    if not ahead.any():
        return table
    later = rows.take((rows.step >= table.ends[rows.series]) & (ahead[rows.series] > 0))
    place = later.step - table.ends[later.series]
    n_later = np.zeros(len(table), dtype=np.int64)
    np.maximum.at(n_later, later.series, place + 1)
    _check_cover(table, later, place, n_later, ahead)
    n_later = np.minimum(n_later, -(-ahead.max() // horizon) * horizon)
    longer = table.resized(table.lengths + n_later)
    kept = place < n_later[later.series]
    target = longer.first[later.series[kept]] + table.lengths[later.series[kept]] + place[kept]
    further = np.flatnonzero(np.isnan(longer.value))
    part = longer.of_rows(further)
    ordered = np.empty(len(longer.value), dtype=np.int64)
    ordered[target] = later.row[kept]
    part = fill_features(
        replace(part, features=rows.features[ordered[further][:, None], known]), missing
    )
    features = longer.features
    features[further[:, None], known] = part.features
    return longer


def _check_cover(table, rows, place, n_later, ahead):
    """Raise if there are no rows for steps to forecast, or between the end and those."""
    lacking = np.flatnonzero((ahead > 0) & (n_later == 0))
    if len(lacking):
        raise ValueError(
            "X does not cover the horizon: the forecaster was fitted with features, so "
            "pass X with rows for the steps to forecast, from "
            f"{table.time.name_steps(table.ends[lacking[:1]])} on."
        )
    counts = np.bincount(rows.series, minlength=len(table))
    for i in np.flatnonzero(counts != n_later)[:1]:
        lost = np.setdiff1d(np.arange(n_later[i]), place[rows.series == i])
        raise ValueError(
            "X does not cover the horizon: there are no rows for "
            f"{table.time.name_steps(table.ends[i] + lost)}, which lie between the end of the "
            "series and the steps to forecast. Add them."
        )
