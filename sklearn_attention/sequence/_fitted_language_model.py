"""Fits of language models: a network, whose probabilities are averaged with n-gram counts."""

import dataclasses
import functools

import numpy as np

from ..text import Vocabulary
from ..text._special import START, UNKNOWN
from ..training._fit_network import FittedNetwork, fit_network
from ..training._training import share_held_out
from ._sampling import end_before
from ._token_counts import TokenCounts, average_log_proba, choose_counts_weight
from ._token_windows import TokenStream, TokenWindows, context_stride

# Smallest number of texts from which complete texts are held out, not stretches of texts.
_MIN_COMPLETE_TEXTS = 40
# Largest number of tokens before the next one that the counts of n-grams use.
_LONGEST_CONTEXT = 7


@dataclasses.dataclass(frozen=True, eq=False)
class FittedLanguageModel:
    """A vocabulary, a network, the texts that the baseline counts, and its weight."""

    vocabulary_state: dict
    network: FittedNetwork
    n_training_tokens: int
    baseline: dict | None  # the state of the TokenStream that the baseline counts
    baseline_weight: float

    @functools.cached_property
    def vocabulary(self):
        """Vocabulary of `vocabulary_state`."""
        return Vocabulary.from_state(self.vocabulary_state)

    @functools.cached_property
    def counts(self):
        """TokenCounts of the baseline's texts; None if there is no baseline."""
        if self.baseline is None:
            return None
        return self.counts_of(TokenStream.from_state(self.baseline))

    def counts_of(self, stream):
        """Count which tokens follow contexts in a stream, no longer ones than the network's."""
        longest = min(_LONGEST_CONTEXT, self.network.shape["max_length"])
        return TokenCounts(stream, self.network.shape["n_tokens"], longest)

    def prefixes(self, name, X):
        """Encode texts that will be continued, each as START and the ids of its tokens."""
        texts = self.vocabulary.encode_all(name, X, empty=True)
        return [np.append(START, ids) for ids in texts]

    def log_proba(self, stream, device):
        """Return log-probabilities of all tokens of a stream but START, (n_pairs,)."""
        log_proba = self.network_log_proba(stream, device)
        if self.counts is None:
            return log_proba
        counted = self.counts.pair_log_proba(stream)
        return average_log_proba(log_proba, counted, self.baseline_weight)

    def network_log_proba(self, stream, device):
        """Return the network's log-probabilities, in the form of :meth:`log_proba`."""
        max_length = self.network.shape["max_length"]
        windows = TokenWindows(stream, max_length, context_stride(max_length))
        return self.network.module(device).log_proba(windows)

    def next_log_proba(self, prefixes, device):
        """Return log-probabilities of the next token after prefixes, (n_prefixes, n_tokens)."""
        return self._with_counts(self.network.module(device).next_log_proba(prefixes), prefixes)

    def write(self, prefixes, n_new, draw, stop, device):
        """Generate a continuation of each prefix.

        Parameters
        ----------
        prefixes : list of ndarray of int
            From :meth:`prefixes`.
        n_new : int
            Largest number of new tokens.
        draw : callable
            ``draw(log_proba)`` returns the next tokens (n,), given log-probabilities
            (n, n_tokens), in which UNKNOWN has the probability 0.
        stop : list of str
            A continuation ends once it contains one of these texts, which may be followed by
            the rest of its last token.
        device : str
            Device of the network, or "auto".

        Returns
        -------
        continuations : list of str, or of lists of int
            The new tokens before END.
        """
        network, continuations = self.network.module(device), [None] * len(prefixes)

        def choose(log_proba, ids):
            log_proba = self._with_counts(log_proba, ids)
            log_proba[:, UNKNOWN] = -np.inf
            return draw(log_proba)

        def stops(ids):
            text = self.vocabulary.decode(ids)
            return end_before(text, stop) < len(text)

        lengths = np.array([len(prefix) for prefix in prefixes])
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            batch = np.array([prefixes[row] for row in rows])
            written = network.write(batch, n_new, choose, stops if stop else None)
            for row, ids in zip(rows, written, strict=True):
                continuations[row] = self.vocabulary.decode(ids)
        return continuations

    def _with_counts(self, log_proba, prefixes):
        """Average the network's probabilities (n_prefixes, n_tokens) with the baseline's."""
        if self.counts is None:
            return log_proba
        counted = self.counts.next_log_proba(prefixes)
        averaged = average_log_proba(log_proba, counted, self.baseline_weight)
        return averaged.astype(log_proba.dtype)


def fit_language_model(texts, windows, held_out, vocabulary, settings, baseline, report):
    """Train a network, and add a baseline of counts.

    Parameters
    ----------
    texts : TokenStream
        All texts of `fit`, those held out included. The baseline counts all of them in the end.
    windows : TokenWindows
        Windows of the texts that the network is trained on, without those held out.
    held_out : TokenStream or None
        Validation texts, held out of `texts` or passed by the user.
    vocabulary : Vocabulary
        Vocabulary of the ids in the streams.
    settings : NetworkSettings
        Parameters of the network and of its training.
    baseline : bool or "auto"
        Parameter of the estimator. With "auto" there is a baseline if validation texts can
        choose its weight.
    report : Report
        It passes the progress on to callbacks.

    Returns
    -------
    model : FittedLanguageModel
        The fitted model.
    """
    import torch  # takes a second to load

    from ._language_network import LanguageNetwork, window_loss

    training, state, validation_loss = windows.stream, vocabulary.state(), None
    if held_out is not None:
        held_out_windows = TokenWindows(held_out, windows.max_length)

        def validation_loss(network):
            return -network.log_proba(held_out_windows).mean()

    def without_baseline(network):
        return FittedLanguageModel(
            state,
            network,
            n_training_tokens=int(training.n_pairs.sum()),
            baseline=None,
            baseline_weight=0.0,
        )

    shape = {"n_tokens": len(vocabulary), "max_length": int(windows.max_length)}
    # Windows of one length, such as those of a single long text, need no sorting by length.
    lengths = torch.from_numpy(windows.lengths) if np.ptp(windows.lengths) else None
    held_out_digest = None if held_out is None else held_out.digest()
    network = fit_network(
        LanguageNetwork,
        shape | settings.shape(),
        settings,
        window_loss(windows),
        len(windows),
        n_tokens=windows.max_length,
        report=report,
        validate=validation_loss,
        lengths=lengths,
        data=[training.digest(), held_out_digest, state["learned"]],
        attributes=lambda network: {"model_": without_baseline(network)},
    )
    model, weight = without_baseline(network), 0.5
    if not (baseline is True or (baseline and held_out is not None)):
        return model
    if held_out is not None:
        # The weight is chosen by counts without the held-out texts, as the network is trained
        # without them. Predictions then use the counts of all texts.
        counted = model.counts_of(training).pair_log_proba(held_out)
        log_proba = model.network_log_proba(held_out, settings.device)
        weight = choose_counts_weight(log_proba, counted)
    return dataclasses.replace(model, baseline=texts.state(), baseline_weight=weight)


def hold_out(texts, settings, max_length):
    """Split a TokenStream into one to learn from and one held out; the latter may be None.

    If there are few texts, stretches of texts are held out, so that no complete text is lost. A
    stretch has at least `max_length` pairs, or as many as the mean text if these are fewer.
    """
    if len(texts) >= _MIN_COMPLETE_TEXTS:
        training, held_out = map(texts.select, settings.split(len(texts)))
        return training, held_out if len(held_out) else None
    fraction = share_held_out(settings.training, int(texts.n_pairs.sum()))
    if fraction is None:
        return texts, None
    return texts.hold_out(fraction, min(max_length, int(texts.n_pairs.mean())))
