"""Every way of choosing a bandwidth, for every estimator that has one."""

import numpy as np
import pytest

from sklearn_attention import (
    AdaptiveBandwidth,
    NadarayaWatsonRegressor,
)
from sklearn_attention.kernels import Epanechnikov, Gaussian, ProductKernel


@pytest.fixture
def plane():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(60, 3)) * [1.0, 5.0, 1.0]
    return X, np.sin(3 * X[:, 0]) + 0.2 * X[:, 1] + 0.1 * rng.normal(size=60)


class TestPerFeature:
    def test_one_scale_where_there_is_no_choice(self, plane):
        X, y = plane
        for kernel, columns, options in (
            ("gaussian", [0], {}),
            ("gaussian", [0, 1, 2], {"gap": 1}),
            ("gaussian", [0, 1, 2], {"bandwidth": "knn-loo"}),
            (Gaussian() + 0.5 * Epanechnikov(), [0, 1, 2], {}),
        ):
            models = [
                NadarayaWatsonRegressor(kernel, per_feature=given, **options).fit(
                    X[:, columns], y
                )
                for given in ("auto", False)
            ]
            np.testing.assert_array_equal(models[0].bandwidth_, models[1].bandwidth_)


class TestNeighbours:
    @pytest.mark.parametrize(
        ("kernel", "bandwidth", "n", "message"),
        [
            ("scaled_dot_product", AdaptiveBandwidth(5), 60, "choose a radial kernel"),
            (ProductKernel("epanechnikov"), "knn-loo", 60, "choose a radial kernel"),
            ("gaussian", "knn-loo", 2, r"'knn-loo' .* three rows.*n_samples=2"),
            # Rows of weight 0 are no neighbours.
            ("gaussian", AdaptiveBandwidth(9), 60, "n_neighbors=9 is more than the 8 training"),
        ],
    )
    def test_what_cannot_be(self, plane, kernel, bandwidth, n, message):
        X, y, weight = plane[0][:n], plane[1][:n], np.repeat([1.0, 0.0], [8, 52])[:n]
        with pytest.raises(ValueError, match=message):
            NadarayaWatsonRegressor(kernel, bandwidth=bandwidth).fit(X, y, weight)


class TestGap:
    @staticmethod
    def autocorrelated(seed=0, n=250):
        rng = np.random.default_rng(seed)
        noise = rng.normal(size=n)
        for i in range(1, n):
            noise[i] += 0.8 * noise[i - 1]
        X = np.linspace(0, 1, n)[:, None]
        truth = 3 * np.sin(6 * X[:, 0])
        return X, truth + noise, truth

    def test_bad_gaps(self):
        X, y, _ = self.autocorrelated(n=20)
        for gap in (-1, 1.5, "2", True):
            with pytest.raises(ValueError, match=r"gap=.*integer"):
                NadarayaWatsonRegressor(gap=gap).fit(X, y)
        with pytest.raises(ValueError, match=r"gap=10 leaves out 21 rows .* n_samples=20"):
            NadarayaWatsonRegressor(gap=10).fit(X, y)
        for options in ({"bandwidth": 0.1}, {"bandwidth": "knn-loo"}, {"per_feature": True}):
            with pytest.raises(ValueError, match="have one common factor on their bandwidths"):
                NadarayaWatsonRegressor(gap=1, **options).fit(X, y)
