"""A criterion at lists of bandwidths."""

import numpy as np
import pytest
from leave_one_out import leave_one_out_error

from sklearn_attention.bandwidth._candidates import (
    criterion_of_candidates,
    default_bandwidths,
)
from sklearn_attention.kernels import Epanechnikov, Gaussian


def make_data():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (50, 2))
    return X, 100 * np.sin(7 * X) + 30 * rng.normal(size=(50, 2))


def test_candidates_of_any_shape():
    X, values = make_data()
    bandwidths = [0.3, np.array([0.1, 0.2]), 0.6, np.array([0.2, 0.4]), np.array([0.5, 0.1])]
    found = criterion_of_candidates(X, values, Gaussian(), bandwidths)
    expected = [leave_one_out_error(X, values, Gaussian(), h) for h in bandwidths]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    X[0] += 30
    found = criterion_of_candidates(X, values, Epanechnikov(), [0.5, 50.0], empty="nan")
    assert np.isinf(found).tolist() == [True, False]


@pytest.mark.parametrize("bandwidth", [1e-8, 1e-14, 1e9])
def test_candidates_keep_their_digits(bandwidth):
    X, values = make_data()
    pair = np.array([1.0, 1.0 + 3e-13]) * bandwidth
    found = criterion_of_candidates(X * bandwidth, values, Gaussian(), [0.3 * pair])
    expected = leave_one_out_error(X * bandwidth, values, Gaussian(), 0.3 * pair)
    assert found[0] == pytest.approx(expected, rel=1e-9)


def test_candidates_of_very_different_features():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (40, 2)) * [1e-14, 1.0]
    values = np.sin(7e14 * X[:, :1])
    h = np.array([0.1e-14, 0.3])
    found = criterion_of_candidates(X, values, Gaussian(), [h, 2 * h])
    expected = [leave_one_out_error(X, values, Gaussian(), k * h) for k in (1, 2)]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_default_bandwidths():
    X, _ = make_data()
    found = np.array(default_bandwidths(X, Gaussian()))
    assert found.shape == (30, 2)
    np.testing.assert_allclose(found / found[0] / (found / found[0])[:, :1], 1)
    assert (np.diff(found, axis=0) > 0).all()
    assert found[0, 0] < 0.1
    assert found[-1, 0] > 1
