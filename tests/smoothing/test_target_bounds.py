"""Bounds of targets, to which predictions, quantiles, intervals and bands are clipped."""

import numpy as np
import pytest

from sklearn_attention import (
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonCV,
    NadarayaWatsonRegressor,
)
from sklearn_attention.smoothing import _estimator

QUERIES = np.linspace(-1, 4, 40)[:, None]


def make_counts(n=60):
    """Counts whose mean falls to nearly 0, and flags."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, size=(n, 1))
    counts = rng.poisson(np.exp(1.5 * np.cos(3 * x[:, 0]) - 0.5))
    return x, counts, counts > 1


@pytest.mark.parametrize(
    "model",
    [
        NadarayaWatsonRegressor(bandwidth=0.3),
        LocalPolynomialRegressor(bandwidth=0.3),
        LocalPolynomialRegressor(bandwidth=0.3, degree=2),
        NadarayaWatsonCV(["gaussian"], [0.3]),
        LocalPolynomialCV(["gaussian"], [0.3], degrees=[1]),
    ],
    ids=repr,
)
def test_nothing_that_is_said_of_counts_and_flags_leaves_their_bounds(model):
    x, counts, flags = make_counts()
    model.fit(x, np.column_stack([counts, flags, counts - 0.5]))
    np.testing.assert_array_equal(model.bounds_, [[0, 0, -np.inf], [np.inf, 1, np.inf]])
    for ends in (
        model.predict(QUERIES)[:, None],
        model.predict_interval(QUERIES),
        model.predict_quantiles(QUERIES),
        model.confidence_band(QUERIES),
    ):
        assert (ends[:, :, :2] >= 0).all()
        assert (ends[:, :, 1] <= 1).all()
    assert model.predict_interval(QUERIES)[:, :, 2].min() < -0.6
    below, at_most_1 = np.moveaxis(model.predict_cdf(QUERIES, [-0.01, 1.0]), 1, 0)
    np.testing.assert_array_equal(below[:, :2], 0)
    np.testing.assert_array_equal(at_most_1[:, 1], 1)
    assert below[:, 2].max() > 0
    # What is said of the training rows is what is predicted for them.
    np.testing.assert_allclose(model.fitted_values_, model.predict(x), atol=1e-12)
    assert (model.values_ - model.loo_residuals_)[:, :2].min() >= 0


def test_without_bounds_predictions_are_the_hat_matrix_times_the_targets():
    x, counts, _ = make_counts()
    model = LocalPolynomialRegressor(bandwidth=0.3, degree=2)
    free = model.set_params(bounds=None).fit(x, counts)
    assert free.bounds_ is None
    expected = free.smoother_matrix(QUERIES) @ counts
    assert expected.min() < 0
    np.testing.assert_allclose(free.predict(QUERIES), expected, atol=1e-9)
    bounded = LocalPolynomialRegressor(bandwidth=0.3, degree=2).fit(x, counts)
    assert bounded.predict(QUERIES).min() == 0
    np.testing.assert_allclose(bounded.predict(QUERIES), expected.clip(0), atol=1e-9)


def test_rows_of_weight_0_and_later_rows_decide_on_bounds_as_rows_do():
    x, counts, _ = make_counts()
    weights = np.ones(len(x))
    weights[3], counts[3] = 0, -5
    model = NadarayaWatsonRegressor(bandwidth=0.3).fit(x, counts, weights)
    np.testing.assert_array_equal(model.bounds_, [0, np.inf])
    assert model.partial_fit([[1.0]], [-1]).bounds_ is None
    assert NadarayaWatsonRegressor(bandwidth=0.3).fit(x, counts + 0.5).bounds_ is None


def test_given_bounds_clip_and_are_those_of_the_fit():
    x, counts, _ = make_counts()
    model = LocalPolynomialRegressor(bandwidth=0.3, bounds=(None, 9.5)).fit(x, counts - 0.5)
    np.testing.assert_array_equal(model.bounds_, [-np.inf, 9.5])
    assert model.predict_interval(QUERIES, 0.99).max() <= 9.5
    model.bounds = None
    np.testing.assert_array_equal(model.bounds_, [-np.inf, 9.5])
    single = model.set_params(bounds="auto").fit(x.astype(np.float32), counts)
    assert single.predict(QUERIES.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("bounds", [(3, 1), "none", 5, (0, "a"), (0, 1, 2)])
def test_bounds_that_are_not_valid_are_refused(bounds):
    x, counts, _ = make_counts()
    with pytest.raises(ValueError, match=r"bounds=.*pass 'auto', None, or a pair"):
        NadarayaWatsonRegressor(bandwidth=0.3, bounds=bounds).fit(x, counts)


def test_bounds_that_targets_leave_are_refused():
    x, counts, _ = make_counts()
    with pytest.raises(ValueError, match=r"bounds=\(0, 2\) do not contain y, .* from 0 to"):
        NadarayaWatsonRegressor(bandwidth=0.3, bounds=(0, 2)).fit(x, counts)


def test_bounds_that_targets_leave_are_refused_before_a_search(monkeypatch):
    def search(*_):
        raise AssertionError("a bandwidth is searched")

    monkeypatch.setattr(_estimator, "choose_members", search)
    x, counts, _ = make_counts()
    with pytest.raises(ValueError, match="do not contain y"):
        NadarayaWatsonRegressor(bounds=(0, 2)).fit(x, counts)
