"""Levels of a categorical column: counted, put in order, and found again in other cells."""

import itertools
import numbers
import re
from collections import Counter

import narwhals.stable.v2 as nw
import numpy as np

from ._base import warn_user
from ._validation import types_of

# Codes of cells that are no level of the training rows: another level, and no value at all.
UNSEEN, MISSING = -1.0, -2.0
# Texts of a column up to which they are a category without doubt.
_MANY_LEVELS = 30
# A column of texts holds numbers if at most this share of its levels are no numbers, such as
# "?" and "N/K" for missing cells, or "Total" in a footer.
_FEW_TEXTS = 0.1
# A number in a file: its whole part, and its fraction if there is one.
_NUMBER = re.compile(r"(-?(?:0|[1-9]\d*))(?:\.0+|(\.\d+))?")
# New levels, all of a type that no known one has, up to which they are taken for new ones.
_FEW_CELLS = 5


def has_levels(column):
    """True for a category by its type, and for objects that are all texts."""
    if column.dtype == nw.Object:
        return types_of(column.drop_nulls().to_list()) <= {str}
    return column.dtype in (nw.Enum, nw.Categorical, nw.String)


def _factorized(column):
    """Place of each cell among those that differ, -1 where missing, and these as a list."""
    import pandas as pd

    cells = nw.to_native(column, pass_through=True)
    if not isinstance(cells, pd.Series):
        cells = pd.Series(column.to_list(), dtype=object)
    # Of an array of objects pandas guesses no type.
    cells = cells.to_numpy() if cells.dtype == object else cells
    # An array of texts or categories takes half the time of its series.
    cells = cells.array if isinstance(cells.dtype, pd.api.extensions.ExtensionDtype) else cells
    try:
        places, cells = pd.factorize(cells)
    except TypeError as error:
        raise TypeError(
            f"X has cells in column {column.name!r} that cannot be levels of a category "
            f"({error}): convert the column to strings or numbers."
        ) from error
    return places, cells.tolist()


def count_levels(column, ordered):
    """How many rows have each level; the levels of an ordered category count as one."""
    if ordered:
        levels = tuple(column.cat.get_categories()) if column.dtype == nw.Enum else ()
        return Counter({levels: len(column), None: column.null_count()})
    places, cells = _factorized(column)
    counts = np.bincount(places + 1, minlength=len(cells) + 1)
    return +Counter(dict(zip([None, *cells], counts.tolist(), strict=True)))


def joined(ours, theirs):
    """Counts of the columns of two tables."""
    return {name: counts + theirs[name] for name, counts in ours.items()}


def levels_of(name, counts, ordered):
    """Levels in the order of their codes."""
    known = counts.keys() - {None}
    if ordered:
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


def doubt_levels(name, n_rows, levels, refuse_texts):
    """Warn if a few levels are texts beside numbers, or if most rows have their own text.

    The latter is a ValueError if texts are refused.
    """
    import pandas as pd

    cells = pd.Series(present(levels), dtype=object)
    texts = cells[pd.to_numeric(cells, errors="coerce").isna()].tolist()
    if 0 < len(texts) <= _FEW_TEXTS * len(cells):
        warn_user(
            f"X has both strings, such as {texts[:3]}, and numbers in column {name!r}, which "
            f"is read as a category: pass pandas.to_numeric(X[{name!r}], errors='coerce') if "
            f"it has numbers, or X[{name!r}].astype('category') if it has categories."
        )
        return
    if len(levels) <= max(_MANY_LEVELS, n_rows / 2):
        return
    found = f"X has {len(levels)} different texts in the {n_rows} rows of column {name!r}"
    if refuse_texts and any(isinstance(level, str) and " " in level for level in levels):
        raise ValueError(
            f"{found}, too many to read it as a category: pass that column alone to read it as "
            "text, or leave it out."
        )
    warn_user(
        f"{found}, which is read as a category although it has so many levels: drop it, "
        "convert amounts by pandas.to_numeric, or make numbers of dates, such as the days "
        "since the first."
    )


def _refuse_missing(name, n_missing):
    if n_missing:
        raise ValueError(
            f"X has {n_missing} missing cells in column {name!r}, an ordered category, "
            "where they have no place in the order: fill them, or make the category unordered "
            "so that missing becomes a level."
        )


def codes_of(column, levels, ordered):
    """Return the code of the level of each cell, `UNSEEN` or `MISSING` if it has none.

    `column` is a series of narwhals or of pandas.
    """
    places, cells = _factorized(column)
    # Missing cells are at place -1.
    codes = _matched(column, levels, [*cells, None])
    if ordered:
        _refuse_missing(column.name, int((places < 0).sum()))
        unknown = sorted(map(str, itertools.compress(cells, codes == UNSEEN)))
        if unknown:
            raise ValueError(
                f"X has unknown levels {unknown} in the ordered category {column.name!r}, "
                f"whose levels are {list(levels)}: fit with a dtype that lists every level."
            )
    return codes[places]


def new_levels(column, levels, counts):
    """The levels that a column has beyond those that are known."""
    more = levels_of(column.name, counts, ordered=False)
    return tuple(itertools.compress(more, _matched(column, levels, more) < 0))


def _matched(column, levels, cells):
    """Return codes of the cells' levels, or of the only levels that read the same in a file."""
    position = {None: MISSING} | {level: code for code, level in enumerate(levels)}
    if set(cells) - {None} - position.keys():
        known, found = present(levels), present(cells)
        texts = Counter(map(_text, known))
        alike = {_text(level): position[level] for level in known if texts[_text(level)] == 1}
        position = {cell: alike.get(_text(cell), UNSEEN) for cell in found} | position
        unknown = [cell for cell in found if position[cell] == UNSEEN]
        _refuse_other_type(column, known, found, unknown)
    return np.array([position.get(cell, UNSEEN) for cell in cells], dtype=np.float64)


def present(cells):
    """Those of some cells that are not missing."""
    return [cell for cell in cells if cell is not None]


def _text(cell):
    """What a file has for a cell, a whole number as an integer."""
    number = _NUMBER.fullmatch(str(cell))
    return number[1] if number and not number[2] else str(cell)


def _is_number(cell):
    return isinstance(cell, numbers.Number) or _NUMBER.fullmatch(str(cell)) is not None


def _refuse_other_type(column, levels, cells, unknown):
    """Raise ValueError if a change of type, as by a file, made cells unlike the levels."""
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
    native = nw.to_native(column, pass_through=True)
    dtype = getattr(native, "dtype", column.dtype)
    cast = f"{'X' if isinstance(name, str) else 'pandas.DataFrame(X)'}[{name!r}]"
    if padded and all(_text(cell).isdigit() for cell in cells):
        cast += f".astype('Int64').astype('string').str.zfill({max(map(len, padded))})"
    elif isinstance(levels[0], str):
        cast += ".astype(str)"
    elif types_of(levels[:1]) == {numbers.Number}:
        cast = f"pandas.to_numeric({cast}, errors='coerce')"
    else:
        cast = "the same conversion as in the fit"
    raise ValueError(
        f"X has {cells[0]!r}, of {dtype}, in column {name!r}, which is none of its levels in "
        f"the fit. These are of type {type(levels[0]).__name__}, such as {levels[0]!r}: pass "
        f"the levels themselves, not their codes, and convert them by {cast}."
    )
