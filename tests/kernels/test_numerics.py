"""Squared distances, logarithms and roots, against slow arithmetic."""

import math

import numpy as np
import pytest
import torch
from kernel_contracts import each_pair, in_libraries, to_library, to_numpy

from sklearn_attention.kernels import _numerics as module
from sklearn_attention.kernels._numerics import squared_distances

# Differences by feature, torch's differences, and the matrix product with repairs.
in_dimensions = pytest.mark.parametrize("d", [2, 16, 64])


def slowly(X, Y):
    """Squared distances by differences that are rounded once, and an exact sum."""
    X, Y = (np.asarray(Z, dtype=np.float64) for Z in (X, Y))
    return each_pair(
        lambda x, y: math.fsum((a - b) ** 2 for a, b in zip(x, y, strict=True)), X, Y
    )


def far_clusters(d, spread):
    """Rows in two distant clusters, and keys mostly elsewhere: few pairs are close."""
    rng = np.random.default_rng(d)
    center = rng.normal(size=d)
    side = np.array([1, -1, 1, -1])[:, None]
    X = side * center + spread * rng.normal(size=(4, d)) / math.sqrt(d)
    others = 2 * rng.normal(size=(96, d)) * np.linalg.norm(center) / math.sqrt(d)
    return X, np.concatenate([X[:2] + spread * rng.normal(size=(2, d)), X[2:3], others])


@in_libraries
@in_dimensions
@pytest.mark.parametrize(
    ("dtype", "spread", "rtol"),
    [("float64", 1e-9, 1e-12), ("float64", 0.1, 1e-12), ("float32", 1e-2, 1e-5)],
)
def test_relative_accuracy_of_close_rows_in_far_clusters(library, d, dtype, spread, rtol):
    X, Y = (Z.astype(dtype) for Z in far_clusters(d, spread))
    actual = squared_distances(*(to_library(Z, library, dtype) for Z in (X, Y)))
    np.testing.assert_allclose(to_numpy(actual), slowly(X, Y), rtol=rtol)


@pytest.mark.parametrize("near", [0, 3, 300], ids=["no", "few", "many"])
def test_every_way_with_many_features(near, monkeypatch):
    """No pair is close, few are and are repaired, or so many that all are subtracted."""
    called = []

    def spy(X, Y):
        called.append(True)
        return by_differences(X, Y)

    by_differences = module._by_differences
    monkeypatch.setattr(module, "_by_differences", spy)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 20)), rng.normal(size=(300, 20))
    own = np.arange(near) % 20
    Y[:near] = X[own] + 1e-7 * rng.normal(size=(near, 20))
    X, Y = X + 100, Y + 100
    tensors = [torch.tensor(Z, requires_grad=True) for Z in (X, Y)]
    squared = squared_distances(*tensors)
    assert bool(called) is (near == 300)
    np.testing.assert_allclose(to_numpy(squared), slowly(X, Y), rtol=1e-12)
    # The gradient is that of the plain formula.
    upstream = torch.from_numpy(rng.normal(size=(20, 300)))
    gradients = torch.autograd.grad((squared * upstream).sum(), tensors)
    differences = X[:, None] - Y[None]
    weighted = 2 * upstream.numpy()[:, :, None] * differences
    np.testing.assert_allclose(gradients[0], weighted.sum(axis=1), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gradients[1], -weighted.sum(axis=0), rtol=1e-9, atol=1e-9)


@in_libraries
@in_dimensions
def test_equal_rows_have_distance_exactly_zero(library, d):
    X = to_library(np.random.default_rng(d).normal(size=(60, d)) * 1e3 + 1e6, library)
    squared = to_numpy(squared_distances(X, X))
    assert (np.diag(squared) == 0).all()
    assert (squared >= 0).all()


def test_gradient_of_the_square_root():
    squared = torch.tensor([0.0, 4.0, 1e-300], dtype=torch.float64, requires_grad=True)
    root = module.square_root(squared)
    assert root.tolist() == pytest.approx([0, 2, 1e-150], rel=1e-15)
    root.sum().backward()
    assert squared.grad.tolist() == pytest.approx([0, 0.25, 5e149], rel=1e-12)


def test_logarithm_of_zero_is_minus_infinity_and_has_no_gradient():
    expected = [-math.inf, 0, math.log(4)]
    assert module.log(np.array([0.0, 1.0, 4.0])).tolist() == expected
    values = torch.tensor([0.0, 1.0, 4.0], dtype=torch.float64, requires_grad=True)
    logs = module.log(values)
    assert logs.tolist() == pytest.approx(expected)
    logs.sum().backward()
    assert values.grad.tolist() == [0, 1, 0.25]
