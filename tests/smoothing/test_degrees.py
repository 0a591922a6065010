"""Averages of local polynomials of several degrees."""

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.datasets import make_smoothing_curve
from sklearn_attention.smoothing._degrees import _is_rough
from sklearn_attention.smoothing._errors import ErrorSettings


def make_data(n=80, d=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(4 * X[:, 0]) + X[:, -1] ** 2 + 0.2 * rng.normal(size=n)


def refit(model, X, y, weight=None):
    """Each member as an estimator of its own, and its weight."""
    options = {"kernel": model.kernel, "gap": 0, "empty": model.empty}
    return [
        (w, LocalPolynomialRegressor(bandwidth=h, degree=degree, **options).fit(X, y, weight))
        for degree, h, w in model.members_
    ]


def mean_of(members, get):
    return sum(weight * get(member) for weight, member in members)


CASES = {
    "one feature": ({}, 1, None),
    "weights": ({"bandwidth": "aicc"}, 1, "weights"),
    "two features": ({"bandwidth": [0.4, 0.6]}, 2, None),
    "compact kernel": ({"kernel": "tricube", "bandwidth": 0.5}, 1, "weights"),
}


@pytest.mark.parametrize("case", CASES)
def test_all_is_the_average_of_members(case):
    options, d, weight = CASES[case]
    X, y = make_data(d=d)
    if weight is not None:
        weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    model = LocalPolynomialRegressor(**options).fit(X, y, weight)
    members = refit(model, X, y, weight)
    assert len(members) > 1
    assert sum(w for w, _ in members) == pytest.approx(1, abs=1e-12)
    inside = X[:20] * 0.9
    close = {"rtol": 1e-9, "atol": 1e-9}
    for get in (
        lambda own: own.predict(inside),
        lambda own: own.predict_gradient(inside),
        lambda own: own.smoother_matrix(inside),
        lambda own: own.fitted_values_,
        lambda own: own.loo_residuals_,
        lambda own: own.effective_dof_,
    ):
        np.testing.assert_allclose(get(model), mean_of(members, get), **close)
    np.testing.assert_allclose(
        model.smoother_matrix(inside) @ y, model.predict(inside), **close
    )
    heaviest = max(model.members_, key=lambda member: member.weight)
    assert model.degree_ == heaviest.degree
    np.testing.assert_array_equal(model.bandwidth_, heaviest.bandwidth)


def test_weights_are_by_the_corrected_akaike_criterion():
    X, y = make_data(40, 2)
    model = LocalPolynomialRegressor(bandwidth=[0.4, 0.6]).fit(X, y)
    members = refit(model, X, y)
    criteria = np.array([own.aicc_ for _, own in members])
    expected = np.exp(-len(X) * (criteria - criteria.min()))
    # Those below a thousandth are left out, but for that of the line.
    expected[expected < 1e-3 * expected.sum()] = 0.0
    found = [weight for weight, _ in members]
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-6, atol=1e-12)


def test_degrees_of_freedom_are_those_of_all_rows(monkeypatch):
    # A fifth of them is predicted for the criterion.
    monkeypatch.setattr("sklearn_attention.smoothing._degrees.MAX_SEARCH_ROWS", 50)
    monkeypatch.setattr("sklearn_attention.smoothing._degrees.MAX_PAIRS", 0)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(250, 3))
    model = LocalPolynomialRegressor(bandwidth=0.35).fit(X, rng.normal(size=250))
    criteria = [own.aicc_ for _, own in refit(model, X, model.values_)]
    weights = np.array([weight for *_, weight in model.members_])
    # Parabolas have 22 degrees of freedom: with those of a fifth they would win.
    assert weights.argmax() == np.argmin(criteria) == 0


@pytest.mark.slow
def test_averages_decide_for_themselves_which_features_matter():
    # Of ten features two matter, which 200 rows are too few for lines to tell.
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(200, 10))
    y = np.sin(2 * np.pi * X[:, 0]) + 2 * X[:, 1] ** 2 + 0.3 * rng.normal(size=200)
    averages = NadarayaWatsonRegressor().fit(X, y)
    model = LocalPolynomialRegressor().fit(X, y)
    (bandwidth,) = [bandwidth for degree, bandwidth, _ in model.members_ if degree == 0]
    np.testing.assert_allclose(bandwidth, averages.bandwidth_, rtol=0.01)
    assert (bandwidth[2:] > 10).sum() >= 6


def test_each_degree_has_the_bandwidth_that_is_chosen_for_it():
    X, y = make_data()
    model = LocalPolynomialRegressor().fit(X, y)
    for degree, bandwidth, _ in model.members_:
        own = LocalPolynomialRegressor(degree=degree).fit(X, y)
        np.testing.assert_allclose(bandwidth, own.bandwidth_, rtol=0.05)
    heaviest = LocalPolynomialRegressor(degree=model.degree_).fit(X, y)
    assert model.criterion_value_ == pytest.approx(heaviest.criterion_value_, rel=1e-3)
    assert pd.DataFrame(model.members_).columns.tolist() == ["degree", "bandwidth", "weight"]


@pytest.mark.parametrize("d", [1, 2])
def test_beyond_the_rows_the_line_goes_on_from_the_edge(d):
    X, y = make_data(d=d)
    model = LocalPolynomialRegressor(bandwidth=0.4).fit(X, y)
    line = LocalPolynomialRegressor(bandwidth=0.4, degree=1).fit(X, y)
    queries = np.vstack([2.0 * X[:30], X.max(axis=0) + 1.0])
    edge = queries.clip(X.min(axis=0), X.max(axis=0))
    beyond = (queries != edge).any(axis=1)
    assert 5 < beyond.sum() < len(queries)
    expected = model.predict(edge) + line.predict(queries) - line.predict(edge)
    np.testing.assert_allclose(model.predict(queries), expected, rtol=1e-9, atol=1e-9)
    effects = model.smoother_matrix(queries)
    np.testing.assert_allclose(effects @ y, expected, rtol=1e-9, atol=1e-9)
    # Slopes along coordinates that are at the edge are the line's.
    slopes, moves = model.predict_gradient(queries), queries == edge
    expected = line.predict_gradient(queries)
    expected += moves * (model.predict_gradient(edge) - line.predict_gradient(edge))
    np.testing.assert_allclose(slopes, expected, rtol=1e-9, atol=1e-9)


def test_intervals_are_of_the_average():
    # The prediction without a row is the average of the members' without it.
    X, y = make_data(60)
    model = LocalPolynomialRegressor(bandwidth=0.3).fit(X, y)
    members = refit(model, X, y)
    queries = np.linspace(-0.8, 0.8, 7)[:, None]
    found = model.smoother_.left_out(queries)
    parts = [(w, own.smoother_.left_out(queries)) for w, own in members]
    for k in range(3):
        expected = sum(w * part[k] for w, part in parts)
        np.testing.assert_allclose(found[k], expected, rtol=1e-9, atol=1e-9)
    low, high = model.predict_interval(queries).T
    assert (low < model.predict(queries)).all()
    assert (model.predict(queries) < high).all()
    # Bands are around the average of what those of the members are around.
    middle = model.confidence_band(queries).mean(axis=1)
    expected = mean_of(members, lambda own: own.confidence_band(queries).mean(axis=1))
    np.testing.assert_allclose(middle, expected, rtol=1e-9, atol=1e-9)
    # Across a gap rows are predicted by the average too.
    settings = ErrorSettings(gap=3)

    def residuals(fitted):
        return fitted.smoother_.replace(error_settings=settings).errors.loo_residuals

    found, expected = residuals(model), mean_of(members, residuals)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rule", ["scott", "knn-loo", AdaptiveBandwidth(12)])
def test_other_rules_have_lines(rule):
    X, y = make_data()
    found, line = (
        LocalPolynomialRegressor(bandwidth=rule, degree=degree).fit(X, y)
        for degree in ("auto", 1)
    )
    np.testing.assert_array_equal(found.predict(X), line.predict(X))
    assert [(degree, weight) for degree, _, weight in found.members_] == [(1, 1.0)]


@pytest.mark.filterwarnings("ignore:bandwidth='penalized-loo'")
@pytest.mark.parametrize(
    ("n", "kind"),
    [
        (2, "random"), (4, "two places"), (5, "constant"), (7, "two places"), (9, "exact"),
    ],
)  # fmt: skip
def test_few_rows(n, kind):
    rng = np.random.default_rng(n)
    x = rng.integers(0, 2, n) + 0.0 if kind == "two places" else rng.uniform(size=n)
    y = {"constant": np.ones(n), "exact": 1 + 2 * x}.get(kind, rng.normal(size=n))
    model = LocalPolynomialRegressor().fit(x[:, None], y)
    found = model.predict(x[:, None])
    assert np.isfinite(found).all()
    assert np.isfinite(model.predict([[-1.0], [2.0]])).all()
    if kind in ("constant", "exact"):
        np.testing.assert_allclose(found, y, rtol=1e-6)
    if n <= 4:
        line = LocalPolynomialRegressor(degree=1).fit(x[:, None], y)
        np.testing.assert_array_equal(found, line.predict(x[:, None]))


def rough_curve(name="bumps", n=256, seed=0):
    """Rows of a curve with peaks of one or two rows, in any order, and the curve."""
    X, y, truth = make_smoothing_curve(
        name, n, signal_to_noise=7, random_state=seed, return_truth=True
    )
    order = np.random.default_rng(seed).permutation(n)
    return X[order], y[order], truth[order]


def are_narrow_averages(model):
    """Whether narrow averages have taken the place of all degrees; the line has no weight."""
    return [(degree, weight) for degree, _, weight in model.members_] == [(0, 1), (1, 0)]


NARROW = pytest.mark.filterwarnings("ignore:bandwidth='penalized-loo'")


@NARROW
@pytest.mark.parametrize("name", ["bumps", "doppler"])
def test_narrow_averages_follow_a_rough_curve(name):
    X, y, truth = rough_curve(name)
    model = LocalPolynomialRegressor().fit(X, y)
    assert are_narrow_averages(model)
    line = LocalPolynomialRegressor(degree=1).fit(X, y)
    mean_squares = [np.mean((own.predict(X) - truth) ** 2) for own in (model, line)]
    assert mean_squares[0] < 0.6 * mean_squares[1]
    # The noise has the variance 1.
    assert mean_squares[0] < 1.2


@NARROW
def test_rough_curves_are_found_in_any_unit_and_order():
    X, y, _ = rough_curve()
    first = LocalPolynomialRegressor().fit(X, y)
    other = LocalPolynomialRegressor().fit(60 - 1000 * X[::-1], 5 - 0.01 * y[::-1])
    assert are_narrow_averages(first)
    assert are_narrow_averages(other)
    np.testing.assert_allclose(other.predict(60 - 1000 * X), 5 - 0.01 * first.predict(X))


@NARROW
@pytest.mark.parametrize(
    "options", [{"gap": 1}, {"robust": True}, {"bandwidth": "scott"}, {"degree": 1}]
)
def test_only_the_default_looks_for_rough_curves(options):
    X, y, _ = rough_curve()
    order = np.argsort(X[:, 0])
    model = LocalPolynomialRegressor(**options).fit(X[order], y[order])
    assert not are_narrow_averages(model)


@NARROW
@pytest.mark.parametrize("coefficient", [0.3, 0.8])
def test_autocorrelated_noise_is_not_taken_for_a_rough_curve(coefficient):
    n, rng = 300, np.random.default_rng(3)
    noise = lfilter([1], [1, -coefficient], rng.normal(size=n))
    x = np.arange(n) / n
    model = LocalPolynomialRegressor().fit(x[:, None], np.sin(6 * x) + 0.5 * noise)
    assert not are_narrow_averages(model)


@NARROW
def test_copies_of_rows_are_not_taken_for_a_rough_curve():
    X, y = make_data(60)
    model = LocalPolynomialRegressor().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert not are_narrow_averages(model)


def test_a_rough_curve_has_two_neighbouring_places_that_narrow_averages_move():
    x = np.random.default_rng(0).permutation(100).astype(float)
    residuals = np.random.default_rng(1).normal(size=100)
    for places, expected in (([40, 41], True), ([40, 60], False)):
        residuals_at_steps = np.where(np.isin(x, places), 8.0, residuals)
        narrow_residuals = np.where(np.isin(x, places), 1.0, residuals)
        assert _is_rough(x, residuals_at_steps, narrow_residuals) == expected
