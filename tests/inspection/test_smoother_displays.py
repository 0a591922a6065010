"""Displays of smoothers, densities and kernels draw what the estimators say."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import (
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
)
from sklearn_attention.inspection import (
    BandwidthDisplay,
    CoverageDisplay,
    DensityDisplay,
    KernelDisplay,
    LengthScaleDisplay,
    SmoothDisplay,
)


def test_a_bandwidth_search_is_drawn_with_its_choice(smoother):
    display = BandwidthDisplay.from_estimator(smoother)
    tried = smoother.bandwidth_search_
    order = np.argsort(tried["bandwidth"][:, 0])
    curve, chosen = display.ax_.lines
    assert_allclose(curve.get_xdata(), tried["bandwidth"][order, 0])
    assert_allclose(curve.get_ydata(), tried["criterion"][order])
    assert chosen.get_xdata()[0] == smoother.bandwidth_[0]
    low, high = display.flat_
    assert low <= smoother.bandwidth_[0] <= high
    near = tried["criterion"] <= 1.01 * tried["criterion"].min()
    assert high == tried["bandwidth"][near].max()


def test_a_bandwidth_search_shows_its_valley():
    # Lines in nearly empty windows have errors without bounds.
    X = np.sort(np.random.default_rng(0).uniform(0, 10, (400, 1)), axis=0)
    y = np.sin(X[:, 0]) + 0.4 * np.random.default_rng(1).normal(size=400)
    model = LocalPolynomialRegressor().fit(X, y)
    tried = model.bandwidth_search_
    low, high = BandwidthDisplay.from_estimator(model).ax_.get_ylim()
    plain = tried["criterion"][np.argmax(tried["bandwidth"][:, 0])]
    assert low < tried["criterion"].min() < plain < high < 2 * plain < tried["criterion"].max()


def test_degrees_of_freedom_are_along_the_top(smoother):
    display = BandwidthDisplay.from_estimator(smoother)
    top = next(ax for ax in display.figure_.axes if ax is not display.ax_)
    marks = [float(text.get_text()) for text in top.get_xticklabels()]
    places = np.log(top.get_xticks())
    tried = smoother.bandwidth_search_
    order = np.argsort(tried["degrees_of_freedom"])
    expected = np.interp(
        marks,
        tried["degrees_of_freedom"][order],
        np.log(tried["bandwidth"][order, 0]),
    )
    assert len(marks) >= 3
    assert_allclose(places, expected)
    low, high = np.log(top.get_xlim())
    assert_allclose(top.get_xlim(), display.ax_.get_xlim())
    assert np.abs(np.diff(places)).min() > 0.09 * (high - low)


def test_a_search_over_a_list_has_a_curve_for_each_kernel_and_degree(curve):
    model = LocalPolynomialCV(["gaussian", "tricube"], degrees=(0, 1)).fit(*curve)
    display = BandwidthDisplay.from_estimator(model)
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert len(names) == 4
    assert names[1] == "gaussian, degree 1"
    lowest = min(line.get_ydata().min() for line in display.ax_.lines[:4])
    assert_allclose(lowest, -model.best_score_)


def test_without_a_search_the_remedy_is_named(curve):
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(*curve)
    with pytest.raises(ValueError, match=r"bandwidth=0.1.*use bandwidth='penalized-loo'"):
        BandwidthDisplay.from_estimator(model)


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


def test_coverage_counts_what_lies_within(curve):
    X, y = curve
    model = NadarayaWatsonRegressor(bandwidth=0.02).fit(X[::2], y[::2])
    display = CoverageDisplay.from_estimator(model, X[1::2], y[1::2], coverage=[0.5, 0.9])
    lower, upper = model.predict_interval(X[1::2], 0.5).T
    assert display.actual[0] == np.mean((y[1::2] >= lower) & (y[1::2] <= upper))
    assert_allclose(display.ax_.lines[-1].get_ydata(), display.actual)
    assert display.n_samples == 60
    assert len(display.ax_.collections) == 1
    with pytest.raises(ValueError, match=r"intervals has shape \(1, 60, 3\)"):
        CoverageDisplay.from_predictions(y[1::2], np.zeros((1, 60, 3)), [0.5])


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


def test_kernels_are_drawn_as_they_are():
    display = KernelDisplay.from_kernels(["gaussian", "boxcar"], bandwidth=2.0)
    assert_allclose(display.values["gaussian"], np.exp(-np.square(display.keys / 2) / 2))
    inside = np.abs(display.keys) < 2
    assert (display.values["boxcar"][inside] == 1).all()
    assert display.values["boxcar"][0] == 0


def test_a_smoothers_kernel_is_drawn_along_each_feature(averages):
    display = KernelDisplay.from_estimator(averages)
    assert [name.split(",")[0] for name in display.values] == ["size", "age", "noise"]
    width = np.std(averages.keys_[:, 0]) / averages.bandwidth_[0]
    found = next(iter(display.values.values()))
    assert_allclose(found, np.exp(-np.square(display.keys * width) / 2), atol=1e-12)


def test_length_scales_of_kernel_attention_and_smoothers(kernel_attention, averages):
    display = LengthScaleDisplay.from_estimator(kernel_attention, most=2)
    order = np.argsort(-kernel_attention.feature_relevance_)[:2]
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == [["size", "age", "noise"][j] for j in order]
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert_allclose(widths, kernel_attention.feature_relevance_[order])
    other = LengthScaleDisplay.from_estimator(averages)
    assert_allclose(other.relevance * averages.bandwidth_, averages.keys_.std(axis=0))


@pytest.mark.parametrize(
    "display", [LengthScaleDisplay, DensityDisplay, KernelDisplay], ids=lambda c: c.__name__
)
def test_others_are_refused_by_name(display):
    line = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"LinearRegression .*: pass "):
        display.from_estimator(line)


def test_a_classifier_has_a_bandwidth_search(curve):
    X, y = curve
    model = NadarayaWatsonClassifier().fit(X, y > 0)
    assert BandwidthDisplay.from_estimator(model).bandwidth == model.bandwidth_[0]
