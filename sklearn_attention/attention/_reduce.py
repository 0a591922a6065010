"""Sums over keys as a list of ways: each query takes the first that is accurate for it."""

import functools

import numpy as np

from .._blocks import IN_MEMORY, blocks
from ._algorithms._dense import GroupedPairs
from ._algorithms._line import Line, serves
from ._algorithms._near_keys import NearKeys
from ._algorithms._nearest import nearest_sums
from ._algorithms._plane import Plane, serves_plane
from ._solve import Basis, extent_of, refuse_far, refuse_signed
from ._sums import Nearest

# "dense" compares every query with every key.
ALGORITHMS = ("auto", "dense")
# Pairs from which torch repays the second that it takes to load.
_REPAYS = 2**27


def form_along(kernel, n_features, degree=0):
    """The kernel of the one or two features that matter, if sums of it take linear time."""
    form = None if kernel.signed is not False else kernel.radial_form(n_features)
    if form is None or form.rest is not None or len(form.columns) * degree > 3:
        return None
    fast = {1: serves, 2: serves_plane}.get(len(form.columns))
    return form if fast is not None and fast(form.kernel) else None


class Reduction:
    """Sums over the keys of a problem, at one bandwidth after the other."""

    # What bandwidths have in common, such as an order of the keys or trees, is computed once.

    def __init__(self, problem, degree=0, *, empty="nearest", algorithm="auto"):
        kernel, n_features = problem.kernel, problem.keys.shape[1]
        if degree:
            refuse_signed(kernel)
            refuse_far(problem.keys)
        self.problem, self._empty, self._algorithm = problem, empty, algorithm
        self.is_radial = kernel.signed is False and kernel.radial_form(n_features) is not None
        columns = kernel.numeric_columns(n_features) if degree else []
        self.extent = extent_of(problem.keys[:, columns], problem.weights)
        form, self._linear = None, None
        if algorithm == "auto":
            form = form_along(kernel, n_features, degree)
        if form is not None and len(form.columns) == 1:
            self._linear = Line.of(problem, form, degree)
        elif form is not None and problem.query_scale is None:
            self._linear = Plane.of(problem, form, degree)
        # All pairs take columns for every key, whose memory is checked here.
        n_points = len(problem.keys) if degree and self._linear is None else None
        self.basis = Basis(degree, len(columns), n_points)

    @property
    def name(self):
        """Way in which sums are computed: "linear", "near" or "dense"."""
        if self._linear is not None:
            return "linear"
        rows = np.arange(len(self.problem.queries))
        width = np.broadcast_to(self._scale(1.0, rows), len(rows))
        return "near" if self._near is not None and self._near.pay(rows, width) else "dense"

    def sums(self, rows, scale=1.0, *, max_share=1.0):
        """Sums about the queries at `rows`, of powers in bandwidths times a scale.

        A number, or one for each of these queries. Those of an algorithm of linear time that
        are not accurate are left so if their share is larger than `max_share`.
        """
        scale, found, todo = self._scale(scale, rows), None, np.arange(len(rows))
        if self._linear is not None:
            found = self._linear.sums_of(rows, scale, max_share=max_share)
        if found is not None:
            todo = np.flatnonzero(~found.sure)
            if not 0 < len(todo) <= max_share * len(rows):
                return found
        width = np.ones(len(self.problem.queries))
        width[rows] = scale
        for way in (self._over_near, self._fused, self._over_all):
            new = way(rows[todo], width)
            if new is None:
                continue
            if found is None:
                found = new
            found.put(todo, new)
            todo = todo[~new.sure]
            if not len(todo):
                break
        return found

    def each(self, scales):
        """For each bandwidth, or several at once: these, and the sums of all queries in parts.

        Parts are rows, sums with fallbacks in their places, and moments.
        """
        # In parts, since the sums of all may exceed memory. Scales (n_scales,) or (n_scales,
        # n_queries) multiply the bandwidth.
        if np.ndim(scales) == 2 and not self.is_radial:
            raise ValueError(
                f"kernel={self.problem.kernel!r} does not depend only on the distance, but the "
                "distances of each row are divided by a bandwidth of its own: choose a radial "
                "kernel such as 'gaussian'."
            )
        n_queries, groups = len(self.problem.queries), np.split(scales, len(scales))
        if self._linear is not None and np.ndim(scales) == 1:
            groups = self._linear.groups(scales)
        n_sums = self.basis.n_powers * (1 + self.problem.values.shape[1])
        rows = np.arange(n_queries)
        parts = [rows[part] for part in blocks(n_queries, max(1, IN_MEMORY // n_sums))]
        for group in groups:
            if len(group) > 1:
                sums, scale = self._linear.side_by_side(group), np.repeat(group, n_queries)
                yield group, [self._part(np.tile(rows, len(group)), scale, sums)]
            else:
                own = [group[0][part] if np.ndim(group[0]) else group[0] for part in parts]
                given = zip(parts, own, strict=True)
                yield group, (self._part(*both, self.sums(*both)) for both in given)

    def _part(self, rows, scale, sums):
        return rows, *self.moments(sums, scale, rows)

    def moments(self, sums, scale, rows):
        """Sums of some queries with fallbacks in their places, and moments from these."""
        sums = self.with_fallbacks(sums, rows).fall_back(self._empty)
        scale = np.broadcast_to(self._scale(scale, rows), len(sums.shift))
        kernel = self.problem.kernel
        return sums, self.basis.averages(sums.sums, scale, kernel.spread, self.extent)

    def with_fallbacks(self, sums, rows, *, all_keys=True):
        """Sums of some queries with those over the nearest keys, where they have no weights.

        Without `all_keys`, for any that may have none among all of them.
        """
        if self._empty == "nan":
            return sums
        signed = self.problem.kernel.signed is not False
        lost = np.flatnonzero(~sums.usable | (signed and not all_keys))
        if all_keys and not len(lost):
            return sums
        n, n_columns = len(rows), sums.sums.shape[1]
        nearest = Nearest(np.full(n, np.inf), np.zeros(n), np.zeros((n_columns, n)))
        nearest.put(lost, self._over_nearest(rows[lost]))
        return sums._replace(nearest=nearest)

    def together(self, scales):
        """Label the scale of each query; equal labels are evaluated in one pass."""
        if isinstance(self._linear, Line):
            return np.zeros(len(scales))
        return np.floor(np.log2(scales)) if self.is_radial else scales

    def _scale(self, scale, rows):
        """Multiple of the bandwidth for some queries: a number, or one for each."""
        own = self.problem.query_scale
        return scale if own is None else scale * own[rows]

    def _over_near(self, rows, width):
        """Sums over the keys near each query; None where all pairs take no longer."""
        groups = None if self._near is None else self._near.groups(rows, width)
        return None if groups is None else self._pairs.over(groups, rows, width)

    def _fused(self, rows, width):
        """Averages as scaled dot-product attention; None for other kernels and few pairs."""
        problem, x = self.problem, self.problem.queries[:0]
        few = len(rows) * len(problem.keys) < _REPAYS
        if few or self.basis.degree or np.ptp(width[rows]):
            return None
        if problem.kernel.as_dot_product(x, x) is None:
            return None
        from ._algorithms._fused import fused_sums  # torch takes a second to load

        return fused_sums(problem.take(rows).at(float(width[rows][0])))

    def _over_all(self, rows, width):
        return self._pairs.over_all(rows, width)

    @functools.cached_property
    def _pairs(self):
        return GroupedPairs(self.problem, self.basis, self.extent)

    @functools.cached_property
    def _near(self):
        if self._algorithm == "dense":
            return None
        return NearKeys.of(self.problem, self.basis.degree)

    def _over_nearest(self, rows):
        """Sums over the nearest keys of some queries."""
        known = self._known_nearest
        new = np.unique(rows[known.distance[rows] < 0])
        if len(new):
            if isinstance(self._linear, Line):
                found = self._linear.nearest_of(new)
            else:
                problem, compared = self.problem.take(new), self.problem.columns
                columns = np.column_stack([np.ones(len(problem.keys)), problem.values])
                columns, rounding = columns.T * problem.weights, self.problem.rounding[new]
                found = nearest_sums(
                    problem.keys[:, compared], columns, problem.queries[:, compared],
                    problem.left_out, rounding,
                )  # fmt: skip
            known.put(new, found)
        return Nearest(*(field[..., rows] for field in known))

    @functools.cached_property
    def _known_nearest(self):
        """Sums over the nearest keys, once they are asked for; until then distances are -1."""
        n_queries, n_columns = len(self.problem.queries), 1 + self.problem.values.shape[1]
        return Nearest(
            np.full(n_queries, -1.0), np.zeros(n_queries), np.zeros((n_columns, n_queries))
        )
