"""Torch modules that know nothing of scikit-learn: attention, transformers and their parts.

* The weighted average on any kernel: :func:`attention`, :class:`MultiHeadAttention`.
* Transformers: :class:`EncoderBlock`, :class:`DecoderBlock` and stacks of them,
  :class:`Encoder` and :class:`Decoder`; with positions :class:`TokenEncoder` and
  :class:`TokenDecoder`; :func:`initialize` draws their parameters, and a
  :class:`KeyValueCache` saves computing anew what a growing sequence has in common.
* Positions of tokens: :class:`SinusoidalPositions`, :class:`LearnedPositions`,
  :class:`RotaryPositions`; :func:`make_positions` takes their names.
* Series to tokens and back: :class:`Patches`, :class:`InstanceNorm`, :class:`PointHead`,
  :class:`QuantileHead`, :func:`pinball_loss`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
