"""A curve, its band and its intervals are what the estimator says."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import (
    ConditionalKernelDensity,
    KernelAttentionRegressor,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.inspection import SmoothDisplay


def test_a_smooth_has_data_curve_band_and_interval(curve, smoother):
    X, y = curve
    options = {"coverage": 0.8, "grid_resolution": 20}
    display = SmoothDisplay.from_estimator(smoother, X, y, band="simultaneous", **options)
    grid = display.grid[:, None]
    assert_allclose(display.curve, smoother.predict(grid))
    assert_allclose(display.band, smoother.confidence_band(grid, 0.8, simultaneous=True))
    assert_allclose(display.interval, smoother.predict_interval(grid, 0.8))
    points, areas = display.ax_.collections[-1], display.ax_.collections[:-1]
    assert_allclose(points.get_offsets(), np.column_stack([X[:, 0], y]))
    assert len(areas) == 2
    labels = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert labels == ["new observations, 80 %", "curve, 80 %, bias-corrected", "prediction"]
    options = {"interval": "heteroscedastic", "grid_resolution": 20}
    display = SmoothDisplay.from_estimator(smoother, *curve, **options)
    assert_allclose(display.interval, smoother.predict_interval(grid, heteroscedastic=True))


def test_other_features_are_at_their_medians(table):
    X, y = table
    X = X.assign(kind=np.where(np.arange(len(X)) % 3, "a", "b"))
    X["kind"] = X["kind"].astype("category")
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y)
    display = SmoothDisplay.from_estimator(model, X, y, feature="age", band=None)
    rows = pd.DataFrame({"age": display.grid})
    rows.insert(0, "size", X["size"].median())
    rows["noise"] = X["noise"].median()
    rows["kind"] = pd.Categorical(["a"] * len(rows), X["kind"].cat.categories)
    assert_allclose(display.curve, model.predict(rows))
    assert display.ax_.get_xlabel() == "age"
    assert display.ax_.get_ylabel() == "price"


def test_any_regressor_and_pipelines_are_drawn(curve):
    X, y = curve
    line = LinearRegression().fit(X, y)
    display = SmoothDisplay.from_estimator(line, X, y)
    assert display.band is None
    assert display.interval is None
    scaled = make_pipeline(StandardScaler(), NadarayaWatsonRegressor()).fit(X, y)
    display = SmoothDisplay.from_estimator(scaled, X, y)
    assert_allclose(display.curve, scaled.predict(display.grid[:, None]))
    assert display.band is not None


def test_rows_that_the_estimator_remembers(curve, smoother, table, averages):
    display = SmoothDisplay.from_estimator(smoother, interval=False)
    other = SmoothDisplay.from_estimator(smoother, *curve, interval=False)
    for name in ("x", "y", "grid", "curve", "band"):
        assert_allclose(getattr(display, name), getattr(other, name))
    X, y = table
    display = SmoothDisplay.from_estimator(averages, feature="age", band=None, interval=False)
    other = SmoothDisplay.from_estimator(averages, X, y, feature="age", band=None)
    assert_allclose(display.curve, other.curve)
    assert display.names == ("age", "y")
    conditional = ConditionalKernelDensity(bandwidth=0.1, target_bandwidth=1.0).fit(*curve)
    assert_allclose(SmoothDisplay.from_estimator(conditional).y, curve[1])


def test_only_a_band_around_another_fit_is_called_corrected(curve, smoother):
    display = SmoothDisplay.from_estimator(smoother, interval=False)
    assert display.bias_corrected
    plain = SmoothDisplay(curve[0][:, 0], curve[1], display.grid, display.curve,
                          band=display.band).plot()  # fmt: skip
    labels = [text.get_text() for text in plain.figure_.legends[0].get_texts()]
    assert labels == ["curve, 90 %", "prediction"]
    # Kernels of both signs have no band.
    model = NadarayaWatsonRegressor("linear", bandwidth=1.0).fit(curve[0] + 1, curve[1])
    assert SmoothDisplay.from_estimator(model, interval=False).band is None


LINE = LinearRegression()
AVERAGE = NadarayaWatsonRegressor(bandwidth=0.1)


@pytest.mark.parametrize(
    ("model", "given", "options", "message"),
    [
        (AVERAGE, "Xy", {"feature": "b"}, "feature='b' is not a column"),
        (AVERAGE, "Xy", {"band": "wide"}, "band='wide'"),
        (AVERAGE, "Xy", {"grid_resolution": 0}, "grid_resolution=0"),
        (AVERAGE, "X", {}, "y=None, but X is given"),
        (AVERAGE, "Xy", {"y": np.zeros(3)}, "y has 3 targets, but X has"),
        (
            make_pipeline(StandardScaler(), AVERAGE),
            "",
            {},
            "X=None, but Pipeline remembers no rows",
        ),
        (LINE, "Xy", {"band": "pointwise"}, r"band='pointwise' is not available.*: pass None"),
        (LINE, "Xy", {"interval": True}, r"interval=True is not available.*: pass False"),
        (
            KernelAttentionRegressor(max_steps=2, n_folds=1),
            "",
            {"interval": "heteroscedastic"},
            r"interval='heteroscedastic' is not available.*: pass True",
        ),
    ],
)
def test_a_smooth_refuses_what_it_cannot_draw(curve, model, given, options, message):
    rows = {name: part for name, part in zip("Xy", curve, strict=True) if name in given}
    with pytest.raises(ValueError, match=message):
        SmoothDisplay.from_estimator(clone(model).fit(*curve), **rows | options)


def test_rows_of_which_no_curve_can_be_drawn(curve, tmp_path):
    X, y = curve
    map_rows = np.memmap(tmp_path / "X", np.float64, "w+", shape=X.shape)
    map_rows[:] = X
    with pytest.raises(ValueError, match=r"X=None, .*or in a memory map, which are not"):
        SmoothDisplay.from_estimator(clone(AVERAGE).fit(map_rows, y))
    model = clone(AVERAGE).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=r"y has shape \(120, 2\)"):
        SmoothDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="NadarayaWatsonRegressor, which has 2 outputs: pass"):
        SmoothDisplay.from_estimator(model, X, y)


def test_missing_numbers_do_not_count_for_the_range_of_a_feature(curve):
    X, y = curve[0].copy(), curve[1]
    X[::9] = np.nan
    model = HistGradientBoostingRegressor(max_iter=2).fit(X, y)
    display = SmoothDisplay.from_estimator(model, X, y, grid_resolution=5)
    assert_allclose(display.grid, np.linspace(np.nanmin(X), np.nanmax(X), 5))
    assert np.isfinite(display.curve).all()


def test_a_component_has_its_band_and_partial_residuals(table):
    X, y = table
    model = LocalPolynomialRegressor(structure="additive").fit(X, y)
    display = SmoothDisplay.from_estimator(model, feature="age", coverage=0.8)
    j = list(X.columns).index("age")
    keys, smoother = model.keys_, model.smoother_
    component, std = smoother.component(j, keys)
    residuals = y - model.fitted_values_
    assert_allclose(display.y, component[:, 0] + residuals)
    rows = np.repeat(keys[:1], len(display.grid), axis=0)
    rows[:, j] = display.grid
    component, std = smoother.component(j, rows)
    assert_allclose(display.curve, component[:, 0])
    assert_allclose(np.diff(display.band)[:, 0], 2 * norm.ppf(0.9) * std[:, 0])
    assert display.ax_.get_ylabel() == "component of age"
    labels = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert labels == ["component, 80 %", "component"]
    # Predictions are drawn if they are asked for.
    for options in ({"band": "simultaneous"}, {"interval": True}):
        display = SmoothDisplay.from_estimator(model, feature="age", **options)
        assert not display.is_component
