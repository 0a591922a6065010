"""Leave-one-out errors in closed form against refitting without each row."""

import numpy as np
import pytest
import torch

from sklearn_attention.nn import leave_one_out_errors


def make_system(n=12, n_outputs=2, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    squared = np.square(X[:, None] - X[None]).sum(axis=2)
    return np.exp(-squared / 2) + noise * np.eye(n), rng.normal(size=(n, n_outputs))


def slow_errors(matrix, targets):
    """Every row less what a system without it predicts."""
    errors = np.empty_like(targets)
    for row in range(len(targets)):
        others = np.arange(len(targets)) != row
        coefficients = np.linalg.solve(matrix[np.ix_(others, others)], targets[others])
        errors[row] = targets[row] - matrix[row, others] @ coefficients
    return errors


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("n", [1, 2, 12])
def test_equals_refitting_without_each_row(n, n_outputs):
    matrix, targets = make_system(n, n_outputs)
    found = leave_one_out_errors(torch.as_tensor(matrix), torch.as_tensor(targets))
    np.testing.assert_allclose(found, slow_errors(matrix, targets), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_gradient_equals_differences(n_outputs):
    matrix, targets = map(torch.as_tensor, make_system(6, n_outputs))
    root = torch.linalg.cholesky(matrix).requires_grad_(True)

    def errors(root):
        # Whatever the root, the matrix is symmetric; a factorisation sees one triangle alone.
        return leave_one_out_errors(root @ root.T, targets)

    assert torch.autograd.gradcheck(errors, (root,))


def test_targets_have_no_gradient():
    matrix, targets = map(torch.as_tensor, make_system(6, 1))
    matrix.requires_grad_(True)
    targets.requires_grad_(True)
    leave_one_out_errors(matrix, targets).sum().backward()
    assert targets.grad is None
    assert torch.isfinite(matrix.grad).all()


def test_keeps_the_precision_it_is_given():
    matrix, targets = make_system()
    double = leave_one_out_errors(torch.as_tensor(matrix), torch.as_tensor(targets))
    single = leave_one_out_errors(
        torch.as_tensor(matrix, dtype=torch.float32),
        torch.as_tensor(targets, dtype=torch.float32),
    )
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single, double, atol=1e-5)


def test_a_matrix_that_is_not_positive_definite_is_an_error():
    with pytest.raises(torch.linalg.LinAlgError):
        leave_one_out_errors(torch.tensor([[1.0, 2.0], [2.0, 1.0]]), torch.ones(2, 1))
