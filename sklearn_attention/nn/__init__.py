"""Torch modules, independent of scikit-learn: attention, transformers and their parts.

* The weighted average on any kernel: :func:`attention`, :class:`MultiHeadAttention`.
* Transformers: :class:`EncoderBlock`, :class:`DecoderBlock` and stacks of them,
  :class:`Encoder` and :class:`Decoder`; with positions :class:`TokenEncoder` and
  :class:`TokenDecoder`. A :class:`KeyValueCache` stores the keys and values of a sequence that
  grows, so that they are computed once.
* Positions of tokens: :class:`SinusoidalPositions`, :class:`LearnedPositions`,
  :class:`RotaryPositions`.
* Series to tokens: :class:`Patches`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
