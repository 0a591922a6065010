"""A model that was fitted in memory predicts rows that are in partitions."""

import numpy as np
import pytest

from sklearn_attention import LocalPolynomialRegressor

arrays = pytest.importorskip("dask.array")


def test_partitions_are_predicted_as_arrays_are():
    """As the same rows in memory, also where training rows are sparse."""
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(40, 1))
    model = LocalPolynomialRegressor().fit(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=40))
    asked = np.linspace(-1, 12, 40)[:, None]
    parts = arrays.from_array(asked, (9, 1))
    np.testing.assert_allclose(model.predict(parts), model.predict(asked), rtol=1e-10)
    slopes = model.predict_gradient(parts), model.predict_gradient(asked)
    np.testing.assert_allclose(*slopes, rtol=1e-10, atol=1e-12)
