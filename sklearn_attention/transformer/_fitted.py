"""What an encoder has learned: a reader, a network and a baseline, and how it is fitted.

*Outputs* (n_rows, n_columns) of the network and of the baseline are numbers in units of the
targets' standard deviation, quantiles, or logits of classes, side by side. Predictions come
from the sum of both, each multiplied by a weight, which is chosen by held-out rows.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from sklearn.utils import check_random_state

from .._labels import split_outputs
from ..training._fit_network import FittedNetwork, fit_network
from ._baselines import TableBaseline, TextBaseline
from ._forms import Examples
from ._series_baseline import SeriesBaseline
from ._series_reader import SeriesReader
from ._table_reader import TableReader
from ._task import Classes, Numbers
from ._text_reader import TextReader

_BASELINES = {"features": TableBaseline, "steps": SeriesBaseline, "text": TextBaseline}


@dataclass(frozen=True, eq=False)
class FittedEncoder:
    """A reader of rows, a network and a baseline, and how their outputs become predictions.

    Both weights are numbers if there is one target, and else arrays (n_targets,). The quantiles
    of a target count as several targets here, since each has a loss of its own.
    """

    reader: TableReader | SeriesReader | TextReader
    task: Numbers | Classes
    network: FittedNetwork | None = None
    baseline: TableBaseline | SeriesBaseline | TextBaseline | None = None
    baseline_weight: float | np.ndarray = 0.0
    transformer_weight: float | np.ndarray = 1.0

    def outputs(self, rows, device):
        """Return the weighted sum (n, n_columns) of outputs of the network and the baseline."""
        transformer_weight = self._weight_of_columns(self.transformer_weight)
        outputs = 0.0
        if np.any(transformer_weight):
            network_outputs, _ = self._encode(rows, device)
            outputs = transformer_weight * network_outputs.astype(np.float64)
        if self.baseline is not None:
            baseline_weight = self._weight_of_columns(self.baseline_weight)
            outputs = outputs + baseline_weight * self.baseline.outputs(rows)
        return outputs

    def _weight_of_columns(self, weight):
        """Repeat the weight of each target for all of its columns, which are classes."""
        return np.repeat(weight, self.task.loss.n_classes or 1) if np.ndim(weight) else weight

    def vectors(self, rows, device):
        """Return the pooled tokens after the last layer, (n, width)."""
        return self._encode(rows, device)[1]

    def maps(self, rows, device):
        """Return the weights of the attention, (n, n_layers, n_heads, T, T)."""
        from ._network import attention_maps

        return attention_maps(self.network.module(device), self.reader.network_rows(rows))

    def _encode(self, rows, device):
        """Return the outputs (n, n_columns) of the network for rows, and vectors (n, width)."""
        from ._network import outputs_of  # torch takes a second to load

        return outputs_of(self.network.module(device), self.reader.network_rows(rows))


class Data(NamedTuple):
    """Training examples with the positions of those held out, or a separate validation set."""

    examples: Examples
    trained: np.ndarray  # positions of the examples that the network is trained on
    held_out: np.ndarray  # positions of the other ones; none if there is a validation set
    validation: Examples | None

    @classmethod
    def split(cls, settings, examples, validation=None, *, strata=None):
        """Hold out examples at random, unless a validation set is passed.

        `strata` (n_rows,) are classes; the same fraction of the examples of each is held out.
        """
        examples, n = examples.with_mean_weight_1(), len(examples.targets)
        if validation is not None:
            return cls(examples, np.arange(n), np.arange(0), validation.with_mean_weight_1())
        trained, held_out = settings.split(n, strata)
        return cls(examples, trained, held_out, None)

    def validation_examples(self):
        """Return the held-out or separate examples, which choose the epoch and the weights."""
        return self.examples.take(self.held_out) if self.validation is None else self.validation


def fit_encoder(data, reader, task, settings, pooling, baseline, report):
    """Train a network and fit a baseline, and return them as a FittedEncoder.

    Parameters
    ----------
    data : Data
        Training and validation examples.
    reader : TableReader, SeriesReader or TextReader
        The reader of the rows in `data`.
    task : Numbers or Classes
        The targets, and their loss.
    settings : NetworkSettings
        Parameters of the network and of its training.
    pooling, baseline : str or bool
        Parameters of the estimator.
    report : Report
        It passes the progress on to callbacks.
    """
    loss, validation = task.loss, data.validation_examples()
    n_outputs, n_validation = data.examples.targets.shape[1], len(validation.targets)
    needs_baseline = _needs_baseline(baseline, reader.form, n_validation, loss)
    shape = _shape(reader, settings, pooling, sum(loss.n_classes or (n_outputs,)))
    fitted = FittedEncoder(reader, task)
    fitted, network_outputs = _fit_network(fitted, data, validation, shape, settings, report)
    if not needs_baseline:
        return fitted
    fitted_baseline, baseline_outputs = _BASELINES[reader.form].fit(
        *data.examples, loss, data.held_out, reader, check_random_state(settings.random_state)
    )
    fitted = replace(
        fitted, baseline=fitted_baseline, baseline_weight=1.0, transformer_weight=0.0
    )
    if n_validation < 2:
        # One held-out row is not enough to weigh both: only the baseline predicts.
        return fitted
    if data.validation is not None:
        baseline_outputs = fitted_baseline.outputs(validation.rows)
    baseline_weight, transformer_weight = choose_weights_of_targets(
        loss, validation.targets, validation.weights, baseline_outputs, network_outputs
    )
    if n_outputs == 1:
        baseline_weight, transformer_weight = map(
            float, (*baseline_weight, *transformer_weight)
        )
    return replace(
        fitted, baseline_weight=baseline_weight, transformer_weight=transformer_weight
    )


def _fit_network(fitted, data, validation, shape, settings, report):
    """Train the network of a FittedEncoder, and add it.

    Also returns the network's outputs (n_validation, n_columns) for the validation examples, or
    None if there are none.
    """
    from ._network import (
        HeldOutLoss,
        OutputShares,
        RowEncoder,
        padded_lengths,
        row_losses,
        training_loss,
    )

    reader, loss = fitted.reader, fitted.task.loss
    training = data.examples.take(data.trained).with_network_rows(reader)
    tokenized_validation = validation.with_network_rows(reader)
    losses_of, shares = row_losses(loss), OutputShares(training.targets.shape[1])
    held_out_loss = None
    if len(validation.targets):
        held_out_loss = HeldOutLoss(*tokenized_validation, losses_of, shares)
    network = fit_network(
        RowEncoder,
        shape,
        settings,
        training_loss(*training, losses_of, shares),
        len(training.targets),
        validate=held_out_loss,
        lengths=padded_lengths(training.rows),
        data=[loss, *training.arrays(), *tokenized_validation.arrays()],
        n_tokens=int(np.ceil(training.rows.lengths.mean())),
        report=report,
        attributes=lambda network: {"encoder_": replace(fitted, network=network)},
    )
    outputs = None
    if held_out_loss is not None:
        outputs = held_out_loss.outputs.numpy().astype(np.float64)
    return replace(fitted, network=network), outputs


def _needs_baseline(baseline, form, n_validation, loss):
    """Return whether to fit a baseline; raise ValueError if it is asked for but not possible.

    `baseline` is the parameter. With "auto" there is a baseline if one is possible; for tables,
    two rows or more must be held out too, to compare it with the network.
    """
    is_table = form == "features"
    is_possible = is_table or loss.name != "quantile"
    if baseline is True and not is_possible:
        raise ValueError(
            f"baseline=True is not possible with loss='quantile' of {form}, for which there is "
            "no baseline: pass 'auto' or False, or another loss."
        )
    if baseline == "auto":
        baseline = is_possible and (not is_table or n_validation > 1)
    # If each target has only one class, there is nothing to predict.
    is_certain = loss.n_classes is not None and max(loss.n_classes) == 1
    return baseline and not is_certain


def _shape(reader, settings, pooling, n_columns):
    """Return the arguments of RowEncoder, which are stored with the network's weights."""
    is_table = reader.form == "features"
    if pooling == "auto":
        pooling = "cls" if is_table else "mean"
    return {
        "form": reader.form,
        "tokens": reader.token_arguments(),
        "n_outputs": n_columns,
        "pooling": pooling,
        "max_length": reader.max_length,
        **settings.shape(ordered=not is_table),
    }


def choose_weights_of_targets(loss, targets, weights, baseline, network):
    """Choose the weights of a baseline and of a transformer for each target.

    Parameters
    ----------
    loss : Loss
        Loss of the targets.
    targets : ndarray of shape (n_rows, n_targets)
        Targets of held-out rows.
    weights : ndarray of shape (n_rows,)
        Weights of these rows.
    baseline, network : ndarray of shape (n_rows, n_columns)
        Outputs for these rows.

    Returns
    -------
    weights : ndarray of shape (2, n_targets)
        Weights of the baseline in the first row, and of the transformer in the second.
    """
    n_columns = loss.n_classes or (1,) * targets.shape[1]
    pairs = zip(
        split_outputs(baseline, n_columns), split_outputs(network, n_columns), strict=True
    )
    chosen = []
    for j, (baseline_columns, network_columns) in enumerate(pairs):
        losses = loss.of_target(j).negative_log_likelihood(
            targets[:, [j]], weights, baseline_columns
        )
        average = loss.name == "quantile"
        chosen.append(
            choose_weights(baseline_columns, network_columns, losses, average=average)
        )
    return np.array(chosen).T


def choose_weights(baseline, network, loss, *, average=False):
    """Choose the weights (2,) of a baseline f and of a transformer g, by held-out rows.

    They minimise sum_i l_i(w_1 f_i + w_2 g_i) + 3/2 (w_1 - 0.7)^2 + 3/2 (w_2 - 0.3)^2 over
    w >= 0: the sum of the losses, plus a normal prior that counts as much as three rows.

    Parameters
    ----------
    baseline, network : ndarray of shape (n_rows, n_columns)
        Outputs f and g of one target.
    loss : callable
        The result of :meth:`Loss.negative_log_likelihood`.
    average : bool, default=False
        Whether the weights sum to 1. A smaller sum would move quantiles towards the mean.
    """
    prior, precision = np.array([0.7, 0.3]), 3.0

    def risk(weights):
        losses, slopes = loss(weights[0] * baseline + weights[1] * network)
        gradient = [(slopes * baseline).sum(), (slopes * network).sum()]
        deviation = weights - prior
        return (
            losses.sum() + precision * deviation @ deviation / 2,
            gradient + precision * deviation,
        )

    if average:

        def risk_of_average(network_weight):
            return risk(np.array([1 - network_weight, network_weight]))[0]

        network_weight = minimize_scalar(risk_of_average, bounds=(0, 1), method="bounded").x
        return np.array([1 - network_weight, network_weight])
    return minimize(risk, prior, jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2).x
