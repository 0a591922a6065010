"""The distribution of a response at five doses, sixty patients each."""

import numpy as np
import pytest

from sklearn_attention import ConditionalKernelDensity


@pytest.mark.parametrize("degree", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_each_dose_has_its_own_distribution(degree):
    """Means of the groups, and the log-density of normal noise, -log(sd sqrt(2 pi e))."""
    rng = np.random.default_rng(3)
    means = np.array([1.0, 5.0, 2.0, 8.0, 3.0])
    dose, new = np.repeat(np.arange(5), 60), np.repeat(np.arange(5), 200)
    response = means[dose] + 0.5 * rng.normal(size=len(dose))
    model = ConditionalKernelDensity(degree=degree).fit(dose[:, None], response)
    groups = [response[dose == k].mean() for k in range(5)]
    np.testing.assert_allclose(model.predict(np.arange(5)[:, None]), groups, atol=0.1)
    score = model.score(new[:, None], means[new] + 0.5 * rng.normal(size=len(new)))
    assert score == pytest.approx(-np.log(0.5 * np.sqrt(2 * np.pi * np.e)), abs=0.1)
