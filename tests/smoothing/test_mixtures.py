"""Mixtures of kernels around rows, against sums."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from sklearn_attention import Columns, ProductKernelDensity
from sklearn_attention.kernels._base import as_kernel
from sklearn_attention.smoothing._mixtures import KernelMixture
from sklearn_attention.smoothing._scale import Scale


class TestKernelMixture:
    @pytest.fixture
    def weights(self):
        return np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]])

    def test_is_the_sum(self, weights):
        keys = np.array([[0.0], [2.0], [5.0]])
        mixture = KernelMixture(
            keys,
            None,
            as_kernel("gaussian"),
            Columns.numbers(1),
            np.array([0.5]),
            Scale(),
            None,
        )
        y = np.array([0.1, 4.0])
        expected = (weights * norm.cdf((y[:, None] - keys[:, 0]) / 0.5)).sum(axis=1)
        probability = mixture.cdf(y[:, None] + 7, weights, np.full(2, 7.0))
        np.testing.assert_allclose(probability, expected, rtol=1e-12)


def test_fewer_rows_have_a_bandwidth_that_is_wider_at_the_rate_of_the_best_one():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=320), "y": rng.normal(size=320)})
    frame["color"] = rng.choice(["red", "green"], 320)
    whole = ProductKernelDensity(bandwidth=[0.3, 0.2, 0.1]).fit(frame)._mixture
    sample = whole.subsample(5, random_state=0)
    assert len(sample.keys) == 5
    # The best bandwidths of two numbers are proportional to n^(-1/6).
    np.testing.assert_allclose(sample.bandwidth, [0.6, 0.4, 0.1])
    assert whole.subsample(320, random_state=0) is whole
