"""Kernel ridge regression of training rows, in one block and in several, against numpy."""

import numpy as np
import pytest

from sklearn_attention import _blocks
from sklearn_attention.kernel_attention import _ridge
from sklearn_attention.kernel_attention._encodings import ENCODINGS, Encoding, TrainingRows
from sklearn_attention.kernel_attention._kernel import LearnedKernel
from sklearn_attention.kernel_attention._ridge import RidgeMember, System
from sklearn_attention.kernels import Tricube
from sklearn_attention.kernels._base import as_kernel

every_part = pytest.mark.parametrize(("rough", "linear"), [(True, False), (False, True)])


def make_training(n=90, encodings=ENCODINGS, seed=0, X=None):
    """Rows of three features with weights and two outputs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) if X is None else X
    learned = [Encoding.learn(name, X, ["numeric"] * X.shape[1]) for name in encodings]
    targets = np.column_stack([np.sin(2 * X[:, 0]), X[:, -1]]) + 0.2 * rng.normal(size=(n, 2))
    return TrainingRows(X, targets, rng.uniform(0.3, 2, n), learned, np.zeros(2), np.ones(2))


def make_kernel(training, formula="gaussian", *, rough=True, linear=False, noise=0.3):
    rows = training.coordinates(np.arange(len(training)), np.float64)
    return LearnedKernel.start(
        training.features, [z.var(axis=0) for z in rows], training.X.shape[1],
        as_kernel(formula), rough=rough, linear=linear, noise=noise,
    )  # fmt: skip


def slow_weights(kernel, training, rows, X):
    """Effective weights of the rows at queries, from the normal equations."""
    keys = training.encode(training.X[rows], np.float64)
    square = kernel.matrix(keys, keys) + kernel.noise * np.diag(1 / training.weights[rows])
    between = kernel.matrix(training.encode(X, np.float64), keys)
    return np.linalg.solve(square, between.T).T


def slow_predictions(kernel, training, rows, X):
    return slow_weights(kernel, training, rows, X) @ training.targets[rows]


def fit(kernel, training, held_out=()):
    held_out = np.asarray(held_out, dtype=int)
    return RidgeMember.fit(kernel, training, np.random.default_rng(0), held_out)


def test_a_matrix_that_is_not_positive_definite_is_an_error(monkeypatch):
    training = make_training()
    kernel = make_kernel(training, Tricube(), rough=False)
    wild = np.where(np.eye(90), 1.0, 1e12)
    monkeypatch.setattr(
        LearnedKernel, "matrix",
        lambda self, queries, keys: wild[: len(queries[0]), : len(keys.rows[0])],
    )  # fmt: skip
    with pytest.raises(np.linalg.LinAlgError, match="choose a positive definite kernel"):
        System(kernel, training, np.arange(90), np.float64)


@every_part
def test_one_block_equals_numpy(rough, linear, monkeypatch):
    monkeypatch.setattr(_blocks, "ROWS_AT_ONCE", 4 * 90)
    training = make_training()
    kernel = make_kernel(training, rough=rough, linear=linear)
    held_out = np.array([5, 3, 80])
    member, left_out = fit(kernel, training, held_out)
    queries, rows = make_training(9, seed=1).X, np.arange(90)
    weights = slow_weights(kernel, training, rows, queries)
    np.testing.assert_allclose(
        member.predict(training, queries), weights @ training.targets, rtol=1e-10
    )
    np.testing.assert_allclose(
        member.weights(training, queries), weights, rtol=1e-9, atol=1e-11
    )
    assert len(member.rows) == 1
    for row, left in zip(held_out, left_out, strict=True):
        expected = slow_predictions(kernel, training, np.delete(rows, row), training.X[[row]])
        np.testing.assert_allclose(left, expected[0], rtol=1e-10)


class TestSeveralBlocks:
    @pytest.fixture(autouse=True)
    def _small_blocks(self, monkeypatch):
        monkeypatch.setattr(_ridge, "_MAX_BLOCK_ROWS", 40)

    def make(self, n=200, **options):
        training = make_training(n)
        return make_kernel(training, **options), training

    def of_blocks(self, member, training, X):
        """Weights of the queries in each block."""
        points = member.kernel.space(training.encode(X, np.float32)) @ member.axes
        found = np.zeros((len(X), len(member.rows)))
        for leaf, (rows, weights) in enumerate(member.partition.leaves(points)):
            found[rows, leaf] = weights
        return found

    @every_part
    def test_predictions_are_weighted_ones_of_the_blocks(self, rough, linear):
        kernel, training = self.make(rough=rough, linear=linear)
        member, _ = fit(kernel, training, [1, 2])
        assert len(member.rows) > 4
        queries = make_training(30, seed=1).X
        shares = self.of_blocks(member, training, queries)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        expected = sum(
            share[:, None] * slow_predictions(kernel, training, rows, queries)
            for share, rows in zip(shares.T, member.rows, strict=True)
        )
        found = member.predict(training, queries)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        effective = member.weights(training, queries)
        np.testing.assert_allclose(effective @ training.targets, found, rtol=1e-9, atol=1e-10)

    def test_left_out_is_exact_in_every_block(self):
        kernel, training = self.make()
        held_out = np.arange(0, 200, 5)
        member, left_out = fit(kernel, training, held_out)
        shares = self.of_blocks(member, training, training.X[held_out])
        assert (shares.max(axis=1) < 1).any()
        for row, share, left in zip(held_out, shares, left_out, strict=True):
            expected = sum(
                weight * slow_predictions(
                    kernel, training, np.setdiff1d(rows, [row]), training.X[[row]]
                )[0]
                for weight, rows in zip(share, member.rows, strict=True)
                if weight
            )  # fmt: skip
            np.testing.assert_allclose(left, expected, rtol=1e-5, atol=1e-6)


def smooth_at(training, X, step):
    """Where no feature crosses an edge or knot of an encoding within a step."""
    found = np.ones(X.shape, dtype=bool)
    for feature in range(X.shape[1]):
        moved = step * (np.arange(X.shape[1]) == feature)
        for encoding in training.encodings:
            slopes = [encoding.derivative(X + sign * moved) for sign in (1, 0, -1)]
            found[:, feature] &= (np.ptp(slopes, axis=0) == 0).all(axis=1)
    return found


@pytest.mark.parametrize(("most", "step", "tolerance"), [(3000, 1e-6, 1e-5), (40, 1e-3, 0.02)])
@pytest.mark.parametrize("formula", ["gaussian", "matern52"])
def test_slopes_equal_differences(monkeypatch, formula, most, step, tolerance):
    monkeypatch.setattr(_ridge, "_MAX_BLOCK_ROWS", most)
    training = make_training(120)
    kernel = make_kernel(training, formula, rough=True, linear=True)
    member, _ = fit(kernel, training)
    assert len(member.rows) == 1 if most > 120 else len(member.rows) > 2
    queries = make_training(60, seed=1).X
    found = member.slopes(training, queries)
    smooth = smooth_at(training, queries, step)
    assert smooth.sum() > 60
    # Slopes of other formulas than the Gaussian one are differences themselves.
    tolerance = max(tolerance, 1e-3) if formula != "gaussian" else tolerance
    for feature in range(3):
        moved = step * (np.arange(3) == feature)
        ends = [member.predict(training, queries + sign * moved) for sign in (1, -1)]
        expected, inside = (ends[0] - ends[1]) / (2 * step), smooth[:, feature]
        np.testing.assert_allclose(
            found[inside][:, :, feature], expected[inside], rtol=tolerance, atol=tolerance
        )


def test_many_rows_are_solved_in_single_precision(monkeypatch):
    monkeypatch.setattr(_ridge, "_MAX_DOUBLE_ROWS", 50)
    training = make_training(200)
    queries = make_training(20, seed=1).X
    for noise, dtype in ((0.3, np.float32), (1e-5, np.float64)):
        kernel = make_kernel(training, noise=noise)
        member, left_out = fit(kernel, training, np.arange(30))
        assert {part.dtype for part in member.coefficients} == {np.dtype(dtype)}
        with monkeypatch.context() as patched:
            patched.setattr(_ridge, "_MAX_DOUBLE_ROWS", 200)
            double, left_double = fit(kernel, training, np.arange(30))
        for found, expected in (
            (member.predict(training, queries), double.predict(training, queries)),
            (left_out, left_double),
            (member.weights(training, queries), double.weights(training, queries)),
            (member.slopes(training, queries), double.slopes(training, queries)),
        ):
            np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)


def test_predictions_of_single_precision_depend_on_other_queries_by_rounding_only(monkeypatch):
    monkeypatch.setattr(_ridge, "_MAX_DOUBLE_ROWS", 50)
    training, queries = make_training(400), make_training(60, seed=1).X
    member, _ = fit(make_kernel(training, noise=0.01), training)
    assert member.coefficients[0].dtype == np.float32
    alone = np.concatenate([member.predict(training, query[None]) for query in queries])
    # Deviations of the noise are .1.
    np.testing.assert_allclose(alone, member.predict(training, queries), rtol=0, atol=1e-4)


class TestBlocksOfLevels:
    """Rows of a level are in one block where the category matters as much as all else."""

    def fit(self, monkeypatch, *, steepness, largest=5, n_levels=80, most=200, ordered=False):
        monkeypatch.setattr(_ridge, "_MAX_BLOCK_ROWS", most)
        rng = np.random.default_rng(0)
        codes = np.append(np.tile(np.arange(n_levels), 5), np.full(largest - 5, 3))
        codes = np.sort(codes) if ordered else rng.permutation(codes)
        X = np.column_stack([rng.normal(size=(len(codes), 2)), codes])
        kinds = ["numeric", "numeric", "unordered"]
        learned = Encoding.learn_all(ENCODINGS, X, kinds, 12)
        targets = rng.normal(size=n_levels)[X[:, [2]].astype(int)] + X[:, :1]
        n = len(X)
        training = TrainingRows(X, targets, np.ones(n), learned, np.zeros(1), np.ones(1))
        kernel = make_kernel(training)
        values = kernel.values.copy()
        kernel.named(values)["scale"][0, 2] += steepness
        return X, fit(kernel.with_values(values), training)[0]

    def parted(self, X, member):
        """Share of levels whose rows are not all in the same blocks."""
        blocks = np.zeros((len(X), len(member.rows)), dtype=int)
        for leaf, rows in enumerate(member.rows):
            blocks[rows, leaf] = 1
        levels = np.unique(X[:, 2])
        assert len(member.rows) > 1
        assert blocks.any(axis=1).all()
        return np.mean([np.ptp(blocks[X[:, 2] == level], axis=0).any() for level in levels])

    @pytest.mark.parametrize("ordered", [False, True])
    def test_if_it_matters(self, monkeypatch, ordered):
        assert self.parted(*self.fit(monkeypatch, steepness=2.0, ordered=ordered)) == 0

    @pytest.mark.parametrize(
        "options",
        [
            pytest.param({"steepness": -2.0}, id="numbers matter more"),
            pytest.param({"steepness": 2.0, "largest": 60}, id="a level is much of a block"),
        ],
    )
    def test_not_otherwise(self, monkeypatch, options):
        assert self.parted(*self.fit(monkeypatch, **options)) > 0.5


def test_no_row_is_twice_in_a_block_of_equal_rows(monkeypatch):
    monkeypatch.setattr(_ridge, "_MAX_BLOCK_ROWS", 40)
    training = make_training(200, X=np.ones((200, 3)))
    member, _ = fit(make_kernel(training), training, [3, 150])
    (rows,) = [rows for rows in member.rows if len(rows)]
    assert len(np.unique(rows)) == len(rows) == 42


def test_sums_of_few_keys_are_kept_and_those_of_many_are_not(monkeypatch):
    training, queries = make_training(), np.random.default_rng(1).normal(size=(5, 3))
    member, _ = fit(make_kernel(training), training)
    first = member.predict(training, queries)
    assert list(member._kernel_sums) == [0]
    np.testing.assert_array_equal(member.predict(training, queries), first)
    monkeypatch.setattr(_ridge, "_MAX_CACHED", 90)
    member, _ = fit(make_kernel(training), training)
    np.testing.assert_array_equal(member.predict(training, queries), first)
    assert not member._kernel_sums
