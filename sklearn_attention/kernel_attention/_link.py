"""The link from scores of members to probabilities."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax

# Of the link: strengths, biases, and the logarithm of how much frequencies are mixed in.
_STRENGTH_PRECISION, _BIAS_PRECISION, _MIX_PRECISION = 0.01, 0.01, 0.25
_USUAL_MIX = -7.0
_LEAST_SHARE = 0.04


@dataclass(frozen=True)
class MultinomialLink:
    r"""Probabilities from scores of the classes.

    :math:`P(c \mid x) = (1 - \epsilon) \pi_c e^{z_c} / \sum_k \pi_k e^{z_k} + \epsilon \pi_c`
    with :math:`z_c = b_c + \sum_m \theta_m f_{mc} + \vartheta_m \operatorname{arsinh}((f_{mc} +
    \pi_c) / .04) + \theta_t g_c` and :math:`\theta_m, \vartheta_m, \theta_t \ge 0`. A score f
    is about an indicator less the frequency :math:`\pi_c`; g, if there are boosted trees, are
    their log-probabilities less those of the frequencies.
    """

    frequencies: np.ndarray  # (n_classes,)
    # The theta, then the vartheta of all kinds, then that of the trees if any.
    strengths: np.ndarray
    bias: np.ndarray  # (n_classes,)
    mix: float  # the epsilon

    @classmethod
    def fit(cls, scores, indicators, weights, frequencies, trees=None):
        """The link of least log-loss of rows held out.

        Scores are (n_kinds, n_held_out, n_classes), indicators and trees without kinds.
        """
        heads = _heads(scores, frequencies, trees)
        units = np.maximum(heads.std(axis=(1, 2)), 1e-6)
        heads = heads / units[:, None, None]
        n_heads, _, n_classes = heads.shape
        log_prior = np.log(frequencies)
        of_own = indicators @ frequencies
        precision = _BIAS_PRECISION * weights.sum()

        def loss(free):
            strengths, bias = free[:n_heads], free[n_heads:-1]
            mix = expit(free[-1])
            p = softmax(log_prior + bias + np.tensordot(strengths, heads, 1), axis=1)
            own = (p * indicators).sum(axis=1)
            mixed = (1 - mix) * own + mix * of_own
            pull = ((1 - mix) * own / mixed * weights)[:, None] * (p - indicators)
            off = free[-1] - _USUAL_MIX
            value = -weights @ np.log(mixed) + 0.5 * (
                _STRENGTH_PRECISION * strengths @ strengths
                + precision * bias @ bias
                + _MIX_PRECISION * off**2
            )
            slope = [
                np.tensordot(heads, pull, 2) + _STRENGTH_PRECISION * strengths,
                pull.sum(axis=0) + precision * bias,
                [weights @ ((own - of_own) / mixed) * mix * (1 - mix) + _MIX_PRECISION * off],
            ]
            return value, np.concatenate(slope)

        start = np.concatenate(
            [np.full(n_heads, 1 / n_heads), np.zeros(n_classes), [_USUAL_MIX]]
        )
        bounds = [(0, None)] * n_heads + [(None, None)] * (n_classes + 1)
        x = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        return cls(frequencies, x[:n_heads] / units, x[n_heads:-1], float(expit(x[-1])))

    def __call__(self, scores, trees=None):
        """Probabilities (n, n_classes) from scores (n_kinds, n, n_classes), and trees'."""
        heads = _heads(scores, self.frequencies, trees)
        logits = np.log(self.frequencies) + self.bias + np.tensordot(self.strengths, heads, 1)
        return (1 - self.mix) * softmax(logits, axis=1) + self.mix * self.frequencies


def _heads(scores, frequencies, trees=None):
    heads = [scores, np.arcsinh((scores + frequencies) / _LEAST_SHARE)]
    return np.concatenate(heads if trees is None else [*heads, trees[None]])
