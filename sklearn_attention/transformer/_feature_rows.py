"""Rows of a table: numbers standardised and placed among quantiles, levels as codes."""

import numpy as np

from ._rows import TableRows
from ._scale import level_and_spread

# Intervals between quantiles, at most, in which a number's token may bend.
N_PIECES = 32
# How many standard deviations from the mean a number counts for, at most.
_FARTHEST = 5.0


def learn_scales(X, numeric):
    """What numbers are seen relative to.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN where a number is missing.
    numeric : list of int
        Columns of numbers.

    Returns
    -------
    scales : dict
        ``center`` and ``scale``, mean and standard deviation of each of them, and ``knots``,
        its distinct quantiles, a list of arrays.
    """
    columns = [X[:, j][~np.isnan(X[:, j])] for j in numeric]
    measures = np.array([level_and_spread(column) for column in columns]).reshape(-1, 2)
    levels = np.linspace(0, 1, N_PIECES + 1)
    knots = [
        np.unique(np.quantile(column, levels)) if len(column) else np.zeros(1)
        for column in columns
    ]
    return {"center": measures[:, 0], "scale": measures[:, 1], "knots": knots}


def feature_rows(X, n_levels, scales):
    """Rows of a table as the network takes them.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Numbers, NaN where missing, and codes of levels, -1 where unknown.
    n_levels : list of int or None
        For each column how many levels count, codes beyond being missing; None for numbers.
    scales : dict
        From :func:`learn_scales`.

    Returns
    -------
    rows : TableRows
        Of numbers, the same standardised, places among the quantiles, and codes, -1 where
        missing.
    """
    numeric = [j for j, n in enumerate(n_levels) if n is None]
    numbers = X[:, numeric]
    with np.errstate(over="ignore"):
        standardised = (numbers - scales["center"]) / scales["scale"]
    places = np.full_like(numbers, np.nan)
    for j, knots in enumerate(scales["knots"]):
        there = ~np.isnan(numbers[:, j])
        places[there, j] = np.interp(numbers[there, j], knots, np.arange(len(knots)))
    codes = np.delete(X, numeric, axis=1).astype(np.int64)
    known = [n for n in n_levels if n is not None]
    codes[codes >= np.array(known, dtype=np.int64)] = -1
    return TableRows(
        numbers,
        np.clip(standardised, -_FARTHEST, _FARTHEST).astype(np.float32),
        places.astype(np.float32),
        codes,
    )
