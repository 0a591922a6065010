"""A language model: a transformer that predicts the next token, and writes."""

import math
import numbers

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._state import keeps_state_on_failure
from .._validation import check_choice, check_in_interval, check_positive
from ..kernels import as_kernel
from ..text import (
    START,
    TOKENIZERS,
    UNKNOWN,
    Vocabulary,
    check_sequences,
    learn_vocabulary,
)
from ..training import NetworkEstimator, batch_sizes
from ._sampling import check_sampling, draw, sampling_proba
from ._token_windows import TokenStream, TokenWindows, context_stride

_POSITIONS = ("learned", "rotary", "sinusoidal")


class TransformerLanguageModel(NetworkEstimator):
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
    activation : {"gelu", "relu"}, default="gelu"
        Between the two layers of the feed-forward networks.
    dropout : float, default=0.0
        Probability with which parts of the network are left out in training.
    validation_fraction : float, default=0.1
        Share of the tokens, the last ones, that are held out. The weights kept are those for
        which their likelihood was best. 0 learns from all tokens.
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
    ...     d_model=32, n_layers=2, validation_fraction=0, max_steps=150
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
        activation="gelu",
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
        task_data = {"X": X, "y": y, "metadata": {}}
        n_epochs = len(batch_sizes(self._plan(), len(windows)))
        context = self._init_callback_context(max_subtasks=n_epochs)
        context.call_on_fit_task_begin(estimator=self, **task_data)
        self._train_network(
            self._network_shape(len(vocabulary)), window_loss(windows), len(windows),
            context=context, task_data=task_data, validation_loss=validation_loss,
            data=[stream.ids, training.n_pairs, self.vocabulary_["learned"]],
            n_tokens=self.max_length,
        )  # fmt: skip
        self.n_training_tokens_ = int(training.n_pairs.sum())
        context.call_on_fit_task_end(estimator=self, **task_data, reconstruction_attributes={})
        return self

    def score(self, X, y=None):
        """Mean log-likelihood of a token.

        Parameters
        ----------
        X : list of str, or list of sequences of int
        y : None
            Ignored.

        Returns
        -------
        score : float
            Natural logarithm, over all tokens of all texts, END included. What is not in the
            vocabulary counts as the token for unknown ones.
        """
        from ._language_reading import mean_log_likelihood

        texts = self._vocabulary.encode_all("X", X)
        max_length = self.shape_["max_length"]
        windows = TokenWindows(TokenStream.of(texts), max_length, context_stride(max_length))
        return mean_log_likelihood(self._network, windows)

    def perplexity(self, X):
        """Among how many equally likely tokens the model is left to choose.

        Parameters
        ----------
        X : list of str, or list of sequences of int

        Returns
        -------
        perplexity : float
            The exponential of minus the :meth:`score`.
        """
        return math.exp(-self.score(X))

    def predict_log_proba(self, X):
        """Logarithms of the probabilities of the next token.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            What is to be continued; the empty text asks for how texts begin.

        Returns
        -------
        log_proba : ndarray of shape (n_texts, n_tokens)
            A column for each of `tokens_`. Padding and START never come next.
        """
        from ._language_reading import next_log_proba

        prefixes = self._vocabulary.encode_all("X", X, empty=True)
        return next_log_proba(self._network, [np.append(START, ids) for ids in prefixes])

    def predict_proba(self, X):
        """Probabilities of the next token.

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

    def predict(self, X):
        """The most probable next token.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            As for :meth:`predict_log_proba`.

        Returns
        -------
        tokens : ndarray of str of shape (n_texts,)
            As in `tokens_`.
        """
        tokens = np.array(self.tokens_, dtype=object)
        return tokens[self.predict_log_proba(X).argmax(axis=1)]

    def sample(
        self,
        prompt=None,
        max_new_tokens=100,
        *,
        temperature=1.0,
        top_k=None,
        top_p=None,
        random_state=None,
    ):
        """Write, starting from a prompt.

        Parameters
        ----------
        prompt : str, sequence of int, or list of either, default=None
            Beginning of the text, or of several. None, like an empty one, is a text from its
            start.
        max_new_tokens : int, default=100
            How many tokens are written at most; a text may end before.
        temperature : float, default=1.0
            Below 1 likely tokens become likelier; at 0 the likeliest is always taken.
        top_k : int, default=None
            Draw from so many of the likeliest tokens only; None from all.
        top_p : float, default=None
            Draw from the likeliest tokens only whose probabilities together reach this; None
            from all. Of those that `top_k` leaves.
        random_state : int, RandomState instance or None, default=None
            Draws the tokens.

        Returns
        -------
        text : str, list of int, or list of either
            The prompt as it was passed, and what follows. The token for unknown ones is not
            drawn.

        Raises
        ------
        ValueError
            If a parameter is not valid.
        """
        vocabulary = self._vocabulary
        max_new_tokens = check_positive("max_new_tokens", max_new_tokens, integer=True)
        check_sampling(temperature, top_k, top_p)
        rng = check_random_state(random_state)
        if prompt is None:
            prompt = "" if vocabulary.kind == "text" else []
        single = _is_single(prompt)
        prompts = [prompt] if single else prompt
        encoded = vocabulary.encode_all("prompt", prompts, empty=True)

        def choose(log_proba):
            log_proba[:, UNKNOWN] = -np.inf
            proba = sampling_proba(log_proba, temperature=temperature, top_k=top_k, top_p=top_p)
            return draw(proba, rng.random_sample(len(proba)))

        new = self._write(encoded, max_new_tokens, choose)
        _, prompts = check_sequences("prompt", prompts, empty=True)
        texts = [_joined(vocabulary, *pair) for pair in zip(prompts, new, strict=True)]
        return texts[0] if single else texts

    def attention_maps(self, X):
        """Weights of the attention within a text.

        Parameters
        ----------
        X : str, or sequence of int
            One text, of fewer than `max_length` tokens.

        Returns
        -------
        weights : ndarray of shape (n_layers, n_heads, T, T)
            What each token (second axis from the end) averages; rows sum to 1. The first
            token is START, those of the text follow.

        Raises
        ------
        ValueError
            If the text is too long, or no text.
        """
        from ._language_reading import attention_weights

        vocabulary = self._vocabulary
        if not _is_single(X):
            raise ValueError(f"X={X!r} is not valid: pass one text, or one sequence of ids.")
        (ids,) = vocabulary.encode_all("X", [X], empty=True)
        longest = self.shape_["max_length"]
        if len(ids) >= longest:
            raise ValueError(
                f"X has {len(ids)} tokens, but with START a context holds {longest}: pass at "
                f"most {longest - 1} tokens."
            )
        return attention_weights(self._network, np.append(START, ids))

    @property
    def tokens_(self):
        """All tokens, in the order of the columns of :meth:`predict_proba`."""
        return self._vocabulary.tokens

    @staticmethod
    def _network_kind():
        from ._language_network import LanguageNetwork

        return LanguageNetwork

    @property
    def _vocabulary(self):
        check_is_fitted(self, "vocabulary_")
        if "vocabulary" not in self._memo:
            self._memo["vocabulary"] = Vocabulary.from_state(self.vocabulary_)
        return self._memo["vocabulary"]

    def _learn_vocabulary(self, X):
        _, texts = check_sequences("X", X)
        before = getattr(self, "vocabulary_", None)
        if self.warm_start and before is not None and before["tokenizer"] == self.tokenizer:
            return Vocabulary.from_state(before)
        return learn_vocabulary(self.tokenizer, texts, max_tokens=self.max_tokens)

    def _write(self, prompts, max_new_tokens, choose):
        """What follows each prompt; those of one length are continued together."""
        from ._language_reading import write

        lengths = np.array([len(prompt) for prompt in prompts])
        written = [None] * len(prompts)
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            batch = np.array([np.append(START, prompts[row]) for row in rows])
            for row, new in zip(
                rows, write(self._network, batch, max_new_tokens, choose), strict=True
            ):
                written[row] = new
        return written

    def _network_shape(self, n_tokens):
        return {
            "n_tokens": n_tokens,
            "max_length": int(self.max_length),
            "d_model": int(self.d_model),
            "n_heads": int(self.n_heads),
            "n_layers": int(self.n_layers),
            "d_feedforward": int(self.d_feedforward or 4 * self.d_model),
            "kernel": self.attention_kernel,
            "positions": self.positions,
            "norm": self.norm,
            "activation": self.activation,
            "dropout": float(self.dropout),
        }

    def _check_parameters(self):
        check_choice("tokenizer", self.tokenizer, TOKENIZERS)
        check_choice("positions", self.positions, _POSITIONS)
        for name in ("max_length", "d_model", "n_heads", "n_layers"):
            check_positive(name, getattr(self, name), integer=True)
        if self.d_feedforward is not None:
            check_positive("d_feedforward", self.d_feedforward, integer=True)
        if self.d_model % self.n_heads:
            raise ValueError(
                f"n_heads={self.n_heads!r} does not divide d_model={self.d_model!r}: pass a "
                "number that does."
            )
        fraction = self.validation_fraction
        check_in_interval("validation_fraction", fraction, 0, 1, closed_right=False)
        if self.patience is not None and not fraction:
            raise ValueError(
                f"patience={self.patience!r} needs something to validate with: pass a "
                "validation_fraction greater than 0, or patience=None."
            )
        as_kernel(self.attention_kernel)
        self._plan()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.required = False
        return tags


def _joined(vocabulary, prompt, new):
    """A prompt and what was written after it."""
    written = vocabulary.decode(new)
    if vocabulary.kind == "ids":
        return [*prompt.tolist(), *written]
    apart = vocabulary.tokenizer == "words" and prompt and not prompt[-1].isspace()
    return f"{prompt} {written}" if apart and written else prompt + written


def _is_single(prompt):
    """Whether this is one text, or one sequence of ids, and not a list of them."""
    if isinstance(prompt, str):
        return True
    if not hasattr(prompt, "__len__"):
        return False
    first = next(iter(prompt), 0)
    return isinstance(first, numbers.Integral)
