"""The columns of X: numbers and categories, and estimators that read such rows."""

import dataclasses
import functools
import itertools
import numbers
import re
from collections import Counter

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
    is_one_of,
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
# A number in a file: its whole part, and its fraction if there is one.
_NUMBER = re.compile(r"(-?(?:0|[1-9]\d*))(?:\.0+|(\.\d+))?")
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
        known = {NUMERIC, UNORDERED, ORDERED, CONSTANT}
        if len(self.kinds) != len(self.categories) or not known.issuperset(self.kinds):
            raise ValueError(
                f"kinds={self.kinds!r} does not fit {len(self.categories)} categories: pass "
                "'numeric', 'unordered', 'ordered' or 'constant' for each column, and its "
                "levels or None."
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
        if is_one_of(categorical_features, "from_dtype") and _is_plain(X):
            return cls.numbers(X.shape[1])
        table = _table(X)
        names, kinds = table.columns, _kinds(X, table)
        named = _named(categorical_features, names)
        for j, kind in enumerate(kinds):
            if (kind == NUMERIC and j in named) or (kind == ORDERED and not ordered):
                kinds[j] = UNORDERED
        categories = [None] * len(kinds)
        for j, counts in _counts(X, table, kinds).items():
            texts = j in named or table.schema[names[j]] != nw.String
            # Objects of Dask may be other than texts in some partition.
            if is_partitioned(X) and not (texts or types_of(counts.keys() - {None}) <= {str}):
                kinds[j] = NUMERIC
                continue
            categories[j] = _levels(names[j], counts, kinds[j])
            if j not in named and kinds[j] == UNORDERED:
                _doubt_levels(names[j], counts.total(), categories[j], refuse_texts)
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
        return [len(levels or ()) for levels in self.categories]

    @property
    def highest_lam(self):
        """Lambda at which the levels of each category count alike, inf for numbers."""
        return np.array([*map(highest_lam, self.kinds, self.n_levels)])

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
        if not self.categorical and _is_plain(X):
            return X
        table, kinds = _table(X), self.kinds
        names = table.columns
        if len(names) != len(kinds) and self.categorical:
            shape = getattr(X, "shape", None)
            raise ValueError(
                f"X of type {type(X).__name__} and shape {shape} has not the {len(kinds)} "
                "columns, some of them categorical, that were fitted: pass a table with the "
                "same columns."
            )
        if is_partitioned(X):
            known = head(X)
            encoded = self.encode(known)
            # Without a task for each partition where there is nothing to do but a check.
            return X if encoded is known else each_part(self.encode, X, encoded)
        if len(names) != len(kinds):
            return X if hasattr(X, "columns") else _in_numbers(X, table, {})
        for name, kind, found in zip(names, kinds, _kinds(X, table), strict=True):
            if kind == NUMERIC != found and not table.get_column(name).is_null().all():
                raise ValueError(
                    f"X has categories in column {name!r}, which was numeric when fitted, or "
                    "is in other partitions: convert it to numbers, or fit with categories."
                )
        codes = {}
        for j in self.categorical:
            column = table.get_column(names[j])
            codes[names[j]] = _codes(column, self.categories[j], kinds[j])
        return _in_numbers(X, table, codes)

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
        known = {j: _without_none(self.categories[j]) for j in self.categorical}
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
        types = types_of(itertools.chain(*known.values()))
        of_numbers = types <= {numbers.Number, bool | np.bool_}
        return decoded.astype(np.float64) if of_numbers else decoded

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
        table = _table(X)
        if len(table.columns) != len(self.kinds):
            return self
        categories = list(self.categories)
        kinds = [UNORDERED if kind == UNORDERED else NUMERIC for kind in self.kinds]
        for j, counts in _counts(X, table, kinds).items():
            column = table.get_column(table.columns[j])
            more = _levels(column.name, counts, UNORDERED)
            fresh = _matched(column, categories[j], more) == _UNSEEN
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
        return self._checked_rows(X, reset=True, dtype=dtype, **checks)

    def _read_rows(self, X, dtype=_DTYPES, **checks):
        """Queries as numbers and codes, and targets if there are any."""
        check_is_fitted(self)
        return self._checked_rows(X, reset=False, dtype=dtype, **checks)

    def _checked_rows(self, X, *, reset, **checks):
        if not self._keeps_partitions:
            X, checks["y"] = in_memory(X, checks.get("y", "no_validation"))
        columns = Columns.learn(X, self.categorical_features) if reset else self.columns_
        finite = "allow-nan" if self._reads_missing else True
        checks = {"ensure_all_finite": finite} | checks
        checked = read_table(self, columns, X, reset=reset, **checks)
        if reset:
            self.columns_ = columns
        return checked

    def _extend_columns(self, X):
        """Add the levels that further training rows bring."""
        _check_names(self, self.columns_, X)
        self.columns_ = self.columns_.extend(X)


def read_table(estimator, columns, X, *, reset, **checks):
    """Rows as numbers and codes, checked by scikit-learn as of an estimator, and targets."""
    if not reset:
        _check_names(estimator, columns, X)
    X, y, need_y = columns.encode(X), checks.get("y"), "y" in checks
    if not is_partitioned(X, y):
        return validate_data(estimator, X, reset=reset, **checks)
    X, y = read_partitions(estimator, X, y, checks["dtype"], reset=reset, need_y=need_y)
    return (X, y) if need_y else X


def _check_names(estimator, columns, X):
    """Before levels are looked up: an error about the order of columns says more."""
    if columns.categorical and hasattr(X, "columns"):
        rows = head(X) if is_partitioned(X) else X
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
        raise TypeError("X or y is a LazyFrame, without rows: pass what its collect() returns.")
    return frame if isinstance(frame, nw.DataFrame | nw.Series) else None


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
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"


def _table(X):
    """A table without times as a frame, which has no columns if there is none in X.

    Arrays become frames of pandas. Of a Dask collection it has no rows.
    """
    X = head(X) if is_partitioned(X) else X
    refuse_other_arrays("X", X)
    frame = frame_of(X)
    frame = _frame_of_array(X) if frame is None else frame
    for j, (name, dtype) in enumerate(frame.schema.items()):
        cell = "" if dtype.is_numeric() or not len(frame) else frame.item(0, j)
        if hasattr(cell, "__len__") and not isinstance(cell, str | bytes | tuple | dict):
            raise ValueError(
                f"X has a sequence in each cell in column {name!r}: make features of them, or "
                "pass arrays (n_steps, n_channels) to TransformerRegressor or "
                "TransformerClassifier, as by "
                "[numpy.column_stack(list(row)) for row in numpy.asarray(X)]."
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
    array = array.astype(np.float64) if array.dtype.kind in "biu" else array
    dtype = object if array.dtype == object else None
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
    (X,) = in_memory(X)
    return X if _is_plain(X) else _in_numbers(X, _table(X), {})


def _in_numbers(X, table, codes):
    """A table with codes of some columns, and numbers in place of objects in the others."""
    remedy = "encode it first, for example with OneHotEncoder in a ColumnTransformer"
    if not table.columns and (isinstance(X, list | tuple) or hasattr(X, "__array__")):
        return as_numbers("X", X, "pass a table, with as many numbers in each row")
    for name, dtype in table.schema.items():
        if not (name in codes or dtype.is_numeric() or dtype == nw.Boolean):
            cells, where = table.get_column(name).to_native(), f" in column {name!r}"
            codes = codes | {name: as_numbers("X", cells, remedy, where)}
    if not codes:
        return X
    backend = table.implementation
    encoded = table.with_columns(
        nw.new_series(name, cells, nw.Float64, backend=backend) for name, cells in codes.items()
    ).to_native()
    if hasattr(X, "columns"):
        return encoded
    dtype = table.to_native().dtypes.iloc[0]
    return encoded.to_numpy(dtype if dtype.kind == "f" else np.float64, copy=True)


def _kinds(X, table):
    """Kinds of the columns of a table by their types, which those of an array have not."""
    categorical = (nw.Enum, nw.Categorical, nw.String) if hasattr(X, "columns") else ()
    # An Enum of polars lists its levels, in whatever order.
    of_enum = UNORDERED if table.implementation.is_polars() else ORDERED
    return [
        (of_enum if dtype == nw.Enum else UNORDERED) if dtype in categorical else NUMERIC
        for dtype in table.schema.values()
    ]


def _factorized(column):
    """Place of each cell among those that differ, -1 where missing, and these as a list."""
    import pandas as pd

    cells = column.to_native()
    if not isinstance(cells, pd.Series):
        cells = pd.Series(column.to_list(), dtype=object)
    # Of an array of objects pandas guesses no type.
    places, cells = pd.factorize(cells.to_numpy() if cells.dtype == object else cells)
    return places, cells.tolist()


def _counts(X, table, kinds):
    """How many rows have each level of each category, None for missing cells, by position."""
    places = [j for j, kind in enumerate(kinds) if kind in (UNORDERED, ORDERED)]
    kinds, names = [kinds[j] for j in places], [table.columns[j] for j in places]
    if not places or not is_partitioned(X):
        counts = map(_count, map(table.get_column, names), kinds)
    else:
        if is_frame(X):
            parts = [(part,) for part in uniform("X", X)[names].to_delayed()]
        else:
            parts = partitions(as_array(X, "X")[:, places])
        counts = reduced(functools.partial(_counts_of_part, kinds), _joined, parts)
        (counts,) = in_memory(counts)
    return dict(zip(places, counts, strict=True))


def _counts_of_part(kinds, part):
    table = _table(part)
    return list(map(_count, map(table.get_column, table.columns), kinds))


def _joined(ours, theirs):
    return [a + b for a, b in zip(ours, theirs, strict=True)]


def _count(column, kind):
    """How many rows have each level; the levels of an ordered category count as one."""
    if kind == ORDERED:
        levels = tuple(column.cat.get_categories()) if column.dtype == nw.Enum else ()
        return Counter({levels: len(column), None: column.null_count()})
    places, cells = _factorized(column)
    counts = np.bincount(places + 1, minlength=len(cells) + 1)
    return +Counter(dict(zip([None, *cells], counts.tolist(), strict=True)))


def _levels(name, counts, kind):
    """Levels in the order of their codes."""
    known = counts.keys() - {None}
    if kind == ORDERED:
        _refuse_missing(name, counts[None])
        if len(known) > 1:
            orders = sorted(str(order or "no order") for order in known)
            raise ValueError(
                f"X has an ordered category in column {name!r} whose order differs from "
                f"partition to partition ({' or '.join(orders)}): give it one dtype, "
                f"as by X[{name!r}].astype(pandas.CategoricalDtype(levels, ordered=True))."
            )
        return next(iter(known), ())
    try:
        levels = sorted(known)
    except TypeError:
        levels = sorted(known, key=lambda level: (str(type(level)), str(level)))
    return (*levels, *(counts.keys() - known))


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


def _codes(column, levels, kind):
    """Code of the level of each cell, -1 if it is unknown."""
    places, cells = _factorized(column)
    # Missing cells are at place -1.
    codes = _matched(column, levels, [*cells, None])
    if kind == ORDERED:
        _refuse_missing(column.name, int((places < 0).sum()))
        unknown = sorted(map(str, itertools.compress(cells, codes == _UNSEEN)))
        if unknown:
            raise ValueError(
                f"X has unknown levels {unknown} in the ordered category {column.name!r}, "
                f"whose levels are {list(levels)}: fit with a dtype that lists every level."
            )
    return codes[places]


def _matched(column, levels, cells):
    """Code of each cell's level, or of the only one that a file has alike; -1 if unknown."""
    position = {level: code for code, level in enumerate(levels)}
    if set(cells) - {None} - position.keys():
        known, found = _without_none(levels), _without_none(cells)
        texts = Counter(map(_text, known))
        alike = {_text(level): position[level] for level in known if texts[_text(level)] == 1}
        position = {cell: alike.get(_text(cell), _UNSEEN) for cell in found} | position
        unknown = [cell for cell in found if position[cell] == _UNSEEN]
        _refuse_other_type(column, known, found, unknown)
    return np.array([position.get(cell, _UNSEEN) for cell in cells], dtype=np.float64)


def _without_none(cells):
    return [cell for cell in cells if cell is not None]


def _text(cell):
    """What a file has for a cell, a whole number as an integer."""
    number = _NUMBER.fullmatch(str(cell))
    return number[1] if number and not number[2] else str(cell)


def _is_number(cell):
    return isinstance(cell, numbers.Number) or _NUMBER.fullmatch(str(cell)) is not None


def _refuse_other_type(column, levels, cells, unknown):
    """Raise ValueError if cells are of another type than the levels, which they lost by it."""
    if not levels or types_of(levels) & types_of(cells):
        return
    # Codes such as "02134" that a file has made numbers of.
    padded = [x for x in levels if isinstance(x, str) and x.isdigit() and not _is_number(x)]
    bare = {level.lstrip("0") for level in padded}
    lost = [cell for cell in unknown if _text(cell) in bare]
    are_alike = {*map(_is_number, levels)} & {*map(_is_number, cells)}
    few = len(cells) <= _FEW_CELLS and are_alike
    if not lost and (few or unknown != cells):
        return
    cells, name = lost or cells, column.name
    dtype = getattr(column.to_native(), "dtype", column.dtype)
    of_column = f"{'X' if isinstance(name, str) else 'pandas.DataFrame(X)'}[{name!r}]"
    if padded and all(_text(cell).isdigit() for cell in cells):
        width = max(map(len, padded))
        cast = f"{of_column}.astype('Int64').astype('string').str.zfill({width})"
    else:
        casts = {
            str: f"{of_column}.astype(str)",
            numbers.Number: f"pandas.to_numeric({of_column}, errors='coerce')",
        }
        cast = casts.get(*types_of(levels[:1]), "what those of fit were made by")
    raise ValueError(
        f"X has {cells[0]!r}, of {dtype}, in column {name!r}, whose levels were of "
        f"{type(levels[0]).__name__} when fitted, such as {levels[0]!r}, and is none of "
        f"them. Pass levels, not numbers of these, and make them of that type by {cast}."
    )
