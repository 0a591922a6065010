"""A sensor that reports one number throughout."""

import numpy as np
import pytest
from slow_cases import slow_but

from sklearn_attention import (
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)


@pytest.mark.filterwarnings("ignore:bandwidth='penalized-loo' ended")
@pytest.mark.parametrize(
    "kind",
    slow_but(
        [NadarayaWatsonRegressor],
        [NadarayaWatsonRegressor, LocalPolynomialRegressor, LocalPolynomialCV],
    ),
)
def test_all_that_is_said_of_a_constant_is_the_constant(kind):
    """Every error is 0, and so is what is made of errors."""
    hours = np.arange(15.0)[:, None]
    model = kind().fit(hours, np.full(15, 7.0))
    asked = [[3.5], [60.0]]
    for ends in (
        model.predict_interval(asked), model.predict_interval(asked, heteroscedastic=True),
        model.predict_quantiles(asked), model.confidence_band(asked),
        model.confidence_band(asked, simultaneous=True, n_resamples=20),
    ):  # fmt: skip
        np.testing.assert_allclose(ends, 7.0, rtol=1e-12)
    np.testing.assert_allclose(model.predict_cdf(asked, [6.9, 7.0, 7.1]), [[0, 1, 1]] * 2)
    np.testing.assert_allclose(model.predict(asked, return_std=True)[1], 0.0, atol=1e-12)
