"""Distances of places from rows, and whether rows are on all sides of them."""

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from .._blocks import blocks_of_queries

# Distances from the nearest row are usual up to so many times their median, for one feature: of
# rows spread evenly 19 in 20 are no larger.
_USUAL = 4.0
# So many rows stand for all where the question is on which side they are.
_MOST_DIRECTIONS = 500


class Remoteness:
    """Distances of places from rows beyond what is usual, and how one-sided the rows are."""

    def __init__(self, places):
        self._places, self._tree, self.usual = places, None, 0.0
        self._some = places[:: -(-len(places) // _MOST_DIRECTIONS)]
        if places.shape[1] and len(places) > 1:
            self._tree = KDTree(places)
            distances = self._tree.query(places, k=[2])[0]
            self.usual = np.median(distances) * _USUAL ** (1 / places.shape[1])

    def beyond(self, places, neighbor=1):
        """Distances to the nearest row, or the next, beyond the usual, (n,)."""
        if self._tree is None:
            return np.zeros(len(places))
        distances = self._tree.query(places, k=[neighbor])[0][:, 0]
        return np.maximum(distances - self.usual, 0.0)

    def of(self, places=None):
        """Distances beyond the usual (n,), and from 0 to 1 how much rows are on one side.

        Of places, or of the rows, each from the others.
        """
        places, neighbor = (self._places, 2) if places is None else (places, 1)
        if self._tree is None:
            return np.zeros(len(places)), np.zeros(len(places))
        sides = [
            one_sided(places[part], self._some)
            for part in blocks_of_queries(len(places), len(self._some))
        ]
        return self.beyond(places, neighbor), np.concatenate(sides)


def one_sided(places, rows):
    r"""Length of the mean direction to rows, with weights :math:`d^{-p - 1}` of p features."""
    distances = cdist(places, rows)
    distances = np.where(distances > 0, distances, np.inf)
    nearest = distances.min(axis=1, keepdims=True)
    nearest = np.where(np.isfinite(nearest), nearest, 1.0)
    weights = (nearest / distances) ** (places.shape[1] + 1)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    weights /= distances
    mean = weights @ rows - weights.sum(axis=1, keepdims=True) * places
    return np.minimum(np.linalg.norm(mean, axis=1), 1.0)
