"""Probabilities of the next token by counts of what followed the same tokens before."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.utils import gen_batches

from ..text._special import PADDING, START


class TokenCounts:
    """Interpolated Kneser-Ney: counts of tokens after the last 0, 1, ..., `longest` ones.

    p(w | h) = max(c(h, w) - d_k, 0) / n(h) + d_k t(h) / n(h) p(w | h'), where n(h) tokens, t(h)
    different ones, were counted after a context h of k tokens, and h' is h without its oldest
    token; p(w | h) = p(w | h') for an unknown h; without a context all tokens are alike. c(h,
    w) counts w after the longest contexts, else the different tokens before h and w; a run that
    begins with them counts each time. The discount d_k is about n_1 / (n_1 + 2 n_2), of counts
    that are one and two.
    """

    def __init__(self, stream, n_tokens, longest):
        self.n_tokens, self.longest = n_tokens, longest
        self._of_any = 1 / (n_tokens - 2)  # probability of a token of which nothing is known
        place, offset = stream.places()
        following, node = stream.ids[place + 1], np.zeros(len(place), dtype=np.int64)
        self._contexts, levels = [], []
        for k in range(longest + 1):
            if k:
                reach = offset >= k - 1
                place, offset, following = place[reach], offset[reach], following[reach]
                older = stream.ids[place - (k - 1)]
                keys, node = np.unique(node[reach] * n_tokens + older, return_inverse=True)
                self._contexts.append(keys)
            keys, which, counts = np.unique(
                node * n_tokens + following, return_inverse=True, return_counts=True
            )
            levels.append((keys, counts, which[offset == k - 1]))
        self._levels = []
        for k, (keys, counts, at_beginning) in enumerate(levels):
            if k < longest:
                node, token = np.divmod(levels[k + 1][0], n_tokens)
                shorter = self._contexts[k][node] // n_tokens * n_tokens + token
                counts = np.bincount(np.searchsorted(keys, shorter), minlength=len(keys))
                counts += np.bincount(at_beginning, minlength=len(keys))
            n_nodes = len(self._contexts[k - 1]) if k else 1
            self._levels.append(_Level.of(keys, counts, n_nodes, n_tokens))

    def of_pairs(self, stream):
        """Log-probabilities of all tokens of a stream that have one before, (n_pairs,)."""
        places, offsets = stream.places()
        back, found = np.arange(self.longest - 1, -1, -1), []
        for block in gen_batches(len(places), 2**16):
            place, offset = places[block, None], offsets[block, None]
            contexts = np.where(
                back <= offset, stream.ids[np.maximum(place - back, 0)], PADDING
            )
            found.append(self._of_following(contexts, stream.ids[place[:, 0] + 1]))
        return np.log(np.concatenate(found))

    def of_all_tokens(self, prefixes):
        """Log-probabilities of every token after each of some sequences, (n, n_tokens)."""
        # Contexts have their last tokens at the end, after PADDING if need be.
        contexts = np.full((len(prefixes), self.longest), PADDING)
        for row, prefix in zip(contexts, prefixes, strict=True):
            last = prefix[-self.longest :]
            row[self.longest - len(last) :] = last
        proba = np.full((len(contexts), self.n_tokens), self._of_any)
        proba[:, [PADDING, START]] = 0.0
        for level, rows, node in self._walk(contexts):
            n_different, total = level.n_different[node], level.total[node]
            proba[rows] *= (level.discount * n_different / total)[:, None]
            before = np.repeat(n_different.cumsum() - n_different, n_different)
            gram = np.repeat(level.first[node], n_different) + np.arange(len(before)) - before
            added = (level.counts[gram] - level.discount) / np.repeat(total, n_different)
            proba[np.repeat(rows, n_different), level.keys[gram] % self.n_tokens] += added
        with np.errstate(divide="ignore"):
            return np.log(proba)

    def _of_following(self, contexts, following):
        proba = np.full(len(contexts), self._of_any)
        for level, rows, node in self._walk(contexts):
            gram = _find(level.keys, node * self.n_tokens + following[rows])
            kept = np.where(gram >= 0, level.counts[gram] - level.discount, 0.0)
            rest = level.discount * level.n_different[node] * proba[rows]
            proba[rows] = (kept + rest) / level.total[node]
        return proba

    def _walk(self, contexts):
        """Level by level its counts, which contexts are known there, and their numbers."""
        node = np.zeros(len(contexts), dtype=np.int64)
        for k, level in enumerate(self._levels):
            if k:
                # No key is negative, and none has PADDING.
                node = _find(self._contexts[k - 1], node * self.n_tokens + contexts[:, -k])
            rows = np.flatnonzero(node >= 0)
            yield level, rows, node[rows]


class _Level(NamedTuple):
    """Counts after contexts of one length: of grams in order, and of each context."""

    keys: np.ndarray
    counts: np.ndarray
    first: np.ndarray
    n_different: np.ndarray
    total: np.ndarray
    discount: float

    @classmethod
    def of(cls, keys, counts, n_nodes, n_tokens):
        borders = np.searchsorted(keys, np.arange(n_nodes + 1) * n_tokens)
        total = np.add.reduceat(counts, borders[:-1])
        once, twice = np.count_nonzero(counts == 1), np.count_nonzero(counts == 2)
        # Between 0 and 1, also where all counts are alike.
        discount = (once + 0.5) / (once + 2 * twice + 1)
        return cls(keys, counts, borders[:-1], np.diff(borders), total, discount)


def averaged(network, counted, weight):
    """Logarithms of averaged probabilities, from those of a network and of counts."""
    # Padding and START have no probability in either.
    with np.errstate(divide="ignore"):
        return np.logaddexp(np.log1p(-weight) + network, np.log(weight) + counted)


def choose_counts_weight(network, counted):
    """The weight of counts that is likeliest by tokens held out, from log-probabilities (n,).

    The prior is one half, with the weight of ten tokens.
    """

    def risk(weight):
        prior = 5 * (np.log(weight) + np.log1p(-weight))
        return -averaged(network, counted, weight).sum() - prior

    return float(minimize_scalar(risk, bounds=(0, 1), method="bounded").x)


def _find(keys, wanted):
    """Positions of wanted keys among sorted ones, -1 where they are missing."""
    if not len(keys):
        # No text is as long as these contexts.
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)
