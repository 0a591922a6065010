"""Leave-one-out errors of kernel ridge regression, losses of them, and gradients."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from sklearn_attention.kernel_attention import _members as module
from sklearn_attention.kernel_attention._kernel import LearnedKernel
from sklearn_attention.kernel_attention._members import (
    LossOfClasses,
    cross_entropy,
    leave_one_out,
    log_loss_of_votes,
    squared_loss,
)
from sklearn_attention.kernel_attention._pairs import Pairs
from sklearn_attention.kernels._base import as_kernel

FEATURES = [np.array([0, 1, 2]), np.array([0, 0, 1, 1, 2])]
FREQUENCIES = np.array([0.3, 0.3, 0.4])
# Two outputs, the second of two classes.
BOTH = np.append(FREQUENCIES, [0.25, 0.75]), [slice(0, 3), slice(3, 5)]


def make_rows(n=30, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, len(feature))) for feature in FEATURES]


def make_kernel(rows, formula="gaussian", *, rough=True, linear=False):
    rng = np.random.default_rng(1)
    kernel = LearnedKernel.start(
        FEATURES, [z.var(axis=0) for z in rows], 3, as_kernel(formula), rough=rough,
        linear=linear,
    )  # fmt: skip
    return kernel.with_values(kernel.values + 0.1 * rng.normal(size=len(kernel.values)))


def make_targets(n=30, seed=2):
    """Indicators of two outputs' classes less their frequencies, and weights."""
    rng = np.random.default_rng(seed)
    indicators = np.hstack([np.eye(k)[rng.integers(k, size=n)] for k in (3, 2)])
    weights = rng.uniform(0.5, 2, n)
    return indicators - BOTH[0], weights


def slow_errors(kernel, rows, targets, weights):
    """Errors of fitting again without each row."""
    found = np.empty_like(targets)
    for row in range(len(targets)):
        rest = np.arange(len(targets)) != row
        others, own = [z[rest] for z in rows], [z[[row]] for z in rows]
        matrix = kernel.matrix(others, others) + kernel.noise * np.diag(1 / weights[rest])
        alpha = np.linalg.solve(matrix, targets[rest])
        found[row] = targets[row] - (kernel.matrix(own, others) @ alpha)[0]
    return found


@pytest.fixture(autouse=True)
def _no_noise_of_rounding(monkeypatch):
    # It is a share of the diagonal, so that the slow references would have to know of it.
    monkeypatch.setitem(module.MIN_NOISE, np.dtype(np.float64), 0.0)


@pytest.mark.parametrize("formula", ["gaussian", "matern52"])
def test_errors_equal_fitting_again(formula):
    rows, (targets, weights) = make_rows(), make_targets()
    kernel = make_kernel(rows, formula, linear=True)
    seen = []

    def listen(errors):
        seen.append(errors)
        return 0.0, np.zeros_like(errors)

    leave_one_out(Pairs(kernel, rows), targets, weights, listen)
    expected = slow_errors(kernel, rows, targets, weights)
    np.testing.assert_allclose(seen[0], expected, rtol=1e-10, atol=1e-12)


# Each part of the kernel, with and without rows that do not count.
@pytest.mark.parametrize(
    ("formula", "parts", "n_counted"),
    [
        ("gaussian", (True, False), 30),
        ("gaussian", (False, True), 12),
        ("matern52", (True, True), 12),
    ],
)
@pytest.mark.parametrize(
    "loss", [squared_loss, LossOfClasses(cross_entropy, *BOTH)], ids=["square", "log"]
)
def test_gradient_equals_differences(formula, parts, n_counted, loss):
    rows, (targets, weights) = make_rows(), make_targets()
    kernel = make_kernel(rows, formula, rough=parts[0], linear=parts[1])
    counted = np.where(np.arange(30) < n_counted, weights, 0)
    counted = counted / counted.sum()

    def evaluate(values):
        pairs = Pairs(kernel.with_values(values), rows)
        return leave_one_out(pairs, targets, weights, lambda e: loss(e, targets, counted))

    value, found = evaluate(kernel.values)
    assert value > 0
    expected = np.zeros_like(found)
    free = np.isfinite(kernel.values)
    for i in np.flatnonzero(free):
        step = 1e-5 * (np.arange(len(found)) == i)
        ends = [evaluate(kernel.values + sign * step)[0] for sign in (1, -1)]
        expected[i] = (ends[0] - ends[1]) / 2e-5
    # The sharpness of a cross-entropy is but about the best, where it would not tell; slopes
    # of formulas other than the Gaussian are differences.
    smooth = loss is squared_loss
    tolerance = 1e-3 if not smooth else 1e-8 if formula == "gaussian" else 1e-4
    np.testing.assert_allclose(found[free], expected[free], atol=tolerance)


def test_a_matrix_that_is_not_positive_definite_is_an_error():
    rows, (targets, weights) = make_rows(), make_targets()
    pairs = Pairs(make_kernel(rows), rows)
    pairs.matrix[3, 4] = pairs.matrix[4, 3] = 1e3
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        leave_one_out(pairs, targets, weights, lambda e: (0.0, e))


class TestLosses:
    def make(self, n=40):
        rng = np.random.default_rng(5)
        targets, weights = make_targets(n)
        scores = 0.3 * targets + 0.4 * rng.normal(size=targets.shape)
        return targets - scores, targets, weights / weights.sum()

    def test_cross_entropy_is_about_that_of_the_best_sharpness(self):
        errors, targets, weights = self.make(200)
        indicators, scores = targets + BOTH[0], targets - errors

        def of_output(log_sharpness, classes):
            logits = np.log(BOTH[0][classes]) + np.exp(log_sharpness) * scores[:, classes]
            p = np.exp(log_softmax(logits, axis=1))
            own = (p * indicators[:, classes]).sum(axis=1)
            return -weights @ np.log(0.98 * own + 0.02 / p.shape[1])

        expected = [
            minimize_scalar(of_output, bounds=(-2, 6), method="bounded", args=(classes,)).fun
            for classes in BOTH[1]
        ]
        found = LossOfClasses(cross_entropy, *BOTH)(errors, targets, weights)[0]
        assert found == pytest.approx(np.mean(expected), rel=0.02)

    def test_shares_that_are_negative_cost_and_do_not_pull(self):
        targets = np.array([[1.0, 0.0]]) - 0.5
        loss = LossOfClasses(log_loss_of_votes, np.full(2, 0.5), [slice(0, 2)])
        # The share of the own class is below 0.
        value, slopes = loss(targets - [[-0.8, 0.8]], targets, np.ones(1))
        assert value == pytest.approx(-np.log(0.01))
        assert (slopes == 0).all()
