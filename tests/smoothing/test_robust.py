"""Outliers among the targets: weights of rows against loops, and what they cure and cost."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone

from sklearn_attention import LocalPolynomialRegressor, NadarayaWatsonRegressor
from sklearn_attention.smoothing._errors import noise_variance

REGRESSORS = NadarayaWatsonRegressor, LocalPolynomialRegressor
each_regressor = pytest.mark.parametrize("kind", REGRESSORS)


def curve(n=100, seed=0, outliers=(), size=10.0, noise=0.2):
    """A sine with noise, outliers at some rows, and the truth."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(size=n))
    truth = np.sin(2 * np.pi * x)
    y = truth + noise * rng.normal(size=n)
    y[list(outliers)] += size
    return x[:, None], y, truth


def bisquare(errors, scales):
    return np.square(np.clip(1 - np.square(errors / (5 * scales)), 0, None))


def bounded(sizes):
    return 1 - (1 - np.minimum(np.square(sizes / 1.5476), 1)) ** 3


def slow_scales(sizes, kernel):
    """Scales at which bounded squares of relative errors are one half around each row."""
    scales = np.full(len(sizes), np.median(sizes))
    for _ in range(8):
        relative = bounded(sizes / scales)
        around = [np.average(relative, weights=weights) for weights in kernel]
        scales = scales * np.sqrt(2 * np.array(around))
    return scales


def slow_weights(X, y, bandwidth, weights, degree):
    """Robustness of rows by loops, from their errors when they are weighed so."""
    errors, distances = np.empty(len(y)), np.abs(X - X.T)
    for i in range(len(y)):
        own = weights * norm.pdf(distances[i] / bandwidth)
        own[i] = 0
        fit = np.polynomial.polynomial.polyfit(X[:, 0] - X[i, 0], y, degree, w=np.sqrt(own))
        errors[i] = y[i] - fit[0]
    wide = len(y) ** -0.2 * X.std()
    while True:
        kernel = norm.pdf(distances / wide)
        if np.sum(norm.pdf(0) / kernel.sum(axis=1)) <= len(y) / (3 * np.sqrt(len(y))):
            return bisquare(errors, slow_scales(np.abs(errors), kernel))
        wide *= np.sqrt(2)


class TestWeights:
    @pytest.mark.parametrize("degree", [0, 1])
    def test_weights_equal_those_of_a_loop_over_rows(self, degree):
        X, y, _ = curve(60, outliers=[10, 30, 31])
        model = LocalPolynomialRegressor(bandwidth=0.08, degree=degree, robust=True).fit(X, y)
        found = model.robustness_weights_
        expected = slow_weights(X, y, 0.08, found, degree)
        np.testing.assert_allclose(found, expected, rtol=0, atol=0.03)
        np.testing.assert_array_equal(found[[10, 30, 31]], 0)
        # They do not widen the intervals around them.
        _, high = model.predict_interval(X, 0.8).T
        assert (y > high)[[10, 30, 31]].all()

    @pytest.mark.slow
    def test_passing_weights_to_a_plain_fit_gives_the_robust_fit(self):
        X, y, _ = curve(outliers=[20, 50])
        weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
        robust = LocalPolynomialRegressor(robust=True).fit(X, y, weight)
        product = weight * robust.robustness_weights_
        plain = LocalPolynomialRegressor().fit(X, y, product)
        np.testing.assert_array_equal(robust.key_weights_, weight)
        np.testing.assert_array_equal(robust.bandwidth_, plain.bandwidth_)
        np.testing.assert_array_equal(robust.predict(X), plain.predict(X))
        np.testing.assert_array_equal(robust.smoother_matrix(X), plain.smoother_matrix(X))
        np.testing.assert_allclose(robust.smoother_matrix(X) @ y, robust.predict(X))
        np.testing.assert_array_equal(robust.loo_residuals_, plain.loo_residuals_)
        assert robust.summary().residual_std == plain.summary().residual_std < 0.3
        assert robust.loo_score_ == plain.loo_score_ > 0.8
        assert not np.isin([20, 50], robust.explain(X[[20]]).indices).any()

    def test_do_not_depend_on_rows_of_weight_zero(self):
        X, y, _ = curve(60, outliers=[10, 30])
        more, targets, _ = curve(240, seed=1, size=50.0, outliers=range(0, 240, 3))
        model = LocalPolynomialRegressor(bandwidth=0.1, robust=True)
        expected = clone(model).fit(X, y).robustness_weights_
        assert (expected < 0.9).sum() > 5
        weights = np.repeat([1.0, 0.0], [60, 240])
        model.fit(np.r_[X, more], np.r_[y, targets], weights)
        np.testing.assert_allclose(model.robustness_weights_[:60], expected, rtol=1e-9)

    def test_two_outliers_beside_an_exact_line_get_weight_0(self):
        X = np.linspace(0, 1, 50)[:, None]
        y = 2 * X[:, 0]
        y[[7, 33]] += 1
        model = LocalPolynomialRegressor(bandwidth=0.1, robust=True).fit(X, y)
        np.testing.assert_allclose(model.predict(X), 2 * X[:, 0], atol=1e-9)
        assert model.robustness_weights_[[7, 33]].max() == 0


class TestUncertainty:
    def test_noise_variance_equals_hubers_formula(self):
        rng = np.random.default_rng(0)
        X, y = rng.uniform(size=(200, 1)), rng.normal(size=200)
        model = NadarayaWatsonRegressor(robust=True, bandwidth=0.3).fit(X, y)
        errors = model.loo_residuals_[:, None]
        smoother = model.smoother_.replace(bandwidth=np.array([1e3])).unweighted
        b, r = model.robustness_weights_, errors[:, 0]
        share = 1 - np.sqrt(b)
        slope = np.mean((1 - share) * (1 - 5 * share))
        expected = np.mean((b * r) ** 2) / slope**2 * np.mean(b) ** 2 / np.mean(b**2)
        np.testing.assert_allclose(
            noise_variance(smoother, X[:1], errors, b), [[expected]], rtol=1e-5
        )


class TestEstimator:
    @each_regressor
    @pytest.mark.parametrize(
        ("draw", "said"),
        [
            (lambda rng: rng.poisson(2.0, 60), " values in 60 rows"),
            (lambda rng: rng.random(60) < 0.4, "2 values in 60 rows, 73%"),
            (lambda rng: np.where(rng.random(60) < 0.7, 0, rng.random(60)), "% of which are 0"),
            (lambda rng: np.stack([rng.random(60), np.arange(60) % 3], axis=1), "3 values"),
        ],
        ids=["counts", "flags", "rain", "one of two outputs"],
    )
    def test_warns_of_targets_whose_rare_values_are_no_errors(self, kind, draw, said):
        rng = np.random.default_rng(0)
        X, y = rng.random((60, 1)), draw(rng).astype(np.float64)
        model = kind(robust=True, bandwidth=0.3)
        with pytest.warns(UserWarning, match=f"{said}.*: pass robust=False"):
            model.fit(X, y)
        # Rows that count, and robust weights alone.
        weights = np.zeros(60)
        weights[:8], y[:8] = 1.0, np.arange(8) if y.ndim == 1 else rng.random((8, 2))
        model.fit(X, y, weights)
        model.set_params(robust=False).fit(X, y)
        model.set_params(robust=True).fit(X, np.ones(60))

    def test_remote_rows_on_the_line_keep_their_weight(self):
        x = np.r_[np.linspace(0, 1, 192), np.linspace(5, 400, 8)]
        y = 2 * x + 0.1 * np.random.default_rng(0).normal(size=200)
        model = LocalPolynomialRegressor(robust=True, degree=1, bandwidth=5.0)
        model.fit(x[:, None], y)
        assert model.robustness_weights_[-6:].min() > 0.9
        np.testing.assert_allclose(model.predict([[400.0]]), [800.0], rtol=0.01)

    @each_regressor
    def test_invalid_robust_one_row_and_dask_are_refused(self, kind):
        X, y, _ = curve(20)
        with pytest.raises(ValueError, match="robust='yes' is not valid: pass True or False"):
            kind(robust="yes").fit(X, y)
        with pytest.raises(ValueError, match="two rows of positive weight, got n_samples=1"):
            kind(robust=True, bandwidth=1.0).fit(X[:1], y[:1])
        da = pytest.importorskip("dask.array")
        parts = da.from_array(X, chunks=10), da.from_array(y, chunks=10)
        with pytest.raises(ValueError, match=r"robust=True need .* partitions of Dask"):
            kind(robust=True, bandwidth=1.0).fit(*parts)
