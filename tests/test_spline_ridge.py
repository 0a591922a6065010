"""Spline columns and their ridge, against smoothing splines, refits and finite differences."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline, make_smoothing_spline
from scipy.optimize import approx_fprime

from sklearn_attention._spline_ridge import (
    NormalEquations,
    SplineColumns,
    reml,
    reml_penalties,
)


def make_rows(n=40, seed=0):
    """Columns of two numbers, two outputs, weights and the groups of the columns."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 2))
    splines = [SplineColumns.learn(column, 4) for column in x.T]
    columns = [s.interpolate(column, s.values) for s, column in zip(splines, x.T, strict=True)]
    Z = np.hstack([np.ones((n, 1)), *columns])
    y = np.column_stack([np.sin(6 * x[:, 0]), x[:, 1]]) + 0.2 * rng.normal(size=(n, 2))
    return Z, y, rng.uniform(0.5, 2, n), np.array([0, 1, 1, 1, 1, 2, 3, 3, 3, 3])


def refit(Z, y, weights, penalties):
    """Coefficients by least squares of the rows, and of rows that are the penalties' roots."""
    root = np.sqrt(weights)[:, None]
    rows = np.vstack([root * Z, np.diag(np.sqrt(penalties))])
    targets = np.vstack([root * y, np.zeros((len(penalties), y.shape[1]))])
    return np.linalg.lstsq(rows, targets)[0]


def test_predictions_without_the_row_are_those_of_refits():
    Z, y, weights, group = make_rows()
    equations = NormalEquations.from_rows(Z, y, weights)
    penalties = np.append(0.0, np.array([0.1, 3.0, 20.0, 0.5])[group])
    kept = np.ones(len(Z), dtype=bool)
    expected = np.empty_like(y)
    for row in range(len(Z)):
        kept[row] = False
        expected[row] = Z[row] @ refit(Z[kept], y[kept], weights[kept], penalties)
        kept[row] = True
    predictions = equations.left_out(Z, y, weights, penalties)
    np.testing.assert_allclose(predictions, expected, atol=1e-10)
    np.testing.assert_allclose(equations.solve(penalties), refit(Z, y, weights, penalties))


def test_equations_without_rows_are_those_of_the_others():
    Z, y, weights, _ = make_rows()
    rows = slice(5, 20)
    both = NormalEquations.from_rows(Z, y, weights)
    removed = NormalEquations.from_rows(Z[rows], y[rows], weights[rows])
    others = (np.delete(values, rows, axis=0) for values in (Z, y, weights))
    for difference, expected in zip(
        both.plus(removed, -1), NormalEquations.from_rows(*others), strict=True
    ):
        np.testing.assert_allclose(difference, expected, atol=1e-12)


def test_reml_is_the_likelihood_of_residuals_from_the_constant():
    # Twice the log-likelihood of contrasts of y that have no constant: their covariance is
    # sigma^2 (W^-1 + Z P^-1 Z'), with the best sigma^2 of each output.
    Z, y, weights, group = make_rows()
    equations = NormalEquations.from_rows(Z, y, weights)
    contrasts = np.linalg.qr(np.ones((len(Z), 1)), mode="complete")[0][:, 1:].T

    def slow(log_penalties):
        prior = (Z[:, 1:] / np.exp(log_penalties)[group]) @ Z[:, 1:].T
        covariance = contrasts @ (np.diag(1 / weights) + prior) @ contrasts.T
        squares = [
            z @ np.linalg.solve(covariance, z) for z in (contrasts @ column for column in y.T)
        ]
        log_determinant = np.linalg.slogdet(covariance)[1]
        return ((len(Z) - 1) * np.log(squares).sum() + 2 * log_determinant) / len(Z)

    rng = np.random.default_rng(1)
    first, second = rng.normal(scale=2, size=(2, 4))
    # The two differ by a constant, which depends on the weights.
    difference = reml(first, equations, group)[0] - reml(second, equations, group)[0]
    assert difference == pytest.approx(slow(first) - slow(second), abs=1e-10)
    gradient = approx_fprime(first, lambda logs: reml(logs, equations, group)[0], 1e-6)
    np.testing.assert_allclose(reml(first, equations, group)[1], gradient, atol=1e-6)


def test_penalties_have_the_largest_likelihood():
    Z, y, weights, group = make_rows(n=200)
    equations = NormalEquations.from_rows(Z, y, weights)
    logs = np.log(reml_penalties(equations, group)[1:])
    chosen = np.array([logs[group == g][0] for g in range(4)])
    best = reml(chosen, equations, group)[0]
    for change in np.vstack([np.eye(4), -np.eye(4)]):
        assert reml(chosen + change, equations, group)[0] > best - 1e-3


def test_scales_of_targets_do_not_change_penalties():
    Z, y, weights, group = make_rows()
    expected = reml_penalties(NormalEquations.from_rows(Z, y, weights), group)
    scaled = NormalEquations.from_rows(Z, y * 2.0**40, weights)
    np.testing.assert_allclose(reml_penalties(scaled, group), expected, rtol=1e-6)


def test_a_ridge_of_the_functions_is_a_smoothing_spline():
    x = np.sort(np.random.default_rng(0).uniform(size=35))
    y = np.sin(7 * x) + 0.1 * np.random.default_rng(1).normal(size=35)
    spline = SplineColumns.learn(x, 33)
    Z = np.column_stack([np.ones(35), spline.interpolate(x, spline.values)])
    equations = NormalEquations.from_rows(Z, y[:, None], np.ones(35))
    # Ranks make the coordinate differ from x a little; the penalties are matched by their fit.
    expected = make_smoothing_spline(x, y, lam=1e-4)(x)
    fits = [
        Z @ equations.solve(np.append([0, 0], np.full(Z.shape[1] - 2, penalty)))[:, 0]
        for penalty in np.geomspace(1e-3, 10, 60)
    ]
    assert min(np.abs(fit - expected).max() for fit in fits) < 0.03


def test_between_few_numbers_columns_are_natural_cubic_splines():
    places = np.linspace(-1, 2, 7)
    spline = SplineColumns.learn(np.repeat(places, 10), 20)
    expected = CubicSpline(places, spline.interpolate(places, spline.values), bc_type="natural")
    # Ranks of places with equally many rows change with them, so that the coordinate is x.
    queries = spline.nodes[1:-1]
    columns = spline.interpolate(queries, spline.values)
    np.testing.assert_allclose(columns, expected(queries), atol=1e-9)
    assert len(queries) >= 40


def test_columns_are_a_line_and_functions_without_it():
    x = np.random.default_rng(0).normal(size=500)
    spline = SplineColumns.learn(x, 6)
    columns = spline.interpolate(x, spline.values)
    assert np.corrcoef(x, columns[:, 0])[0, 1] > 0.999
    variances = columns.var(axis=0)
    assert variances[0] == pytest.approx(1, abs=0.1)
    assert variances[1:].sum() == pytest.approx(1, abs=0.15)
    correlations = np.corrcoef(columns.T) - np.eye(7)
    assert np.abs(correlations).max() < 0.2


@pytest.mark.parametrize("unit", [1.0, 1e-300, 1e305])
def test_columns_continue_as_lines_beyond_the_rows(unit):
    x = np.linspace(0, 1, 60)
    spline = SplineColumns.learn(unit * x, 3)
    queries = np.array([-50.0, -1.0, 0.0, 1.0, 2.0, 50.0])
    columns = spline.interpolate(unit * queries, spline.values)
    line = np.polynomial.Polynomial.fit(queries[2:4], columns[2:4, 0], 1)
    np.testing.assert_allclose(columns[:, 0], line(queries), rtol=1e-9)
    assert line.deriv()(0.0) == pytest.approx(1 / x.std(), rel=0.05)
    # These are the slopes at the edge, but for the tenth that ranks add to them.
    steps = np.diff(spline.values[:, 1:], axis=0) / np.diff(spline.nodes / unit)[:, None]
    slopes = np.diff(columns[:, 1:], axis=0) / np.diff(queries)[:, None]
    np.testing.assert_allclose(slopes[:2], [0.9 * steps[1]] * 2, rtol=2e-3)
    np.testing.assert_allclose(slopes[3:], [0.9 * steps[-2]] * 2, rtol=2e-3)


def test_numbers_that_differ_by_rounding_have_finite_columns():
    x = np.full(100, 0.3)
    x[0] = np.nextafter(0.3, 1)
    spline = SplineColumns.learn(x, 3)
    with np.errstate(all="raise"):
        assert np.isfinite(spline.interpolate(x, spline.values)).all()


def test_slopes_are_derivatives_and_0_where_missing():
    rng = np.random.default_rng(0)
    spline = SplineColumns.learn(rng.normal(size=80), 5)
    values, x = spline.values @ rng.normal(size=(6, 2)), rng.normal(size=30)
    moved = (spline.interpolate(x + 1e-7, values) - spline.interpolate(x, values)) / 1e-7
    np.testing.assert_allclose(spline.slopes(x, values), moved, atol=1e-5)
    missing = np.array([np.nan])
    assert not spline.slopes(missing, values).any()
    assert not spline.interpolate(missing, values).any()


@pytest.mark.parametrize("values", [[0, 1], [0, 1, 1, 3], [-1e300, 0, 1e300], [0, 1e-300]])
def test_columns_of_few_values(values):
    x = np.repeat(np.array(values, dtype=float), 3)
    spline = SplineColumns.learn(x, 5)
    n_values = len(np.unique(x))
    assert np.isfinite(spline.values).all()
    assert spline.values.shape[1] == n_values - 1
    assert set(x) <= set(spline.nodes)
    columns = spline.interpolate(x, spline.values)
    assert np.linalg.matrix_rank(np.column_stack([np.ones(len(x)), columns])) == n_values


def test_an_outlier_leaves_the_shape_of_the_others():
    x = np.random.default_rng(0).uniform(size=300)
    expected = np.sin(8 * x)
    columns = []
    for column in (x, np.append(x, 1e9)):
        spline = SplineColumns.learn(column, 20)
        Z = np.column_stack([np.ones(300), spline.interpolate(x, spline.values)])
        columns.append(np.abs(Z @ np.linalg.lstsq(Z, expected)[0] - expected).max())
    assert columns[0] < 0.02
    assert columns[1] < 0.1


def test_functions_stay_finite_beyond_rows_that_nearly_coincide():
    # The slope between the two smallest numbers would be beyond all numbers.
    spline = SplineColumns.learn(np.append(np.linspace(0, 1e-300, 60), 1.0), 5)
    with np.errstate(over="raise"):
        columns = spline.interpolate(np.array([-1.0, 0.0, 0.5, 2.0]), spline.values)
    assert np.abs(columns).max() < 1e4
