"""How close sequences come to those that were asked for."""

from collections import Counter

import numpy as np

_LONGEST = 4


def corpus_bleu(predicted, expected, pieces=str.split):
    r"""Corpus BLEU.

    .. math:: \min(1, e^{1 - r/c}) \left(\prod_{n=1}^4 p_n\right)^{1/4}

    with :math:`p_n` the share of the predicted texts' n-grams that are in the expected one,
    each as often as it is there at most, and :math:`c` and :math:`r` the numbers of tokens
    predicted and expected (Papineni et al. 2002). Lengths :math:`n` that no text reaches are
    left out of the mean.

    Parameters
    ----------
    predicted, expected : list of str
    pieces : callable, default=str.split
        From a text to its tokens.

    Returns
    -------
    bleu : float
        In [0, 1]; 0 if no n-gram of some length is right.
    """
    right, all_of = np.zeros(_LONGEST), np.zeros(_LONGEST)
    lengths = np.zeros(2)
    for texts in zip(predicted, expected, strict=True):
        found, wanted = (list(pieces(text)) for text in texts)
        lengths += len(found), len(wanted)
        for n in range(_LONGEST):
            counts, limits = _n_grams(found, n + 1), _n_grams(wanted, n + 1)
            right[n] += (counts & limits).total()
            all_of[n] += counts.total()
    n_reached = np.count_nonzero(all_of)
    right, all_of = right[:n_reached], all_of[:n_reached]
    if not right.all() or not n_reached:
        return 0.0
    brevity = min(0.0, 1 - lengths[1] / lengths[0])
    return float(np.exp(brevity + np.log(right / all_of).mean()))


def token_accuracy(predicted, expected):
    """Share of places that hold the token they should.

    Parameters
    ----------
    predicted, expected : list of sequences

    Returns
    -------
    accuracy : float
        A place where only one of the two still has a token counts as wrong.
    """
    pairs = list(zip(predicted, expected, strict=True))
    right = sum(a == b for pair in pairs for a, b in zip(*pair, strict=False))
    return right / max(1, sum(max(map(len, pair)) for pair in pairs))


def _n_grams(tokens, n):
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))
