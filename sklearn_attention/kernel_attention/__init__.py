"""Kernel attention: estimators that learn the space in which their kernel compares."""

from ._classifier import KernelAttentionClassifier
from ._regressor import KernelAttentionRegressor

__all__ = ["KernelAttentionClassifier", "KernelAttentionRegressor"]
