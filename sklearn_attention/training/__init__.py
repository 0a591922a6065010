"""Training: how parameters are learned from batches.

:func:`train` fits any torch module to rows in memory, as a :class:`Plan` says.
:func:`descend` is for a few parameters and a few steps.
"""

import importlib

_LAZY = {
    "EpochTasks": "_epoch_tasks",
    "History": "_history",
    "Plan": "_plan",
    "batch_sizes": "_plan",
    "decay_groups": "_optimizer",
    "descend": "_descend",
    "hold_out": "_hold_out",
    "learn_attending": "_learn_kernel",
    "learn_solving": "_learn_kernel",
    "pace": "_plan",
    "refine_attending": "_learn_kernel",
    "torch_seed": "_random",
    "train": "_train",
}

__all__ = [
    "EpochTasks",
    "History",
    "Plan",
    "batch_sizes",
    "decay_groups",
    "descend",
    "hold_out",
    "learn_attending",
    "learn_solving",
    "pace",
    "refine_attending",
    "torch_seed",
    "train",
]


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
