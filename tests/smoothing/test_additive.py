"""The ridge regression of the additive stage, against its normal equations."""

import numpy as np
import pytest

from sklearn_attention import LocalPolynomialRegressor
from sklearn_attention.smoothing._additive import AdditiveStage, learn_terms


def make_rows(n=40, d=2, seed=0):
    """Rows of a sum of two functions."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * rng.normal(size=n)


@pytest.fixture
def fitted():
    """A stage, its targets, and the inverse (Z'WZ + P)^-1 by dense algebra."""
    X, y = make_rows()
    weights = np.random.default_rng(1).uniform(0.2, 2, len(X))
    columns = LocalPolynomialRegressor(bandwidth=1.0).fit(X, y).columns_
    terms = learn_terms(X, y[:, None], columns, weights)
    stage = AdditiveStage(terms, X, weights / terms.weight_unit)
    Z = terms.encode(X)
    gram = Z.T @ (stage.weights[:, None] * Z)
    return stage, y[:, None], Z, np.linalg.inv(gram + np.diag(terms.penalties))


def test_coefficients_solve_the_normal_equations(fitted):
    stage, y, Z, inverse = fitted
    mean = np.average(y[:, 0], weights=stage.weights)
    expected = inverse @ Z.T @ (stage.weights[:, None] * (y - mean))
    expected[0] += mean
    np.testing.assert_allclose(Z @ stage.coefficients(y), Z @ expected, atol=1e-9)


def test_residuals_and_leverages_are_those_of_the_hat_matrix(fitted):
    stage, y, Z, inverse = fitted
    hat = Z @ inverse @ (Z * stage.weights[:, None]).T
    np.testing.assert_allclose(stage.residuals(y), y - hat @ y, atol=1e-9)
    np.testing.assert_allclose(stage.leverage, hat.diagonal(), atol=1e-9)
    loo = stage.residuals(y)[:, 0] / (1 - hat.diagonal())
    np.testing.assert_allclose(stage.loo_residuals(y)[:, 0], loo, rtol=1e-7)
    dof = 1 + stage.degrees_of_freedom().sum()
    assert dof == pytest.approx(np.trace(hat), rel=1e-9)


def test_terms_without_a_feature_do_not_depend_on_it(fitted):
    stage = fitted[0]
    terms, moved = stage.terms.without(0), stage.keys.copy()
    moved[:, 0] += 0.3
    np.testing.assert_array_equal(terms.encode(moved), terms.encode(stage.keys))
    assert len(terms.feature) < len(stage.terms.feature)
    assert len(terms.penalties) == 1 + len(terms.feature)


def test_standard_errors_of_components_are_of_the_random_effects():
    X, y = make_rows(60)
    model = LocalPolynomialRegressor(structure="additive").fit(X, y)
    smoother, terms = model.smoother_, model.smoother_.terms
    Z = terms.encode(X)
    covariance = np.linalg.inv(Z.T @ Z + np.diag(terms.penalties))
    noise = np.sum(np.square(model.residuals_)) / (len(X) - model.effective_dof_)
    own = np.flatnonzero(np.append(False, terms.feature == 1))
    queries = np.linspace(-1.5, 1.5, 7).repeat(2).reshape(7, 2)
    columns = (terms.encode(queries) - Z.mean(axis=0))[:, own]
    expected = np.einsum("ij,jk,ik->i", columns, noise * covariance[np.ix_(own, own)], columns)
    _, found = smoother.component(1, queries)
    np.testing.assert_allclose(found[:, 0], np.sqrt(expected), rtol=1e-6)
