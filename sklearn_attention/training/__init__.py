"""Training: how parameters are learned from batches.

:func:`train` fits any torch module to rows in memory, as a :class:`Plan` says.
:class:`NetworkEstimator` is what estimators share that have one, :class:`Architecture` and
:class:`Training` are parameters of theirs.
"""

from .._lazy import lazy_names

_LAZY = {
    "Architecture": "_architecture",
    "EpochTasks": "_epoch_tasks",
    "History": "_history",
    "NetworkEstimator": "_network_estimator",
    "Plan": "_plan",
    "Training": "_training",
    "batch_sizes": "_plan",
    "check_series_parts": "_architecture",
    "blocks_by_length": "_order",
    "decay_groups": "_optimizer",
    "hold_out": "_hold_out",
    "pace": "_plan",
    "threads_of_pass": "_network",
    "torch_seed": "_random",
    "train": "_train",
}

__all__ = [*_LAZY]

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
