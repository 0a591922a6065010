"""A search sets `empty="nan"` for its next model: the one that is fitted must not change."""

import numpy as np

from sklearn_attention import NadarayaWatsonRegressor


def test_parameters_set_later():
    rng = np.random.default_rng(0)
    x = np.append(rng.uniform(size=60), 5.0)[:, None]  # the last row has no neighbour
    y = x[:, 0] + rng.normal(scale=0.1, size=61)
    model = NadarayaWatsonRegressor("epanechnikov", bandwidth=0.1).fit(x, y)
    before = model.predict([[0.5], [3.0]])
    model.set_params(empty="nan")
    np.testing.assert_array_equal(model.predict([[0.5], [3.0]]), before)
    # Neither does what is asked for only now: residuals without the row itself.
    assert np.isfinite(model.loo_residuals_).all()
