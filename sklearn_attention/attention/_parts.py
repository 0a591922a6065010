"""Averages and local polynomials over keys in memory and in memory maps."""

import numpy as np

from .._blocks import blocks
from .._partitions import is_partitioned, merged
from ._over_partitions import over_partitions
from ._read import check_own_keys
from ._smoother import joined
from ._sums import refuse_empty

# Keys that are prepared at a time, unless there are more queries; and queries.
MOST_KEYS, MOST_QUERIES = 2**20, 2**22


def reduce(smoother, queries, keys, values, weights=None, query_scale=None, own=False):
    """Fields of an average or a local polynomial, in the library and precision of the input.

    An average's are the averages and logarithms of the weights' sums; a polynomial's values,
    slopes, those logarithms and ridges. Arrays of Dask where queries are a Dask collection.
    """
    if is_partitioned(queries, keys, values, weights):
        return over_partitions(smoother, queries, keys, values, weights, query_scale, own)
    at_once = MOST_QUERIES
    if not isinstance(queries, np.ndarray) or queries.ndim == 0 or len(queries) <= at_once:
        fields, usable, result = _some(
            smoother, queries, keys, values, weights, own, query_scale
        )
    else:
        found = []
        for rows in _even_blocks(len(queries), at_once):
            scale = None if query_scale is None else query_scale[rows]
            left = np.arange(len(queries))[rows] if own is True else own
            left = left[rows] if np.ndim(left) and own is not True else left
            found.append(_some(smoother, queries[rows], keys, values, weights, left, scale))
        fields, usable, (*_, result) = zip(*found, strict=True)
        fields = list(map(np.concatenate, zip(*fields, strict=True)))
        usable = np.concatenate(usable)
    if smoother.empty == "raise":
        refuse_empty(usable)
    least = _at_least(smoother)
    return [result(field, at) for field, at in zip(fields, least, strict=True)]


def _some(smoother, queries, keys, values, weights, own, query_scale):
    """Fields, which queries have weights, and how to hand results back."""
    tables = [keys, values, *([] if weights is None else [weights])]
    arrays = all(isinstance(x, np.ndarray) and x.ndim for x in (queries, *tables))
    size = max(MOST_KEYS, len(queries)) if arrays else 0
    if not arrays or len({len(x) for x in tables}) > 1 or len(keys) <= size:
        fields, usable, problem = smoother.whole(
            queries, keys, values, weights, own, query_scale
        )
        return fields, usable, problem.result
    chunks = list(_even_blocks(len(keys), size))
    own = check_own_keys(own, queries, len(keys))
    center = smoother.center(
        (values[chunk], None if weights is None else weights[chunk]) for chunk in chunks
    )

    def total(stage, rows):
        scale = None if query_scale is None else query_scale[rows]
        left_out = None if own is None else own[rows]
        parts = (
            smoother.part(
                stage, center, queries[rows], None if own is None else left_out - chunk.start,
                scale, *(None if x is None else x[chunk] for x in (keys, values, weights)),
            )
            for chunk in chunks
        )  # fmt: skip
        return merged(joined, parts)

    fields, usable = smoother.finished(total, center, len(queries), keys.shape[1])
    return fields, usable, smoother.problem(queries[:0], keys[:1], values[:1], None).result


def _at_least(smoother):
    """Precision of the fields where that of the input is too low for them."""
    # Half precision would not hold the logarithms of small sums.
    return (None, None, "single", None) if smoother.degree else (None, "single")


def _even_blocks(n, size):
    """Slices of at most that size, which are about equal."""
    return blocks(n, -(-n // -(-n // size)))
