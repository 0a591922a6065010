"""How the members' answers become one."""

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import log_softmax, softmax

_LEAST_SCORE = (0.003, 0.01, 0.03, 0.1)
# Biases and strengths of the link are normal with this precision, in rows: rows that judge
# are few where there are many classes.
_LINK_PRECISION = 2.0
_LEAST_SHARE = 1e-3
# What has a smaller share of the blend would be paid for at every prediction, for nothing.
_LEAST_BLENDED = 0.02


def blend(left_out, targets, weights):
    """Non-negative weights of ways, by which their leave-one-out predictions fit best.

    Ways of hardly any weight get none.

    Parameters
    ----------
    left_out : ndarray of shape (n_ways, n_judged, n_outputs)
    targets : ndarray of shape (n_judged, n_outputs)
    weights : ndarray of shape (n_judged,)

    Returns
    -------
    blend_weights : ndarray of shape (n_ways, n_outputs)
    """
    root = np.sqrt(weights)
    found = np.zeros((len(left_out), targets.shape[1]))
    for output in range(targets.shape[1]):
        columns = left_out[:, :, output].T * root[:, None]
        shares, _ = nnls(columns, targets[:, output] * root)
        used = shares > _LEAST_BLENDED * shares.sum()
        if used.any():
            found[used, output], _ = nnls(columns[:, used], targets[:, output] * root)
        if not found[:, output].any():
            # No way predicts better than the mean; the least bad one says about that.
            errors = np.square(columns - (targets[:, output] * root)[:, None]).sum(0)
            found[errors.argmin(), output] = 1.0
    return found


def log_odds(shares):
    """Log-odds of shares of the rows, finite also for 0 and 1."""
    return np.log((shares + _LEAST_SHARE) / (1 - shares + _LEAST_SHARE))


class MultinomialLink:
    r"""Probabilities from scores of the classes, by a calibrated multinomial link.

    .. math:: P(c \mid x) \propto \exp\Bigl(b_c + \sum_m \theta_m\, g(f_{mc})\Bigr),
              \quad \theta_m \ge 0,\quad
              g(f) = \log \tfrac12 \bigl(f + \sqrt{f^2 + 4\epsilon^2}\bigr)

    A score is about a probability, but may be negative; :math:`\epsilon` is where it begins
    to count as none. Where scores are log-odds, :math:`g(f) = f`.

    Parameters
    ----------
    strengths : ndarray of shape (n_ways,)
        The :math:`\theta`.
    bias : ndarray of shape (n_classes,)
    least : float
        The :math:`\epsilon`.
    are_log_odds : ndarray of bool of shape (n_ways,)
        Ways whose scores are log-odds.
    """

    def __init__(self, strengths, bias, least, are_log_odds):
        self.strengths, self.bias, self.least = strengths, bias, least
        self.are_log_odds = are_log_odds

    @classmethod
    def fit(cls, scores, indicators, weights, are_log_odds):
        """The link of least log-loss.

        Parameters
        ----------
        scores : ndarray of shape (n_ways, n_judged, n_classes)
            Leave-one-out.
        indicators : ndarray of shape (n_judged, n_classes)
        weights : ndarray of shape (n_judged,)
        are_log_odds : ndarray of bool of shape (n_ways,)

        Returns
        -------
        link : MultinomialLink
        """
        n_ways, _, n_classes = scores.shape
        best = None
        for least in _LEAST_SCORE:
            logs = _log_scores(scores, least, are_log_odds)

            def loss(free, logs=logs):
                strengths, bias = free[:n_ways], free[n_ways:]
                log_p = log_softmax(np.tensordot(strengths, logs, 1) + bias, axis=1)
                excess = (np.exp(log_p) - indicators) * weights[:, None]
                held = strengths - 1 / n_ways
                value = -(weights[:, None] * indicators * log_p).sum()
                value += 0.5 * _LINK_PRECISION * (held @ held + bias @ bias)
                pull = np.tensordot(logs, excess, ([1, 2], [0, 1])) + _LINK_PRECISION * held
                pull_bias = excess.sum(0) + _LINK_PRECISION * bias
                return value, np.concatenate([pull, pull_bias])

            start = np.concatenate([np.full(n_ways, 1 / n_ways), np.zeros(n_classes)])
            bounds = [(0, None)] * n_ways + [(None, None)] * n_classes
            found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
            if best is None or found.fun < best[0]:
                x = found.x
                best = found.fun, cls(x[:n_ways], x[n_ways:], least, are_log_odds)
        return best[1]

    def __call__(self, scores):
        """Probabilities (n, n_classes) from scores (n_ways, n, n_classes)."""
        logs = _log_scores(scores, self.least, self.are_log_odds)
        return softmax(np.tensordot(self.strengths, logs, 1) + self.bias, axis=1)


def _log_scores(scores, least, are_log_odds):
    root = np.sqrt(scores**2 + 4 * least**2)
    # The same number without a difference of two that are alike.
    below = 2 * least**2 / (root + np.abs(scores))
    logs = np.log(np.where(scores < 0, below, 0.5 * (scores + root)))
    return np.where(np.asarray(are_log_odds)[:, None, None], scores, logs)
