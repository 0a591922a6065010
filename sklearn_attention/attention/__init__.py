r"""Attention: how the weighted average of remembered values is computed.

.. math:: \text{Attention}(q, \{(k_i, v_i)\}) =
          \frac{\sum_i K(q, k_i)\, v_i}{\sum_j K(q, k_j)}

:func:`attend` computes it, exactly and in bounded memory; :func:`attention_weights` shows
the weights. :func:`attention_sums` are what the average over some of the keys is made of.
"""

import lazy_loader

from ._algorithms._line import Line, serves  # noqa: F401 (for searches of bandwidths)
from ._pair_sums import PairSums  # noqa: F401 (for criteria of densities)
from ._sums import EMPTY_POLICIES, Sums  # noqa: F401

# The rest computes with torch, which takes a second to load: not before it is asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
