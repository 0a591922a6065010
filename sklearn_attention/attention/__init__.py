r"""Attention: how the weighted average of remembered values is computed.

.. math:: \text{Attention}(q, \{(k_i, v_i)\}) =
          \frac{\sum_i K(q, k_i)\, v_i}{\sum_j K(q, k_j)}

:func:`attend` computes it, exactly and in bounded memory; :func:`attention_weights` shows
the weights. :func:`attention_sums` are what the average over some of the keys is made of.
"""

import lazy_loader

# Most of it computes with torch, which takes a second to load: not before it is asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
