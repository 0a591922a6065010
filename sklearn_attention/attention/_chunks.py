"""More keys than are prepared at once: problems of some of them each, and their sums."""

import functools
from dataclasses import replace

import numpy as np

from .._blocks import blocks
from ..kernels import as_kernel
from ._empty import fallback
from ._kernel_sums import kernel_sums
from ._linear_time import linear_time_sums
from ._local_sums import join_local_sums, local_sums
from ._partial import merge, refuse_empty
from ._problem import prepare

# Keys that are prepared at a time, unless there are more queries; and queries.
MOST_KEYS, MOST_QUERIES = 2**20, 2**22
# Keys that stand for all where it is asked what weighs next to nothing.
SAMPLE = 2**16


class Chunks:
    """Problems over all keys, or over some of them at a time where they are many.

    Parameters
    ----------
    queries, keys, values, kernel
        As for :func:`attend`. Many keys are arrays or memory maps, which stay on disk.
    algorithm : {"auto", "dense"}, default="auto"
    degree : int, default=0
        Of local polynomials; above 0 keys are in chunks if their sums take linear time.
    seen : ndarray of shape (n_queries,), default=None
        Logarithm of what the weights of more keys, to which these belong, sum to at least.
    sample_weight, leave_one_out, bandwidth, **options
        As for :func:`prepare`. To leave keys out takes all of them at once.

    Attributes
    ----------
    several : bool
        Whether there is more than one chunk.
    answer : Answer
        How to hand results back, once a problem was made.
    """

    def __init__(
        self, queries, keys, values, kernel, *, bandwidth, algorithm="auto", degree=0,
        seen=None, sample_weight=None, leave_one_out=False, **options,
    ):  # fmt: skip
        self._queries, self._keys, self._values = queries, keys, values
        self._weights, self.seen = sample_weight, seen
        self._kernel, self._bandwidth, self._degree = as_kernel(kernel), bandwidth, degree
        self._options = {"leave_one_out": leave_one_out, "bandwidth": bandwidth} | options
        self._algorithm, self._rows = algorithm, None
        if leave_one_out is False and self._are_tables():
            n_keys, size = len(keys), max(MOST_KEYS, len(queries))
            if n_keys > size and (self._look_ahead() or degree == 0):
                self._rows = _even_blocks(n_keys, size)
        self.several = self._rows is not None

    def _are_tables(self):
        """Whether these are arrays of as many rows each: others get their error elsewhere."""
        tables = [self._keys, self._values]
        tables += [] if self._weights is None else [self._weights]
        arrays = all(isinstance(x, np.ndarray) and x.ndim for x in (self._queries, *tables))
        return arrays and len(set(map(len, tables))) == 1

    def _look_ahead(self):
        """Find out what a sample weighs, and so all keys at least; whether that is fast."""
        if self._algorithm != "auto":
            return False
        n_keys = len(self._keys)
        sample = slice(None, None, -(-n_keys // SAMPLE))
        if self._weights is not None and not self._weights[sample].any():
            sample = slice(int(self._weights.argmax()), None, n_keys)
        problem = self._problem(sample)
        if linear_time_sums(problem, self._degree) is None:
            return False
        part = kernel_sums(replace(problem, values=problem.values[:, :0]))
        with np.errstate(divide="ignore", invalid="ignore"):
            seen = part.shift + np.log(part.denominator) + problem.log_weight_scale
        # Of two lower bounds the larger, where both are numbers.
        self.seen = np.fmax(seen, -np.inf if self.seen is None else self.seen)
        return True

    def _problem(self, rows):
        given = self._keys, self._values, self._weights
        if rows is not None:
            given = (None if x is None else x[rows] for x in given)
        keys, values, weights = given
        problem, self.answer, _ = prepare(
            self._queries, keys, values, self._kernel, sample_weight=weights, seen=self.seen,
            **self._options,
        )  # fmt: skip
        return problem

    def __iter__(self):
        rows, weights = self._rows or [None], self._weights
        if self.several and weights is not None:
            rows = [some for some in rows if weights[some].any()] or rows
        return map(self._problem, rows)

    def total(self, empty, *, all_keys=True):
        """The average over all keys before it is divided.

        Parameters
        ----------
        empty : str
            The policy, checked.
        all_keys : bool, default=True
            Whether no further keys will be merged in.

        Returns
        -------
        part : Part
        """
        all_keys = all_keys and not self.several

        def unfinished(problem):
            part = kernel_sums(problem, self._algorithm, self._options["device"])
            part = part._replace(shift=part.shift + problem.log_weight_scale)
            return part._replace(fallback=fallback(problem, part, empty, all_keys=all_keys))

        return functools.reduce(merge, map(unfinished, self))

    def local_sums(self, center, empty):
        """Sums that local polynomials are made of.

        Parameters
        ----------
        center : ndarray of shape (n_values,)
            What is subtracted from the values.
        empty : {"nearest", "mean", "nan"}
            What answers for queries without weights.

        Returns
        -------
        sums : LocalSums
        """
        found = (local_sums(problem, self._degree, center, empty) for problem in self)
        return functools.reduce(join_local_sums, found)


def in_blocks(function, queries, *args, empty, **options):
    """Results of a function of queries for many of these, some at a time.

    Parameters
    ----------
    function : callable
        ``function(queries, *args, empty=..., **options)`` returns a tuple of arrays, averages
        first.
    queries : ndarray
    empty : str
        The policy.

    Returns
    -------
    found : list of ndarray
    """
    # A block would count its own queries alone.
    policy = "nan" if empty == "raise" else empty
    found = [
        function(queries[rows], *args, empty=policy, **options)
        for rows in _even_blocks(len(queries), MOST_QUERIES)
    ]
    found = list(map(np.concatenate, zip(*found, strict=True)))
    if empty == "raise":
        refuse_empty(~np.isnan(found[0].reshape(len(queries), -1)).any(axis=1))
    return found


def are_many(queries):
    """Whether queries are to be taken in blocks."""
    return isinstance(queries, np.ndarray) and queries.ndim > 0 and len(queries) > MOST_QUERIES


def _even_blocks(n, size):
    """Slices of at most that size, which are about equal."""
    return list(blocks(n, -(-n // -(-n // size))))
