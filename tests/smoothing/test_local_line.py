"""The line of a conditional density: that of LocalPolynomialRegressor, and its bandwidths."""

import numpy as np
import pytest

from sklearn_attention import (
    ConditionalKernelDensity,
    LocalPolynomialRegressor,
    attention_weights,
)
from sklearn_attention.kernels import Gaussian


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    return X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=50)


class TestLine:
    @pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
    def test_is_the_formula(self, data, kernel):
        X, y = data
        weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
        model = ConditionalKernelDensity(kernel, bandwidth=0.8, target_bandwidth=0.3)
        model.fit(X, y, sample_weight=weights)
        line = LocalPolynomialRegressor(kernel, bandwidth=0.8, degree=1).fit(X, y, weights)
        np.testing.assert_allclose(model.residuals_, line.loo_residuals_, atol=1e-9)
        queries = np.vstack([X[:6] + 0.1, [[4.0, 4.0], [30.0, -30.0]]])
        center = line.predict(queries)
        shares = attention_weights(queries, X, kernel, bandwidth=0.8, sample_weight=weights)
        distances = y[:8, None] - center[:, None] - line.loo_residuals_
        spread = Gaussian()(distances.reshape(-1, 1) / 0.3, np.zeros((1, 1)))[:, 0] / 0.3
        density = (shares * spread.reshape(distances.shape)).sum(axis=1)
        np.testing.assert_allclose(
            np.exp(model.score_samples(queries, y[:8])), density, rtol=1e-7, atol=1e-12
        )
        mean = center + shares @ line.loo_residuals_
        np.testing.assert_allclose(model.predict(queries), mean, atol=1e-9)
