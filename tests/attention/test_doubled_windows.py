"""Windows that are widened where rows are few, against what they are said to be."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


@pytest.mark.parametrize("gap", [0, 2])
def test_rows_around_a_gap_are_left_out_of_widened_windows_with_their_weights(gap):
    """As if the model were fitted without the row and the gap, whatever the weights are."""
    X, y = rows_with_a_gap(30)
    X, y = X[np.argsort(X[:, 0])], y[np.argsort(X[:, 0])]
    weights = np.random.default_rng(0).choice([0.2, 1.0, 5.0], len(X))
    options = {"bandwidth": 0.01, "degree": 1}
    found = LeaveOneOut(X, y, "gaussian", widen=True, gap=gap, sample_weight=weights, **options)
    left_out = found.predictions().left_out[:, 0]
    for i in range(len(X)):
        far = np.abs(np.arange(len(X)) - i) > gap
        model = LocalPolynomialRegressor(**options).fit(X[far], y[far], weights[far])
        assert left_out[i] == pytest.approx(model.predict(X[[i]])[0], abs=1e-9)


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
        np.testing.assert_array_equal(y - plain.left_out[:, 0], own.errors.loo_residuals[:, 0])
        assert np.abs(np.nan_to_num(plain.left_out - found.left_out)).max() > 1e-3
    assert np.isnan(plain.left_out).any() == (kernel == "epanechnikov")
    # Windows are as they are where those without weight are to show.
    shown = LeaveOneOut(X, y, kernel, widen=True, empty="nan", **options).predictions()
    np.testing.assert_array_equal(shown.left_out, plain.left_out)


def rows_of_any_kind(rng):
    """Rows with repeated places, gaps, weights of 0 and a category, and a local polynomial."""
    n_rows, d = int(rng.integers(6, 40)), int(rng.integers(1, 4))
    X = rng.uniform(0, 4, (n_rows, d))
    kind = rng.choice(["plain", "decimals", "integers", "gap"])
    if kind == "gap":
        X[:, 0] += 5 * (X[:, 0] > 2)
    elif kind != "plain":
        X = X.round(1 if kind == "decimals" else 0)
    category = rng.integers(0, 3, n_rows) if rng.random() < 0.3 else None
    y, weights = np.sin(X.sum(axis=1)) + rng.normal(size=n_rows), np.ones(n_rows)
    weights[3:] = rng.integers(0, 3, n_rows - 3) if rng.random() < 0.5 else 1.0
    kernel = rng.choice(["gaussian", "epanechnikov", "triangular", "boxcar", "laplacian"])
    bandwidth = 10 ** rng.uniform(-1, 0.2)
    return X, category, y, weights, kernel, bandwidth, int(rng.integers(0, 4 if d == 1 else 3))


def fitted_in_another_form(rows, unit=1.0, order=slice(None)):
    """Predictions, fitted values and predictions without each row, in a unit of a feature."""
    X, category, y, weights, kernel, bandwidth, degree = rows
    units = np.where(np.arange(X.shape[1]) == 0, unit, 1.0)
    table = pd.DataFrame(X * units)
    bandwidths = list(bandwidth * np.abs(units))
    if category is not None:
        table["level"] = pd.Categorical(category, categories=range(3))
        bandwidths.append(0.3)
    table.columns = table.columns.astype(str)
    table = table.iloc[order]
    model = LocalPolynomialRegressor(kernel, bandwidth=bandwidths, degree=degree)
    model.fit(table, y[order], sample_weight=weights[order])
    left_out = model.smoother_.training_predictions.left_out[:, 0]
    found = np.empty((3, len(y)))
    found[:, order] = model.predict(table), model.fitted_values_, left_out
    return found


@pytest.mark.parametrize("n", [1, pytest.param(200, marks=pytest.mark.slow)])
def test_rows_are_predicted_alike_in_every_unit_order_and_mirror_image(n):
    @settings(max_examples=n)
    @given(st.integers(0, 10**6))
    def check(seed):
        rng = np.random.default_rng(seed)
        rows = rows_of_any_kind(rng)
        # Rows that hardly determine a parabola multiply its rounding by 1e6.
        tolerance = 1e-10 if rows[-1] < 2 else 1e-9
        expected = fitted_in_another_form(rows)
        forms = (
            {},
            {"unit": 86400e9},
            {"unit": -1e-9},
            {"unit": 1e14, "order": rng.permutation(len(rows[0]))},
        )
        for form in forms:
            found = fitted_in_another_form(rows, **form)
            np.testing.assert_allclose(found[0], found[1], rtol=0, atol=tolerance)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)

    check()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_does_not_double_a_window_of_exactly_the_needed_weight(dtype):
    # A window of twice the bandwidth holds half of the six rows, and so does the next one.
    places = [0.84, 1.28, 0.45], [0.38, 1.02, 1.36], [0.69, 2.56, 0.51]
    far = [3.89, 0.24, 1.26], [3.70, 2.64, 0.39], [3.35, 1.53, 2.25]
    X, y = np.array(places + far, dtype), np.array([1, 2, 4, 8, 16, 32], dtype)
    model = LocalPolynomialRegressor("boxcar", bandwidth=0.707, degree=2).fit(X, y)
    tolerance = 1e-9 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(model.predict(X), model.fitted_values_, atol=tolerance)
    shifted = LocalPolynomialRegressor("boxcar", bandwidth=7070.0, degree=2).fit(1e4 * X, y)
    np.testing.assert_allclose(shifted.predict(1e4 * X), model.predict(X), atol=10 * tolerance)


def test_times_in_nanoseconds_beside_a_ratio():
    """No unit makes different rows one design point."""
    rng = np.random.default_rng(0)
    day, ratio = rng.integers(0, 20, 80), rng.random(80)
    y = np.sin(day / 3) + ratio + 0.1 * rng.normal(size=80)
    X_new = np.column_stack([rng.uniform(0, 20, 30), rng.random(30)])
    found = []
    for start, unit in ((0, 1.0), (0, 86400e9), (1.7e18, 86400e9)):
        X = np.column_stack([start + day * unit, ratio])
        model = LocalPolynomialRegressor(bandwidth=[0.6 * unit, 0.1], degree=1).fit(X, y)
        found.append(model.predict(X_new * [unit, 1] + [start, 0]))
        np.testing.assert_allclose(model.predict(X), model.fitted_values_, rtol=0, atol=1e-10)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-9)
