"""Estimators that only remember: predictions are averages of the training targets."""

from ._classifier import NadarayaWatsonClassifier
from ._explanation import Explanation
from ._regressor import NadarayaWatsonRegressor

__all__ = ["Explanation", "NadarayaWatsonClassifier", "NadarayaWatsonRegressor"]
