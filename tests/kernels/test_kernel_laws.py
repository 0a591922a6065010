"""Matrices of covariance kernels, of rows that hypothesis looks for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from sklearn_attention.kernels import (
    CosineSimilarity,
    Linear,
    LocallyPeriodic,
    Periodic,
    Polynomial,
)
from sklearn_attention.kernels._base import KERNELS, as_kernel

NAMED = [as_kernel(name) for name in KERNELS]
# Positive definite in every dimension.
COVARIANCES = [
    *(kernel for kernel in NAMED if kernel.positive_definite),
    Linear(), Polynomial(), CosineSimilarity(),
]  # fmt: skip
numbers = st.floats(-3, 3)


def is_positive_definite(values):
    eigenvalues = np.linalg.eigvalsh((values + values.T) / 2)
    return eigenvalues.min() >= -1e-12 * max(1, eigenvalues.max())


@pytest.mark.parametrize("kernel", COVARIANCES, ids=repr)
@settings(max_examples=8, deadline=None)
@given(X=arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=5), elements=numbers))
def test_no_eigenvalue_is_negative(kernel, X):
    assert is_positive_definite(kernel(X))


@settings(max_examples=8, deadline=None)
@given(X=arrays(float, (6, 1), elements=numbers))
def test_periodic_kernels_have_none_on_one_feature(X):
    assert is_positive_definite(Periodic()(X))
    assert is_positive_definite(LocallyPeriodic(period=2.0)(X))
