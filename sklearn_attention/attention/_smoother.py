"""Sums over all keys or a part of them, and averages or polynomials from the sums."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._blocks import IN_MEMORY, blocks
from .._partitions import merged
from .._spread import deviation_of, join_spreads, spread
from .._validation import check_bandwidth, check_choice
from ..kernels._base import as_kernel
from ._read import as_given, as_passed, check_own_keys, read
from ._reduce import ALGORITHMS, Reduction, form_along
from ._solve import Basis, local_fit, local_unit
from ._sums import EMPTY_POLICIES

# Keys that are prepared at a time, unless there are more queries; and queries.
MOST_KEYS, MOST_QUERIES = IN_MEMORY // 32, IN_MEMORY // 8
# Of the queries in a part whose sums are not accurate there, so large a share is summed
# pair by pair at once; where there are more, the sums over all parts may suffice.
_FEW = 0.1
# Queries further away than this many bandwidths are moved to here: the squares of their
# squares would overflow.
_FURTHEST = 1e60


@dataclass(frozen=True)
class Smoother:
    """Quantities to be summed, and how they become an average or a local polynomial."""

    kernel: Any
    bandwidth: Any = 1.0
    degree: int = 0
    empty: str = "nearest"
    algorithm: str = "auto"

    def __post_init__(self):
        check_choice("algorithm", self.algorithm, ALGORITHMS)
        check_choice("empty", self.empty, EMPTY_POLICIES)
        object.__setattr__(self, "kernel", as_kernel(self.kernel))

    def problem(self, queries, keys, values, weights, own=False, query_scale=None):
        """The problem for some queries and keys."""
        problem, _ = read(
            queries, keys, values, self.kernel, bandwidth=self.bandwidth,
            query_scale=query_scale, sample_weight=weights, leave_one_out=own,
        )  # fmt: skip
        if not self.degree:
            return problem
        return replace(problem, queries=problem.queries.clip(-_FURTHEST, _FURTHEST))

    def reduction(self, problem):
        return Reduction(problem, self.degree, empty=self.empty, algorithm=self.algorithm)

    def whole(self, *given):
        """Fields, and the problem: of all keys at once."""
        problem, center = self.problem(*given), 0.0
        if self.degree:
            problem, center = problem.centred()
        some = problem
        if not len(problem.queries):  # what there would be for any
            some = replace(problem, queries=problem.keys[:1], own_key=None, query_scale=None)
        (fields,) = self.reduction(some).fold(self._finish)
        fields = self._in_units(fields, center, problem.keys.shape[1])
        fields[1 if not self.degree else 2] += problem.log_weight_scale
        return [field[: len(problem.queries)] for field in fields], problem

    def _finish(self, sums, moments, rows):
        """Averages and logarithms of the sums of weights, or polynomials."""
        if not self.degree:
            return moments.cross[:, 0], sums.log_total
        values, linear, ridge, distance = local_fit(moments)
        return values, linear, sums.log_total, ridge, distance

    def part(self, center, queries, own, query_scale, keys, values, weights, *, final):
        """Sums over some of the keys, and their spread; None where nothing has weight.

        The final ones are accurate for each query and have fallbacks. Own keys are positions,
        or the position of the first of consecutive ones.
        """
        if not len(keys) or (weights is not None and not weights.any()):
            return None
        if own is not None:
            own = own + np.arange(len(queries)) if np.ndim(own) == 0 else own
            own = np.where((own >= 0) & (own < len(keys)), own, -1)
        own = False if own is None else own
        problem = self.problem(queries, keys, values, weights, own, query_scale)
        if self.degree:
            problem = replace(problem, values=problem.values - center)
        reduction = self.reduction(problem)
        found = reduction.sums(most=1.0 if final else _FEW)
        if final:
            found = reduction.with_answers(found, all_keys=False)
        found = with_weights(found, problem.log_weight_scale)
        return found, spread(keys, weights) if self.degree else None

    def queries_at_once(self, keys, values, *, in_parts=None):
        """Number of queries whose sums may be in memory."""
        if in_parts is None:
            in_parts = isinstance(keys, np.ndarray) and keys.ndim and len(keys) > MOST_KEYS
        if not in_parts or keys.ndim != 2:
            return MOST_QUERIES
        columns = self.kernel.numeric_columns(keys.shape[1]) if self.degree else []
        n_values = 1 if values.ndim == 1 else values.shape[1]
        n_sums = Basis(self.degree, len(columns)).n_powers * (1 + n_values)
        return min(MOST_QUERIES, max(1, 2 * IN_MEMORY // n_sums))

    def center(self, rows):
        """Mean of the values in the first of some parts that has weight, (p,)."""
        if not self.degree:
            return None
        for values, weights in rows:
            found = None
            if np.size(values):
                found = spread(np.reshape(values, (len(values), -1)), weights)
            if found is not None:
                return found.mean
        return 0.0

    def finished(self, total, center, n_queries, n_features, query_scale=None):
        """Fields from sums over parts of the keys.

        ``total(rows, final=)`` are the sums of some queries over all parts of the keys.
        """
        found = total(np.arange(n_queries), final=False)
        refuse_no_weight(found)
        found, keys = found
        rows = np.flatnonzero(~found.usable)
        if len(rows):
            again, _ = total(rows, final=True)
            found.put(rows, again.answered(self.empty))
        return self.finish(found, center, keys, n_features, query_scale)

    def finish(self, sums, center, keys, n_features, query_scale=None):
        """Fields from sums over all keys, with fallbacks in their places."""
        columns = self.kernel.numeric_columns(n_features) if self.degree else []
        basis, unit, ratio = Basis(self.degree, len(columns)), None, None
        if self.degree:
            extent = self.kernel.rescale(deviation_of(keys)[None], self.bandwidth)[0, columns]
            extent = np.where(extent > 0, extent, np.inf)
            form = form_along(self.kernel, n_features, self.degree)
            width = self.kernel.spread if form is None else form.kernel.spread
            scale = np.ones(len(sums.shift)) if query_scale is None else query_scale
            unit = local_unit(width * scale[:, None], extent)
            ratio = scale[:, None] / unit
        fields = self._finish(sums, basis.averages(sums.sums, unit, ratio), slice(None))
        return self._in_units(fields, center, n_features)

    def _in_units(self, fields, center, n_features):
        """Fields with values and slopes from those about a center, in bandwidths."""
        if not self.degree:
            return list(fields)
        values, linear, *others = fields
        values, slopes = values + center, np.zeros((*values.shape, n_features))
        columns = self.kernel.numeric_columns(n_features)
        unit = np.broadcast_to(check_bandwidth(self.bandwidth, n_features), n_features)[columns]
        # Along features in very large units a slope may be beyond all numbers: infinite.
        with np.errstate(over="ignore"):
            slopes[:, :, columns] = linear / unit
        return [values, slopes, *others]


def reduce(smoother, queries, keys, values, weights=None, query_scale=None, own=False):
    """Fields of an average or a local polynomial, in the library and precision of the input."""
    # Of an average: averages and logarithms of the sums of weights. Of a polynomial: values,
    # slopes, these logarithms, ridges and squared distances.
    names = "queries", "keys", "values", "sample_weight", "query_scale"
    passed = queries, keys, values
    given = map(as_given, names, (*passed, weights, query_scale))
    queries, keys, values, weights, query_scale = given
    at_once = smoother.queries_at_once(keys, values)
    if queries.ndim == 0 or len(queries) <= at_once:
        fields, result = _some(smoother, queries, keys, values, weights, own, query_scale)
    else:
        found, own = [], check_own_keys(own, queries, len(keys))
        for rows in _even_blocks(len(queries), at_once):
            scale = None if query_scale is None else query_scale[rows]
            left = False if own is None else own[rows]
            found.append(_some(smoother, queries[rows], keys, values, weights, left, scale))
        fields, (*_, result) = zip(*found, strict=True)
        fields = list(map(np.concatenate, zip(*fields, strict=True)))
    least = _at_least(smoother)
    found = [result(field, at) for field, at in zip(fields, least, strict=True)]
    return as_passed(found, *passed)


def _some(smoother, queries, keys, values, weights, own, query_scale):
    """Fields, and how to hand results back."""
    tables = [keys, values, *([] if weights is None else [weights])]
    have_rows = all(x.ndim for x in (queries, *tables))
    size = max(MOST_KEYS, len(queries)) if have_rows else 0
    if not have_rows or len({len(x) for x in tables}) > 1 or len(keys) <= size:
        fields, problem = smoother.whole(queries, keys, values, weights, own, query_scale)
        return fields, problem.result
    chunks = list(_even_blocks(len(keys), size))
    own = check_own_keys(own, queries, len(keys))
    center = smoother.center(
        (values[chunk], None if weights is None else weights[chunk]) for chunk in chunks
    )

    def total(rows, *, final):
        scale = None if query_scale is None else query_scale[rows]
        left_out = None if own is None else own[rows]
        parts = (
            smoother.part(
                center, queries[rows], None if own is None else left_out - chunk.start,
                scale, *(None if x is None else x[chunk] for x in (keys, values, weights)),
                final=final,
            )
            for chunk in chunks
        )  # fmt: skip
        return merged(joined, parts)

    n_features = keys.shape[1]
    fields = smoother.finished(total, center, len(queries), n_features, query_scale)
    return fields, smoother.problem(queries[:0], keys[:1], values[:1], None).result


def _at_least(smoother):
    """Precision of the fields where that of the input is too low for them."""
    # Half precision would not hold the logarithms of small sums.
    return (None, None, "single", None, None) if smoother.degree else (None, "single")


def _even_blocks(n, size):
    """Slices of at most that size, which are about equal."""
    return blocks(n, -(-n // -(-n // size)))


def joined(a, b):
    """Sums over, and spreads of, the keys of both."""
    return a[0].plus(b[0]), None if a[1] is None else join_spreads(a[1], b[1])


def with_weights(found, log_scale):
    """Sums, and fallbacks, for weights that are so many times larger."""
    answer = found.answer
    if answer is not None:  # whose shift is a distance
        answer = answer._replace(sums=answer.sums * math.exp(log_scale))
    return found._replace(shift=found.shift + log_scale, answer=answer)


def refuse_no_weight(found):
    if found is None:
        raise ValueError("sample_weight is 0 for every key: leave at least one above 0.")


def fastest_algorithm(queries, keys, kernel, *, bandwidth=1.0, query_scale=None, degree=0):
    """Name of the algorithm that "auto" stands for: "linear", "near" or "dense"."""
    smoother = Smoother(kernel, bandwidth, degree)
    given = queries, keys, keys[:, :0], None, False, query_scale
    return smoother.reduction(smoother.problem(*given)).name
