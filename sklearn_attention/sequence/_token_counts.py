"""Probabilities of the next token by counts of n-grams, the baseline of language models.

A *context* of length k has the k tokens before the next one. A *gram* of *level* k is a context
of length k with the token that follows. Contexts of a length are numbered: a *node* is the
number of a context, and -1 stands for a context that was not counted. The *key* of a gram is
node * n_tokens + next token. The key of a context of length k is node' * n_tokens + its oldest
token, where node' is the node of the context without its oldest token.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.utils import gen_batches

from ..text._special import PADDING, START


class TokenCounts:
    """Interpolated Kneser-Ney: counts of tokens after the last 0, 1, ..., `longest` ones.

    p(w | h) = max(c(h, w) - d_k, 0) / n(h) + d_k t(h) / n(h) p(w | h'), where h is a context of
    k tokens, h' is h without its oldest token, n(h) is the sum of the counts c(h, w) over all
    w, and t(h) the number of different tokens w after h. If h was not counted, p(w | h) = p(w |
    h'); without a context all tokens have the same probability. For the longest contexts, c(h,
    w) is the number of times that w follows h. For the others it is the number of different
    tokens before (h, w), plus the number of runs that begin with (h, w). The discount d_k is
    about n_1 / (n_1 + 2 n_2), where n_1 and n_2 grams have the counts 1 and 2.
    """

    def __init__(self, stream, n_tokens, longest):
        """Count the grams of a TokenStream, with contexts of up to `longest` tokens.

        `n_tokens` is the size of the vocabulary.
        """
        self.n_tokens, self.longest = n_tokens, longest
        # The probability of a token without a context: PADDING and START never come next.
        self._uniform_proba = 1 / (n_tokens - 2)
        # 1. Number the contexts of each length, and count their grams in the stream. The arrays
        # `position` (in `stream.ids`), `offset` (position in the run), `following` (the second
        # token) and `node` (of the context that ends with the first token) have an entry for
        # each pair before which the run has enough tokens for a context.
        position, offset = stream.pair_positions()
        following, node = stream.ids[position + 1], np.zeros(len(position), dtype=np.int64)
        self._context_keys, occurrences = [], []
        for k in range(longest + 1):
            if k:
                is_long = offset >= k - 1
                position, offset = position[is_long], offset[is_long]
                following, node = following[is_long], node[is_long]
                oldest = stream.ids[position - (k - 1)]
                keys, node = np.unique(node * n_tokens + oldest, return_inverse=True)
                self._context_keys.append(keys)
            keys, gram, counts = np.unique(
                node * n_tokens + following, return_inverse=True, return_counts=True
            )
            # The context is the beginning of its run if its oldest token has the offset 0.
            grams_at_beginning = gram[offset == k - 1]
            occurrences.append((keys, counts, grams_at_beginning))
        # 2. For all but the longest contexts, count different tokens before a gram instead.
        self._levels = []
        for k, (keys, counts, grams_at_beginning) in enumerate(occurrences):
            if k < longest:
                node, token = np.divmod(occurrences[k + 1][0], n_tokens)
                shorter_node = self._context_keys[k][node] // n_tokens
                shorter = np.searchsorted(keys, shorter_node * n_tokens + token)
                counts = np.bincount(shorter, minlength=len(keys))
                counts += np.bincount(grams_at_beginning, minlength=len(keys))
            n_nodes = len(self._context_keys[k - 1]) if k else 1
            self._levels.append(_Level.from_counts(keys, counts, n_nodes, n_tokens))

    def pair_log_proba(self, stream):
        """Return log-probabilities (n_pairs,) of the second tokens of a stream's pairs."""
        positions, offsets = stream.pair_positions()
        steps_back, probabilities = np.arange(self.longest - 1, -1, -1), []
        for block in gen_batches(len(positions), 2**16):
            position, offset = positions[block, None], offsets[block, None]
            ids = stream.ids[np.maximum(position - steps_back, 0)]
            contexts = np.where(steps_back <= offset, ids, PADDING)  # (n, longest)
            following = stream.ids[position[:, 0] + 1]
            probabilities.append(self._following_proba(contexts, following))
        return np.log(np.concatenate(probabilities))

    def next_log_proba(self, prefixes):
        """Return log-probabilities (n_prefixes, n_tokens) of the next token after prefixes."""
        # Contexts end with the last token of a prefix, and begin with PADDING if it is short.
        contexts = np.full((len(prefixes), self.longest), PADDING)
        for row, prefix in zip(contexts, prefixes, strict=True):
            last = prefix[-self.longest :]
            row[self.longest - len(last) :] = last
        proba = np.full((len(contexts), self.n_tokens), self._uniform_proba)
        proba[:, [PADDING, START]] = 0.0
        for level, rows, node in self._counted_contexts(contexts):
            n_different, total = level.n_different[node], level.total[node]
            proba[rows] *= (level.discount * n_different / total)[:, None]
            # The grams of a context stand side by side: list those of all contexts, one after
            # the other.
            listed_before = np.repeat(n_different.cumsum() - n_different, n_different)
            number = np.arange(len(listed_before)) - listed_before  # in its context
            gram = np.repeat(level.first[node], n_different) + number
            added = (level.counts[gram] - level.discount) / np.repeat(total, n_different)
            proba[np.repeat(rows, n_different), level.keys[gram] % self.n_tokens] += added
        with np.errstate(divide="ignore"):
            return np.log(proba)

    def _following_proba(self, contexts, following):
        """Return the probability (n,) of a token `following` (n,) each context (n, longest)."""
        proba = np.full(len(contexts), self._uniform_proba)
        for level, rows, node in self._counted_contexts(contexts):
            gram = _find(node * self.n_tokens + following[rows], level.keys)
            discounted = np.where(gram >= 0, level.counts[gram] - level.discount, 0.0)
            from_shorter = level.discount * level.n_different[node] * proba[rows]
            proba[rows] = (discounted + from_shorter) / level.total[node]
        return proba

    def _counted_contexts(self, contexts):
        """Yield each level, with the rows whose context of its length was counted, and nodes.

        Each row of `contexts` (n, longest) ends with the last token, and has PADDING before the
        first one. For each level the results are the level, the positions of rows, and the
        nodes of their contexts.
        """
        node = np.zeros(len(contexts), dtype=np.int64)
        for k, level in enumerate(self._levels):
            if k:
                # Contexts that were not counted stay so: keys are positive, so that no key
                # belongs to the node -1, and none to PADDING.
                keys = node * self.n_tokens + contexts[:, -k]
                node = _find(keys, self._context_keys[k - 1])
            rows = np.flatnonzero(node >= 0)
            yield level, rows, node[rows]


class _Level(NamedTuple):
    """Counts of the grams of one level, sorted by key, and sums over those of each context."""

    keys: np.ndarray  # (n_grams,)
    counts: np.ndarray  # (n_grams,)
    first: np.ndarray  # position of the first gram of each context, (n_nodes,)
    n_different: np.ndarray  # number of grams of each context, (n_nodes,)
    total: np.ndarray  # sum of the counts of each context, (n_nodes,)
    discount: float

    @classmethod
    def from_counts(cls, keys, counts, n_nodes, n_tokens):
        """Make a level of the sorted keys and the counts of its grams, both (n_grams,).

        `n_nodes` is the number of contexts, and `n_tokens` the size of the vocabulary.
        """
        bounds = np.searchsorted(keys, np.arange(n_nodes + 1) * n_tokens)
        total = np.add.reduceat(counts, bounds[:-1])
        once, twice = np.count_nonzero(counts == 1), np.count_nonzero(counts == 2)
        # The added numbers keep the discount between 0 and 1, even if no count is 1 or none is
        # 2.
        discount = (once + 0.5) / (once + 2 * twice + 1)
        return cls(keys, counts, bounds[:-1], np.diff(bounds), total, discount)


def average_log_proba(network, counted, weight):
    """Return the logarithm of the average of two probabilities, given their logarithms.

    `network` and `counted` are log-probabilities by a network and by counts. `weight` is the
    weight of the counts, between 0 and 1.
    """
    # The probability of PADDING and START is 0 in both.
    with np.errstate(divide="ignore"):
        return np.logaddexp(np.log1p(-weight) + network, np.log(weight) + counted)


def choose_counts_weight(network, counted):
    """Choose the weight of counts with the largest posterior density.

    `network` and `counted` are log-probabilities (n,) of held-out tokens. The prior has its
    mode at one half, and counts as much as ten tokens.
    """

    def risk(weight):
        log_prior = 5 * (np.log(weight) + np.log1p(-weight))
        return -average_log_proba(network, counted, weight).sum() - log_prior

    return float(minimize_scalar(risk, bounds=(0, 1), method="bounded").x)


def _find(keys, sorted_keys):
    """Return the position of each key (n,) in `sorted_keys`, -1 for keys that are missing."""
    if not len(sorted_keys):
        # This happens if all texts are shorter than these contexts.
        return np.full(len(keys), -1)
    position = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.where(sorted_keys[position] == keys, position, -1)
