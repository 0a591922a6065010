"""Ridge regression on many features, whose left-out predictions choose its penalty."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from .._labels import split_outputs

# Penalties that are tried, of each feature.
_PENALTIES = np.logspace(-4, 1, 21)
# Rows count as themselves by less than this; singular values below this share of the largest
# square are rounding.
_LARGEST_LEVERAGE, _ROUNDING = 1 - 1e-6, 1e-6
# Logarithms of how sharp probabilities may be.
_LEAST_SHARP, _MOST_SHARP = -2, 5


@dataclass(frozen=True, eq=False)
class LeftOutRidge:
    """Linear predictions from standardised features, (n_features, n_outputs).

    They are multiplied by the sharpness to be logits, by 1 for numbers.
    """

    center: np.ndarray
    scale: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    sharpness: np.ndarray

    def outputs(self, features):
        """Predictions, or logits of classes; (n, n_outputs)."""
        found = (features - self.center) / self.scale @ self.coef + self.intercept
        return found.astype(np.float64) * self.sharpness


def fit_left_out_ridge(features, targets, weights, n_classes=None):
    """Ridge regression of the least left-out loss, and left-out outputs (n, n_outputs)."""
    # Targets of classes are the indicators of the outputs, side by side; predictions then
    # become logits, and their loss is the log-loss. Otherwise it is the squared error.
    m, share = features.shape[1], (weights / weights.sum())[:, None]
    center = (share * features).sum(axis=0)
    scale = np.sqrt((share * (features - center) ** 2).sum(axis=0)) + 1e-6
    prior = (share * targets).sum(axis=0)
    root = np.sqrt(weights / weights.mean())[:, None]
    u, s, vt = _thin_svd(root * (features - center) / scale)
    seen, best = u.T @ (root * (targets - prior)), (np.inf,)
    for penalty in _PENALTIES * m:
        kept = s**2 / (s**2 + penalty)
        leverage = np.minimum((u**2 @ kept)[:, None] + share, _LARGEST_LEVERAGE)
        residual = targets - prior - u @ (kept[:, None] * seen) / root
        left_out = targets - residual / (1 - leverage)
        sharpness, loss = np.ones(len(prior)), float((share * (left_out - targets) ** 2).sum())
        if n_classes is not None:
            parts = (split_outputs(part, n_classes) for part in (left_out, targets))
            found = [_sharpen(*pair, share[:, 0]) for pair in zip(*parts, strict=True)]
            factors, losses = zip(*found, strict=True)
            sharpness, loss = np.repeat(factors, n_classes), sum(losses)
        if loss < best[0]:
            best = loss, kept, sharpness, left_out * sharpness
    _, kept, sharpness, left_out = best
    coef = vt.T @ ((kept / s)[:, None] * seen).astype(vt.dtype)
    return LeftOutRidge(center, scale, coef, prior, sharpness), left_out


def _thin_svd(rows):
    """Singular value decomposition by the smaller matrix of products, which is fast."""
    if rows.shape[0] > rows.shape[1]:
        return tuple(part.T for part in _thin_svd(rows.T))[::-1]
    squares, u = np.linalg.eigh((rows @ rows.T).astype(np.float64))
    kept = squares > max(squares[-1], 1e-300) * _ROUNDING
    u, s = u[:, kept], np.sqrt(squares[kept])
    return u, s, u.T.astype(rows.dtype) @ rows / s[:, None].astype(rows.dtype)


def _sharpen(values, indicators, share):
    """The factor that makes left-out values the best logits of one output, and their loss.

    Half a row of all classes alike is added, without which the factor could grow for ever.
    """

    def loss(log_sharpness):
        logs = log_softmax(np.exp(log_sharpness) * values, axis=1)
        return -share @ (indicators * logs).sum(axis=1) - 0.5 * logs.mean() / len(logs)

    bounds = _LEAST_SHARP, _MOST_SHARP
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 0.02})
    return float(np.exp(found.x)), float(found.fun)
