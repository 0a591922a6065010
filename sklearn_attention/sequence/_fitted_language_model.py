"""Fits of language models, and all that is computed from them."""

import dataclasses
import functools

import numpy as np

from ..text import Vocabulary
from ..text._special import START, UNKNOWN
from ..training._fit_network import FittedNetwork, fit_network
from ..training._training import share_held_out
from ._sampling import end_before
from ._token_counts import TokenCounts, averaged, choose_counts_weight
from ._token_windows import TokenStream, TokenWindows, context_stride

# From so many on, whole texts are held out.
_MANY_TEXTS = 40
# Tokens before the next one that are counted together, at most.
_LONGEST_CONTEXT = 7


@dataclasses.dataclass(frozen=True, eq=False)
class FittedLanguageModel:
    """A vocabulary, the network, and texts that are counted, with the weight of the counts."""

    vocabulary_state: dict
    network: FittedNetwork
    n_training_tokens: int
    baseline: dict | None  # the state of a stream
    baseline_weight: float

    @functools.cached_property
    def vocabulary(self):
        """The Vocabulary of its state."""
        return Vocabulary.from_state(self.vocabulary_state)

    @functools.cached_property
    def counts(self):
        """TokenCounts of all texts; None without a baseline."""
        if self.baseline is None:
            return None
        return self.counts_of(TokenStream.from_state(self.baseline))

    def counts_of(self, stream):
        """Counts of a stream, after as many tokens as a context has, at most."""
        longest = min(_LONGEST_CONTEXT, self.network.shape["max_length"])
        return TokenCounts(stream, self.network.shape["n_tokens"], longest)

    def prefixes(self, name, X):
        """Ids of texts that something follows, from START on."""
        texts = self.vocabulary.encode_all(name, X, empty=True)
        return [np.append(START, ids) for ids in texts]

    def log_proba(self, stream, device):
        """Log-probabilities of all tokens of a stream, (n_pairs,)."""
        log_proba = self.network_log_proba(stream, device)
        if self.counts is None:
            return log_proba
        return averaged(log_proba, self.counts.of_pairs(stream), self.baseline_weight)

    def network_log_proba(self, stream, device):
        """Those that the network has."""
        max_length = self.network.shape["max_length"]
        windows = TokenWindows(stream, max_length, context_stride(max_length))
        return self.network.module(device).log_proba(windows)

    def next_log_proba(self, prefixes, device):
        """Log-probabilities of the next token after prefixes, (n_prefixes, n_tokens)."""
        return self._with_counts(self.network.module(device).next_log_proba(prefixes), prefixes)

    def write(self, prefixes, n_new, draw, stop, device):
        """What follows each prefix, before END and up to a text of `stop`.

        ``draw(log_proba)`` returns the next tokens; UNKNOWN is none of them.
        """
        network, written = self.network.module(device), [None] * len(prefixes)

        def choose(log_proba, ids):
            log_proba = self._with_counts(log_proba, ids)
            log_proba[:, UNKNOWN] = -np.inf
            return draw(log_proba)

        def stops(ids):
            text = self.vocabulary.decode(ids)
            return end_before(text, stop) < len(text)

        lengths = np.array([*map(len, prefixes)])
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            batch = np.array([prefixes[row] for row in rows])
            found = network.write(batch, n_new, choose, stops if stop else None)
            for row, ids in zip(rows, found, strict=True):
                written[row] = self.vocabulary.decode(ids)
        return written

    def _with_counts(self, log_proba, prefixes):
        """Averages with what is counted, of every token after sequences."""
        if self.counts is None:
            return log_proba
        counted = self.counts.of_all_tokens(prefixes)
        return averaged(log_proba, counted, self.baseline_weight).astype(log_proba.dtype)


def fit_language_model(texts, windows, held_out, vocabulary, settings, baseline, report):
    """Learn from windows of texts; what is held out of these, or else given, is a stream."""
    import torch  # takes a second to load

    from ._language_network import LanguageNetwork, window_loss

    training, state, validation_loss = windows.stream, vocabulary.state(), None
    if held_out is not None:
        judged = TokenWindows(held_out, windows.max_length)

        def validation_loss(network):
            return -network.log_proba(judged).mean()

    def without_counts(network):
        return FittedLanguageModel(state, network, int(training.n_pairs.sum()), None, 0.0)

    shape = {"n_tokens": len(vocabulary), "max_length": int(windows.max_length)}
    network = fit_network(
        LanguageNetwork, shape | settings.shape(), settings, window_loss(windows),
        len(windows), n_tokens=windows.max_length, report=report, validate=validation_loss,
        # Windows of one length, as of a single long text, need no sorting.
        lengths=torch.from_numpy(windows.lengths) if np.ptp(windows.lengths) else None,
        data=[training.digest(), held_out and held_out.digest(), state["learned"]],
        attributes=lambda network: {"model_": without_counts(network)},
    )  # fmt: skip
    model, weight = without_counts(network), 0.5
    if not (baseline is True or (baseline and held_out is not None)):
        return model
    if held_out is not None:
        # Counts of what the network has learned from; then all are counted.
        counted = model.counts_of(training).of_pairs(held_out)
        log_proba = model.network_log_proba(held_out, settings.device)
        weight = choose_counts_weight(log_proba, counted)
    return dataclasses.replace(model, baseline=texts.state(), baseline_weight=weight)


def hold_out(texts, settings, max_length):
    """Streams to learn from and held out, which is None if nothing is.

    Of few texts stretches are held out, so that no text, and no end of one, is lost.
    """
    if len(texts) >= _MANY_TEXTS:
        training, held_out = map(texts.select, settings.split(len(texts)))
        return training, held_out if len(held_out) else None
    share = share_held_out(settings.training, int(texts.n_pairs.sum()))
    if share is None:
        return texts, None
    return texts.hold_out(share, min(max_length, int(texts.n_pairs.mean())))
