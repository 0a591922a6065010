"""Keys of which kernel sums take linear time, whatever the algorithm."""

import itertools
import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ._boxes import reach

# A sum is trusted down to this many times the bound on its error.
_TRUSTED = 1e9
# The exponential of more is infinite.
_LARGEST = 700.0
# What is smaller than another sum by this factor, as a logarithm, is nothing beside it.
_NOTHING = -32.0


class Sums(NamedTuple):
    """Sums about each query, in units of the bandwidth.

    Attributes
    ----------
    shift : ndarray of shape (m,)
        Logarithm of what the sums are divided by; -inf where no key has weight.
    sums : ndarray of shape (n_powers, 1 + p, m)
        For each power of the key's distances the sum of the weights, and up to the degree
        that of the weights times each value; 0 above.
    """

    shift: Any
    sums: Any


class Keys(ABC):
    r"""Base class of keys along one or two axes.

    A subclass has an algorithm of linear time, and finds the keys that are near. Sums that
    are too small to be trusted are made again here, pair by pair.

    Parameters
    ----------
    points : ndarray of shape (n, n_axes)
    weights : ndarray of shape (n,)
    values : ndarray of shape (n, p)
    kernel : RadialKernel
    degree : int
        Half the highest power of the distances to be summed.

    Attributes
    ----------
    points : ndarray of shape (n, n_axes)
    columns : ndarray of shape (1 + p, n)
        The weights, and these times the values.
    powers : list of tuple of int
        Exponents of the key's distances from the query along each axis, in bandwidths, by
        their sum: in the plane those of :math:`1, u, v, u^2, uv, v^2`.
    peak : float
        The kernel at no distance.
    reach : float
        Distance, in bandwidths, beyond which the kernel is next to 0.
    """

    def __init__(self, points, weights, values, kernel, degree=0):
        self.points, self.kernel, self.degree = points, kernel, degree
        self.columns = np.vstack([weights, (values * weights[:, None]).T])
        powers = itertools.product(range(2 * degree + 1), repeat=points.shape[1])
        by_sum = sorted(powers, key=lambda power: (sum(power), power[1:]))
        self.powers = [power for power in by_sum if sum(power) <= 2 * degree]
        n_low = sum(sum(power) <= degree for power in self.powers)
        # How many sums differ from 0.
        self.n_sums = len(self.powers) + n_low * (len(self.columns) - 1)
        self.peak = float(kernel.profile(np.zeros(1))[0])
        self.reach = reach(kernel, 2 * degree)

    @abstractmethod
    def _in_linear_time(self, queries, scale):
        """Sums, and bounds on the error of the first; None where pairs are as fast."""

    @abstractmethod
    def _by_pairs(self, queries, scale, own, seen):
        """Shifts and sums over the keys that can be seen beside the nearest, pair by pair.

        Those that are nothing beside what was seen are left out.
        """

    @abstractmethod
    def _nearest(self, queries, own):
        """Distances of the nearest keys, and sums of the columns over these alone."""

    def sums(self, queries, scale, own=None, seen=None):
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
        seen : ndarray of shape (m,), default=None
            Logarithm of what the weights of more keys, to which these belong, are known to
            sum to at least: what is nothing beside that need not be exact.

        Returns
        -------
        found : Sums
        """
        scales = np.broadcast_to(scale, len(queries))
        least = np.zeros(len(queries)) if seen is None else np.exp(np.minimum(seen, _LARGEST))
        found = self._in_linear_time(queries, scale)
        if found is None:
            return Sums(*self._by_pairs(queries, scales, own, seen))
        sums, error = found
        if own is not None:
            sums[0] -= np.where(own >= 0, self.peak, 0.0) * self.columns[:, own]
        shift = np.zeros(len(queries))
        unsure = np.flatnonzero(~(sums[0, 0] + least > _TRUSTED * error))
        if len(unsure):
            own, seen = (None if field is None else field[unsure] for field in (own, seen))
            again = self._by_pairs(queries[unsure], scales[unsure], own, seen)
            shift[unsure], sums[:, :, unsure] = again
        return Sums(shift, sums)

    def _is_nothing(self, nearest, seen):
        """Whether all keys together are nothing beside what was seen.

        From the distance to the nearest, in bandwidths, for kernels of unbounded support.
        """
        if seen is None:
            return np.zeros(len(nearest), dtype=bool)
        with np.errstate(over="ignore"):
            largest = np.log(self.columns[0].sum()) + self.kernel.log_profile(nearest**2)
        return largest < seen + _NOTHING

    def nearest(self, queries, own=None):
        """Sums over the nearest keys of each query alone, which share where equally near.

        Parameters
        ----------
        queries, own
            As for :meth:`sums`; in any order.

        Returns
        -------
        distance : ndarray of shape (m,)
            To the nearest key; inf where there is none.
        sums : ndarray of shape (n_powers, 1 + p, m)
            Sums of the columns; those of other powers are 0, so that a polynomial is the
            average.
        """
        distance, of_columns = self._nearest(queries, own)
        sums = np.zeros((len(self.powers), *of_columns.shape))
        sums[0] = of_columns
        return distance, sums

    def everything(self, queries, own=None, scale=1.0):
        """Sums over all keys alike, as :meth:`sums`; powers are in units of the scale."""
        middle = np.average(self.points, axis=0, weights=self.columns[0])
        deviation, offset = self.points - middle, middle - queries
        sums = np.zeros((len(self.powers), len(self.columns), len(queries)))
        for found, power in zip(sums, self.powers, strict=True):
            columns = self.columns[: None if sum(power) <= self.degree else 1]
            # The binomial theorem, along each axis.
            for inner in itertools.product(*(range(e + 1) for e in power)):
                outer = np.subtract(power, inner)
                moment = columns @ np.prod(deviation**inner, axis=1)
                factor = math.prod(map(math.comb, power, inner))
                around = np.prod(offset**outer, axis=1)
                found[: len(columns)] += factor * moment[:, None] * around
            found /= scale ** sum(power)
        if own is not None:
            sums[0] -= np.where(own >= 0, self.columns[:, own], 0.0)
        return np.zeros(len(queries)), sums
