"""Units in which a network sees windows, and in which it answers."""

from typing import NamedTuple

import numpy as np


class Scaling(NamedTuple):
    """Level and unit of each feature; those of series come with their windows.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
        Mean and standard deviation of the features in training.
    known : ndarray of int
        Columns of the features that are known beforehand.
    """

    center: np.ndarray
    scale: np.ndarray
    known: np.ndarray

    def inputs(self, batch):
        """Windows and features as a network takes them, in single precision.

        Parameters
        ----------
        batch : WindowBatch

        Returns
        -------
        past : ndarray of shape (n_windows, lookback)
        past_features : ndarray of shape (n_windows, lookback, n_features) or None
        future_features : ndarray of shape (n_windows, horizon, n_known) or None
        """
        past = (batch.past - batch.level[:, None]) / batch.unit[:, None]
        later = batch.future_features
        before = batch.past_features
        return (
            past.astype(np.float32),
            None if before is None else self._standard(before, slice(None)),
            None if later is None else self._standard(later, self.known),
        )

    def targets(self, batch, base):
        """What a base leaves of the targets, in single precision; (n_windows, horizon)."""
        return ((batch.target - base) / batch.unit[:, None]).astype(np.float32)

    def _standard(self, features, columns):
        return ((features - self.center[columns]) / self.scale[columns]).astype(np.float32)
