"""Forecasts at origins: one pass over candidates, with weights and disagreement."""

from dataclasses import dataclass

import numpy as np

from ._origins import Origins


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts at some origins, with quantiles, candidates and weights.

    Attributes
    ----------
    origins : Origins
    mean : ndarray of shape (n_origins, horizon)
        The forecasts.
    disagreement : ndarray of shape (n_origins, horizon), default=None
        Mean distance of candidates from their mean; None with only one forecast, or without
        `levels`.
    quantiles : ndarray of shape (n_origins, horizon, n_levels), default=None
        Of the levels passed; None where there is no distribution.
    every : ndarray of shape (n_origins, n_candidates, horizon), default=None
        Forecasts of the candidates, NaN where one has none.
    weights : ndarray of shape (n_origins, n_candidates), default=None
        Their weights.
    """

    origins: Origins
    mean: np.ndarray
    disagreement: np.ndarray | None = None
    quantiles: np.ndarray | None = None
    every: np.ndarray | None = None
    weights: np.ndarray | None = None

    @classmethod
    def at(cls, origins, candidates, full=False):
        """Combined forecasts; the last known value where no candidate has one."""
        weights = candidates.weights_at(origins)
        every = candidates.each(origins, None if full else weights.any(axis=0))
        there = ~np.isnan(every).any(axis=2)
        lost = np.flatnonzero(~(there & (weights > 0)).any(axis=1))
        if len(lost) and not full:  # too short for all that have weight
            every[lost] = candidates.each(origins.take(lost))
        mean = combine(every, weights, origins.past(1))
        spread = disagreement(every) if full else None
        return cls(origins, mean, spread, every=every, weights=weights)

    def take(self, rows):
        """Those of some origins."""
        parts = (self.mean, self.disagreement, self.quantiles, self.every, self.weights)
        parts = (None if part is None else part[rows] for part in parts)
        return Forecasts(self.origins.take(rows), *parts)


def combine(forecasts, weights, otherwise):
    """Weighted averages of forecasts (n_origins, n_candidates, horizon), as far as there are.

    Where all that have weight are NaN, the others are averaged; where all are, `otherwise`.
    """
    there = ~np.isnan(forecasts).any(axis=2)
    weights = np.where(there, weights, 0.0)
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, there)
    total = weights.sum(axis=1, keepdims=True)
    weights = weights / np.where(total > 0, total, 1.0)
    combined = np.einsum("nc,nch->nh", weights, np.where(there[:, :, None], forecasts, 0.0))
    return np.where(total > 0, combined, otherwise)


def disagreement(forecasts):
    """Mean distances of candidates from their mean, without weights; (n_origins, horizon).

    0 where no candidate has a forecast.
    """
    there = ~np.isnan(forecasts).any(axis=2)
    equal = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
    filled = np.where(there[:, :, None], forecasts, 0.0)
    mean = np.einsum("nc,nch->nh", equal, filled)
    return np.einsum("nc,nch->nh", equal, np.abs(filled - mean[:, None]))
