"""Inputs of forecasters as tables: to learn from, to append, and to forecast."""

import numbers
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from .._columns import UNORDERED, Columns, read_table
from .._frames import to_pandas
from .._validation import check_positive, is_one_of, refuse_other_arrays
from ._checks import fill_features, fill_values, in_series, is_integer, resolve_past
from ._forms import SERIES, TARGET, TIME, as_array, dated, is_tidy, library_of, read_series
from ._season import season_of
from ._table import Table, positions
from ._time import FOLDS, as_index, check_steps, is_date, refuse_repeated, steps_until

# Levels of a category that have a column of their own, at most: the most frequent ones.
_MOST_LEVELS = 64


class FeatureRows(NamedTuple):
    """Rows of features, and the steps of series that they are about, several for each of them.

    `series`, `step` and `row`, which number the rows of `features`, are of shape (n_placed,);
    `columns` are the columns of X that features are of.
    """

    series: np.ndarray
    step: np.ndarray
    row: np.ndarray
    features: np.ndarray
    columns: list

    def take(self, kept):
        """Some of the steps."""
        return self._replace(series=self.series[kept], step=self.step[kept], row=self.row[kept])

    def at(self, series, step):
        """Features of some steps of series, NaN where there is no row; and where there is."""
        features = np.full((len(step), self.features.shape[1]), np.nan)
        span = 1 + max(self.step.max(initial=0), step.max(initial=0))
        own, asked = self.series * span + self.step, series * span + step
        order = np.argsort(own)
        place = np.append(order, -1)[np.searchsorted(own, asked, sorter=order)]
        there = np.append(own, -1)[place] == asked
        features[there] = self.features[self.row[place[there]]]
        return features, there


def keyed(X):
    """A table of features of :func:`_dated_rows`, what its rows are about, and their labels.

    Rows are about the entries of an index of steps, or of series and steps; None where they
    follow one another.
    """
    if isinstance(X, dict) or np.shape(X) == ():
        raise ValueError(
            f"X={X!r:.60} is not valid: pass features, or an index of the time. To forecast, "
            "None, a number of steps and a date are valid too."
        )
    refuse_other_arrays("X", X)
    if isinstance(X, pd.Index):
        return pd.DataFrame(index=range(len(X))), as_index(X), X
    if isinstance(X, pd.DataFrame) and TIME in X:
        of_series = SERIES in X
        index = pd.MultiIndex.from_frame(X[[SERIES, TIME]]) if of_series else as_index(X[TIME])
        return X.drop(columns=[SERIES, TIME], errors="ignore"), index, X.index
    labels = X.index if isinstance(X, pd.Series | pd.DataFrame) else None
    X = to_pandas(X)
    X = X.to_frame() if isinstance(X, pd.Series) else X
    return X, None if labels is None else as_index(labels), labels


def _dated_rows(X):
    """Dates in one dimension as an index, and frames with a column of times by these."""
    # Frames of polars have a shape, but no number of dimensions without a copy.
    if len(np.shape(X)) == 1 and not isinstance(X, pd.Index | dict) and len(X):
        index = as_index(pd.Index(X))
        return index if isinstance(index, pd.DatetimeIndex | pd.PeriodIndex) else X
    return dated(X)


def separate(X, y):
    """Features, None if there are none, and series, of what is passed to `fit`.

    Also "X" or "y", what the series were passed as.
    """
    own = {SERIES, TIME, TARGET}
    if X is None or y is None:
        y, what = (X, "X") if y is None else (y, "y")
        if isinstance(y, pd.Index):
            raise ValueError("X is only an index, and y is None: pass the series as X or as y.")
        y = dated(y)
        further = is_tidy(y) and not own.issuperset(y)
        return y.drop(columns=TARGET, errors="ignore") if further else None, y, what
    X, y = _dated_rows(X), dated(y)
    flat = len(np.shape(X)) == 1 and not isinstance(X, pd.Index)
    if flat and len(np.shape(y)) == 2 and not is_tidy(y):
        raise ValueError(
            f"X is one-dimensional, of shape {np.shape(X)}, beside y of shape {np.shape(y)}, "
            "as if the series came first: the order is fit(X, y), features before series. Pass "
            "one feature as a frame, X.to_frame()."
        )
    if is_tidy(y) and not own.issuperset(y):
        raise ValueError(
            f"y has the features {[name for name in y if name not in own]}, although features "
            "were passed as X: move them to X, or pass all columns in one frame as X, without "
            "y."
        )
    has_times = isinstance(X, pd.DataFrame) and TIME in X
    if has_times and not is_tidy(y) and (SERIES in X or len(np.shape(y)) == 1):
        rows = y.index if isinstance(y, pd.Series | pd.DataFrame) else X.index
        _check_rows(X, y, rows, X.index)
        y = X.filter([SERIES, TIME]).assign(**{TARGET: np.asarray(y)})
        return None if own.issuperset(X) else X, y, "y"
    if isinstance(X, pd.Index) and not isinstance(y, dict):
        # Forecasts then have an index too.
        if not isinstance(y, pd.Series | pd.DataFrame):
            y = as_array(y, "y")
            y = (pd.Series if y.ndim == 1 else pd.DataFrame)(y)
        if isinstance(y.index, pd.RangeIndex) and not is_tidy(y):
            _check_lengths(X, y)
            y = y.set_axis(X)
    return X, y, "y"


def _check_lengths(X, y):
    """Raise if there is not a row of features for each of the series."""
    if len(X) != len(y):
        raise ValueError(
            f"X and y have inconsistent numbers of samples, {len(X)} and {len(y)}: pass one "
            "row of X for each row of y, and rows of later steps only to predict, or pass "
            "both with an index of the time."
        )


def _check_rows(X, y, rows, labels):
    """Raise if rows of features and of series, of these labels, do not go together."""
    _check_lengths(X, y)
    if not labels.equals(rows):
        raise ValueError(
            f"X and y have different indexes, such as {labels[:3].tolist()} and "
            f"{rows[:3].tolist()}, so that their rows cannot be matched: if they are in the "
            "same order, pass X.set_axis(y.index) as X, or else pass both with an index of "
            "the time."
        )


def _about(X, index, labels, y):
    """What rows of features are about that stand beside series y: those rows, or an index."""
    # None where they follow one another.
    rows = y.index if isinstance(y, pd.Series | pd.DataFrame) else None
    if isinstance(y, dict):
        if labels is None:
            _check_lengths(X, max(y.values(), key=len, default=()))
        return index
    if labels is None or rows is None or labels.equals(rows):
        _check_lengths(X, y)
        return index if rows is None else keyed(y)[1]
    several = is_tidy(y) or isinstance(rows, pd.MultiIndex)
    if several and len(X) == len(rows) and pd.api.types.is_integer_dtype(index.dtype):
        _check_rows(X, y, rows, labels)  # numbers may be steps, of all series, or count rows
    return index


def _read_features(forecaster, X, *, reset):
    """Features as numbers; columns are learned by a forecaster, or compared."""
    lacking, is_frame = [], isinstance(X, pd.DataFrame)
    if is_frame and not reset and forecaster.past_names_:
        # What is known only up to now may lack; any value that can be read is enough.
        names, columns = list(getattr(forecaster, "feature_names_in_", X)), forecaster.columns_
        lacking = [
            j for j, name in enumerate(names) if name in set(forecaster.past_names_) - set(X)
        ]
        X = X.assign(**{names[j]: (columns.categories[j] or [0])[0] for j in lacking})
        X = X[sorted(X, key=lambda name: [*names, name].index(name))]
    if is_frame and X.shape[1] == 0:
        if not reset:
            refuse_no_features(forecaster)
        return np.empty((len(X), 0))
    if reset:
        forecaster.columns_ = _most_frequent(Columns.learn(X), X)
    checks = {"dtype": np.float64, "ensure_all_finite": False}
    cells = read_table(forecaster, forecaster.columns_, X, reset=reset, **checks)
    # A column of 0 and 1 for each level of unordered categories; NaN stays NaN.
    parts = [cells[:, :0]]
    for j, n in enumerate(_widths(forecaster.columns_)):
        part = np.full_like(cells[:, [j]], np.nan) if j in lacking else cells[:, [j]]
        if forecaster.columns_.kinds[j] == UNORDERED:
            part = np.where(np.isnan(part), np.nan, part == np.arange(n))
        parts.append(part)
    return np.hstack(parts)


def _most_frequent(columns, table):
    """Columns with so many levels of each category at most; the others are unknown."""
    categories = list(columns.categories)
    for j, levels in enumerate(categories):
        if columns.kinds[j] == UNORDERED and len(levels) > _MOST_LEVELS:
            codes = np.asarray(columns.encode(table))[:, j].astype(np.int64)
            often = np.argsort(-np.bincount(codes), kind="stable")[:_MOST_LEVELS]
            categories[j] = tuple(levels[code] for code in np.sort(often))
    return replace(columns, categories=tuple(categories))


def _widths(columns):
    """Columns of features that are made from each column of X, a list."""
    pairs = zip(columns.kinds, columns.n_levels, strict=True)
    return [n if kind == UNORDERED else 1 for kind, n in pairs]


def columns_of(forecaster):
    """Column of X, its name or its position, that each column of features is made from."""
    names = getattr(forecaster, "feature_names_in_", range(forecaster.n_features_in_))
    return list(np.repeat(np.array([*names], dtype=object), _widths(forecaster.columns_)))


def refuse_no_features(forecaster, columns=slice(None), *, what="X", further=""):
    """Raise if `what` was passed without features to a forecaster that has some in `columns`.

    `further` is what the remedy is to pass besides.
    """
    names = list(dict.fromkeys(np.array(columns_of(forecaster), dtype=object)[columns]))
    if names:
        raise ValueError(
            f"{what} has no features, but {type(forecaster).__name__} was fitted with {names}: "
            f"pass these as columns of X, with a row for each step{further}."
        )


def _read_rows(forecaster, X, table):
    """Features of the rows of X beside a fitted table, what these are about, their labels."""
    given, X = X, _dated_rows(X)
    if isinstance(X, pd.Series) and not forecaster.n_features_in_:
        X = X.index
    only_index, has_values = isinstance(X, pd.Index), is_tidy(X)
    X, index, labels = keyed(X)
    if (has_values or isinstance(index, pd.MultiIndex)) and TARGET in X:
        # Observations beside steps to be forecast are not read.
        known = TARGET in getattr(forecaster, "feature_names_in_", ())
        X = X if known else X.drop(columns=TARGET)
    if not forecaster.n_features_in_ and (index is None or len(X.columns)):
        raise ValueError(
            f"X={given!r:.60} is not an index, and {type(forecaster).__name__} was fitted "
            "without features: pass only the index of X, or the number of steps as an int."
        )
    if len(X) == 0:
        raise ValueError("X has 0 rows: pass one for each step to forecast.")
    if table.time.kind == "position" and not (only_index or isinstance(index, pd.MultiIndex)):
        index = None  # what was fitted has no steps that these could be
    return _read_features(forecaster, X, reset=False), index, labels


def place(features, index, table, begins, columns, *, may_precede=True):
    """Place rows of features on the steps of a table."""
    # An index has steps, for all series alike, or series and step, in two levels. Rows without
    # an index are consecutive, from a step `begins` of each series on. Rows before the first
    # step are left out if they may precede it.
    n_rows, names, owner = len(features), table.names, "X"
    series, row = np.divmod(np.arange(n_rows * len(names)), max(n_rows, 1))
    if index is None:
        return FeatureRows(series, row + begins[series], row, features, columns)
    if isinstance(index, pd.MultiIndex):
        if index.nlevels != 2 or not (table.form.long or table.form.kind == "dict"):
            raise ValueError(
                f"X has an index of {index.nlevels} levels, which are not the series and the "
                "time of series in long format: pass X with only the time as its index."
            )
        own, row, owner = index.get_level_values(0), np.arange(n_rows), "X of {!r}"
        series = pd.Index(names, tupleize_cols=False).get_indexer(own)
        if (series < 0).any():
            unknown = sorted(map(str, set(own[series < 0])))
            raise ValueError(f"X has rows of unknown series, {unknown}: fit them first.")
    times = as_index(index.get_level_values(-1))
    table.time.check_kind(times, "X")
    step = table.time.find(times)[row]
    early = np.asarray(times < table.time.index[0])[row] & may_precede
    twice = pd.DataFrame({"series": series, "time": times[row]}).duplicated()
    for i in series[(step < 0) & ~early | twice][:1]:  # errors are about one series
        of_one = times[row[(series == i) & ~early]]
        refuse_repeated(of_one, owner.format(names[i]))
        table.time.positions(of_one, owner.format(names[i]))
    series, step, row = (part[~early] for part in (series, step, row))
    return FeatureRows(series, step, row, features, columns)


def with_features(table, rows, least=None):
    """A table with the features of every row; all that have a value need some.

    With a `least` so many steps at the end of each series do: it begins where there are some.
    """
    features, there = rows.at(table.series, table.step)
    lacks = ~there & ~np.isnan(table.value)
    if least is not None:
        begin, lost = table.first.copy(), np.flatnonzero(lacks)
        np.maximum.at(begin, table.series[lost], lost + 1)
        latest = np.maximum(table.first + table.counts - least, table.first)
        kept = np.arange(len(lacks)) >= np.minimum(begin, latest)[table.series]
        table, features, lacks = table.of_rows(kept), features[kept], lacks[kept]
    _refuse_lack(table, lacks, "y" if least is None else "history")
    return replace(table, features=features)


def _refuse_lack(table, lacks, what):
    """Raise if X has no rows for some of those of a table."""
    for i in table.series[lacks][:1]:
        steps = table.time.name_steps(table.step[lacks & (table.series == i)])
        raise ValueError(
            f"X does not cover {what}: it has no rows for {steps}{in_series(table, i)}. Add "
            "them."
        )


def with_later_features(table, rows, steps, horizon, missing):
    """A table with the features known beforehand of `rows`, also of later steps."""
    # `steps` (n_series,) are the last ones to forecast of each series: later rows reach there,
    # and as far into the horizon as there are some.
    known, ahead = table.known, np.maximum(steps + 1 - table.ends, 0)
    if not len(known):
        return table
    cells, there = rows.at(table.series, table.step)
    features, there = table.features.copy(), np.flatnonzero(there)
    features[there[:, None], known] = cells[there[:, None], known]
    table = fill_features(replace(table, features=features), missing, rows.columns)
    if not ahead.any():
        return table
    n_later = np.zeros(len(table), dtype=np.int64)
    np.maximum.at(n_later, rows.series, rows.step + 1 - table.ends[rows.series])
    whole = -(-ahead.max() // horizon) * horizon
    longer = table.resized(
        table.lengths + np.where(ahead > 0, np.clip(n_later, ahead, whole), 0)
    )
    further = np.flatnonzero(np.isnan(longer.value))
    part = longer.of_rows(further)
    cells, there = rows.at(part.series, part.step)
    _refuse_lack(part, ~there, "the steps to forecast and those before")
    part = replace(part, features=cells[:, known], known=np.arange(len(known)))
    part = fill_features(part, missing, [rows.columns[j] for j in known])
    longer.features[further[:, None], known] = part.features
    return longer


def read_given(forecaster, X, y):
    """Series and rows of features, as for `fit`, with gaps; and "X" or "y", their source."""
    # Rows are None without features. Names and number of features are set on the forecaster.
    library = library_of(X if y is None else y)
    X, y, what = separate(X, y)
    rows = index = None
    if X is not None:
        X, index, labels = keyed(X)
        index = _about(X, index, labels, y)
    table = read_series(y, index=index, missing=forecaster.missing, what=what)
    forecaster.n_features_in_, forecaster.columns_ = 0, Columns.numbers(0)
    vars(forecaster).pop("feature_names_in_", None)
    if X is not None:
        cells = _read_features(forecaster, X, reset=True)
        begins = np.zeros(len(table), dtype=np.int64)
        rows = place(cells, index, table, begins, columns_of(forecaster))
    return replace(table, form=replace(table.form, library=library)), rows, what


def without_gaps(forecaster, table, rows, what):
    """A table to learn from, of what :func:`read_given` returns."""
    n_features, names = forecaster.n_features_in_, getattr(forecaster, "feature_names_in_", ())
    past = forecaster.past_names_ = resolve_past(forecaster.past_features, n_features, names)
    known = [j for j, column in enumerate(columns_of(forecaster)) if column not in past]
    table = replace(table, known=np.array(known, dtype=np.int64))
    table = table if rows is None else with_features(table, rows)
    options = {"missing": forecaster.missing, "season_length": 1, "what": what}
    if is_one_of(forecaster.missing, "interpolate", "seasonal") and np.isnan(table.value).any():
        # The season is filled in, or a line in the place of a season is warned of.
        line = fill_values(table, **options | {"missing": "interpolate"})
        options["season_length"] = season_of(line, forecaster.season_length)
    table = fill_values(table, **options)
    return fill_features(table, forecaster.missing, columns_of(forecaster))


def read_later(forecaster, X, y, *, may_add=False):
    """Observations after those of `fit`, on their index of time, as for `update`."""
    # Of all known series, without rows where there are no new ones, then of others, if
    # `may_add`, in which case missing values stay missing; the rows of features, None if there
    # are none; and "X" or "y", which had the series.
    known, missing = forecaster.observed_, forecaster._kept["missing"]
    if y is not None and (X is None or isinstance(X, numbers.Integral)):
        raise ValueError(f"X={X!r} is not valid: pass features or an index beside y.")
    X, y, what = separate(X, y)
    index = None
    if X is not None:
        features, index, labels = _read_rows(forecaster, X, known)
        if known.time.kind != "position":
            index = _about(features, index, labels, y)
    else:
        refuse_no_features(forecaster, further=", and the series as y")
    options = {"missing": missing, "what": what}
    later = read_series(y, index=index, onto=known, **options)
    early = (later.counts > 0)[: len(known)] & (later.starts[: len(known)] < known.starts)
    for i in np.flatnonzero(early)[:1]:
        begins, known_from = (
            known.time.name_steps([step]) for step in (later.starts[i], known.starts[i])
        )
        raise ValueError(
            f"{what}{in_series(known, i)} begins at {begins}, but the series that the "
            f"forecaster was fitted on begins at {known_from}: pass observations from that "
            f"time on. {FOLDS}"
        )
    if not may_add:
        if len(later) > len(known):
            raise ValueError(
                f"{what} has the series {later.names[len(known) :]}, but the forecaster was "
                f"fitted on {known.names}: pass those."
            )
        later = fill_values(later, season_length=forecaster.season_length_, **options)
    if X is None:
        return later, None, what
    begins, columns = known.begins(len(later)), columns_of(forecaster)
    return later, place(features, index, later, begins, columns), what


def following(known, later, missing):
    """Observations that follow those known of their series, with missing ones in gaps."""
    # A gap is refused if `missing` is "raise", and an overlap always.
    ends = np.append(known.ends, later.starts[len(known) :])
    wrong = later.starts != ends if missing == "raise" else later.starts < ends
    for i in np.flatnonzero(wrong & (later.counts > 0))[:1]:
        found, expected = (known.time.name_steps([p]) for p in (later.starts[i], ends[i]))
        raise ValueError(
            f"y of series {later.names[i]!r} begins at {found}, but the next step is "
            f"{expected}: pass the observations that follow, without gap or overlap."
        )
    gap = np.flatnonzero((later.starts > ends) & (later.counts > 0))
    parts = (
        (later.series, gap),
        (later.step, ends[gap]),
        (later.value, np.full(len(gap), np.nan)),
    )
    return Table.placed(later.time, later.names, *map(np.concatenate, parts), later.form)


def read_request(forecaster, X, history):
    """The table to forecast from, and that of the rows to forecast, in the order of X."""
    # Both have steps on one index of time, and the first has the features known beforehand of
    # as many whole horizons as are to be forecast, as far as X has them. X and `history` are as
    # for `predict`.
    fresh, table = history is not None, forecaster.observed_
    if fresh:
        table = _read_history(forecaster, history)
    unknown = fresh and forecaster.n_features_in_ > 0
    if X is None or is_date(X) or is_integer(X):
        if unknown:
            raise ValueError(
                "history was passed without features, but the forecaster was fitted with "
                "some: pass X with an index of the time, and with rows for the last "
                f"{forecaster.lookback_} steps of history and for the steps to forecast."
            )
        refuse_no_features(forecaster, table.known, what=f"X={X!r:.60}")
        requested = _following(X, table, forecaster.horizon_)
        return with_known(forecaster, table, None, requested), requested
    features, index, labels = _read_rows(forecaster, X, table)
    columns = columns_of(forecaster)
    wanted = rows = place(
        features, index, table, table.next_steps, columns, may_precede=unknown
    )
    if unknown:
        if index is None:
            raise ValueError(
                "history was passed with features that cannot be matched to it by time: pass "
                "both history and X with an index of the time, and rows of X for the steps of "
                "history too."
            )
        table = with_features(table, rows, forecaster.lookback_)
        table = fill_features(table, forecaster._kept["missing"], columns)
        # Rows up to the end of the history are only read for their features.
        wanted = rows.take(rows.step >= table.next_steps[rows.series])
    if len(wanted.step):
        requested = _of_rows(table, wanted, index, labels)
    else:
        requested = _following(None, table, forecaster.horizon_)
    return with_known(forecaster, table, rows, requested), requested


def _read_history(forecaster, history):
    """A table of fresh series, which must be long enough."""
    known, least = forecaster.observed_, forecaster._least_history
    options = {"missing": forecaster._kept["missing"], "what": "history"}
    table = read_series(history, like=known.time, rows_are_series=True, **options)
    table = fill_values(table, season_length=forecaster.season_length_, **options)
    for i in np.flatnonzero(table.lengths < least)[:1]:
        raise ValueError(
            f"history has {table.lengths[i]} steps of {table.names[i]!r}, but "
            f"lookback_={least}: pass at least so many steps."
        )
    # Training series are known by name; a single one is whatever its name.
    names = known.learned_names
    place_of = {} if table.form.kind == "windows" else {name: i for i, name in enumerate(names)}
    identity = [0 if len(names) == 1 else place_of.get(name, -1) for name in table.names]
    return replace(table, identity=np.array(identity), known=forecaster.known_columns_)


def request(table, series, step, index=None, rows=None):
    """A table of steps of series, to be forecast."""
    n_rows = len(step)
    return replace(
        table, series=series, step=step, value=np.full(n_rows, np.nan),
        features=np.empty((n_rows, 0)), form=replace(table.form, index=index, rows=rows),
    )  # fmt: skip


def _following(X, table, horizon):
    """Steps of each series from its end on: a number of them, or those up to a date."""
    begins = table.next_steps
    if is_date(X):
        counts = np.maximum(steps_until(table.time, X) - begins, 0)
    else:
        n_steps = horizon if X is None else check_positive("X", X, integer=True)
        counts = np.full(len(table), n_steps)
    if not counts.any():
        last = table.time.name_steps([min(begins) - 1])
        raise ValueError(
            f"X={X!r} is not after the end of the series, {last}: pass a later date, or an "
            "index of the steps."
        )
    check_steps(f"X={X!r}", len(table), counts.max())
    return request(table, *positions(begins, counts))


def _of_rows(table, rows, index, labels):
    """Steps that rows of X are about, with the index of the forecasts."""
    form, of_series = table.form, isinstance(index, pd.MultiIndex)
    # Labels that are no steps are those of a frame with columns of these.
    of_frame = form.kind == "tidy" and labels is not None
    of_frame = of_frame and (of_series or form.single) and not as_index(labels).equals(index)
    if of_series and form.kind != "dict":
        labels = labels[rows.row] if of_frame else None
        return request(table, rows.series, rows.step, index[rows.row], labels)
    rows = rows.take(np.argsort(rows.series, kind="stable"))
    own = index[rows.row[rows.series == 0]] if index is not None and form.aligned else None
    return request(table, rows.series, rows.step, own, labels[rows.row] if of_frame else None)


def with_known(forecaster, table, rows, requested):
    """A table with the features known beforehand, as rows of X have them, of later steps."""
    last = table.ends - 1
    np.maximum.at(last, requested.series, requested.step)
    check_steps("X, up to its last step,", len(table), 1 + int((last - table.ends).max()))
    if not table.n_features:
        return table
    if rows is None:
        nothing, columns = np.empty(0, dtype=np.int64), columns_of(forecaster)
        rows = FeatureRows(nothing, nothing, nothing, np.empty((0, table.n_features)), columns)
    horizon = forecaster.horizon_
    return with_later_features(table, rows, last, horizon, forecaster._kept["missing"])
