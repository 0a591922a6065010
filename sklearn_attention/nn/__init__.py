"""Torch modules that know nothing of scikit-learn: kernels with parameters to be learned."""

import importlib

_LAZY = {
    "ViewKernel": "_view_kernel",
    "leave_one_out_errors": "_leave_one_out_errors",
    "local_average": "_local_average",
    "without_own": "_local_average",
}

__all__ = ["ViewKernel", "leave_one_out_errors", "local_average", "without_own"]


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
