"""Equations between kernels, and with what others compute."""

import math

import numpy as np
import pytest

from sklearn_attention.kernels import (
    Gaussian,
    ProductKernel,
    RationalQuadratic,
)
from sklearn_attention.kernels._base import KERNELS, as_kernel


def test_rational_quadratic_becomes_gaussian():
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(6, 5)), rng.normal(size=(9, 5))
    gaussian = np.log(Gaussian()(*tables) * math.sqrt(2 * math.pi))
    for alpha, error in ((1e8, 1e-4), (1e300, 1e-12)):
        found = RationalQuadratic(alpha).log(*tables)
        np.testing.assert_allclose(found, gaussian, rtol=1e-12, atol=error)


@pytest.mark.parametrize(
    "kernel", [own for own in map(as_kernel, KERNELS) if own.positive_definite], ids=repr
)
def test_tables_of_covariance_kernels_have_no_negative_eigenvalue(kernel):
    X = np.random.default_rng(0).normal(size=(30, 3)).round(1)
    eigenvalues = np.linalg.eigvalsh(kernel(X))
    assert eigenvalues.min() >= -1e-12 * eigenvalues.max()


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - {"cosine_similarity"}))
def test_product_and_radial_form_agree_on_one_feature_alone(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 2))
    one, kernel, product = X[:, :1], as_kernel(name), ProductKernel(name)
    np.testing.assert_array_equal(product(one), kernel(one))
    assert (name == "laplacian") == np.allclose(product(X), kernel(X))
