"""Drawing the next token, and where what is written begins and ends."""

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
    """Probabilities (n, n_tokens) to draw from, of logarithms of probabilities."""
    # They are raised to the power of 1 over the temperature; at 0 the likeliest is certain, the
    # first of several. `top_k` keeps so many of the likeliest, `top_p` the fewest of those
    # whose probabilities sum to at least this (Holtzman et al. 2020).
    log_proba = np.asarray(log_proba, dtype=np.float64)
    order = np.argsort(-log_proba, axis=1, kind="stable")
    ranked = np.take_along_axis(log_proba, order, axis=1)
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
        # A token may be drawn if those before it do not add up to enough.
        proba[np.cumsum(proba, axis=1) - proba >= top_p] = 0.0
        proba /= proba.sum(axis=1, keepdims=True)
    found = np.empty_like(proba)
    np.put_along_axis(found, order, proba, axis=1)
    return found


def draw(proba, uniform):
    """A token of each row of probabilities, by uniform numbers (n,) from [0, 1)."""
    total = np.cumsum(proba, axis=1)
    # The last is 1 exactly, whatever rounding did.
    return np.argmax(total / total[:, -1:] > uniform[:, None], axis=1)


def check_stop(stop, kind):
    """Texts before which writing ends, as a list."""
    texts = [] if stop is None else [stop] if isinstance(stop, str) else list(stop)
    if not all(isinstance(text, str) and text for text in texts):
        raise ValueError(
            f"stop={stop!r} is not valid: pass a text that is not empty, or several."
        )
    if texts and kind == "ids":
        raise ValueError(f"stop={stop!r} is for texts, but tokens are ids: leave it out.")
    return texts


def end_before(text, stop):
    """Where the first of some texts begins in another; its length if it has none of them."""
    return min((text.find(one) for one in stop if one in text), default=len(text))


def joined(vocabulary, prompt, written, stop):
    """A prompt and what was written after it, up to a text of `stop`."""
    if vocabulary.kind == "ids":
        return [*prompt.tolist(), *written]
    written = written[: end_before(written, stop)]
    apart = prompt and written and not prompt[-1].isspace()
    return prompt + (BETWEEN.get(vocabulary.tokenizer, "") if apart else "") + written


def is_single(prompt, kind):
    """True for one text, or one sequence of ids; False for a list of them."""
    if isinstance(prompt, str):
        return True
    if not hasattr(prompt, "__len__"):
        return False
    # Without ids it is a sequence of none, unless these are texts.
    first = next(iter(prompt), 0 if kind == "ids" else None)
    return isinstance(first, numbers.Integral)
