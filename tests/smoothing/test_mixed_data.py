"""Numbers and categories side by side, as they come in data frames."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklearn_attention import (
    AdaptiveBandwidth,
    ConditionalKernelDensity,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
)
from sklearn_attention.kernels import AitchisonAitken, LiRacine, ProductKernel

SIZES = ["small", "medium", "large"]
LAMBDAS = [0.7, 0.3, 0.4]


N = 40


def make_frame(n=N, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"length": rng.uniform(-1, 1, n)})
    frame["color"] = rng.choice(["red", "green", "blue"], n)
    codes = rng.integers(3, size=n)
    frame["size"] = pd.Categorical.from_codes(codes, SIZES, ordered=True)
    noise = 0.2 * rng.normal(size=n)
    return frame, (
        2 * frame["length"] + (frame["color"] == "red") + 0.5 * codes + noise
    ).to_numpy()


@pytest.fixture
def data():
    return make_frame()


def as_codes(frame):
    """The columns as numbers, by hand."""
    color = frame["color"].map({"blue": 0, "green": 1, "red": 2})
    size = frame["size"].astype(str).map(dict(zip(SIZES, range(3), strict=True)))
    return np.column_stack([frame["length"], color, size]).astype(float)


class TestPrediction:
    @pytest.mark.parametrize(("kernel", "degree"), [("gaussian", 0), ("tricube", 2)])
    def test_equals_an_explicit_product_kernel_on_codes(self, data, kernel, degree):
        frame, y = data
        product = ProductKernel([
            ("length", kernel, [0]),
            ("color", AitchisonAitken(n_levels=3, lam=0.3), [1]),
            ("size", LiRacine(lam=0.4), [2]),
        ])  # fmt: skip
        weight = np.random.default_rng(1).uniform(0.5, 2, N)
        options = dict(degree=degree, empty="nan")
        ours = LocalPolynomialRegressor(kernel, bandwidth=LAMBDAS, **options)
        theirs = LocalPolynomialRegressor(product, bandwidth=[0.7, 1.0, 1.0], **options)
        ours.fit(frame, y, weight)
        theirs.fit(as_codes(frame), y, weight)
        codes = as_codes(frame)
        np.testing.assert_allclose(ours.predict(frame), theirs.predict(codes), rtol=1e-10)
        # Intervals and quantiles also average errors in windows that reach beyond a level of
        # few rows, which a kernel of one's own does not have.
        found, expected = ours.smoother_matrix(frame), theirs.smoother_matrix(codes)
        np.testing.assert_allclose(found, expected, atol=1e-9)
        np.testing.assert_allclose(ours.loo_residuals_, theirs.loo_residuals_, atol=1e-9)
        np.testing.assert_allclose(ours.aicc_, theirs.aicc_, rtol=1e-9)

    @pytest.mark.parametrize(("bandwidth", "degree"), [("gcv", 1), (0.5, 2)])
    def test_only_categories(self, data, bandwidth, degree):
        only, y = data[0][["color", "size"]][:30], data[1][:30]
        model = LocalPolynomialRegressor(bandwidth=bandwidth, degree=degree).fit(only, y)
        assert model.predict_interval(only, heteroscedastic=True).shape == (30, 2)
        assert (model.predict_gradient(only) == 0).all()
        assert model.feature_significance(5).p_values.shape == (2,)
        # There is no polynomial in categories.
        averages = clone(model).set_params(degree=0).fit(only, y)
        np.testing.assert_allclose(model.predict(only), averages.predict(only), rtol=1e-9)
        with pytest.raises(
            ValueError,
            match=r"needs distances, but kernel=Gaussian\(\) has.*one numeric column",
        ):
            model.set_params(bandwidth=AdaptiveBandwidth(15)).fit(only, y)


class TestChoice:
    def test_neighbours_are_those_in_the_numbers(self, data):
        frame, y = data
        for bandwidth in (AdaptiveBandwidth(12), "knn-loo"):
            model = NadarayaWatsonRegressor("tricube", bandwidth=bandwidth).fit(frame, y)
            k = model.n_neighbors_
            x = frame["length"].to_numpy()
            codes, lam = as_codes(frame), model.bandwidth_
            for row in (0, 7):
                gaps = np.abs(x - x[row])
                u = gaps / np.sort(gaps)[k - 1]
                w = np.clip(1 - u**3, 0, None) ** 3
                w *= np.where(codes[:, 1] == codes[row, 1], 1 - lam[1], lam[1] / 2)
                w *= lam[2] ** np.abs(codes[:, 2] - codes[row, 2])
                if w.sum() > 1e-6:
                    found = model.predict(frame[row : row + 1])[0]
                    assert found == pytest.approx(w @ y / w.sum(), rel=1e-6)

    @pytest.mark.parametrize(
        ("bandwidth", "message"),
        [
            ([0.5, 0.7, 0.2], r"bandwidth\[1\]=0.7 is not valid: pass a number in \[0, 0.6666"),
            ([0.5, 0.1, 1.1], r"bandwidth\[2\]=1.1 is not valid: pass a number in \[0, 1\]"),
            ([0.5, "loo", 0.2], r"bandwidth\[1\]='loo' is not valid"),
        ],
    )
    def test_nonsense(self, data, bandwidth, message):
        with pytest.raises(ValueError, match=message):
            NadarayaWatsonRegressor(bandwidth=bandwidth).fit(*data)

    @pytest.mark.parametrize("bandwidth", [0.5, "loo"])
    def test_kernels_that_name_columns_are_refused(self, data, bandwidth):
        kernel = ProductKernel([("length", "gaussian", [0])])
        with pytest.raises(ValueError, match=r"names columns itself.*or X as numbers"):
            NadarayaWatsonRegressor(kernel, bandwidth=bandwidth).fit(*data)
        every = ProductKernel("epanechnikov")
        model = NadarayaWatsonRegressor(every, bandwidth=0.5).fit(*data)
        assert np.isfinite(model.predict(data[0])).all()


class TestLevels:
    @pytest.mark.parametrize(("bandwidth", "degree"), [(LAMBDAS, 2), ([0.7, 1e-3, 0.4], 0)])
    def test_never_seen_are_left_out_of_account(self, data, degree, bandwidth):
        frame, y = data
        model = LocalPolynomialRegressor(bandwidth=bandwidth, degree=degree).fit(frame, y)
        lam = model.bandwidth_.copy()
        lam[1] = 2 / 3
        blind = LocalPolynomialRegressor(bandwidth=lam, degree=degree).fit(frame, y)
        expected = blind.predict(frame)
        for level in ("mauve", None, np.nan, ""):
            found = model.predict(frame.assign(color=level))
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


class TestNamedCategories:
    """Columns of numbers that the parameter `categorical_features` calls categories."""

    @pytest.mark.parametrize(
        ("estimator", "named"),
        [
            (LocalPolynomialRegressor(bandwidth=[0.7, 0.3, 0.4]), [1, 2]),
            (NadarayaWatsonRegressor("tricube", bandwidth="knn-loo"), np.array([2, 1])),
            (NadarayaWatsonClassifier(bandwidth="scott"), [False, True, True]),
            (ConditionalKernelDensity(bandwidth="scott", target_bandwidth=0.3), [1, 2]),
        ],
    )
    def test_of_an_array_are_those_of_a_frame(self, data, estimator, named):
        frame, y = data
        y = (y > 1).astype(int) if isinstance(estimator, NadarayaWatsonClassifier) else y
        numbers = as_codes(frame) * [1, 10, 0.5]
        strings = pd.DataFrame({"length": numbers[:, 0]})
        strings["color"], strings["size"] = numbers[:, 1].astype(str), numbers[:, 2].astype(str)
        expected = clone(estimator).fit(strings, y)
        model = clone(estimator).set_params(categorical_features=named).fit(numbers, y)
        assert model.columns_.kinds == ("numeric", "unordered", "unordered")
        np.testing.assert_array_equal(model.keys_, expected.keys_)
        # Frames lie in memory by columns: sums are rounded differently.
        np.testing.assert_allclose(model.bandwidth_, expected.bandwidth_, rtol=1e-7)
        agree = np.testing.assert_array_almost_equal
        agree(model.predict(numbers), expected.predict(strings))
        unseen, blank = numbers.copy(), strings.assign(color="?")
        unseen[:, 1] = 99.5
        agree(model.predict(unseen), expected.predict(blank))
        for X in (numbers.tolist(), numbers.astype(object)):
            agree(model.predict(X), expected.predict(strings))

    def test_by_name_besides_those_that_the_dtype_makes(self, data):
        frame, y = data
        frame["group"] = np.arange(N) % 3 + 7
        frame["count"] = np.arange(N) % 4
        model = NadarayaWatsonRegressor(categorical_features=["group"]).fit(frame, y)
        kinds = ("numeric", "unordered", "ordered", "unordered", "numeric")
        assert model.columns_.kinds == kinds
        assert model.columns_.categories[3] == (7, 8, 9)
        strings = frame.assign(group=frame["group"].astype(str))
        expected = NadarayaWatsonRegressor().fit(strings, y).predict(strings)
        np.testing.assert_array_equal(model.predict(frame), expected)

    @pytest.mark.parametrize("given", ["colour", [3], [1.0]])
    def test_of_no_such_column(self, data, given):
        message = r"categorical_features=.* does not fit 3 columns: pass 'from_dtype', or a"
        with pytest.raises(ValueError, match=message):
            NadarayaWatsonRegressor(categorical_features=given).fit(*data)


class TestMemory:
    @pytest.mark.parametrize(("bandwidth", "degree"), [(LAMBDAS, 0), ("scott", 1)])
    def test_partial_fit_with_new_levels_equals_fit_on_all(self, data, degree, bandwidth):
        frame, y = data
        frame = frame.sort_values("color", ascending=False)  # blue comes last
        grown = LocalPolynomialRegressor(bandwidth=bandwidth, degree=degree)
        first = (frame["color"] != "blue").to_numpy()
        assert list(frame["color"][:2]) == ["red", "red"]
        grown.partial_fit(frame[first], y[first]).predict_interval(frame[first])
        grown.partial_fit(frame[~first], y[~first])
        whole = LocalPolynomialRegressor(bandwidth=bandwidth, degree=degree)
        whole.fit(pd.concat([frame[first], frame[~first]]), np.append(y[first], y[~first]))
        assert sorted(grown.columns_.categories[1]) == sorted(whole.columns_.categories[1])
        np.testing.assert_allclose(grown.predict(frame), whole.predict(frame), rtol=1e-6)
        np.testing.assert_allclose(
            grown.predict_interval(frame), whole.predict_interval(frame), rtol=1e-5
        )

    def test_keys_of_new_numbers_are_no_unseen_levels(self):
        first = pd.DataFrame({"zip": pd.Categorical([10, 20, 10, 20])})
        model = NadarayaWatsonRegressor(bandwidth=[0.1]).fit(first, [0.0, 1.0, 0.0, 1.0])
        model.partial_fit(pd.DataFrame({"zip": [30, 30]}), [5.0, 5.0])
        found = model.predict(pd.DataFrame({"zip": [30, 99]}))
        assert found[0] > 4
        assert found[1] == pytest.approx(2.0)  # the mean of all rows
