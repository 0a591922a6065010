r"""Attention: the weighted average of stored values, and how it is computed.

.. math:: \text{Attention}(q, \{(k_i, v_i)\}) =
          \frac{\sum_i K(q, k_i)\, v_i}{\sum_j K(q, k_j)}

:func:`attend` computes it, exactly and in bounded memory; :func:`attention_weights` shows
the weights. :func:`attention_sums` returns sums over some of the keys, which add up.
"""

import lazy_loader

# A module is loaded when one of its names is used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
