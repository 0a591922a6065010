"""Columns of a data frame: numbers stay numbers, categories become codes."""

import narwhals.stable.v2 as nw
import numpy as np

NUMERIC, UNORDERED, ORDERED = "numeric", "unordered", "ordered"
_UNSEEN = -1.0


def learn_categories(X, *, ordered=True):
    """Levels of the categorical columns of a frame.

    Columns of a categorical dtype and columns of strings are categories. A dtype whose
    categories are ordered makes ordered ones, with all its levels in their order; others
    have the levels that occur. Missing cells of unordered categories are a level, None.

    Parameters
    ----------
    X : object
        What the user passed: a data frame, or anything else.
    ordered : bool, default=True
        Whether ordered categories are told from others.

    Returns
    -------
    categories : list of (ndarray or None), or None
        For each column its levels, None for a column of numbers. None altogether if no
        column is categorical.
    kinds : list of str, or None
        For each column "numeric", "unordered" or "ordered".

    Raises
    ------
    ValueError
        If an ordered category has missing cells: they have no place in the order.
    """
    frame = _as_frame(X)
    if frame is None:
        return None, None
    columns = list(frame.iter_columns())
    kinds = [_kind(column) for column in columns]
    if all(kind == NUMERIC for kind in kinds):
        return None, None
    if not ordered:
        kinds = [NUMERIC if kind == NUMERIC else UNORDERED for kind in kinds]
    return [_levels(*pair) for pair in zip(columns, kinds, strict=True)], kinds


def encode_categories(X, categories, kinds):
    """The frame as numbers, with the position of its level for every categorical cell.

    Parameters
    ----------
    X : object
        What the user passed.
    categories, kinds : list or None
        From :func:`learn_categories`.

    Returns
    -------
    X : object
        A frame of the same kind and names, all numeric; unordered levels that are not
        among those learnt are -1. `X` itself where there are no categories.

    Raises
    ------
    ValueError
        If `X` is no frame, or an ordered level is not known.
    """
    if categories is None:
        return X
    frame = _as_frame(X)
    if frame is None or len(frame.columns) != len(categories):
        shape = getattr(X, "shape", None)
        raise ValueError(
            f"X of type {type(X).__name__} and shape {shape} has not the {len(categories)} "
            "columns, some of them categorical, that were fitted: pass a data frame with "
            "the same columns."
        )
    encoded = []
    for column, levels, kind in zip(frame.iter_columns(), categories, kinds, strict=True):
        if kind != NUMERIC:
            codes = _codes(column, levels, kind)
            column = nw.new_series(column.name, codes, backend=frame.implementation)
            column = _with_index_of(column, frame)
        elif _kind(column) != NUMERIC:
            raise ValueError(
                f"X has categories in column {column.name!r}, which was numeric when fitted: "
                "convert it to numbers."
            )
        encoded.append(column)
    return frame.select(encoded).to_native()


def extend_categories(X, categories, kinds):
    """The levels learnt, and behind them what further rows bring.

    Parameters
    ----------
    X : object
        Further rows.
    categories, kinds : list or None
        From :func:`learn_categories`.

    Returns
    -------
    categories : list or None
        Unordered categories with their new levels at the end; codes stay what they are.
    """
    frame = _as_frame(X)
    if categories is None or frame is None or len(frame.columns) != len(categories):
        return categories
    extended = []
    for column, levels, kind in zip(frame.iter_columns(), categories, kinds, strict=True):
        if kind == UNORDERED:
            new = [level for level in _levels(column, kind) if level not in set(levels)]
            levels = _as_levels([*levels, *new])
        extended.append(levels)
    return extended


def _as_frame(X):
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _with_index_of(column, frame):
    # pandas aligns columns by their index.
    index = nw.maybe_get_index(frame)
    return column if index is None else nw.maybe_set_index(column, index=index)


def _kind(column):
    if column.dtype == nw.Enum:
        return ORDERED
    if column.dtype == nw.Categorical or column.dtype == nw.String:
        return UNORDERED
    if column.dtype == nw.Object and all(
        isinstance(cell, str) for cell in column.drop_nulls().to_list()
    ):
        return UNORDERED
    return NUMERIC


def _levels(column, kind):
    if kind == NUMERIC:
        return None
    if kind == ORDERED:
        _refuse_missing(column)
        return _as_levels(column.cat.get_categories().to_list())
    seen = set(column.drop_nulls().to_list())
    try:
        levels = sorted(seen)
    except TypeError:
        levels = sorted(seen, key=lambda level: (str(type(level)), str(level)))
    return _as_levels([*levels, None] if column.null_count() else levels)


def _refuse_missing(column):
    n_missing = column.null_count()
    if n_missing:
        raise ValueError(
            f"X has {n_missing} missing cells in column {column.name!r}, an ordered category, "
            "where they have no place in the order: fill them, or make the category unordered "
            "so that missing becomes a level."
        )


def _as_levels(levels):
    array = np.empty(len(levels), dtype=object)
    array[:] = levels
    return array


def _codes(column, levels, kind):
    position = {level: float(code) for code, level in enumerate(levels)}
    present = (~column.is_null()).to_list()
    cells = [
        cell if there else None for cell, there in zip(column.to_list(), present, strict=True)
    ]
    if kind == ORDERED:
        _refuse_missing(column)
        unknown = sorted({str(cell) for cell in cells if cell not in position})
        if unknown:
            raise ValueError(
                f"X has unknown levels {unknown} in the ordered category {column.name!r}, "
                f"whose levels are {list(levels)}: fit with a dtype that lists every level."
            )
    return [position.get(cell, _UNSEEN) for cell in cells]
