"""Local polynomials against one least-squares problem for each query."""

import math

import numpy as np
import pytest
import torch
from slow_local import slow_terms

from sklearn_attention import attend
from sklearn_attention.attention import attend_local, local_rows
from sklearn_attention.kernels import Gaussian


def make_data(n_queries=25, n_keys=60, d=2, n_values=2, seed=0):
    rng = np.random.default_rng(seed)
    queries, keys = rng.uniform(0, 1, (n_queries, d)), rng.uniform(0, 1, (n_keys, d))
    return queries, keys, rng.normal(size=(n_keys, n_values))


@pytest.mark.parametrize(("d", "degree"), [(1, 2), (2, 1), (2, 3)])
def test_the_ridge_says_where_the_design_is_thin(d, degree):
    queries, keys, values = make_data(n_queries=60, n_keys=30, d=d)
    h, kernel = 0.25, Gaussian()
    fit = attend_local(queries, keys, values, kernel, degree=degree, bandwidth=h)
    weights = kernel(queries / h, keys / h)
    for i, w in enumerate(weights):
        terms = slow_terms((keys - queries[i]) / h, degree)[:, 1:]
        covariance = np.cov(terms.T, aweights=w, bias=True).reshape(len(terms.T), -1)
        smallest = np.linalg.eigvalsh(covariance)[0]
        assert fit.ridge[i] == pytest.approx(max(0, 1e-4 - smallest), abs=1e-9)


@pytest.mark.parametrize("degree", [1, 2])
def test_empty_windows(degree):
    keys = np.linspace(0, 1, 21)[:, None]
    values = 2 + 3 * keys[:, 0]
    queries = np.array([[0.5], [3.0], [-2.0]])
    options = dict(degree=degree, bandwidth=0.2)
    fit = attend_local(queries, keys, values, "epanechnikov", **options)
    np.testing.assert_allclose(fit.values, [3.5, 5.0, 2.0], rtol=1e-9)
    np.testing.assert_allclose(fit.slopes, [[3], [0], [0]], atol=1e-6)
    assert np.isneginf(fit.log_normalizers[1:]).all()
    fit = attend_local(queries, keys, values, "epanechnikov", **options, empty="nan")
    assert np.isnan(fit.values).tolist() == [False, True, True]
    assert np.isnan(fit.slopes[:, 0]).tolist() == [False, True, True]


@pytest.mark.parametrize(("distance", "degree"), [(1e2, 1), (1e6, 2)])
def test_a_far_query_between_two_rows_takes_their_mean(distance, degree):
    keys, values = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 9.0]]), np.array([1.0, 2.0, 9.0])
    queries = np.array([[distance, 1.0], [distance + 1.7, 0.3], [distance - 0.6, 0.9]])
    fit = attend_local(queries, keys, values, "epanechnikov", degree=degree)
    np.testing.assert_allclose(fit.values, 1.5, rtol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "d", "degree"),
    [("gaussian", 1, 1), ("gaussian", 3, 2), ("laplacian", 1, 3), ("epanechnikov", 3, 1)],
)
def test_bound_of_extrapolation(kernel, d, degree):
    """Values are within 3 deviations for each term of the mean in their window."""
    rng = np.random.default_rng(0)
    keys, values = rng.standard_t(2, size=(40, d)), rng.standard_t(2, size=(40, 1))
    queries = np.append(rng.normal(size=(40, d)) * 10.0 ** rng.uniform(-1, 6, (40, 1)), keys)
    queries = queries.reshape(-1, d)
    for bandwidth in (0.1, 1.0, 10.0):
        options = dict(kernel=kernel, bandwidth=bandwidth)
        found = attend_local(queries, keys, values, degree=degree, **options).values
        columns = np.hstack([values, values**2])
        mean, squares = attend(queries, keys, columns, **options)[0].T
        deviation = np.sqrt((squares - mean**2).clip(0))
        n_terms = math.comb(d + degree, degree) - 1
        bound = 3 * np.sqrt(n_terms) * deviation
        assert (np.abs(found[:, 0] - mean) <= bound * (1 + 1e-9) + 1e-6).all()


def test_tensors_in_tensors_out():
    tables = make_data()
    expected = attend_local(*tables, bandwidth=0.5)
    assert expected.slopes.shape == (25, 2, 2)
    tensors = attend_local(*map(torch.as_tensor, tables), bandwidth=0.5)
    assert isinstance(tensors.slopes, torch.Tensor)
    np.testing.assert_allclose(tensors.values, expected.values, rtol=1e-12)


def test_signed_kernels_and_other_degrees_are_refused():
    queries, keys, values = make_data()
    for function in (attend_local, local_rows):
        with pytest.raises(
            ValueError, match=r"kernel=.*negative values.*choose a positive ker"
        ):
            function(queries, keys, values, "silverman", degree=1)
    for degree in (0, 4, 1.5, True, "1", None):
        with pytest.raises(ValueError, match=r"degree=.* is not valid: pass 1, 2 or 3"):
            attend_local(queries, keys, values, degree=degree)


@pytest.mark.parametrize(("degree", "lightest"), [(1, 1e-20), (2, 1e-9)])
def test_keys_that_spread_far_less_than_the_queries(degree, lightest):
    """One key has nearly all weight, so terms are in a unit far smaller than windows."""
    rng = np.random.default_rng(0)
    keys, values = rng.normal(size=(12, 3)), rng.normal(size=(12, 2))
    weights = np.where(np.arange(12) == 4, 1.0, lightest)
    queries = np.vstack([keys, keys + 0.1 * rng.normal(size=keys.shape)])
    own = np.append(np.full(12, 4), np.full(12, -1))
    options = dict(degree=degree, sample_weight=weights)
    rows = local_rows(queries, keys, values, **options)
    fit = attend_local(queries, keys, values, leave_one_out=own, **options)
    whole = attend_local(queries, keys, values, **options)
    for i in range(24):
        # A query alone is the middle of its group.
        one = local_rows(queries[[i]], keys, values, **options)
        np.testing.assert_allclose(rows.values[i], one.values[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(rows.effects[i], one.effects[0], rtol=1e-5, atol=1e-5)
        one = attend_local(queries[[i]], keys, values, leave_one_out=own[[i]], **options)
        np.testing.assert_allclose(fit.values[i], one.values[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(fit.slopes[i], one.slopes[0], rtol=1e-5, atol=1e-5)
        one = attend_local(queries[[i]], keys, values, **options)
        np.testing.assert_allclose(whole.slopes[i], one.slopes[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("distance", "degree"), [(1e57, 3), (1e100, 2), (1e308, 1)])
def test_no_query_is_too_far_for_numbers(distance, degree):
    rng = np.random.default_rng(0)
    keys, values = rng.normal(size=(20, 3)), rng.normal(size=20)
    for algorithm in "auto", "dense":
        fit = attend_local(
            np.eye(3) * distance, keys, values, degree=degree, algorithm=algorithm
        )
        assert (np.abs(fit.values) <= np.abs(values).max()).all()


def test_ridges_beyond_single_precision_are_infinite():
    rng = np.random.default_rng(0)
    keys, values = (rng.normal(size=shape).astype(np.float32) for shape in ((20, 2), 20))
    fit = attend_local(keys[:2] + np.float32(1e15), keys, values, degree=2)
    assert fit.ridge.dtype == np.float32
    assert (fit.ridge == np.inf).all()
    assert np.isfinite(fit.values).all()
