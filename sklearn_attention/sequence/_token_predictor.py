"""Predictions, scores and texts of a model of the next token."""

import math
import numbers

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import AttentionEstimator
from .._validation import check_size
from ..text import Vocabulary
from ..text._check import check_sequences
from ..text._special import START, UNKNOWN
from ..text._vocabulary import BETWEEN
from ..training._fit_network import FittedNetwork, NetworkParameters
from ._blend import Blend
from ._sampling import check_sampling, draw, sampling_proba
from ._token_counts import TokenCounts
from ._token_windows import TokenStream, TokenWindows, context_stride

# Tokens before the next one that are counted together, at most.
_LONGEST_CONTEXT = 7


class TokenPredictor(NetworkParameters, AttentionEstimator):
    """Base class of models with a :class:`LanguageNetwork`: predictions, scores and texts.

    ``fit`` sets ``vocabulary_``, ``network_``, ``baseline_`` and ``baseline_weight_``.
    """

    _held = (FittedNetwork,)

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
            Natural logarithm, over all tokens of all texts, END included. Tokens that are not
            in the vocabulary count as the unknown one.
        """
        stream = TokenStream.of(self._vocabulary.encode_all("X", X))
        log_proba = self._network_log_proba(stream)
        blend = self._blend
        return float((log_proba if blend is None else blend.of_pairs(log_proba, stream)).mean())

    def perplexity(self, X):
        """Perplexity: number of equally likely tokens with the same log-likelihood.

        Parameters
        ----------
        X : list of str, or list of sequences of int

        Returns
        -------
        perplexity : float
            The exponential of minus the :meth:`score`.
        """
        return math.exp(-self.score(X))

    def transform(self, X):
        """Vectors of texts, as features of other estimators.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            As for :meth:`predict_log_proba`.

        Returns
        -------
        X_new : ndarray of shape (n_texts, d_model)
            Tokens after the last layer, START among them, averaged over the context from which
            the next one would be predicted.
        """
        from ._language_reading import text_vectors

        prefixes = self._prefixes(X)
        return text_vectors(self.module_, prefixes)

    def predict_log_proba(self, X):
        """Logarithms of the probabilities of the next token.

        Parameters
        ----------
        X : list of str, or list of sequences of int
            Texts to continue; for an empty one, the first token of a text is predicted.

        Returns
        -------
        log_proba : ndarray of shape (n_texts, n_tokens)
            A column for each of `tokens_`. Padding and START never come next.
        """
        from ._language_reading import next_log_proba

        prefixes = self._prefixes(X)
        log_proba, blend = next_log_proba(self.module_, prefixes), self._blend
        return log_proba if blend is None else blend.of_all_tokens(log_proba, prefixes)

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
        stop=None,
        random_state=None,
    ):
        """Generate text that continues a prompt.

        Parameters
        ----------
        prompt : str, sequence of int, or list of either, default=None
            Beginning of the text, or of several. None, like an empty one, is a text from its
            start.
        max_new_tokens : int, default=100
            Largest number of new tokens; a text may end before.
        temperature : float, default=1.0
            Below 1 likely tokens become likelier; at 0 the likeliest is always taken.
        top_k : int, default=None
            Number of likeliest tokens to draw from; None draws from all.
        top_p : float, default=None
            Share of the probability to draw from: the fewest likeliest tokens, of those that
            `top_k` leaves, whose probabilities sum to this. None draws from all.
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
        vocabulary = self._vocabulary
        check_sampling(temperature, top_k, top_p)
        stop = _check_stop(stop, vocabulary.kind)
        rng, blend = check_random_state(random_state), self._blend
        if prompt is None:
            prompt = "" if vocabulary.kind == "text" else []
        single = _is_single(prompt, vocabulary.kind)
        prompts = [prompt] if single else prompt
        encoded = vocabulary.encode_all("prompt", prompts, empty=True)
        max_new_tokens = check_size("max_new_tokens", max_new_tokens, len(encoded))

        def choose(log_proba, ids):
            if blend is not None:
                log_proba = blend.of_all_tokens(log_proba, ids)
            log_proba[:, UNKNOWN] = -np.inf
            proba = sampling_proba(log_proba, temperature=temperature, top_k=top_k, top_p=top_p)
            return draw(proba, rng.random_sample(len(proba)))

        def stops(ids):
            return _cut_before(vocabulary.decode(ids), stop) is not None

        new = self._write(encoded, max_new_tokens, choose, stops if stop else None)
        _, prompts = check_sequences("prompt", prompts, empty=True)
        texts = [_joined(vocabulary, *pair, stop) for pair in zip(prompts, new, strict=True)]
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
            Weights of the tokens (last axis) in the average of each token; rows sum to 1. The
            first token is START, those of the text follow.

        Raises
        ------
        ValueError
            If the text is too long, or no text.
        """
        from ._language_reading import attention_weights

        vocabulary = self._vocabulary
        if not _is_single(X, vocabulary.kind):
            raise ValueError(f"X={X!r} is not valid: pass one text, or one sequence of ids.")
        (ids,) = vocabulary.encode_all("X", [X], empty=True)
        longest = self.network_.shape["max_length"]
        if len(ids) >= longest:
            raise ValueError(
                f"X has {len(ids)} tokens, but with START a context holds {longest}: pass at "
                f"most {longest - 1} tokens."
            )
        return attention_weights(self.module_, np.append(START, ids))

    @property
    def tokens_(self):
        """All tokens, in the order of the columns of :meth:`predict_proba`."""
        return self._vocabulary.tokens

    @property
    def _vocabulary(self):
        check_is_fitted(self, "vocabulary_")
        if "vocabulary" not in self._memo:
            self._memo["vocabulary"] = Vocabulary.from_state(self.vocabulary_)
        return self._memo["vocabulary"]

    @property
    def _blend(self):
        """Averages with what is counted, None where that is nothing; kept once it is built."""
        if self.baseline_ is None:
            return None
        if "blend" not in self._memo:
            counts = self._counts(TokenStream.from_state(self.baseline_))
            self._memo["blend"] = Blend(counts, self.baseline_weight_)
        return self._memo["blend"]

    def _counts(self, stream):
        longest = min(_LONGEST_CONTEXT, self.network_.shape["max_length"])
        return TokenCounts(stream, self.network_.shape["n_tokens"], longest)

    def _network_log_proba(self, stream):
        """Log-probabilities that the network has of all tokens of a stream."""
        from ._language_reading import log_proba_of

        max_length = self.network_.shape["max_length"]
        windows = TokenWindows(stream, max_length, context_stride(max_length))
        return log_proba_of(self.module_, windows)

    def _prefixes(self, X):
        """Ids of texts that something follows, from START on."""
        return [
            np.append(START, ids) for ids in self._vocabulary.encode_all("X", X, empty=True)
        ]

    def _write(self, prompts, max_new_tokens, choose, stops):
        """Continuations of prompts; those of one length are continued together."""
        from ._language_reading import write

        lengths = np.array([len(prompt) for prompt in prompts])
        written = [None] * len(prompts)
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            batch = np.array([np.append(START, prompts[row]) for row in rows])
            found = write(self.module_, batch, max_new_tokens, choose, stops)
            for row, new in zip(rows, found, strict=True):
                written[row] = new
        return written


def _check_stop(stop, kind):
    """Texts before which writing ends, as a list."""
    texts = [] if stop is None else [stop] if isinstance(stop, str) else list(stop)
    if not all(isinstance(text, str) and text for text in texts):
        raise ValueError(
            f"stop={stop!r} is not valid: pass a text that is not empty, or several."
        )
    if texts and kind == "ids":
        raise ValueError(f"stop={stop!r} is for texts, but tokens are ids: leave it out.")
    return texts


def _cut_before(text, stop):
    """The beginning of a text before the first of some others; None if it has none of them."""
    places = [text.find(one) for one in stop if one in text]
    return text[: min(places)] if places else None


def _joined(vocabulary, prompt, new, stop):
    """A prompt and what was written after it."""
    written = vocabulary.decode(new)
    if stop:
        cut = _cut_before(written, stop)
        written = written if cut is None else cut
    if vocabulary.kind == "ids":
        return [*prompt.tolist(), *written]
    apart = prompt and written and not prompt[-1].isspace()
    return prompt + (BETWEEN.get(vocabulary.tokenizer, "") if apart else "") + written


def _is_single(prompt, kind):
    """True for one text, or one sequence of ids; False for a list of them."""
    if isinstance(prompt, str):
        return True
    if not hasattr(prompt, "__len__"):
        return False
    # Without ids it is a sequence of none, unless these are texts.
    first = next(iter(prompt), 0 if kind == "ids" else None)
    return isinstance(first, numbers.Integral)
