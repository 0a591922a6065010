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
        self._coordinates, self._rng, self._patches = coordinates, rng, []

    def draw(self, kernel):
        """Positions of rows, and how many of them, the first ones, are judged."""
        if not self._patches:
            self._patches = self._find(kernel.space(self._coordinates))
        n, found = len(self._coordinates[0]), self._patches.pop()
        judged = np.unique(found[:, :_JUDGED_NEAR])
        elsewhere = self._rng.choice(n, min(n, _ELSEWHERE), replace=False)
        others = np.setdiff1d(np.concatenate([found.ravel(), elsewhere]), judged)
        return np.concatenate([judged, others]), len(judged)

    def _find(self, space):
        """Rows of the patches of some steps, the nearest first."""
        n = len(space)
        centers = [
            self._rng.choice(n, min(n, _CENTERS), replace=False) for _ in range(_REFRESH)
        ]
        near = min(_NEAR, n - 1)
        # All at once, so that all rows are read but once.
        squared = space[np.concatenate(centers)] @ space.T
        squared *= -2
        squared += np.einsum("ij,ij->i", space, space)
        found = np.argpartition(squared, near, axis=1)[:, :near]
        order = np.argsort(np.take_along_axis(squared, found, axis=1), axis=1)
        return np.split(np.take_along_axis(found, order, axis=1), _REFRESH)
