"""Batches of rows that a kernel is learned from."""

import numpy as np

# Of patches: rows far from one another would never show how far apart rows may be.
_CENTERS, _NEAR, _JUDGED_NEAR, _ELSEWHERE = 8, 48, 16, 128
# Steps for which neighbours are looked up in the same length-scales.
_REFRESH = 5


class RandomBatches:
    """Rows drawn at random, all of them judged.

    Parameters
    ----------
    n_rows, size : int
    rng : numpy.random.Generator
    """

    def __init__(self, n_rows, size, rng):
        self._n, self._size, self._rng = n_rows, size, rng

    def draw(self, kernel):
        """Positions of rows, and how many of them, the first ones, are judged."""
        if self._size >= self._n:
            return np.arange(self._n), self._n
        return self._rng.permutation(self._n)[: self._size], self._size


class PatchBatches:
    """Patches: random rows with those nearest to them, and some rows from elsewhere.

    Judged are the middles of the patches.

    Parameters
    ----------
    coordinates : list of ndarray of shape (n, n_columns)
        All rows, for each encoding.
    rng : numpy.random.Generator
    """

    def __init__(self, coordinates, rng):
        self._coordinates, self._rng, self._age = coordinates, rng, 0

    def draw(self, kernel):
        """Positions of rows, and how many of them, the first ones, are judged."""
        if self._age % _REFRESH == 0:
            self._space = kernel.space(self._coordinates)
            self._norms = np.einsum("ij,ij->i", self._space, self._space)
        self._age += 1
        n = len(self._space)
        centers = self._rng.choice(n, min(n, _CENTERS), replace=False)
        near = min(_NEAR, n - 1)
        squared = self._norms - 2 * (self._space[centers] @ self._space.T)
        found = np.argpartition(squared, near, axis=1)[:, :near]
        order = np.argsort(np.take_along_axis(squared, found, axis=1), axis=1)
        found = np.take_along_axis(found, order, axis=1)
        judged = np.unique(found[:, :_JUDGED_NEAR])
        elsewhere = self._rng.choice(n, min(n, _ELSEWHERE), replace=False)
        others = np.setdiff1d(np.concatenate([found.ravel(), elsewhere]), judged)
        return np.concatenate([judged, others]), len(judged)
