"""Averages with a learned kernel, against loops and differences."""

import numpy as np
import pytest

from sklearn_attention.kernel_attention._averages import AveragePairs
from sklearn_attention.kernel_attention._kernel import LearnedKernel
from sklearn_attention.kernel_attention._members import (
    LossOfClasses,
    log_loss_of_votes,
    squared_loss,
)
from sklearn_attention.kernels._base import as_kernel

FEATURES = [np.array([0, 1, 2]), np.array([0, 0, 1, 1, 2])]
FREQUENCIES = np.array([0.3, 0.3, 0.4])


class Data:
    """Rows of two encodings, with targets of three classes and weights; some are queries."""

    def __init__(self, formula="gaussian", n=40):
        rng = np.random.default_rng(0)
        self.rows = [rng.normal(size=(n, len(feature))) for feature in FEATURES]
        kernel = LearnedKernel.start(
            FEATURES, [z.var(axis=0) for z in self.rows], 3, as_kernel(formula), rough=False,
            constant=0.0,
        )  # fmt: skip
        self.kernel = kernel.with_values(
            kernel.values + 0.1 * rng.normal(size=len(kernel.values))
        )
        self.weights = rng.uniform(0.5, 2, n)
        self.targets = np.eye(3)[rng.integers(3, size=n)] - FREQUENCIES
        self.own = np.arange(10)
        self.queries = [z[self.own] for z in self.rows]


@pytest.mark.parametrize("formula", ["gaussian", "matern52"])
def test_weights_are_shares_of_the_kernel_but_for_rows_left_out(formula):
    data = Data(formula)
    own = np.where(data.own % 2, data.own, -1)
    found = AveragePairs(data.kernel, data.queries, data.rows, data.weights, own).weights
    expected = data.kernel.matrix(data.queries, data.rows) * data.weights
    left_out = np.flatnonzero(own >= 0)
    expected[left_out, left_out] = 0
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_beyond_a_compact_kernel_the_nearest_answer_by_their_weights():
    data = Data("tricube")
    for z in data.rows:
        z[:2] = z.max(axis=0)
    far = [z[:1] + 1000 for z in data.rows]
    spaces = zip(data.kernel.scaled(far), data.kernel.scaled(data.rows), strict=True)
    squared = sum(np.square(query - keys).sum(axis=1) for query, keys in spaces)
    nearest = np.flatnonzero(squared == squared.min())
    assert nearest.tolist() == [0, 1]
    expected = np.zeros(40)
    expected[nearest] = data.weights[nearest] / data.weights[nearest].sum()
    pairs = AveragePairs(data.kernel, far, data.rows, data.weights)
    np.testing.assert_allclose(pairs.weights[0], expected)
    assert not pairs.gradient(np.ones((1, 3)), data.targets).any()


@pytest.mark.parametrize(
    ("formula", "loss"),
    [
        ("gaussian", squared_loss),
        ("matern52", LossOfClasses(log_loss_of_votes, FREQUENCIES, [slice(0, 3)])),
    ],
    ids=["square", "log"],
)
def test_gradient_of_left_out_losses_equals_differences(formula, loss):
    data = Data(formula)
    counted = data.weights[data.own] / data.weights[data.own].sum()

    def evaluate(values):
        kernel, targets = data.kernel.with_values(values), data.targets[data.own]
        pairs = AveragePairs(kernel, data.queries, data.rows, data.weights, data.own)
        errors = targets - pairs.weights @ data.targets
        value, slopes = loss(errors, targets, counted)
        return value, pairs.gradient(-slopes, data.targets)

    values = data.kernel.values
    found = evaluate(values)[1]
    free = np.isfinite(values)
    expected = np.zeros_like(found)
    for i in np.flatnonzero(free):
        step = 1e-5 * (np.arange(len(values)) == i)
        expected[i] = (evaluate(values + step)[0] - evaluate(values - step)[0]) / 2e-5
    tolerance = 1e-9 if formula == "gaussian" else 1e-5
    np.testing.assert_allclose(found[free], expected[free], atol=tolerance)
