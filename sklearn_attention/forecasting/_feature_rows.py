"""Rows of X: covariates of series as numbers, and the steps of series that they are about.

Covariates, or features, are columns of X. A future covariate, such as a holiday, is known
before the step that it is about. A past covariate (`past_features`), such as the weather, is
known only up to the origin of a forecast. A row of X is about one step of one series, or about
the same step of all series. `FeatureRows` has the rows with their steps; `with_features` and
`add_future_covariates` copy them into the `features` of a `Table`. A category of X becomes one
feature for each of its levels, so that there may be more features than columns of X.

The names "unique_id" (series), "ds" (time) and "y" (value) mark columns of a tidy frame.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from .._columns import UNORDERED, Columns, read_table
from .._frames import to_pandas
from .._validation import refuse_other_arrays
from ._checks import as_array, fill_features, in_series
from ._forms import is_tidy, pandas_if_dated
from ._table import SERIES, TARGET, TIME
from ._time import as_index, refuse_repeated

# At most 64 levels of a category, the most frequent ones, have a feature of their own.
_MAX_LEVELS = 64


class FeatureRows(NamedTuple):
    """Rows of X with the steps of series that they are about.

    Attributes
    ----------
    series, step : ndarray of int of shape (n_pairs,)
        Series, by number, and step, by position on the index of time. A row that is about a
        step of all series has one pair for each of them.
    row : ndarray of int of shape (n_pairs,)
        Row of `features` of each pair.
    features : ndarray of shape (n_rows, n_features)
    columns : list
        Column of X that each feature is made from.
    """

    series: np.ndarray
    step: np.ndarray
    row: np.ndarray
    features: np.ndarray
    columns: list

    def take(self, pairs):
        """Select pairs by an index or a mask."""
        return self._replace(
            series=self.series[pairs], step=self.step[pairs], row=self.row[pairs]
        )

    def look_up(self, series, step):
        """Find the features of steps of series.

        Parameters
        ----------
        series, step : ndarray of int of shape (n_steps,)

        Returns
        -------
        features : ndarray of shape (n_steps, n_features)
            NaN where no row is about the step.
        has_row : ndarray of bool of shape (n_steps,)
        """
        features = np.full((len(step), self.features.shape[1]), np.nan)
        # Each pair of series and step becomes one whole number.
        base = 1 + max(self.step.max(initial=0), step.max(initial=0))
        keys, queries = self.series * base + self.step, series * base + step
        # The pair -1 stands for queries beyond all keys.
        order = np.argsort(keys)
        pair = np.append(order, -1)[np.searchsorted(keys, queries, sorter=order)]
        has_row = np.append(keys, -1)[pair] == queries
        features[has_row] = self.features[self.row[pair[has_row]]]
        return features, has_row


def split_off_index(X):
    """Split X into features and the index of the steps that its rows are about.

    Returns
    -------
    X : DataFrame or ndarray
        The columns that are features.
    index : Index or None
        Steps of the rows, or series and steps; None for an array, whose rows follow one
        another.
    labels : Index or None
        Row labels of X.
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
        has_series = SERIES in X
        index = pd.MultiIndex.from_frame(X[[SERIES, TIME]]) if has_series else as_index(X[TIME])
        return X.drop(columns=[SERIES, TIME], errors="ignore"), index, X.index
    labels = X.index if isinstance(X, pd.Series | pd.DataFrame) else None
    X = to_pandas(X)
    X = X.to_frame() if isinstance(X, pd.Series) else X
    return X, None if labels is None else as_index(labels), labels


def index_if_dates(X):
    """Convert a one-dimensional X of dates to an index; return other data unchanged.

    Frames of other libraries with a column of time are converted to pandas.
    """
    # Frames of polars have a shape, but their number of dimensions would need a copy.
    if len(np.shape(X)) == 1 and not isinstance(X, pd.Index | dict) and len(X):
        index = as_index(pd.Index(X))
        return index if isinstance(index, pd.DatetimeIndex | pd.PeriodIndex) else X
    return pandas_if_dated(X)


def split_features_and_series(X, y):
    """Split the arguments of `fit` into features and series.

    The series are X if y is None. Features are X beside y, or the other columns of a tidy frame
    with the series. Rows of a frame X with times name the series and steps of y.

    Returns
    -------
    X : object
        The features; None if there are none.
    y : object
        The series, of any form.
    what : {"X", "y"}
        The argument that had the series.
    """
    tidy_columns = {SERIES, TIME, TARGET}
    if X is None or y is None:
        y, what = (X, "X") if y is None else (y, "y")
        if isinstance(y, pd.Index):
            raise ValueError("X is only an index, and y is None: pass the series as X or as y.")
        y = pandas_if_dated(y)
        has_features = is_tidy(y) and not tidy_columns.issuperset(y)
        X = y.drop(columns=TARGET, errors="ignore") if has_features else None
        return X, y, what
    X, y = index_if_dates(X), pandas_if_dated(y)
    is_flat = len(np.shape(X)) == 1 and not isinstance(X, pd.Index)
    if is_flat and len(np.shape(y)) == 2 and not is_tidy(y):
        raise ValueError(
            f"X is one-dimensional, of shape {np.shape(X)}, beside y of shape {np.shape(y)}, "
            "as if the series came first: the order is fit(X, y), features before series. Pass "
            "one feature as a frame, X.to_frame()."
        )
    if is_tidy(y) and not tidy_columns.issuperset(y):
        raise ValueError(
            f"y has the features {[name for name in y if name not in tidy_columns]}, "
            "although features were passed as X: move them to X, or pass all columns in one "
            "frame as X, without y."
        )
    has_times = isinstance(X, pd.DataFrame) and TIME in X
    if has_times and not is_tidy(y) and (SERIES in X or len(np.shape(y)) == 1):
        # The columns of X name the series and the steps of the values in y.
        labels_of_y = y.index if isinstance(y, pd.Series | pd.DataFrame) else X.index
        _check_rows(X, y, labels_of_y, X.index)
        y = X.filter([SERIES, TIME]).assign(**{TARGET: np.asarray(y)})
        return None if tidy_columns.issuperset(X) else X, y, "y"
    if isinstance(X, pd.Index) and not isinstance(y, dict):
        # An array gets the index X, so that forecasts have an index too.
        if not isinstance(y, pd.Series | pd.DataFrame):
            y = as_array(y, "y")
            y = (pd.Series if y.ndim == 1 else pd.DataFrame)(y)
        if isinstance(y.index, pd.RangeIndex) and not is_tidy(y):
            _check_lengths(X, y)
            y = y.set_axis(X)
    return X, y, "y"


def _check_lengths(X, y):
    """Raise if features and series differ in their number of rows."""
    if len(X) != len(y):
        raise ValueError(
            f"X and y have inconsistent numbers of samples, {len(X)} and {len(y)}: pass one "
            "row of X for each row of y, and rows of later steps only to predict, or pass "
            "both with an index of the time."
        )


def _check_rows(X, y, labels_of_y, labels_of_X):
    """Raise if rows of features and of series differ in their number or in their labels."""
    _check_lengths(X, y)
    if not labels_of_X.equals(labels_of_y):
        raise ValueError(
            f"X and y have different indexes, such as {labels_of_X[:3].tolist()} and "
            f"{labels_of_y[:3].tolist()}, so that their rows cannot be matched: if they are in "
            "the same order, pass X.set_axis(y.index) as X, or else pass both with an index of "
            "the time."
        )


def index_of_features(X, index, labels, y):
    """Return the index of the steps that rows of features beside series are about.

    `X`, `index` and `labels` are as of :func:`split_off_index`. Rows with the labels of `y` are
    about the same steps as the rows of `y`. The index is None if rows follow one another.
    """
    labels_of_y = y.index if isinstance(y, pd.Series | pd.DataFrame) else None
    if isinstance(y, dict):
        if labels is None:
            _check_lengths(X, max(y.values(), key=len, default=()))
        return index
    if labels is None or labels_of_y is None or labels.equals(labels_of_y):
        _check_lengths(X, y)
        return index if labels_of_y is None else split_off_index(y)[1]
    is_long = is_tidy(y) or isinstance(labels_of_y, pd.MultiIndex)
    if is_long and len(X) == len(labels_of_y) and pd.api.types.is_integer_dtype(index.dtype):
        # Whole numbers may be steps that all series share, but they may also count rows.
        _check_rows(X, y, labels_of_y, labels)
    return index


def encode_features(forecaster, X, *, reset):
    """Convert the columns of X to an array of numbers, (n_rows, n_features).

    With `reset` the forecaster learns the columns and their levels; otherwise X is compared
    with those that it has learned, and past covariates may lack.
    """
    lacking, is_frame = [], isinstance(X, pd.DataFrame)
    if is_frame and not reset and forecaster.past_names_:
        X, lacking = _with_lacking_columns(forecaster, X)
    if is_frame and X.shape[1] == 0:
        if not reset:
            require_features(forecaster)
        return np.empty((len(X), 0))
    if reset:
        forecaster.columns_ = _limit_levels(Columns.learn(X), X)
    checks = {"dtype": np.float64, "ensure_all_finite": False}
    cells = read_table(forecaster, forecaster.columns_, X, reset=reset, **checks)
    features = [cells[:, :0]]
    for j, n_levels in enumerate(_feature_counts(forecaster.columns_)):
        column = np.full_like(cells[:, [j]], np.nan) if j in lacking else cells[:, [j]]
        if forecaster.columns_.kinds[j] == UNORDERED:
            # Codes become one indicator for each level; NaN stays NaN.
            column = np.where(np.isnan(column), np.nan, column == np.arange(n_levels))
        features.append(column)
    return np.hstack(features)


def _with_lacking_columns(forecaster, X):
    """Add past covariates that a frame lacks, with any value that can be read.

    Returns
    -------
    X : DataFrame
        With the columns in the order of the fit, then others.
    lacking : list of int
        Positions of the columns that were added.
    """
    names, columns = list(getattr(forecaster, "feature_names_in_", X)), forecaster.columns_
    lacking_names = set(forecaster.past_names_) - set(X)
    lacking = [j for j, name in enumerate(names) if name in lacking_names]
    X = X.assign(**{names[j]: (columns.categories[j] or [0])[0] for j in lacking})
    order = [*names, *X]
    return X[sorted(X, key=order.index)], lacking


def _limit_levels(columns, X):
    """Keep the most frequent levels of each unordered category; the others become unknown."""
    categories = list(columns.categories)
    for j, levels in enumerate(categories):
        if columns.kinds[j] == UNORDERED and len(levels) > _MAX_LEVELS:
            codes = np.asarray(columns.encode(X))[:, j].astype(np.int64)
            frequent = np.argsort(-np.bincount(codes), kind="stable")[:_MAX_LEVELS]
            categories[j] = tuple(levels[code] for code in np.sort(frequent))
    return replace(columns, categories=tuple(categories))


def _feature_counts(columns):
    """List how many features are made from each column of X."""
    pairs = zip(columns.kinds, columns.n_levels, strict=True)
    return [n_levels if kind == UNORDERED else 1 for kind, n_levels in pairs]


def column_of_each_feature(forecaster):
    """List the column of X, by name or else by position, that each feature is made from."""
    names = getattr(forecaster, "feature_names_in_", range(forecaster.n_features_in_))
    counts = _feature_counts(forecaster.columns_)
    return list(np.repeat(np.array([*names], dtype=object), counts))


def require_features(forecaster, features=slice(None), *, what="X", advice=""):
    """Raise if a forecaster was fitted with features, since `what` was passed without any.

    Parameters
    ----------
    forecaster : Forecaster
    features : slice or ndarray of int
        Only these features are required.
    what : str
        Name of the data in the message.
    advice : str
        What is to be passed besides the columns of X.
    """
    columns = np.array(column_of_each_feature(forecaster), dtype=object)
    names = list(dict.fromkeys(columns[features]))
    if names:
        raise ValueError(
            f"{what} has no features, but {type(forecaster).__name__} was fitted with {names}: "
            f"pass these as columns of X, with a row for each step{advice}."
        )


def read_feature_rows(forecaster, X, table):
    """Read the features of X that is passed to a fitted forecaster.

    `table` has the series that X is about, on the index of time of the fit.

    Returns
    -------
    features : ndarray of shape (n_rows, n_features)
    index, labels
        As of :func:`split_off_index`; the index is also None for series without an index,
        unless X is only an index.
    """
    X_as_passed, X = X, index_if_dates(X)
    if isinstance(X, pd.Series) and not forecaster.n_features_in_:
        X = X.index
    is_only_index, is_tidy_X = isinstance(X, pd.Index), is_tidy(X)
    X, index, labels = split_off_index(X)
    if (is_tidy_X or isinstance(index, pd.MultiIndex)) and TARGET in X:
        # Observations of the steps to forecast are ignored.
        is_feature = TARGET in getattr(forecaster, "feature_names_in_", ())
        X = X if is_feature else X.drop(columns=TARGET)
    if not forecaster.n_features_in_ and (index is None or len(X.columns)):
        raise ValueError(
            f"X={X_as_passed!r:.60} is not an index, and {type(forecaster).__name__} was "
            "fitted without features: pass only the index of X, or the number of steps as an "
            "int."
        )
    if len(X) == 0:
        raise ValueError("X has 0 rows: pass one for each step to forecast.")
    names_steps = is_only_index or isinstance(index, pd.MultiIndex)
    if table.time.kind == "position" and not names_steps:
        # The row labels of X are no steps, since the series of the fit had no index.
        index = None
    return encode_features(forecaster, X, reset=False), index, labels


def place_on_steps(features, index, table, first_steps, columns, *, may_precede=True):
    """Find the series and the steps of a table that rows of features are about.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
    index : Index or None
        Steps, which are about all series, or series and steps in two levels. Rows without an
        index are about consecutive steps of all series.
    table : Table
    first_steps : ndarray of int of shape (n_series,)
        Position of the step of the first row, in each series, if there is no index.
    columns : list
        Column of X of each feature.
    may_precede : bool, default=True
        Whether rows before the first step of the table are left out; otherwise an error is
        raised.

    Returns
    -------
    rows : FeatureRows
    """
    n_rows, names, what = len(features), table.names, "X"
    # Without names of series each row is about all series.
    series, row = np.divmod(np.arange(n_rows * len(names)), max(n_rows, 1))
    if index is None:
        return FeatureRows(series, row + first_steps[series], row, features, columns)
    if isinstance(index, pd.MultiIndex):
        if index.nlevels != 2 or not (table.form.long or table.form.kind == "dict"):
            raise ValueError(
                f"X has an index of {index.nlevels} levels, which are not the series and the "
                "time of series in long format: pass X with only the time as its index."
            )
        name_of_row, row, what = index.get_level_values(0), np.arange(n_rows), "X of {!r}"
        series = pd.Index(names, tupleize_cols=False).get_indexer(name_of_row)
        if (series < 0).any():
            unknown = sorted(map(str, set(name_of_row[series < 0])))
            raise ValueError(f"X has rows of unknown series, {unknown}: fit them first.")
    times = as_index(index.get_level_values(-1))
    table.time.check_kind(times, "X")
    step = table.time.find(times)[row]
    precedes = np.asarray(times < table.time.index[0])[row] & may_precede
    is_repeated = pd.DataFrame({"series": series, "time": times[row]}).duplicated()
    for i in series[(step < 0) & ~precedes | is_repeated][:1]:
        # One of these calls raises an error about the first series with a wrong row.
        times_of_series = times[row[(series == i) & ~precedes]]
        refuse_repeated(times_of_series, what.format(names[i]))
        table.time.positions(times_of_series, what.format(names[i]))
    rows = FeatureRows(series, step, row, features, columns)
    return rows.take(np.asarray(~precedes))


def with_features(table, rows, n_required=None):
    """Set the features of all rows of a table, or raise if X has no row for an observation.

    Parameters
    ----------
    table : Table
    rows : FeatureRows
    n_required : int, default=None
        If a number, each series is cut: it begins after its last observation without a row of
        X, but keeps at least its last `n_required` steps.
    """
    features, has_row = rows.look_up(table.series, table.step)
    lacks_row = ~has_row & ~np.isnan(table.value)
    if n_required is not None:
        first, lacking = table.first_rows.copy(), np.flatnonzero(lacks_row)
        np.maximum.at(first, table.series[lacking], lacking + 1)
        latest_first = table.first_rows + table.row_counts - n_required
        first = np.minimum(first, np.maximum(latest_first, table.first_rows))
        selected = np.arange(len(lacks_row)) >= first[table.series]
        table, features = table.take_rows(selected), features[selected]
        lacks_row = lacks_row[selected]
    _refuse_lacking_rows(table, lacks_row, "y" if n_required is None else "history")
    return replace(table, features=features)


def _refuse_lacking_rows(table, lacks_row, what):
    """Raise if X lacks rows; `lacks_row` is True for rows of the table without one in X."""
    for i in table.series[lacks_row][:1]:
        steps = table.time.name_steps(table.step[lacks_row & (table.series == i)])
        raise ValueError(
            f"X does not cover {what}: it has no rows for {steps}{in_series(table, i)}. Add "
            "them."
        )


def add_future_covariates(table, rows, last_steps, horizon, missing):
    """Set the future covariates of a table to those of X, and append the steps to forecast.

    Parameters
    ----------
    table : Table
    rows : FeatureRows
        Covariates of observed steps that `rows` lack stay as they are.
    last_steps : ndarray of int of shape (n_series,)
        Position of the last step to forecast in each series.
    horizon : int
        Steps up to the end of the last horizon are appended if X has rows of them.
    missing : str
        Treatment of missing values.
    """
    future_columns = table.future_columns
    if not len(future_columns):
        return table
    # 1. Observed steps get the covariates of X.
    cells, has_row = rows.look_up(table.series, table.step)
    features, observed_rows = table.features.copy(), np.flatnonzero(has_row)[:, None]
    features[observed_rows, future_columns] = cells[observed_rows, future_columns]
    table = fill_features(replace(table, features=features), missing, rows.columns)
    # 2. Series with steps to forecast are extended as far as X goes, but not beyond the end of
    # the last horizon.
    n_ahead = np.maximum(last_steps + 1 - table.ends, 0)
    if not n_ahead.any():
        return table
    n_in_X = np.zeros(len(table), dtype=np.int64)
    np.maximum.at(n_in_X, rows.series, rows.step + 1 - table.ends[rows.series])
    whole_horizons = -(-n_ahead.max() // horizon) * horizon
    n_appended = np.where(n_ahead > 0, np.clip(n_in_X, n_ahead, whole_horizons), 0)
    longer = table.resized(table.lengths + n_appended)
    # 3. The steps that were appended get the covariates of X.
    unobserved = np.flatnonzero(np.isnan(longer.value))
    ahead = longer.take_rows(unobserved)
    cells, has_row = rows.look_up(ahead.series, ahead.step)
    _refuse_lacking_rows(ahead, ~has_row, "the steps to forecast and those before")
    # Past covariates are unknown there, and keep their last values.
    n_columns = len(future_columns)
    ahead = replace(
        ahead, features=cells[:, future_columns], future_columns=np.arange(n_columns)
    )
    ahead = fill_features(ahead, missing, [rows.columns[j] for j in future_columns])
    longer.features[unobserved[:, None], future_columns] = ahead.features
    return longer
