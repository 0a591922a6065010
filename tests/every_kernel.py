"""Names of kernels by what they have in common, for tests of what holds for all of these."""

from sklearn_attention.kernels import SmoothingKernel
from sklearn_attention.kernels._base import KERNELS

# Smoothing kernels that are densities, as no value is negative.
DENSITIES = [
    name
    for name, kind in KERNELS.items()
    if issubclass(kind, SmoothingKernel) and not kind.signed
]
