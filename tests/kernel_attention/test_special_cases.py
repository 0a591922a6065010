"""At a given bandwidth kernel attention is what it generalises."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

from sklearn_attention import (
    KernelAttentionClassifier,
    KernelAttentionRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
)

# One for all features; each its own.
BANDWIDTHS = [0.8, [0.5, 1.0, 40.0]]
READOUTS = ["average", "solve"]


def make_data(n=80, seed=0):
    """Features in units of their own, so that a standardised one would be told apart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1, 2, 50] + [0, 10, -100]
    return X, np.sin(X[:, 0]) + 0.02 * X[:, 2] + 0.1 * rng.normal(size=n)


@pytest.fixture
def data():
    return make_data()


@pytest.fixture
def queries():
    return make_data(20, seed=1)[0]


def special(estimator=KernelAttentionRegressor, **parameters):
    return estimator(**dict(encodings="standard", ridge=0.0) | parameters)


def heavy(n=80):
    weight = np.random.default_rng(2).uniform(0.2, 3, n)
    weight[:5] = 0
    return weight


class TestAverage:
    @pytest.mark.parametrize(
        ("kernel", "bandwidth", "ridge", "weight"),
        [
            ("gaussian", BANDWIDTHS[0], 0, None),
            ("matern52", BANDWIDTHS[1], 0.1, heavy()),
            ("tricube", BANDWIDTHS[1], "learned", heavy()),
        ],
    )
    def test_equals_nadaraya_watson(self, data, queries, kernel, bandwidth, ridge, weight):
        ours = special(readout="average", kernel=kernel, bandwidth=bandwidth, ridge=ridge)
        theirs = NadarayaWatsonRegressor(kernel, bandwidth=bandwidth)
        # Where a compact kernel reaches nobody, the two fall back differently.
        near = np.repeat(data[0][10:30], 2, axis=0) + 0.01
        asked = near if kernel == "tricube" else np.vstack([near, queries])
        found = ours.fit(*data, weight).predict(asked)
        expected = theirs.fit(*data, weight).predict(asked)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        found, expected = ours.explain(near, k=7), theirs.explain(near, k=7)
        np.testing.assert_allclose(found.weights, expected.weights, rtol=0, atol=1e-12)
        certain = expected.weights > 1e-6
        np.testing.assert_array_equal(found.indices[certain], expected.indices[certain])

    def test_classifier_equals_nadaraya_watson(self, data, queries):
        X, labels = data[0], np.digitize(data[1], [-0.5, 0.5])
        options = {"readout": "average", "kernel": "matern52", "bandwidth": BANDWIDTHS[1]}
        ours = special(KernelAttentionClassifier, **options).fit(X, labels, heavy())
        theirs = NadarayaWatsonClassifier("matern52", bandwidth=BANDWIDTHS[1])
        expected = theirs.fit(X, labels, heavy()).predict_proba(queries)
        np.testing.assert_allclose(ours.predict_proba(queries), expected, rtol=0, atol=1e-12)


class TestSolving:
    @pytest.mark.parametrize(
        ("bandwidth", "weight", "ridge"), [(0.8, None, 0), (BANDWIDTHS[1], heavy(), 0.1)]
    )
    def test_equals_kernel_ridge(self, data, queries, bandwidth, weight, ridge):
        X, y = data[0], np.column_stack([data[1], 3 - 5 * data[0][:, 1]])
        ours = special(bandwidth=bandwidth, ridge=ridge).fit(X, y, weight)
        # Weights are of mean 1 among those that are positive.
        weight = np.ones(80) if weight is None else weight / weight[weight > 0].mean()
        kept = weight > 0
        theirs = KernelRidge(kernel="rbf", gamma=0.5, alpha=ridge)
        theirs.fit((X / bandwidth)[kept], y[kept], weight[kept])
        expected = theirs.predict(queries / np.array(bandwidth))
        np.testing.assert_allclose(ours.predict(queries), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("readout", READOUTS)
class TestBoth:
    @pytest.mark.parametrize("scale", [1e30, 1e150])
    def test_rows_far_apart_in_bandwidths_are_not_alike(self, readout, scale):
        X, y = make_data(30)
        model = special(readout=readout, bandwidth=0.3, ridge="learned").fit(scale * X, y)
        widths = np.diff(model.predict_interval(scale * X))[:, 0]
        if readout != "solve":
            # Of solving, a row is its own neighbour only where rounding leaves it there.
            np.testing.assert_allclose(widths, widths[0], rtol=1e-6)
        assert np.ptp(y) / 10 < widths.min() <= widths.max() < 4 * np.ptp(y)

    @pytest.mark.parametrize("bandwidth", BANDWIDTHS)
    def test_the_bandwidth_is_the_one_given(self, data, readout, bandwidth):
        model = special(readout=readout, bandwidth=bandwidth).fit(*data)
        expected = np.broadcast_to(bandwidth, 3)
        np.testing.assert_allclose(model.bandwidth_, expected, rtol=1e-12)
        np.testing.assert_allclose(model.length_scales_, expected[None], rtol=1e-12)
        space = (data[0] - data[0].mean(axis=0)) / bandwidth
        np.testing.assert_allclose(model.transform(data[0]), space, rtol=1e-9, atol=1e-12)

    def test_left_out_residuals_are_those_of_refitting(self, data, readout):
        X, y = data
        both, weight = np.column_stack([y, X[:, 1]]), heavy()
        ridge = 0.1 if readout == "solve" else 0.0
        model = special(readout=readout, bandwidth=[1.0, 2.0, 80.0], ridge=ridge)
        model.fit(X, both, weight)
        assert model.loo_residuals_.shape == (75, 2)
        for position in range(0, 75, 19):
            row = np.flatnonzero(weight)[position]
            others = (np.arange(80) != row) & (weight > 0)
            # Noise is in units of the mean weight, which is another one without the row.
            unit = weight[others].mean() / weight[weight > 0].mean()
            again = clone(model).set_params(ridge=ridge / unit)
            left = again.fit(X[others], both[others], weight[others]).predict(X[[row]])[0]
            found = both[row] - model.loo_residuals_[position]
            np.testing.assert_allclose(found, left, rtol=0, atol=1e-10)
