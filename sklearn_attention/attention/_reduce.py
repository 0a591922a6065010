"""Sums over the keys of a problem, by the fastest algorithm that is accurate for each query."""

import functools
import math

import numpy as np

from .._blocks import IN_MEMORY, blocks
from ._algorithms import _near_keys, _plane
from ._algorithms._dense import GroupedPairs
from ._algorithms._line import Line, serves
from ._algorithms._nearest import nearest_sums
from ._solve import Basis, extent_of, refuse_far, refuse_signed
from ._sums import Nearest

# "dense" compares every query with every key.
ALGORITHMS = ("auto", "dense")
# Pairs from which torch repays the second that it takes to load.
_REPAYS = 2**27


def form_along(kernel, n_features, degree=0, n_pairs=math.inf):
    """Return the kernel along one or two features if sums of it take linear time, else None.

    In two features, few pairs are summed faster one by one.
    """
    form = None if kernel.signed is not False else kernel.radial_form(n_features)
    if form is None or form.categorical is not None or len(form.columns) * degree > 3:
        return None
    if len(form.columns) == 1:
        return form if serves(form.kernel) else None
    is_plane = len(form.columns) == 2 and n_pairs >= _plane.FEW_PAIRS
    return form if is_plane and _plane.serves_plane(form.kernel) else None


class Reduction:
    """Sums over the keys of a problem, at one bandwidth after the other.

    What does not depend on the bandwidth, such as an order of the keys or a tree, is computed
    once. `extent` (n_numeric,) has the standard deviations of all keys in bandwidths; None if
    these are all. `line` is the line that these keys lie on, if it was made before.
    """

    def __init__(
        self, problem, degree=0, *, extent=None, line=None, empty="nearest", algorithm="auto"
    ):
        kernel, n_features = problem.kernel, problem.keys.shape[1]
        if degree:
            refuse_signed(kernel)
            refuse_far(problem.keys)
        self.problem, self._empty, self._algorithm = problem, empty, algorithm
        self.is_radial = kernel.signed is False and kernel.radial_form(n_features) is not None
        columns = kernel.numeric_columns(n_features) if degree else []
        if extent is None:
            extent = extent_of(problem.keys[:, columns], problem.weights)
        self.extent, self._linear = extent, self._linear_keys(degree, line)
        # All pairs take columns for every key, whose memory is checked here.
        n_points = len(problem.keys) if degree and self._linear is None else None
        self.basis = Basis(degree, len(columns), n_points)

    @property
    def name(self):
        """Name of the algorithm: "linear", "near" or "dense"."""
        if self._linear is not None:
            return "linear"
        rows = np.arange(len(self.problem.queries))
        width = np.broadcast_to(self._scale(1.0, rows), len(rows))
        return "near" if self._near is not None and self._near.pay(rows, width) else "dense"

    def sums(self, rows, scale=1.0, *, max_share=1.0):
        """Sum about the queries at `rows`; powers of distances are in bandwidths times a scale.

        `scale` is a number, or has one for each of these queries. If an algorithm is inaccurate
        for more than `max_share` of the queries, its sums are left so.
        """
        width = np.ones(len(self.problem.queries))
        width[rows] = self._scale(scale, rows)
        # Each query takes the first of these algorithms that is accurate for it. An algorithm
        # returns None where it does not apply, or takes no less time than all pairs.
        algorithms = (
            # One feature, or two with a Gaussian. It needs the keys in order or in cells, and
            # sums small numbers again by pairs, so it has objects of its own.
            functools.partial(self._in_linear_time, max_share=max_share),
            self._over_near,  # many pairs, of which few count
            self._fused,  # a hundred million pairs of a kernel that is a dot product
            self._over_all,  # anything
        )
        sums, remaining = None, np.arange(len(rows))
        for algorithm in algorithms:
            new = algorithm(rows[remaining], width)
            if new is None:
                continue
            if sums is None:
                sums = new
            else:
                sums.put(remaining, new)
            remaining = remaining[~new.is_accurate]
            if not 0 < len(remaining) <= max_share * len(rows):
                break
        return sums

    def each(self, scales):
        """Yield the scales in groups, each with its sums of all queries, in blocks of queries.

        Scales (n_scales,) or (n_scales, n_queries) multiply the bandwidth. A block has rows,
        sums with fallbacks in their places, and moments.
        """
        if np.ndim(scales) == 2 and not self.is_radial:
            raise ValueError(
                f"kernel={self.problem.kernel!r} does not depend only on the distance, but the "
                "distances of each row are divided by a bandwidth of its own: choose a radial "
                "kernel such as 'gaussian'."
            )
        n_queries, groups = len(self.problem.queries), np.split(scales, len(scales))
        if self._linear is not None and np.ndim(scales) == 1:
            groups = self._linear.groups(scales)
        # The sums of all queries may exceed memory.
        n_sums = self.basis.n_powers * (1 + self.problem.values.shape[1])
        rows = np.arange(n_queries)
        size = max(1, IN_MEMORY // n_sums)
        row_blocks = [rows[block] for block in blocks(n_queries, size)]
        for group in groups:
            if len(group) > 1:
                sums, scale = self._linear.side_by_side(group), np.repeat(group, n_queries)
                rows_of_group = np.tile(rows, len(group))
                yield group, [(rows_of_group, *self.moments(sums, scale, rows_of_group))]
            else:
                yield group, (self._block(block, group[0]) for block in row_blocks)

    def _block(self, rows, scale):
        scale = scale[rows] if np.ndim(scale) else scale
        return rows, *self.moments(self.sums(rows, scale), scale, rows)

    def moments(self, sums, scale, rows):
        """Return the sums of some queries with fallbacks in their places, and their moments."""
        sums = self.with_fallbacks(sums, rows).fall_back(self._empty)
        scale = np.broadcast_to(self._scale(scale, rows), len(sums.shift))
        kernel = self.problem.kernel
        return sums, self.basis.averages(sums.sums, scale, kernel.spread, self.extent)

    def with_fallbacks(self, sums, rows, *, all_keys=True):
        """Add sums over the nearest keys for queries without weights.

        Unless these are all keys, signed weights may cancel over the others, for any query.
        """
        if self._empty == "nan":
            return sums
        signed = self.problem.kernel.signed is not False
        lost = np.flatnonzero(~sums.is_nonzero | (signed and not all_keys))
        if all_keys and not len(lost):
            return sums
        n, n_columns = len(rows), sums.sums.shape[1]
        nearest = Nearest(np.full(n, np.inf), np.zeros(n), np.zeros((n_columns, n)))
        nearest.put(lost, self._over_nearest(rows[lost]))
        return sums._replace(nearest=nearest)

    def label_scales(self, scales):
        """Label the scale of each query; queries with equal labels are summed in one pass."""
        if isinstance(self._linear, Line):
            return np.zeros(len(scales))
        return np.floor(np.log2(scales)) if self.is_radial else scales

    def _scale(self, scale, rows):
        """Return the multiple of the bandwidth for some queries: a number, or one for each."""
        query_scale = self.problem.query_scale
        return scale if query_scale is None else scale * query_scale[rows]

    def _linear_keys(self, degree, line):
        """Return the keys along one or two features if sums take linear time, else None."""
        problem, form = self.problem, None
        if line is not None:
            return line.asked(problem)
        if self._algorithm == "auto":
            n_features = problem.keys.shape[1]
            form = form_along(problem.kernel, n_features, degree, problem.n_pairs)
        if form is None:
            return None
        if len(form.columns) == 1:
            return Line.of(problem, form, degree).asked(problem)
        if problem.query_scale is None:
            return _plane.Plane.of(problem, form, degree).asked(problem)
        return None

    def _in_linear_time(self, rows, width, max_share):
        """Sum along one or two features, whose keys are ordered or in cells."""
        if self._linear is None:
            return None
        scale = width[rows]
        if len(rows) and scale.min() == scale.max():
            scale = scale[0]
        return self._linear.sums_of(rows, scale, max_share=max_share)

    def _over_near(self, rows, width):
        """Sum over the keys near each query, which trees find."""
        groups = None if self._near is None else self._near.groups(rows, width)
        return None if groups is None else self._pairs.over(groups, rows, width)

    def _fused(self, rows, width):
        """Average as scaled dot-product attention, by torch; None for few pairs.

        It is also None for polynomials, several widths, and kernels that are no dot product.
        """
        problem, x = self.problem, self.problem.queries[:0]
        is_small = len(rows) * len(problem.keys) < _REPAYS
        if is_small or self.basis.degree or np.ptp(width[rows]):
            return None
        if problem.kernel.as_dot_product(x, x) is None:
            return None
        from ._algorithms._fused import fused_sums  # torch takes a second to load

        return fused_sums(problem.take(rows).rescaled(float(width[rows][0])))

    def _over_all(self, rows, width):
        """Sum over all keys, pair by pair."""
        return self._pairs.over_all(rows, width)

    @functools.cached_property
    def _pairs(self):
        return GroupedPairs(self.problem, self.basis, self.extent)

    @functools.cached_property
    def _near(self):
        problem = self.problem
        if self._algorithm == "dense" or problem.n_pairs < _near_keys.FEW_PAIRS:
            return None
        return _near_keys.NearKeys.of(problem, self.basis.degree)

    def _over_nearest(self, rows):
        """Return sums over the nearest keys of queries; those that were computed are kept."""
        cache = self._cached_nearest
        missing = np.unique(rows[cache.distance[rows] < 0])
        if len(missing) and isinstance(self._linear, Line):
            cache.put(missing, self._linear.nearest_of(missing))
        elif len(missing):
            problem = self.problem.take(missing)
            features = problem.columns
            # Weights, and these times each value, (1 + n_values, n_keys).
            summands = np.vstack([problem.weights, problem.values.T * problem.weights])
            nearest = nearest_sums(
                problem.keys[:, features],
                summands,
                problem.queries[:, features],
                problem.left_out,
                self.problem.rounding[missing],
            )
            cache.put(missing, nearest)
        return Nearest(*(field[..., rows] for field in cache))

    @functools.cached_property
    def _cached_nearest(self):
        """Sums over the nearest keys of all queries; the distance is -1 if they are missing."""
        n_queries, n_columns = len(self.problem.queries), 1 + self.problem.values.shape[1]
        return Nearest(
            np.full(n_queries, -1.0), np.zeros(n_queries), np.zeros((n_columns, n_queries))
        )
