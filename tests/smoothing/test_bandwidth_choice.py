"""Every way of choosing a bandwidth, for every estimator that has one."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonCV,
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


class TestExactTargets:
    """Errors of lines and constants are rounding, so every search ends at a wide bandwidth."""

    @pytest.mark.parametrize("per_feature", [False, True, "auto"])
    @pytest.mark.parametrize("criterion", ["loo", "penalized-loo", "gcv", "aicc"])
    def test_searches_of_a_scale_and_of_each_feature(self, plane, criterion, per_feature):
        X = plane[0][:, :2]
        options = {"bandwidth": criterion, "per_feature": per_feature}
        for degree, target in ((0, np.full(60, 0.3)), (1, X @ [1.0, -2.0])):
            model = LocalPolynomialRegressor(degree=degree, **options).fit(X, target)
            assert (model.bandwidth_ > 2 * np.ptp(X, axis=0)).all()
            np.testing.assert_allclose(model.predict(X), target, rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("criterion", ["loo", "aicc"])
    def test_searches_beside_a_category(self, plane, criterion):
        X = pd.DataFrame({"a": plane[0][:, 0], "color": ["red", "green", "blue"] * 20})
        model = NadarayaWatsonRegressor(bandwidth=criterion).fit(X, np.full(60, 0.3))
        assert model.bandwidth_[0] > 4

    def test_searches_of_candidates_and_of_neighbours(self, plane):
        X, constant = plane[0], np.full(60, 0.3)
        model = NadarayaWatsonCV(["gaussian"], criterion="aicc").fit(X, constant)
        assert (model.bandwidth_ > 2 * np.ptp(X, axis=0)).all()
        assert NadarayaWatsonRegressor(bandwidth="knn-loo").fit(X, constant).n_neighbors_ == 30


@pytest.mark.slow
def test_the_widest_of_equally_good_bandwidths_is_taken_whatever_the_rounding():
    X, y = np.array([[1.23], [-0.83], [0.59], [-0.66]]), np.array([51.0, 0.0, 49.0, 0.0])
    options = {"degree": 1, "bandwidth": "loo", "gap": 1}
    bandwidths = [
        LocalPolynomialRegressor("triangular", algorithm=way, **options).fit(X, y).bandwidth_[0]
        for way in ("auto", "dense")
    ]
    assert min(bandwidths) > 16


@pytest.mark.parametrize("gap", [-1, 1.5, True])
def test_a_gap_that_is_no_number_of_rows(plane, gap):
    with pytest.raises(
        ValueError, match=rf"gap={gap} is not valid: pass an integer that is not"
    ):
        NadarayaWatsonRegressor(gap=gap).fit(*plane)
