"""Targets of an encoder: what is learned of them, and what outputs predict."""

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

# Levels this close are the same, such as 0.1 and (1 - 0.8) / 2.
SAME = 1e-9


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
        large = 3.0 * (np.median(typical) or typical.mean())

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


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers or quantiles of them, learned in units of their deviation from their mean."""

    loss: Loss
    quantiles: np.ndarray
    center: float | np.ndarray
    scale: float | np.ndarray

    @classmethod
    def learn(cls, name, quantiles, y, weights):
        """Of training targets of some weights, by a loss of some name."""
        columns = y[weights > 0].reshape(-1, *y.shape[1:] or (1,)).T
        measures = [mean_and_scale(column, weights[weights > 0]) for column in columns]
        # In single precision, predictions would lose digits of targets in double.
        precision = np.float32 if y.dtype == np.float32 else np.float64
        center, scale = np.array(measures, dtype=precision).T
        center, scale = (center, scale) if y.ndim == 2 else (*center, *scale)
        return cls(None, None, center, scale).by(name, quantiles)

    def by(self, name, quantiles):
        """The same targets by another loss."""
        # Quantiles of a target are outputs that have it in common.
        each = tuple(np.tile(quantiles, np.size(self.center)).tolist())
        return replace(self, loss=Loss(name, quantile=each or None), quantiles=quantiles)

    def examples(self, rows, y, weights):
        """Rows that count, with their targets in the units in which they are learned."""
        targets = (y.astype(np.float64).reshape(len(y), -1) - self.center) / self.scale
        targets = np.repeat(targets, max(1, len(self.quantiles)), axis=1)
        kept = weights > 0
        return Examples(rows, targets[kept].astype(np.float32), weights[kept])

    def predictions(self, outputs, precision):
        """Of outputs (n, n_columns): (n, n_quantiles), or with n_outputs; sorted quantiles."""
        outputs = outputs.reshape(len(outputs), np.size(self.center), -1)
        found = self.center + self.scale * np.sort(outputs, axis=2).swapaxes(1, 2)
        found = found.astype(np.result_type(precision, np.asarray(self.center).dtype))
        return found if np.ndim(self.center) else found[..., 0]


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of one output, or of several in a list; outputs are their logits."""

    loss: Loss
    classes: np.ndarray | list

    @classmethod
    def learn(cls, y):
        """Of training labels."""
        classes = sorted_classes(y)
        sizes = tuple(map(len, classes_of_outputs(classes)))
        return cls(Loss("log_loss", n_classes=sizes), classes)

    def examples(self, rows, y, weights, name):
        """Rows that count, with the numbers of their classes; `name` is that of `y`."""
        source, remedy = "y", "leave their rows out"
        if name == "y":
            source, remedy = "the last fit", "pass warm_start=False"
        refuse_new_classes(y, self.classes, name, source, remedy)
        known = classes_of_outputs(self.classes)
        numbers = np.stack([*map(np.searchsorted, known, outputs_of(y))], axis=1)
        kept = weights > 0
        return Examples(rows, numbers[kept], weights[kept])

    def log_proba(self, outputs, dtype):
        """Logarithms of probabilities, (n, n_classes), or a list of such arrays."""
        logits = split_classes(outputs, self.classes)
        found = [log_softmax(part, axis=1).astype(dtype) for part in logits]
        return found if isinstance(self.classes, list) else found[0]


def check_quantiles(loss, quantile):
    """The quantiles to learn, in order; ValueError unless both parameters are valid."""
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
