"""Bounds of columns, as users pass them."""

import numbers

import numpy as np

from .._spread import ends


def check_bounds(bounds, columns, keys, names):
    """Bounds of each column, (n_features, 2), or None where no column has any."""
    n_features = len(columns.kinds)
    pairs = [None] * n_features if bounds is None else bounds
    if _is_pair(bounds):
        pairs = [bounds if is_numeric else None for is_numeric in columns.is_numeric]
    valid = isinstance(pairs, (tuple, list)) and len(pairs) == n_features
    if not valid or not all(own is None or _is_pair(own) for own in pairs):
        raise ValueError(
            f"bounds={bounds!r} is not valid: pass None, a pair such as (0, None) for all "
            "numeric columns, whose first number is the smaller, or a list with a pair or None "
            f"for each of the {n_features} columns."
        )
    # None becomes NaN.
    found = np.array([own or (None, None) for own in pairs], dtype=np.float64)
    found = np.where(np.isnan(found), [-np.inf, np.inf], found)
    bounded = np.isfinite(found).any(axis=1)
    for j in np.flatnonzero(bounded).tolist():
        if not columns.is_numeric[j]:
            raise ValueError(
                f"bounds={bounds!r} are for numbers and column {names[j]!r} is a category: "
                "pass None for it."
            )
        column, (low, high) = keys[:, j], found[j]
        least, largest, _ = ends(column)
        if least < low or largest > high:
            *_, n_outside = ends((column < low) | (column > high))
            raise ValueError(
                f"bounds={bounds!r} leave out {n_outside} of the values of column "
                f"{names[j]!r}, which are from {least:g} to {largest:g}: remove these rows, or "
                "pass wider bounds."
            )
    return found if bounded.any() else None


def _is_pair(given):
    """True for (low, high), either of them None or the lower one less."""
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        return False
    if not all(x is None or isinstance(x, numbers.Real) for x in given):
        return False
    low, high = given
    return (-np.inf if low is None else low) < (np.inf if high is None else high)
