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

from .._lazy import lazy_names

_LAZY = {
    "Decoder": "_stack",
    "DecoderBlock": "_blocks",
    "Dropout": "_dropout",
    "Encoder": "_stack",
    "EncoderBlock": "_blocks",
    "InstanceNorm": "_instance_norm",
    "KeyValueCache": "_cache",
    "LearnedPositions": "_positions",
    "MultiHeadAttention": "_multi_head",
    "Patches": "_patches",
    "PointHead": "_heads",
    "QuantileHead": "_heads",
    "RotaryPositions": "_positions",
    "SinusoidalPositions": "_positions",
    "TokenDecoder": "_token_encoder",
    "TokenEncoder": "_token_encoder",
    "attention": "_attention",
    "draw_from": "_random",
    "generator_for": "_random",
    "initialize": "_initialize",
    "make_positions": "_positions",
    "pinball_loss": "_heads",
    "sinusoidal_encoding": "_positions",
}

__all__ = [*_LAZY]

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
