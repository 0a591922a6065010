"""Averages with a learned kernel, against loops and differences."""

import numpy as np
import pytest

from sklearn_attention import _blocks
from sklearn_attention.kernel_attention._averages import AverageMember, AveragePairs
from sklearn_attention.kernel_attention._encodings import ENCODINGS, Encoding, TrainingRows
from sklearn_attention.kernel_attention._kernel import LearnedKernel
from sklearn_attention.kernel_attention._members import (
    LossOfClasses,
    log_loss_of_shares,
    squared_loss,
)
from sklearn_attention.kernels._base import as_kernel

FEATURES = [np.array([0, 1, 2]), np.array([0, 0, 1, 1, 2])]
FREQUENCIES = np.array([0.3, 0.3, 0.4])
FORMULAS = ["gaussian", "matern52", "rational_quadratic"]


class Data:
    """Rows of two encodings, with targets of three classes and weights."""

    def __init__(self, formula="gaussian", n=40):
        rng = np.random.default_rng(0)
        self.rows = [rng.normal(size=(n, len(feature))) for feature in FEATURES]
        kernel = LearnedKernel.start(
            FEATURES,
            [z.var(axis=0) for z in self.rows],
            3,
            as_kernel(formula),
            rough=False,
            constant=0.0,
        )
        self.kernel = kernel.with_values(
            kernel.values + 0.1 * rng.normal(size=len(kernel.values))
        )
        self.weights = rng.uniform(0.5, 2, n)
        self.targets = np.eye(3)[rng.integers(3, size=n)] - FREQUENCIES
        self.own = np.arange(10)

    @property
    def queries(self):
        return [z[self.own] for z in self.rows]

    def pairs(self, kernel):
        return AveragePairs(kernel, self.queries, self.rows, self.weights, self.own)


class TestAveragePairs:
    @pytest.mark.parametrize("formula", FORMULAS)
    def test_weights_are_shares_of_the_kernel(self, formula):
        data = Data(formula)
        found = AveragePairs(data.kernel, data.queries, data.rows, data.weights).weights
        matrix = data.kernel.matrix(data.queries, data.rows) * data.weights
        expected = matrix / matrix.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found, expected, rtol=1e-11)

    def test_rows_left_out_have_no_weight(self):
        data = Data()
        own = np.where(data.own % 2, data.own, -1)
        found = AveragePairs(data.kernel, data.queries, data.rows, data.weights, own).weights
        every = AveragePairs(data.kernel, data.queries, data.rows, data.weights).weights
        for row in range(10):
            expected = every[row].copy()
            expected[row] *= own[row] < 0
            np.testing.assert_allclose(found[row], expected / expected.sum(), rtol=1e-11)

    def test_far_away_shares_are_kept(self):
        # Every kernel is 0 in double precision, and the nearest key has most of the weight.
        data = Data()
        far = [z + 1000 for z in data.queries]
        found = AveragePairs(data.kernel, far, data.rows, data.weights).weights
        np.testing.assert_allclose(found.sum(axis=1), 1)

    def test_beyond_a_compact_kernel_the_nearest_answer_by_their_weights(self):
        data = Data("tricube")
        rows = [z.copy() for z in data.rows]
        for z in rows:
            z[1] = z[0]
        weights = data.weights
        squared = [
            np.square(q[:, None] - k).sum(axis=2)
            for q, k in zip(
                data.kernel.scaled([z[:1] + 1000 for z in rows]), data.kernel.scaled(rows),
                strict=True,
            )
        ]  # fmt: skip
        nearest = np.flatnonzero(sum(squared)[0] == sum(squared)[0].min())
        pairs = AveragePairs(data.kernel, [z[:1] + 1000 for z in rows], rows, weights)
        expected = np.zeros(40)
        expected[nearest] = weights[nearest] / weights[nearest].sum()
        np.testing.assert_allclose(pairs.weights[0], expected)
        assert not pairs.gradient(np.ones((1, 3)), data.targets).any()


@pytest.mark.parametrize(
    "loss",
    [squared_loss, LossOfClasses(log_loss_of_shares, FREQUENCIES, [slice(0, 3)])],
    ids=["square", "log"],
)
@pytest.mark.parametrize("formula", FORMULAS)
def test_gradient_of_left_out_losses_equals_differences(formula, loss):
    data = Data(formula)
    counted = data.weights[data.own] / data.weights[data.own].sum()

    def evaluate(values):
        kernel = data.kernel.with_values(values)
        pairs, targets = data.pairs(kernel), data.targets[data.own]
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


class TestMember:
    def make(self, formula="gaussian", n=30):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 3))
        encodings = [Encoding.learn(name, X, ["numeric"] * 3) for name in ENCODINGS]
        training = TrainingRows(
            X,
            rng.normal(size=(n, 2)),
            rng.uniform(0.5, 2, n),
            encodings,
            np.zeros(2),
            np.ones(2),
        )
        variances = [z.var(axis=0) for z in training.coordinates(np.arange(n), np.float64)]
        kernel = LearnedKernel.start(
            training.features,
            variances,
            3,
            as_kernel(formula),
            rough=False,
            constant=0.0,
        )
        return AverageMember(kernel, np.arange(n)), training

    def test_weights_make_the_predictions(self, monkeypatch):
        member, training = self.make()
        queries = np.random.default_rng(1).normal(size=(17, 3))
        found = member.predict(training, queries)
        assert found.shape == (17, 2)
        np.testing.assert_allclose(
            member.weights(training, queries) @ training.targets, found, rtol=1e-11, atol=1e-12
        )
        monkeypatch.setattr(_blocks, "ROWS_AT_ONCE", 5 * 30)
        np.testing.assert_allclose(member.predict(training, queries), found, rtol=1e-12)

    def test_left_out_predictions_are_those_without_the_row(self):
        member, training = self.make()
        rows = np.array([4, 0, 21])
        found = member.predict(training, training.X[rows], rows)
        for row, left in zip(rows, found, strict=True):
            rest = np.delete(np.arange(30), row)
            without = AverageMember(member.kernel, rest)
            expected = without.predict(training, training.X[[row]])[0]
            np.testing.assert_allclose(left, expected, rtol=1e-11)

    def test_averages_have_no_slopes(self):
        member, training = self.make()
        assert not member.slopes(training, training.X[:6]).any()
