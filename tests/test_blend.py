"""Non-negative weights of predictions, against other ways to find them."""

import numpy as np
import pytest
from scipy.optimize import minimize

from sklearn_attention._blend import nonnegative_weights


def make(seed=0, n=60):
    rng = np.random.default_rng(seed)
    targets = rng.standard_t(2, size=n)
    columns = targets[:, None] + rng.normal(size=(n, 3)) * [0.5, 1, 3]
    return columns, targets, rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("limit", [None, 0.4])
def test_no_other_weights_have_less_loss(limit):
    columns, targets, weights = make()

    def loss(shares):
        errors = np.abs(targets - columns @ shares)
        if limit is None:
            return weights @ errors**2
        return weights @ np.where(errors < limit, errors**2 / 2, limit * errors - limit**2 / 2)

    found = nonnegative_weights(columns, targets, weights, limit)
    best = minimize(loss, np.full(3, 0.3), bounds=[(0, None)] * 3)
    assert (found >= 0).all()
    np.testing.assert_allclose(found, best.x, atol=1e-4 if limit is None else 0.01)


def test_few_huge_errors_do_not_decide():
    columns, targets, weights = make()
    other = targets.copy()
    other[3] = 1e6
    near = nonnegative_weights(columns, other, weights, 1.0)
    np.testing.assert_allclose(
        near, nonnegative_weights(columns, targets, weights, 1.0), atol=0.2
    )
    assert nonnegative_weights(columns, other, weights).max() > 100
