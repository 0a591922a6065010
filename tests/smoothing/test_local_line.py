"""LocalLine: weighted least squares around each query, of all other rows for residuals."""

import numpy as np
import pytest

from sklearn_attention import ConditionalKernelDensity, attention_weights
from sklearn_attention.kernels import Gaussian


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    return X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=50)


def slow_line(model, X, left_out=()):
    """Heights of the local line by weighted least squares, one row at a time."""
    h, y = model.line_bandwidth_, model.values_
    others = ~np.isin(np.arange(len(y)), left_out)
    counts = np.ones(len(y)) if model.key_weights_ is None else model.key_weights_
    kept = y[counts > 0]
    deviation = np.sqrt(np.cov(y, aweights=counts, ddof=0))
    heights = []
    for x in X:
        distances = np.linalg.norm((model.keys_ - x) / h, axis=1)
        nearest = np.sort(distances[others & (counts > 0)])[3 + X.shape[1]]
        wider = max(1.0, nearest / (2 * model.kernel_.spread))
        weights = others * counts * model.kernel_.profile((distances / wider) ** 2)
        design = np.column_stack([np.ones(len(y)), model.keys_ - x])
        root = np.sqrt(weights)[:, None]
        height = np.linalg.lstsq(root * design, root[:, 0] * y, rcond=None)[0][0]
        heights.append(np.clip(height, kept.min() - deviation, kept.max() + deviation))
    return np.array(heights)


class TestLine:
    @pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
    def test_is_the_formula(self, data, kernel):
        X, y = data
        weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
        model = ConditionalKernelDensity(kernel, bandwidth=0.8, target_bandwidth=0.3)
        model.fit(X, y, sample_weight=weights)
        kept = np.flatnonzero(weights)
        residuals = [y[i] - slow_line(model, X[[i]], [i])[0] for i in kept]
        np.testing.assert_allclose(model.residuals_[kept], residuals, atol=1e-8)
        queries = np.vstack([X[:6] + 0.1, [[4.0, 4.0], [30.0, -30.0]]])
        center = slow_line(model, queries)
        shares = attention_weights(queries, X, kernel, bandwidth=0.8, sample_weight=weights)
        distances = y[:8, None] - center[:, None] - model.residuals_
        spread = Gaussian()(distances.reshape(-1, 1) / 0.3, np.zeros((1, 1)))[:, 0] / 0.3
        density = (shares * spread.reshape(distances.shape)).sum(axis=1)
        np.testing.assert_allclose(
            np.exp(model.score_samples(queries, y[:8])), density, rtol=1e-7, atol=1e-12
        )
        mean = center + shares @ model.residuals_
        np.testing.assert_allclose(model.predict(queries), mean, atol=1e-8)

    def test_own_target_is_left_out(self, data):
        X, y = data
        moved = y.copy()
        moved[7] += 0.1
        before, after = (
            ConditionalKernelDensity(bandwidth=0.8).fit(X, t).residuals_[7] for t in (y, moved)
        )
        assert after - before == pytest.approx(0.1, abs=1e-12)

    def test_does_not_extrapolate_without_bound(self, data):
        X, y = data
        model = ConditionalKernelDensity(bandwidth=0.5, target_bandwidth=0.3).fit(X, y)
        directions = np.random.default_rng(0).normal(size=(10, 2))
        for distance in (1, 1e3, 1e8):
            found = model.predict_quantiles(X[0] + distance * directions, [0.01, 0.99])
            around = np.abs(model.residuals_).max() + 3 * model.target_bandwidth_
            assert found.min() > y.min() - y.std() - around
            assert found.max() < y.max() + y.std() + around

    @pytest.mark.slow
    def test_line_is_wide_along_what_does_not_matter(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(100, 2))
        y = np.sin(6 * X[:, 0]) + 0.2 * rng.normal(size=100)
        model = ConditionalKernelDensity().fit(X, y)
        assert model.line_bandwidth_[1] > 3 * model.line_bandwidth_[0]

    def test_one_row(self):
        model = ConditionalKernelDensity(bandwidth=1.0, target_bandwidth=0.5)
        model.fit([[1.0]], [3.0])
        np.testing.assert_allclose(model.predict([[1.0], [9.0]]), 3.0)
