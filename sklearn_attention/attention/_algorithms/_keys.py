"""Keys of which kernel sums take linear time, whatever the algorithm."""

from abc import ABC, abstractmethod

import numpy as np

from .._solve import Basis
from .._sums import Sums
from ._boxes import reach

# A sum is trusted down to this many times the bound on its error.
_TRUSTED = 1e9


class Keys(ABC):
    r"""Base class of keys along one or two axes: :class:`Line` and :class:`Plane`.

    A subclass has an algorithm of linear time, and finds the keys that are near. Sums that
    are too small to be trusted are made again here, pair by pair.

    Of points (n, n_axes) with weights (n,), values (n, p), a kernel of the distance, and a
    degree: half the highest power of the distances to be summed.

    Attributes
    ----------
    points : ndarray of shape (n, n_axes)
    columns : ndarray of shape (1 + p, n)
        The weights, and these times the values.
    powers : list of tuple of int
        Exponents of the key's distances from the query along each axis, in bandwidths.
    peak : float
        The kernel at no distance.
    reach : float
        Distance, in bandwidths, beyond which the kernel is next to 0.
    """

    def __init__(self, points, weights, values, kernel, degree=0):
        self.points, self.kernel, self.degree = points, kernel, degree
        self.columns = np.vstack([weights, (values * weights[:, None]).T])
        self.basis = Basis(degree, points.shape[1])
        self.powers = list(map(tuple, self.basis.powers.tolist()))
        # How many sums differ from 0.
        self.n_sums = len(self.powers) + self.basis.size * (len(self.columns) - 1)
        self.peak = float(kernel.profile(np.zeros(1))[0])
        self.reach = reach(kernel, 2 * degree)

    @abstractmethod
    def _in_linear_time(self, queries, scale):
        """Sums, and bounds on the error of the first; None where pairs are as fast."""

    @abstractmethod
    def _by_pairs(self, queries, scale, own):
        """Shifts and sums over the keys that count beside the nearest, pair by pair."""

    @abstractmethod
    def nearest(self, queries, own=None):
        """Distances of the nearest keys, and sums (1 + p, m) of the columns over these."""

    def sums(self, queries, scale, own=None, *, exact=False, most=1.0):
        """Sums for some queries.

        Parameters
        ----------
        queries : ndarray of shape (m, n_axes)
            The attribute `points` for the keys themselves, which spares some work.
        scale : float or ndarray of shape (m,)
            Multiplies the bandwidth.
        own : int ndarray of shape (m,), default=None
            Position of the key to leave out of each query's sums, which lies where the query
            does; -1 for none.
        exact : bool, default=False
            Whether to compare pairs from the start.
        most : float, default=1.0
            The largest share of queries that are compared pair by pair, because their sums
            are not to be trusted. Where there are more, these sums stay as they are.
        """
        found = None if exact else self._in_linear_time(queries, scale)
        scales = np.broadcast_to(scale, len(queries))
        if found is None:
            return Sums(*self._by_pairs(queries, scales, own), np.zeros(len(queries)))
        sums, error = found
        if own is not None:
            sums[0] -= np.where(own >= 0, self.peak, 0.0) * self.columns[:, own]
        shift, least = np.zeros(len(queries)), _TRUSTED * error
        unsure = np.flatnonzero(~(sums[0, 0] > least))
        if 0 < len(unsure) <= most * len(queries):
            own = None if own is None else own[unsure]
            again = self._by_pairs(queries[unsure], scales[unsure], own)
            shift[unsure], sums[:, :, unsure] = again
            least[unsure] = 0.0
        return Sums(shift, sums, least)
