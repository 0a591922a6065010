"""Equations between kernels, and with what others compute."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.metrics import pairwise

from sklearn_attention.kernels import (
    AitchisonAitken,
    Constant,
    CosineSimilarity,
    Epanechnikov,
    Exponential,
    Gaussian,
    Laplacian,
    Linear,
    LocallyPeriodic,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    ProductKernel,
    RationalQuadratic,
    ScaledDotProduct,
)
from sklearn_attention.kernels._base import KERNELS, as_kernel


@pytest.fixture(params=[1, 3, 20])
def tables(request):
    rng = np.random.default_rng(request.param)
    return rng.normal(size=(6, request.param)), rng.normal(size=(9, request.param))


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def weights(values):
    return values / values.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("ell", "p"), [(1.0, 1.0), (1.3, 0.5)])
def test_periodic_kernel_of_unit_rows_is_a_softmax_of_the_dot_product(tables, ell, p):
    queries, keys = map(unit, tables)
    kernel = Periodic(period=ell**2, length_scale=math.sqrt(p))
    distance = np.sqrt(np.maximum(2 - 2 * queries @ keys.T, 0))
    scores = -2 * np.sin(np.pi * distance / ell**2) ** 2 / p
    actual = weights(kernel(queries, keys))
    np.testing.assert_allclose(actual, softmax(scores, axis=1), rtol=1e-6)


@pytest.mark.parametrize("norm", [0.5, 3.0])
def test_dot_product_weights_are_gaussian_if_all_keys_are_equally_long(tables, norm):
    queries, keys = tables
    keys = norm * unit(keys)
    d = queries.shape[1]
    gaussian, bandwidth = Gaussian(), d**0.25
    scaled = [gaussian.rescale(X, bandwidth) for X in (queries, keys)]
    np.testing.assert_allclose(
        weights(ScaledDotProduct()(queries, keys)), weights(gaussian(*scaled)), rtol=1e-12
    )
    # And not otherwise.
    longer = keys * np.arange(1, 10)[:, None]
    scaled = [gaussian.rescale(X, bandwidth) for X in (queries, longer)]
    difference = weights(ScaledDotProduct()(queries, longer)) - weights(gaussian(*scaled))
    assert np.abs(difference).max() > 0.01


def test_dot_product_weights_are_those_of_transformers(tables):
    queries, keys = tables
    attention = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(X) for X in (queries, keys, np.eye(9)))
    )
    np.testing.assert_allclose(weights(ScaledDotProduct()(queries, keys)), attention)


def test_rational_quadratic_becomes_gaussian(tables):
    gaussian = Gaussian()(*tables) * math.sqrt(2 * math.pi)
    errors = []
    for alpha in (1e2, 1e4, 1e6, 1e8):
        values = RationalQuadratic(alpha)(*tables)
        errors.append(np.abs(values / gaussian - 1).max())
    assert errors[-1] < 1e-4
    assert all(later < earlier / 20 for earlier, later in itertools.pairwise(errors))
    np.testing.assert_allclose(
        RationalQuadratic(1e300).log(*tables), np.log(gaussian), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Exponential(), gaussian_process.Matern(nu=0.5)),
        (Matern32(), gaussian_process.Matern(nu=1.5)),
        (Matern52(), gaussian_process.Matern(nu=2.5)),
        (RationalQuadratic(0.7), gaussian_process.RationalQuadratic(alpha=0.7)),
        (
            Periodic(period=1.7, length_scale=0.8),
            gaussian_process.ExpSineSquared(length_scale=0.8, periodicity=1.7),
        ),
        (math.sqrt(2 * math.pi) * Gaussian(), gaussian_process.RBF()),
        (Laplacian(), lambda X, Y: pairwise.laplacian_kernel(X, Y, gamma=1)),
        (CosineSimilarity(), pairwise.cosine_similarity),
        (Linear(), pairwise.linear_kernel),
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


def test_laplacian_is_a_product_of_exponentials(tables):
    product = ProductKernel(Exponential())
    np.testing.assert_allclose(product(*tables), Laplacian()(*tables), rtol=1e-12)


def test_gaussian_is_radial_and_a_product_alike(tables):
    d = tables[0].shape[1]
    radial = Gaussian().normalizing_constant(d) * Gaussian()(*tables)
    np.testing.assert_allclose(ProductKernel("gaussian")(*tables), radial, rtol=1e-12)


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - {"cosine_similarity"}))
def test_product_and_radial_form_agree_on_one_feature(name):
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(8, 1)), rng.normal(size=(9, 1))
    np.testing.assert_array_equal(ProductKernel(name)(*tables), as_kernel(name)(*tables))


def test_product_and_radial_form_differ_on_two_features():
    queries, keys = [[0.0, 0.0]], [[0.8, 0.8]]
    assert Epanechnikov()(queries, keys) == 0
    assert ProductKernel("epanechnikov")(queries, keys) == pytest.approx(0.27**2)


def test_locally_periodic_is_periodic_times_gaussian(tables):
    product = Periodic(period=1.5, length_scale=1.0) * Gaussian() * math.sqrt(2 * math.pi)
    np.testing.assert_allclose(LocallyPeriodic(period=1.5)(*tables), product(*tables))


def test_categories_not_told_apart_are_a_constant():
    codes = np.arange(4)[:, None]
    np.testing.assert_allclose(AitchisonAitken(4, lam=0.75)(codes), Constant(0.25)(codes))
