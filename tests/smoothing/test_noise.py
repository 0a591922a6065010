"""Noise of rows: autoregressions, and variances of sums."""

import numpy as np
from scipy.linalg import toeplitz

from sklearn_attention import LocalPolynomialRegressor
from sklearn_attention.smoothing._noise import Noise, autocorrelation, autoregression


def autoregressive(coefficients, n, seed=0):
    shocks, found = np.random.default_rng(seed).normal(size=n + 200), np.zeros(n + 200)
    for t in range(len(coefficients), n + 200):
        found[t] = shocks[t] + sum(c * found[t - k] for k, c in enumerate(coefficients, 1))
    return found[200:]


def test_autocorrelations_of_two_lags_follow_yule_and_walker():
    a, b = 0.5, -0.3
    found = autocorrelation(np.array([a, b]), 30)
    assert found[0] == 1
    np.testing.assert_allclose(found[1], a / (1 - b))
    np.testing.assert_allclose(found[2:], a * found[1:-1] + b * found[:-2], atol=1e-12)


def test_coefficients_solve_yule_and_walker():
    series = autoregressive([0.5, -0.3, 0.2, 0.3], 400)
    found = autoregression(series, 4)
    n, k = len(series), len(found)
    covariances = np.array([series[: n - lag] @ series[lag:] / n for lag in range(k + 1)])
    expected = np.linalg.solve(toeplitz(covariances[:-1]), covariances[1:])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert k == 4
    assert len(autoregression(np.zeros(20), 5)) == 0


def test_lags_are_as_many_as_the_corrected_criterion_wants_in_short_series():
    for seed in range(10):
        series = np.random.default_rng(seed).normal(size=20)
        covariances = [series[: 20 - lag] @ series[lag:] / 20 for lag in range(9)]
        criteria = []
        for k in range(9):
            matrix, right = toeplitz(covariances[:k]), np.array(covariances[1 : k + 1])
            explained = right @ np.linalg.solve(matrix, right) if k else 0.0
            penalty = 2 * (k + 1) * 20 / (20 - k - 2)
            criteria.append(20 * np.log(covariances[0] - explained) + penalty)
        assert len(autoregression(series, 8)) == np.argmin(criteria)


def test_variances_of_sums_are_quadratic_forms():
    rng = np.random.default_rng(0)
    effects, variances = rng.normal(size=(4, 30)), rng.uniform(0.5, 2, 30)
    coefficients = np.array([0.5, -0.3]), np.zeros(0)
    covariance = [
        np.sqrt(np.outer(variances, variances)) * toeplitz(autocorrelation(own, 30))
        for own in coefficients
    ]
    expected = np.stack([np.diag(effects @ c @ effects.T) for c in covariance], axis=1)
    found = Noise(variances, coefficients).variances_of_sums(effects)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(
        Noise(variances).variances_of_sums(effects), expected[:, 1:], rtol=1e-9
    )


def test_draws_have_the_covariance():
    variances = np.array([1.0, 4.0, 1.0, 1.0])
    noise = Noise(variances, (np.array([0.6]), np.zeros(0)))
    drawn = noise.draws(4000, np.random.RandomState(0))
    assert drawn.shape == (2, 4, 4000)
    root = np.sqrt(np.outer(variances, variances))
    for own, rho in zip(drawn, (0.6, 0.0), strict=True):
        expected = root * toeplitz(rho ** np.arange(4.0))
        np.testing.assert_allclose(np.cov(own), expected, atol=0.3)


def test_a_gap_tells_that_noise_of_neighbours_may_be_alike():
    x = np.linspace(0, 1, 200)
    y = np.sin(5 * x) + 0.5 * autoregressive([0.6], 200)
    model = LocalPolynomialRegressor(gap=5, degree=1).fit(x[:, None], y)
    (coefficients,) = model.smoother_.errors.noise.autoregressions
    assert 0.3 < autocorrelation(coefficients, 2)[1] < 0.85
    alone = LocalPolynomialRegressor(bandwidth=0.1, degree=1).fit(x[:, None], y)
    assert alone.smoother_.errors.noise.autoregressions == (None,)
