r"""Kernels: the similarity of a query to a key.

A prediction is a weighted average of stored values, and the weights come from a kernel that
compares the query with the stored keys. Each kernel is one formula, written once, for NumPy
arrays and for torch tensors.

* Smoothing kernels are densities, such as :class:`Gaussian` and :class:`Epanechnikov`.
* Covariance kernels come from Gaussian processes, such as :class:`Matern32` and
  :class:`Periodic`.
* Dot-product kernels come from attention, such as :class:`ScaledDotProduct`.
* Random features approximate a kernel by a dot product, such as :class:`PositiveFeatures`.
* Categorical kernels, such as :class:`LiRacine`, compare codes.
* Composition: ``+``, ``*``, :class:`ProductKernel` over columns, :class:`FunctionKernel`.

Estimators take a kernel by its name, such as ``"gaussian"``, or as one of these objects.
"""

from ._base import Constant, FunctionKernel, Kernel, Product, Sum
from ._categorical import AitchisonAitken, LiRacine, WangVanRyzin
from ._compact import Biweight, Boxcar, Cosine, Epanechnikov, Triangular, Tricube, Triweight
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
from ._feature_kernels import PositiveFeatures, TrigonometricFeatures
from ._product_kernel import ProductKernel
from ._radial import RadialKernel, SmoothingKernel
from ._unbounded import Gaussian, Logistic, Sigmoid, Silverman

__all__ = [
    "AitchisonAitken",
    "Biweight",
    "Boxcar",
    "Constant",
    "Cosine",
    "CosineSimilarity",
    "Epanechnikov",
    "Exponential",
    "FunctionKernel",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "LiRacine",
    "Linear",
    "LocallyPeriodic",
    "Logistic",
    "Matern32",
    "Matern52",
    "Periodic",
    "Polynomial",
    "PositiveFeatures",
    "Product",
    "ProductKernel",
    "RadialKernel",
    "RationalQuadratic",
    "ScaledDotProduct",
    "Sigmoid",
    "Silverman",
    "SmoothingKernel",
    "Sum",
    "Triangular",
    "Tricube",
    "TrigonometricFeatures",
    "Triweight",
    "WangVanRyzin",
]
