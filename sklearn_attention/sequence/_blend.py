"""Probabilities by counts and by a network, averaged."""

import numpy as np
from scipy.optimize import minimize_scalar

from ..text._special import PADDING

# The prior, that both count alike, has the weight of so many tokens.
_PRECISION = 10.0


class Blend:
    """Weighted averages of the probabilities of a network and of :class:`TokenCounts`."""

    def __init__(self, counts, counts_weight):
        self.counts, self.counts_weight = counts, counts_weight

    def of_pairs(self, log_proba, stream):
        """Of all tokens of a stream, (n_pairs,), from those of the network."""
        return _averaged(log_proba, self.counts.of_pairs(stream), self.counts_weight)

    def of_all_tokens(self, log_proba, prefixes):
        """Of every token after sequences, (n, n_tokens), from those of the network."""
        longest = self.counts.longest
        contexts = np.full((len(prefixes), longest), PADDING)
        for row, prefix in zip(contexts, prefixes, strict=True):
            last = prefix[-longest:]
            row[longest - len(last) :] = last
        counted = self.counts.of_all_tokens(contexts)
        return _averaged(log_proba, counted, self.counts_weight).astype(log_proba.dtype)


def choose_counts_weight(network, counted):
    """The weight of counts that is likeliest by tokens held out, from log-probabilities (n,).

    The prior is one half, with the weight of ten tokens.
    """

    def risk(weight):
        prior = _PRECISION / 2 * (np.log(weight) + np.log1p(-weight))
        return -_averaged(network, counted, weight).sum() - prior

    return float(minimize_scalar(risk, bounds=(0, 1), method="bounded").x)


def _averaged(network, counted, weight):
    # Padding and START have no probability in either.
    with np.errstate(divide="ignore"):
        return np.logaddexp(np.log1p(-weight) + network, np.log(weight) + counted)
