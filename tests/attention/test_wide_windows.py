"""Windows that are widened where rows are few, against what they are said to be."""

import numpy as np
import pytest

from sklearn_attention import LocalPolynomialRegressor
from sklearn_attention.attention import LeaveOneOut, attend_local


def rows_with_a_gap(n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 0.7, n)
    x = np.where(x > 0.35, x + 0.3, x)
    return x[:, None], np.sin(2 * np.pi * x) * 1.2 + 0.3 * rng.normal(size=n)


def slow_enough(query, x, weight, h, degree):
    """How well windows of rows determine a polynomial: by rows and places, one by one."""
    places = np.unique(x)
    needed = 1.5 * (1 + degree)
    of_rows = (weight * np.exp(-(((query - x) / h) ** 2) / 2)).sum() / weight.sum()
    terms = ((places - query) / h)[:, None] ** np.arange(1 + degree)
    root = np.exp(-(((query - places) / h) ** 2) / 4)[:, None]
    # One over the leverage of a row of weight 1 at the query, whose terms are 1, 0, 0.
    worth = 0.0
    if root.max() > 1e-100:
        worth = 1 / (np.linalg.pinv(root * terms)[0] ** 2).sum()
    by_rows = of_rows * len(x) / min(needed, len(x) / 2)
    by_places = of_rows * len(places) / min(needed, len(places) / 2)
    return min(by_rows, max(by_places, worth))


def slow_widened(query, X, y, weight, bandwidth, degree=1):
    """The prediction at a query, doubling by doubling."""
    before = None
    for times in range(40):
        h = bandwidth * 2.0**times
        enough = slow_enough(query, X[:, 0], weight, h, degree)
        fit = attend_local(
            np.array([[query]]), X, y, degree=degree, bandwidth=h, sample_weight=weight
        ).values[0]
        if enough >= 1:
            if before is None:
                return fit
            share = (1 - before[0]) / (enough - before[0])
            return (1 - share) * before[1] + share * fit
        before = enough, fit
    raise AssertionError


@pytest.mark.parametrize(
    ("degree", "weighted", "digits"),
    [(1, True, None), (2, False, None), (1, True, 2), (2, True, 1)],
)
def test_equals_doubling_until_there_is_weight(degree, weighted, digits):
    X, y = rows_with_a_gap()
    X = X if digits is None else np.round(X, digits)
    weight = np.random.default_rng(1).uniform(0.2, 3, 60) if weighted else np.ones(60)
    model = LocalPolynomialRegressor(bandwidth=0.02, degree=degree).fit(X, y, weight)
    queries = np.linspace(-1, 3, 11)
    expected = [slow_widened(q, X, y, weight, 0.02, degree) for q in queries]
    # Where few places determine a polynomial, a ridge is in it.
    tolerance = 1e-9 if digits is None else 1e-5
    np.testing.assert_allclose(model.predict(queries[:, None]), expected, atol=tolerance)


@pytest.mark.parametrize(("kernel", "degree"), [("gaussian", 2), ("epanechnikov", 1)])
def test_exact_where_rows_repeat_a_place(kernel, degree):
    """At the places weighted least squares as it is, whatever the bandwidth."""
    rng = np.random.default_rng(0)
    X = np.repeat(np.arange(12.0), 8)[:, None]
    y = 3 * (X[:, 0] == 4) + 0.1 * rng.normal(size=len(X))
    weight = rng.uniform(0.2, 3, len(X))
    for bandwidth in (0.1, 0.5, 2.0):
        model = LocalPolynomialRegressor(kernel, bandwidth=bandwidth, degree=degree)
        model.fit(X, y, weight)
        plain = attend_local(
            X, X, y, kernel, degree=degree, bandwidth=bandwidth, sample_weight=weight
        )
        np.testing.assert_allclose(model.predict(X), plain.values, atol=1e-10)


@pytest.mark.parametrize("per_feature", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_search_judges_what_is_predicted(per_feature):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.round(rng.exponential(size=60), 1), rng.normal(size=60)])
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=60)
    model = LocalPolynomialRegressor(bandwidth="loo", per_feature=per_feature, degree=1).fit(
        X, y
    )
    error = np.mean(model.loo_residuals_**2)
    assert model.criterion_value_ == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize(
    ("kernel", "degree"), [("gaussian", 1), ("gaussian", 2), ("epanechnikov", 1)]
)
def test_all_that_is_known_agrees(kernel, degree):
    # Weights, and some rows that are there twice.
    X, y = rows_with_a_gap(35)
    X, y = np.append(X, X[:5], axis=0), np.append(y, y[:5] + 1)
    weight = np.random.default_rng(2).uniform(0.2, 3, 40)
    model = LocalPolynomialRegressor(kernel, bandwidth=0.05, degree=degree).fit(X, y, weight)
    queries = np.linspace(-0.5, 1.5, 60)[:, None]
    predictions = model.predict(queries)
    np.testing.assert_allclose(model.smoother_matrix(queries) @ y, predictions, atol=1e-8)
    np.testing.assert_allclose(model.fitted_values_, model.predict(X), atol=1e-9)
    trace = np.trace(model.smoother_matrix(X))
    assert model.effective_dof_ == pytest.approx(trace, abs=1e-8)
    values, _, left_out = model.smoother_.left_out(queries)
    np.testing.assert_allclose(values[:, 0], predictions, atol=1e-8)
    for i in (0, 7, 37):
        rest = np.arange(40) != i
        without = LocalPolynomialRegressor(kernel, bandwidth=0.05, degree=degree)
        without.fit(X[rest], y[rest], weight[rest])
        assert y[i] - model.loo_residuals_[i] == pytest.approx(
            without.predict(X[[i]])[0], abs=1e-8
        )
        if kernel == "gaussian":  # others have windows whose rows do not determine the fit
            np.testing.assert_allclose(left_out[:, i, 0], without.predict(queries), atol=1e-7)


def test_kernels_that_do_not_fall_are_not_widened():
    X, y = rows_with_a_gap(30)
    models = [
        LocalPolynomialRegressor("periodic", bandwidth=0.1, empty=empty, degree=1).fit(X, y)
        for empty in ("nearest", "nan")
    ]
    queries = np.linspace(-1, 2, 20)[:, None]
    np.testing.assert_array_equal(*(model.predict(queries) for model in models))


@pytest.mark.parametrize(("kernel", "degree"), [("gaussian", 2), ("epanechnikov", 1)])
def test_leave_one_out_widens_if_asked(kernel, degree):
    X, y = rows_with_a_gap(40)
    model = LocalPolynomialRegressor(kernel, bandwidth=0.02, degree=degree).fit(X, y)
    options = {"bandwidth": 0.02, "degree": degree}
    found = LeaveOneOut(X, y, kernel, widen=True, **options).predictions()
    np.testing.assert_array_equal(y - found.left_out[:, 0], model.loo_residuals_)
    for empty in ("nearest", "nan"):
        own = model.smoother_.replace(empty=empty, widening=False)
        plain = LeaveOneOut(X, y, kernel, empty=empty, **options).predictions()
        np.testing.assert_array_equal(y - plain.left_out[:, 0], own.errors.left_out[:, 0])
        assert np.abs(np.nan_to_num(plain.left_out - found.left_out)).max() > 1e-3
    assert np.isnan(plain.left_out).any() == (kernel == "epanechnikov")
    # Windows are as they are where those without weight are to show.
    shown = LeaveOneOut(X, y, kernel, widen=True, empty="nan", **options).predictions()
    np.testing.assert_array_equal(shown.left_out, plain.left_out)
