"""Estimators that only remember: averages of the training targets, and densities."""

from .._explanation import Explanation
from ._classifier import NadarayaWatsonClassifier
from ._conditional_density import ConditionalKernelDensity
from ._cross_validated import LocalPolynomialCV, NadarayaWatsonCV
from ._density import ProductKernelDensity
from ._local_polynomial import LocalPolynomialRegressor
from ._regressor import NadarayaWatsonRegressor
from ._significance import Significance
from ._summary import SmootherSummary

__all__ = [
    "ConditionalKernelDensity",
    "Explanation",
    "LocalPolynomialCV",
    "LocalPolynomialRegressor",
    "NadarayaWatsonCV",
    "NadarayaWatsonClassifier",
    "NadarayaWatsonRegressor",
    "ProductKernelDensity",
    "Significance",
    "SmootherSummary",
]
