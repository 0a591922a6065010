"""Scores of predicted sequences against the true ones."""

from collections import Counter

import numpy as np

_LONGEST, _BETA = 6, 2


def chrf(predicted, expected):
    """Character n-gram F-score chrF of texts, in [0, 1] (Popović 2015)."""
    # (1 + b^2) P R / (b^2 P + R) with b = 2, and P and R the means over n = 1, ..., 6 of the
    # shares of the predicted and of the expected texts' n-grams that are in the other text too,
    # each at most as often as it is there. White space is left out, and so are lengths that no
    # expected text reaches.
    both, found, wanted = np.zeros((3, _LONGEST))
    for texts in zip(predicted, expected, strict=True):
        ours, theirs = ("".join(text.split()) for text in texts)
        for n in range(_LONGEST):
            counts, limits = _n_grams(ours, n + 1), _n_grams(theirs, n + 1)
            both[n] += (counts & limits).total()
            found[n] += counts.total()
            wanted[n] += limits.total()
    if not both.any():
        return 0.0
    reached = wanted > 0
    precision = (both / np.maximum(found, 1))[reached].mean()
    recall = (both / np.maximum(wanted, 1))[reached].mean()
    return float((1 + _BETA**2) * precision * recall / (_BETA**2 * precision + recall))


def token_accuracy(predicted, expected):
    """Share of places that hold the right token; places of only one sequence are wrong."""
    pairs = list(zip(predicted, expected, strict=True))
    right = sum(a == b for pair in pairs for a, b in zip(*pair, strict=False))
    return right / max(1, sum(max(map(len, pair)) for pair in pairs))


def _n_grams(text, n):
    return Counter(text[i : i + n] for i in range(len(text) - n + 1))
