"""Every way of choosing a bandwidth, for every estimator that has one."""

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.bandwidth import _one_scale
from sklearn_attention.kernels import Epanechnikov, Gaussian, ProductKernel


@pytest.fixture
def curve():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 70)
    return x[:, None], np.sin(8 * x) + 0.2 * rng.normal(size=70)


@pytest.fixture
def plane():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(60, 3)) * [1.0, 5.0, 1.0]
    return X, np.sin(3 * X[:, 0]) + 0.2 * X[:, 1] + 0.1 * rng.normal(size=60)


@pytest.fixture
def few(plane):
    """Rows for searches whose end alone is asked."""
    return plane[0][:40], plane[1][:40]


class TestRules:
    @pytest.mark.parametrize(
        ("rule", "degree", "weighted"),
        [("loo", 0, True), ("gcv", 1, True), ("aicc", 2, False)],
    )
    def test_scores_are_what_they_say(self, few, rule, degree, weighted):
        X, y = few[0][:, :2], few[1]
        weight = np.random.default_rng(2).uniform(0.5, 2, 40)
        weight = weight / weight.mean() if weighted else None
        counts = np.ones(40) if weight is None else weight
        # In windows as they are.
        model = LocalPolynomialRegressor(bandwidth=rule, degree=degree, empty="nan")
        model.fit(X, y, weight)
        n = counts.sum()

        def criterion(fitted):
            if rule == "loo":
                return np.average(fitted.loo_residuals_**2, weights=counts)
            if rule == "gcv":
                mean = np.average((y - fitted.predict(X)) ** 2, weights=counts)
                return mean / (1 - fitted.effective_dof_ / n) ** 2
            return fitted.aicc_

        told = model.criterion_value_
        assert told == pytest.approx(criterion(model), rel=1e-7)
        for factor in (0.9, 1.1):
            other = clone(model).set_params(bandwidth=factor * model.bandwidth_)
            assert criterion(other.fit(X, y, weight)) >= told - 1e-9

    def test_another_choice_forgets_the_last(self, curve):
        X, y = curve[0][:30], curve[1][:30]
        estimator = LocalPolynomialRegressor(degree=1)
        model = clone(estimator)
        for rule in ("loo", "knn-loo", "gcv", 0.3, AdaptiveBandwidth(9), "aicc", "scott"):
            fresh = clone(estimator).set_params(bandwidth=rule).fit(X, y)
            model.set_params(bandwidth=rule).fit(X, y)
            assert vars(model).keys() == vars(fresh).keys()
            np.testing.assert_array_equal(model.predict(X), fresh.predict(X))

    @pytest.mark.parametrize(
        ("degree", "rule"),
        [(0, AdaptiveBandwidth(8)), (0, "loo"), (1, "scott"), (2, "knn-loo")],
    )
    def test_partial_fit_equals_fit_on_all(self, curve, degree, rule):
        X, y = curve
        estimator = LocalPolynomialRegressor(degree=degree)
        grown = clone(estimator).set_params(bandwidth=rule)
        grown.partial_fit(X[:30], y[:30]).predict_interval(X)
        grown.partial_fit(X[30:], y[30:])
        whole = clone(grown).fit(X, y)
        np.testing.assert_array_equal(grown.predict(X), whole.predict(X))
        np.testing.assert_array_equal(grown.predict_interval(X), whole.predict_interval(X))

    @pytest.mark.parametrize(
        "bandwidth", ["", "LOO", b"loo", 0, -1, np.nan, np.inf, [1, 1], [[1]], {}, object()]
    )
    def test_nonsense(self, curve, bandwidth):
        model = LocalPolynomialRegressor(bandwidth=0.3).fit(*curve)
        before = {k: v for k, v in vars(model).items() if k != "bandwidth"}
        with pytest.raises(ValueError, match=r"bandwidth=.* (pass|choose|must be finite)"):
            model.set_params(bandwidth=bandwidth).fit(curve[0][:20], curve[1][:20])
        assert {k: v for k, v in vars(model).items() if k != "bandwidth"} == before


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


def slow_neighbour_predict(X, y, weight, queries, k, profile):
    """Distances by hand, in spreads; the window reaches to the k-th neighbour."""
    center = np.average(X, axis=0, weights=weight)
    spread = np.sqrt(np.average((X - center) ** 2, axis=0, weights=weight))
    kept = weight > 0
    predictions = []
    for query in queries:
        distances = np.sqrt((((query - X) / spread) ** 2).sum(axis=1))
        reach = np.sort(distances[kept])[k - 1]
        w = np.array([profile(distance / reach) for distance in distances]) * weight
        predictions.append(w @ y / w.sum())
    return np.array(predictions)


PROFILES = {
    "gaussian": lambda r: np.exp(-r * r / 2),
    "tricube": lambda r: max(0.0, 1 - r**3) ** 3,
    "boxcar": lambda r: float(r <= 1 + 1e-9),
}


class TestNeighbours:
    @pytest.mark.parametrize(
        ("kernel", "k", "weighted"),
        [("gaussian", 7, True), ("tricube", 30, False), ("boxcar", 2, True)],
    )
    def test_equal_a_loop(self, plane, kernel, k, weighted):
        X, y = plane
        rng = np.random.default_rng(4)
        weight = rng.uniform(0.5, 2, 60) * (rng.uniform(size=60) > 0.3) if weighted else None
        model = NadarayaWatsonRegressor(kernel, bandwidth=AdaptiveBandwidth(k))
        model.fit(X, y, weight)
        queries = X[:20] * 0.9 + 0.01
        expected = slow_neighbour_predict(
            X, y, np.ones(60) if weight is None else weight, queries, k, PROFILES[kernel]
        )
        # The window reaches a hair further than the neighbour.
        np.testing.assert_allclose(model.predict(queries), expected, rtol=1e-7)
        assert model.n_neighbors_ == k

    def test_rows_of_weight_0_are_no_neighbours(self, plane):
        X, y = plane
        weight = np.repeat([1.0, 0.0], [8, 52])
        with pytest.raises(ValueError, match="n_neighbors=9 is more than the 8 training rows"):
            NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth(9)).fit(X, y, weight)

    @pytest.mark.parametrize(
        ("kernel", "bandwidth"),
        [
            ("scaled_dot_product", AdaptiveBandwidth(5)),
            (ProductKernel("epanechnikov"), "knn-loo"),
        ],
    )
    def test_kernels_without_distance(self, plane, kernel, bandwidth):
        with pytest.raises(ValueError, match=r"measures distances.*choose a radial kernel"):
            NadarayaWatsonRegressor(kernel, bandwidth=bandwidth).fit(*plane)

    def test_few_rows(self):
        with pytest.raises(ValueError, match=r"'knn-loo' .* three rows.*n_samples=2"):
            NadarayaWatsonRegressor(bandwidth="knn-loo").fit([[0.0], [1.0]], [0.0, 1.0])
        one = NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth(1)).fit([[3.0]], [7.0])
        np.testing.assert_allclose(one.predict([[0.0], [3.0]]), 7.0)


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

    @pytest.mark.filterwarnings("ignore:bandwidth=")
    @pytest.mark.parametrize(
        ("model", "n"), [(NadarayaWatsonRegressor(), 90), (LocalPolynomialRegressor(), 70)]
    )
    def test_autocorrelated_noise_is_smoothed_away(self, model, n):
        X, y, truth = self.autocorrelated(n=n)
        near, far = (clone(model).set_params(gap=gap).fit(X, y) for gap in (0, 6))
        assert far.bandwidth_[0] > 1.5 * near.bandwidth_[0]
        errors = [np.mean((fitted.predict(X) - truth) ** 2) for fitted in (near, far)]
        assert errors[1] < 0.8 * errors[0]

    def test_many_rows_are_a_stretch(self, monkeypatch):
        monkeypatch.setattr(_one_scale, "MAX_KEYS", 150)
        X, y, _ = self.autocorrelated()
        model = NadarayaWatsonRegressor(gap=8).fit(X, y)
        assert 0.01 < model.bandwidth_[0] < 1

    def test_bad_gaps(self):
        X, y, _ = self.autocorrelated(n=20)
        for gap in (-1, 1.5, "2", True):
            with pytest.raises(ValueError, match=r"gap=.*integer"):
                NadarayaWatsonRegressor(gap=gap).fit(X, y)
        with pytest.raises(ValueError, match=r"gap=10 leaves out 21 rows .* n_samples=20"):
            NadarayaWatsonRegressor(gap=10).fit(X, y)
        for options in (
            {"bandwidth": 0.1},
            {"bandwidth": "scott"},
            {"bandwidth": "knn-loo"},
            {"per_feature": True},
        ):
            with pytest.raises(ValueError, match=r"gap=1 is for searches of one factor"):
                NadarayaWatsonRegressor(gap=1, **options).fit(X, y)
