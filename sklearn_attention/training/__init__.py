"""Training: how parameters are learned from batches."""

import importlib

_LAZY = {
    "descend": "_descend",
    "learn_attending": "_learn_kernel",
    "learn_solving": "_learn_kernel",
    "refine_attending": "_learn_kernel",
}

__all__ = ["descend", "learn_attending", "learn_solving", "refine_attending"]


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
