"""Kernel attention as it is learned: rows remembered, folds, members."""

import dataclasses

import numpy as np
import pytest

from sklearn_attention import Columns, KernelAttentionClassifier, KernelAttentionRegressor
from sklearn_attention.kernel_attention._estimator import Options
from sklearn_attention.kernel_attention._fitted import (
    ReadRows,
    fit_kernel_attention,
    join_copies,
)
from sklearn_attention.kernel_attention._members import RidgeLearner
from sklearn_attention.kernel_attention._regressor import REGRESSION
from sklearn_attention.kernels import Gaussian

OPTIONS = Options(Gaussian(), encodings=("standard", "quantile"), n_folds=2, max_steps=2)
TASK = dataclasses.replace(REGRESSION, ridge=lambda n_rows: RidgeLearner())


class Report:
    """The number of members there may be, and of those that are done."""

    def begin(self, n_tasks):
        self.n_tasks, self.n_done = n_tasks, 0

    def done(self, name):
        self.n_done += 1


def make_rows(n=80, n_outputs=2, weights=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    values = np.sin(2 * X[:, :n_outputs]) + 0.5 * rng.normal(size=(n, n_outputs))
    return ReadRows(X, 7 + 3 * values, weights, Columns.numbers(3), outputs=[])


def fit(rows=None, task=TASK, options=OPTIONS):
    report = Report()
    rows = make_rows() if rows is None else rows
    return *fit_kernel_attention(rows, task, options, report), report


@pytest.fixture(scope="module")
def learned():
    return fit()


QUERIES = np.random.default_rng(1).normal(size=(9, 3))


def test_every_fold_has_a_member_and_predictions_are_their_mean(learned):
    fitted, left_out, report = learned
    assert report.n_tasks == report.n_done == len(fitted.members) == 2
    assert left_out.shape == (40, 2)
    expected = np.mean([m.predict(fitted.training, QUERIES) for m in fitted.members], axis=0)
    np.testing.assert_allclose(fitted.predict(QUERIES), expected, rtol=1e-12)


def test_rows_held_out_are_known_to_the_members_of_their_folds(learned):
    fitted, left_out, _ = learned
    found = fitted.predict_held_out()
    assert found.shape == left_out.shape
    member, fold = fitted.members[1], fitted.folds[1]
    expected = member.predict(fitted.training, fitted.training.X[fold])
    np.testing.assert_allclose(found[len(fitted.folds[0]) :], expected)
    targets = fitted.training.targets[fitted.held_out]
    assert np.square(targets - found).mean() < np.square(targets - left_out).mean()


def test_targets_have_mean_0_and_deviation_1_by_weight():
    weights = np.random.default_rng(2).uniform(0.5, 2, 80)
    weights[:7] = 0
    fitted = fit(make_rows(weights=weights))[0]
    training = fitted.training
    np.testing.assert_array_equal(fitted.positions, np.arange(7, 80))
    assert training.weights.mean() == pytest.approx(1)
    np.testing.assert_allclose(training.weights @ training.targets, 0, atol=1e-10)
    spread = np.average(training.targets**2, axis=0, weights=training.weights)
    np.testing.assert_allclose(spread, 1, rtol=1e-12)
    values = training.targets * fitted.training.scale + fitted.training.center
    np.testing.assert_allclose(values, make_rows().values[7:], rtol=1e-12)


@pytest.mark.parametrize(
    ("n", "n_folds", "sizes"),
    [
        (82, 4, [21, 21, 20, 20]),
        # The usual number depends on the rows.
        (100, None, [25, 25, 25, 25]), (300, None, [75]), (7, None, [7]),
    ],
)  # fmt: skip
def test_folds_do_not_overlap(n, n_folds, sizes):
    task = dataclasses.replace(TASK, folds={100: 4, 200: 2, np.inf: 1})
    options = dataclasses.replace(OPTIONS, n_folds=n_folds, max_steps=0)
    fitted = fit(make_rows(n), task, options)[0]
    assert [len(fold) for fold in fitted.folds] == sizes
    assert len(set(fitted.held_out)) == sum(sizes)
    assert all((np.diff(fold) > 0).all() for fold in fitted.folds)


class TestCopies:
    def make(self, n=40, seed=0):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(size=n), rng.integers(0, 3, n)])
        X[::7, 1] = np.nan
        return X, rng.normal(size=n), rng.uniform(0.5, 2, n)

    def slow(self, X, y, weights):
        """The first of equal rows, and the sum of their weights, by a dictionary."""
        found = {}
        for i, row in enumerate(np.column_stack([X, y])):
            kept, total = found.get(row.tobytes(), (i, 0.0))
            found[row.tobytes()] = kept, total + weights[i]
        return zip(*found.values(), strict=True)

    def test_are_joined_wherever_they_are(self):
        X, y, weights = self.make()
        again = np.random.default_rng(1).integers(0, 40, 100)
        X, y, weights = X[again], y[again], np.random.default_rng(2).uniform(size=100)
        rows, totals = join_copies(X, y, weights)
        kept, expected = self.slow(X, y, weights)
        np.testing.assert_array_equal(rows, kept)
        np.testing.assert_allclose(totals, expected)

    def test_rows_that_differ_in_one_cell_are_not_copies(self):
        X, y, weights = self.make()
        values, weights = np.column_stack([y, y]), np.tile(weights, 2)
        for move, moved in ([0.5, 0], [0, 0]), ([0, 0], [1, 0]), ([0, 0], [0, 1]):
            both = np.concatenate([X, X + move]), np.concatenate([values, values + moved])
            assert len(join_copies(*both, weights)[0]) == 80
        # What is missing stays missing.
        both = np.concatenate([X, np.add(X, [0, 0.5])]), np.tile(values, (2, 1))
        assert len(join_copies(*both, weights)[0]) == 80 - np.isnan(X[:, 1]).sum()

    def test_equal_rows_of_few_values_are_observations(self):
        rng = np.random.default_rng(0)
        X, y = rng.integers(0, 4, (200, 2)).astype(float), rng.integers(0, 3, 200)
        rows, weights = join_copies(X, y, np.ones(200))
        np.testing.assert_array_equal(rows, np.arange(200))
        np.testing.assert_array_equal(weights, 1)

    @pytest.mark.parametrize("n_copies", [5, 30])
    def test_one_row_many_times_is_observations(self, n_copies):
        X, _, weights = self.make()
        y = (np.arange(40) % 4 == 0).astype(float)
        again = np.append(np.arange(40), np.full(n_copies, 8))
        rows, _ = join_copies(X[again], y[again], weights[again])
        assert len(rows) == (40 if n_copies == 5 else 40 + n_copies)
        # A class of which all rows are there as often is a sample with replacement.
        rare = np.flatnonzero(y)
        again = np.append(np.arange(40), np.repeat(rare, n_copies))
        assert len(join_copies(X[again], y[again], weights[again])[0]) == 40

    @pytest.mark.parametrize("estimator", [KernelAttentionRegressor, KernelAttentionClassifier])
    def test_copies_change_nothing(self, estimator):
        X, y, _ = self.make()
        y = np.sin(X[:, 0]) + 0.3 * y
        y = (y > 0).astype(int) if estimator is KernelAttentionClassifier else y
        options = {"max_steps": 5, "n_folds": 2}
        once = estimator(**options).fit(X, y)
        thrice = estimator(**options).fit(np.tile(X, (3, 1)), np.tile(y, 3))
        np.testing.assert_array_equal(thrice.predict(X), once.predict(X))
        assert thrice.explain(X, k=40).indices.max() < 40
