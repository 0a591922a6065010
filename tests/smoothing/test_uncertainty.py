"""Intervals, bands, quantiles: against models fitted again and sums written out."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from smoothing_cases import (
    case_of,
    growth_at,
    growth_of_rows,
    jackknife_plus,
    refit_without,
    rows_at,
    take,
    window_of,
)

from sklearn_attention import (
    ConditionalKernelDensity,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
    _blocks,
)


class TestIntervals:
    @pytest.mark.parametrize(("kind", "degree"), [("compact", 1), ("frame", 0), ("knn", 2)])
    def test_are_the_jackknife_plus_and_contain_the_band(self, kind, degree):
        model, X, y, _ = case_of(f"{kind}-{degree}")
        model.fit(X, y)
        queries = take(X, np.arange(6))
        if not isinstance(X, pd.DataFrame):
            queries = queries + 0.05
        join = pd.concat if isinstance(X, pd.DataFrame) else np.concatenate
        values, errors = np.empty((len(y), 6)), np.empty(len(y))
        smoother = model.smoother_
        of_rows, rows = growth_of_rows(model), model._read_rows(queries)
        scale = smoother.errors.expected_size(rows, smoother.local_rows(rows).effects)[:, 0]
        for i in range(len(y)):
            found = refit_without(model, X, y, i).predict(join([queries, take(X, [i])]))
            values[i] = found[:6]
            errors[i] = abs(y[i] - found[6]) / of_rows[i, 0]
        for coverage in (0.5, 0.8, 0.9):
            expected = [
                jackknife_plus(values[:, q], scale[q] * errors, coverage) for q in range(6)
            ]
            lower, upper = np.transpose(expected)
            band = model.confidence_band(queries, coverage).T
            expected = np.transpose([np.fmin(lower, band[0]), np.fmax(upper, band[1])])
            found = model.predict_interval(queries, coverage)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)

    def test_are_never_narrower_than_the_band(self):
        # Noise grows fifty times: where it is largest, intervals of equal width are too narrow.
        rng = np.random.default_rng(0)
        x = np.sort(rng.uniform(size=150))
        y = np.sin(6 * x) + (0.02 + x**4) * rng.normal(size=150)
        model = LocalPolynomialRegressor(bandwidth=0.04, degree=1).fit(x[:, None], y)
        queries = np.linspace(-0.05, 1.05, 40)[:, None]
        band, intervals = model.confidence_band(queries), model.predict_interval(queries)
        assert (intervals[:, 0] <= band[:, 0]).all()
        assert (band[:, 1] <= intervals[:, 1]).all()
        assert (intervals == band).any()

    @pytest.mark.parametrize(("n", "finite"), [(8, False), (9, True)])
    def test_few_rows_have_infinite_ends(self, n, finite):
        # 90 % of n + 1 must not be more than n.
        x = np.linspace(0, 1, n)
        model = LocalPolynomialRegressor(bandwidth=0.3, degree=1).fit(x[:, None], x**2)
        found = model.predict_interval(x[:, None])
        assert np.isfinite(found).all() == finite
        if not finite:
            np.testing.assert_array_equal(found, [[-np.inf, np.inf]] * n)

    def test_heteroscedastic_ones_follow_the_noise(self):
        rng = np.random.default_rng(0)
        x = rng.uniform(0, 1, 200)
        y = np.sin(6 * x) + np.where(x < 0.5, 0.1, 1.0) * rng.normal(size=200)
        model = LocalPolynomialRegressor(bandwidth=0.1, degree=1).fit(x[:, None], y)
        grid = np.array([[0.1], [0.25], [0.75], [0.9]])
        same = np.diff(model.predict_interval(grid), axis=1)[:, 0]
        local = np.diff(model.predict_interval(grid, heteroscedastic=True), axis=1)[:, 0]
        assert same.max() < 1.2 * same.min()
        assert (local[:2] < 0.6 * same[:2]).all()
        assert (local[2:] > same[2:]).all()

    def test_rows_without_prediction_make_ends_infinite(self):
        # Of ten rows three see no other; 70 % of eleven are more than the seven left.
        x = np.concatenate([np.linspace(0, 0.6, 7), [5.0, 10.0, 20.0]])
        model = NadarayaWatsonRegressor("boxcar", bandwidth=1.0, empty="nan")
        model.fit(x[:, None], np.sin(9 * x))
        assert np.isnan(model.loo_residuals_).sum() == 3
        assert np.isfinite(model.predict_interval([[0.3]], 0.6)).all()
        np.testing.assert_array_equal(model.predict_interval([[0.3]], 0.7), [[-np.inf, np.inf]])
        signed = NadarayaWatsonRegressor("silverman", bandwidth=0.8).fit(x[:, None], x)
        for fitted, message in (
            (model, r"3 of 10 training rows.*empty='nearest'"),
            (signed, "takes negative values"),
        ):
            with pytest.raises(ValueError, match=message):
                fitted.predict([[0.3]], return_std=True)
            with pytest.raises(ValueError, match=message):
                fitted.predict_quantiles([[0.3]])

    @pytest.mark.parametrize("coverage", [0, "0.9", [0.9]])
    def test_coverage_is_checked(self, data, coverage):
        model = NadarayaWatsonRegressor(bandwidth=0.5).fit(*data)
        for ask in (model.predict_interval, model.confidence_band):
            with pytest.raises(ValueError, match=r"coverage=.* a number between 0 and 1"):
                ask(data[0], coverage)


class TestStandardDeviation:
    @pytest.mark.parametrize(
        ("kind", "degree"), [("frame", 0), ("plain", 1), ("weights", 2), ("outputs", 0)]
    )
    def test_is_the_local_average_of_squared_errors(self, kind, degree):
        model, X, y, weight = case_of(f"{kind}-{degree}")
        model.fit(X, y, weight)
        # The weights of the kernel, whatever polynomial is fitted with them: rows count alike.
        averages = clone(model).set_params(degree=0).fit(X, y)
        of_rows, scale = growth_of_rows(model), growth_at(model, model.keys_)
        errors = model.loo_residuals_.reshape(len(y), -1) / of_rows
        expected = scale * np.sqrt(averages.smoother_matrix(X) @ errors**2)
        expected = expected.reshape(y.shape)
        found, std = model.predict(X, return_std=True)
        np.testing.assert_array_equal(found, model.predict(X))
        assert std.shape == y.shape
        np.testing.assert_allclose(std, expected, rtol=1e-9)


def places_and_weights(model, query):
    """The conditional distribution at one query, from the kernel's weights alone."""
    wide, factor = window_of(model, 40)
    weights = rows_at(wide, query, 0, factor, weighted=False).weights[0]
    scale = growth_at(model, query)
    errors = model.loo_residuals_ / growth_of_rows(model)[:, 0]
    return model.predict(query)[0] + scale[0, 0] * (errors - weights @ errors), weights


class TestDistribution:
    @pytest.fixture
    def model(self, data):
        return LocalPolynomialRegressor(bandwidth=0.5, degree=1).fit(*data)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_quantiles_and_cdf_equal_their_definitions(self, model, data, weighted):
        X, y = data
        if weighted:
            model.fit(X, y, np.random.default_rng(3).integers(0, 4, 40))
        asked = [0.03, 0.25, 0.5, 0.81]
        thresholds = [-1.0, 0.0, 0.4, 5.0]
        queries = X[:3] * 0.9
        quantiles = model.predict_quantiles(queries, asked)
        cdf = model.predict_cdf(queries, thresholds)
        assert quantiles.shape == cdf.shape == (3, 4)
        assert (np.diff(quantiles, axis=1) >= 0).all()
        assert (np.diff(cdf, axis=1) >= 0).all()
        for q in range(3):
            places, weights = places_and_weights(model, queries[[q]])
            order = np.argsort(places)
            for k, quantile in enumerate(asked):
                reached = 0.0
                for i in order:
                    reached += weights[i]
                    if reached >= quantile:
                        break
                assert quantiles[q, k] == pytest.approx(places[i], abs=1e-8)
            for k, threshold in enumerate(thresholds):
                below = math.fsum(weights[places <= threshold])
                assert cdf[q, k] == pytest.approx(below, abs=1e-9)

    @pytest.mark.parametrize(
        ("method", "asked", "message"),
        [
            ("predict_quantiles", [0.5, 1.0], "quantiles=1.0 is not valid: pass a number betw"),
            ("predict_quantiles", [0.1, np.nan], r"quantiles=.*a list of numbers: pass a list"),
            ("predict_quantiles", torch.ones(1, requires_grad=True), r"quantiles\.detach"),
            ("predict_cdf", [], r"^y=.*a list of numbers: pass a list"),
            ("predict_cdf", [[1.0]], r"^y.*fit 40 queries: pass an array"),
            ("predict_cdf", np.full((40, 1), np.nan), r"^y.*fit 40 queries: pass an array"),
        ],
    )
    def test_what_is_asked_is_checked(self, model, data, method, asked, message):
        with pytest.raises((TypeError, ValueError), match=message):
            getattr(model, method)(data[0], asked)

    def test_each_query_may_have_its_own_thresholds(self, model, data, monkeypatch):
        X, y = data
        monkeypatch.setattr(_blocks, "ROWS_AT_ONCE", 300)
        own = np.column_stack([y, y - 0.5])
        common = model.predict_cdf(X, own.T.ravel())
        found = model.predict_cdf(X, own)
        assert found.shape == (40, 2)
        np.testing.assert_allclose(found[:, 0], np.diag(common[:, :40]), rtol=1e-12)
        np.testing.assert_allclose(found[:, 1], np.diag(common[:, 40:]), rtol=1e-12)
        both = clone(model).fit(X, np.column_stack([y, -y])).predict_cdf(X, own)
        np.testing.assert_allclose(both[:, :, 0], found, rtol=1e-9)


def test_blocks_of_queries_change_nothing(monkeypatch):
    model, X, y, weight = case_of("knn-2")
    model.fit(X, y, weight)
    asks = [
        lambda m: m.predict_interval(X, 0.6),
        lambda m: m.effective_dof_,
        lambda m: m.confidence_band(X, simultaneous=True, n_resamples=50),
        lambda m: m.predict_quantiles(X),
        lambda m: m.predict_cdf(X, [0.0, 1.0]),
    ]
    whole = [ask(model) for ask in asks]
    monkeypatch.setattr(_blocks, "ROWS_AT_ONCE", 100)
    fresh = clone(model).fit(X, y, weight)
    for ask, expected in zip(asks, whole, strict=True):
        np.testing.assert_allclose(ask(fresh), expected, rtol=1e-9, atol=1e-9)


def test_probabilities_are_at_most_one():
    rng = np.random.default_rng(5)
    X, queries = rng.uniform(-1, 1, (60, 2)), rng.uniform(-1, 1, (1000, 2))
    for model in (
        NadarayaWatsonRegressor(bandwidth=0.5),
        ConditionalKernelDensity(bandwidth="scott", target_bandwidth="scott"),
    ):
        found = model.fit(X, X[:, 0]).predict_cdf(queries, [-10.0, 10.0])
        assert found.max() == 1.0
        assert found.min() >= 0.0
