"""Torch modules that know nothing of scikit-learn: transformers, and kernels to be learned.

* The weighted average on any kernel: :func:`attention`, :class:`MultiHeadAttention`.
* Transformers: :class:`EncoderBlock`, :class:`DecoderBlock` and stacks of them,
  :class:`Encoder` and :class:`Decoder`; :func:`initialize` draws their parameters.
* Positions of tokens: :class:`SinusoidalPositions`, :class:`LearnedPositions`,
  :class:`RotaryPositions`.
* Series to tokens and back: :class:`Patches`, :class:`InstanceNorm`, :class:`PointHead`,
  :class:`QuantileHead`, :func:`pinball_loss`.
* Kernels of table rows: :class:`ViewKernel` and how it is read.
"""

import importlib

_LAZY = {
    "Decoder": "_stack",
    "DecoderBlock": "_blocks",
    "Encoder": "_stack",
    "EncoderBlock": "_blocks",
    "InstanceNorm": "_instance_norm",
    "LearnedPositions": "_positions",
    "MultiHeadAttention": "_multi_head",
    "Patches": "_patches",
    "PointHead": "_heads",
    "QuantileHead": "_heads",
    "RotaryPositions": "_positions",
    "SinusoidalPositions": "_positions",
    "ViewKernel": "_view_kernel",
    "attention": "_attention",
    "initialize": "_initialize",
    "leave_one_out_errors": "_leave_one_out_errors",
    "local_average": "_local_average",
    "pinball_loss": "_heads",
    "sinusoidal_encoding": "_positions",
    "without_own": "_local_average",
}

__all__ = [
    "Decoder",
    "DecoderBlock",
    "Encoder",
    "EncoderBlock",
    "InstanceNorm",
    "LearnedPositions",
    "MultiHeadAttention",
    "Patches",
    "PointHead",
    "QuantileHead",
    "RotaryPositions",
    "SinusoidalPositions",
    "ViewKernel",
    "attention",
    "initialize",
    "leave_one_out_errors",
    "local_average",
    "pinball_loss",
    "sinusoidal_encoding",
    "without_own",
]


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
