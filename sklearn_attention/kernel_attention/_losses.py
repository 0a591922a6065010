"""Losses of leave-one-out errors, with their derivatives."""

import numpy as np
from scipy.special import softmax

# A probability is mixed with so much of equal ones: one row must not decide alone.
_EQUAL = 0.02
_FIRST_SHARPNESS, _NEWTON_STEPS = 4.0, 4


class SquaredLoss:
    """Mean squared error over rows and outputs."""

    def __call__(self, errors, targets, weights):
        """Loss and its derivatives in the errors.

        Parameters
        ----------
        errors : ndarray of shape (n, n_outputs)
            Targets less predictions.
        targets : ndarray of shape (n, n_outputs)
        weights : ndarray of shape (n,)
            Sum to 1.

        Returns
        -------
        loss : float
        slopes : ndarray of shape (n, n_outputs)
        """
        weighted = weights[:, None] * errors / errors.shape[1]
        return float((weighted * errors).sum()), 2 * weighted


class _LossOfClasses:
    """Base class of losses of classes: the mean over outputs."""

    def __init__(self, frequencies, outputs):
        self._frequencies, self._outputs = frequencies, outputs

    def __call__(self, errors, targets, weights):
        """Loss and its derivatives in the errors, as for :class:`SquaredLoss`."""
        slopes, loss = np.empty(errors.shape), 0.0
        for classes in self._outputs:
            pi = self._frequencies[classes]
            labels = targets[:, classes] + pi > 0.5
            scores = (targets - errors)[:, classes]
            value, slopes[:, classes] = self._of_output(scores, labels, pi, weights)
            loss += value
        return loss / len(self._outputs), slopes / len(self._outputs)


class CrossEntropy(_LossOfClasses):
    r"""Log-loss of :math:`P(c) \propto \pi_c\, e^{\theta f_c}`, for scores f of classes.

    Targets are indicators less the frequencies :math:`\pi`. The sharpness :math:`\theta` is
    about that of the least loss, so that derivatives need not know of it.

    Parameters
    ----------
    frequencies : ndarray of shape (n_classes,)
        Of all classes, for several outputs one after the other.
    outputs : list of slice
        Classes of each output.
    """

    def _of_output(self, scores, labels, frequencies, weights):
        scores, log_prior = scores.astype(np.float64), np.log(frequencies)
        log_sharpness = np.log(_FIRST_SHARPNESS)
        for _ in range(_NEWTON_STEPS):
            sharpness = np.exp(log_sharpness)
            p = softmax(log_prior + sharpness * scores, axis=1)
            mean = (p * scores).sum(axis=1)
            slope = weights @ (mean - (labels * scores).sum(axis=1))
            curvature = weights @ ((p * scores**2).sum(axis=1) - mean**2)
            # In the logarithm; convex in the sharpness itself.
            step = sharpness * slope / max(sharpness**2 * curvature, 1e-12)
            log_sharpness = np.clip(log_sharpness - np.clip(step, -1, 1), -2, 6)
        sharpness = np.exp(log_sharpness)
        p = softmax(log_prior + sharpness * scores, axis=1)
        own = (p * labels).sum(axis=1)
        mixed = (1 - _EQUAL) * own + _EQUAL / len(frequencies)
        share = (1 - _EQUAL) * own / mixed
        slopes = -sharpness * (weights * share)[:, None] * (p - labels)
        return float(-weights @ np.log(mixed)), slopes


class LogLossOfShares(_LossOfClasses):
    """Log-loss of predictions that are shares of the classes, less their frequencies.

    Parameters
    ----------
    frequencies, outputs
        As for :class:`CrossEntropy`.
    """

    def _of_output(self, scores, labels, frequencies, weights):
        shares = scores + frequencies
        mixed = (1 - _EQUAL) * np.maximum(shares, 0) + _EQUAL / len(frequencies)
        loss = -(weights[:, None] * np.log(mixed))[labels].sum()
        counted = labels & (shares > 0)
        return loss, weights[:, None] * counted * (1 - _EQUAL) / mixed
