"""Weights by which a baseline and a transformer are added up, by rows held out."""

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from .._base import warn_user

# Weights where nothing is known, and what they count for, in rows.
_PRIOR, _PRECISION = np.array([0.7, 0.3]), 3.0

# Of a transformer with less weight than this, vectors and maps explain predictions little.
_LITTLE = 0.1


def warn_of_little_weight(estimator, found):
    """Warn where a transformer whose vectors or maps are returned has little weight."""
    most = np.max(estimator.transformer_weight_)
    if most < _LITTLE:
        warn_user(
            f"transformer_weight_ is {most:.2g}: predictions are nearly all of the baseline, "
            f"and {found} of the transformer explain them little. Pass baseline=False to "
            "predict without the baseline.",
        )


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
    # + w_2 g_i) + 3/2 (w_1 - .7)^2 + 3/2 (w_2 - .3)^2 over w >= 0, with a normal prior of the
    # weight of 3 rows. With `average` they sum to 1: a smaller sum would move quantiles to the
    # mean. `loss` is from Loss.of_rows.

    def risk(weights):
        losses, slopes = loss(weights[0] * baseline + weights[1] * network)
        gradient = [(slopes * baseline).sum(), (slopes * network).sum()]
        away = weights - _PRIOR
        return losses.sum() + _PRECISION * away @ away / 2, gradient + _PRECISION * away

    if average:
        shares = minimize_scalar(
            lambda share: risk(np.array([1 - share, share]))[0],
            bounds=(0, 1), method="bounded",
        )  # fmt: skip
        return np.array([1 - shares.x, shares.x])
    return minimize(risk, _PRIOR, jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2).x
