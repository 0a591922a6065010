"""A posterior density from draws of the prior, which weigh by their likelihoods."""

import numpy as np
import pytest

from sklearn_attention import NadarayaWatsonRegressor, ProductKernelDensity


@pytest.mark.slow
def test_likelihoods_need_not_be_normalised():
    """Two means have normal priors, and 100 measurements each of deviation 1.

    The posterior is normal about nearly the mean measurements, (.4, -.2), with deviations .1:
    its density there is 1 / (2 pi .1^2), whose logarithm is 2.77, and half of that where it is
    estimated by kernels as wide. In it the expected y of a curve y(t) is that at .4.
    """
    rng = np.random.default_rng(0)
    means = rng.normal(size=(2000, 2))
    log_likelihood = 440 - 50 * ((means - [0.4, -0.2]) ** 2).sum(axis=1)
    weights = np.exp(log_likelihood)  # of 1e-300 to 1e191
    density = ProductKernelDensity().fit(means, sample_weight=weights)
    assert 2.77 - np.log(2) - 0.1 < density.score_samples([[0.4, -0.2]])[0] < 2.77 + 0.1
    y = np.sin(3 * means[:, 0]) + 0.1 * rng.normal(size=2000)
    curve = NadarayaWatsonRegressor().fit(means[:, :1], y, weights)
    assert abs(curve.predict([[0.4]])[0] - np.sin(1.2)) < 0.1
