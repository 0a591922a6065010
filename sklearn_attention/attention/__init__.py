r"""Attention: how the weighted average of remembered values is computed.

.. math:: \text{Attention}(q, \{(k_i, v_i)\}) =
          \frac{\sum_i K(q, k_i)\, v_i}{\sum_j K(q, k_j)}

:func:`attend` computes it, exactly and in bounded memory; :func:`attention_weights` shows
the weights. :func:`partial_attend`, :func:`merge` and :func:`finish` are the same average
over keys that come in chunks.
"""

import lazy_loader

from ._algorithms._line import Line, serves  # noqa: F401 (for searches of bandwidths)
from ._pair_sums import PairSums  # noqa: F401 (for criteria of densities)
from ._partial import EMPTY_POLICIES, Part, finish, merge  # noqa: F401

# The rest computes with torch, which takes a second to load: not before it is asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
