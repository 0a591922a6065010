"""At a given bandwidth kernel attention is what it generalises."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

from sklearn_attention import (
    KernelAttentionClassifier,
    KernelAttentionRegressor,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
)

BANDWIDTHS = [0.8, [0.5, 1.0, 40.0]]
READOUTS = ["average", "blend", "local_linear", "solve"]


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
    return estimator(**dict(views="standard", clip=None, ridge=0.0) | parameters)


def heavy(n=80):
    weight = np.random.default_rng(2).uniform(0.2, 3, n)
    weight[:5] = 0
    return weight


class TestAverage:
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("ridge", [0, 0.1, "learned"])
    @pytest.mark.parametrize("bandwidth", BANDWIDTHS)
    @pytest.mark.parametrize("kernel", ["gaussian", "matern52", "tricube"])
    def test_equals_nadaraya_watson(self, data, queries, kernel, bandwidth, ridge, weighted):
        weight = heavy() if weighted else None
        ours = special(readout="average", kernel=kernel, bandwidth=bandwidth, ridge=ridge)
        theirs = NadarayaWatsonRegressor(kernel, bandwidth=bandwidth)
        # Where a compact kernel reaches nobody, the two fall back differently.
        near = np.repeat(data[0][10:30], 2, axis=0) + 0.01
        asked = near if kernel == "tricube" else np.vstack([near, queries])
        np.testing.assert_allclose(
            ours.fit(*data, weight).predict(asked),
            theirs.fit(*data, weight).predict(asked),
            rtol=1e-6,
        )

    @pytest.mark.parametrize("bandwidth", BANDWIDTHS)
    def test_explanations_equal_nadaraya_watsons(self, data, queries, bandwidth):
        ours = special(readout="average", bandwidth=bandwidth).fit(*data, heavy())
        theirs = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(*data, heavy())
        found, expected = ours.explain(queries, k=7), theirs.explain(queries, k=7)
        np.testing.assert_allclose(found.weights, expected.weights, atol=1e-9)
        certain = expected.weights > 1e-6
        np.testing.assert_array_equal(found.indices[certain], expected.indices[certain])
        np.testing.assert_array_equal(found.values[certain], expected.values[certain])

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("bandwidth", BANDWIDTHS)
    @pytest.mark.parametrize("kernel", ["gaussian", "matern52"])
    def test_classifier_equals_nadaraya_watson(
        self, data, queries, kernel, bandwidth, weighted
    ):
        X, y = data
        labels = np.digitize(y, [-0.5, 0.5])
        weight = heavy() if weighted else None
        ours = special(
            KernelAttentionClassifier, readout="average", kernel=kernel, bandwidth=bandwidth
        ).fit(X, labels, weight)
        theirs = NadarayaWatsonClassifier(kernel, bandwidth=bandwidth).fit(X, labels, weight)
        np.testing.assert_allclose(
            ours.predict_proba(queries), theirs.predict_proba(queries), atol=1e-6
        )
        np.testing.assert_array_equal(ours.predict(queries), theirs.predict(queries))

    def test_beyond_a_compact_kernel_the_nearest_answers(self, data):
        X, y = data
        model = special(readout="average", kernel="tricube", bandwidth=0.5).fit(X, y)
        far = np.array([[100.0, 100.0, 1000.0]])
        nearest = y[np.square(X - far).sum(axis=1).argmin()]
        assert model.predict(far)[0] == pytest.approx(nearest)


class TestLocalLines:
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("bandwidth", [3.0, [1.0, 2.0, 80.0]])
    @pytest.mark.parametrize("kernel", ["gaussian", "matern52"])
    def test_equal_local_polynomials(self, data, kernel, bandwidth, weighted):
        X, y = data
        # Of one scale, so that one bandwidth has neighbours in all features.
        X = X / [1, 2, 50] if bandwidth == 3.0 else X
        weight = heavy() if weighted else None
        ours = special(readout="local_linear", kernel=kernel, bandwidth=bandwidth)
        theirs = LocalPolynomialRegressor(kernel, bandwidth=bandwidth, degree=1)
        for model in (ours, theirs):
            model.fit(X, y, weight)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(
            ours.local_slopes(X), theirs.predict_gradient(X), rtol=1e-5, atol=1e-6
        )

    def test_a_ridge_leads_to_averages(self, data):
        X, y = data
        width = [1.0, 2.0, 80.0]
        average = special(readout="average", bandwidth=width).fit(X, y).predict(X)
        gaps = [
            np.abs(
                special(readout="local_linear", bandwidth=width, ridge=ridge)
                .fit(X, y)
                .predict(X)
                - average
            ).max()
            for ridge in (0.0, 0.1, 10.0, 1e9)
        ]
        assert gaps == sorted(gaps, reverse=True)
        assert gaps[-1] < 1e-6


class TestSolving:
    @pytest.mark.parametrize("ridge", [0, 0.1])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("bandwidth", BANDWIDTHS)
    def test_equals_kernel_ridge(self, data, queries, bandwidth, weighted, ridge):
        X, y = data
        weight = heavy() if weighted else None
        ours = special(readout="solve", bandwidth=bandwidth, ridge=ridge).fit(X, y, weight)
        # Weights are of mean 1 among those that are positive.
        if weighted:
            weight = weight / weight[weight > 0].mean()
        theirs = KernelRidge(kernel="rbf", gamma=0.5, alpha=ridge)
        kept = slice(None) if weight is None else weight > 0
        theirs.fit((X / bandwidth)[kept], y[kept], weight if weight is None else weight[kept])
        np.testing.assert_allclose(
            ours.predict(queries), theirs.predict(queries / np.array(bandwidth)), atol=1e-6
        )

    def test_several_outputs(self, data, queries):
        X, y = data
        both = np.column_stack([y, -5 * y + 3])
        ours = special(readout="solve", bandwidth=2.0, ridge=0.1).fit(X, both)
        theirs = KernelRidge(kernel="rbf", gamma=1 / 8, alpha=0.1).fit(X, both)
        np.testing.assert_allclose(ours.predict(queries), theirs.predict(queries), atol=1e-6)

    @pytest.mark.parametrize("ridge", [0, 0.1])
    def test_with_another_kernel(self, data, queries, ridge):
        X, y = data
        ours = special(readout="solve", kernel="matern52", bandwidth=2.0, ridge=ridge).fit(X, y)

        def matern(A, B):
            r = np.sqrt(5 * np.square(A[:, None] - B).sum(axis=2)) / 2
            return (1 + r + r**2 / 3) * np.exp(-r)

        expected = matern(queries, X) @ np.linalg.solve(matern(X, X) + ridge * np.eye(80), y)
        np.testing.assert_allclose(ours.predict(queries), expected, atol=1e-6)


class TestAllReadouts:
    @pytest.mark.parametrize("readout", READOUTS)
    @pytest.mark.parametrize("bandwidth", BANDWIDTHS)
    def test_the_bandwidth_is_the_one_given(self, data, readout, bandwidth):
        model = special(readout=readout, bandwidth=bandwidth).fit(*data)
        expected = np.broadcast_to(bandwidth, 3)
        np.testing.assert_allclose(model.bandwidth_, expected, rtol=1e-12)
        np.testing.assert_allclose(model.length_scales_, expected[None], rtol=1e-12)

    @pytest.mark.parametrize("readout", READOUTS)
    def test_heads_of_one_bandwidth_are_one_head(self, data, queries, readout):
        found = [
            special(readout=readout, bandwidth=[1.0, 2.0, 80.0], ridge=0.1, n_heads=n_heads)
            .fit(*data)
            .predict(queries)
            for n_heads in (1, 3)
        ]
        np.testing.assert_allclose(found[1], found[0], atol=1e-8)

    @pytest.mark.parametrize("readout", ["average", "local_linear", "solve"])
    def test_left_out_residuals_are_those_of_refitting(self, data, readout):
        X, y = data
        # A ridge of lines is in units of standardised rows, which change with the rows.
        ridge = 0.1 if readout == "solve" else 0.0
        model = special(readout=readout, bandwidth=[1.0, 2.0, 80.0], ridge=ridge).fit(X, y)
        np.testing.assert_array_equal(model.judged_rows_, np.arange(80))
        for row in range(5):
            others = np.arange(80) != row
            left = clone(model).fit(X[others], y[others]).predict(X[[row]])[0]
            assert y[row] - left == pytest.approx(model.loo_residuals_[row], abs=1e-8)

    def test_left_out_residuals_of_a_blend_are_blended(self, data):
        X, y = data
        parameters = dict(bandwidth=[1.0, 2.0, 80.0], ridge=0.1)
        model = special(**parameters).fit(X, y)
        assert set(model.blend_weights_) <= {"solve", "local_linear"}
        blended = 0.0
        for way, share in model.blend_weights_.items():
            alone = special(readout=way, **parameters).fit(X, y)
            blended = blended + share * (y - alone.loo_residuals_)
        np.testing.assert_allclose(model.loo_residuals_, y - blended, atol=1e-9)

    def test_a_classifiers_blend_learns_its_ridge(self, data):
        X, y = data
        model = KernelAttentionClassifier(views="standard", bandwidth=[1.0, 2.0, 80.0])
        assert model.fit(X, y > 0).score(X, y > 0) > 0.8
