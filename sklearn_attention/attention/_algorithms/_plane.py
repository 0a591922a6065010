"""Kernel sums in the plane, by whichever algorithm is the fastest."""

import itertools
import math

import numpy as np

from . import _plane_pairs
from ._boxes import reach
from ._line import LineSums
from ._plane_boxes import GaussianBoxes, powers
from ._plane_pairs import PlanePairs, Strips

# A sum is trusted down to this many times the bound on its error.
_TRUSTED = 1e9
# Nanoseconds of a pair, and of a range of pairs.
_PAIR, _RANGE = 28.0, 250.0
# Of boxes: of a row and of a square's terms carried to another, both for each sum and once
# more; and of a call.
_ROW, _CARRIED, _CALL = (500.0, 70.0), 2500.0, 1e6
# Queries that stand for all where pairs are counted.
_COUNTED = 256


class Plane:
    r"""Keys in the plane.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
    weights : ndarray of shape (n,)
    values : ndarray of shape (n, p)
    kernel : RadialKernel
        One that :func:`serves_plane`.
    degree : {0, 1}
        Half the highest power of the distances to be summed.

    Attributes
    ----------
    points : ndarray of shape (n, 2)
    columns : ndarray of shape (1 + p, n)
        The weights, and these times the values.
    powers : list of (int, int)
        Exponents (e, f) of the key's distances :math:`u^e v^f` from the query along either
        axis, in bandwidths: those of 1, u, v, u^2, uv, v^2, in this order; of 1 alone for
        degree 0.
    """

    def __init__(self, points, weights, values, kernel, degree=0):
        self.points = np.ascontiguousarray(points)
        self.columns = np.vstack([weights, (values * weights[:, None]).T])
        self.kernel, self.degree, self.powers = kernel, degree, powers(degree)
        self.peak = float(kernel.profile(np.zeros(1))[0])
        self.reach = reach(kernel, 2 * degree)
        self._deviation = _deviation(kernel)
        self._pairs = PlanePairs(
            self.points, self.columns, kernel, self._deviation, degree, self.reach
        )
        n_low = sum(e + f <= degree for e, f in self.powers)
        self._n_sums = len(self.powers) + n_low * (len(self.columns) - 1)

    def sums(self, queries, scale, own=None):
        """Sums for queries in any order.

        Parameters
        ----------
        queries : ndarray of shape (m, 2)
            The attribute `points` for the keys themselves, which spares some work.
        scale : float or ndarray of shape (m,)
            Multiplies the bandwidth.
        own : int ndarray of shape (m,), default=None
            Position of the key to leave out of each query's sums, which lies where the query
            does; -1 for none.

        Returns
        -------
        found : LineSums
            Its sums have the shape (n_powers, 1 + p, m): for each of the `powers` the sum of
            the weights, and up to the degree that of the weights times each value; 0 above.
        """
        scales = np.broadcast_to(scale, len(queries))
        if len(queries) * len(self.points) < _plane_pairs.FEW_PAIRS:
            return LineSums(*self._pairs.exact(queries, scales, own))
        sums, error = self._fastest(queries, scale)
        if own is not None:
            sums[0] -= np.where(own >= 0, self.peak, 0.0) * self.columns[:, own]
        shift = np.zeros(len(queries))
        unsure = np.flatnonzero(~(sums[0, 0] > _TRUSTED * error))
        if len(unsure):
            own = None if own is None else own[unsure]
            exact = self._pairs.exact(queries[unsure], scales[unsure], own)
            shift[unsure], sums[:, :, unsure] = exact
        return LineSums(shift, sums)

    def nearest(self, queries, own=None):
        """Sums over the nearest keys of each query alone, which share where equally near.

        Parameters
        ----------
        queries, own
            As for :meth:`sums`.

        Returns
        -------
        distance : ndarray of shape (m,)
            To the nearest key; inf where there is none.
        sums : ndarray of shape (n_powers, 1 + p, m)
            Sums of the columns; those of other powers are 0, so that a polynomial is the
            average.
        """
        distance, of_columns = self._pairs.nearest(queries, own)
        sums = np.zeros((len(self.powers), *of_columns.shape))
        sums[0] = of_columns
        return distance, sums

    def everything(self, queries, own=None, scale=1.0):
        """Sums over all keys alike, as :meth:`sums`; powers are in units of the scale."""
        middle = np.average(self.points, axis=0, weights=self.columns[0])
        u, v = (self.points - middle).T
        x, y = (middle - queries).T
        sums = np.zeros((len(self.powers), len(self.columns), len(queries)))
        for found, (e, f) in zip(sums, self.powers, strict=True):
            columns = self.columns[: None if e + f <= self.degree else 1]
            for i, j in itertools.product(range(e + 1), range(f + 1)):
                moment = math.comb(e, i) * math.comb(f, j) * (columns @ (u**i * v**j))
                found[: len(columns)] += moment[:, None] * x ** (e - i) * y ** (f - j)
            found /= scale ** (e + f)
        if own is not None:
            sums[0] -= np.where(own >= 0, self.columns[:, own], 0.0)
        return np.zeros(len(queries)), sums

    def _fastest(self, queries, scale):
        """Sums, and bounds on the error of the first."""
        strips = Strips(self.points, self.reach * float(np.max(scale, initial=0.0)) / 2)
        scales = np.broadcast_to(scale, len(queries))
        if np.ndim(scale):
            return self._pairs.near(strips, queries, scales)
        pairs = self._cost_of_pairs(strips, queries, scales)
        row = _ROW[0] + _ROW[1] * self._n_sums
        least = _CALL + row * (len(self.points) + len(queries)) / 2
        if pairs > least:
            boxes = GaussianBoxes(self.points, queries, scale * self._deviation, self.degree)
            if pairs > least + _CARRIED * (self._n_sums + 1) * boxes.n_carried:
                return self._by_boxes(boxes)
        return self._pairs.near(strips, queries, scales)

    def _cost_of_pairs(self, strips, queries, scales):
        """Nanoseconds, about."""
        step = max(1, len(queries) // _COUNTED)
        low, high, first = strips.ranges(queries[::step], self.reach * scales[::step])
        cost = _PAIR * float((high - low).sum()) + _RANGE * len(low)
        return cost * len(queries) / max(len(first) - 1, 1)

    def _by_boxes(self, boxes):
        """In units of the kernel, from those of a Gaussian with peak 1."""
        sums, error = boxes(self.columns)
        for (e, f), of_power in zip(self.powers, sums, strict=True):
            of_power *= self.peak * self._deviation ** (e + f)
        return sums, self.peak * error


def serves_plane(kernel):
    """Whether a kernel of the distance has an algorithm of linear time in the plane."""
    return _deviation(kernel) is not None


def _deviation(kernel):
    """Standard deviation, in bandwidths, of a kernel that is a Gaussian; else None."""
    if not math.isinf(kernel.analytic_strip):
        return None
    # A Gaussian is what has a logarithm linear in the squared distance.
    slopes = np.diff(kernel.log_profile(np.arange(9.0)))
    is_gaussian = slopes[0] < 0 and np.allclose(slopes, slopes[0], rtol=1e-12)
    return math.sqrt(-0.5 / slopes[0]) if is_gaussian else None
