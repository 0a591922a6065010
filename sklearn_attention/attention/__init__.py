r"""Attention: how the weighted average of remembered values is computed.

.. math:: \text{Attention}(q, \{(k_i, v_i)\}) =
          \frac{\sum_i K(q, k_i)\, v_i}{\sum_j K(q, k_j)}

:func:`attend` computes it, exactly and in bounded memory; :func:`attention_weights` shows
the weights. :func:`partial_attend`, :func:`merge` and :func:`finish` are the same average
over keys that come in chunks.
"""

from .._lazy import lazy_names
from ._algorithms._line import Line, serves  # noqa: F401 (for searches of bandwidths)
from ._partial import EMPTY_POLICIES, Part, finish, merge

# These compute with torch, which takes a second to load: not before they are asked for.
_LAZY = {
    "ALGORITHMS": "_kernel_sums",
    "LeaveOneOut": "_leave_one_out",
    "LeaveOneOutGradient": "_leave_one_out_gradient",
    "LocalFit": "_local_polynomial",
    "LocalRows": "_local_polynomial",
    "Predictions": "_own_key",
    "Scores": "_leave_one_out",
    "attend": "_average",
    "attend_gradient": "_derivatives",
    "attend_local": "_local_polynomial",
    "attention_weights": "_weights",
    "has_linear_time": "_linear_time",
    "local_rows": "_local_polynomial",
    "map_blocks": "_threads",
    "partial_attend": "_average",
    "resolve_device": "_problem",
    "threads_for": "_threads",
    "torch_threads": "_threads",
}

__all__ = [
    "EMPTY_POLICIES",
    "Part",
    "finish",
    "merge",
    *_LAZY,
]

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
