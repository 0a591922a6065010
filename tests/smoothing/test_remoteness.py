"""Distances of places from rows, and on which sides rows are."""

import numpy as np
import pytest

from sklearn_attention import LocalPolynomialRegressor, NadarayaWatsonRegressor
from sklearn_attention.kernels import AitchisonAitken, ProductKernel
from sklearn_attention.smoothing._local_errors import widened
from sklearn_attention.smoothing._remoteness import Remoteness, one_sided


def test_distances_are_beyond_four_times_the_median():
    rows = np.array([0.0, 1.0, 3.0, 6.0, 6.5])[:, None]
    remoteness = Remoteness(rows)
    assert remoteness.usual == 4.0  # of 1, 1, 2, .5 and .5
    np.testing.assert_allclose(
        remoteness.beyond(np.array([[-9.0], [2.0], [12.0]])), [5, 0, 1.5]
    )
    np.testing.assert_array_equal(remoteness.of()[0], 0)


def test_sides():
    rows = np.array([[0.0], [1.0]])
    found = one_sided(np.array([[0.5], [0.25], [3.0], [-1.0], [0.0]]), rows)
    # Two rows of weights one over squared distances.
    np.testing.assert_allclose(found, [0, 0.8, 1, 1, 1], atol=1e-12)
    circle = np.stack([np.cos(np.arange(8) * np.pi / 4), np.sin(np.arange(8) * np.pi / 4)], 1)
    assert one_sided(np.zeros((1, 2)), circle)[0] < 1e-12
    assert one_sided(np.array([[30.0, 0]]), circle)[0] > 0.99


@pytest.mark.parametrize("places", [np.zeros((9, 1)), np.zeros((1, 2)), np.zeros((5, 0))])
def test_rows_in_one_place_are_as_far_as_anything(places):
    remoteness = Remoteness(places)
    for distances, sides in (remoteness.of(), remoteness.of(places[:3])):
        np.testing.assert_array_equal(distances, 0)
        assert (sides >= 0).all()


def test_rows_of_weight_0_are_no_rows():
    x = np.arange(10.0)[:, None]
    model = LocalPolynomialRegressor(bandwidth=2.0).fit(x, x[:, 0], 1.0 * (x[:, 0] < 8))
    remoteness = model.smoother_.remoteness_of_rows
    np.testing.assert_allclose(remoteness.beyond(np.array([[9.0]]) / 2), [0.0])
    np.testing.assert_allclose(remoteness.beyond(np.array([[17.0]]) / 2), [5 - 2])


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_windows_have_many_rows_everywhere(kernel):
    x = np.random.default_rng(0).uniform(size=(200, 1))
    model = NadarayaWatsonRegressor(kernel, bandwidth=0.05).fit(x, x[:, 0])
    wide = widened(model.smoother_, 20)
    weights = wide.weights(np.array([[0.5], [1.0], [1.3], [2.0], [10.0], [1e4]]))
    assert (1 / (weights**2).sum(axis=1)).min() > 8
    # Among rows windows are as they are for all.
    alike = wide.replace(remoteness=None).weights(x[:5])
    np.testing.assert_allclose(wide.weights(x[:5]), alike, rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "n_columns"), [("gaussian", 2), ("periodic", 0), (ProductKernel("tricube"), 2)]
)
def test_distances_are_along_what_the_kernel_falls_along(data, kernel, n_columns):
    X, y = data
    model = NadarayaWatsonRegressor(kernel, bandwidth=[0.8, 2.0]).fit(X, y)
    found = model.smoother_.places(X)
    np.testing.assert_allclose(found, (X / [0.8, 2.0])[:, :n_columns])
    assert np.isfinite(model.predict_interval(3 * X[:5])).all()


def test_codes_of_categories_have_no_distance(data):
    X, y = data
    product = ProductKernel(
        [("x", "gaussian", [0]), ("level", AitchisonAitken(n_levels=3, lam=0.3), [1])]
    )
    codes = np.column_stack([X[:, 0], np.arange(40) % 3])
    model = NadarayaWatsonRegressor(product, bandwidth=[0.5, 1.0]).fit(codes, y)
    assert model.smoother_.places(codes).shape == (40, 1)
