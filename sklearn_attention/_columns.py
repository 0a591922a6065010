"""The columns of X: numbers and categories, and estimators that read such rows."""

import dataclasses
import functools
import itertools
import numbers
import re
from typing import NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ._base import AttentionEstimator, warn_user
from ._partitions import (
    as_array,
    each_part,
    head,
    in_memory,
    is_frame,
    is_partitioned,
    partitions,
    read_partitions,
    reduced,
    uniform,
)
from ._validation import (
    OF_TIMES,
    as_numbers,
    check_bandwidth,
    check_in_interval,
    refuse_other_arrays,
    types_of,
)

NUMERIC, UNORDERED, ORDERED = "numeric", "unordered", "ordered"
# Numbers that do not vary, in which no two rows differ.
CONSTANT = "constant"
_UNSEEN = -1.0
# Precisions that rows may have; others become the first.
_DTYPES = (np.float64, np.float32)
# Texts of a column up to which they are a category without doubt.
_MANY_LEVELS = 30
# A number in a file, and its whole part if there is no other.
_NUMBER, _WHOLE = (re.compile(r"-?(0|[1-9]\d*)" + end) for end in (r"(\.\d+)?", r"(?=\.0+$)"))
# New levels, all of a type that no known one has, up to which they are taken for new ones.
_FEW_CELLS = 5


@dataclasses.dataclass(frozen=True)
class Columns:
    """The kind of each column of X: numbers, or an unordered or ordered category.

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
        if unknown := set(self.kinds) - {NUMERIC, UNORDERED, ORDERED, CONSTANT}:
            raise ValueError(
                f"kinds has {sorted(map(str, unknown))}: pass 'numeric', 'unordered', "
                "'ordered' or 'constant' for each column."
            )
        if len(self.kinds) != len(self.categories):
            raise ValueError(
                f"kinds has {len(self.kinds)} columns and categories {len(self.categories)}: "
                "pass one entry of each for each column."
            )

    @classmethod
    def numbers(cls, n_columns):
        """Columns of numbers throughout."""
        return cls((NUMERIC,) * n_columns, (None,) * n_columns)

    @classmethod
    def learn(cls, X, categorical_features="from_dtype", *, ordered=True, refuse_texts=False):
        """Columns of a table, with the levels of its categories.

        Columns of a categorical dtype and of strings in a data frame are categories. A dtype
        whose categories are ordered makes ordered ones, with all its levels in their order;
        others, also an Enum of polars, have the levels that occur. Missing cells of unordered
        categories are a level. Levels of Dask collections are found by a pass over them.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            As the user passed it; checked elsewhere.
        categorical_features : "from_dtype" or list of (str, int or bool), default="from_dtype"
            Which columns of numbers are unordered categories too: their names or positions,
            or one bool for each column.
        ordered : bool, default=True
            Whether ordered categories are kept apart from others.
        refuse_texts : bool, default=False
            Whether texts of several words, of which most rows have one of their own, are an
            error.

        Returns
        -------
        columns : Columns

        Raises
        ------
        ValueError
            If there are no such columns, a column has dates or times, texts are refused, or
            an ordered category has missing cells, which have no place in the order, or another
            order in each partition.

        Warns
        -----
        UserWarning
            If most rows have a text of their own in a column.
        """
        columns = _columns_of(X)
        named = _named(categorical_features, columns)
        kinds = [_kind(column) for column in columns]
        for j, kind in enumerate(kinds):
            if (kind == NUMERIC and j in named) or (kind == ORDERED and not ordered):
                kinds[j] = UNORDERED
        categories = [None] * len(kinds)
        for j, found in _find(X, columns, kinds, named).items():
            if found.levels is None:
                kinds[j] = NUMERIC
                continue
            name = getattr(columns[j], "name", j)
            categories[j] = _levels(name, found, kinds[j])
            if j not in named and kinds[j] == UNORDERED:
                _doubt_levels(name, found.n_rows, categories[j], refuse_texts)
        return cls(tuple(kinds), tuple(categories))

    def __add__(self, other):
        """The columns of two tables side by side."""
        return Columns((*self.kinds, *other.kinds), (*self.categories, *other.categories))

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
        return np.flatnonzero(self._is_categorical).tolist()

    @property
    def n_levels(self):
        """Number of levels of each category, 0 for numbers."""
        return [0 if levels is None else len(levels) for levels in self.categories]

    @property
    def highest_lam(self):
        """Lambda at which the levels of each category count alike, inf for numbers."""
        others = {NUMERIC: np.inf, CONSTANT: 1.0}
        return np.array([
            others[kind] if kind in others else highest_lam(kind, n)
            for kind, n in zip(self.kinds, self.n_levels, strict=True)
        ])  # fmt: skip

    def without(self, constant):
        """The columns, of which some numbers (n_columns,) are known not to vary."""
        pairs = zip(self.kinds, constant, strict=True)
        kinds = tuple(CONSTANT if some else kind for kind, some in pairs)
        return dataclasses.replace(self, kinds=kinds)

    def divisors(self, bandwidth):
        """Divisor of each column: its bandwidth, but 1 for categories and their lambdas."""
        return np.where(self.is_numeric, bandwidth, 1.0)

    def check_bandwidth(self, bandwidth, default):
        """Bandwidths of numbers and lambdas of categories from what a user passed.

        Parameters
        ----------
        bandwidth : float or array-like of shape (n_columns,)
            As the user passed it: one number for all columns of numbers, or one for each
            column, with the lambdas of categories.
        default : ndarray of shape (n_columns,)
            Holds the lambdas in the first case.

        Returns
        -------
        bandwidth : ndarray of shape (n_columns,)
        """
        checked = np.array(default, dtype=np.float64)
        if np.ndim(bandwidth) == 0:
            width = check_bandwidth(bandwidth, len(self.kinds))
            return np.where(self._is_categorical, checked, width)
        given = np.array(bandwidth, dtype=object)
        if given.shape == checked.shape:
            for j in self.categorical:
                name, highest = f"bandwidth[{j}]", float(self.highest_lam[j])
                checked[j] = check_in_interval(name, given[j], 0, highest)
                given[j] = 1.0
        widths = check_bandwidth(given.tolist(), len(self.kinds))
        return np.where(self._is_categorical, checked, widths)

    def encode(self, X):
        """The table as numbers, with the code of its level for every categorical cell.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            As the user passed it; an array of objects, or lists, where levels are texts.

        Returns
        -------
        X : data frame or ndarray
            A frame of the same kind and names, all numeric. Cells of another type are the level
            that reads the same in a file, such as 10 and 10.0 the level "10"; unordered
            levels that were not learned are -1. Objects are numbers, and NaN where they are
            missing (None, pandas.NA). `X` itself where all are numbers.
            Partitions of Dask are read, and errors in them raised, when they are computed.

        Raises
        ------
        ValueError
            If `X` has other columns, a column of numbers has texts, dates or times, an ordered
            level is not known, or none of a column's cells is a level, and they are of another
            type than all levels; a TypeError where objects are no numbers at all.
        """
        columns = _columns_of(X)
        if len(columns) != len(self.kinds):
            if not self.categorical:
                named = is_partitioned(X) or hasattr(X, "columns")
                return X if named else _in_numbers(X, columns, {})
            shape = getattr(X, "shape", None)
            raise ValueError(
                f"X of type {type(X).__name__} and shape {shape} has not the "
                f"{len(self.kinds)} columns, some of them categorical, that were fitted: pass "
                "a table with the same columns."
            )
        if is_partitioned(X):
            known = head(X)
            encoded = self.encode(known)
            # Without a task for each partition where there is nothing to do but a check.
            return X if encoded is known else each_part(self.encode, X, encoded)
        for column, kind in zip(columns, self.kinds, strict=True):
            if kind == NUMERIC and _kind(column) != NUMERIC and not column.is_null().all():
                raise ValueError(
                    f"X has categories in column {column.name!r}, which was numeric when "
                    "fitted, or is in other partitions: convert it to numbers, or fit with "
                    "categories."
                )
        codes = {}
        for j in self.categorical:
            name = getattr(columns[j], "name", j)
            codes[j] = _codes(columns[j], name, self.categories[j], self.kinds[j])
        return _in_numbers(X, columns, codes)

    def decode(self, X, *, as_frame=False):
        """The table that :meth:`encode` makes these numbers of.

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
        known = (level for of in self.categories for level in of or () if level is not None)
        as_numbers = not as_frame and types_of(known) <= {numbers.Number, bool | np.bool_}
        decoded = X.astype(np.float64 if as_numbers else object)
        for j in self.categorical:
            levels = np.array(self.categories[j], dtype=decoded.dtype)
            decoded[:, j] = levels[X[:, j].astype(np.intp)]
        if not as_frame:
            return decoded
        import pandas as pd

        columns = dict(enumerate(X.T))
        for j in self.categorical:
            known = [level for level in self.categories[j] if level is not None]
            ordered = self.kinds[j] == ORDERED
            columns[j] = pd.Categorical(decoded[:, j], known, ordered=ordered)
        return pd.DataFrame(columns)

    def extend(self, X):
        """The columns with what further rows bring: new levels of unordered categories.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            Further rows.

        Returns
        -------
        columns : Columns
            New levels come last: codes stay what they are.
        """
        columns = _columns_of(X)
        if len(columns) != len(self.kinds):
            return self
        categories = list(self.categories)
        kinds = [NUMERIC if kind == ORDERED else kind for kind in self.kinds]
        # Whatever type they come in.
        for j, found in _find(X, columns, kinds, named=self.categorical).items():
            name = getattr(columns[j], "name", j)
            more = _levels(name, found, UNORDERED)
            fresh = _matched(columns[j], name, categories[j], more) == _UNSEEN
            categories[j] += tuple(itertools.compress(more, fresh))
        return dataclasses.replace(self, categories=tuple(categories))

    @property
    def _is_categorical(self):
        return np.isin(self.kinds, (UNORDERED, ORDERED))


class MixedRows(AttentionEstimator):
    """Base class of estimators that read rows of numbers and categories."""

    _held = (Columns,)
    # A parameter of some of them.
    categorical_features = "from_dtype"
    # Whether Dask collections stay in their partitions; otherwise they come into memory.
    _keeps_partitions = False
    # Whether numbers may be missing.
    _reads_missing = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self._reads_missing
        return tags

    def _learn_rows(self, X, dtype=_DTYPES, **checks):
        """Training rows as numbers and codes, and targets if there are any."""
        if is_partitioned(X, checks.get("y")):
            if self._keeps_partitions:
                return _read_partitions(self, X, dtype, checks, reset=True)
            X, checks = _in_memory(X, checks)
        columns = Columns.learn(X, self.categorical_features)
        finite = "allow-nan" if self._reads_missing else True
        checks = {"dtype": dtype, "ensure_all_finite": finite} | checks
        checked = read_table(self, columns, X, reset=True, **checks)
        self.columns_ = columns
        return checked

    def _read_rows(self, X, dtype=_DTYPES, **checks):
        """Queries as numbers and codes, and targets if there are any."""
        check_is_fitted(self)
        if is_partitioned(X, checks.get("y")):
            if self._keeps_partitions:
                return _read_partitions(self, X, dtype, checks, reset=False)
            X, checks = _in_memory(X, checks)
        finite = "allow-nan" if self._reads_missing else True
        checks = {"dtype": dtype, "ensure_all_finite": finite} | checks
        return read_table(self, self.columns_, X, reset=False, **checks)

    def _extend_columns(self, X):
        """Add the levels that further training rows bring."""
        _check_names(self, self.columns_, X)
        self.columns_ = self.columns_.extend(X)


def read_table(estimator, columns, X, *, reset, **checks):
    """Rows as numbers and codes, checked by scikit-learn as of an estimator, and targets."""
    if not reset:
        _check_names(estimator, columns, X)
    return validate_data(estimator, columns.encode(X), reset=reset, **checks)


def _check_names(estimator, columns, X):
    """Before levels are looked up: an error about the order of columns says more."""
    if columns.categorical and hasattr(X, "columns"):
        rows = head(X) if is_partitioned(X) else X
        validate_data(estimator, rows, reset=False, skip_check_array=True)


def _in_memory(X, checks):
    """Rows, and checks with targets if there are any, in memory."""
    X, y = in_memory(X, checks.get("y"))
    return X, checks | ({"y": y} if "y" in checks else {})


def _read_partitions(estimator, X, dtype, checks, *, reset):
    """Rows in partitions as numbers and codes, and targets where they are to be checked."""
    if reset:
        columns = Columns.learn(X, estimator.categorical_features)
    else:
        columns = estimator.columns_
        _check_names(estimator, columns, X)
    y, need_y = checks.get("y"), "y" in checks
    X, y = read_partitions(estimator, columns.encode(X), y, dtype, reset=reset, need_y=need_y)
    if reset:
        estimator.columns_ = columns
    return (X, y) if need_y else X


def highest_lam(kind, n_levels):
    """Lambda at which the levels of a category count alike."""
    return (n_levels - 1) / n_levels if kind == UNORDERED else 1.0


def frame_of(X, *, allow_series=False):
    """A frame of any library for narwhals, or a series; None for all else."""
    # Of pandas: others have none of the same name.
    columns = X.columns if hasattr(X, "iloc") and X.ndim == 2 else None
    if columns is not None and not columns.is_unique:
        raise ValueError(f"X has columns of the same name, {list(columns)}: rename them.")
    frame = nw.from_native(X, pass_through=True, allow_series=allow_series or None)
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
        raise TypeError("X or y is a LazyFrame, without rows: pass what its collect() returns.")
    return frame if isinstance(frame, nw.DataFrame | nw.Series) else None


def to_pandas(X):
    """A frame or a series of another library as pandas has it; all else as it is."""
    import pandas as pd

    known = isinstance(X, pd.DataFrame | pd.Series)
    frame, columns = None if known else frame_of(X, allow_series=True), {}
    if frame is None:
        return X
    for column in frame.iter_columns() if isinstance(frame, nw.DataFrame) else [frame]:
        # By NumPy, since narwhals needs pyarrow. Of a zone these are times in UTC.
        cells, zone = column.to_numpy(), getattr(column.dtype, "time_zone", None)
        cells = pd.DatetimeIndex(cells, tz="UTC").tz_convert(zone) if zone else cells
        columns[column.name] = pd.Series(cells, name=column.name)
    return pd.DataFrame(columns) if isinstance(frame, nw.DataFrame) else columns[frame.name]


def _columns_of(X):
    """Columns of a frame or an array, without times; none of what is no table.

    Of a Dask collection they have no rows.
    """
    columns = _table_columns(head(X) if is_partitioned(X) else X)
    for column in columns:
        array, cell = isinstance(column, np.ndarray), column[0] if len(column) else ""
        where = f"of dtype {column.dtype}" if array else f"in column {column.name!r}"
        if hasattr(cell, "__len__") and not isinstance(cell, str | bytes | tuple | dict):
            raise ValueError(
                f"X has a sequence in each cell {where}: make features of them, or pass arrays "
                "(n_steps, n_channels) to TransformerRegressor or TransformerClassifier, as by "
                "[numpy.column_stack(list(row)) for row in numpy.asarray(X)]."
            )
        if column.dtype.kind in "mM" if array else column.dtype.is_temporal():
            raise ValueError(f"X has dates or times {where}: {OF_TIMES}.")
    return columns


def _table_columns(X):
    refuse_other_arrays("X", X)
    frame = frame_of(X)
    if frame is not None:
        return list(frame.iter_columns())
    try:
        array = np.asarray(X)
    except (TypeError, ValueError):
        return []
    if array.dtype.kind == "U" and isinstance(X, list | tuple):
        array = np.array(X, dtype=object)  # in which numbers beside texts stay numbers
    if array.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: X has dtype {array.dtype}. Pass real and imaginary "
            "parts as columns of their own."
        )
    return list(array.T) if array.ndim == 2 else []


def _named(given, columns):
    """Positions of the columns that the parameter `categorical_features` names."""
    if (isinstance(given, str) and given == "from_dtype") or not columns:
        return set()
    items = [given] if isinstance(given, str) or not np.iterable(given) else list(given)
    n = len(columns)
    if len(items) == n and all(isinstance(item, bool | np.bool_) for item in items):
        return set(np.flatnonzero(items).tolist())
    names = {getattr(column, "name", None): j for j, column in enumerate(columns)}
    places = [names.get(item) if isinstance(item, str) else item for item in items]
    if not all(
        isinstance(place, numbers.Integral) and not isinstance(place, bool) and 0 <= place < n
        for place in places
    ):
        raise ValueError(
            f"categorical_features={given!r} does not fit {n} columns: pass 'from_dtype', or "
            f"a list of names, of positions from 0 to {n - 1}, or of one bool for each column."
        )
    return set(places)


def numeric_table(X):
    """A table with numbers in place of its objects; an error names a column that has others."""
    (X,) = in_memory(X)
    return _in_numbers(X, _columns_of(X), {})


def _in_numbers(X, columns, codes):
    """A table with codes of some columns, and numbers in place of objects in the others."""
    remedy = "encode it first, for example with OneHotEncoder in a ColumnTransformer"
    if not columns and (isinstance(X, list | tuple) or hasattr(X, "__array__")):
        return as_numbers("X", X, "pass a table, with as many numbers in each row")
    found = dict(codes)
    for j, column in enumerate(columns):
        if isinstance(column, np.ndarray):
            plain, cells, name = column.dtype.kind in "biufc", column, j
        else:
            plain = column.dtype.is_numeric() or column.dtype == nw.Boolean
            cells, name = column.to_native(), column.name
        if not (plain or j in codes):
            found[j] = as_numbers("X", cells, remedy, f" in column {name!r}")
    if not found:
        return X
    frame = frame_of(X)
    if frame is None:
        dtype = columns[0].dtype if columns[0].dtype.kind == "f" else np.float64
        cells = [found.get(j, column) for j, column in enumerate(columns)]
        return np.column_stack(cells).astype(dtype, copy=False)
    for j, cells in found.items():
        columns[j] = _column_like(columns[j], cells, frame)
    return frame.select(columns).to_native()


def _column_like(column, cells, frame):
    made = nw.new_series(column.name, cells, nw.Float64, backend=frame.implementation)
    # pandas aligns columns by their index. Not by narwhals' `maybe_set_index`, which goes over
    # the labels one by one.
    index = nw.maybe_get_index(frame)
    if index is None:
        return made
    return nw.from_native(made.to_native().set_axis(index), series_only=True)


def _kind(column):
    if isinstance(column, np.ndarray):
        return NUMERIC
    if column.dtype in (nw.Enum, nw.Categorical, nw.String):
        # An Enum of polars lists its levels, in whatever order.
        native = column.to_native()
        ordered = getattr(getattr(native, "dtype", native), "ordered", False)
        return ORDERED if column.dtype == nw.Enum and ordered else UNORDERED
    if column.dtype == nw.Object and all(
        isinstance(cell, str) for cell in column.drop_nulls().to_list()
    ):
        return UNORDERED
    return NUMERIC


def _distinct(column):
    """Place of each cell among those that differ, -1 where missing, and these as a list."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "OU":
        import pandas as pd

        column = nw.from_native(pd.Series(column), series_only=True)
    if isinstance(column, np.ndarray):
        cells, places = np.unique(column.astype(np.float64), return_inverse=True)
        missing = np.isnan(cells)
        return np.where(missing[places], -1, places), cells[~missing].tolist()
    native = column.to_native()
    # Where texts and objects of other types are mixed, cells are equal as they are in Python.
    if column.dtype != nw.Object and hasattr(native, "factorize"):
        places, cells = native.factorize()
        return places, cells.tolist()
    present = (~column.is_null()).to_list()
    # NaN differs from itself.
    cells = [
        cell if there and cell == cell else None
        for cell, there in zip(column.to_list(), present, strict=True)
    ]
    known = dict.fromkeys(cell for cell in cells if cell is not None)
    known = {cell: k for k, cell in enumerate(known)}
    return np.array([known.get(cell, -1) for cell in cells], dtype=np.intp), list(known)


class _Found(NamedTuple):
    """Counts and levels of a category in some rows."""

    n_rows: int
    n_missing: int
    # Of an ordered one that of all its levels; None for objects that are no category.
    levels: frozenset | None

    def joined(self, other):
        levels = None if None in (self.levels, other.levels) else self.levels | other.levels
        return _Found(self.n_rows + other.n_rows, self.n_missing + other.n_missing, levels)


def _find(X, columns, kinds, named):
    """Counts and levels of each category of a table, by the position of its column."""
    places = [j for j, kind in enumerate(kinds) if kind != NUMERIC]
    if not places:
        return {}
    if not is_partitioned(X):
        found = [_found(columns[j], kinds[j]) for j in places]
    else:
        if is_frame(X):
            names = [columns[j].name for j in places]
            parts = [(part,) for part in uniform("X", X)[names].to_delayed()]
        else:
            parts = partitions(as_array(X, "X")[:, places])
        texts = [j not in named and columns[j].dtype == nw.String for j in places]
        find = functools.partial(_found_in_part, [kinds[j] for j in places], texts)
        (found,) = in_memory(reduced(find, _joined, parts))
    return dict(zip(places, found, strict=True))


def _found(column, kind):
    if kind == ORDERED:
        ordered = column.dtype == nw.Enum
        levels = tuple(column.cat.get_categories().to_list()) if ordered else None
        return _Found(len(column), column.null_count(), frozenset([levels]))
    places, cells = _distinct(column)
    n_missing = int((places < 0).sum())
    return _Found(len(column), n_missing, frozenset([*cells, None] if n_missing else cells))


def _found_in_part(kinds, texts, part):
    """Counts and levels in a partition; some columns are categories only if all are texts."""
    return [
        _Found(len(column), 0, None)
        if is_text and _kind(column) == NUMERIC and not column.is_null().all()
        else _found(column, kind)
        for column, kind, is_text in zip(_columns_of(part), kinds, texts, strict=True)
    ]


def _joined(ours, theirs):
    return list(map(_Found.joined, ours, theirs))


def _levels(name, found, kind):
    """Levels in the order of their codes."""
    if kind == ORDERED:
        _refuse_missing(name, found.n_missing)
        if len(found.levels) > 1:
            orders = sorted(str(order or "no order") for order in found.levels)
            raise ValueError(
                f"X has an ordered category in column {name!r} whose order differs from "
                f"partition to partition ({' or '.join(orders)}): give it one dtype, "
                f"as by X[{name!r}].astype(pandas.CategoricalDtype(levels, ordered=True))."
            )
        return next(iter(found.levels))
    known = found.levels - {None}
    try:
        levels = sorted(known)
    except TypeError:
        levels = sorted(known, key=lambda level: (str(type(level)), str(level)))
    return (*levels, *(found.levels - known))


def _doubt_levels(name, n_rows, levels, refuse_texts):
    if len(levels) <= max(_MANY_LEVELS, n_rows / 2):
        return
    found = f"X has {len(levels)} different texts in the {n_rows} rows of column {name!r}"
    if refuse_texts and any(isinstance(level, str) and " " in level for level in levels):
        raise ValueError(
            f"{found}, which are no levels of a category: pass that column alone to read it as "
            "text, or leave it out."
        )
    warn_user(
        f"{found}, which is read as a category: drop it, or make numbers of dates "
        "(pandas.to_datetime) and amounts (pandas.to_numeric)."
    )


def _refuse_missing(name, n_missing):
    if n_missing:
        raise ValueError(
            f"X has {n_missing} missing cells in column {name!r}, an ordered category, "
            "where they have no place in the order: fill them, or make the category unordered "
            "so that missing becomes a level."
        )


def _codes(column, name, levels, kind):
    places, cells = _distinct(column)
    codes = _matched(column, name, levels, cells)
    if kind == ORDERED:
        _refuse_missing(name, int((places < 0).sum()))
        unknown = sorted(map(str, itertools.compress(cells, codes == _UNSEEN)))
        if unknown:
            raise ValueError(
                f"X has unknown levels {unknown} in the ordered category {name!r}, "
                f"whose levels are {list(levels)}: fit with a dtype that lists every level."
            )
    # Missing cells are at place -1.
    missing = levels.index(None) if None in levels else _UNSEEN
    return np.append(codes, missing)[places]


def _matched(column, name, levels, cells):
    """Code of each cell's level, or of the only one that a file has alike; -1 if unknown.

    An error where all are unknown, and of another type than the levels.
    """
    position = {level: code for code, level in enumerate(levels)}
    codes = np.array([position.get(cell, _UNSEEN) for cell in cells], dtype=np.float64)
    if not (codes == _UNSEEN).any():
        return codes
    (known, found), same = ([x for x in of if x is not None] for of in (levels, cells)), {}
    for level in known:
        same[_text(level)] = _UNSEEN if _text(level) in same else position[level]
    for k in np.flatnonzero(codes == _UNSEEN):
        codes[k] = _UNSEEN if cells[k] is None else same.get(_text(cells[k]), _UNSEEN)
    if known and found and not types_of(known) & types_of(found):
        numeric = {*map(_is_number, known)} & {*map(_is_number, found)}
        none = codes.max() == _UNSEEN and (len(found) > _FEW_CELLS or not numeric)
        # Zeros that a file has taken away.
        bare = {_text(x).lstrip("0") for x in known if str(x).startswith("0")}
        unknown = itertools.compress(cells, codes == _UNSEEN)
        lost = [cell for cell in unknown if _text(cell) in bare]
        if none or lost:
            raise ValueError(_of_other_type(column, name, known, lost or found))
    return codes


def _text(cell):
    """What a file has for a cell, a whole number as an integer."""
    whole = _WHOLE.match(str(cell))
    return whole[0] if whole else str(cell)


def _is_number(cell):
    return isinstance(cell, numbers.Number) or _NUMBER.fullmatch(str(cell)) is not None


def _of_other_type(column, name, levels, cells):
    """What to do about a column whose cells are none of the levels, nor of their type."""
    array = isinstance(column, np.ndarray)
    dtype = getattr(column if array else column.to_native(), "dtype", column.dtype)
    cast = f"{'X' if isinstance(name, str) else 'pandas.DataFrame(X)'}[{name!r}]"
    # Codes such as "02134" that a file has made numbers of.
    padded = [x for x in levels if isinstance(x, str) and x.isdigit() and not _is_number(x)]
    if padded and all(_text(cell).isdigit() for cell in cells):
        cast += f".astype('Int64').astype('string').str.zfill({max(map(len, padded))})"
    elif isinstance(levels[0], str):
        cast += ".astype(str)"
    elif types_of(levels[:1]) == {numbers.Number}:
        cast = f"pandas.to_numeric({cast}, errors='coerce')"
    else:
        cast = "what those of fit were made by"
    return (
        f"X has {cells[0]!r}, of {dtype}, in column {name!r}, whose levels were of "
        f"{type(levels[0]).__name__} when fitted, such as {levels[0]!r}, and is none of "
        f"them. Pass levels, not numbers of these, and make them of that type by {cast}."
    )
