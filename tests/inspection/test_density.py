"""Densities of one and two features, and of a target."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_attention import ProductKernelDensity
from sklearn_attention.inspection import DensityDisplay


def test_a_density_of_one_feature_is_its_curve(curve):
    model = ProductKernelDensity().fit(curve[0])
    display = DensityDisplay.from_estimator(model)
    (grid,) = display.grid
    assert_allclose(display.density, np.exp(model.score_samples(grid[:, None])))
    assert_allclose(np.trapezoid(display.density, grid), 1, atol=0.01)
    assert_allclose(display.ax_.lines[0].get_ydata(), display.density)


def test_contours_hold_their_share_of_the_rows(table, density):
    display = DensityDisplay.from_estimator(density)
    x, y = display.grid
    cells = (x[1] - x[0]) * (y[1] - y[0])
    assert_allclose(display.density.sum() * cells, 1, atol=0.02)
    own = np.exp(density.score_samples(table[0][["size", "age"]]))
    for level, share in zip(display.levels, [0.95, 0.8, 0.5], strict=True):
        assert abs(np.mean(own >= level) - share) <= 1 / len(own) + 1e-12
    places = np.array([[x[30], y[60]]])
    found = np.exp(density.score_samples(table[0][["size", "age"]].iloc[:1] * 0 + places))
    assert_allclose(display.density[60, 30], found[0])  # rows are along y
    assert display.ax_.get_ylabel() == "age"


def test_a_conditional_density_has_quantiles(conditional):
    display = DensityDisplay.from_estimator(conditional, grid_resolution=50)
    x, y = display.grid
    found = conditional.score_samples(np.full((50, 1), x[10]), y)
    assert_allclose(display.density[:, 10], np.exp(found))
    assert_allclose(display.ax_.lines[1].get_ydata(), display.quantiles[:, 1])


def test_a_density_of_many_features_is_refused(table):
    with pytest.raises(ValueError, match=r"3 features.*2 numeric features at most"):
        DensityDisplay.from_estimator(ProductKernelDensity(bandwidth="scott").fit(table[0]))
