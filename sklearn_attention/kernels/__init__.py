r"""Kernels: how similar a query is to a key.

A prediction is a weighted average of remembered values, and the weights come from a
kernel that compares the query with the remembered keys. Each kernel is one formula, written
once, for NumPy arrays and for torch tensors.

* Smoothing kernels are densities, such as :class:`Gaussian` and :class:`Epanechnikov`.
* Covariance kernels come from Gaussian processes, such as :class:`Matern32` and
  :class:`Periodic`.
* Dot-product kernels come from attention, such as :class:`ScaledDotProduct`.
* Random features approximate a kernel by a dot product, such as :class:`PositiveFeatures`.
* Categorical kernels, such as :class:`LiRacine`; :func:`mixed_kernel` puts them beside one for
  numbers.
* Composition: ``+``, ``*``, :class:`ProductKernel` over columns, :class:`FunctionKernel`.

:data:`KERNELS` has all that go by a name.
"""

from ._base import KERNELS, Constant, FunctionKernel, Kernel, Product, Sum, as_kernel
from ._categorical import AitchisonAitken, LiRacine, WangVanRyzin, level_table
from ._compact import (
    Biweight,
    Boxcar,
    CompactKernel,
    Cosine,
    Epanechnikov,
    Triangular,
    Tricube,
    Triweight,
)
from ._covariance import (
    Exponential,
    Laplacian,
    LocallyPeriodic,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
)
from ._dot_product import CosineSimilarity, Linear, Polynomial, ScaledDotProduct
from ._feature_kernels import (
    FeatureForm,
    FeatureKernel,
    PositiveFeatures,
    TrigonometricFeatures,
    opposite_pairs,
    wave_pairs,
)
from ._frequencies import random_frequencies
from ._gaussian import DotProductForm, Gaussian
from ._importance_sampling import spread_directions
from ._numerics import squared_distances
from ._product_kernel import ProductKernel, mixed_kernel
from ._radial import RadialKernel, SmoothingKernel
from ._unbounded import Logistic, Sigmoid, Silverman

__all__ = [
    "KERNELS", "AitchisonAitken", "Biweight", "Boxcar", "CompactKernel", "Constant",
    "Cosine", "CosineSimilarity", "DotProductForm", "Epanechnikov", "Exponential",
    "FeatureForm", "FeatureKernel", "FunctionKernel", "Gaussian", "Kernel", "Laplacian",
    "LiRacine", "Linear", "LocallyPeriodic", "Logistic", "Matern32", "Matern52", "Periodic",
    "Polynomial", "PositiveFeatures", "Product", "ProductKernel", "RadialKernel",
    "RationalQuadratic", "ScaledDotProduct", "Sigmoid", "Silverman", "SmoothingKernel",
    "Sum", "Triangular", "Tricube", "TrigonometricFeatures", "Triweight", "WangVanRyzin",
    "as_kernel", "level_table", "mixed_kernel", "opposite_pairs",
    "random_frequencies", "spread_directions", "squared_distances", "wave_pairs",
]  # fmt: skip
