"""Every way of choosing a bandwidth, for every estimator that has one."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from slow_cases import one_in

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
)
from sklearn_attention.bandwidth import _one_scale, rule_bandwidth
from sklearn_attention.kernels import Epanechnikov, Gaussian, ProductKernel
from sklearn_attention.kernels._base import as_kernel

RULES = ["scott", "silverman", "loo", "gcv", "aicc", "knn-loo"]
REGRESSORS = [
    NadarayaWatsonRegressor(),
    LocalPolynomialRegressor(degree=0),
    LocalPolynomialRegressor(degree=1),
    LocalPolynomialRegressor(degree=2),
]
each_regressor = pytest.mark.parametrize(
    "estimator", REGRESSORS, ids=["averages", "degree0", "degree1", "degree2"]
)
CRITERIA = ["loo", "gcv", "aicc"]


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
    @each_regressor
    @pytest.mark.parametrize(("kernel", "rule"), one_in(2, ["gaussian", "epanechnikov"], RULES))
    def test_regressors(self, curve, estimator, kernel, rule):
        X, y = curve
        model = clone(estimator).set_params(kernel=kernel, bandwidth=rule)
        model.fit(X, y)
        assert model.bandwidth_.shape == (1,)
        assert model.bandwidth_.dtype == np.float64
        assert model.bandwidth_[0] > 0
        truth = np.sin(8 * X[:, 0])
        assert np.mean((model.predict(X) - truth) ** 2) < 0.5 * np.mean(truth**2)
        assert hasattr(model, "criterion_value_") == (rule in (*CRITERIA, "knn-loo"))
        assert hasattr(model, "n_neighbors_") == (rule == "knn-loo")
        assert not hasattr(model, "relevance_")

    @pytest.mark.filterwarnings("ignore:.*narrowest bandwidth")
    @pytest.mark.parametrize("rule", RULES)
    def test_classifier(self, rule):
        X, y = load_iris(return_X_y=True)
        X, rows = np.unique(X, axis=0, return_index=True)  # a flower occurs twice
        y = y[rows]
        model = NadarayaWatsonClassifier(bandwidth=rule)
        model.fit(X, y)
        assert model.score(X, y) > 0.9
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        if rule in CRITERIA:
            assert np.isfinite(model.criterion_value_)

    @each_regressor
    @pytest.mark.parametrize(("rule", "weighted"), one_in(2, CRITERIA, [False, True]))
    def test_scores_are_what_they_say(self, plane, estimator, rule, weighted):
        X, y = plane[0][:, :2], plane[1]
        weight = np.random.default_rng(2).uniform(0.5, 2, 60)
        weight = weight / weight.mean() if weighted else None
        counts = np.ones(60) if weight is None else weight
        # In windows as they are.
        estimator = clone(estimator).set_params(empty="nan")
        model = estimator.set_params(bandwidth=rule).fit(X, y, weight)
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

    @pytest.mark.parametrize("rule", CRITERIA)
    def test_a_common_factor_of_weights_does_not_lead_to_interpolation(self, few, rule):
        X, y = few
        model = NadarayaWatsonRegressor(bandwidth=rule, per_feature=False)
        plain = model.fit(X, y)
        doubled = clone(model).fit(X, y, np.full(40, 2.0))
        # With n the sum of the weights, interpolation leaves degrees of freedom.
        assert plain.effective_dof_ < 33
        assert doubled.effective_dof_ < 33

    def test_rules_of_thumb_are_those_of_the_subpackage(self, plane):
        X, y = plane
        for rule in ("scott", "silverman"):
            model = LocalPolynomialRegressor("tricube", bandwidth=rule).fit(X, y)
            expected = rule_bandwidth(X, as_kernel("tricube"), rule)
            np.testing.assert_allclose(model.bandwidth_, expected, rtol=1e-12)

    @each_regressor
    def test_another_choice_forgets_the_last(self, curve, estimator):
        X, y = curve[0][:30], curve[1][:30]
        model = clone(estimator)
        for rule in ("loo", "knn-loo", "gcv", 0.3, AdaptiveBandwidth(9), "aicc", "scott"):
            fresh = clone(estimator).set_params(bandwidth=rule).fit(X, y)
            model.set_params(bandwidth=rule).fit(X, y)
            assert vars(model).keys() == vars(fresh).keys()
            np.testing.assert_array_equal(model.predict(X), fresh.predict(X))

    @pytest.mark.parametrize(
        ("degree", "rule"),
        one_in(4, [0, 1, 2], [AdaptiveBandwidth(8), "scott", "loo", "knn-loo"]),
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
    @each_regressor
    def test_nonsense(self, curve, estimator, bandwidth):
        model = clone(estimator).set_params(bandwidth=0.3).fit(*curve)
        before = {k: v for k, v in vars(model).items() if k != "bandwidth"}
        with pytest.raises(ValueError, match=r"bandwidth=.* (pass|choose|must be finite)"):
            model.set_params(bandwidth=bandwidth).fit(curve[0][:20], curve[1][:20])
        assert {k: v for k, v in vars(model).items() if k != "bandwidth"} == before


class TestPerFeature:
    @pytest.mark.parametrize(
        ("kernel", "degree", "n_rows"),
        [
            ("gaussian", 0, 40),
            *(
                pytest.param(kernel, degree, 60, marks=pytest.mark.slow)
                for kernel in ("gaussian", "epanechnikov", "matern52")
                for degree in (0, 1)
            ),
        ],
    )  # fmt: skip
    def test_relevance(self, plane, kernel, degree, n_rows):
        X, y = plane[0][:n_rows], plane[1][:n_rows]
        # Gradients are of windows as they are, not widened.
        options = {"bandwidth": "loo", "degree": degree, "empty": "nan"}
        model = LocalPolynomialRegressor(kernel, per_feature=True, **options).fit(X, y)
        assert model.relevance_.shape == (3,)
        assert ((0 <= model.relevance_) & (model.relevance_ <= 1)).all()
        assert model.relevance_[0] > 0.5
        assert model.relevance_[2] < 0.3
        common = LocalPolynomialRegressor(kernel, per_feature=False, **options).fit(X, y)
        assert model.criterion_value_ <= common.criterion_value_ * (1 + 1e-6)
        assert model.criterion_value_ == pytest.approx(
            np.mean(model.loo_residuals_**2), rel=1e-7
        )

    @pytest.mark.parametrize(
        "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))]
    )
    @pytest.mark.parametrize("rule", CRITERIA)
    def test_bandwidths_are_never_negative(self, rule, seed):
        # statsmodels' search steps below 0 (statsmodels #599).
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30, 3)) * [1e-3, 1.0, 1e3]
        y = rng.normal(size=30) if seed % 2 else np.sign(X[:, 0])
        model = NadarayaWatsonRegressor(bandwidth=rule, per_feature=True).fit(X, y)
        assert (model.bandwidth_ > 0).all()
        assert np.isfinite(model.bandwidth_).all()
        assert np.isfinite(model.predict(X)).all()

    def test_classifier(self):
        X, y = (rows[::3] for rows in load_iris(return_X_y=True))
        X = np.column_stack([X[:, 2:], np.random.default_rng(0).normal(size=50)])
        model = NadarayaWatsonClassifier(per_feature=True).fit(X, y)
        assert model.relevance_[2] < model.relevance_[:2].min()
        assert (
            model.criterion_value_
            <= NadarayaWatsonClassifier(per_feature=False).fit(X, y).criterion_value_ * 1.000001
        )

    @pytest.mark.filterwarnings("ignore:bandwidth=")
    @pytest.mark.parametrize(
        "estimator",
        [
            REGRESSORS[0],
            *(pytest.param(other, marks=pytest.mark.slow) for other in REGRESSORS[1:3]),
            pytest.param(NadarayaWatsonClassifier(), marks=pytest.mark.slow),
        ],
    )
    def test_several_where_they_are_clearly_better(self, estimator):
        # Two of the features matter, or each as much as the others, or none.
        rng = np.random.default_rng(0)
        X, noise = rng.uniform(-1, 1, size=(120, 4)), 0.3 * rng.normal(size=120)
        of_two = np.sin(4 * X[:, 0]) + X[:, 1] ** 2
        for of_rows, several in ((of_two, True), (X.sum(axis=1), False), (0 * of_two, False)):
            y = of_rows + noise
            y = y > np.median(y) if is_classifier(estimator) else y
            models = [
                clone(estimator).set_params(per_feature=given, random_state=0).fit(X, y)
                for given in ("auto", True, False)
            ]
            assert hasattr(models[0], "relevance_") == several
            value, *expected = (model.criterion_value_ for model in models)
            # Searches for each start from elsewhere.
            assert value == pytest.approx(expected[0 if several else 1], rel=0.02)

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

    def test_seeded(self, few):
        X, y = few[0][:, :2], few[1]
        state = np.random.get_state()[1].copy()  # noqa: NPY002
        models = [NadarayaWatsonRegressor(per_feature=True).fit(X, y) for _ in range(2)]
        np.testing.assert_array_equal(models[0].bandwidth_, models[1].bandwidth_)
        np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002

    def test_has_no_say_at_given_bandwidths(self, plane):
        X, y = plane
        for bandwidth in (0.5, "scott"):
            model = NadarayaWatsonRegressor(bandwidth=bandwidth, per_feature=True).fit(X, y)
            assert not hasattr(model, "relevance_")


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
    @pytest.mark.parametrize("kernel", PROFILES)
    @pytest.mark.parametrize("k", [2, 7, 30])
    @pytest.mark.parametrize("weighted", [False, True])
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

    def test_boxcar_is_the_mean_of_neighbours(self, plane):
        from sklearn.neighbors import KNeighborsRegressor

        X, y = plane
        Z = X / X.std(axis=0)
        theirs = KNeighborsRegressor(5).fit(Z, y).predict(Z + 0.1)
        ours = NadarayaWatsonRegressor("boxcar", bandwidth=AdaptiveBandwidth(5)).fit(X, y)
        np.testing.assert_allclose(ours.predict(X + 0.1 * X.std(axis=0)), theirs, rtol=1e-9)

    def test_classifier(self):
        X, y = load_iris(return_X_y=True)
        model = NadarayaWatsonClassifier("boxcar", bandwidth=AdaptiveBandwidth(15)).fit(X, y)
        Z = X / X.std(axis=0)
        row = Z[60]
        near = np.argsort(((Z - row) ** 2).sum(axis=1))[:15]
        expected = np.bincount(y[near], minlength=3) / 15
        np.testing.assert_allclose(model.predict_proba(X[[60]])[0], expected, atol=1e-9)

    def test_number_by_leave_one_out(self, plane):
        X, y = plane[0][:24], plane[1][:24]
        model = LocalPolynomialRegressor("tricube", bandwidth="knn-loo").fit(X, y)
        errors = {}
        for k in range(1, 13):
            other = LocalPolynomialRegressor("tricube", bandwidth=AdaptiveBandwidth(k))
            errors[k] = np.mean(other.fit(X, y).loo_residuals_ ** 2)
        assert model.criterion_value_ == pytest.approx(min(errors.values()), rel=1e-9)
        assert errors[model.n_neighbors_] == pytest.approx(model.criterion_value_, rel=1e-9)

    def test_number_by_grid_search(self, plane):
        X, y = plane
        model = NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth())
        search = GridSearchCV(model, {"bandwidth__n_neighbors": [2, 5, 40]}, cv=3).fit(X, y)
        assert search.best_params_["bandwidth__n_neighbors"] in (2, 5)
        best = search.best_estimator_
        assert best.n_neighbors_ == search.best_params_["bandwidth__n_neighbors"]
        assert model.bandwidth.n_neighbors == 10

    def test_changing_the_number_later_changes_nothing(self, plane):
        X, y = plane
        bandwidth = AdaptiveBandwidth(5)
        model = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X, y)
        before = model.predict(X)
        bandwidth.n_neighbors = 50
        np.testing.assert_array_equal(model.predict(X), before)

    def test_ties(self):
        # Nine rows at one place: the fifth neighbour is no distance away.
        X = np.concatenate([np.zeros(9), [1.0, 2.0]])[:, None]
        y = np.concatenate([np.arange(9.0), [100.0, 200.0]])
        for kernel in ("gaussian", "tricube", "boxcar"):
            model = NadarayaWatsonRegressor(kernel, bandwidth=AdaptiveBandwidth(5)).fit(X, y)
            assert model.predict([[0.0]])[0] == pytest.approx(4.0)
        same = NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth(3))
        same.fit(np.ones((6, 2)), np.arange(6.0))
        np.testing.assert_allclose(same.predict([[1.0, 1.0], [5.0, 5.0]]), 2.5)

    def test_constant_feature(self, plane):
        X, y = plane
        wide = np.column_stack([X, np.full(60, 7.0)])
        for bandwidth in (AdaptiveBandwidth(6), "knn-loo"):
            ours = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(wide, y).predict(wide)
            expected = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X, y).predict(X)
            np.testing.assert_allclose(ours, expected, rtol=1e-9)

    @pytest.mark.parametrize(
        ("n_neighbors", "message"),
        [
            (0, "n_neighbors=0 is not valid: pass an integer greater than 0"),
            (2.5, "n_neighbors=2.5 is not valid"),
            (True, "n_neighbors=True is not valid"),
            (None, "n_neighbors=None is not valid"),
            (61, "n_neighbors=61 is more than the 60 training rows.*pass at most that many"),
        ],
    )
    def test_bad_numbers(self, plane, n_neighbors, message):
        with pytest.raises(ValueError, match=message):
            NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth(n_neighbors)).fit(*plane)

    def test_rows_of_weight_0_are_no_neighbours(self, plane):
        X, y = plane
        weight = np.repeat([1.0, 0.0], [8, 52])
        with pytest.raises(ValueError, match="n_neighbors=9 is more than the 8 training rows"):
            NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth(9)).fit(X, y, weight)

    @pytest.mark.parametrize("bandwidth", [AdaptiveBandwidth(5), "knn-loo"])
    @pytest.mark.parametrize("kernel", ["scaled_dot_product", ProductKernel("epanechnikov")])
    def test_kernels_without_distance(self, plane, kernel, bandwidth):
        with pytest.raises(ValueError, match=r"measures distances.*choose a radial kernel"):
            NadarayaWatsonRegressor(kernel, bandwidth=bandwidth).fit(*plane)

    def test_few_rows(self):
        with pytest.raises(ValueError, match=r"'knn-loo' .* three rows.*n_samples=2"):
            NadarayaWatsonRegressor(bandwidth="knn-loo").fit([[0.0], [1.0]], [0.0, 1.0])
        one = NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth(1)).fit([[3.0]], [7.0])
        np.testing.assert_allclose(one.predict([[0.0], [3.0]]), 7.0)

    def test_float32(self, plane):
        X, y = (array.astype("float32") for array in plane)
        single = LocalPolynomialRegressor(bandwidth=AdaptiveBandwidth(15)).fit(X, y)
        double = LocalPolynomialRegressor(bandwidth=AdaptiveBandwidth(15)).fit(*plane)
        assert single.predict(X).dtype == np.float32
        np.testing.assert_allclose(single.predict(X), double.predict(plane[0]), atol=1e-4)
        assert single.predict_interval(X).dtype == np.float32


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
        ("model", "seed", "n"),
        [
            (NadarayaWatsonRegressor(), 0, 90),
            (LocalPolynomialRegressor(), 0, 70),
            *(
                pytest.param(model, seed, 250, marks=pytest.mark.slow)
                for model in (NadarayaWatsonRegressor(), LocalPolynomialRegressor())
                for seed in range(3)
            ),
        ],
    )
    def test_autocorrelated_noise_is_smoothed_away(self, model, seed, n):
        X, y, truth = self.autocorrelated(seed, n)
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
