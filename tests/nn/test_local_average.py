"""Averages and local lines against least squares, query by query."""

import numpy as np
import pytest
import torch

from sklearn_attention.nn import local_average, without_own


def make_rows(n_queries=5, n_keys=20, n_slopes=3, n_values=2, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(n_keys), n_queries)
    values, keys = rng.normal(size=(n_keys, n_values)), rng.normal(size=(n_keys, n_slopes))
    return weights, values, rng.normal(size=(n_queries, n_slopes)), keys


def slow_line(weights, values, query, keys, ridge):
    """Least squares of one query, its ridge as further rows of data, its intercept free."""
    n_slopes = keys.shape[1]
    root = np.sqrt(weights)[:, None]
    design = root * np.column_stack([np.ones(len(keys)), keys - query])
    held = np.sqrt(ridge * np.square(weights).sum()) * np.eye(n_slopes)
    design = np.vstack([design, np.column_stack([np.zeros(n_slopes), held])])
    targets = np.vstack([root * values, np.zeros((n_slopes, values.shape[1]))])
    found = np.linalg.lstsq(design, targets, rcond=None)[0]
    return found[0], found[1:]


@pytest.mark.parametrize("n_values", [1, 4])
@pytest.mark.parametrize("n_slopes", [1, 3])
@pytest.mark.parametrize("ridge", [0.0, 0.7, 100.0])
def test_equals_weighted_least_squares(ridge, n_slopes, n_values):
    rows = make_rows(n_slopes=n_slopes, n_values=n_values)
    weights, values, queries, keys = rows
    averages, slopes = local_average(*map(torch.as_tensor, rows), ridge=ridge)
    assert slopes.shape == (5, n_slopes, n_values)
    for row in range(5):
        value, slope = slow_line(weights[row], values, queries[row], keys, ridge)
        np.testing.assert_allclose(averages[row], value, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(slopes[row], slope, rtol=1e-9, atol=1e-9)


def test_a_ridge_may_be_a_tensor():
    rows = tuple(map(torch.as_tensor, make_rows()))
    as_number, _ = local_average(*rows, ridge=0.7)
    as_tensor, _ = local_average(*rows, ridge=torch.tensor(0.7, dtype=torch.float64))
    np.testing.assert_array_equal(as_number, as_tensor)


def test_lines_go_through_lines():
    weights, _, queries, keys = make_rows()
    slope = np.array([[2.0], [-1.0], [0.5]])
    averages, slopes = local_average(
        *map(torch.as_tensor, (weights, keys @ slope + 3, queries, keys))
    )
    np.testing.assert_allclose(averages, queries @ slope + 3, rtol=1e-9)
    np.testing.assert_allclose(slopes, np.broadcast_to(slope, (5, 3, 1)), rtol=1e-9)


def test_without_coordinates_averages_are_plain():
    weights, values, _, _ = map(torch.as_tensor, make_rows())
    none = torch.empty(5, 0), torch.empty(20, 0)
    for coordinates in ((), none):
        averages, slopes = local_average(weights, values, *coordinates)
        assert slopes is None
        np.testing.assert_allclose(averages, weights.numpy() @ values.numpy(), rtol=1e-12)


def test_where_one_key_has_all_weight_there_is_no_line():
    _, values, queries, keys = map(torch.as_tensor, make_rows())
    for dtype in (torch.float32, torch.float64):
        weights = torch.eye(20, dtype=dtype)[:5]
        averages, slopes = local_average(
            weights, values.to(dtype), queries.to(dtype), 1e3 + keys.to(dtype)
        )
        assert torch.isfinite(slopes).all()
        np.testing.assert_allclose(averages, values[:5], rtol=1e-5)


def test_gradient_equals_differences():
    logits = torch.randn(3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    _, values, queries, keys = map(torch.as_tensor, make_rows(3, 8, 2, 2))
    ridge = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)

    def read(logits, ridge):
        return local_average(torch.softmax(logits, 1), values, queries, keys, ridge)

    assert torch.autograd.gradcheck(read, (logits.requires_grad_(True), ridge))


def test_without_own_leaves_out_that_key_alone():
    log_weights = torch.arange(12.0).reshape(3, 4)
    found = without_own(log_weights, torch.tensor([2, -1, 0]))
    expected = np.arange(12.0).reshape(3, 4)
    expected[0, 2] = expected[2, 0] = -np.inf
    np.testing.assert_array_equal(found, expected)
    # What was passed is as it was.
    np.testing.assert_array_equal(log_weights, np.arange(12.0).reshape(3, 4))


def test_without_own_of_rows_that_are_no_keys_changes_nothing():
    log_weights = torch.arange(6.0).reshape(2, 3)
    found = without_own(log_weights, torch.tensor([-1, -1]))
    np.testing.assert_array_equal(found, log_weights)
