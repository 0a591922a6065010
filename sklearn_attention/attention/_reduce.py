r"""Kernel sums over all keys about each query, by the fastest algorithm that is accurate.

For n queries and m keys, `Reduction.sums` computes the :math:`S_{\alpha c}(q)` of :class:`Sums`
by the first of these algorithms whose sum is accurate, query by query:

* *linear*: the keys lie along one feature, or the kernel is a Gaussian of two; O(n + m);
* *near*: trees find the keys whose weight is not negligible, and only these are compared;
* *fused*: a hundred million pairs of a dot-product kernel; O(n m), several times faster than
* *dense*: all pairs, for any kernel; O(n m).

Memory is O(n + m) for each. An algorithm returns None where it does not apply, or takes no less
time than the dense one. A sum is inaccurate where its weights are not well above its error
bound: far from all keys, or beside a key that outweighs the others.

A *scale* is a multiple of the bandwidth: one number, or (n,) for each query. *Rows* are
positions of queries in the problem. *Fallbacks* are sums over the nearest keys, for queries
whose total weight is 0.
"""

import functools
import math

import numpy as np

from .._blocks import IN_MEMORY, blocks
from ._algorithms import _near_keys, _plane
from ._algorithms._dense import GroupedPairs
from ._algorithms._line import Line, serves_line
from ._algorithms._nearest import nearest_sums
from ._solve import Basis, refuse_far, refuse_signed, std_of_keys
from ._sums import Nearest

# "dense" compares every query with every key.
ALGORITHMS = ("auto", "dense")
# Number of pairs from which the fused algorithm of torch saves more than the second that torch
# takes to load.
_MIN_FUSED_PAIRS = 2**27


def form_along(kernel, n_features, degree=0, n_pairs=math.inf):
    """Return a kernel's `RadialForm` of one or two features if sums take linear time, or None.

    In two features, sums of fewer than `_plane.FEW_PAIRS` pairs are faster pair by pair.
    """
    form = None if kernel.signed is not False else kernel.radial_form(n_features)
    # Along two features, only averages and local lines are summed in linear time.
    if form is None or form.categorical is not None or len(form.columns) * degree > 3:
        return None
    if len(form.columns) == 1:
        return form if serves_line(form.kernel) else None
    is_plane = len(form.columns) == 2 and n_pairs >= _plane.FEW_PAIRS
    return form if is_plane and _plane.serves_plane(form.kernel) else None


class Reduction:
    """Sums over the keys of a problem about its queries, at one scale after the other.

    What does not depend on the scale, such as an order of the keys or a tree, is computed once.
    `degree` is that of the local polynomials. `key_std` (n_numeric,) has the standard
    deviations of all keys in bandwidths; None if the problem has all keys. `line` has these
    keys in order, if they were sorted before. `empty` is the policy for queries of total weight
    0.
    """

    def __init__(
        self, problem, degree=0, *, key_std=None, line=None, empty="nearest", algorithm="auto"
    ):
        kernel, n_features = problem.kernel, problem.keys.shape[1]
        if degree:
            refuse_signed(kernel)
            refuse_far(problem.keys)
        self.problem, self._empty, self._algorithm = problem, empty, algorithm
        self.is_radial = kernel.signed is False and kernel.radial_form(n_features) is not None
        columns = kernel.numeric_columns(n_features) if degree else []
        if key_std is None:
            key_std = std_of_keys(problem.keys[:, columns], problem.weights)
        self.key_std, self._linear = key_std, self._linear_keys(degree, line)
        # The dense algorithm needs columns for every key, whose memory `Basis` checks.
        n_points = len(problem.keys) if degree and self._linear is None else None
        self.basis = Basis(degree, len(columns), n_points)

    @property
    def name(self):
        """Name of the algorithm: "linear", "near" or "dense"."""
        if self._linear is not None:
            return "linear"
        rows = np.arange(len(self.problem.queries))
        scales = np.broadcast_to(self._times_query_scale(1.0, rows), len(rows))
        is_near = self._near is not None and self._near.saves_time(rows, scales)
        return "near" if is_near else "dense"

    def sums(self, rows, scale=1.0, *, max_share=1.0):
        """Sum about the queries at `rows`; return :class:`Sums` in the order of the rows.

        `scale` is a number, or (n_rows,) one for each of these queries; powers of distances are
        in bandwidths times the scale. If an algorithm is inaccurate for more than the share
        `max_share` of the queries, its inaccurate sums are returned.
        """
        scales = np.ones(len(self.problem.queries))
        scales[rows] = self._times_query_scale(scale, rows)
        algorithms = (
            functools.partial(self._in_linear_time, max_share=max_share),
            self._over_near,
            self._fused,
            self._over_all,
        )
        sums, remaining = None, np.arange(len(rows))
        for algorithm in algorithms:
            new_sums = algorithm(rows[remaining], scales)
            if new_sums is None:
                continue
            if sums is None:
                sums = new_sums
            else:
                sums.put(remaining, new_sums)
            remaining = remaining[~new_sums.is_accurate]
            if not 0 < len(remaining) <= max_share * len(rows):
                break
        return sums

    def each(self, scales):
        """Yield the scales in groups, each with the sums about all queries at these scales.

        Scales are (n_scales,), or (n_scales, n_queries) with one for each query. A group is
        paired with blocks of queries: tuples of rows, sums with fallbacks, and moments, as
        returned by `moments`. If a group has several scales, it has a single block, with all
        rows at the first scale, then all rows at the second one, and so on.
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
        numbers_per_query = self.basis.n_powers * (1 + self.problem.values.shape[1])
        rows = np.arange(n_queries)
        block_size = max(1, IN_MEMORY // numbers_per_query)
        row_blocks = [rows[block] for block in blocks(n_queries, block_size)]
        for group in groups:
            if len(group) > 1:
                sums, scale = self._linear.side_by_side(group), np.repeat(group, n_queries)
                rows_of_group = np.tile(rows, len(group))
                yield group, [(rows_of_group, *self.moments(sums, scale, rows_of_group))]
            else:
                yield group, (self._block(block, group[0]) for block in row_blocks)

    def _block(self, rows, scale):
        """Return `rows`, and the sums and moments about these queries, as :meth:`moments`.

        `scale` is a number, or (n_queries,) for all queries.
        """
        scale = scale[rows] if np.ndim(scale) else scale
        return rows, *self.moments(self.sums(rows, scale), scale, rows)

    def moments(self, sums, scale, rows):
        """Replace sums of total weight 0 by fallbacks; return the sums and their `Moments`.

        `sums` are those about the queries at `rows`, at a scale that is a number or (n_rows,).
        """
        sums = self.with_fallbacks(sums, rows).fall_back(self._empty)
        scales = np.broadcast_to(self._times_query_scale(scale, rows), len(sums.shift))
        kernel = self.problem.kernel
        return sums, self.basis.averages(sums.sums, scales, kernel.spread, self.key_std)

    def with_fallbacks(self, sums, rows, *, keys_are_part=False):
        """Return sums with fallbacks, in the field `nearest`, for queries of total weight 0.

        If `keys_are_part`, sums over other keys will be added. If the kernel may be negative as
        well, these may cancel a total that is not 0 here, so every query gets a fallback.
        """
        if self._empty == "nan":
            return sums
        may_be_signed = self.problem.kernel.signed is not False  # None if that is not known
        empty_rows = np.flatnonzero(~sums.is_nonzero | (may_be_signed and keys_are_part))
        if not keys_are_part and not len(empty_rows):
            return sums
        n, n_columns = len(rows), sums.sums.shape[1]
        nearest = Nearest(
            distance=np.full(n, np.inf),  # infinite where there is no fallback
            rounding=np.zeros(n),
            sums=np.zeros((n_columns, n)),
        )
        nearest.put(empty_rows, self._over_nearest(rows[empty_rows]))
        return sums._replace(nearest=nearest)

    def label_scales(self, scales):
        """Return a label (n,) of each query's scale (n,), which increases with the scale.

        Queries with equal labels are summed in one pass. A pass along a line takes any scales.
        For other radial kernels it takes scales within a factor of 2, and for all other kernels
        only equal scales.
        """
        if isinstance(self._linear, Line):
            return np.zeros(len(scales))
        return np.floor(np.log2(scales)) if self.is_radial else scales

    def _times_query_scale(self, scale, rows):
        """Multiply a scale by the queries' own; return a number if these have none."""
        query_scale = self.problem.query_scale
        return scale if query_scale is None else scale * query_scale[rows]

    def _linear_keys(self, degree, line):
        """Return a `Line` or a `Plane` of the keys if sums take linear time, else None.

        `line` is a `Line` of the same keys that was made before, or None. A plane sums at one
        scale for all queries, so queries must have no scales of their own.
        """
        problem, form = self.problem, None  # the kernel's form along one or two features
        if line is not None:
            return line.with_queries(problem)
        if self._algorithm == "auto":
            n_features = problem.keys.shape[1]
            form = form_along(problem.kernel, n_features, degree, problem.n_pairs)
        if form is None:
            return None
        if len(form.columns) == 1:
            return Line.of(problem, form, degree).with_queries(problem)
        if problem.query_scale is None:
            return _plane.Plane.of(problem, form, degree).with_queries(problem)
        return None

    # Each of the next four methods sums about the queries at `rows`, at the `scales` (n,) of
    # all queries, by one of the algorithms in the module's docstring.

    def _in_linear_time(self, rows, scales, max_share):
        """Sum over keys that are sorted along one feature, or in cells of two."""
        if self._linear is None:
            return None
        scale = scales[rows]
        if len(rows) and scale.min() == scale.max():
            scale = scale[0]
        return self._linear.sums_of(rows, scale, max_share=max_share)

    def _over_near(self, rows, scales):
        """Sum over the keys near each query, which trees find."""
        # Groups are rows, each with a function that returns the positions of their near keys.
        groups = None if self._near is None else self._near.groups(rows, scales)
        return None if groups is None else self._pairs.over(groups, rows, scales)

    def _fused(self, rows, scales):
        """Average as scaled dot-product attention, by torch.

        The result is None for few pairs, polynomials, scales that differ between the queries,
        and kernels without a form of dot products.
        """
        # Without any rows, the form only tells whether the kernel has one.
        problem, no_rows = self.problem, self.problem.queries[:0]
        has_few_pairs = len(rows) * len(problem.keys) < _MIN_FUSED_PAIRS
        if has_few_pairs or self.basis.degree or np.ptp(scales[rows]):
            return None
        if problem.kernel.as_dot_product(no_rows, no_rows) is None:
            return None
        from ._algorithms._fused import fused_sums  # torch takes a second to load

        return fused_sums(problem.take(rows).rescaled(float(scales[rows][0])))

    def _over_all(self, rows, scales):
        """Sum over all keys, pair by pair."""
        return self._pairs.over_all(rows, scales)

    @functools.cached_property
    def _pairs(self):
        """Sums pair by pair."""
        return GroupedPairs(self.problem, self.basis, self.key_std)

    @functools.cached_property
    def _near(self):
        """The `NearKeys` of the problem, or None if trees do not serve it."""
        problem = self.problem
        if self._algorithm == "dense" or problem.n_pairs < _near_keys.FEW_PAIRS:
            return None
        return _near_keys.NearKeys.of(problem, self.basis.degree)

    def _over_nearest(self, rows):
        """Return sums over the nearest keys of queries; compute those that are not cached."""
        cache = self._nearest_cache
        missing_rows = np.unique(rows[cache.distance[rows] < 0])
        if len(missing_rows) and isinstance(self._linear, Line):
            cache.put(missing_rows, self._linear.nearest_of(missing_rows))
        elif len(missing_rows):
            problem = self.problem.take(missing_rows)
            features = problem.columns
            # Weights, and these times each value, (1 + n_values, n_keys).
            summands = np.vstack([problem.weights, problem.values.T * problem.weights])
            nearest = nearest_sums(
                problem.keys[:, features],
                summands,
                problem.queries[:, features],
                problem.left_out,
                self.problem.rounding[missing_rows],
            )
            cache.put(missing_rows, nearest)
        return Nearest(*(field[..., rows] for field in cache))

    @functools.cached_property
    def _nearest_cache(self):
        """Sums over the nearest keys of all queries; the distance is -1 if they are missing."""
        n_queries, n_columns = len(self.problem.queries), 1 + self.problem.values.shape[1]
        return Nearest(
            np.full(n_queries, -1.0), np.zeros(n_queries), np.zeros((n_columns, n_queries))
        )
