"""A language model: a transformer that predicts the next token, and writes."""

import numpy as np
from sklearn.callback import with_callbacks

from .._base import keeps_state_on_failure
from .._validation import (
    check_choice,
    check_positive,
)
from ..text import TOKENIZERS, Vocabulary, check_sequences, learn_vocabulary
from ._token_predictor import TokenPredictor
from ._token_windows import TokenStream, TokenWindows

_POSITIONS = ("learned", "rotary", "sinusoidal")


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
    d_feedforward : int, default=None
        Width of the hidden layer of each block; None is four times `d_model`.
    attention_kernel : str, Kernel or callable, default="scaled_dot_product"
        How tokens are compared; see :mod:`sklearn_attention.kernels`.
    positions : {"rotary", "learned", "sinusoidal"}, default="rotary"
        How tokens know where they stand.
    norm : {"pre", "post", "lecture"}, default="pre"
        Where layer normalisation stands; see :class:`~sklearn_attention.nn.EncoderBlock`.
    activation : {"relu", "gelu"}, default="relu"
        Between the two layers of the feed-forward networks.
    dropout : float, default=0.0
        Probability with which parts of the network are left out in training.
    validation_fraction : float, default=0.1
        Share of the tokens, the last ones, that are held out. The weights kept are those for
        which their likelihood was best. None learns from all tokens.
    optimizer : {"adamw", "adam", "lbfgs"}, default="adamw"
        As for :class:`~sklearn_attention.training.Plan`, like all that follow.
    learning_rate : float, default=3e-3
        The highest.
    schedule : {"one_cycle", "cosine", "constant"}, default="one_cycle"
        How it moves.
    weight_decay : float, default=0.1
        Of matrices.
    batch_size : int or (int, int), default=16
        Windows in a step; a pair grows over the training.
    max_epochs : int, default=None
        How often every window is seen.
    max_steps : int, default=2000
        Gradient steps. Whichever of the two ends first does.
    patience : int, default=None
        Stop after so many epochs without a better likelihood of what is held out.
    autocast : bool, default=False
        Whether to train in bfloat16 where torch considers it safe.
    warm_start : bool, default=False
        Whether `fit` goes on from the last one: with its vocabulary, and with its weights if
        the network has the same shape.
    checkpoint : str or path-like, default=None
        File from which a training that was interrupted goes on, to the same weights.
    random_state : int, RandomState instance or None, default=0
        Draws weights, and the order of windows.
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
    network_ : dict of str to ndarray
        Weights of the transformer.
    shape_ : dict
        Arguments that the network is built with.
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
    >>> model = TransformerLanguageModel(
    ...     d_model=32, n_layers=2, validation_fraction=None, max_steps=80
    ... )
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
        d_feedforward=None,
        attention_kernel="scaled_dot_product",
        positions="rotary",
        norm="pre",
        activation="relu",
        dropout=0.0,
        validation_fraction=0.1,
        optimizer="adamw",
        learning_rate=3e-3,
        schedule="one_cycle",
        weight_decay=0.1,
        batch_size=16,
        max_epochs=None,
        max_steps=2000,
        patience=None,
        autocast=False,
        warm_start=False,
        checkpoint=None,
        random_state=0,
        device="auto",
    ):
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.max_length = max_length
        self.d_model = d_model
        self.n_heads = n_heads
        self.n_layers = n_layers
        self.d_feedforward = d_feedforward
        self.attention_kernel = attention_kernel
        self.positions = positions
        self.norm = norm
        self.activation = activation
        self.dropout = dropout
        self.validation_fraction = validation_fraction
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.max_steps = max_steps
        self.patience = patience
        self.autocast = autocast
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.device = device

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y=None):
        """Learn from texts.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            Also a tuple, array or Series of them.
        y : None
            Ignored.

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

        from ._language_reading import mean_log_likelihood, window_loss

        self._check_parameters()
        vocabulary = self._learn_vocabulary(X)
        texts = vocabulary.encode_all("X", X)
        # Before anything is computed with the last ones.
        self._memo, self.vocabulary_ = {}, vocabulary.state()
        training = stream = TokenStream.of(texts)
        validation_loss = None
        if self.validation_fraction:
            training, held_out = stream.split(self.validation_fraction)
            judged = TokenWindows(held_out, self.max_length)

            def validation_loss(network):
                return -mean_log_likelihood(network, judged)

        windows = TokenWindows(training, self.max_length)
        # Windows of one length, as of a single long text, need no sorting.
        lengths = torch.from_numpy(windows.lengths) if np.ptp(windows.lengths) else None
        task_data = {"X": X, "y": y, "metadata": {}}
        self.n_training_tokens_ = int(training.n_pairs.sum())
        self._fit_network(
            self._network_shape(len(vocabulary)), window_loss(windows), len(windows),
            task_data=task_data, validation_loss=validation_loss,
            data=[stream.ids, training.n_pairs, self.vocabulary_["learned"]], lengths=lengths,
            n_tokens=self.max_length,
        )  # fmt: skip
        return self

    @staticmethod
    def _network_kind():
        from ._language_network import LanguageNetwork

        return LanguageNetwork

    def _learn_vocabulary(self, X):
        _, texts = check_sequences("X", X)
        before = getattr(self, "vocabulary_", None)
        if self.warm_start and before is not None and before["tokenizer"] == self.tokenizer:
            return Vocabulary.from_state(before)
        return learn_vocabulary(self.tokenizer, texts, max_tokens=self.max_tokens)

    def _network_shape(self, n_tokens):
        return {
            "n_tokens": n_tokens,
            "max_length": int(self.max_length),
            **self._transformer_shape(),
        }

    def _check_parameters(self):
        check_choice("tokenizer", self.tokenizer, TOKENIZERS)
        check_choice("positions", self.positions, _POSITIONS)
        check_positive("max_length", self.max_length, integer=True)
        self._check_transformer()
        self._check_validation("something to validate with")
        self._plan()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.required = False
        return tags
