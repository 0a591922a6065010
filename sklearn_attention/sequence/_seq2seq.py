"""Prediction of one sequence from another: encoder and decoder."""

from collections import Counter
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._base import AttentionEstimator, keeps_state_on_failure, parameters, with_callbacks
from .._report import Report
from .._validation import (
    check_choice,
    check_flag,
    check_in_interval,
    check_positive,
    has_validation_set,
)
from ..text._check import check_sequences
from ..training._fit_network import FittedNetwork, NetworkParameters, NetworkSettings
from ._fitted_seq2seq import (
    FittedSeq2Seq,
    PairReader,
    as_targets,
    check_count,
    fit_seq2seq,
    learn_vocabularies,
)


@parameters
class TransformerSeq2Seq(NetworkParameters, AttentionEstimator):
    r"""Predict a sequence from another one with an encoder and a decoder.

    Take it to turn short sequences into others, such as dates, names or codes into another
    notation, if you have a thousand pairs or more. It is not pretrained. To predict a class or
    a number, take :class:`TransformerClassifier` or :class:`TransformerRegressor`.

    .. math:: P(y \mid x) = \prod_t P(y_t \mid y_1, \dots, y_{t-1}, x)

    The encoder turns the source's tokens into vectors, each an average over all of them; the
    decoder predicts the target's next token from those before, to which it attends causally,
    and from the source, to which it attends by a second attention. Uses are translation,
    transliteration and sorting.

    Parameters
    ----------
    tokenizer : {"auto", "words", "characters", "byte_pairs"}, default="auto"
        Kind of tokens of texts; see :func:`~sklearn_attention.text.learn_vocabulary`.
        Sequences of ids need none. Words and characters that are not in the training data
        become one unknown token; byte pairs (of the ``tokenizers`` library) have none unknown.
        "auto" is words, but characters, with a warning, where most words of the sources or of
        the targets occur only once, as dates, numbers and sentences without spaces do.
    max_tokens : int, default=None
        Largest size of each vocabulary; None keeps all, or 8000 byte pairs.
    shared_vocabulary : bool, default=False
        Whether sources and targets have one vocabulary and one embedding, as for languages
        that share words.
    max_length : int, default=256
        Largest number of tokens of a sequence, its end included. Longer sequences are cut, with
        a warning.
    d_model : int, default=128
        Width of the tokens.
    n_heads : int, default=4
        Number of heads of every attention, which divide the width.
    n_layers : int, default=2
        Number of blocks of the encoder, and of the decoder.
    dropout : float, default=0.0
        Probability with which parts of the network are left out in training, which then takes
        half as long again. For texts of many words 0.1 or more is better.
    label_smoothing : float, default=0.1
        Share of the target probability that is spread over all tokens alike in training.
    n_beams : int, default=1
        Number of beams in the search for the likeliest target. With 1, each token is the
        likeliest one after those before it.
    length_penalty : float, default=1.0
        The target of the beam with the largest log-likelihood, divided by
        ``((5 + n_tokens) / 6) ** length_penalty``, is taken; larger values favour longer ones.
    learning_rate : float, default=3e-3
        Highest learning rate.
    batch_size : int or "auto", default="auto"
        Largest number of pairs in a step, which have similar lengths. "auto" is a twelfth of
        them, but 8 at least and 32 at most.
    max_epochs : int or "auto", default="auto"
        Number of passes over all pairs. "auto" is enough for 1000 steps, but 10 at least and
        64 at most.
    architecture : Architecture, default=None
        Further parameters of the network; None is
        :class:`Architecture() <sklearn_attention.Architecture>`.
    training : Training, default=None
        Further parameters of the training; None is
        :class:`Training() <sklearn_attention.Training>`.
    warm_start : bool, default=False
        Whether `fit` continues the last one, with its weights and its vocabularies.
    random_state : int, RandomState instance or None, default=0
        Draws weights, the order of pairs, and those held out.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
    model_ : FittedSeq2Seq
        All that is fitted, of which the other attributes are parts.
    tokenizer_ : {"words", "characters", "byte_pairs", "ids"}
        Kind of tokens of texts; "ids" if neither sources nor targets are texts.
    source_vocabulary_, target_vocabulary_ : dict
        The tokens, as plain values; ``Vocabulary.from_state`` reads them.
    longest_ : int
        Number of tokens of the longest training target, its end included. Predictions are not
        longer.
    network_ : FittedNetwork
        The encoder and decoder: their shape and their weights, as plain values.
    training_history_ : dict
        For every epoch ``loss``, ``validation_loss``, ``learning_rate`` and ``seconds``;
        also ``n_steps``, ``best_epoch``, and the reason why it ``stopped``.

    See Also
    --------
    TransformerLanguageModel : Only the decoder, without a source.

    Notes
    -----
    The network is that of Vaswani et al. [1]_: embeddings scaled by :math:`\sqrt d`, and shared
    with the layer that scores the next token [2]_. In training the decoder gets the true
    prefix (teacher forcing). The training loss with label smoothing is no likelihood; the
    validation loss has no smoothing.

    References
    ----------
    .. [1] Vaswani, A. et al. (2017). Attention is all you need. NeurIPS 30.
    .. [2] Press, O. and Wolf, L. (2017). Using the output embedding to improve language
       models. EACL.

    Examples
    --------
    >>> from sklearn_attention import TransformerSeq2Seq
    >>> X = ["un chat", "un chien", "le chat", "le chien", "le chat noir"]
    >>> y = ["a cat", "a dog", "the cat", "the dog", "the black cat"]
    >>> options = {"max_epochs": 60, "learning_rate": 0.01}
    >>> model = TransformerSeq2Seq(d_model=32, n_layers=1, **options)
    >>> model.fit(X, y).predict(["le chat noir", "un chien"])
    ['the black cat', 'a dog']
    """

    tokenizer: str = "auto"
    _: KW_ONLY
    max_tokens: int | None = None
    shared_vocabulary: bool = False
    max_length: int = 256
    d_model: int = 128
    label_smoothing: float = 0.1
    n_beams: int = 1
    length_penalty: float = 1.0
    learning_rate: float = 3e-3

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    _held = (FittedSeq2Seq, FittedNetwork)
    _views = ("longest_", "source_vocabulary_", "target_vocabulary_", "tokenizer_")
    network_ = property(lambda self: self.model_.network)
    tokenizer_ = property(lambda self: self.model_.tokenizer)
    source_vocabulary_ = property(lambda self: self.model_.source_state)
    target_vocabulary_ = property(lambda self: self.model_.target_state)
    longest_ = property(lambda self: self.model_.longest)

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y, *, X_val=None, y_val=None) -> Self:
        """Learn from pairs of sequences.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            Sources.
        y : list of str, or list of sequences of int
            Targets. Sources may be texts if targets are sequences of ids, and the other way
            round.
        X_val, y_val : as X and y, default=None
            Pairs to validate with, in place of some that are held out.

        Returns
        -------
        self : TransformerSeq2Seq
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid. The estimator then is as it was before.
        """
        settings = self._check_parameters()
        shared = check_flag("shared_vocabulary", self.shared_vocabulary)
        if settings.start is not None:
            if self.tokenizer_ not in ("ids", self.tokenizer) and self.tokenizer != "auto":
                raise ValueError(
                    f"tokenizer={self.tokenizer!r} does not fit warm_start=True, which keeps "
                    f"the vocabularies of the last fit, whose tokens are {self.tokenizer_}: "
                    f"pass {self.tokenizer_!r} or 'auto', or warm_start=False."
                )
            vocabularies = self.model_.reader.vocabularies
        else:
            vocabularies = learn_vocabularies(
                X, y, self.tokenizer, self.max_tokens, shared=shared
            )
        reader = PairReader(vocabularies, self.max_length)
        sources, targets = reader.pairs(X, y)
        if has_validation_set(X_val, y_val):
            training, held_out = (sources, targets), reader.pairs(X_val, y_val, "_val")
        else:
            training, held_out = (
                ([sources[i] for i in rows], [targets[i] for i in rows])
                for rows in settings.split(len(sources))
            )
        report = Report(self, X=X, y=y, metadata={})
        report.begin(settings.count_epochs(len(training[0])))
        self.model_ = fit_seq2seq(
            training,
            held_out,
            reader,
            settings,
            report,
            longest=max(map(len, targets)) - 1,  # without START
            shared=shared,
            label_smoothing=self.label_smoothing,
        )
        report.end()
        return self

    def predict(self, X) -> Any:
        """Predict the targets of sources.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            As in `fit`. Tokens that are not in the vocabulary are read as unknown.

        Returns
        -------
        y : list of str, or list of list of int
            The targets, of the kind of those in `fit`.
        """
        model = self._fitted
        written = model.write(model.reader.sources(X), self.device, *self._check_search())
        return [*map(model.reader.vocabularies[1].decode, written)]

    def predict_log_proba(self, X, y=None) -> list[Any]:
        """Return log-probabilities of a target's tokens, given the source and earlier tokens.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            Sources.
        y : list of str, or list of sequences of int, default=None
            Targets; None stands for those of :meth:`predict`.

        Returns
        -------
        log_proba : list of ndarray of shape (n_tokens + 1,)
            For each target the log-probabilities of its tokens, in order, and of its end. A
            target that is cut has no end. The sum is the log-likelihood of the target.
        """
        from ._seq2seq_network import by_length, log_likelihoods

        return by_length(log_likelihoods, self.module_, *self._read_pairs(X, y))

    def score(self, X, y) -> float:
        """Compare predictions with targets: chrF of texts, token accuracy of ids.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            Sources.
        y : list of str, or list of sequences of int
            Targets.

        Returns
        -------
        score : float
            In [0, 1]. For texts it is the character n-gram F-score chrF [1]_, with n from 1 to
            6 and a recall that counts twice as much as precision. For ids it is the share of
            positions with the right id, where a position that only one of the two sequences has
            counts as wrong.

        References
        ----------
        .. [1] Popović, M. (2015). chrF: character n-gram F-score for automatic MT evaluation.
           Proceedings of the Tenth Workshop on Statistical Machine Translation, 392-395.
        """
        vocabulary = self._fitted.reader.vocabularies[1]
        _, X = check_sequences("X", X)
        # The ids are not needed, but y of another kind raises the same error as elsewhere.
        vocabulary.encode_all("y", y)
        _, expected = check_sequences("y", y)
        check_count(X, expected)
        predicted = self.predict(X)
        if vocabulary.kind == "ids":
            return token_accuracy(predicted, expected)
        return chrf(predicted, expected)

    def attention_maps(self, X, y=None) -> list[Any]:
        """Return the weights of the source's tokens for each token of a target.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            Sources.
        y : list of str, or list of sequences of int, default=None
            Targets; None stands for those of :meth:`predict`.

        Returns
        -------
        weights : list of ndarray of shape (n_layers, n_heads, n_target, n_source)
            For each pair, rows are the target's tokens, then its end, and columns the source's
            tokens, then its end; rows sum to 1.
        """
        from ._seq2seq_network import by_length, cross_weights

        return by_length(cross_weights, self.module_, *self._read_pairs(X, y))

    @property
    def _fitted(self):
        """The FittedSeq2Seq; NotFittedError before `fit`."""
        check_is_fitted(self)
        return self.model_

    def _read_pairs(self, X, y):
        """Return the ids of sources and targets; if y is None, targets are predicted."""
        model = self._fitted
        if y is not None:
            return model.reader.pairs(X, y)
        sources = model.reader.sources(X)
        written = model.write(sources, self.device, *self._check_search())
        # Each prediction gets END, except those of `longest` tokens, which may have been cut.
        return sources, as_targets(written, model.longest)

    def _check_search(self):
        """Return the parameters of the beam search; raise ValueError unless they are valid."""
        n_beams = check_positive("n_beams", self.n_beams, integer=True)
        name, penalty = "length_penalty", self.length_penalty
        return n_beams, check_in_interval(name, penalty, 0, np.inf, closed_right=False)

    def _check_parameters(self):
        """Return settings of the network; raise ValueError unless all parameters are valid."""
        check_choice("tokenizer", self.tokenizer, ("auto", "byte_pairs", "characters", "words"))
        check_positive("max_length", self.max_length, integer=True, minimum=2)
        check_in_interval("label_smoothing", self.label_smoothing, 0, 1, closed_right=False)
        self._check_search()
        settings = NetworkSettings.of(
            self,
            activation="relu",
            optimizer="muon",
            largest_batch=32,
            fewest_epochs=10,
            foreign=("d_position", "patch_length", "instance_norm"),
        )
        settings.shape()
        return settings


def chrf(predicted, expected):
    """Compute the character n-gram F-score chrF of texts, in [0, 1] (Popović 2015).

    It is (1 + b^2) P R / (b^2 P + R) with b = 2. The precision P is the share of the predicted
    texts' n-grams that the expected texts have too, and the recall R the share of the expected
    ones that the predicted texts have; both are means over n = 1, ..., 6. White space is left
    out, and so are n that are longer than any expected text.
    """
    totals = np.zeros((3, 6))  # for each n: n-grams in both texts, in predicted, in expected
    for pair in zip(predicted, expected, strict=True):
        predicted_text, expected_text = ("".join(text.split()) for text in pair)
        for n in range(1, 7):
            predicted_counts = _n_grams(predicted_text, n)
            expected_counts = _n_grams(expected_text, n)
            # The intersection has the smaller one of two counts.
            shared = predicted_counts & expected_counts
            counts = shared, predicted_counts, expected_counts
            totals[:, n - 1] += [count.total() for count in counts]
    n_shared, n_predicted, n_expected = totals[:, totals[2] > 0]
    if not n_shared.any():
        return 0.0
    precision = (n_shared / np.maximum(n_predicted, 1)).mean()
    recall = (n_shared / np.maximum(n_expected, 1)).mean()
    return float(5 * precision * recall / (4 * precision + recall))


def _n_grams(text, n):
    """Count the n-grams of characters of a text."""
    return Counter(text[i : i + n] for i in range(len(text) - n + 1))


def token_accuracy(predicted, expected):
    """Return the share of positions with the right token.

    A position that only one of the two sequences has counts as wrong.
    """
    n_right, n_positions = 0, 0
    for predicted_ids, expected_ids in zip(predicted, expected, strict=True):
        n_right += sum(a == b for a, b in zip(predicted_ids, expected_ids, strict=False))
        n_positions += max(len(predicted_ids), len(expected_ids))
    return n_right / max(1, n_positions)
