"""Fits of sequence-to-sequence models: vocabularies, a network, and beam search.

A *pair* is a source, which the encoder reads, and its target, which the decoder predicts. Both
are ids of tokens: sources end with END, and targets are between START and END.
"""

import dataclasses
import functools

import numpy as np

from .._base import warn_user
from .._validation import check_size
from ..text import Vocabulary, learn_vocabulary
from ..text._check import check_sequences
from ..text._learn import choose_tokenizer
from ..text._special import END, START
from ..training._fit_network import FittedNetwork, fit_network


@dataclasses.dataclass(frozen=True)
class PairReader:
    """Reader of sources and targets, which become ids of at most `max_length`, END included.

    In its methods, `suffix` is appended to the names X and y in messages.
    """

    vocabularies: tuple  # that of sources, and that of targets
    max_length: int

    def sources(self, X, suffix=""):
        """Encode sources, and append END."""
        ids = self._encode(f"X{suffix}", X, self.vocabularies[0])
        return [np.append(tokens[: self.max_length - 1], END) for tokens in ids]

    def pairs(self, X, y, suffix=""):
        """Encode sources, and targets between START and END; return two lists of arrays."""
        sources = self.sources(X, suffix)
        targets = self._encode(f"y{suffix}", y, self.vocabularies[1])
        check_count(sources, targets, suffix)
        return sources, as_targets(targets, self.max_length)

    def _encode(self, name, sequences, vocabulary):
        """Encode sequences that a user passed as `name`, and warn if some will be cut."""
        ids = vocabulary.encode_all(name, sequences)
        n_long = sum(len(tokens) >= self.max_length for tokens in ids)
        if n_long:
            warn_user(
                f"{n_long} of {len(ids)} sequences in {name} have more than "
                f"{self.max_length - 1} tokens: max_length={self.max_length!r} leaves out what "
                "comes after. Pass a larger one to read all.",
            )
        return ids


def as_targets(targets, max_length):
    """Put ids between START and END; a target that is cut gets no END, since it goes on."""
    return [np.array([START, *ids, END][: max_length + 1]) for ids in targets]


@dataclasses.dataclass(frozen=True, eq=False)
class FittedSeq2Seq:
    """The vocabularies and the network of a sequence-to-sequence model."""

    source_state: dict  # the state of a Vocabulary
    target_state: dict
    network: FittedNetwork
    longest: int  # number of tokens of the longest training target, END included

    @functools.cached_property
    def reader(self):
        """PairReader of the vocabularies."""
        states = self.source_state, self.target_state
        vocabularies = tuple(map(Vocabulary.from_state, states))
        return PairReader(vocabularies, self.network.shape["max_length"])

    @property
    def tokenizer(self):
        """Kind of tokens of texts; "ids" if there are none."""
        kinds = self.source_state["tokenizer"], self.target_state["tokenizer"]
        return next((kind for kind in kinds if kind != "ids"), "ids")

    def write(self, sources, device, n_beams, length_penalty):
        """Return the likeliest targets of sources by beam search, as ids without END."""
        from ._seq2seq_network import MOST_TOKENS, beam_search, by_length

        check_size("n_beams", n_beams, self.longest, self.network.shape["d_model"])

        def search(network, source):
            return beam_search(
                network,
                source,
                n_beams=n_beams,
                length_penalty=length_penalty,
                max_length=self.longest,
            )

        network = self.network.module(device)
        return by_length(search, network, sources, max_tokens=MOST_TOKENS // n_beams)


def fit_seq2seq(pairs, held_out, reader, settings, report, *, longest, shared, label_smoothing):
    """Train a network on pairs, and return a FittedSeq2Seq.

    Parameters
    ----------
    pairs, held_out : tuple of two lists of ndarray
        Sources and targets to learn from, and to validate with. The lists of `held_out` are
        empty if there is no validation.
    reader : PairReader
        The reader that has encoded the pairs.
    settings : NetworkSettings
        Parameters of the network and of its training.
    report : Report
        It passes the progress on to callbacks.
    longest : int
        Number of tokens of the longest training target, END included.
    shared : bool
        Whether sources and targets share the vocabulary and its embedding.
    label_smoothing : float
        Parameter of the estimator.
    """
    from ._seq2seq_network import Seq2SeqNetwork, pair_training  # torch takes a second to load

    states = [vocabulary.state() for vocabulary in reader.vocabularies]
    n_source, n_target = map(len, reader.vocabularies)
    shape = {"n_source": n_source, "n_target": n_target, "shared": shared}
    shape |= {"max_length": int(reader.max_length), **settings.shape()}

    def fitted(network):
        return FittedSeq2Seq(*states, network, longest)

    training = pair_training(pairs, held_out, settings.device, float(label_smoothing))
    network = fit_network(
        Seq2SeqNetwork,
        shape,
        settings,
        **training,
        report=report,
        attributes=lambda network: {"model_": fitted(network)},
    )
    return fitted(network)


def learn_vocabularies(X, y, tokenizer, max_tokens, *, shared):
    """Learn the vocabularies of sources X and of targets y; return both.

    `tokenizer` is a name or "auto", and is used for texts, not for sequences of ids. If
    `shared` is True, both results are the same vocabulary, learned from X and y.
    """
    source_kind, X = check_sequences("X", X)
    target_kind, y = check_sequences("y", y)
    check_count(X, y)
    texts = {}
    if source_kind == "text":
        texts["X"] = X
    if target_kind == "text":
        texts["y"] = y
    tokenizer = choose_tokenizer(tokenizer, texts)

    def learn(kind, sequences):
        kind_tokenizer = "ids" if kind == "ids" else tokenizer
        return learn_vocabulary(kind_tokenizer, sequences, max_tokens=max_tokens)

    if not shared:
        return learn(source_kind, X), learn(target_kind, y)
    if source_kind != target_kind:
        raise ValueError(
            f"shared_vocabulary=True does not fit X of kind {source_kind!r} and y of kind "
            f"{target_kind!r}: pass False."
        )
    vocabulary = learn(source_kind, [*X, *y])
    return vocabulary, vocabulary


def check_count(X, y, suffix=""):
    """Raise ValueError unless X and y have the same number of sequences."""
    if len(X) != len(y):
        raise ValueError(
            f"X{suffix} has {len(X)} sequences, but y{suffix} has {len(y)}: pass one target "
            "for each source."
        )
