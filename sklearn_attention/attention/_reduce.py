"""Sums over keys as a list of ways: each query takes the first that is accurate for it."""

import functools

import numpy as np

from .._blocks import IN_MEMORY, blocks
from ._algorithms._dense import GroupedPairs, in_logarithms
from ._algorithms._line import Line, serves
from ._algorithms._near_keys import NearKeys
from ._algorithms._nearest import by_distance, nearest_sums
from ._algorithms._plane import Plane, serves_plane
from ._solve import extent_of, local_unit, refuse_far, refuse_signed
from ._sums import Sums

# "dense" compares every query with every key.
ALGORITHMS = ("auto", "dense")
# Numbers that the sums of some queries may hold at a time.
_MOST_NUMBERS = 2 * IN_MEMORY
# Pairs from which torch repays the second that it takes to load.
_REPAYS = 2**27


def form_along(kernel, n_features, degree=0):
    """The kernel of the one or two features that matter, if sums of it take linear time."""
    form = None if kernel.signed is not False else kernel.radial_form(n_features)
    if form is None or form.rest is not None or len(form.columns) * degree > 2:
        return None
    fast = {1: serves, 2: serves_plane}.get(len(form.columns))
    return form if fast is not None and fast(form.kernel) else None


class Reduction:
    """Sums over the keys of a problem, at one bandwidth after the other."""

    # Ways are an algorithm of linear time, pairs near each other, scaled dot-product attention,
    # and all pairs; what is left without weight is predicted by the nearest keys. What
    # bandwidths have in common, such as an order of the keys or trees, is computed once.

    def __init__(self, problem, degree=0, *, empty="nearest", algorithm="auto"):
        if degree:
            refuse_signed(problem.kernel)
            refuse_far(problem.keys)
        if problem.gap and problem.kernel.signed is not False:
            raise ValueError(
                f"gap={problem.gap} needs a kernel that is known to be positive, got kernel="
                f"{problem.kernel!r}: choose one such as 'gaussian', or gap=0."
            )
        self.problem, self._degree, self._empty = problem, degree, empty
        self._algorithm = algorithm
        kernel, n_features = problem.kernel, problem.keys.shape[1]
        self._columns = kernel.numeric_columns(n_features) if degree else []
        self.is_radial = kernel.signed is False and kernel.radial_form(n_features) is not None
        form = None
        if algorithm == "auto" and not problem.gap:
            form = form_along(kernel, n_features, degree)
        in_plane = form is not None and len(form.columns) == 2
        if form is None or (in_plane and problem.query_scale is not None):
            self._linear = None
        else:
            self._linear = (Plane if in_plane else Line).of(problem, form, degree)

    @property
    def basis(self):
        return (self._linear or self._pairs).basis

    def together(self, scales):
        """A number for each of some scales, of queries, equal where one pass takes all."""
        if isinstance(self._linear, Line):
            return np.zeros(len(scales))
        return np.floor(np.log2(scales)) if self.is_radial else scales

    @property
    def name(self):
        """Way in which sums are computed: "linear", "near" or "dense"."""
        if self._linear is not None:
            return "linear"
        rows = np.arange(len(self.problem.queries))
        width = np.broadcast_to(self._scale(1.0), len(rows))
        return "near" if self._near is not None and self._near.pay(rows, width) else "dense"

    def sums(self, rows=slice(None), scale=1.0, *, most=1.0):
        """Sums about some queries, of powers in bandwidths times a scale.

        A number, or one for each of these queries. Those in linear time are accurate unless
        more than a share `most` of them are not.
        """
        if self._linear is not None:
            return self._linear.sums_of(rows, self._scale(scale, rows), most=most)
        some = np.arange(len(self.problem.queries))[rows]
        width = np.ones(len(self.problem.queries))
        width[some] = self._scale(scale, rows)
        return self._by_pairs(some, width)

    def with_answers(self, sums, rows=slice(None), *, all_keys=True):
        """Sums of some queries with fallbacks for those without weights.

        Without `all_keys`, for any that may have none among all of them.
        """
        if self._empty == "nan":
            return sums
        signed = self.problem.kernel.signed is not False
        lost = np.flatnonzero(~sums.usable | (signed and not all_keys))
        if all_keys and not len(lost):
            return sums
        distance, of_columns = self._over_nearest(
            np.arange(len(self.problem.queries))[rows][lost]
        )
        shift, answer = np.full(sums.shift.shape, -np.inf), np.zeros_like(sums.sums)
        shift[lost] = by_distance(distance)
        # Without powers of distances, so that a polynomial is the average.
        answer[0][:, lost] = of_columns
        return sums._replace(answer=Sums(shift, answer, np.zeros_like(shift)))

    def fold(self, finish, scales=None):
        """Results of ``finish(sums, moments, rows)`` per bandwidth, some queries at a time."""
        # `finish` returns a tuple of arrays for the queries at `rows`; the sums of all may
        # exceed memory. Scales (n_scales,) or (n_scales, n_queries) multiply the bandwidth;
        # None is the problem's own.
        scales, n_queries = np.ones(1) if scales is None else scales, len(self.problem.queries)
        self.refuse_scales(scales)
        groups = [scales[k : k + 1] for k in range(len(scales))]
        if self._linear is not None and np.ndim(scales) == 1 and len(scales) > 1:
            groups = self._linear.groups(scales)
        for group in groups:
            if len(group) == 1:
                yield self._by_rows(finish, group[0])
                continue
            rows = np.tile(np.arange(n_queries), len(group))
            scale = np.repeat(group, n_queries)
            fields = self._finished(finish, self._linear.side_by_side(group), scale, rows)
            yield from zip(*(np.split(field, len(group)) for field in fields), strict=True)

    def refuse_scales(self, scales):
        """Raise ValueError for scales of each row, if the kernel is none of the distance."""
        if np.ndim(scales) == 2 and not self.is_radial:
            raise ValueError(
                f"kernel={self.problem.kernel!r} does not depend only on the distance, which "
                "a scale of each row divides: choose a radial kernel such as 'gaussian'."
            )

    def _by_rows(self, finish, scale):
        """Results at one scale, some queries at a time where their sums are many."""
        n_sums = self.basis.n_powers * (1 + self.problem.values.shape[1])
        found = []
        for rows in blocks(len(self.problem.queries), max(1, _MOST_NUMBERS // n_sums)):
            own = scale[rows] if np.ndim(scale) else scale
            sums = self.sums(rows, own)
            found.append(self._finished(finish, sums, self._scale(own, rows), rows))
        if len(found) == 1:
            return found[0]
        return tuple(map(np.concatenate, zip(*found, strict=True)))

    def _finished(self, finish, sums, scale, rows):
        """Results of `finish` from sums whose powers are in units of the scale."""
        sums = self.with_answers(sums, rows).answered(self._empty)
        unit = self._unit(scale, len(sums.shift))
        ratio = None if unit is None else np.reshape(scale, (-1, 1)) / unit
        return finish(sums, self.basis.averages(sums.sums, unit, ratio), rows)

    @functools.cached_property
    def _extent(self):
        """Deviation of the keys along each numeric column."""
        if self._linear is not None:
            return self._linear.extent
        return extent_of(self.problem.keys[:, self._columns], self.problem.weights)

    def _scale(self, scale, rows=slice(None)):
        """Multiple of the bandwidth for some queries: a number, or one for each."""
        own = self.problem.query_scale
        return scale if own is None else scale * own[rows]

    def _unit(self, scale, n_queries):
        """Unit of local coordinates at some scale, (n_queries, d); None for averages."""
        if not self._degree:
            return None
        kernel = self._linear.kernel if self._linear else self.problem.kernel
        width = kernel.spread * scale
        unit = local_unit(width[:, None] if np.ndim(width) else width, self._extent)
        return np.broadcast_to(unit, (n_queries, len(self._extent)))

    @functools.cached_property
    def _pairs(self):
        return GroupedPairs(self.problem, self._degree)

    @functools.cached_property
    def _near_pairs(self):
        return GroupedPairs(self._near.problem, self._degree)

    @functools.cached_property
    def _near(self):
        return None if self._algorithm == "dense" else NearKeys.of(self.problem, self._degree)

    def _by_pairs(self, rows, width):
        """Sums of some queries, at multiples (n_queries,) of the bandwidth."""
        kernel = self.problem.kernel
        # Others are accurate anyway, or make larger numbers than there are.
        accurate = not (in_logarithms(kernel) and kernel.stationary)
        found = self._over_near(rows, width, accurate=accurate)
        if found is None and self._is_fused(rows, width):
            from ._algorithms._fused import fused_sums  # torch takes a second to load

            found = fused_sums(self.problem.take(rows).at(float(width[rows][0])))
        if found is None:
            found = self._pairs.over_all(rows, width, accurate=accurate)
        unsure = np.flatnonzero(~found.sure)
        if len(unsure) and in_logarithms(kernel):
            some = rows[unsure]
            again = self._over_near(some, width, accurate=True)
            found.put(unsure, self._pairs.over_all(some, width) if again is None else again)
        return found

    def _over_near(self, rows, width, *, accurate):
        """Sums over the keys near each query; None where all pairs take no longer."""
        groups = None if self._near is None else self._near.groups(rows, width)
        if groups is None:
            return None
        return self._near_pairs.over(groups, rows, width, accurate=accurate)

    def _is_fused(self, rows, width):
        """True where the average is scaled dot-product attention, over so many pairs."""
        problem, x = self.problem, self.problem.queries[:0]
        if self._degree or problem.gap or len(rows) * len(problem.keys) < _REPAYS:
            return False
        return np.ptp(width[rows]) == 0 and problem.kernel.as_dot_product(x, x) is not None

    def _over_nearest(self, rows):
        """Distances (m,) of queries to the nearest keys, and sums (1 + p, m) over these."""
        distance, sums = self._known_nearest
        new = np.unique(rows[distance[rows] < 0])
        if len(new):
            if self._linear is not None:
                found = self._linear.nearest_of(new)
            else:
                problem = self.problem.take(new)
                columns = np.column_stack([np.ones(len(problem.keys)), problem.values])
                columns = columns.T * problem.weights
                found = nearest_sums(
                    problem.keys, columns, problem.queries, problem.own_key, problem.gap
                )
            distance[new], sums[:, new] = found
        return distance[rows], sums[:, rows]

    @functools.cached_property
    def _known_nearest(self):
        """What is known of the nearest keys, which no bandwidth changes; -1 for nothing."""
        n_queries, n_columns = len(self.problem.queries), 1 + self.problem.values.shape[1]
        return np.full(n_queries, -1.0), np.zeros((n_columns, n_queries))
