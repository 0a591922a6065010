"""Local polynomial regression, against weighted least squares at every query."""

import functools

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.attention import attend_local


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60, 2)) * [1.0, 3.0]
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=60)


def parabola_at(query, x, y):
    """The local parabola at a query by weighted least squares, of a Gaussian of width 0.4."""
    weights = torch.exp(-((x - query) ** 2) / 0.32)
    terms = torch.stack([(x - query) ** power for power in range(3)], dim=1)
    normal = terms.T @ (weights[:, None] * terms)
    return torch.linalg.solve(normal, terms.T @ (weights * y))


class TestGradient:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_of_parabolas_is_the_derivative_of_the_prediction(self, dtype):
        rng = np.random.default_rng(0)
        x, queries = 1000 + np.sort(rng.uniform(0, 5, 60)), 1000 + np.linspace(0.1, 4.9, 12)
        y = np.sin(x) + 0.1 * rng.normal(size=60)
        model = LocalPolynomialRegressor(bandwidth=0.4, degree=2, empty="nan")
        model.fit(x[:, None].astype(dtype), np.stack([y, 3 * y], axis=1))
        found = model.predict_gradient(queries[:, None].astype(dtype))
        tables = [torch.tensor(a.astype(dtype).astype(float) - 1000) for a in (x, queries)]
        parabola = functools.partial(parabola_at, x=tables[0], y=torch.tensor(y))
        jacobian = torch.autograd.functional.jacobian
        both = [jacobian(parabola, query) for query in tables[1]]
        derivatives = np.array([own[0] for own in both])
        close = {"rtol": 0, "atol": 1e-6 if dtype == np.float64 else 1e-3}
        np.testing.assert_allclose(found[:, 0, 0], derivatives, **close)
        np.testing.assert_allclose(found[:, 1, 0], 3 * derivatives, **close)
        slopes = np.array([parabola(query)[1] for query in tables[1]])
        assert np.abs(slopes - derivatives).max() > 0.05

    @pytest.mark.parametrize("bandwidth", ["scott", AdaptiveBandwidth(12)])
    def test_beside_categories_and_constants(self, bandwidth):
        rng = np.random.default_rng(1)
        X = pd.DataFrame({"x": rng.uniform(size=50), "one": 1.0, "z": rng.uniform(size=50)})
        if bandwidth == "scott":
            X["c"] = pd.Categorical(rng.choice(["a", "b"], 50))
        model = LocalPolynomialRegressor(bandwidth=bandwidth, degree=2)
        model.fit(X, X["x"] ** 2 + X["z"])
        ahead, back = (model.predict(X.assign(x=X["x"] + step)) for step in (1e-5, -1e-5))
        gradient = model.predict_gradient(X)
        np.testing.assert_allclose(gradient[:, 0], (ahead - back) / 2e-5, atol=1e-5)
        assert (gradient[:, [1, *range(3, X.shape[1])]] == 0).all()

    @pytest.mark.parametrize(("place", "level"), [(1.7e18, 0.0), (0.0, 1e9), (1e12, -1e6)])
    def test_of_numbers_far_from_zero(self, place, level):
        rng, unit = np.random.default_rng(2), 1e5 if place > 1e15 else 1.0
        X = place + unit * np.arange(60.0)[:, None]
        y = np.sin(np.arange(60) / 6)
        model = LocalPolynomialRegressor(bandwidth=4 * unit, degree=2).fit(X, level + y)
        expected = np.cos(np.arange(60) / 6) / 6
        found = unit * model.predict_gradient(X)[:, 0]
        np.testing.assert_allclose(found[5:-5], expected[5:-5], atol=0.02)
        # Beyond what floats tell apart predictions do not change.
        far = np.array([[place + 1e30 * rng.uniform()]])
        assert (model.predict_gradient(far) == 0).all()

    def test_of_a_boxcar_is_the_local_slope(self):
        x = np.linspace(0, 1, 40)[:, None]
        model = LocalPolynomialRegressor("boxcar", bandwidth=0.2, degree=2).fit(x, x[:, 0] ** 3)
        expected = attend_local(x, x, x[:, 0] ** 3, "boxcar", bandwidth=0.2, degree=2).slopes
        np.testing.assert_array_equal(model.predict_gradient(x), expected)


class TestFit:
    @pytest.mark.parametrize(
        ("kernel", "bandwidth", "degree"),
        [("gaussian", [1.0, 3.0], 2), ("tricube", [1.0, 3.0], 1), ("laplacian", 1.6, 1)],
    )
    def test_is_weighted_least_squares(self, data, kernel, bandwidth, degree):
        X, y = data
        options = {"degree": degree, "bandwidth": bandwidth, "empty": "nan"}
        weight = np.random.default_rng(1).uniform(0.5, 2, len(X))
        both = np.column_stack([y, X[:, 0] ** 2 - y])
        queries = X[:25] * 0.8 + 0.05
        # Which is compared with least squares where it is tested.
        expected = attend_local(queries, X, both, kernel, sample_weight=weight, **options)
        model = LocalPolynomialRegressor(kernel, **options).fit(X, both, weight)
        assert (model.local_ridge(queries) == 0).all()
        close = {"rtol": 0, "atol": 1e-8}
        np.testing.assert_allclose(model.predict(queries), expected.values, **close)
        single = clone(model).fit(X, y, weight)
        np.testing.assert_allclose(single.predict(queries), expected.values[:, 0], **close)
        if degree == 1:
            slopes = model.predict_gradient(queries)
            np.testing.assert_allclose(slopes, expected.slopes, **close)
            slopes = single.predict_gradient(queries)
            np.testing.assert_allclose(slopes, expected.slopes[:, 0], **close)
        effects = single.smoother_matrix(queries)
        np.testing.assert_allclose(effects @ y, single.predict(queries), **close)

    @pytest.mark.parametrize("bandwidth", [0.3, "loo", "knn-loo"])
    def test_degree_0_is_nadaraya_watson(self, data, bandwidth):
        X, y = data[0][:40], data[1][:40]
        ours = LocalPolynomialRegressor(degree=0, bandwidth=bandwidth).fit(X, y)
        theirs = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X, y)
        np.testing.assert_array_equal(ours.bandwidth_, theirs.bandwidth_)
        np.testing.assert_array_equal(ours.predict(X + 0.1), theirs.predict(X + 0.1))
        np.testing.assert_array_equal(ours.loo_residuals_, theirs.loo_residuals_)
        assert ours.aicc_ == theirs.aicc_
        assert (ours.local_ridge(X) == 0).all()


def test_slopes_beyond_all_numbers_do_no_harm():
    X = np.linspace(0, 1, 30)[:, None]
    y = np.sin(6 * X[:, 0])
    one, far = (
        LocalPolynomialRegressor(bandwidth=0.2 * size).fit(X * size, y)
        for size in (1, 2.0**-1030)
    )
    np.testing.assert_allclose(far.predict(X * 2.0**-1030), one.predict(X), rtol=1e-9)
    assert np.isinf(far.predict_gradient(X[:1] * 2.0**-1030)).all()


class TestThinWindows:
    def test_nan_shows_where_no_row_has_weight(self):
        x = np.random.default_rng(0).uniform(size=40)
        y = np.sin(6 * x)
        model = LocalPolynomialRegressor("epanechnikov", bandwidth=0.05, degree=1, empty="nan")
        model.fit(x[:, None], y)
        queries = np.linspace(-0.5, 1.5, 101)[:, None]
        far = np.abs(queries - x).min(axis=1) >= 0.05
        np.testing.assert_array_equal(np.isnan(model.predict(queries)), far)
        # Elsewhere windows are as they are, also those of few rows.
        fit = attend_local(queries[~far], x[:, None], y, "epanechnikov", bandwidth=0.05)
        np.testing.assert_allclose(model.predict(queries[~far]), fit.values, atol=1e-12)

    @pytest.mark.parametrize("degree", [1, pytest.param(2, marks=pytest.mark.slow)])
    def test_constant_and_repeated_columns(self, data, degree):
        X, y = data
        spoiled = np.column_stack([X, np.full(len(X), 3.3), X[:, 0]])
        model = LocalPolynomialRegressor(bandwidth=1.0, degree=degree).fit(spoiled, y)
        assert (model.local_ridge(spoiled) > 0).all()
        found, std = model.predict(spoiled, return_std=True)
        assert np.isfinite(found).all()
        assert (std > 0).all()
        assert np.abs(found - y).max() < 1
        few, y = spoiled[:16], y[:16]
        for rule in ("loo", "scott"):
            model = LocalPolynomialRegressor(bandwidth=rule, degree=degree).fit(few, y)
            assert (model.bandwidth_ > 0).all()
            assert np.isfinite(model.predict(few)).all()

    @pytest.mark.parametrize("degree", [0, 1, 2])
    def test_one_row(self, degree):
        model = LocalPolynomialRegressor(bandwidth=1.0, degree=degree).fit([[1.0]], [5.5])
        queries = [[-3.0], [1.0], [9.0]]
        np.testing.assert_allclose(model.predict(queries), 5.5)
        np.testing.assert_allclose(model.smoother_matrix(queries), 1.0)
        np.testing.assert_allclose(model.predict_gradient(queries), 0.0)
        assert np.isnan(model.loo_residuals_).all()
        assert model.aicc_ == np.inf
        np.testing.assert_array_equal(model.predict_interval(queries), [[-np.inf, np.inf]] * 3)
        for ask in (
            lambda: model.predict(queries, return_std=True),
            lambda: model.predict_interval(queries, heteroscedastic=True),
            lambda: model.predict_quantiles(queries),
            lambda: model.confidence_band(queries),
            model.feature_significance,
        ):
            with pytest.raises(
                ValueError, match=r"1 of 1 training rows .*with more rows, a larger bandwidth"
            ):
                ask()
        for rule in ("loo", "gcv", "aicc", "knn-loo"):
            with pytest.raises(ValueError, match=f"'{rule}'.*n_samples=1: .*or a number"):
                LocalPolynomialRegressor(bandwidth=rule, degree=degree).fit([[1.0]], [5.5])


class TestRefusals:
    @pytest.mark.parametrize("degree", [4, True, np.array([1, 2])])
    def test_degree(self, data, degree):
        model = LocalPolynomialRegressor(degree=degree)
        with pytest.raises(ValueError, match=r"degree=.* is not valid: pass 'auto', 0, 1, 2"):
            model.fit(*data)
        assert not hasattr(model, "keys_")

    @pytest.mark.parametrize(("kernel", "bandwidth"), [("silverman", "loo"), ("linear", 1.0)])
    def test_signed_kernels(self, data, kernel, bandwidth):
        with pytest.raises(ValueError, match=f"kernel='{kernel}'.*or degree=0"):
            LocalPolynomialRegressor(kernel, bandwidth=bandwidth, degree=1).fit(*data)
        average = LocalPolynomialRegressor("silverman", bandwidth=2.0, degree=0).fit(*data)
        of_degrees = LocalPolynomialRegressor("silverman", bandwidth=2.0).fit(*data)
        np.testing.assert_array_equal(average.predict(data[0]), of_degrees.predict(data[0]))
