"""Equations between kernels, and with what others compute."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.metrics import pairwise

from sklearn_attention.kernels import (
    CosineSimilarity,
    Gaussian,
    Linear,
    Matern32,
    Periodic,
    Polynomial,
    ProductKernel,
    RationalQuadratic,
)
from sklearn_attention.kernels._base import KERNELS, as_kernel


@pytest.fixture(params=[1, 20])
def tables(request):
    rng = np.random.default_rng(request.param)
    return rng.normal(size=(6, request.param)), rng.normal(size=(9, request.param))


def test_rational_quadratic_becomes_gaussian(tables):
    gaussian = np.log(Gaussian()(*tables) * math.sqrt(2 * math.pi))
    for alpha, error in ((1e8, 1e-4), (1e300, 1e-12)):
        found = RationalQuadratic(alpha).log(*tables)
        np.testing.assert_allclose(found, gaussian, rtol=1e-12, atol=error)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Matern32(), gaussian_process.Matern(nu=1.5)),
        (
            Periodic(period=1.7, length_scale=0.8),
            gaussian_process.ExpSineSquared(length_scale=0.8, periodicity=1.7),
        ),
        (CosineSimilarity(), pairwise.cosine_similarity),
        (
            Polynomial(degree=3, coef0=0.5),
            lambda X, Y: pairwise.polynomial_kernel(X, Y, degree=3, gamma=1, coef0=0.5),
        ),
        (1 + Linear(), gaussian_process.DotProduct(sigma_0=1.0)),
    ],
    ids=lambda kernel: repr(kernel) if not callable(kernel) else "",
)
def test_kernels_of_scikit_learn(tables, ours, theirs):
    np.testing.assert_allclose(ours(*tables), theirs(*tables), rtol=1e-10, atol=1e-13)


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
