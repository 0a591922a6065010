"""Kernel sums along one feature, pair by pair: exact, for ranges of few keys."""

import numpy as np

# Pairs at a time: the temporaries stay in the processor's cache.
_BLOCK_PAIRS = 2**16


def pair_sums(x, columns, queries, ranges, kernel, scale, degree, own=None):
    """Sums over a range of sorted keys for each query.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Keys in ascending order.
    columns : ndarray of shape (c, n)
        What is summed.
    queries : ndarray of shape (m,)
    ranges : pair of int ndarray of shape (m,)
        First key of each query, and the key behind its last.
    kernel : RadialKernel
    scale : ndarray of shape (m,)
        The bandwidth.
    degree : int
    own : int ndarray of shape (m,), default=None
        Key to leave out of each query's sums; -1 for none.

    Returns
    -------
    shift : ndarray of shape (m,)
        Logarithm of what the sums are divided by, the largest weight of the kernel; -inf
        where no key is in the range.
    sums : ndarray of shape (2 * degree + 1, c, m)
    """
    low, high = ranges
    counts = high - low
    bounded = np.isfinite(kernel.support)
    shift = np.full(len(queries), -np.inf)
    sums = np.zeros((2 * degree + 1, len(columns), len(queries)))
    for part in blocks_of_pairs(counts):
        count = counts[part]
        starts = np.cumsum(count) - count
        keys = np.arange(count.sum()) + np.repeat(low[part] - starts, count)
        u = (x[keys] - np.repeat(queries[part], count)) / np.repeat(scale[part], count)
        left_out = None if own is None else keys == np.repeat(own[part], count)
        with np.errstate(over="ignore"):
            weights = kernel.profile(u * u) if bounded else kernel.log_profile(u * u)
        if left_out is not None:
            weights[left_out] = 0.0 if bounded else -np.inf
        if bounded:
            shift[part] = np.where(np.add.reduceat(weights, starts) > 0, 0.0, -np.inf)
        else:
            largest = np.maximum.reduceat(weights, starts)
            shift[part] = largest
            base = np.where(np.isfinite(largest), largest, 0.0)
            weights = np.exp(weights - np.repeat(base, count))
        for c, column in enumerate(columns):
            terms = weights * column[keys]
            for e in range(2 * degree + 1):
                if e:
                    terms *= u
                sums[e, c, part] = np.add.reduceat(terms, starts)
                if c and e == degree:
                    break
    return shift, sums


def blocks_of_pairs(counts):
    """Positions of queries that have keys, few enough pairs at a time.

    Parameters
    ----------
    counts : int ndarray of shape (m,)
        How many keys each query has.

    Yields
    ------
    queries : int ndarray
    """
    rows = np.flatnonzero(counts)
    ends = np.cumsum(counts[rows])
    first = 0
    while first < len(rows):
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + _BLOCK_PAIRS, "right")))
        yield rows[first:last]
        first = last
