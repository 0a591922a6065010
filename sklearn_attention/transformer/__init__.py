"""Transformer encoders that predict from tables, sequences and texts."""

from ._classifier import TransformerClassifier
from ._regressor import TransformerRegressor

__all__ = ["TransformerClassifier", "TransformerRegressor"]
