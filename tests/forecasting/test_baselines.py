"""Closed forms against libraries and loops."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from sklearn_attention.forecasting import fit_ridge, seasonal_naive


def make_windows(n=80, lookback=6, horizon=3):
    rng = np.random.default_rng(0)
    series = rng.normal(size=n).cumsum()
    both = np.lib.stride_tricks.sliding_window_view(series, lookback + horizon)
    return both[:, :lookback], both[:, lookback:]


def test_seasonal_naive_repeats_the_last_season():
    past = np.arange(12.0).reshape(2, 6)
    for season in range(1, 7):
        expected = [[row[6 - season + step % season] for step in range(9)] for row in past]
        np.testing.assert_array_equal(seasonal_naive(past, 9, season), expected)
    with pytest.raises(ValueError, match="season_length=7 is longer"):
        seasonal_naive(past, 2, 7)


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
@pytest.mark.parametrize("scaled", [False, True])
def test_one_penalty_is_that_of_scikit_learn(alpha, scaled):
    past, target = make_windows()
    scale = (
        np.random.default_rng(1).uniform(0.5, 2, len(past)) if scaled else np.ones(len(past))
    )
    found = fit_ridge(past, target, scale=scale, alphas=[alpha])
    x, y = (past - past[:, -1:]) / scale[:, None], (target - past[:, -1:]) / scale[:, None]
    unit = np.linalg.eigvalsh(x.T @ x).mean()
    slow = Ridge(alpha=alpha * unit, fit_intercept=False).fit(x, y)
    expected = past[:, -1:] + scale[:, None] * slow.predict(x)
    np.testing.assert_allclose(found.predict(past), expected, rtol=1e-8)


def test_the_penalty_is_that_of_least_generalised_cross_validation():
    past, target = make_windows()
    alphas = [1e-4, 1e-2, 1e-1, 1.0, 10.0]
    x, y = past - past[:, -1:], target - past[:, -1:]
    unit, scores = np.linalg.eigvalsh(x.T @ x).mean(), []
    for alpha in alphas:
        hat = x @ np.linalg.solve(x.T @ x + alpha * unit * np.eye(6), x.T)
        rest = np.mean((y - hat @ y) ** 2)
        scores.append(rest / (1 - np.trace(hat) / len(x)) ** 2)
    assert fit_ridge(past, target, alphas=alphas).alpha == alphas[np.argmin(scores)]


def test_the_penalty_is_that_of_least_error_on_the_holdout():
    past, target = make_windows()
    alphas = [1e-4, 1e-2, 1e-1, 1.0, 10.0]
    errors = [
        np.mean((fit_ridge(past[:50], target[:50], alphas=[a]).predict(past[55:])
                 - target[55:]) ** 2)
        for a in alphas
    ]  # fmt: skip
    found = fit_ridge(past[:50], target[:50], alphas=alphas, holdout=(past[55:], target[55:]))
    assert found.alpha == alphas[np.argmin(errors)]


def test_a_sine_follows_a_linear_map():
    sine = np.sin(0.3 * np.arange(300))
    both = np.lib.stride_tricks.sliding_window_view(sine, 30)
    ridge = fit_ridge(both[:150, :20], both[:150, 20:])
    np.testing.assert_allclose(ridge.predict(both[150:, :20]), both[150:, 20:], atol=1e-3)


def test_level_and_unit_do_not_matter_and_constants_are_kept():
    past, target = make_windows()
    larger = fit_ridge(7 * past, 7 * target).predict(7 * past)
    np.testing.assert_allclose(larger, 7 * fit_ridge(past, target).predict(past))
    plain, moved = fit_ridge(past, target), fit_ridge(past + 1e4, target + 1e4)
    np.testing.assert_allclose(moved.predict(past + 1e4) - 1e4, plain.predict(past), atol=1e-6)
    flat = fit_ridge(np.full((9, 4), 7.0), np.full((9, 2), 7.0))
    np.testing.assert_array_equal(flat.predict(np.full((1, 4), 7.0)), [[7.0, 7.0]])


def test_bad_input():
    past, target = make_windows()
    with pytest.raises(ValueError, match="72 windows and target 71"):
        fit_ridge(past, target[1:])
    with pytest.raises(ValueError, match="alphas=0"):
        fit_ridge(past, target, alphas=[0])
    with pytest.raises(ValueError, match="alphas="):
        fit_ridge(past, target, alphas=[])
