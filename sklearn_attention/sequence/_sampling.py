"""Sampling of the next token (temperature, top-k, top-p), and the ends of generated texts."""

import numbers

import numpy as np

from .._validation import check_in_interval, check_positive
from ..text._vocabulary import BETWEEN


def check_sampling(temperature, top_k, top_p):
    """Raise ValueError unless parameters of :func:`sampling_proba` are valid."""
    check_in_interval("temperature", temperature, 0, np.inf, closed_right=False)
    if top_k is not None:
        check_positive("top_k", top_k, integer=True)
    if top_p is not None and check_in_interval("top_p", top_p, 0, 1) == 0:
        raise ValueError(f"top_p={top_p!r} is not valid: pass a number in (0, 1].")


def sampling_proba(log_proba, *, temperature=1.0, top_k=None, top_p=None):
    """Return the probabilities (n, n_tokens) to draw from.

    Parameters
    ----------
    log_proba : ndarray of shape (n, n_tokens)
        Log-probabilities of the next token.
    temperature : float, default=1.0
        Probabilities are raised to the power 1 / temperature. At 0 the likeliest token has
        probability 1, or the first one if several are equally likely.
    top_k : int, default=None
        Number of likeliest tokens that are not excluded.
    top_p : float, default=None
        Least total probability of the tokens that are not excluded. These are as few as
        possible: the likeliest of those that `top_k` leaves, until their probabilities sum to
        at least `top_p` (Holtzman et al. 2020).
    """
    log_proba = np.asarray(log_proba, dtype=np.float64)
    order = np.argsort(-log_proba, axis=1, kind="stable")
    ranked = np.take_along_axis(log_proba, order, axis=1)
    # The largest logarithm becomes 0, so that not all exponentials are rounded to 0.
    ranked = ranked - ranked[:, :1]
    if temperature == 0:
        proba = np.zeros_like(ranked)
        proba[:, 0] = 1.0
    else:
        proba = np.exp(ranked / temperature)
    if top_k is not None:
        proba[:, top_k:] = 0.0
    proba /= proba.sum(axis=1, keepdims=True)
    if top_p is not None:
        # A token is excluded if the likelier ones already add up to `top_p`.
        proba[np.cumsum(proba, axis=1) - proba >= top_p] = 0.0
        proba /= proba.sum(axis=1, keepdims=True)
    unranked = np.empty_like(proba)
    np.put_along_axis(unranked, order, proba, axis=1)
    return unranked


def draw(proba, uniform):
    """Draw a token (n,) from each row of probabilities, by uniform numbers (n,) in [0, 1)."""
    cumulative = np.cumsum(proba, axis=1)
    # The division makes the last number exactly 1, in spite of rounding.
    return np.argmax(cumulative / cumulative[:, -1:] > uniform[:, None], axis=1)


def check_stop(stop, kind):
    """Return, as a list, the texts before which generation ends; raise if `stop` is not valid.

    `kind` is "text" or "ids".
    """
    texts = [] if stop is None else [stop] if isinstance(stop, str) else list(stop)
    if not all(isinstance(text, str) and text for text in texts):
        raise ValueError(
            f"stop={stop!r} is not valid: pass a text that is not empty, or several."
        )
    if texts and kind == "ids":
        raise ValueError(f"stop={stop!r} is for texts, but tokens are ids: leave it out.")
    return texts


def end_before(text, stop):
    """Return where in `text` the first of the texts in `stop` begins; else its length."""
    starts = [text.find(stop_text) for stop_text in stop]
    return min((start for start in starts if start >= 0), default=len(text))


def join_prompt(vocabulary, prompt, written, stop):
    """Join a prompt and its continuation, which is cut before the first text of `stop`."""
    if vocabulary.kind == "ids":
        return [*prompt.tolist(), *written]
    written = written[: end_before(written, stop)]
    separator = ""
    if prompt and written and not prompt[-1].isspace():
        separator = BETWEEN.get(vocabulary.tokenizer, "")
    return prompt + separator + written


def is_single(prompt, kind):
    """Return whether a prompt is one text or one sequence of ids, and not a list of several."""
    if isinstance(prompt, str):
        return True
    if not hasattr(prompt, "__len__"):
        return False
    # An empty list is a sequence of ids, or a list of no texts.
    first = next(iter(prompt), 0 if kind == "ids" else None)
    return isinstance(first, numbers.Integral)
