"""Levels of a categorical column: how they are counted, sorted, and matched with other cells.

The levels of a column are its distinct cells, in the order of their codes 0, 1, 2, ...
The level None stands for missing cells.
"""

import itertools
import numbers
import re
from collections import Counter

import narwhals.stable.v2 as nw
import numpy as np

from ._base import warn_user
from ._validation import basic_types

# Codes of cells that match no level of the training rows: other levels, and missing cells.
UNSEEN, MISSING = -1.0, -2.0
# Number of distinct texts up to which a column is a category without a warning.
_MANY_LEVELS = 30
# A column of texts is suspected to hold numbers if at most this fraction of its levels are no
# numbers, such as "?" and "N/K" for missing cells, or "Total" in a footer.
_FEW_TEXTS = 0.1
# A number in a file: its whole part, and its fraction if that is not 0.
_NUMBER = re.compile(r"(-?(?:0|[1-9]\d*))(?:\.0+|(\.\d+))?")
# Number of cells that match no level up to which they are accepted as new levels, if they and
# the levels are all of different types.
_FEW_CELLS = 5


def is_category(column):
    """Return True for a column of categories or texts, by its type, or of objects as texts."""
    if column.dtype == nw.Object:
        return basic_types(column.drop_nulls().to_list()) <= {str}
    return column.dtype in (nw.Enum, nw.Categorical, nw.String)


def _factorize(column):
    """Return the position of each cell in the list of distinct cells, and this list.

    Positions of missing cells are -1.
    """
    import pandas as pd

    cells = nw.to_native(column, pass_through=True)
    if not isinstance(cells, pd.Series):
        cells = pd.Series(column.to_list(), dtype=object)
    # pandas guesses a type for objects in a series, but not for those in an array.
    cells = cells.to_numpy() if cells.dtype == object else cells
    # pandas factorizes an array of texts or categories in half the time that a series takes.
    cells = cells.array if isinstance(cells.dtype, pd.api.extensions.ExtensionDtype) else cells
    try:
        positions, cells = pd.factorize(cells)
    except TypeError as error:
        raise TypeError(
            f"X has cells in column {column.name!r} that cannot be levels of a category "
            f"({error}): convert the column to strings or numbers."
        ) from error
    return positions, cells.tolist()


def count_levels(column, ordered):
    """Count the rows of each level and of missing cells (None), as a Counter.

    For an ordered category the key is the tuple of all its levels, instead of each level.
    """
    if ordered:
        levels = tuple(column.cat.get_categories()) if column.dtype == nw.Enum else ()
        return Counter({levels: len(column), None: column.null_count()})
    positions, cells = _factorize(column)
    counts = np.bincount(positions + 1, minlength=len(cells) + 1)
    return +Counter(dict(zip([None, *cells], counts.tolist(), strict=True)))


def add_counts(a, b):
    """Add the Counters of the columns of two tables, which are dicts by name."""
    return {name: counts + b[name] for name, counts in a.items()}


def sort_levels(name, counts, ordered):
    """Return the levels of a column in the order of their codes, as a tuple.

    `counts` is the result of `count_levels`, and `name` that of the column in messages.
    """
    known = counts.keys() - {None}
    if ordered:  # then the keys are tuples of all levels, equal in all partitions
        _refuse_missing(name, counts[None])
        if len(known) > 1:
            orders = sorted(str(levels or "no order") for levels in known)
            raise ValueError(
                f"X has an ordered category in column {name!r} whose order differs from "
                f"partition to partition ({' or '.join(orders)}): give it one dtype, "
                f"as by X[{name!r}].astype(pandas.CategoricalDtype(levels, ordered=True))."
            )
        return next(iter(known), ())
    try:
        levels = sorted(known)
    except TypeError:  # levels of several types cannot be compared
        levels = sorted(known, key=lambda level: (str(type(level)), str(level)))
    return (*levels, *(counts.keys() - known))


def warn_of_odd_levels(name, n_rows, levels, refuse_texts):
    """Warn if a column of texts may not be a category.

    This is so if a few levels are texts and all others numbers, or if most rows have a text of
    their own. The latter raises ValueError if a text has several words and `refuse_texts` is
    True.
    """
    import pandas as pd

    cells = pd.Series(nonmissing(levels), dtype=object)
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
    finding = f"X has {len(levels)} different texts in the {n_rows} rows of column {name!r}"
    if refuse_texts and any(isinstance(level, str) and " " in level for level in levels):
        raise ValueError(
            f"{finding}, too many to read it as a category: pass that column alone to read it "
            "as text, or leave it out."
        )
    warn_user(
        f"{finding}, which is read as a category although it has so many levels: drop it, "
        "convert amounts by pandas.to_numeric, or make numbers of dates, such as the days "
        "since the first."
    )


def _refuse_missing(name, n_missing):
    """Raise ValueError if an ordered category has missing cells."""
    if n_missing:
        raise ValueError(
            f"X has {n_missing} missing cells in column {name!r}, an ordered category, "
            "where they have no place in the order: fill them, or make the category unordered "
            "so that missing becomes a level."
        )


def encode_levels(column, levels, ordered):
    """Return the code of each cell of a column; `UNSEEN` or `MISSING` if no level matches.

    `column` is a series of narwhals or of pandas. Cells of an ordered category that match no
    level raise ValueError.
    """
    positions, cells = _factorize(column)
    # None is the last cell, at position -1.
    codes = _match_levels(column, levels, [*cells, None])
    if ordered:
        _refuse_missing(column.name, int((positions < 0).sum()))
        unknown = sorted(map(str, itertools.compress(cells, codes == UNSEEN)))
        if unknown:
            raise ValueError(
                f"X has unknown levels {unknown} in the ordered category {column.name!r}, "
                f"whose levels are {list(levels)}: fit with a dtype that lists every level."
            )
    return codes[positions]


def new_levels(column, levels, counts):
    """Return the levels of a column, counted in `counts`, that match none of `levels`."""
    candidates = sort_levels(column.name, counts, ordered=False)
    codes = _match_levels(column, levels, candidates)
    return tuple(itertools.compress(candidates, codes < 0))


def _match_levels(column, levels, cells):
    """Return the code of each cell, `UNSEEN` or `MISSING` if it matches no level.

    A cell that equals no level matches the level with the same text in a file, unless several
    levels have this text. None matches the level None.
    """
    codes = {None: MISSING} | {level: code for code, level in enumerate(levels)}
    if set(cells) - {None} - codes.keys():
        known, present = nonmissing(levels), nonmissing(cells)
        texts = {level: _text_in_file(level) for level in known}
        counts = Counter(texts.values())
        code_of_text = {
            text: codes[level] for level, text in texts.items() if counts[text] == 1
        }
        matched = {cell: code_of_text.get(_text_in_file(cell), UNSEEN) for cell in present}
        codes = matched | codes
        unknown = [cell for cell in present if codes[cell] == UNSEEN]
        _refuse_changed_type(column, known, present, unknown)
    return np.array([codes.get(cell, UNSEEN) for cell in cells], dtype=np.float64)


def nonmissing(cells):
    """Return the cells that are not None."""
    return [cell for cell in cells if cell is not None]


def _text_in_file(cell):
    """Return the text of a cell in a file; whole numbers are written as integers."""
    number = _NUMBER.fullmatch(str(cell))
    return number[1] if number and not number[2] else str(cell)


def _is_number(cell):
    return isinstance(cell, numbers.Number) or _NUMBER.fullmatch(str(cell)) is not None


def _refuse_changed_type(column, levels, cells, unknown):
    """Raise ValueError if cells match no level since their type was changed, as by a file.

    `unknown` are those of the cells that match no level.
    """
    if not levels or basic_types(levels) & basic_types(cells):
        return
    # Levels with leading zeros, such as "02134", become numbers in a file.
    padded = [x for x in levels if isinstance(x, str) and x.isdigit() and not _is_number(x)]
    without_zeros = {level.lstrip("0") for level in padded}
    stripped = [cell for cell in unknown if _text_in_file(cell) in without_zeros]
    # A few cells may be new levels, if levels and cells are both numbers, or both not.
    same_kind = {*map(_is_number, levels)} & {*map(_is_number, cells)}
    may_be_new = len(cells) <= _FEW_CELLS and same_kind
    if not stripped and (may_be_new or unknown != cells):
        return
    cells, name = stripped or cells, column.name
    native = nw.to_native(column, pass_through=True)
    dtype = getattr(native, "dtype", column.dtype)
    cast = f"{'X' if isinstance(name, str) else 'pandas.DataFrame(X)'}[{name!r}]"
    if padded and all(_text_in_file(cell).isdigit() for cell in cells):
        cast += f".astype('Int64').astype('string').str.zfill({max(map(len, padded))})"
    elif isinstance(levels[0], str):
        cast += ".astype(str)"
    elif basic_types(levels[:1]) == {numbers.Number}:
        cast = f"pandas.to_numeric({cast}, errors='coerce')"
    else:
        cast = "the same conversion as in the fit"
    raise ValueError(
        f"X has {cells[0]!r}, of {dtype}, in column {name!r}, which is none of its levels in "
        f"the fit. These are of type {type(levels[0]).__name__}, such as {levels[0]!r}: pass "
        f"the levels themselves, not their codes, and convert them by {cast}."
    )
