"""A language model: a transformer that predicts the next token, and generates text."""

import numpy as np
from sklearn.callback import with_callbacks

from .._base import keeps_state_on_failure
from .._validation import check_choice, check_positive, is_one_of
from ..text import Vocabulary, learn_vocabulary
from ..text._check import check_sequences
from ..text._learn import TOKENIZERS, choose_tokenizer
from ..training._fit_network import NetworkSettings, fit_network
from ..training._report import reported
from ..training._training import share_held_out
from ._blend import choose_counts_weight
from ._token_predictor import TokenPredictor
from ._token_windows import TokenStream, TokenWindows

# From so many on, whole texts are held out.
_MANY_TEXTS = 40


class TransformerLanguageModel(TokenPredictor):
    r"""Language model: a transformer and counts predict the next token of a text.

    .. math:: p(w_1, \dots, w_T) = \prod_t p(w_t \mid w_1, \dots, w_{t-1})

    Each factor is a weighted average of two probabilities: the softmax output of a causal
    encoder of the tokens before, and a baseline by counts of the tokens that followed the same
    last tokens in the texts of `fit`. A text is START, its tokens, and END, so that the model
    also learns how texts begin and end.

    Parameters
    ----------
    tokenizer : {"characters", "words", "lower_words", "byte_pairs", "ids"}, \
default="characters"
        Kind of tokens; see :func:`~sklearn_attention.text.learn_vocabulary`. With "ids",
        texts are sequences of integers.
    max_tokens : int, default=None
        Largest size of the vocabulary, with its four special tokens; rare tokens become the
        unknown one. None keeps all, or 8000 byte pairs.
    max_length : int, default=64
        Largest number of tokens that a prediction depends on.
    baseline : bool or "auto", default="auto"
        Whether probabilities by counts of up to eight tokens in a row are averaged with those
        of the transformer, with the weight of largest likelihood on texts held out. "auto"
        does so where some are; with True both weights are one half where none are.
    d_model : int, default=128
        Width of the tokens.
    n_heads : int, default=4
        Heads of the attention, which divide the width.
    n_layers : int, default=4
        Blocks of the encoder.
    dropout : float, default=0.0
        Probability with which parts of the network are left out in training.
    learning_rate : float, default=3e-3
        Highest learning rate.
    batch_size : int, (int, int) or "auto", default="auto"
        Windows in a step; a pair grows over the training. "auto" is a twelfth of them, but 8
        at least and 16 at most.
    max_epochs : int or "auto", default="auto"
        Passes over all windows. "auto" is enough for 1000 steps, but at most 64.
    architecture : Architecture, default=None
        Further parameters of the network; None is
        :class:`Architecture() <sklearn_attention.Architecture>`.
    training : Training, default=None
        Further parameters of the training; None is
        :class:`Training() <sklearn_attention.Training>`. Texts are held out at random;
        of fewer than 40 up to ten stretches that are spread evenly over all their tokens.
    warm_start : bool, default=False
        Whether `fit` continues the last one, with its weights and its vocabulary.
    random_state : int, RandomState instance or None, default=0
        Draws weights, texts that are held out, and the order of windows.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
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

    def __init__(
        self,
        tokenizer="characters",
        *,
        max_tokens=None,
        max_length=64,
        baseline="auto",
        d_model=128,
        n_heads=4,
        n_layers=4,
        dropout=0.0,
        learning_rate=3e-3,
        batch_size="auto",
        max_epochs="auto",
        architecture=None,
        training=None,
        warm_start=False,
        random_state=0,
        device="auto",
    ):
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.max_length = max_length
        self.baseline = baseline
        self.d_model = d_model
        self.n_heads = n_heads
        self.n_layers = n_layers
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.architecture = architecture
        self.training = training
        self.warm_start = warm_start
        self.random_state = random_state
        self.device = device

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y=None, *, X_val=None):
        """Learn from texts.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            Also a tuple, array or Series of them.
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
            If a parameter is not valid, or X has no texts, or others than the tokenizer
            needs.
        """
        import torch  # takes a second to load

        from ._language_network import LanguageNetwork
        from ._language_reading import log_proba_of, window_loss

        settings = self._check_parameters()
        vocabulary = self._learn_vocabulary(settings, X)
        texts = vocabulary.encode_all("X", X)
        # Before anything is computed with the last ones.
        self._memo, self.vocabulary_ = {}, vocabulary.state()
        whole = TokenStream.of(texts)
        if X_val is None:
            training, held_out = self._hold_out(settings, texts, whole)
        else:
            training, held_out = whole, TokenStream.of(vocabulary.encode_all("X_val", X_val))
        self.baseline_, self.baseline_weight_, self.transformer_weight_ = None, 0.0, 1.0
        validation_loss = None
        if held_out is not None:
            judged = TokenWindows(held_out, self.max_length)

            def validation_loss(network):
                return -log_proba_of(network, judged).mean()

        has_baseline = self.baseline is True or (self.baseline and held_out is not None)
        windows = TokenWindows(training, self.max_length)
        # Windows of one length, as of a single long text, need no sorting.
        lengths = torch.from_numpy(windows.lengths) if np.ptp(windows.lengths) else None
        self.n_training_tokens_ = int(training.n_pairs.sum())
        shape = {"n_tokens": len(vocabulary), "max_length": int(self.max_length)}
        with reported(self, settings, len(windows), X=X, y=y, metadata={}) as report:
            self.network_ = fit_network(
                LanguageNetwork, shape | settings.shape(), settings, window_loss(windows),
                len(windows), validate=validation_loss, lengths=lengths, report=report,
                data=[
                    training.ids, training.first, training.n_pairs, self.vocabulary_["learned"]
                ],
                n_tokens=self.max_length,
            )  # fmt: skip
            if has_baseline:
                self._add_baseline(whole, training, held_out)
        return self

    def _learn_vocabulary(self, settings, X):
        kind, texts = check_sequences("X", X)
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

    def _add_baseline(self, whole, training, held_out):
        """Count all texts, with the weight that counts of some have for what is held out."""
        weight = 0.5
        if held_out is not None:
            counted = self._counts(training).of_pairs(held_out)
            weight = choose_counts_weight(self._network_log_proba(held_out), counted)
        self.baseline_ = whole.state()
        self.baseline_weight_, self.transformer_weight_ = weight, 1 - weight

    def _hold_out(self, settings, texts, whole):
        """Streams to learn from and held out, which is None if nothing is.

        Of few texts stretches are held out, so that no text, and no end of one, is lost.
        """
        if len(texts) >= _MANY_TEXTS:
            rows = settings.split(len(texts))
            parts = [[texts[i] for i in part] for part in rows]
            return [TokenStream.of(part) if part else None for part in parts]
        share = share_held_out(settings.training, int(whole.n_pairs.sum()))
        if share is None:
            return whole, None
        return whole.hold_out(share, min(self.max_length, int(whole.n_pairs.mean())))

    def _check_parameters(self):
        """Settings of the network; ValueError unless all parameters are valid."""
        check_choice("tokenizer", self.tokenizer, TOKENIZERS)
        check_positive("max_length", self.max_length, integer=True)
        if not is_one_of(self.baseline, True, False, "auto"):
            raise ValueError(
                f"baseline={self.baseline!r} is not valid: pass True, False or 'auto'."
            )
        settings = NetworkSettings.of(
            self, positions="rotary", activation="relu", optimizer="muon", largest_batch=16,
            foreign=("d_position", "patch_length", "instance_norm"),
        )  # fmt: skip
        settings.shape()
        return settings

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.required = False
        return tags
