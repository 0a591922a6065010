"""The columns of X: numbers and categories, and estimators that read such rows."""

import dataclasses
import functools
import itertools
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ._base import AttentionEstimator
from ._levels import (
    codes_of,
    count_levels,
    doubt_levels,
    has_levels,
    joined,
    levels_of,
    new_levels,
    present,
)
from ._partitions import (
    empty_table,
    is_partitioned,
    map_partitions,
    read_partitions,
    reduce_columns,
    to_memory,
)
from ._validation import (
    OF_TIMES,
    as_numbers,
    check_bandwidth,
    check_in_interval,
    is_one_of,
    refuse_other_arrays,
    types_of,
)

NUMERIC, UNORDERED, ORDERED = "numeric", "unordered", "ordered"
_CATEGORICAL = UNORDERED, ORDERED
# Numbers that do not vary, in which no two rows differ.
CONSTANT = "constant"
# Precisions that rows may have; others become the first.
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
        """Columns of numbers throughout."""
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
            If most rows have a text of their own in a column of texts, or nine of ten levels of
            such a column are numbers.
        """
        if is_one_of(categorical_features, "from_dtype") and _is_plain(X):
            return cls.numbers(X.shape[1])
        table = _table(X)
        names, kinds = table.columns, _kinds(X, table)
        named = _named(categorical_features, names)
        for j, kind in enumerate(kinds):
            if (kind == NUMERIC and j in named) or (kind == ORDERED and not ordered):
                kinds[j] = UNORDERED
        categories = [None] * len(kinds)
        for name, counts in _counts(X, table, kinds).items():
            j = names.index(name)
            of_texts = is_partitioned(X) and j not in named and table.schema[name] == nw.String
            # Objects of Dask may be other than texts in some partition.
            if of_texts and not types_of(present(counts)) <= {str}:
                kinds[j] = NUMERIC
                continue
            categories[j] = levels_of(name, counts, kinds[j] == ORDERED)
            if j not in named and table.schema[name] in (nw.String, nw.Object):
                doubt_levels(name, counts.total(), categories[j], refuse_texts)
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
        return np.flatnonzero(np.isin(self.kinds, _CATEGORICAL)).tolist()

    @property
    def n_levels(self):
        """Number of levels of each category, 0 for numbers."""
        return [len(levels or ()) for levels in self.categories]

    @property
    def highest_lam(self):
        """Lambda at which the levels of each category count alike, inf for numbers."""
        return np.array([*map(highest_lam, self.kinds, self.n_levels)])

    def without(self, constant):
        """The columns, of which some numbers (n_columns,) are known not to vary."""
        kinds = np.where(constant, CONSTANT, self.kinds).tolist()
        return dataclasses.replace(self, kinds=tuple(kinds))

    def divisors(self, bandwidth):
        """Divisor of each column: its bandwidth, but 1 for categories and their lambdas."""
        return np.where(self.is_numeric, bandwidth, 1.0)

    def check_bandwidth(self, bandwidth, default) -> np.ndarray:
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
        given = np.array(bandwidth, dtype=object)
        if given.shape == checked.shape:
            for j in self.categorical:
                name, highest = f"bandwidth[{j}]", float(self.highest_lam[j])
                checked[j] = check_in_interval(name, given[j], 0, highest)
                given[j] = 1.0
        widths = check_bandwidth(given.tolist(), len(self.kinds))
        return np.where(np.isin(self.kinds, _CATEGORICAL), checked, widths)

    def encode(self, X) -> Any:
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
            levels that were not learned are -1, and missing cells -2 if no missing cell was
            learned. Objects are numbers, and NaN where they are missing (None, pandas.NA). `X`
            itself where all are numbers.
            Partitions of Dask are read, and errors in them raised, when they are computed.

        Raises
        ------
        ValueError
            If `X` has other columns, a column of numbers has texts, dates or times, an ordered
            level is not known, or none of a column's cells is a level, and they are of another
            type than all levels; a TypeError where objects are no numbers at all.
        """
        if not self.categorical and _is_plain(X):
            return X
        table, kinds = _table(X), self.kinds
        names = table.columns
        if len(names) != len(kinds) and self.categorical:
            raise ValueError(
                f"X of type {type(X).__name__} and shape {getattr(X, 'shape', None)} does not "
                f"have the {len(kinds)} columns of the fit, some of them categorical: pass a "
                "table with the same columns."
            )
        if is_partitioned(X):
            known = empty_table(X)
            encoded = self.encode(known)
            # Without a task for each partition where there is nothing to do but a check.
            return X if encoded is known else map_partitions(self.encode, X, encoded)
        if len(names) != len(kinds):
            return X if hasattr(X, "columns") else _in_numbers(X, table, {})
        for name, kind, found in zip(names, kinds, _kinds(X, table), strict=True):
            if kind == NUMERIC != found and not table.get_column(name).is_null().all():
                raise ValueError(
                    f"X has categories in column {name!r}, which is numeric in the fit or in "
                    "other partitions: convert it to numbers (pandas.to_numeric, with "
                    "errors='coerce'), or fit it as categories."
                )
        codes = {}
        for j in self.categorical:
            column, ordered = table.get_column(names[j]), kinds[j] == ORDERED
            codes[names[j]] = codes_of(column, self.categories[j], ordered)
        return _in_numbers(X, table, codes)

    def decode(self, X, *, as_frame: bool = False) -> Any:
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
        known = {j: present(self.categories[j]) for j in self.categorical}
        decoded = X.astype(object)
        for j in known:
            levels = np.array(self.categories[j], dtype=object)
            decoded[:, j] = levels[X[:, j].astype(np.intp)]
        if as_frame:
            import pandas as pd

            dtypes = dict.fromkeys(range(len(self.kinds)), X.dtype)
            for j, levels in known.items():
                dtypes[j] = pd.CategoricalDtype(levels, self.kinds[j] == ORDERED)
            return pd.DataFrame(decoded, dtype=object).astype(dtypes)
        of_numbers = {str, object}.isdisjoint(types_of(itertools.chain(*known.values())))
        return decoded.astype(np.float64) if of_numbers else decoded

    def extend(self, X) -> Self:
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
        table = _table(X)
        if len(table.columns) != len(self.kinds):
            return self
        categories = list(self.categories)
        kinds = [UNORDERED if kind == UNORDERED else NUMERIC for kind in self.kinds]
        for name, counts in _counts(X, table, kinds).items():
            j = table.columns.index(name)
            categories[j] += new_levels(table.get_column(name), categories[j], counts)
        return dataclasses.replace(self, categories=tuple(categories))


class MixedRows(AttentionEstimator):
    """Base class of estimators that read rows of numbers and categories."""

    _held = (Columns,)
    # A parameter of some of them.
    categorical_features = "from_dtype"
    # Whether Dask collections stay in their partitions; otherwise they come into memory.
    _keeps_partitions = False
    # Whether numbers may be missing.
    _reads_missing = False
    # Of the training rows, None where these are known by their positions.
    _row_labels = None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self._reads_missing
        return tags

    def _learn_rows(self, X, dtype=_DTYPES, **checks):
        """Training rows as numbers and codes, and targets if there are any."""
        return self._checked_rows(X, reset=True, dtype=dtype, **checks)

    def _read_rows(self, X, dtype=_DTYPES, **checks):
        """Queries as numbers and codes, and targets if there are any."""
        check_is_fitted(self)
        if dtype is _DTYPES and not checks:
            names = getattr(self, "feature_names_in_", None)
            rows = encode_usual_frame(self.columns_, X, names, allow_nan=self._reads_missing)
            if rows is not None:
                return rows
        return self._checked_rows(X, reset=False, dtype=dtype, **checks)

    def _checked_rows(self, X, *, reset, **checks):
        if not self._keeps_partitions:
            # Without targets by the default of scikit-learn's check.
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
        self._row_labels = _joined_labels(
            self._row_labels, row_labels(X, n_before), n_before, X
        )


def encode_usual_frame(columns, X, names, *, allow_nan):
    """Encode a pandas frame that looks like that of `fit`, or return None.

    The numbers and the errors about levels are those of `Columns.encode` and scikit-learn's
    checks, in a seventh of the time for one row of 73 columns.

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
        None for anything that needs a closer look: other classes of tables, other names and
        types of columns, and numbers that are not finite.
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
        encoded[:, j] = codes_of(column, columns.categories[j], columns.kinds[j] == ORDERED)
    return encoded


def read_table(estimator, columns, X, *, reset, **checks):
    """Rows as numbers and codes, checked by scikit-learn as of an estimator, and targets."""
    if not reset:
        _check_names(estimator, columns, X)
    X, y, need_y = columns.encode(X), checks.get("y"), "y" in checks
    if not is_partitioned(X, y):
        try:
            return validate_data(estimator, X, reset=reset, **checks)
        except ValueError as error:
            _name_columns(error, X)
            raise
    X, y = read_partitions(estimator, X, y, checks["dtype"], reset=reset, need_y=need_y)
    return (X, y) if need_y else X


def _name_columns(error, X):
    """Add the names of columns of X to the message of an error about NaN or infinity in X."""
    for word, is_one in {"NaN": np.isnan, "infinity": np.isinf}.items():
        if f"Input X contains {word}" in str(error):
            bad = is_one(as_numbers("X", X, "")).any(axis=0)
            names = list(itertools.compress(getattr(X, "columns", range(len(bad))), bad))
            remedy = f"Columns with {word} are {names}: replace it, or drop its rows."
            error.args = (f"{error}\n{remedy}",)


def _check_names(estimator, columns, X):
    """Before levels are looked up: an error about the order of columns says more."""
    if columns.categorical and hasattr(X, "columns"):
        rows = empty_table(X) if is_partitioned(X) else X
        validate_data(estimator, rows, reset=False, skip_check_array=True)


def highest_lam(kind, n_levels):
    """Lambda at which the levels of a category count alike, inf for numbers."""
    if kind == UNORDERED:
        return (n_levels - 1) / n_levels
    return np.inf if kind == NUMERIC else 1.0


def frame_of(X, *, allow_series=False):
    """A frame of any library for narwhals, or a series; None for all else."""
    # Of pandas: others have none of the same name.
    columns = X.columns if hasattr(X, "iloc") and X.ndim == 2 else None
    if columns is not None and not columns.is_unique:
        raise ValueError(f"X has columns of the same name, {list(columns)}: rename them.")
    frame = nw.from_native(X, pass_through=True, allow_series=allow_series or None)
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
        raise TypeError(
            "X or y is a LazyFrame, whose rows are not computed yet: pass what its collect() "
            "returns."
        )
    return frame if isinstance(frame, nw.DataFrame | nw.Series) else None


def row_labels(X, first=0):
    """Labels (n_samples,) of the rows of a pandas frame; None where they count from `first`."""
    if is_partitioned(X) or not hasattr(X, "iloc"):
        return None
    counted = X.index.nlevels == 1 and np.array_equal(X.index, range(first, first + len(X)))
    return None if counted else _as_labels(X.index)


def _as_labels(index):
    """Labels as an array of numbers or times, or of objects that files can have."""
    labels = np.asarray(index)
    if labels.dtype != object or {*map(type, labels)} <= {str, int, float, bool, tuple}:
        return labels
    # Such as times with a zone, which pandas finds by their texts.
    return np.asarray(index.astype(str), dtype=object)


def _joined_labels(first, further, n_first, X):
    """Labels of the first rows and of further ones, each None where they are positions."""
    if first is None and further is None:
        return None
    import pandas as pd

    first = range(n_first) if first is None else first
    further = range(n_first, n_first + len(X)) if further is None else further
    # Labels may be tuples, and of any types.
    parts = [pd.Index(part, tupleize_cols=False) for part in (first, further)]
    return _as_labels(parts[0].append(parts[1]))


def to_pandas(X):
    """A frame or a series of another library as pandas has it; all else as it is."""
    import pandas as pd

    frame = None if isinstance(X, pd.DataFrame | pd.Series) else frame_of(X, allow_series=True)
    if frame is None:
        return X
    if isinstance(frame, nw.DataFrame):
        columns = (column.to_native() for column in frame.iter_columns())
        return pd.DataFrame(dict(zip(frame.columns, map(to_pandas, columns), strict=True)))
    # By NumPy, since narwhals needs pyarrow. Of a zone these are times in UTC.
    cells, zone = frame.to_numpy(), getattr(frame.dtype, "time_zone", None)
    cells = pd.DatetimeIndex(cells, tz="UTC").tz_convert(zone) if zone else cells
    return pd.Series(cells, name=frame.name)


def _is_plain(X):
    """True for an array of numbers, which needs no look at its columns."""
    plain = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
    return plain and not np.ma.is_masked(X)


def _table(X):
    """A table without times as a frame, which has no columns if there is none in X.

    Arrays become frames of pandas. Of a Dask collection it has no rows.
    """
    X = empty_table(X) if is_partitioned(X) else X
    refuse_other_arrays("X", X)
    frame = frame_of(X)
    frame = _frame_of_array(X) if frame is None else frame
    for j, (name, dtype) in enumerate(frame.schema.items()):
        cell = "" if dtype.is_numeric() or not len(frame) else frame.item(0, j)
        if hasattr(cell, "__len__") and not isinstance(cell, str | bytes | tuple | dict):
            raise ValueError(
                f"X has a sequence in each cell of column {name!r}, where each cell has to be "
                "a single value: compute features of the sequences, or pass arrays of shape "
                "(n_steps, n_channels) to TransformerRegressor or TransformerClassifier, for "
                "example [numpy.column_stack(list(row)) for row in numpy.asarray(X)]."
            )
        if dtype == nw.Struct:
            raise ValueError(
                f"X has records in column {name!r}: make a column of each of their fields, as "
                f"X.unnest({name!r}) does in polars."
            )
        if isinstance(cell, complex):
            raise ValueError(
                f"Complex data not supported: X has {cell} in column {name!r}. Pass real and "
                "imaginary parts as columns of their own."
            )
        if dtype.is_temporal():
            raise ValueError(f"X has dates or times in column {name!r}: {OF_TIMES}.")
    return frame


def _frame_of_array(X):
    """An array, or lists, as a frame, which has no columns where they are no table."""
    import pandas as pd

    try:
        array = np.asarray(X)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.dtype.kind == "U" and isinstance(X, list | tuple):
        array = np.array(X, dtype=object)  # in which numbers beside texts stay numbers
    array = array if array.ndim == 2 else np.empty((0, 0))
    # Levels that are whole numbers or flags are floats as well.
    dtype = {"O": object, "b": float, "i": float, "u": float}.get(array.dtype.kind)
    return nw.from_native(pd.DataFrame(array, dtype=dtype, copy=False))


def _named(given, names):
    """Positions of the columns that the parameter `categorical_features` names."""
    if is_one_of(given, "from_dtype") or not names:
        return set()
    items = [given] if isinstance(given, str) or not np.iterable(given) else list(given)
    n = len(names)
    if len(items) == n and types_of(items) == {bool | np.bool_}:
        return set(np.flatnonzero(items).tolist())
    positions = {name: j for j, name in enumerate(names)}
    places = [positions.get(item) if isinstance(item, str) else item for item in items]
    # As texts, since neither True nor 1.0 is a position.
    if not {*map(str, places)} <= {*map(str, range(n))}:
        raise ValueError(
            f"categorical_features={given!r} does not fit {n} columns: pass 'from_dtype', or "
            f"a list of names, of positions from 0 to {n - 1}, or of one bool for each column."
        )
    return {*map(int, places)}


def numeric_table(X):
    """A table with numbers in place of its objects; an error names a column that has others."""
    (X,) = to_memory(X)
    return X if _is_plain(X) else _in_numbers(X, _table(X), {})


def _in_numbers(X, table, codes):
    """A table with codes of some columns, and numbers in place of objects in the others."""
    remedy = "make numbers of it (pandas.to_numeric), or encode it first (OneHotEncoder)"
    if not table.columns and (isinstance(X, list | tuple) or hasattr(X, "__array__")):
        return as_numbers("X", X, "pass a table, with as many numbers in each row")
    for name, dtype in table.schema.items():
        if not (name in codes or dtype.is_numeric() or dtype == nw.Boolean):
            cells, where = table.get_column(name).to_native(), f" in column {name!r}"
            codes = codes | {name: as_numbers("X", cells, remedy, where)}
    if not codes:
        return X
    encoded = table.with_columns(
        nw.new_series(name, cells, nw.Float64, backend=table.implementation)
        for name, cells in codes.items()
    ).to_native()
    if hasattr(X, "columns"):
        return encoded
    dtype = table.to_native().dtypes.iloc[0]
    return encoded.to_numpy(dtype if dtype.kind == "f" else np.float64, copy=True)


def _kinds(X, table):
    """Kinds of the columns of a table by their types, which those of an array have not."""
    if not hasattr(X, "columns"):
        return [NUMERIC] * len(table.columns)
    # An Enum of polars lists its levels, in whatever order.
    of_enum = UNORDERED if table.implementation.is_polars() else ORDERED
    return [
        (of_enum if column.dtype == nw.Enum else UNORDERED) if has_levels(column) else NUMERIC
        for column in table.iter_columns()
    ]


def _counts(X, table, kinds):
    """How many rows have each level of each category, and None for missing cells."""
    pairs = zip(table.columns, kinds, strict=True)
    ordered = {name: kind == ORDERED for name, kind in pairs if kind in _CATEGORICAL}
    count = functools.partial(_counts_of, ordered)
    if not (ordered and is_partitioned(X)):
        return count(table)
    return reduce_columns(count, joined, X, [*ordered])


def _counts_of(ordered, rows):
    """Counts of levels of the named columns, of which each is ordered or not, in some rows."""
    table = _table(rows)
    return {name: count_levels(table.get_column(name), of) for name, of in ordered.items()}
