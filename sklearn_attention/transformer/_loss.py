"""Losses of predictions of rows."""

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from scipy.special import huber, log_softmax

from .._labels import split_outputs

# Typical errors beyond which an error counts less, so that few rows do not decide.
_LARGE_ERROR = 3.0


@dataclass(frozen=True)
class Loss:
    """Loss of predictions of rows: of numbers, of quantiles of them, or of classes.

    `quantile` and `n_classes` are those of each output; logits of all stand side by side.
    """

    name: str
    _: KW_ONLY
    quantile: tuple | None = None
    n_classes: tuple | None = None

    def of_output(self, j):
        """The loss of one of several outputs."""
        quantile, n_classes = (
            given and given[j : j + 1] for given in (self.quantile, self.n_classes)
        )
        return replace(self, quantile=quantile, n_classes=n_classes)

    def of_rows(self, targets, weights, baseline=None):
        """Function of outputs: negative log-likelihoods of rows, and derivatives."""
        # But for a constant. A row's loss is a mean over the targets. Of numbers, the mean loss
        # of `baseline` outputs is the unit. Errors have a Laplace distribution for a quantile,
        # an asymmetric one but for the median; else a normal one, but errors beyond three times
        # the baseline's median count less.
        if self.n_classes is None:
            losses = self._of_numbers(targets, weights, baseline)
        else:
            losses = self._of_classes(targets)
        shares = weights / targets.shape[1]

        def loss(outputs):
            found, slopes = losses(outputs)
            return shares * found, shares[:, None] * slopes

        return loss

    def _of_classes(self, classes):
        rows = np.arange(len(classes))

        def losses(outputs):
            parts = split_outputs(outputs, self.n_classes)
            total, slopes = 0.0, []
            for part, own in zip(parts, classes.T, strict=True):
                logs = log_softmax(part, axis=1)
                total = total - logs[rows, own]
                slopes.append(np.exp(logs))
                slopes[-1][rows, own] -= 1
            return total, np.hstack(slopes)

        return losses

    def _of_numbers(self, targets, weights, baseline):
        typical = np.abs(baseline - targets)
        # Where most errors are 0, the mean takes the place of the median.
        large = _LARGE_ERROR * (np.median(typical) or typical.mean())

        def errors(outputs):
            missed = outputs - targets
            if self.quantile is not None:
                slopes = (missed > 0) - np.array(self.quantile)
                return missed * slopes, slopes
            return huber(large, missed), np.clip(missed, -large, large)

        mean = np.average(errors(baseline)[0], axis=0, weights=weights).mean()
        # The mean loss of a normal distribution is 1/2, that of a Laplace distribution 1.
        unit = max(mean, 1e-300) * (2 if self.quantile is None else 1)

        def losses(outputs):
            found, slopes = errors(outputs)
            return found.sum(axis=1) / unit, slopes / unit

        return losses
