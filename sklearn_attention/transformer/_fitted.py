"""What an encoder has learned: a reader, a network and a baseline, and how it is fitted."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from sklearn.utils import check_random_state

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
    """A reader of rows, a network and a baseline, and how their outputs become predictions."""

    reader: TableReader | SeriesReader | TextReader
    task: Numbers | Classes
    network: FittedNetwork | None = None
    baseline: TableBaseline | SeriesBaseline | TextBaseline | None = None
    baseline_weight: float | np.ndarray = 0.0
    transformer_weight: float | np.ndarray = 1.0

    def outputs(self, rows, device):
        """The sum of both for rows, in units of the targets, or as logits; (n, n_columns)."""
        # Weights are of outputs, each of which has as many columns as classes.
        sizes, found = self.task.loss.n_classes or 1, 0.0
        ours, theirs = (
            np.repeat(weight, sizes) if np.ndim(weight) else weight
            for weight in (self.transformer_weight, self.baseline_weight)
        )
        if np.any(ours):
            found = ours * self._encode(rows, device)[0].astype(np.float64)
        if self.baseline is not None:
            found = found + theirs * self.baseline.outputs(rows)
        return found

    def vectors(self, rows, device):
        """Tokens after the last layer, pooled, (n, width)."""
        return self._encode(rows, device)[1]

    def maps(self, rows, device):
        """Weights of the attention, (n, n_layers, n_heads, T, T)."""
        from ._network import attention_maps

        return attention_maps(self.network.module(device), self.reader.tokens_of(rows))

    def _encode(self, rows, device):
        """Outputs of the network for rows, and their vectors."""
        from ._network import outputs_of  # torch takes a second to load

        return outputs_of(self.network.module(device), self.reader.tokens_of(rows))


class Data(NamedTuple):
    """Examples of which some are held out, or a validation set beside them."""

    whole: Examples
    learned: np.ndarray
    held_out: np.ndarray
    validation: Examples | None

    @classmethod
    def of(cls, settings, whole, validation=None, *, strata=None):
        """Hold some out at random unless there are others; `strata` in proportion."""
        whole, n = whole.of_mean_weight_1(), len(whole.targets)
        if validation is not None:
            return cls(whole, np.arange(n), np.arange(0), validation.of_mean_weight_1())
        return cls(whole, *settings.split(n, strata), None)

    @property
    def judged(self):
        """Examples that decide on the best epoch, and on the weights."""
        return self.whole.take(self.held_out) if self.validation is None else self.validation


def fit_encoder(data, reader, task, settings, pooling, baseline, report):
    """A FittedEncoder that has learned from Data, by the parameters of an estimator."""
    from ._network import (
        HeldOutLoss,
        OutputShares,
        RowEncoder,
        loss_of,
        padded_lengths,
        row_losses,
    )

    loss, whole, judged = task.loss, data.whole, data.judged
    n_outputs, n_judged = whole.targets.shape[1], len(judged.targets)
    with_baseline = _has_baseline(baseline, reader.form, n_judged, loss)
    learned, seen = (
        part._replace(rows=reader.tokens_of(part.rows))
        for part in (whole.take(data.learned), judged)
    )
    how = row_losses(loss), OutputShares(n_outputs)
    judge = HeldOutLoss(*seen, *how) if n_judged else None
    fitted = FittedEncoder(reader, task)
    network = fit_network(
        RowEncoder,
        _shape(reader, settings, pooling, sum(loss.n_classes or (n_outputs,))),
        settings, loss_of(*learned, *how), len(learned.targets), validate=judge,
        lengths=padded_lengths(learned.rows), data=[loss, *learned.arrays(), *seen.arrays()],
        n_tokens=int(np.ceil(learned.rows.lengths.mean())), report=report,
        attributes=lambda network: {"encoder_": replace(fitted, network=network)},
    )  # fmt: skip
    fitted = replace(fitted, network=network)
    if not with_baseline:
        return fitted
    simple, outputs = _BASELINES[reader.form].fit(
        *whole, loss, data.held_out, reader, check_random_state(settings.random_state)
    )
    weights = 1.0, 0.0
    if n_judged > 1:
        if data.validation is not None:
            outputs = simple.outputs(judged.rows)
        network = judge.outputs.numpy().astype(np.float64)
        weights = weights_of_outputs(loss, *judged[1:], outputs, network)
        weights = weights if n_outputs > 1 else map(float, weights[:, 0])
    ours, theirs = weights
    return replace(fitted, baseline=simple, baseline_weight=ours, transformer_weight=theirs)


def _has_baseline(wanted, form, n_judged, loss):
    """True if there is a baseline: "auto" has none that cannot be compared for tables."""
    table = form == "features"
    learns = table or loss.name != "quantile"
    if wanted is True and not learns:
        raise ValueError(
            f"baseline=True is not possible with loss='quantile' of {form}, for which there is "
            "no baseline: pass 'auto' or False, or another loss."
        )
    if wanted == "auto":
        wanted = learns and (not table or n_judged > 1)
    return wanted and (loss.n_classes is None or max(loss.n_classes) > 1)


def _shape(reader, settings, pooling, n_columns):
    """Arguments of the network."""
    table = reader.form == "features"
    if pooling == "auto":
        pooling = "cls" if table else "mean"
    return {
        "form": reader.form,
        "tokens": reader.token_arguments(),
        "n_outputs": n_columns,
        "pooling": pooling,
        "max_length": reader.max_length,
        **settings.shape(ordered=not table),
    }


def weights_of_outputs(loss, targets, weights, baseline, network):
    """Weights of a baseline and of a transformer for each output, (2, n_outputs).

    `baseline` and `network` are what both predict for rows held out, logits side by side.
    """
    n_classes = loss.n_classes or (None,) * targets.shape[1]
    borders = np.cumsum([n or 1 for n in n_classes])[:-1]
    parts = [np.split(part, borders, axis=1) for part in (baseline, network)]
    found = []
    for j, both in enumerate(zip(*parts, strict=True)):
        of_rows = loss.of_output(j).of_rows(targets[:, [j]], weights, both[0])
        found.append(choose_weights(*both, of_rows, average=loss.name == "quantile"))
    return np.array(found).T


def choose_weights(baseline, network, loss, *, average=False):
    """Weights (2,) of the outputs of a baseline and of a transformer."""
    # For outputs (n_rows, n_outputs) of both on rows held out. They minimise sum_i l_i(w_1 f_i
    # + w_2 g_i) + 3/2 (w_1 - 0.7)^2 + 3/2 (w_2 - 0.3)^2 over w >= 0, with a normal prior of the
    # weight of 3 rows. With `average` they sum to 1: a smaller sum would move quantiles to the
    # mean. `loss` is from Loss.of_rows.
    prior, precision = np.array([0.7, 0.3]), 3.0

    def risk(weights):
        losses, slopes = loss(weights[0] * baseline + weights[1] * network)
        gradient = [(slopes * baseline).sum(), (slopes * network).sum()]
        away = weights - prior
        return losses.sum() + precision * away @ away / 2, gradient + precision * away

    if average:
        shares = minimize_scalar(
            lambda share: risk(np.array([1 - share, share]))[0],
            bounds=(0, 1), method="bounded",
        )  # fmt: skip
        return np.array([1 - shares.x, shares.x])
    return minimize(risk, prior, jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2).x
