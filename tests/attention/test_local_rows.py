"""Rows of hat matrices, against one least-squares problem for each query."""

import numpy as np
import pytest
from slow_local import slow_fit

from sklearn_attention import attend
from sklearn_attention.attention import attend_local, local_rows
from sklearn_attention.kernels import Gaussian
from sklearn_attention.kernels._base import as_kernel


@pytest.mark.parametrize(
    ("kernel", "degree", "weighted"),
    [("gaussian", 0, True), ("gaussian", 2, True), ("epanechnikov", 1, True),
     ("laplacian", 1, False)],
)  # fmt: skip
def test_effects_of_rows_and_fits_without_each(kernel, degree, weighted):
    rng = np.random.default_rng(0)
    queries, keys = rng.uniform(0, 1, (6, 2)), rng.uniform(0, 1, (30, 2))
    values = rng.normal(size=(30, 2))
    weight = np.random.default_rng(1).integers(0, 4, 30) / 2 if weighted else np.ones(30)
    options = dict(degree=degree, bandwidth=0.9)
    found = local_rows(queries, keys, values, kernel, sample_weight=weight, **options)
    np.testing.assert_allclose(found.effects.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(found.effects @ values, found.values, rtol=1e-8, atol=1e-9)
    assert (found.effects[:, weight == 0] == 0).all()
    for i, w in enumerate(as_kernel(kernel)(queries / 0.9, keys / 0.9) * weight):
        expected = slow_fit(queries[i], keys, values, w, degree, 0.9)
        np.testing.assert_allclose(found.values[i], expected, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.weights[i], w / w.sum(), atol=1e-14)
        for k in range(30):
            w_without = np.where(np.arange(30) == k, 0, w)
            expected = slow_fit(queries[i], keys, values, w_without, degree, 0.9)
            np.testing.assert_allclose(found.left_out[i, k], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("degree", [0, 1])
def test_without_the_key_that_carries_everything(degree):
    rng = np.random.default_rng(0)
    keys = np.append(rng.uniform(7.0, 8.5, 12), 0.0)[:, None]
    values = np.append(3 * keys[:-1, 0] + 0.1 * rng.normal(size=12), 50.0)[:, None]
    queries = np.array([[0.0], [0.1]])
    found = local_rows(queries, keys, values, degree=degree)
    assert (found.weights[:, -1] > 1 - 1e-8).all()
    without = Gaussian()(queries, keys[:-1])
    for i in range(2):
        options = dict(degree=degree) if degree else {}
        average = attend_local if degree else attend
        expected = average(queries[[i]], keys[:-1], values[:-1], **options)[0]
        np.testing.assert_allclose(found.left_out[i, -1], expected[0], rtol=1e-6)
        exact = slow_fit(queries[i], keys[:-1], values[:-1], without[i], degree, 1.0)
        np.testing.assert_allclose(found.left_out[i, -1], exact, rtol=1e-5)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("empty", ["nearest", "nan"])
def test_a_window_that_is_empty_without_its_only_key(degree, empty):
    keys, values = np.array([[0.0], [5.0], [9.0]]), np.array([[1.0], [2.0], [3.0]])
    found = local_rows(
        [[0.1]], keys, values, "epanechnikov", degree=degree, empty=empty
    ).left_out[0, :, 0]
    np.testing.assert_allclose(found, [2.0 if empty == "nearest" else np.nan, 1.0, 1.0])
