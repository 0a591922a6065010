"""Which kernels fall with the distance at the scale of the bandwidth, and say so."""

import numpy as np
import pytest

from sklearn_attention.kernels import (
    AitchisonAitken,
    FunctionKernel,
    Gaussian,
    Periodic,
    ProductKernel,
)
from sklearn_attention.kernels._base import KERNELS, as_kernel

RAY = np.linspace(0, 6, 200)[:, None]


@pytest.mark.parametrize("name", KERNELS)
def test_the_flag_is_the_truth(name):
    kernel = as_kernel(name)
    along_the_ray = kernel(RAY[:1], RAY)[0]
    falls = bool((np.diff(along_the_ray) <= 0).all() and along_the_ray[-1] < along_the_ray[0])
    # Locally periodic falls at scale 1 by chance; its period is no neighbourhood.
    assert kernel.decreasing == (falls and name != "locally_periodic")


def test_of_composed_kernels():
    assert not (Gaussian() * Periodic()).decreasing
    mixed = [("x", "gaussian", [0]), ("group", AitchisonAitken(), [1])]
    assert ProductKernel(mixed).decreasing
    assert not ProductKernel([("x", Periodic(), [0])]).decreasing
    assert not FunctionKernel(lambda X, Y: X @ Y.T).decreasing
