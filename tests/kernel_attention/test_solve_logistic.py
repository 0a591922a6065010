"""Kernel logistic regression: at its maximum, and its predictions without a row."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit

from sklearn_attention.kernel_attention._solve_logistic import solve_logistic


def make_data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    matrix = 4 * np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2)) + 1
    labels = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(float)
    return matrix, labels, rng.uniform(0.5, 2, n)


def solve(matrix, labels, weights, offset, rows):
    tensors = (torch.as_tensor(x) for x in (matrix, labels[:, None], weights, [offset]))
    found = solve_logistic(*tensors, torch.as_tensor(rows))
    return [x[:, 0].numpy() for x in found]


def refit(matrix, labels, weights, offset):
    """Coefficients by a general minimiser."""

    def loss(alpha):
        f = offset + matrix @ alpha
        value = weights @ np.logaddexp(0, np.where(labels == 1, -f, f))
        gradient = matrix @ (weights * (expit(f) - labels) + alpha)
        return value + 0.5 * alpha @ matrix @ alpha, gradient

    return minimize(loss, np.zeros(len(labels)), jac=True, options={"gtol": 1e-9}).x


def test_maximises_the_penalised_likelihood():
    matrix, labels, weights = make_data()
    coefficients, _ = solve(matrix, labels, weights, 0.3, [0])
    f = 0.3 + matrix @ coefficients
    np.testing.assert_allclose(coefficients, weights * (labels - expit(f)), atol=1e-3)
    np.testing.assert_allclose(f, 0.3 + matrix @ refit(matrix, labels, weights, 0.3), atol=2e-3)


def test_left_out_is_about_what_refitting_says():
    matrix, labels, weights = make_data()
    rows = np.arange(0, 40, 3)
    _, left_out = solve(matrix, labels, weights, 0.3, rows)
    expected = []
    for row in rows:
        others = np.delete(np.arange(40), row)
        alpha = refit(matrix[np.ix_(others, others)], labels[others], weights[others], 0.3)
        expected.append(matrix[row, others] @ alpha)
    # The weights of the other rows stay those of the fit with the row.
    np.testing.assert_allclose(expit(left_out), expit(expected), atol=0.03)
    own = matrix @ solve(matrix, labels, weights, 0.3, rows)[0]
    assert np.abs(left_out - expected).mean() < 0.3 * np.abs(own[rows] - expected).mean()


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_one_class_is_no_trouble(label):
    matrix, _, weights = make_data()
    coefficients, left_out = solve(matrix, np.full(40, label), weights, 0.0, [0, 1])
    assert np.isfinite(coefficients).all()
    assert ((matrix @ coefficients > 0) == (label == 1)).all()
    assert ((left_out > 0) == (label == 1)).all()


def test_separable_classes_stay_finite():
    matrix, _, weights = make_data()
    labels = (np.arange(40) % 2).astype(float)
    coefficients, _ = solve(1e4 * np.eye(40) + matrix, labels, weights, 0.0, [0])
    assert np.isfinite(coefficients).all()


@pytest.mark.parametrize("second_offset", [-0.3, 0.2])
def test_two_classes_are_solved_like_any_others(second_offset):
    matrix, labels, weights = make_data()
    rows, offsets = [0, 7], [0.3, second_offset]
    both = np.column_stack([labels, 1 - labels])
    together = solve_logistic(*map(torch.as_tensor, (matrix, both, weights, offsets, rows)))
    for c, offset in enumerate(offsets):
        alone = solve(matrix, both[:, c], weights, offset, rows)
        for found, expected in zip(together, alone, strict=True):
            np.testing.assert_allclose(found[:, c], expected, atol=1e-8)
