"""Kernel attention of numbers: predictive distributions."""

import numpy as np
import pytest

from sklearn_attention import KernelAttentionRegressor

QUICK = {"max_steps": 3, "encodings": "standard", "n_folds": 1}


def make_toy(n=600, seed=0):
    """Noise is three times as large where the second feature is positive."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    spread = np.where(X[:, 1] > 0, 0.6, 0.2)
    return X, np.sin(3 * X[:, 1]) + spread * rng.normal(size=n)


def covered(model, X, y, coverage=0.9):
    low, high = model.predict_interval(X, coverage).T
    return ((low <= y) & (y <= high)).mean()


@pytest.fixture(scope="module")
def model():
    return KernelAttentionRegressor(n_folds=2).fit(*make_toy())


def test_quantiles_are_monotone_and_their_mean_is_about_the_prediction(model):
    X, _ = make_toy(50, seed=1)
    found = model.predict_quantiles(X, (np.arange(400) + 0.5) / 400)
    assert (np.diff(found, axis=1) >= 0).all()
    np.testing.assert_allclose(found.mean(axis=1), model.predict(X), atol=0.05)
    _, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(found.std(axis=1), std, rtol=0.15)


def test_intervals_are_quantiles(model):
    X, _ = make_toy(20, seed=1)
    expected = model.predict_quantiles(X, [0.1, 0.9])
    np.testing.assert_allclose(model.predict_interval(X, 0.8), expected, rtol=1e-12)
    assert model.predict_quantiles(X).shape == (20, 3)
    assert model.predict_quantiles(X, 0.5).shape == (20, 1)


def test_intervals_are_wider_where_noise_is_larger(model):
    X, _ = make_toy(200, seed=1)
    width, loud = np.diff(model.predict_interval(X))[:, 0], X[:, 1] > 0
    _, std = model.predict(X, return_std=True)
    for spread in (width, std):
        assert spread[loud].mean() > 1.5 * spread[~loud].mean()


def test_intervals_cover_what_they_say(model):
    for coverage in (0.5, 0.9):
        found = covered(model, *make_toy(1000, seed=1), coverage)
        assert found == pytest.approx(coverage, abs=0.05)


def test_few_huge_targets_do_not_move_the_intervals_of_others():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1300, 2))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=1300)
    y[:3] += [300, 500, 1000]
    model = KernelAttentionRegressor(**QUICK).fit(X[:300], y[:300])
    assert covered(model, X[300:], y[300:], 0.8) == pytest.approx(0.8, abs=0.1)


def test_distributions_are_wider_far_from_the_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    y = np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=200)
    model = KernelAttentionRegressor(**QUICK).fit(X, y)
    queries = rng.uniform(-1, 1, (50, 2))
    near, far = (np.diff(model.predict_interval(q)).mean() for q in (queries, queries + 3))
    assert far > 4 * near
    near, far = (model.predict(q, return_std=True)[1].mean() for q in (queries, queries + 3))
    assert far > 4 * near


def test_noisy_rows_of_small_weight_hardly_widen_intervals():
    rng = np.random.default_rng(0)
    X, is_noisy = rng.uniform(-1, 1, (160, 1)), np.arange(160) % 2 == 0
    y = np.sin(3 * X[:, 0]) + np.where(is_noisy, 3.0, 0.1) * rng.normal(size=160)
    model = KernelAttentionRegressor(encodings="standard", n_folds=1, max_steps=0)
    model.fit(X, y, np.where(is_noisy, 0.02, 1.0))
    queries = np.linspace(-1, 1, 20)[:, None]
    width = np.diff(model.predict_interval(queries, 0.8)).mean()
    # The noise of the heavy rows has the standard deviation 0.1: 80 % of it span 0.256.
    assert 0.256 < width < 0.6
