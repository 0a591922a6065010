"""Targets of an encoder: their loss, and the predictions that outputs stand for.

*Outputs* (n_rows, n_columns) are what a network or a baseline returns: a column for each number
or quantile, in units of the standard deviation from the mean, or for each class of each target
a logit.
"""

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from scipy.special import huber, log_softmax

from .._column_stats import mean_and_scale
from .._labels import (
    classes_of_outputs,
    outputs_of,
    refuse_new_classes,
    sorted_classes,
    split_classes,
    split_outputs,
)
from .._validation import check_choice, check_in_open_interval, check_probabilities
from ._forms import Examples

# Largest difference of probabilities that count as the same quantile, such as 0.1 and
# (1 - 0.8) / 2, which differ by rounding.
SAME = 1e-9


@dataclass(frozen=True)
class Loss:
    """Loss of outputs, which predict numbers, quantiles of numbers, or classes."""

    name: str
    _: KW_ONLY
    quantile: tuple | None = None  # probability of each column; None unless they are quantiles
    n_classes: tuple | None = None  # number of classes of each target; None for numbers

    def of_target(self, j):
        """Return the loss of column `j` of the targets alone."""
        quantile, n_classes = self.quantile, self.n_classes
        return replace(
            self,
            quantile=None if quantile is None else quantile[j : j + 1],
            n_classes=None if n_classes is None else n_classes[j : j + 1],
        )

    def negative_log_likelihood(self, targets, weights, baseline=None):
        """Return the weighted negative log-likelihood of rows, as a function of outputs.

        Additive constants are left out. The loss of a row is the mean over its targets. Errors
        of quantiles have an asymmetric Laplace distribution. Errors of other numbers have a
        normal one, but beyond three times the baseline's median error they count less (Huber).

        Parameters
        ----------
        targets : ndarray of shape (n_rows, n_targets)
            Standardised numbers, repeated for each quantile, or positions of the true classes
            among the sorted classes.
        weights : ndarray of shape (n_rows,)
            Weights of the rows.
        baseline : ndarray of shape (n_rows, n_targets), default=None
            Outputs of the baseline, whose errors are the unit of errors; not used for classes.

        Returns
        -------
        loss : callable
            A function of outputs (n_rows, n_columns), which returns the losses (n_rows,) and
            their derivatives with respect to the outputs.
        """
        if self.n_classes is None:
            unweighted = self._losses_of_numbers(targets, weights, baseline)
        else:
            unweighted = self._log_losses(targets)
        shares = weights / targets.shape[1]

        def loss(outputs):
            losses, slopes = unweighted(outputs)
            return shares * losses, shares[:, None] * slopes

        return loss

    def _log_losses(self, classes):
        """Return a function of outputs, which returns log-losses (n_rows,) and derivatives.

        `classes` (n_rows, n_targets) has the position of the true class of each target, among
        the sorted classes of that target. The losses of a row's targets are added up.
        """
        rows = np.arange(len(classes))

        def losses(outputs):
            logits_of_targets = split_outputs(outputs, self.n_classes)
            total, slopes = 0.0, []
            for logits, positions in zip(logits_of_targets, classes.T, strict=True):
                logs = log_softmax(logits, axis=1)
                total = total - logs[rows, positions]
                # The derivative of the log-loss is the probability minus the indicator.
                slope = np.exp(logs)
                slope[rows, positions] -= 1
                slopes.append(slope)
            return total, np.hstack(slopes)

        return losses

    def _losses_of_numbers(self, targets, weights, baseline):
        """Return a function of outputs, which returns losses (n_rows,) and derivatives.

        Arguments are those of :meth:`negative_log_likelihood`. The losses of a row's targets
        are added up.
        """
        errors = np.abs(baseline - targets)
        # If most errors are 0, the mean takes the place of the median.
        threshold = 3.0 * (np.median(errors) or errors.mean())

        def losses_of_targets(outputs):
            residuals = outputs - targets
            if self.quantile is not None:
                slopes = (residuals > 0) - np.array(self.quantile)
                return residuals * slopes, slopes
            return huber(threshold, residuals), np.clip(residuals, -threshold, threshold)

        mean = np.average(losses_of_targets(baseline)[0], axis=0, weights=weights).mean()
        # The mean loss of a normal distribution is 1/2, that of a Laplace distribution 1.
        unit = max(mean, 1e-300) * (2 if self.quantile is None else 1)

        def losses(outputs):
            target_losses, slopes = losses_of_targets(outputs)
            return target_losses.sum(axis=1) / unit, slopes / unit

        return losses


@dataclass(frozen=True, eq=False)
class Numbers:
    """Targets that are numbers, of which means or quantiles are learned."""

    loss: Loss
    quantiles: np.ndarray  # (n_quantiles,), sorted; empty if a mean is learned
    # Mean and standard deviation of each target, (n_targets,); a number each for a single one.
    center: float | np.ndarray
    scale: float | np.ndarray

    @classmethod
    def learn(cls, name, quantiles, y, weights):
        """Learn the mean and the standard deviation of training targets by their weights.

        Parameters
        ----------
        name : str
            Name of the loss.
        quantiles : ndarray of shape (n_quantiles,)
            The result of :func:`check_quantiles`.
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
            Targets of all rows.
        weights : ndarray of shape (n_rows,)
            Weights of all rows, which may be 0.
        """
        has_weight = weights > 0
        columns = y[has_weight].reshape(-1, *y.shape[1:] or (1,)).T
        stats = [mean_and_scale(column, weights[has_weight]) for column in columns]
        # In single precision, predictions would lose digits of targets in double.
        precision = np.float32 if y.dtype == np.float32 else np.float64
        center, scale = np.array(stats, dtype=precision).T
        if y.ndim == 1:
            (center,), (scale,) = center, scale
        return cls(None, None, center, scale).with_loss(name, quantiles)

    def with_loss(self, name, quantiles):
        """Return the same targets with another loss, or with other quantiles."""
        # Each target has a column for every quantile.
        column_quantiles = tuple(np.tile(quantiles, np.size(self.center)).tolist())
        return replace(
            self, loss=Loss(name, quantile=column_quantiles or None), quantiles=quantiles
        )

    def examples(self, rows, y, weights):
        """Return Examples with standardised targets.

        `rows` are only those that have weight, but `y` and `weights` have an entry for every
        row.
        """
        targets = (y.astype(np.float64).reshape(len(y), -1) - self.center) / self.scale
        targets = np.repeat(targets, max(1, len(self.quantiles)), axis=1)
        has_weight = weights > 0
        return Examples(rows, targets[has_weight].astype(np.float32), weights[has_weight])

    def predictions(self, outputs, precision):
        """Return predictions in the units of the targets, with sorted quantiles.

        `outputs` are (n, n_columns), and `precision` is a dtype. The result is (n, n_quantiles)
        for a single target, and (n, n_quantiles, n_targets) for several ones. A mean counts as
        one quantile.
        """
        outputs = outputs.reshape(len(outputs), np.size(self.center), -1)
        predictions = self.center + self.scale * np.sort(outputs, axis=2).swapaxes(1, 2)
        dtype = np.result_type(precision, np.asarray(self.center).dtype)
        predictions = predictions.astype(dtype)
        return predictions if np.ndim(self.center) else predictions[..., 0]


@dataclass(frozen=True, eq=False)
class Classes:
    """Targets that are classes; their outputs are logits."""

    loss: Loss
    classes: np.ndarray | list  # sorted classes; a list of such arrays for several targets

    @classmethod
    def learn(cls, y):
        """Find the classes in training labels."""
        classes = sorted_classes(y)
        sizes = tuple(map(len, classes_of_outputs(classes)))
        return cls(Loss("log_loss", n_classes=sizes), classes)

    def examples(self, rows, y, weights, name):
        """Return Examples with the positions of classes among the sorted classes.

        `rows` are only those that have weight, but `y` and `weights` have an entry for every
        row. `name` is the name of `y` in messages.
        """
        source, remedy = "y", "leave their rows out"
        if name == "y":
            source, remedy = "the last fit", "pass warm_start=False"
        refuse_new_classes(y, self.classes, name, source, remedy)
        pairs = zip(classes_of_outputs(self.classes), outputs_of(y), strict=True)
        positions = [np.searchsorted(classes, labels) for classes, labels in pairs]
        positions, has_weight = np.stack(positions, axis=1), weights > 0
        return Examples(rows, positions[has_weight], weights[has_weight])

    def log_proba(self, outputs, dtype):
        """Return log-probabilities (n, n_classes), or a list of such arrays."""
        logits_of_targets = split_classes(outputs, self.classes)
        logs = [log_softmax(logits, axis=1).astype(dtype) for logits in logits_of_targets]
        return logs if isinstance(self.classes, list) else logs[0]


def check_quantiles(loss, quantile):
    """Return the sorted quantiles to learn; raise ValueError unless both parameters are valid.

    The result (n_quantiles,) is empty if the loss belongs to a mean, and is the median if it is
    the absolute error.
    """
    names = "absolute_error", "huber", "quantile", "squared_error"
    check_choice("loss", loss, names)
    if loss == "quantile":
        if not hasattr(quantile, "__len__"):
            return np.array([check_in_open_interval("quantile", quantile, 0, 1)])
        quantiles = check_probabilities("quantile", quantile)
        quantiles = np.unique(np.where(abs(quantiles - 0.5) < SAME, 0.5, quantiles))
        if len(quantiles) > 1 and 0.5 not in quantiles:
            raise ValueError(
                f"quantile={quantile!r} does not contain 0.5, the median, which predict "
                "returns when there are several quantiles: add 0.5."
            )
        return quantiles
    if quantile is not None:
        raise ValueError(
            f"quantile={quantile!r} has no meaning for loss={loss!r}: leave it out, or pass "
            "loss='quantile'."
        )
    return np.array([0.5] if loss == "absolute_error" else [])
