"""Units in which a network sees windows, and in which it answers."""

from typing import NamedTuple

import numpy as np

from ._measures import dividing, spread_of
from ._origins import evenly_spread

# Windows that the units of features are measured on.
_MOST_MEASURED = 5000


class Scaling(NamedTuple):
    """Level and unit of each training series and each feature.

    Attributes
    ----------
    lookback : int
        Steps of a window.
    level, unit : ndarray of shape (n_series,)
        Mean and standard deviation of the training series.
    center, scale : ndarray of shape (n_features,)
        Mean and standard deviation of the features in training.
    """

    lookback: int
    level: np.ndarray
    unit: np.ndarray
    center: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, origins, lookback):
        """Measured before the last of some origins in each series.

        Parameters
        ----------
        origins : Origins
        lookback : int

        Returns
        -------
        scaling : Scaling
        """
        observations = origins.table
        last = np.zeros(len(observations.values), dtype=np.int64)
        np.maximum.at(last, origins.series, origins.known)
        pairs = zip(observations.values, np.maximum(last, 1), strict=True)
        level, unit = _measure([own[:end] for own, end in pairs])
        few = origins.take(evenly_spread(len(origins), _MOST_MEASURED))
        features = few.past_features(lookback)
        if features is None:
            return cls(lookback, level, unit, np.empty(0), np.empty(0))
        center = features.mean(axis=(0, 1))
        return cls(lookback, level, unit, center, dividing(spread_of(features, axis=(0, 1))))

    def units(self, origins):
        """Level and unit at each origin, (n_origins, 1); of unknown series their own."""
        own = origins.identity
        level, unit = self.level[own], self.unit[own]
        if (own < 0).any():
            fresh = _measure(origins.table.values)
            level = np.where(own < 0, fresh[0][origins.series], level)
            unit = np.where(own < 0, fresh[1][origins.series], unit)
        return level[:, None], unit[:, None]

    def inputs(self, origins):
        """Windows and features as a network takes them, in single precision.

        Parameters
        ----------
        origins : Origins

        Returns
        -------
        past : ndarray of shape (n_origins, lookback)
        past_features : ndarray of shape (n_origins, lookback, n_features) or None
        future_features : ndarray of shape (n_origins, horizon, n_known) or None
        """
        level, unit = self.units(origins)
        past = (origins.past(self.lookback) - level) / unit
        known = origins.table.known
        return (
            past.astype(np.float32),
            self._standard(origins.past_features(self.lookback), slice(None)),
            self._standard(origins.future_features(), known),
        )

    def _standard(self, features, columns):
        if features is None:
            return None
        return ((features - self.center[columns]) / self.scale[columns]).astype(np.float32)


def _measure(values):
    """Means and standard deviations of series, 1 in the place of 0."""
    level = np.array([own.mean() for own in values])
    return level, dividing(np.array([spread_of(own) for own in values]))
