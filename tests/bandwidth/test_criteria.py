"""Criteria of a bandwidth, from their definitions and an explicit smoother matrix."""

import math

import numpy as np
import pytest
from leave_one_out import criteria

from sklearn_attention.attention import Scores
from sklearn_attention.bandwidth import (
    corrected_akaike,
    generalized_cross_validation,
    select_bandwidth,
)
from sklearn_attention.bandwidth._criteria import (
    SMOOTHER_CRITERIA,
    criterion_slopes,
    evaluate_criterion,
)
from sklearn_attention.kernels import Epanechnikov, Gaussian


def make_data(d=1, n=50, p=2):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (n, d))
    return X, 100 * np.sin(7 * X[:, [0] * p]) + 30 * rng.normal(size=(n, p))


def slow_smoother(X, kernel, h, degree, weight, queries=None):
    """The smoother matrix, row by row, from weighted least squares."""
    rows = []
    for x in X if queries is None else queries:
        w = kernel(x[None] / h, X / h)[0] * weight
        terms = [np.ones(len(X))]
        terms += [(X - x)[:, j] for j in range(X.shape[1])] if degree else []
        root = np.sqrt(w)[:, None]
        rows.append(np.linalg.lstsq(root * np.column_stack(terms), np.diag(root[:, 0]))[0][0])
    return np.array(rows)


def slow_criterion(name, X, values, kernel, h, degree=0, weight=None):
    weight = np.ones(len(X)) if weight is None else weight
    S = slow_smoother(X, kernel, h, degree, weight)
    n, trace = np.count_nonzero(weight), np.trace(S)
    rss = weight @ ((S @ values - values) ** 2).mean(axis=1)
    if name == "gcv":
        return (rss / n) / (1 - trace / n) ** 2
    if name == "aicc":
        return math.log(rss / n) + (1 + trace / n) / (1 - (trace + 2) / n)
    error = 0.0
    for i in range(len(X)):
        others = np.where(np.arange(len(X)) == i, 0, weight)
        (row,) = slow_smoother(X, kernel, h, degree, others, X[[i]])
        error += weight[i] * ((row @ values - values[i]) ** 2).mean()
    penalty = math.exp((trace / n) ** 2) if name == "penalized-loo" else 1.0
    return penalty * error / n


@pytest.mark.parametrize(
    ("criterion", "degree", "weighted", "kernel"),
    [
        ("loo", 0, True, Gaussian()),
        ("penalized-loo", 1, False, Gaussian()),
        ("gcv", 1, True, Epanechnikov()),
        ("aicc", 0, True, Gaussian()),
        ("aicc", 1, False, Epanechnikov()),
    ],
)
def test_value_of_the_search(criterion, degree, weighted, kernel):
    X, values = make_data(n=30)
    weight = np.random.default_rng(1).uniform(0.5, 2, 30) if weighted else None
    if weighted:  # their sum counts rows
        weight *= 30 / weight.sum()
    # In windows as they are.
    options = {"degree": degree, "sample_weight": weight, "empty": "nan"}
    h, value, *_ = select_bandwidth(X, values, kernel, criterion, **options)
    expected = slow_criterion(criterion, X, values, kernel, h, degree, weight)
    assert value == pytest.approx(expected, rel=1e-6)
    (again,) = criteria(X, values, kernel, [h], criterion, **options)
    assert again == pytest.approx(expected, rel=1e-6)
    candidates = list(np.geomspace(0.02, 5, 40))
    grid = criteria(X, values, kernel, candidates, criterion, **options)
    # Compact kernels make curves with kinks.
    allowance = 1e-4 if kernel == Gaussian() else 5e-3
    assert value <= grid.min() + allowance * abs(grid.min())


def test_no_degrees_of_freedom_left():
    at_limit = Scores(np.zeros(3), np.array([0.0, 0.1, 0.1]), np.array([10.0, 8.5, 3.0]))
    np.testing.assert_array_equal(np.isinf(corrected_akaike(at_limit, 10)), [True, True, False])
    found = generalized_cross_validation(at_limit, 10)
    np.testing.assert_allclose(found, [np.inf, 0.1 / 0.15**2, 0.1 / 0.7**2])
    perfect = Scores(np.zeros(1), np.zeros(1), np.ones(1))
    assert np.isinf(corrected_akaike(perfect, 10))  # not minus infinity
    with pytest.raises(ValueError, match=r"bandwidth='aicc' found no bandwidth"):
        select_bandwidth(*make_data(n=3), Gaussian(), "aicc")


@pytest.mark.parametrize("criterion", SMOOTHER_CRITERIA)
@pytest.mark.parametrize("trace", [0.5, 15.0])
def test_slopes_are_differences(criterion, trace):
    """Of the criterion, along each of its scores alone."""
    scores, step, n = np.array([0.7, 0.4, trace]), 1e-5, 20.0

    def value(scores):
        return float(SMOOTHER_CRITERIA[criterion](Scores(*scores), n))

    moves = step * np.eye(3)
    expected = [(value(scores + move) - value(scores - move)) / (2 * step) for move in moves]
    found = criterion_slopes(criterion, Scores(*scores.tolist()), n, 1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("criterion", list(SMOOTHER_CRITERIA))
def test_exact_predictions_are_judged_without_rounding_errors(criterion):
    # Errors of two scales are rounding, those of a third are not.
    errors = np.array([3e-31, 1e-30, 1e-3])
    scores = Scores(errors, errors, np.array([2.0, 2.0, 2.0]))
    values = evaluate_criterion(criterion, scores, 20, 1.0)
    assert values[0] == values[1] < values[2]
    assert np.isfinite(values).all()
