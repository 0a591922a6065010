"""Features as linear maps see them: standardised, and bent at quantiles."""

from dataclasses import dataclass

import numpy as np

from ._measures import dividing, spread_of

# Quantiles that features bend at, and values a feature has at least to bend.
_KNOTS, _FEWEST_VALUES = (0.2, 0.4, 0.6, 0.8), 6


@dataclass(frozen=True, eq=False)
class FeatureBasis:
    r"""Standardised features, and hinges :math:`\max(x - q, 0)` at four of their quantiles.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
        Mean and standard deviation of the features.
    bends : ndarray of int of shape (n_bends,)
        Which feature bends.
    knots : ndarray of shape (n_bends,)
        Where it does, standardised.
    """

    center: np.ndarray
    scale: np.ndarray
    bends: np.ndarray
    knots: np.ndarray

    @classmethod
    def of(cls, features):
        """The basis of a table of features, (n_rows, n_features)."""
        center, scale = features.mean(axis=0), dividing(spread_of(features, axis=0))
        pairs = [
            (i, knot)
            for i, own in enumerate(((features - center) / scale).T)
            if len(np.unique(own)) >= _FEWEST_VALUES
            for knot in np.unique(np.quantile(own, _KNOTS))
        ]
        bends = np.array([i for i, _ in pairs], dtype=np.int64)
        return cls(center, scale, bends, np.array([knot for _, knot in pairs]))

    def __call__(self, features, columns):
        """Some columns and their hinges, which `features` has alone; (..., n_basis)."""
        whole = np.zeros((*features.shape[:-1], len(self.center)))
        whole[..., columns] = (features - self.center[columns]) / self.scale[columns]
        kept = np.isin(self.bends, columns)
        bent = np.maximum(whole[..., self.bends[kept]] - self.knots[kept], 0)
        return np.concatenate([whole[..., columns], bent], axis=-1)
