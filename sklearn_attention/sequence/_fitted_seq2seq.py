"""Fits of translators: sources and targets as ids, and all that is computed from them."""

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
    """Sources and targets as ids, of `max_length` at most, END included."""

    # `suffix` is that of the names X and y in messages.

    vocabularies: tuple
    max_length: int

    def sources(self, X, suffix=""):
        """Sources with END."""
        ids = self._read(f"X{suffix}", X, self.vocabularies[0])
        return [np.append(tokens[: self.max_length - 1], END) for tokens in ids]

    def pairs(self, X, y, suffix=""):
        """Sources, and targets between START and END."""
        sources = self.sources(X, suffix)
        targets = self._read(f"y{suffix}", y, self.vocabularies[1])
        check_count(sources, targets, suffix)
        return sources, as_targets(targets, self.max_length)

    def _read(self, name, sequences, vocabulary):
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
    """Ids between START and END; one that is cut has no END, since it would continue."""
    return [np.array([START, *ids, END][: max_length + 1]) for ids in targets]


@dataclasses.dataclass(frozen=True, eq=False)
class FittedSeq2Seq:
    """The vocabularies, the network, and the tokens of the longest target, END included."""

    source_state: dict
    target_state: dict
    network: FittedNetwork
    longest: int

    @functools.cached_property
    def reader(self):
        """What reads sources and targets, and writes targets."""
        states = self.source_state, self.target_state
        vocabularies = tuple(map(Vocabulary.from_state, states))
        return PairReader(vocabularies, self.network.shape["max_length"])

    @property
    def tokenizer(self):
        """Kind of tokens of texts; "ids" if there are none."""
        kinds = self.source_state["tokenizer"], self.target_state["tokenizer"]
        return next((kind for kind in kinds if kind != "ids"), "ids")

    def write(self, sources, device, n_beams, length_penalty):
        """The likeliest targets of sources, as ids without END."""
        from ._seq2seq_network import MOST_TOKENS, beam_search, by_length

        check_size("n_beams", n_beams, self.longest, self.network.shape["d_model"])
        search = functools.partial(
            beam_search, n_beams=n_beams, length_penalty=length_penalty, max_length=self.longest
        )
        network = self.network.module(device)
        return by_length(search, network, sources, most_tokens=MOST_TOKENS // n_beams)


def fit_seq2seq(pairs, held_out, reader, settings, report, *, longest, shared, label_smoothing):
    """Learn from sources and targets as ids; of those held out there may be none."""
    from ._seq2seq_network import Seq2SeqNetwork, pair_training  # torch takes a second to load

    states = [vocabulary.state() for vocabulary in reader.vocabularies]
    n_source, n_target = map(len, reader.vocabularies)
    shape = {"n_source": n_source, "n_target": n_target, "shared": shared}
    shape |= {"max_length": int(reader.max_length), **settings.shape()}

    def fitted(network):
        return FittedSeq2Seq(*states, network, longest)

    network = fit_network(
        Seq2SeqNetwork, shape, settings,
        **pair_training(pairs, held_out, settings.device, float(label_smoothing)),
        report=report, attributes=lambda network: {"model_": fitted(network)},
    )  # fmt: skip
    return fitted(network)


def learn_vocabularies(X, y, tokenizer, max_tokens, *, shared):
    """The vocabularies of sources and of targets, or twice the one that both share.

    `tokenizer` is for texts, "auto" or a name; sequences of ids need none.
    """
    (kind, X), (other, y) = parts = check_sequences("X", X), check_sequences("y", y)
    check_count(X, y)
    texts = {name: part for name, (k, part) in zip("Xy", parts, strict=True) if k == "text"}
    tokenizer = choose_tokenizer(tokenizer, texts)

    def learn(kind, sequences):
        chosen = "ids" if kind == "ids" else tokenizer
        return learn_vocabulary(chosen, sequences, max_tokens=max_tokens)

    if not shared:
        return learn(kind, X), learn(other, y)
    if kind != other:
        raise ValueError(
            f"shared_vocabulary=True does not fit X of kind {kind!r} and y of kind {other!r}: "
            "pass False."
        )
    return (learn(kind, [*X, *y]),) * 2


def check_count(X, y, suffix=""):
    """Raise ValueError if there are not as many targets as sources."""
    if len(X) != len(y):
        raise ValueError(
            f"X{suffix} has {len(X)} sequences, but y{suffix} has {len(y)}: pass one target "
            "for each source."
        )
