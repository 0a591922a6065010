"""A language model: a transformer that predicts the next token, and writes."""

import numpy as np
from sklearn.callback import with_callbacks

from .._base import keeps_state_on_failure
from .._validation import check_choice, check_positive
from ..text import TOKENIZERS, Vocabulary, check_sequences, learn_vocabulary
from ..training._fit_network import fit_network
from ..training._report import reported
from ..training._settings import NetworkDefaults
from ._token_predictor import TokenPredictor
from ._token_windows import TokenStream, TokenWindows

NETWORK = NetworkDefaults(
    positions="rotary", activation="relu", optimizer="muon", largest_batch=16,
    foreign=("d_position", "patch_length", "instance_norm"),
)  # fmt: skip


class TransformerLanguageModel(TokenPredictor):
    r"""A transformer that predicts the next token of a text, and so can write.

    .. math:: p(w_1, \dots, w_T) = \prod_t p(w_t \mid w_1, \dots, w_{t-1})

    Each factor is the softmax of what a causal encoder makes of the tokens before. A text is
    START, its tokens, and END, so that the model also learns how texts begin, and when to
    stop.

    Parameters
    ----------
    tokenizer : {"characters", "words", "byte_pairs", "ids"}, default="characters"
        What a token is; see :func:`~sklearn_attention.text.learn_vocabulary`. With "ids",
        texts are sequences of integers.
    max_tokens : int, default=None
        Largest vocabulary, with its four special tokens; rare tokens are unknown. None keeps
        all, but 8000 byte pairs.
    max_length : int, default=64
        Most tokens that a prediction looks back on.
    d_model : int, default=128
        Width of the tokens.
    n_heads : int, default=4
        Heads of the attention, which divide the width.
    n_layers : int, default=4
        Blocks of the encoder.
    dropout : float, default=0.0
        Probability with which parts of the network are left out in training.
    learning_rate : float, default=3e-3
        The highest.
    batch_size : int, (int, int) or "auto", default="auto"
        Windows in a step; a pair grows over the training. "auto" is a twelfth of them, but 8
        at least and 16 at most.
    max_epochs : int or "auto", default="auto"
        How often every window is seen. "auto" is enough for 1000 steps, but at most 64.
    architecture : Architecture, default=None
        What the network is made of besides; None is
        :class:`Architecture() <sklearn_attention.training.Architecture>`.
    training : Training, default=None
        How it is trained besides; None is
        :class:`Training() <sklearn_attention.training.Training>`. Texts are held out at random;
        of a single one the last tokens.
    warm_start : bool, default=False
        Whether `fit` goes on from the last one: from its weights, with its vocabulary.
    random_state : int, RandomState instance or None, default=0
        Draws weights, texts that are held out, and the order of windows.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
    vocabulary_ : dict
        What :meth:`Vocabulary.from_state <sklearn_attention.text.Vocabulary.from_state>` makes
        the vocabulary of.
    tokens_ : list of str
        All tokens, in the order of the columns of :meth:`predict_proba`.
    n_training_tokens_ : int
        How many tokens were predicted in an epoch.
    network_ : FittedNetwork
        The transformer: what it is built with, and its weights.
    training_history_ : dict
        Of every epoch the ``loss``, ``learning_rate`` and ``seconds``, and the
        ``validation_loss``: minus the mean log-likelihood of a token held out, in windows that
        do not overlap. ``n_steps``, ``best_epoch``, and why the training ``stopped``.

    See Also
    --------
    TransformerSeq2Seq : Writes a sequence that answers another.
    TransformerForecaster : Continues series of numbers.

    Notes
    -----
    This is the decoder-only transformer of GPT [1]_ [2]_, by default with rotary positions
    [3]_, on any kernel. One table has the vectors of the tokens and reads off the next.

    In an epoch every text is cut into windows of `max_length` tokens, each moved by up to half
    of that at random. Windows do not reach from one text into another; shorter texts are
    padded, which no prediction sees.

    Text longer than `max_length` is predicted from a context that moves on by half of that
    whenever it is full, so that the keys and values of its tokens can be remembered: writing a
    token costs the same wherever it stands. :meth:`sample`, :meth:`predict_proba` and
    :meth:`score` all see the same contexts.

    KeyboardInterrupt ends the training, with a warning, and leaves a model with the best
    weights, or those at that time.

    References
    ----------
    .. [1] Vaswani, A. et al. (2017). Attention is all you need. NeurIPS 30.
    .. [2] Radford, A. et al. (2019). Language models are unsupervised multitask learners.
       OpenAI.
    .. [3] Su, J. et al. (2021). RoFormer: enhanced transformer with rotary position embedding.
       arXiv:2104.09864.

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
        from ._language_reading import mean_log_likelihood, window_loss

        settings = self._check_parameters()
        vocabulary = self._learn_vocabulary(settings, X)
        texts = vocabulary.encode_all("X", X)
        # Before anything is computed with the last ones.
        self._memo, self.vocabulary_ = {}, vocabulary.state()
        if X_val is None:
            training, held_out = self._hold_out(settings, texts)
        else:
            judged = vocabulary.encode_all("X_val", X_val)
            training, held_out = TokenStream.of(texts), TokenStream.of(judged)
        validation_loss = None
        if held_out is not None:
            held_out = TokenWindows(held_out, self.max_length)

            def validation_loss(network):
                return -mean_log_likelihood(network, held_out)

        windows = TokenWindows(training, self.max_length)
        # Windows of one length, as of a single long text, need no sorting.
        lengths = torch.from_numpy(windows.lengths) if np.ptp(windows.lengths) else None
        self.n_training_tokens_ = int(training.n_pairs.sum())
        shape = {"n_tokens": len(vocabulary), "max_length": int(self.max_length)}
        with reported(self, settings, len(windows), X=X, y=y, metadata={}) as report:
            self.network_ = fit_network(
                LanguageNetwork, shape | settings.shape(), settings, window_loss(windows),
                len(windows), validate=validation_loss, lengths=lengths, report=report,
                data=[training.ids, training.n_pairs, self.vocabulary_["learned"]],
                n_tokens=self.max_length,
            )  # fmt: skip
        return self

    def _learn_vocabulary(self, settings, X):
        _, texts = check_sequences("X", X)
        if settings.start is not None:
            before = self.vocabulary_["tokenizer"]
            if before != self.tokenizer:
                raise ValueError(
                    f"warm_start=True goes on with the vocabulary of the last fit, whose "
                    f"tokenizer was {before!r}, not {self.tokenizer!r}: pass warm_start=False."
                )
            return Vocabulary.from_state(self.vocabulary_)
        return learn_vocabulary(self.tokenizer, texts, max_tokens=self.max_tokens)

    def _hold_out(self, settings, texts):
        """Texts to learn from and those held out, None if none are."""
        if len(texts) > 1:
            rows = settings.split(len(texts))
            parts = [[texts[i] for i in part] for part in rows]
            return [TokenStream.of(part) if part else None for part in parts]
        stream = TokenStream.of(texts)
        share = settings.training.share_held_out(max(2, len(stream.ids) // self.max_length))
        return (stream, None) if share is None else stream.split(share)

    def _check_parameters(self):
        """Settings of the network; ValueError unless all parameters are valid."""
        check_choice("tokenizer", self.tokenizer, TOKENIZERS)
        check_positive("max_length", self.max_length, integer=True)
        settings = NETWORK.settings(self)
        settings.shape()
        return settings

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.required = False
        return tags
