"""Columns of numbers and categories, and the base class of estimators that read such rows.

`Columns.learn` finds which columns of a table are categories, and their levels.
`Columns.encode` makes a table of numbers, in which the code of a level stands for a categorical
cell. Tables are arrays, Dask collections, and frames that narwhals knows, such as those of
pandas and polars.
"""

import dataclasses
import functools
import itertools
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ._base import AttentionEstimator
from ._frames import checked_frame, concatenate_labels, is_numeric_array, row_labels, with_codes
from ._levels import (
    add_counts,
    count_levels,
    encode_levels,
    is_category,
    new_levels,
    nonmissing,
    sort_levels,
    warn_of_odd_levels,
)
from ._partitions import (
    empty_table,
    is_partitioned,
    map_partitions,
    read_partitions,
    reduce_columns,
    to_memory,
)
from ._validation import as_numbers, basic_types, check_bandwidth, check_in_interval, is_one_of

NUMERIC, UNORDERED, ORDERED = "numeric", "unordered", "ordered"
_CATEGORICAL = UNORDERED, ORDERED
# Kind of a column of numbers in which all rows are equal.
CONSTANT = "constant"
# Types that rows of numbers may have; other types are converted to the first one.
_DTYPES = (np.float64, np.float32)


@dataclasses.dataclass(frozen=True)
class Columns:
    """Kind of each column of X: numeric, or an unordered or ordered category.

    Estimators learn it in `fit`. Pass it to functions such as
    :func:`~sklearn_attention.bandwidth.select_bandwidth`, which take arrays.

    Parameters
    ----------
    kinds : tuple of {"numeric", "unordered", "ordered", "constant"}
        One for each column; constants are numbers that do not vary, which are not compared.
    categories : tuple of (tuple or None)
        The levels of each category, None for numbers. A level's code is its position; the
        level None stands for missing cells.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_attention import Columns
    >>> X = pd.DataFrame({"length": [1.5, 2.5, 0.5], "color": ["red", "blue", "red"]})
    >>> columns = Columns.learn(X)
    >>> columns
    Columns(kinds=('numeric', 'unordered'), categories=(None, ('blue', 'red')))
    >>> columns.encode(X).to_numpy()
    array([[1.5, 1. ],
           [2.5, 0. ],
           [0.5, 1. ]])
    """

    kinds: tuple
    categories: tuple

    def __post_init__(self):
        known = {NUMERIC, UNORDERED, ORDERED, CONSTANT}
        if len(self.kinds) != len(self.categories) or not known.issuperset(self.kinds):
            raise ValueError(
                f"kinds={self.kinds!r} does not match the {len(self.categories)} entries of "
                "categories: for each column pass 'numeric', 'unordered', 'ordered' or "
                "'constant' in kinds, and its levels, or None for numbers, in categories."
            )

    @classmethod
    def numbers(cls, n_columns):
        """Return the Columns of a table with `n_columns` columns of numbers."""
        return cls((NUMERIC,) * n_columns, (None,) * n_columns)

    @classmethod
    def learn(
        cls,
        X,
        categorical_features="from_dtype",
        *,
        ordered: bool = True,
        refuse_texts: bool = False,
    ) -> Self:
        """Learn the kinds of the columns of a table, and the levels of its categories.

        Columns of a categorical dtype and of strings in a data frame are categories. If the
        categories of a dtype are ordered, the column is an ordered category with all levels of
        the dtype, in their order. Other categories, also an Enum of polars, are unordered and
        have the levels that occur; missing cells are a level. The levels of Dask collections
        are found by a pass over the partitions.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            As the user passed it; checked elsewhere.
        categorical_features : "from_dtype" or list of (str, int or bool), default="from_dtype"
            Which columns of numbers are unordered categories too: their names or positions,
            or one bool for each column.
        ordered : bool, default=True
            Whether ordered categories are a kind of their own; otherwise they are unordered.
        refuse_texts : bool, default=False
            Whether it is an error if most rows have a text of their own, and some texts have
            several words.

        Returns
        -------
        columns : Columns

        Raises
        ------
        ValueError
            If `categorical_features` names columns that `X` does not have, a column has dates
            or times, texts are refused, or an ordered category has missing cells, which have no
            place in the order, or another order in each partition.

        Warns
        -----
        UserWarning
            If most rows have a text of their own in a column of texts, or nine of ten levels of
            a column of texts are numbers.
        """
        if is_one_of(categorical_features, "from_dtype") and is_numeric_array(X):
            return cls.numbers(X.shape[1])
        # Find the kinds of the columns by their types and by the parameter.
        table = checked_frame(X)
        names, kinds = table.columns, _kinds_by_type(X, table)
        named = _positions_of_names(categorical_features, names)
        for j, kind in enumerate(kinds):
            if (kind == NUMERIC and j in named) or (kind == ORDERED and not ordered):
                kinds[j] = UNORDERED
        # Count the levels of each category, and sort them.
        categories = [None] * len(kinds)
        for name, counts in _level_counts(X, table, kinds).items():
            j = names.index(name)
            is_text = is_partitioned(X) and j not in named and table.schema[name] == nw.String
            # Dask declares objects to be texts, but their cells may be numbers.
            if is_text and not basic_types(nonmissing(counts)) <= {str}:
                kinds[j] = NUMERIC
                continue
            categories[j] = sort_levels(name, counts, kinds[j] == ORDERED)
            if j not in named and table.schema[name] in (nw.String, nw.Object):
                warn_of_odd_levels(name, counts.total(), categories[j], refuse_texts)
        return cls(tuple(kinds), tuple(categories))

    def __add__(self, columns):
        """Return the Columns of two tables side by side."""
        return Columns((*self.kinds, *columns.kinds), (*self.categories, *columns.categories))

    @property
    def is_numeric(self):
        """True for columns of numbers: ndarray of bool."""
        return np.array([kind == NUMERIC for kind in self.kinds], dtype=bool)

    @property
    def numeric(self):
        """Positions of the columns of numbers."""
        return np.flatnonzero(self.is_numeric).tolist()

    @property
    def categorical(self):
        """Positions of the categories."""
        return np.flatnonzero(np.isin(self.kinds, _CATEGORICAL)).tolist()

    @property
    def n_levels(self):
        """Number of levels of each category, 0 for numbers."""
        return [len(levels or ()) for levels in self.categories]

    @property
    def highest_lam(self):
        """Lambda at which all levels of each category count equally; inf for numbers."""
        return np.array([*map(highest_lam, self.kinds, self.n_levels)])

    def without(self, constant):
        """Return Columns in which those of a mask (n_columns,) have the kind "constant"."""
        kinds = np.where(constant, CONSTANT, self.kinds).tolist()
        return dataclasses.replace(self, kinds=tuple(kinds))

    def divisors(self, bandwidth):
        """Return the divisor of each column: its bandwidth for numbers, 1 for categories."""
        return np.where(self.is_numeric, bandwidth, 1.0)

    def check_bandwidth(self, bandwidth, default) -> np.ndarray:
        """Validate a bandwidth, which has lambdas for categories.

        Parameters
        ----------
        bandwidth : float or array-like of shape (n_columns,)
            As the user passed it: one number for all columns of numbers, or one for each
            column, with the lambdas of categories.
        default : ndarray of shape (n_columns,)
            Its entries for categories are their lambdas if `bandwidth` is one number.

        Returns
        -------
        bandwidth : ndarray of shape (n_columns,)
            Bandwidths of numbers and lambdas of categories.
        """
        lambdas = np.array(default, dtype=np.float64)
        entries = np.array(bandwidth, dtype=object)
        if entries.shape == lambdas.shape:
            for j in self.categorical:
                name, highest = f"bandwidth[{j}]", float(self.highest_lam[j])
                lambdas[j] = check_in_interval(name, entries[j], 0, highest)
                entries[j] = 1.0  # a lambda may be 0, which no bandwidth may be
        widths = check_bandwidth(entries.tolist(), len(self.kinds))
        return np.where(np.isin(self.kinds, _CATEGORICAL), lambdas, widths)

    def encode(self, X) -> Any:
        """Encode a table as numbers; the code of its level stands for each categorical cell.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            The table as the user passed it. If levels are texts, it is a data frame, an array
            of objects, or a list of lists.

        Returns
        -------
        X : data frame or ndarray
            A table of numbers: a frame of the same library with the same names, an array, or
            `X` itself if all its columns are numbers. Cells of unordered categories that match
            no level are -1, and missing cells -2 if no missing cell was learned. A cell of
            another type matches the level that has the same text in a file: 10 and 10.0 match
            "10". Objects become numbers, and NaN if they are missing (None, pandas.NA).
            Partitions of Dask are encoded, and raise errors, when they are computed.

        Raises
        ------
        ValueError
            If `X` has other columns; if a column of numbers has texts, dates or times; if an
            ordered category has an unknown level; or if no cell of a column matches a level,
            and cells and levels have different types.
        TypeError
            If objects cannot be converted to numbers.
        """
        if not self.categorical and is_numeric_array(X):
            return X
        table, kinds = checked_frame(X), self.kinds
        names = table.columns
        if len(names) != len(kinds) and self.categorical:
            raise ValueError(
                f"X of type {type(X).__name__} and shape {getattr(X, 'shape', None)} does not "
                f"have the {len(kinds)} columns of the fit, some of them categorical: pass a "
                "table with the same columns."
            )
        if is_partitioned(X):
            empty = empty_table(X)
            encoded = self.encode(empty)
            # If the columns are numbers already, no task is made for each partition.
            return X if encoded is empty else map_partitions(self.encode, X, encoded)
        if len(names) != len(kinds):
            return X if hasattr(X, "columns") else with_codes(X, table, {})
        actual_kinds = _kinds_by_type(X, table)
        for name, kind, actual in zip(names, kinds, actual_kinds, strict=True):
            if kind == NUMERIC != actual and not table.get_column(name).is_null().all():
                raise ValueError(
                    f"X has categories in column {name!r}, which is numeric in the fit or in "
                    "other partitions: convert it to numbers (pandas.to_numeric, with "
                    "errors='coerce'), or fit it as categories."
                )
        codes = {}
        for j in self.categorical:
            column, ordered = table.get_column(names[j]), kinds[j] == ORDERED
            codes[names[j]] = encode_levels(column, self.categories[j], ordered)
        return with_codes(X, table, codes)

    def decode(self, X, *, as_frame: bool = False) -> Any:
        """Decode numbers and codes to a table, as the inverse of :meth:`encode`.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_columns)
            Numbers and codes.
        as_frame : bool, default=False
            Whether to return a data frame, with categories of a categorical dtype.

        Returns
        -------
        X : ndarray or pandas.DataFrame of shape (n_samples, n_columns)
            An array of objects if a level is not a number.
        """
        present = {j: nonmissing(self.categories[j]) for j in self.categorical}
        decoded = X.astype(object)
        for j in present:
            level_of_code = np.array(self.categories[j], dtype=object)
            decoded[:, j] = level_of_code[X[:, j].astype(np.intp)]
        if as_frame:
            import pandas as pd

            dtypes = dict.fromkeys(range(len(self.kinds)), X.dtype)
            for j, levels in present.items():
                dtypes[j] = pd.CategoricalDtype(levels, self.kinds[j] == ORDERED)
            return pd.DataFrame(decoded, dtype=object).astype(dtypes)
        types = basic_types(itertools.chain(*present.values()))
        all_numbers = {str, object}.isdisjoint(types)
        return decoded.astype(np.float64) if all_numbers else decoded

    def extend(self, X) -> Self:
        """Return Columns to which the new levels of further rows are added.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            Further rows.

        Returns
        -------
        columns : Columns
            New levels of unordered categories come last, so that codes stay the same.
        """
        table = checked_frame(X)
        if len(table.columns) != len(self.kinds):
            return self
        categories = list(self.categories)
        # Levels of ordered categories are not counted: their dtype has listed all of them.
        kinds = [UNORDERED if kind == UNORDERED else NUMERIC for kind in self.kinds]
        for name, counts in _level_counts(X, table, kinds).items():
            j = table.columns.index(name)
            categories[j] += new_levels(table.get_column(name), categories[j], counts)
        return dataclasses.replace(self, categories=tuple(categories))


class MixedRows(AttentionEstimator):
    """Base class of estimators that read rows of numbers and categories."""

    _held = (Columns,)
    # This is a parameter of some subclasses, and a constant of others.
    categorical_features = "from_dtype"
    # True if Dask collections stay in their partitions; otherwise they are loaded into memory.
    _keeps_partitions = False
    # True if numbers may be missing.
    _reads_missing = False
    # Labels (n_samples,) of the training rows; None if these are identified by their positions.
    _row_labels = None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self._reads_missing
        return tags

    def _learn_rows(self, X, dtype=_DTYPES, **checks):
        """Encode training rows, and validate targets; learn the columns and labels of rows.

        `dtype` has the types that rows may have. With ``y`` in `checks`, which are arguments of
        scikit-learn's `validate_data`, the result is a pair of rows and targets.
        """
        return self._checked_rows(X, reset=True, dtype=dtype, **checks)

    def _read_rows(self, X, dtype=_DTYPES, **checks):
        """Encode queries, and validate targets; see `_learn_rows` for arguments and result."""
        check_is_fitted(self)
        if dtype is _DTYPES and not checks:
            names = getattr(self, "feature_names_in_", None)
            rows = encode_usual_frame(self.columns_, X, names, allow_nan=self._reads_missing)
            if rows is not None:
                return rows
        return self._checked_rows(X, reset=False, dtype=dtype, **checks)

    def _checked_rows(self, X, *, reset, **checks):
        """Encode and validate rows as training rows with `reset`, otherwise as queries."""
        if not self._keeps_partitions:
            # "no_validation" is the default of `validate_data`, for a call without targets.
            X, checks["y"] = to_memory(X, checks.get("y", "no_validation"))
        if reset:
            self.columns_ = Columns.learn(X, self.categorical_features)
            self._row_labels = row_labels(X)
        checks["ensure_all_finite"] = "allow-nan" if self._reads_missing else True
        return read_table(self, self.columns_, X, reset=reset, **checks)

    def _extend_rows(self, X):
        """Add the levels and the labels that further training rows bring."""
        _check_names(self, self.columns_, X)
        self.columns_ = self.columns_.extend(X)
        n_before = len(self.keys_)
        new_labels = row_labels(X, n_before)
        self._row_labels = concatenate_labels(self._row_labels, new_labels, n_before, X)


def encode_usual_frame(columns, X, names, *, allow_nan):
    """Encode a pandas frame with the same columns as that of `fit`, or return None.

    The numbers, and the errors about levels, are those of scikit-learn's checks followed by
    `Columns.encode`. One row of 73 columns takes a seventh of the time.

    Parameters
    ----------
    columns : Columns
        The columns of `fit`.
    X : object
        As the user passed it.
    names : ndarray of str of shape (n_columns,) or None
        The names of the columns in `fit`.
    allow_nan : bool
        Whether numbers may be missing.

    Returns
    -------
    encoded : ndarray of shape (n_samples, n_columns) or None
        None for what the slow way has to convert or refuse: other classes of tables, other
        names and types of columns, and numbers that are not finite.
    """
    if names is None or not hasattr(X, "iloc"):
        return None
    import pandas as pd

    if type(X) is not pd.DataFrame or X.columns.tolist() != names.tolist() or X.empty:
        return None
    dtypes, categorical = X.dtypes.tolist(), columns.categorical
    numeric = np.setdiff1d(np.arange(len(names)), categorical)
    if not all(isinstance(dtypes[j], np.dtype) and dtypes[j].kind in "biuf" for j in numeric):
        return None
    dtype = np.float64 if categorical else np.result_type(*dtypes)
    encoded = np.empty(X.shape, dtype if dtype in _DTYPES else np.float64)
    encoded[:, numeric] = X.iloc[:, numeric].to_numpy()
    numbers = encoded[:, numeric]
    if np.isinf(numbers).any() or not (allow_nan or np.isfinite(numbers).all()):
        return None
    for j in categorical:
        column = X[names[j]]
        is_text = pd.api.types.is_object_dtype(dtypes[j]) and isinstance(column.iloc[0], str)
        if not (is_text or isinstance(dtypes[j], pd.CategoricalDtype | pd.StringDtype)):
            return None
        is_ordered = columns.kinds[j] == ORDERED
        encoded[:, j] = encode_levels(column, columns.categories[j], is_ordered)
    return encoded


def read_table(estimator, columns, X, *, reset, **checks):
    """Encode rows of a table, and validate them and targets by scikit-learn's checks.

    With `reset` the estimator stores names and number of features; otherwise these have to be
    equal. `checks` are arguments of `validate_data`. With ``y`` among them the result is a pair
    of rows and targets, otherwise the rows.
    """
    if not reset:
        _check_names(estimator, columns, X)
    X, y, need_y = columns.encode(X), checks.get("y"), "y" in checks
    if not is_partitioned(X, y):
        try:
            return validate_data(estimator, X, reset=reset, **checks)
        except ValueError as error:
            _add_column_names(error, X)
            raise
    X, y = read_partitions(estimator, X, y, checks["dtype"], reset=reset, need_y=need_y)
    return (X, y) if need_y else X


def _add_column_names(error, X):
    """Add the names of columns of X to the message of an error about NaN or infinity in X."""
    for word, is_refused in {"NaN": np.isnan, "infinity": np.isinf}.items():
        if f"Input X contains {word}" in str(error):
            has_refused = is_refused(as_numbers("X", X, "")).any(axis=0)
            all_names = getattr(X, "columns", range(len(has_refused)))
            names = list(itertools.compress(all_names, has_refused))
            remedy = f"Columns with {word} are {names}: replace it, or drop its rows."
            error.args = (f"{error}\n{remedy}",)


def _check_names(estimator, columns, X):
    """Raise scikit-learn's error if X has other names of columns than in the fit.

    This precedes the encoding of levels, whose errors would be less clear if columns are in
    another order.
    """
    if columns.categorical and hasattr(X, "columns"):
        rows = empty_table(X) if is_partitioned(X) else X
        validate_data(estimator, rows, reset=False, skip_check_array=True)


def highest_lam(kind, n_levels):
    """Return the lambda at which all levels of a category count equally; inf for numbers."""
    if kind == UNORDERED:
        return (n_levels - 1) / n_levels
    return np.inf if kind == NUMERIC else 1.0


def _positions_of_names(categorical_features, names):
    """Return the positions of the columns that the parameter `categorical_features` lists."""
    if is_one_of(categorical_features, "from_dtype") or not names:
        return set()
    is_single = isinstance(categorical_features, str) or not np.iterable(categorical_features)
    items = [categorical_features] if is_single else list(categorical_features)
    n = len(names)
    if len(items) == n and basic_types(items) == {bool | np.bool_}:
        return set(np.flatnonzero(items).tolist())
    position_of = {name: j for j, name in enumerate(names)}
    positions = [position_of.get(item) if isinstance(item, str) else item for item in items]
    # Positions are compared as texts, since True and 1.0 equal 1, but are no positions.
    if not {*map(str, positions)} <= {*map(str, range(n))}:
        raise ValueError(
            f"categorical_features={categorical_features!r} does not fit {n} columns: pass "
            f"'from_dtype', or a list of names, of positions from 0 to {n - 1}, or of one bool "
            "for each column."
        )
    return {*map(int, positions)}


def _kinds_by_type(X, table):
    """Return the kind of each column by its type; columns of an array are all numeric.

    `table` is X as a frame of narwhals.
    """
    if not hasattr(X, "columns"):
        return [NUMERIC] * len(table.columns)
    # An Enum is an ordered category of pandas. That of polars lists its levels in any order.
    enum_kind = UNORDERED if table.implementation.is_polars() else ORDERED
    kinds = []
    for column in table.iter_columns():
        kind = enum_kind if column.dtype == nw.Enum else UNORDERED
        kinds.append(kind if is_category(column) else NUMERIC)
    return kinds


def _level_counts(X, table, kinds):
    """Count the rows of each level of each category: a Counter for each name of a column.

    `table` is X as a frame of narwhals, without rows if X is partitioned.
    """
    pairs = zip(table.columns, kinds, strict=True)
    is_ordered = {name: kind == ORDERED for name, kind in pairs if kind in _CATEGORICAL}
    count = functools.partial(_level_counts_in_memory, is_ordered)
    if not (is_ordered and is_partitioned(X)):
        return count(table)
    return reduce_columns(count, add_counts, X, [*is_ordered])


def _level_counts_in_memory(is_ordered, rows):
    """Count the rows of each level in the columns whose names are the keys of `is_ordered`.

    Its values are True for ordered categories.
    """
    table = checked_frame(rows)
    columns = {name: table.get_column(name) for name in is_ordered}
    return {name: count_levels(column, is_ordered[name]) for name, column in columns.items()}
