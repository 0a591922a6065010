from . import attention as attention
from . import bandwidth as bandwidth
from . import datasets as datasets
from . import forecasting as forecasting
from . import inspection as inspection
from . import kernels as kernels
from . import nn as nn
from . import text as text
from . import training as training
from ._columns import Columns as Columns
from ._show_versions import show_versions as show_versions
from .attention._average import attend as attend
from .attention._tables import Explanation as Explanation
from .attention._tables import attention_weights as attention_weights
from .bandwidth._neighbors import AdaptiveBandwidth as AdaptiveBandwidth
from .forecasting._kernel_forecaster import KernelForecaster as KernelForecaster
from .forecasting._transformer_forecaster import TransformerForecaster as TransformerForecaster
from .kernel_approximation._fourier_features import (
    RandomFourierFeatures as RandomFourierFeatures,
)
from .kernel_approximation._positive_features import (
    PositiveRandomFeatures as PositiveRandomFeatures,
)
from .kernel_attention._classifier import KernelAttentionClassifier as KernelAttentionClassifier
from .kernel_attention._regressor import KernelAttentionRegressor as KernelAttentionRegressor
from .sequence._language_model import TransformerLanguageModel as TransformerLanguageModel
from .sequence._seq2seq import TransformerSeq2Seq as TransformerSeq2Seq
from .smoothing._classifier import NadarayaWatsonClassifier as NadarayaWatsonClassifier
from .smoothing._conditional_density import ConditionalKernelDensity as ConditionalKernelDensity
from .smoothing._cross_validated import LocalPolynomialCV as LocalPolynomialCV
from .smoothing._cross_validated import NadarayaWatsonCV as NadarayaWatsonCV
from .smoothing._density import ProductKernelDensity as ProductKernelDensity
from .smoothing._local_polynomial import LocalPolynomialRegressor as LocalPolynomialRegressor
from .smoothing._regressor import NadarayaWatsonRegressor as NadarayaWatsonRegressor
from .smoothing._significance import Significance as Significance
from .smoothing._summary import SmootherSummary as SmootherSummary
from .training._architecture import Architecture as Architecture
from .training._training import Training as Training
from .transformer._classifier import TransformerClassifier as TransformerClassifier
from .transformer._regressor import TransformerRegressor as TransformerRegressor

__version__: str
