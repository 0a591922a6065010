"""Kernels by name."""

import difflib

from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernel

from . import _compact, _covariance, _dot_product, _feature_kernels, _periodic, _unbounded
from ._adapters import FunctionKernel
from ._base import Kernel
from ._gaussian import Gaussian

KERNELS = {
    "gaussian": Gaussian,
    "epanechnikov": _compact.Epanechnikov,
    "boxcar": _compact.Boxcar,
    "triangular": _compact.Triangular,
    "biweight": _compact.Biweight,
    "triweight": _compact.Triweight,
    "tricube": _compact.Tricube,
    "cosine": _compact.Cosine,
    "logistic": _unbounded.Logistic,
    "sigmoid": _unbounded.Sigmoid,
    "silverman": _unbounded.Silverman,
    "laplacian": _covariance.Laplacian,
    "exponential": _covariance.Exponential,
    "matern32": _covariance.Matern32,
    "matern52": _covariance.Matern52,
    "rational_quadratic": _covariance.RationalQuadratic,
    "periodic": _periodic.Periodic,
    "locally_periodic": _periodic.LocallyPeriodic,
    "scaled_dot_product": _dot_product.ScaledDotProduct,
    "linear": _dot_product.Linear,
    "polynomial": _dot_product.Polynomial,
    "cosine_similarity": _dot_product.CosineSimilarity,
    "positive_features": _feature_kernels.PositiveFeatures,
    "trigonometric_features": _feature_kernels.TrigonometricFeatures,
}


def as_kernel(kernel):
    """Turn what users pass as ``kernel`` into a :class:`Kernel`.

    Parameters
    ----------
    kernel : str, Kernel, callable or sklearn.gaussian_process.kernels.Kernel
        A name stands for that kernel with its default parameters. A callable
        ``f(X, Y) -> (n, m)`` and scikit-learn's kernels are wrapped in
        :class:`FunctionKernel`.

    Returns
    -------
    kernel : Kernel

    Raises
    ------
    ValueError
        If the name is not known; the message lists the known ones.
    TypeError
        If it is none of these.

    Examples
    --------
    >>> from sklearn_attention.kernels import as_kernel
    >>> as_kernel("tricube")
    Tricube()
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel in KERNELS:
            return KERNELS[kernel]()
        close = difflib.get_close_matches(kernel.lower(), KERNELS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"kernel={kernel!r} is unknown: {hint}choose from {sorted(KERNELS)}.")
    is_class = isinstance(kernel, type)
    if isinstance(kernel, GaussianProcessKernel) or (callable(kernel) and not is_class):
        return FunctionKernel(kernel)
    remedy = f"create it, as in {kernel.__name__}()" if is_class else "pass one of these"
    raise TypeError(
        f"kernel={kernel!r} must be a name, a Kernel, a function f(X, Y), or a kernel of "
        f"sklearn.gaussian_process: {remedy}."
    )
