r"""Attention: how the weighted average of remembered values is computed.

.. math:: \text{Attention}(q, \{(k_i, v_i)\}) =
          \frac{\sum_i K(q, k_i)\, v_i}{\sum_j K(q, k_j)}

:func:`attend` computes it, exactly and in bounded memory; :func:`attention_weights` shows
the weights. :func:`partial_attend`, :func:`merge` and :func:`finish` are the same average
over keys that come in chunks.
"""

import importlib

from ._part import EMPTY_POLICIES, Part, finish, merge

# These compute with torch, which takes a second to load: not before they are asked for.
_LAZY = {
    "ALGORITHMS": "_attend",
    "attend": "_attend",
    "attention_weights": "_weights",
    "partial_attend": "_attend",
}

__all__ = [
    "EMPTY_POLICIES",
    "Part",
    "attend",
    "attention_weights",
    "finish",
    "merge",
    "partial_attend",
]


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
