"""Densities of one and two features, and of a target."""

import numpy as np
import pandas as pd
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


def test_rows_to_mark_are_the_range(table, density, conditional, curve):
    rows = table[0][["size", "age"]][:9]
    display = DensityDisplay.from_estimator(density, rows, table[1][:9], grid_resolution=9)
    assert_allclose(display.points, rows)
    ends = rows.to_numpy().min(axis=0) - 3 * density.bandwidth_
    assert_allclose([own[0] for own in display.grid], ends)
    whole = DensityDisplay.from_estimator(density, grid_resolution=9)
    assert_allclose(display.levels, whole.levels)
    X, y = curve
    some = pd.DataFrame({"x": X[:5, 0]}), pd.Series(y[:5], name="height")
    display = DensityDisplay.from_estimator(conditional, some[0].to_numpy(), some[1])
    assert_allclose(display.points, np.column_stack([X[:5], y[:5]]))
    assert display.grid[0][-1] == X[4, 0]
    assert display.ax_.get_ylabel() == "height"
    with pytest.raises(ValueError, match=r"3 features.*, 0 of them categories, which cannot"):
        DensityDisplay.from_estimator(ProductKernelDensity(bandwidth="scott").fit(table[0]))
    with pytest.raises(ValueError, match="y=None, but X is given"):
        DensityDisplay.from_estimator(conditional, X)
    with pytest.raises(ValueError, match=r"y has shape \(5,\), but X has 120 rows"):
        DensityDisplay.from_estimator(conditional, X, y[:5])


def test_rows_in_dask_are_passed(curve):
    array = pytest.importorskip("dask.array")
    X = np.column_stack([curve[0], curve[1]])
    model = ProductKernelDensity(bandwidth=0.5).fit(array.from_array(X, chunks=(60, 2)))
    with pytest.raises(ValueError, match=r"X=None, .* pass those to be marked"):
        DensityDisplay.from_estimator(model)
    display = DensityDisplay.from_estimator(model, X, grid_resolution=9)
    whole = ProductKernelDensity(bandwidth=0.5).fit(X)
    other = DensityDisplay.from_estimator(whole, grid_resolution=9)
    assert_allclose(display.density, other.density, atol=1e-12)
    assert_allclose(display.levels, other.levels)


def test_a_row_of_weight_two_counts_twice_in_contours():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(40, 2)), rng.integers(1, 9, 40)
    model = ProductKernelDensity(bandwidth=[0.3, 0.4])
    levels = []
    for data in ((X, None, weights), (np.repeat(X, weights, axis=0),)):
        display = DensityDisplay.from_estimator(model.fit(*data), grid_resolution=9)
        levels.append(display.levels)
    assert_allclose(*levels)
