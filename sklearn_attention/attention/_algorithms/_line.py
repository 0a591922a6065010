r"""Kernel sums along one feature, by running sums, recurrences, boxes or pairs.

A `Line` holds the keys in order. By the kernel, it has one of three algorithms of linear time:
running sums for polynomials on a window (`_windows.py`), recurrences for exponentials
(`_recurrences.py`), and boxes, Chebyshev interpolation between cells, for analytic kernels
(`_boxes.py`). After sorting n queries and m keys, time and memory are O(n + m).

Pairs within the *cutoff*, the distance beyond which the kernel is negligible, are taken if they
need fewer nanoseconds by an estimate. They also serve queries at scales of their own, and those
for which the sum is not well above the error bound. A *scale* is a multiple of the bandwidth; a
distance in bandwidths divided by it is u.
"""

import functools
import math

import numpy as np

from ..._blocks import IN_CACHE
from .._sums import Sums
from ._boxes import Boxes, Grid
from ._keys import LinearTimeKeys, Ranges, cutoff, in_order, inside
from ._nearest import distance_along, nearest_along
from ._recurrences import RecurrenceSums
from ._windows import WindowSums, window

# Width of cells in bandwidths, and number of Chebyshev polynomials: errors are below rounding.
_WIDTH, _TERMS = 2.0, 20
# Number of queries at which pairs are counted.
_SAMPLED_QUERIES = 64
# Nanoseconds of a pair in sums pair by pair; of a call of an algorithm of linear time; and, for
# each sum, of the terms that boxes move from one cell to another.
_PAIR_NS, _CALL_NS, _CELL_NS = 12.0, 2e5, 35.0


class Line(LinearTimeKeys):
    """Keys along one feature, in order.

    `order` (m,) has the position of each key as passed, and `x` (m,) the coordinates, which
    ascend. The queries of sums ascend, too, but not those of :meth:`nearest_of`.
    """

    def __init__(self, x, weights, values, kernel, degree=0, order=None):
        self.order = np.argsort(x) if order is None else order
        self.x = x[self.order]
        points = self.x[:, None]
        super().__init__(points, weights[self.order], values[self.order], kernel, degree)
        # A key at distance 0 outweighs all keys beyond this, even if it has the least weight.
        self._cutoff_at_key = cutoff(kernel, 2 * degree, self.span)

    @functools.cached_property
    def _algorithm(self):
        """The algorithm of linear time for the kernel."""
        if self.kernel.polynomial is not None:
            return WindowSums(self)
        if self.kernel.exponential_polynomial is not None:
            return RecurrenceSums(self)
        return _BoxSums(self)

    def _in_linear_time(self, queries, scale):
        if np.ndim(scale) or self._pairs_are_faster(queries, scale):
            return None
        return self._algorithm(queries, scale)

    def _pairs_are_faster(self, queries, scale):
        """Return True if pairs need fewer nanoseconds than the algorithm of linear time.

        The number of pairs is estimated from queries at regular steps.
        """
        if not len(queries):
            return True
        sample = queries[:: max(1, len(queries) // _SAMPLED_QUERIES), 0]
        low, high = window(self.x, sample, self.cutoff * scale)
        n_near = high - low  # number of keys within the cutoff of each sampled query
        time_of_pairs = _PAIR_NS * n_near.mean() * len(queries)
        # The cost is the time for one key and one query together.
        n_keys_and_queries = (len(self.x) + len(queries)) / 2
        return time_of_pairs < self._algorithm.cost(n_near) * n_keys_and_queries + _CALL_NS

    def _by_pairs(self, queries, scale, left_out):
        """Compute `Sums` over the keys within the cutoff of each query, pair by pair.

        `scale` is (n,) here, and `left_out` (n, 2) or None. All sums are exact.
        """
        kernel, q = self.kernel, queries[:, 0]
        is_compact = math.isfinite(kernel.support)
        sums = np.zeros((2 * self.degree + 1, len(self.columns), len(q)))
        shift = np.full(len(q), -np.inf)
        # A block has the queries `rows`, with `counts` keys each. Its pairs follow each other,
        # and `starts` are the first ones of each query.
        for rows, counts, keys in self._near_ranges(q, scale, left_out).blocks():
            starts = np.cumsum(counts) - counts
            query = np.repeat(rows, counts)
            with np.errstate(over="ignore"):
                u = (self.x[keys] - q[query]) / scale[query]
                weights = (kernel.profile if is_compact else kernel.log_profile)(u * u)
            if left_out is not None:
                is_left_out = inside(left_out.take(query, axis=0), self.order[keys])
                weights[is_left_out] = 0.0 if is_compact else -np.inf
            # If the kernel is not compact, weights are divided by the largest one, so that no
            # sum vanishes.
            if is_compact:
                shift[rows] = np.where(np.add.reduceat(weights, starts) > 0, 0.0, -np.inf)
            else:
                shift[rows] = np.maximum.reduceat(weights, starts)
                weights -= np.where(shift > -np.inf, shift, 0.0)[query]
                weights = np.exp(weights)
            for c, column in enumerate(self.columns):
                terms = weights * column[keys]
                for power in range((self.degree if c else 2 * self.degree) + 1):
                    if power:
                        terms *= u
                    sums[power, c, rows] = np.add.reduceat(terms, starts)
        return Sums(shift, sums, error_bound=np.zeros(len(q)))

    def _near_ranges(self, q, scale, left_out):
        """Return the `Ranges` of keys whose weight is not negligible at queries q (n,).

        Keys are compared with the nearest key that is not left out, if this is far away.
        """
        kernel, distance = self.kernel, self._cutoff_at_key * scale  # (n,)
        is_compact = math.isfinite(kernel.support)
        if not is_compact:
            nearest = distance_along(self, q, left_out) / scale
            is_far = np.isfinite(nearest) & (nearest > self.cutoff / 4)
            distance[is_far] = self._cutoff_from_nearest(nearest[is_far]) * scale[is_far]
        jumps = is_compact and kernel.profile(np.ones(1))[0] > 0
        return Ranges(*window(self.x, q, distance, exact=jumps))

    def _cutoff_from_nearest(self, nearest):
        """Return the distances (n,) beyond which keys are negligible beside the nearest one.

        `nearest` (n,) are the distances to the nearest keys. The unit of all distances is the
        bandwidth times the scale.
        """
        # The kernel's logarithm is concave in the distance. So beyond `nearest` + `step` it
        # falls by at least `slope` (positive) per unit, its mean fall over the step; a Gaussian
        # falls by about 1 over this step. For the same reason it falls over any distance from
        # `nearest` on by at least as much as from 0 on. So the cutoff of a key at distance 0,
        # added to `nearest`, is a valid bound as well.
        step = 1 / np.maximum(nearest, 1.0)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            log = self.kernel.log_profile
            slope = (log(nearest**2) - log((nearest + step) ** 2)) / step
            beyond_nearest = step + self.log_ratio_to_negligible / slope
        return nearest + np.fmin(beyond_nearest, self._cutoff_at_key)  # fmin skips NaN

    def nearest_of(self, rows):
        """Sum over the nearest keys of the queries at `rows` of the problem, as `Nearest`."""
        queries, left_out = self._queries_at(rows)
        return nearest_along(self, queries[:, 0], left_out, self.problem.rounding[rows])

    def groups(self, scales):
        """Return the scales in groups whose sums :meth:`side_by_side` computes together."""
        polynomial = self.kernel.polynomial
        # Where the kernel jumps, the last digit of a distance decides which keys have weight,
        # and side by side this digit is lost.
        jumps = polynomial is not None and sum(polynomial) > 1e-9
        if jumps or not self.are_queries or self.problem.left_out is None:
            return np.split(scales, len(scales))
        # These are the lengths of the copies of the keys that are laid out side by side.
        lengths = (np.ptp(self.x) + self._largest_gap) / scales + 2 * self.cutoff
        starts, end = [0], lengths[0]
        for position in range(1, len(scales)):
            first = starts[-1]  # position of the first scale of the last group
            end += lengths[position]
            n_numbers = (position - first + 1) * self.columns.size
            # Coordinates beyond this number have lost half of their digits.
            if end > np.finfo(np.float64).eps ** -0.5 or n_numbers > IN_CACHE:
                starts.append(position)
                end = lengths[position]
        return np.split(scales, starts[1:])

    @functools.cached_property
    def _largest_gap(self):
        """Largest difference of neighbouring keys, in bandwidths."""
        return np.diff(self.x).max(initial=0.0)

    def side_by_side(self, scales):
        """Compute `Sums` at several scales in one call; the queries are the keys themselves.

        The queries of the result are all keys at the first scale, then all keys at the second
        one, and so on. Each leaves out the keys that it leaves out in the problem.
        """
        # For small samples a call takes longer than the sums. So copies of the keys, each
        # divided by its scale, are laid out side by side, so far from each other that no key
        # has weight in another copy, even where its own neighbours are far.
        n_scales, problem = len(scales), self.problem
        lengths = (self.x[-1] - self.x[0]) / scales + self._largest_gap / scales.min()
        lengths += 2 * self.cutoff
        x_of_copies = (self._queries[:, 0] - self.x[0]) / scales[:, None]
        x_of_copies += (np.cumsum(lengths) - lengths)[:, None]
        # Keys of each copy are numbered after those of the copies before it; (n_scales, 1).
        first_keys = len(self.x) * np.arange(n_scales)[:, None]
        line = Line(
            x_of_copies.ravel(),
            np.tile(problem.weights, n_scales),
            np.tile(problem.values, (n_scales, 1)),
            self.kernel,
            self.degree,
            (self.order + first_keys).ravel(),
        )
        left_out = (problem.left_out + first_keys[:, :, None]).reshape(-1, 2)
        left_out = left_out.take(line.order, axis=0)
        return in_order(line.sums(line.points, 1.0, left_out), line.order)


class _BoxSums:
    """Boxes of an analytic kernel with light tails, on a line."""

    def __init__(self, line):
        kernel = line.kernel
        # Coefficients of polynomials fall slowly if a cell is wide relative to the distance to
        # the kernel's nearest singularity in the complex plane.
        width = min(_WIDTH, kernel.analytic_strip / 2)
        self._boxes = Boxes(line, kernel.profile, Grid(width, _TERMS, line.cutoff))
        self._n_sums, self._n_cells = line.n_sums, 2 * line.cutoff / width

    def __call__(self, queries, scale):
        """Return sums (n_powers, c, n) about queries (n, 1), and bounds on their errors."""
        return self._boxes(self._boxes.plan(queries, scale))

    def cost(self, n_near):
        """Return nanoseconds for a key and a query together.

        `n_near` (n_sampled,) has the numbers of keys within the cutoff of sampled queries.
        """
        n_in_cell = (n_near / self._n_cells).clip(1)
        return 40 + self._n_sums * (14 + _CELL_NS * self._n_cells * (1 / n_in_cell).mean())


def serves_line(kernel):
    """Return True if a kernel of the distance has an algorithm of linear time on the line."""
    is_light = kernel.analytic_strip > 0 and np.isfinite(cutoff(kernel))
    has_moments = kernel.polynomial is not None or kernel.exponential_polynomial is not None
    return has_moments or is_light
