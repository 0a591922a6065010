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
            rtol=1e-10,
        )

    @pytest.mark.parametrize("bandwidth", BANDWIDTHS)
    def test_explanations_equal_nadaraya_watsons(self, data, queries, bandwidth):
        ours = special(readout="average", bandwidth=bandwidth).fit(*data, heavy())
        theirs = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(*data, heavy())
        found, expected = ours.explain(queries, k=7), theirs.explain(queries, k=7)
        np.testing.assert_allclose(found.weights, expected.weights, rtol=0, atol=1e-12)
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
            ours.predict_proba(queries), theirs.predict_proba(queries), rtol=0, atol=1e-12
        )
        np.testing.assert_array_equal(ours.predict(queries), theirs.predict(queries))

    def test_beyond_a_compact_kernel_the_nearest_answers(self, data):
        X, y = data
        model = special(readout="average", kernel="tricube", bandwidth=0.5).fit(X, y)
        far = np.array([[100.0, 100.0, 1000.0]])
        nearest = y[np.square(X - far).sum(axis=1).argmin()]
        assert model.predict(far)[0] == pytest.approx(nearest)


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
            ours.predict(queries),
            theirs.predict(queries / np.array(bandwidth)),
            rtol=0,
            atol=1e-10,
        )

    def test_several_outputs(self, data, queries):
        X, y = data
        both = np.column_stack([y, -5 * y + 3])
        ours = special(readout="solve", bandwidth=2.0, ridge=0.1).fit(X, both)
        theirs = KernelRidge(kernel="rbf", gamma=1 / 8, alpha=0.1).fit(X, both)
        np.testing.assert_allclose(
            ours.predict(queries), theirs.predict(queries), rtol=0, atol=1e-10
        )

    @pytest.mark.parametrize("ridge", [0, 0.1])
    def test_with_another_kernel(self, data, queries, ridge):
        X, y = data
        ours = special(readout="solve", kernel="matern52", bandwidth=2.0, ridge=ridge).fit(X, y)

        def matern(A, B):
            r = np.sqrt(5 * np.square(A[:, None] - B).sum(axis=2)) / 2
            return (1 + r + r**2 / 3) * np.exp(-r)

        expected = matern(queries, X) @ np.linalg.solve(matern(X, X) + ridge * np.eye(80), y)
        np.testing.assert_allclose(ours.predict(queries), expected, rtol=0, atol=1e-10)


class TestAllReadouts:
    @pytest.mark.parametrize("readout", READOUTS)
    @pytest.mark.parametrize("scale", [1e30, 1e150])
    def test_rows_far_apart_in_bandwidths_are_not_alike(self, readout, scale):
        X, y = make_data(30)
        estimator = special(readout=readout, bandwidth=0.3, ridge="learned")
        estimator = estimator.fit(scale * X, y)
        intervals = estimator.predict_interval(scale * X)
        assert np.isfinite(intervals).all()
        widths = intervals[:, 1] - intervals[:, 0]
        if readout != "solve":
            # Of solving, a row is its own neighbour only where rounding leaves it there.
            np.testing.assert_allclose(widths, widths[0], rtol=1e-6)
        assert np.ptp(y) / 10 < widths.min() <= widths.max() < 4 * np.ptp(y)

    @pytest.mark.parametrize("readout", READOUTS)
    @pytest.mark.parametrize("bandwidth", BANDWIDTHS)
    def test_the_bandwidth_is_the_one_given(self, data, readout, bandwidth):
        model = special(readout=readout, bandwidth=bandwidth).fit(*data)
        expected = np.broadcast_to(bandwidth, 3)
        np.testing.assert_allclose(model.bandwidth_, expected, rtol=1e-12)
        np.testing.assert_allclose(model.length_scales_, expected[None], rtol=1e-12)

    @pytest.mark.parametrize("readout", ["average", "solve"])
    def test_left_out_residuals_are_those_of_refitting(self, data, readout):
        X, y = data
        # A ridge of lines is in units of standardised rows, which change with the rows.
        ridge = 0.1 if readout == "solve" else 0.0
        model = special(readout=readout, bandwidth=[1.0, 2.0, 80.0], ridge=ridge).fit(X, y)
        np.testing.assert_array_equal(model.held_out_rows_, np.arange(80))
        for row in range(5):
            others = np.arange(80) != row
            left = clone(model).fit(X[others], y[others]).predict(X[[row]])[0]
            assert y[row] - left == pytest.approx(model.loo_residuals_[row], abs=1e-10)

    @pytest.mark.parametrize("readout", READOUTS)
    def test_left_out_residuals_of_several_outputs_with_weights(self, data, readout):
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
            np.testing.assert_allclose(both[row] - left, model.loo_residuals_[position],
                                       rtol=0, atol=1e-10)  # fmt: skip

    @pytest.mark.parametrize("readout", READOUTS)
    def test_a_ridge_may_be_learned(self, data, readout):
        X, y = data
        parameters = {"readout": readout, "bandwidth": [1.0, 2.0, 80.0], "ridge": "learned"}
        model = special(**parameters).fit(X, y)
        start = special(**parameters, max_steps=0).fit(X, y)
        noise, before = (m.members_[0].kernel.noise for m in (model, start))
        assert (noise != before) == (readout != "average")
        assert model.score(X, y) > 0.5
        classifier = special(KernelAttentionClassifier, **parameters)
        assert classifier.fit(X, y > 0).score(X, y > 0) > 0.8

    def test_slopes_of_solving_are_those_of_its_formula(self, data, queries):
        X, y = data
        bandwidth = np.array([1.0, 2.0, 80.0])
        model = special(bandwidth=bandwidth, ridge=0.1).fit(X, y)
        differences = (queries[:, None] - X) / bandwidth
        kernel = np.exp(-np.square((X[:, None] - X) / bandwidth).sum(axis=2) / 2)
        alpha = np.linalg.solve(kernel + 0.1 * np.eye(80), y)
        near = np.exp(-np.square(differences).sum(axis=2) / 2)
        expected = -np.einsum("qn,qnf,n->qf", near, differences / bandwidth, alpha)
        np.testing.assert_allclose(model.local_slopes(queries), expected, rtol=0, atol=1e-10)
