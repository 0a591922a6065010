"""Bands of the curve: against sums written out, and whether they hold it."""

import numpy as np
import pytest
from scipy.stats import t
from sklearn.base import clone
from smoothing_cases import case_of, rows_at, take, window_of

from sklearn_attention import LocalPolynomialRegressor, NadarayaWatsonRegressor

# Bandwidths at which averages, lines and parabolas are nearest to the curve of the test.
BEST = {0: 0.029, 1: 0.036, 2: 0.085}


class TestBands:
    @pytest.mark.parametrize(
        ("kind", "degree"),
        [("plain", 0), ("weights", 1), ("absent", 2), ("outputs", 1), ("frame", 0)],
    )
    def test_pointwise_are_the_explicit_sum(self, kind, degree):
        model, X, y, weight = case_of(f"{kind}-{degree}")
        model.set_params(empty="nan").fit(X, y, weight)
        counts = np.ones(len(y)) if weight is None else weight
        unit = counts[counts > 0].mean()
        errors = model.loo_residuals_.reshape(len(y), -1)
        queries = model.keys_[:7]
        wide, factor = window_of(model, 20)
        assert factor > 1 or weight is not None
        squares = errors**2 * np.where(counts > 0, counts, unit)[:, None] / unit
        variance = rows_at(wide, queries, 0, factor, weighted=False).weights @ squares
        band_degree, share = {0: (1, 0.8), 1: (2, 1.0), 2: (2, 0.6)}[degree]
        local = rows_at(model, queries, band_degree, share)
        effect = np.zeros(7)
        for i in np.flatnonzero(counts):
            effect += local.effects[:, i] ** 2 * unit / counts[i]
        # Off the rows the error of the model comes to that.
        noise, _, grown = model.smoother_.errors.band_errors.variance_terms(
            queries, local.effects
        )
        effect = effect[:, None] + (noise + effect[:, None]) * (grown - 1)
        residual_dof = np.count_nonzero(counts) - model.effective_dof_
        width = t.ppf(0.975, residual_dof) * np.sqrt(variance * effect)
        expected = np.stack([local.values - width, local.values + width], axis=1)
        found = model.confidence_band(take(X, np.arange(7)), 0.95)
        np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-9)
        assert found.shape == (7, 2, *y.shape[1:])

    def test_at_one_query_simultaneous_bands_are_pointwise(self):
        # With as few rows the estimated variance of the noise matters: without it, the
        # simultaneous band would be 0.88 times as wide.
        x = np.linspace(0, 1, 12)
        y = x + 0.2 * np.random.default_rng(0).normal(size=12)
        model = LocalPolynomialRegressor(bandwidth=0.3, degree=1).fit(x[:, None], y)
        options = {"simultaneous": True, "n_resamples": 20_000}
        widths = [np.diff(model.confidence_band([[0.4]], **o)) for o in ({}, options)]
        np.testing.assert_allclose(widths[1], widths[0], rtol=0.03)

    def test_of_many_features_are_around_lines(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(60, 11))
        y = X @ np.arange(11)
        model = LocalPolynomialRegressor(bandwidth=2.0).fit(X, y)
        narrow = clone(model).set_params(bandwidth=1.0).fit(X, y)
        center = model.confidence_band(X[:5]).mean(axis=1)
        np.testing.assert_allclose(center, narrow.predict(X[:5]))

    def test_simultaneous_are_wider_by_one_factor(self, data):
        X, y = data
        model = LocalPolynomialRegressor(bandwidth=0.5, degree=0).fit(X, y)
        pointwise = np.diff(model.confidence_band(X), axis=1)[:, 0]
        together = np.diff(model.confidence_band(X, simultaneous=True), axis=1)[:, 0]
        factors = together / pointwise
        np.testing.assert_allclose(factors, factors[0])
        assert factors[0] > 1.2
        again, other = (
            model.confidence_band(X, simultaneous=True, random_state=seed) for seed in (0, 1)
        )
        np.testing.assert_array_equal(np.diff(again, axis=1)[:, 0], together)
        assert not np.array_equal(again, other)
        wider = model.confidence_band(X, 0.99, simultaneous=True)
        assert (np.diff(wider, axis=1)[:, 0] > together).all()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("noise", "degree"), [("growing", 0), ("growing", 1), ("same", 1), ("same", 2)]
    )
    def test_hold_the_curve(self, noise, degree):
        x = np.linspace(0, 1, 200)
        truth, grid = np.sin(9 * x), x[::4, None]
        scale = 0.3 if noise == "same" else 0.1 + 0.4 * x
        held, at_points = [], []
        for seed in range(40):
            y = truth + scale * np.random.default_rng(seed).normal(size=200)
            # The bandwidth that predicts best: with less, there is no bias to correct.
            model = LocalPolynomialRegressor(bandwidth=BEST[degree], degree=degree)
            model.fit(x[:, None], y)
            for found, options in ((at_points, {}), (held, {"simultaneous": True})):
                lower, upper = model.confidence_band(grid, n_resamples=200, **options).T
                found.append((lower <= truth[::4]) & (truth[::4] <= upper))
        assert 0.87 <= np.mean(at_points) <= 0.96
        assert 0.8 <= np.mean(np.all(held, axis=1)) <= 0.99

    def test_with_queries_that_no_row_reaches(self):
        x = np.linspace(0, 1, 50)
        model = NadarayaWatsonRegressor("epanechnikov", bandwidth=0.2, empty="nan")
        model.fit(x[:, None], np.sin(9 * x))
        for simultaneous in (False, True):
            found = model.confidence_band([[0.5], [3.0]], simultaneous=simultaneous)
            assert np.isfinite(found[0]).all()
            assert np.isnan(found[1]).all()

    def test_what_they_are_not_for(self, data):
        signed = NadarayaWatsonRegressor("silverman", bandwidth=0.8).fit(*data)
        with pytest.raises(ValueError, match=r"takes negative values, but confidence_band"):
            signed.confidence_band(data[0])
        alone = NadarayaWatsonRegressor("boxcar", bandwidth=0.01, empty="nan").fit(*data)
        with pytest.raises(ValueError, match=r"confidence_band needs every leave-one-out"):
            alone.confidence_band(data[0])
        usual = NadarayaWatsonRegressor(bandwidth=0.5).fit(*data)
        with pytest.raises(ValueError, match=r"n_resamples=1\.5 .*an integer greater than 0"):
            usual.confidence_band(data[0], simultaneous=True, n_resamples=1.5)


def test_bands_follow_the_unit_where_rows_alone_determine_their_predictions():
    # Lines along two features in windows of three rows: without one, the other effects are 0.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y, queries = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=150), X[::9] + 0.03
    bands = [
        LocalPolynomialRegressor("epanechnikov", bandwidth=0.7 * unit, degree=0)
        .fit(unit * X, y)
        .confidence_band(unit * queries)
        for unit in (1.0, 3.0, 1e3)
    ]
    np.testing.assert_allclose(bands[1:], [bands[0]] * 2, rtol=1e-9)
