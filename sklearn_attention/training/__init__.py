"""Training: how parameters are learned from batches.

:func:`train` fits any torch module to rows in memory, as a :class:`Plan` says.
:func:`descend` is for a few parameters and a few steps. :class:`NetworkEstimator` is what
estimators share that do the former.
"""

from .._lazy import lazy_names

_LAZY = {
    "EpochTasks": "_epoch_tasks",
    "History": "_history",
    "NetworkEstimator": "_network_estimator",
    "Plan": "_plan",
    "batch_sizes": "_plan",
    "blocks_by_length": "_order",
    "decay_groups": "_optimizer",
    "descend": "_descend",
    "hold_out": "_hold_out",
    "learn_attending": "_learn_kernel",
    "learn_solving": "_learn_kernel",
    "pace": "_plan",
    "refine_attending": "_learn_kernel",
    "threads_of_pass": "_network",
    "torch_seed": "_random",
    "train": "_train",
}

__all__ = [*_LAZY]

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
