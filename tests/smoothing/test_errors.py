"""Errors of predictions where rows are few or far, and windows of many errors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from smoothing_cases import case_of, refit_without, take, wave

from sklearn_attention import LocalPolynomialRegressor, NadarayaWatsonRegressor
from sklearn_attention.smoothing._model_error import ModelError


@pytest.mark.parametrize("kind", ["weights-0", "absent-2", "frame-1"])
def test_variances_are_those_of_fits_without_each_row(kind, monkeypatch):
    model, X, y, weight = case_of(kind)
    # Of the distance, which other tests are about, nothing.
    monkeypatch.setattr(ModelError, "squares", lambda *_: np.zeros((1, 1)))
    model.set_params(empty="nan").fit(X, y, weight)
    counts = np.ones(len(y)) if weight is None else weight
    kept = np.flatnonzero(counts)
    for i in kept[:4]:
        rest = np.flatnonzero(np.arange(len(y)) != i)
        other = refit_without(model, X, y, i, weight)
        effects = other.smoother_matrix(take(X, [i]))[0]
        some = counts[rest] > 0
        unit = counts[kept].mean()
        fit = np.sum(effects[some] ** 2 * unit / counts[rest][some])
        noise = 1.0
        if weight is not None:
            averages = clone(model).set_params(degree=0).fit(X, y, weight)
            near = refit_without(averages, X, y, i, weight).smoother_matrix(take(X, [i]))[0]
            noise = near[some] @ (unit / counts[rest][some])
        errors = model.smoother_.errors
        found = errors.loo_residuals[i, 0] / errors.standardized[i, 0]
        np.testing.assert_allclose(found, np.sqrt(noise + fit), rtol=1e-6)


@pytest.mark.parametrize(
    ("method", "degree"),
    [("predict_interval", 0), ("confidence_band", 1), ("predict_quantiles", 1)],
)
def test_far_away_nothing_is_known(method, degree):
    ends = getattr(wave(degree=degree), method)(np.array([[0.5], [2.0], [4.0], [1e4]]))
    here, far, further, furthest = ends[:, -1] - ends[:, 0]
    assert far > 3 * here
    assert further > 1.5 * far
    assert furthest > 100 * far


@pytest.mark.filterwarnings("ignore:bandwidth=")
def test_errors_are_those_of_rows_predicted_across_the_gap():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 60)
    y = 1.4 * np.sin(2 * np.pi * x + 1) + 0.5 * np.cumsum(rng.normal(size=60)) / 4
    model = LocalPolynomialRegressor(degree=1, gap=5).fit(x[:, None], y)
    errors = model.smoother_.errors.loo_residuals[:, 0]
    fixed = LocalPolynomialRegressor(degree=1, bandwidth=float(model.bandwidth_[0]))
    for i in (0, 20, 57):
        far = np.abs(np.arange(60) - i) > 5
        fixed.fit(model.keys_[far], model.values_[far])
        expected = model.values_[i] - fixed.predict(model.keys_[[i]])[0]
        assert errors[i] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_windows_have_many_rows_everywhere(kernel):
    x = np.random.default_rng(0).uniform(size=(200, 1))
    model = NadarayaWatsonRegressor(kernel, bandwidth=0.05).fit(x, x[:, 0])
    wide = model.smoother_.errors.scale_windows
    weights = wide.weights(np.array([[0.5], [1.0], [1.3], [2.0], [10.0], [1e4]]))
    assert (1 / (weights**2).sum(axis=1)).min() > 8
    # Among rows windows are as they are for all.
    alike = wide.smoother.weights(x[:5])
    np.testing.assert_allclose(wide.weights(x[:5]), alike, rtol=1e-12)


def test_sizes_of_errors_are_those_of_other_rows_around():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 120)
    y = np.where(x < 0.5, 0.05, 1.0) * rng.normal(size=120)
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(x[:, None], y)
    errors = np.abs(model.smoother_.errors.standardized[:, 0])
    around, there = model.smoother_.errors.mean_sizes
    weights = around.weights(x[:, None])
    np.fill_diagonal(weights, 0)
    expected = weights @ errors / weights.sum(axis=1)
    np.testing.assert_allclose(there[:, 0], expected, rtol=1e-7)


@pytest.mark.parametrize("ordered", [False, True])
def test_distributions_of_errors_reach_beyond_a_level_of_few_rows(ordered):
    """As far as levels count alike, if that is what it takes; rows of the level count most."""
    rng = np.random.default_rng(0)
    shop, x = np.repeat(np.arange(12), 7), rng.uniform(size=84)
    y = 20 * rng.normal(size=12)[shop] + rng.normal(size=84)
    names = pd.Categorical(shop, ordered=ordered)
    X = pd.DataFrame({"x": x, "shop": names})
    model = NadarayaWatsonRegressor(bandwidth=[0.3, 1e-3]).fit(X, y)
    errors = model.smoother_.errors
    for wide, n_rows in ((errors.scale_windows, 20), (errors.distribution_windows, 40)):
        weights = wide.weights(model.keys_)
        share = weights.diagonal().mean()
        assert 1 / (2 * n_rows) < share <= 1 / n_rows
        for row, own in zip(weights, shop, strict=True):
            assert row[shop == own].min() > row[shop != own].max()
    # So 90 % intervals of shops of few rows are not those of seven errors alone.
    inside = model.predict_quantiles(X, [0.05, 0.95])
    assert np.mean((inside[:, 0] <= y) & (y <= inside[:, 1])) > 0.85


def test_windows_within_levels_of_many_rows_stay_there():
    rng = np.random.default_rng(0)
    shop, x = np.repeat(np.arange(3), 80), rng.uniform(size=240)
    X = pd.DataFrame({"x": x, "shop": shop.astype(str)})
    model = NadarayaWatsonRegressor(bandwidth=[0.05, 0.0]).fit(X, x + rng.normal(size=240))
    weights = model.smoother_.errors.distribution_windows.weights(model.keys_)
    assert not weights[shop[:, None] != shop].any()
