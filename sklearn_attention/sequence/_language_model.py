"""A language model: a transformer that predicts the next token, and generates text."""

import math
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import AttentionEstimator, keeps_state_on_failure, parameters, with_callbacks
from .._report import Report
from .._validation import TRUE_FALSE_AUTO, check_choice, check_positive, check_size, is_one_of
from ..text import Vocabulary, learn_vocabulary
from ..text._check import check_sequences
from ..text._files import with_files
from ..text._learn import TOKENIZERS, choose_tokenizer
from ..training._fit_network import FittedNetwork, NetworkParameters, NetworkSettings
from ._fitted_language_model import FittedLanguageModel, fit_language_model, hold_out
from ._sampling import check_sampling, check_stop, draw, is_single, join_prompt, sampling_proba
from ._token_windows import TokenStream, TokenWindows


@parameters
class TransformerLanguageModel(NetworkParameters, AttentionEstimator):
    r"""Predict the next token of a text by a transformer and by counts of what followed before.

    Take it to score or to continue short texts, such as names or codes, if you have many
    examples of their kind. It is small and not pretrained; for general text take a large
    language model.

    .. math:: p(w_1, \dots, w_T) = \prod_t p(w_t \mid w_1, \dots, w_{t-1})

    Each factor is a weighted average of two probabilities: the softmax output of a causal
    encoder of the tokens before, and a baseline by counts of the tokens that followed the same
    last tokens in the texts of `fit`. A text is START, its tokens, and END, so that the model
    also learns how texts begin and end.

    Parameters
    ----------
    tokenizer : str, default="characters"
        Kind of tokens, "characters", "words", "lower_words", "byte_pairs" or "ids"; see
        :func:`~sklearn_attention.text.learn_vocabulary`. With "ids", texts are sequences of
        integers.
    max_tokens : int, default=None
        Largest size of the vocabulary, with its four special tokens; rare tokens become the
        unknown one. None keeps all, or 8000 byte pairs.
    max_length : int, default=64
        Largest number of tokens that a prediction depends on.
    baseline : bool or "auto", default="auto"
        Whether the transformer's probabilities are averaged with those by counts of up to eight
        tokens in a row. The weights have the largest likelihood on texts held out. If none are
        held out, "auto" has no baseline, and with True both weights are one half.
    d_model : int, default=128
        Width of the tokens.
    n_heads : int, default=4
        Number of heads of the attention, which divide the width.
    n_layers : int, default=4
        Number of blocks of the encoder.
    dropout : float, default=0.0
        Probability with which parts of the network are left out in training.
    learning_rate : float, default=3e-3
        Highest learning rate.
    batch_size : int or "auto", default="auto"
        Largest number of windows in a step. "auto" is a twelfth of them, but 8 at least and 16
        at most.
    max_epochs : int or "auto", default="auto"
        Number of passes over all windows. "auto" is enough for 1000 steps, but at most 64.
    architecture : Architecture, default=None
        Further parameters of the network; None is
        :class:`Architecture() <sklearn_attention.Architecture>`.
    training : Training, default=None
        Further parameters of the training; None is
        :class:`Training() <sklearn_attention.Training>`. Texts are held out at random. If there
        are fewer than 40 texts, up to ten stretches are held out instead, which are spread
        evenly over the tokens of all texts.
    warm_start : bool, default=False
        Whether `fit` continues the last one, with its weights and its vocabulary.
    random_state : int, RandomState instance or None, default=0
        Draws weights, texts that are held out, and the order of windows.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
    model_ : FittedLanguageModel
        All that is fitted, of which the other attributes are parts.
    vocabulary_ : dict
        The vocabulary as plain values, which
        :meth:`Vocabulary.from_state <sklearn_attention.text.Vocabulary.from_state>` reads.
    tokens_ : list of str
        All tokens, in the order of the columns of :meth:`predict_proba`.
    n_training_tokens_ : int
        Number of tokens that are predicted in an epoch.
    baseline_ : dict or None
        The texts whose tokens the baseline counts, as ids: those of the last `fit`, texts held
        out included. None without a baseline.
    baseline_weight_, transformer_weight_ : float
        Weights of the two probabilities, which sum to 1.
    network_ : FittedNetwork
        The transformer: its shape and its weights, as plain values.
    training_history_ : dict
        For every epoch ``loss``, ``learning_rate``, ``seconds`` and ``validation_loss``: minus
        the mean log-likelihood of a token held out under the transformer, in windows that do
        not overlap. Also ``n_steps``, ``best_epoch``, and the reason why it ``stopped``.

    See Also
    --------
    TransformerSeq2Seq : Predicts a sequence from another one.
    TransformerForecaster : Continues series of numbers.

    Notes
    -----
    This is the decoder-only transformer of GPT [1]_ [2]_, by default with rotary positions
    [3]_, on any kernel. One table embeds the tokens and scores the next one.

    The baseline is an interpolated Kneser-Ney model [4]_ of 8-grams. Its weight is chosen with
    counts of the tokens that the transformer learns from; then tokens held out are counted too.
    For a text of some hundred tokens, to which the transformer overfits, the baseline has most
    of the weight. `transform` and `attention_maps` are those of the transformer.

    In an epoch every text is cut into windows of `max_length` tokens, each moved by up to half
    of that at random. Windows do not reach from one text into another. Shorter texts are
    padded; predictions do not depend on it.

    A path stands for the text in its file: the model is that of the same texts in a list. Files
    are read in pieces, for byte pairs one by one as a whole, and their ids are in a temporary
    file, with one or two bytes a token where the vocabulary is small. A baseline counts all
    tokens in memory: pass ``baseline=False`` for texts that are too large for that.

    Text longer than `max_length` is predicted from a context that moves on by half of that
    whenever it is full, so that the keys and values of its tokens can be stored: the cost of a
    token does not depend on its position. :meth:`sample`, :meth:`predict_proba` and
    :meth:`score` use the same contexts.

    KeyboardInterrupt ends the training, with a warning, and leaves a model with the best
    weights, or those at that time.

    References
    ----------
    .. [1] Vaswani, A. et al. (2017). Attention is all you need. NeurIPS 30.
    .. [2] Radford, A. et al. (2019). Language models are unsupervised multitask learners.
       OpenAI.
    .. [3] Su, J. et al. (2021). RoFormer: enhanced transformer with rotary position embedding.
       arXiv:2104.09864.
    .. [4] Chen, S. F. and Goodman, J. (1999). An empirical study of smoothing techniques for
       language modeling. Computer Speech and Language 13, 359-394.

    Examples
    --------
    >>> from sklearn_attention import TransformerLanguageModel
    >>> model = TransformerLanguageModel(d_model=32, n_layers=2, max_epochs=80)
    >>> model = model.fit(["the cat sat on the mat"])
    >>> model.sample("the c", temperature=0)
    'the cat sat on the mat'
    """

    tokenizer: str = "characters"
    _: KW_ONLY
    max_tokens: int | None = None
    max_length: int = 64
    baseline: bool | str = "auto"
    d_model: int = 128
    n_layers: int = 4
    learning_rate: float = 3e-3

    _held = (FittedLanguageModel, FittedNetwork)
    _views = ("baseline_weight_", "n_training_tokens_", "tokens_", "transformer_weight_")
    network_ = property(lambda self: self.model_.network)
    vocabulary_ = property(lambda self: self.model_.vocabulary_state)
    tokens_ = property(lambda self: self.model_.vocabulary.tokens)
    n_training_tokens_ = property(lambda self: self.model_.n_training_tokens)
    baseline_ = property(lambda self: self.model_.baseline)
    baseline_weight_ = property(lambda self: self.model_.baseline_weight)
    transformer_weight_ = property(lambda self: 1 - self.baseline_weight_)

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y=None, *, X_val=None) -> Self:
        """Learn from texts.

        Parameters
        ----------
        X : list of str, list of sequences of int, or path or list of paths
            Texts, or sequences of ids; a tuple, an array or a Series may take the place of the
            list. A ``pathlib.Path``, or a list of them, names files, each with one text in
            UTF-8; line ends become line feeds.
        y : None
            Ignored.
        X_val : as X, default=None
            Texts to validate with, in place of some that are held out of X.

        Returns
        -------
        self : TransformerLanguageModel

        Raises
        ------
        ValueError
            If a parameter is not valid, X has no texts, X has ids where the tokenizer needs
            texts or the other way round, or a file is missing, empty or not in UTF-8.
        """
        settings = self._check_parameters()
        vocabulary = self._learn_vocabulary(settings, X)
        texts = TokenStream.read("X", X, vocabulary)
        if X_val is None:
            training, held_out = hold_out(texts, settings, self.max_length)
        else:
            training, held_out = texts, TokenStream.read("X_val", X_val, vocabulary)
        windows = TokenWindows(training, self.max_length)
        report = Report(self, X=X, y=y, metadata={})
        report.begin(settings.count_epochs(len(windows)))
        self.model_ = fit_language_model(
            texts, windows, held_out, vocabulary, settings, self.baseline, report
        )
        report.end()
        return self

    def _learn_vocabulary(self, settings, X):
        """Learn the vocabulary of X, or return that of the last fit if it is continued."""
        kind, texts = check_sequences("X", with_files("X", X, self.tokenizer))
        if settings.start is not None:
            before = self.vocabulary_["tokenizer"]
            if before != self.tokenizer:
                raise ValueError(
                    f"warm_start=True continues with the vocabulary of the last fit, whose "
                    f"tokenizer was {before!r}, not {self.tokenizer!r}: pass warm_start=False."
                )
            return Vocabulary.from_state(self.vocabulary_)
        tokenizer = choose_tokenizer(self.tokenizer, {"X": texts} if kind == "text" else {})
        return learn_vocabulary(tokenizer, texts, max_tokens=self.max_tokens)

    def score(self, X, y=None) -> float:
        """Return the mean log-likelihood of a token.

        Parameters
        ----------
        X : list of str, list of sequences of int, or path or list of paths
            As for :meth:`fit`.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean of the natural logarithms of the probabilities of all tokens of all texts, END
            included. Tokens that are not in the vocabulary count as the unknown one.
        """
        model = self._fitted
        stream = TokenStream.read("X", X, model.vocabulary)
        return float(model.log_proba(stream, self.device).mean())

    def perplexity(self, X) -> float:
        """Return the perplexity, the number of equally likely tokens of the same likelihood.

        Parameters
        ----------
        X : list of str, list of sequences of int, or path or list of paths
            As for :meth:`fit`.

        Returns
        -------
        perplexity : float
            The exponential of minus the :meth:`score`.
        """
        return math.exp(-self.score(X))

    def transform(self, X) -> np.ndarray:
        """Encode texts as vectors, for example as features of other estimators.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            As for :meth:`predict_log_proba`.

        Returns
        -------
        X_new : ndarray of shape (n_texts, d_model)
            Vectors of tokens after the last layer, averaged over the context from which the
            next token would be predicted. START is one of these tokens.
        """
        return self.module_.vectors(self._fitted.prefixes("X", X))

    def predict_log_proba(self, X) -> np.ndarray:
        """Predict the log-probabilities of the next token.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            Texts to continue; for an empty one, the first token of a text is predicted.

        Returns
        -------
        log_proba : ndarray of shape (n_texts, n_tokens)
            A column for each of `tokens_`. Padding and START never come next.
        """
        model = self._fitted
        return model.next_log_proba(model.prefixes("X", X), self.device)

    def predict_proba(self, X) -> np.ndarray:
        """Predict the probabilities of the next token.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            As for :meth:`predict_log_proba`.

        Returns
        -------
        proba : ndarray of shape (n_texts, n_tokens)
            A column for each of `tokens_`.
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X) -> np.ndarray:
        """Predict the most probable next token.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            As for :meth:`predict_log_proba`.

        Returns
        -------
        tokens : ndarray of str of shape (n_texts,)
            The tokens, as they are in `tokens_`.
        """
        likeliest = self.predict_log_proba(X).argmax(axis=1)
        return np.array(self.tokens_, dtype=object)[likeliest]

    def sample(
        self,
        prompt=None,
        max_new_tokens: int = 100,
        *,
        temperature: float = 1.0,
        top_k=None,
        top_p=None,
        stop=None,
        random_state=None,
    ) -> Any:
        """Generate text that continues a prompt.

        Parameters
        ----------
        prompt : str, sequence of int, or list of either, default=None
            Beginning of the text, or a list of several. With None, or an empty prompt, the text
            is generated from its start.
        max_new_tokens : int, default=100
            Largest number of new tokens; a text may end before.
        temperature : float, default=1.0
            Below 1 likely tokens become likelier; at 0 the likeliest is always taken.
        top_k : int, default=None
            Number of likeliest tokens to draw from; None draws from all.
        top_p : float, default=None
            Probability of the tokens to draw from. They are as few as possible: the likeliest
            of those that `top_k` leaves, until their probabilities sum to `top_p`. None draws
            from all.
        stop : str or list of str, default=None
            Texts at which the continuation ends, without them. Not for sequences of ids.
        random_state : int, RandomState instance or None, default=None
            Draws the tokens.

        Returns
        -------
        text : str, list of int, or list of either
            The prompt as it was passed, and its continuation. The unknown token is not drawn.

        Raises
        ------
        ValueError
            If a parameter is not valid.
        """
        model = self._fitted
        vocabulary, rng = model.vocabulary, check_random_state(random_state)
        check_sampling(temperature, top_k, top_p)
        stop = check_stop(stop, vocabulary.kind)
        if prompt is None:
            prompt = "" if vocabulary.kind == "text" else []
        has_one_prompt = is_single(prompt, vocabulary.kind)
        prompts = [prompt] if has_one_prompt else prompt
        prefixes = model.prefixes("prompt", prompts)
        max_new_tokens = check_size("max_new_tokens", max_new_tokens, len(prefixes))

        def draw_next(log_proba):
            proba = sampling_proba(log_proba, temperature=temperature, top_k=top_k, top_p=top_p)
            return draw(proba, rng.random_sample(len(proba)))

        written = model.write(prefixes, max_new_tokens, draw_next, stop, self.device)
        _, prompts = check_sequences("prompt", prompts, empty=True)
        pairs = zip(prompts, written, strict=True)
        texts = [join_prompt(vocabulary, prompt, new, stop) for prompt, new in pairs]
        return texts[0] if has_one_prompt else texts

    def attention_maps(self, X) -> np.ndarray:
        """Return the weights of the attention within a text.

        Parameters
        ----------
        X : str, or sequence of int
            One text, of fewer than `max_length` tokens.

        Returns
        -------
        weights : ndarray of shape (n_layers, n_heads, T, T)
            Weights of the tokens (last axis) in the average of each token; rows sum to 1. The
            first token is START, those of the text follow.

        Raises
        ------
        ValueError
            If the text is too long, or X is not one text.
        """
        if not is_single(X, self._fitted.vocabulary.kind):
            raise ValueError(f"X={X!r} is not valid: pass one text, or one sequence of ids.")
        (ids,) = self._fitted.prefixes("X", [X])
        max_length = self.network_.shape["max_length"]
        if len(ids) > max_length:
            raise ValueError(
                f"X has {len(ids) - 1} tokens, but a context holds {max_length}, of which one "
                f"is the START token: pass at most {max_length - 1} tokens."
            )
        return self.module_.attention_maps(ids)

    @property
    def _fitted(self):
        """The FittedLanguageModel; NotFittedError before `fit`."""
        check_is_fitted(self)
        return self.model_

    def _check_parameters(self):
        """Return settings of the network; raise ValueError unless all parameters are valid."""
        check_choice("tokenizer", self.tokenizer, TOKENIZERS)
        check_positive("max_length", self.max_length, integer=True)
        if not is_one_of(self.baseline, *TRUE_FALSE_AUTO):
            raise ValueError(
                f"baseline={self.baseline!r} is not valid: pass True, False or 'auto'."
            )
        settings = NetworkSettings.of(
            self,
            positions="rotary",
            activation="relu",
            optimizer="muon",
            largest_batch=16,
            foreign=("d_position", "patch_length", "instance_norm"),
        )
        settings.shape()
        return settings

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags
