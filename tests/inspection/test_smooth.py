"""A curve, its band and its intervals are what the estimator says."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import NadarayaWatsonRegressor
from sklearn_attention.inspection import SmoothDisplay


def test_a_smooth_has_data_curve_band_and_interval(curve, smoother):
    X, y = curve
    display = SmoothDisplay.from_estimator(smoother, X, y, band="simultaneous", coverage=0.8)
    grid = display.grid[:, None]
    assert_allclose(display.curve, smoother.predict(grid))
    assert_allclose(display.band, smoother.confidence_band(grid, 0.8, simultaneous=True))
    assert_allclose(display.interval, smoother.predict_interval(grid, 0.8))
    points, areas = display.ax_.collections[-1], display.ax_.collections[:-1]
    assert_allclose(points.get_offsets(), np.column_stack([X[:, 0], y]))
    assert len(areas) == 2
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["new observations, 80 %", "curve, 80 %", "prediction"]


def test_intervals_of_a_smooth_follow_the_noise(curve, smoother):
    display = SmoothDisplay.from_estimator(smoother, *curve, interval="heteroscedastic")
    grid = display.grid[:, None]
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature": "b"}, "feature='b' is not a column"),
        ({"band": "wide"}, "band='wide'"),
        ({"interval": "wide"}, "interval='wide'"),
        ({"grid_resolution": 0}, "grid_resolution=0"),
    ],
)
def test_a_smooth_refuses_what_it_cannot_draw(curve, smoother, options, message):
    with pytest.raises(ValueError, match=message):
        SmoothDisplay.from_estimator(smoother, *curve, **options)
