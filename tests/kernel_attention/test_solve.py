"""Kernel ridge regression against numpy, in full and through landmarks."""

import numpy as np
import pytest
import torch

from sklearn_attention.kernel_attention import _solve as solve_module
from sklearn_attention.kernel_attention._landmarks import n_landmarks
from sklearn_attention.kernel_attention._solve import SolvedMemory

LANDMARKS = np.array([1, 4, 9, 16, 25])


def gaussian(a, b):
    return np.exp(-np.square(a[:, None] - b[None]).sum(axis=2) / 2)


class Data:
    """Rows with heteroscedastic noise, two outputs, and queries."""

    def __init__(self, n=30, seed=0):
        rng = np.random.default_rng(seed)
        self.X, self.queries = rng.normal(size=(n, 2)), rng.normal(size=(7, 2))
        self.targets = rng.normal(size=(n, 2))
        self.noise = rng.uniform(0.1, 2.0, n)

    def memory(self, landmarks=None, dtype=torch.float64):
        X = torch.as_tensor(self.X)
        carrying = X if landmarks is None else X[torch.as_tensor(landmarks)]

        def matrix(a, b):
            a, b = (carrying if rows is None else X[rows] for rows in (a, b))
            return torch.as_tensor(gaussian(a.numpy(), b.numpy()), dtype=dtype)

        return SolvedMemory(
            matrix,
            torch.as_tensor(self.targets, dtype=dtype),
            torch.as_tensor(self.noise, dtype=dtype),
            None if landmarks is None else torch.as_tensor(landmarks),
        )


@pytest.fixture
def data():
    return Data()


def slow_full(X, targets, noise, queries):
    coefficients = np.linalg.solve(gaussian(X, X) + np.diag(noise), targets)
    return gaussian(queries, X) @ coefficients


def slow_subset(landmarks, X, targets, noise, queries):
    """Subset of regressors: landmarks as they are, rows in the sums over data."""
    cross = gaussian(landmarks, X) / noise
    square = gaussian(landmarks, landmarks) + cross @ gaussian(X, landmarks)
    return gaussian(queries, landmarks) @ np.linalg.solve(square, cross @ targets)


class TestInFull:
    def test_equals_numpy(self, data):
        memory = data.memory()
        expected = np.linalg.solve(gaussian(data.X, data.X) + np.diag(data.noise), data.targets)
        np.testing.assert_allclose(memory.coefficients, expected, rtol=1e-9)

    def test_equals_numpy_whatever_the_blocks(self, data, monkeypatch):
        expected = data.memory().coefficients
        monkeypatch.setattr(solve_module, "_BLOCK", 7)
        np.testing.assert_allclose(data.memory().coefficients, expected, rtol=1e-12)

    def test_left_out_equals_refitting(self, data):
        rows = [3, 0, 29]
        found = data.memory().left_out(torch.tensor(rows))
        for row, left in zip(rows, found, strict=True):
            others = np.arange(30) != row
            expected = slow_full(
                data.X[others], data.targets[others], data.noise[others], data.X[[row]]
            )
            np.testing.assert_allclose(left, expected[0], rtol=1e-9)

    def test_weights_are_those_of_the_prediction(self, data):
        weights = data.memory().weights(torch.as_tensor(gaussian(data.queries, data.X)))
        assert weights.shape == (7, 30)
        expected = slow_full(data.X, data.targets, data.noise, data.queries)
        np.testing.assert_allclose(weights.numpy() @ data.targets, expected, rtol=1e-9)

    def test_single_precision(self, data):
        memory = data.memory(dtype=torch.float32)
        assert memory.coefficients.dtype == torch.float32
        np.testing.assert_allclose(memory.coefficients, data.memory().coefficients, atol=1e-4)


class TestThroughLandmarks:
    @pytest.mark.parametrize("block", [7, 2048])
    def test_equals_the_subset_of_regressors(self, data, monkeypatch, block):
        monkeypatch.setattr(solve_module, "_BLOCK", block)
        memory = data.memory(LANDMARKS)
        assert memory.coefficients.shape == (5, 2)
        landmarks = data.X[LANDMARKS]
        expected = slow_subset(landmarks, data.X, data.targets, data.noise, data.queries)
        found = gaussian(data.queries, landmarks) @ memory.coefficients.numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-8)
        weights = memory.weights(torch.as_tensor(gaussian(data.queries, landmarks)))
        assert weights.shape == (7, 30)
        np.testing.assert_allclose(weights.numpy() @ data.targets, expected, rtol=1e-8)

    def test_left_out_equals_refitting(self, data):
        # A landmark that is left out is no row any more, but still a landmark.
        rows = [0, 2, 4, 29]
        found = data.memory(LANDMARKS).left_out(torch.tensor(rows))
        for row, left in zip(rows, found, strict=True):
            others = np.arange(30) != row
            expected = slow_subset(
                data.X[LANDMARKS], data.X[others], data.targets[others], data.noise[others],
                data.X[[row]],
            )  # fmt: skip
            np.testing.assert_allclose(left, expected[0], rtol=1e-7)

    def test_all_rows_as_landmarks_equal_the_full_solution(self):
        # Rows far apart: the landmarks' matrix alone has no noise to be solved with.
        data = Data()
        data.X *= 5
        everything = np.random.default_rng(1).permutation(30)
        full, through = data.memory(), data.memory(everything)
        between = gaussian(data.queries, data.X)
        found = between[:, everything] @ through.coefficients.numpy()
        np.testing.assert_allclose(
            found, between @ full.coefficients.numpy(), rtol=1e-6, atol=1e-9
        )
        rows = torch.arange(30)
        np.testing.assert_allclose(
            through.left_out(rows), full.left_out(rows), rtol=1e-6, atol=1e-9
        )
        np.testing.assert_allclose(
            through.weights(torch.as_tensor(between[:, everything])),
            full.weights(torch.as_tensor(between)),
            rtol=1e-6,
            atol=1e-9,
        )

    def test_single_precision(self, data):
        memory = data.memory(LANDMARKS, torch.float32)
        assert memory.coefficients.dtype == torch.float32
        expected = data.memory(LANDMARKS).coefficients
        np.testing.assert_allclose(memory.coefficients, expected, rtol=1e-2, atol=1e-3)


class TestSingularMatrices:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("landmarks", [None, np.arange(10)])
    def test_repeated_rows_without_noise(self, data, dtype, landmarks):
        data.X = np.repeat(data.X[:10], 3, axis=0)
        data.targets = np.repeat(data.targets[:10], 3, axis=0)
        # Through landmarks, noise divides.
        data.noise = np.full(30, 0.0 if landmarks is None else 1e-4)
        carrying = data.X if landmarks is None else data.X[landmarks]
        memory = data.memory(landmarks, dtype)
        assert torch.isfinite(memory.coefficients).all()
        assert torch.isfinite(memory.left_out(torch.arange(5))).all()
        if landmarks is None:
            # Copies agree with each other, so that the targets can be reproduced.
            found = gaussian(data.X, carrying) @ memory.coefficients.double().numpy()
            np.testing.assert_allclose(found, data.targets, atol=0.02)

    def test_a_matrix_that_is_not_positive_definite_is_an_error(self):
        def matrix(a, b):
            return torch.where(a[:, None] == b, 1.0, 1e9).double()

        with pytest.raises(
            torch.linalg.LinAlgError, match=r"choose a positive definite kernel"
        ):
            SolvedMemory(matrix, torch.ones(3, 1, dtype=torch.float64), torch.ones(3).double())


@pytest.mark.parametrize("n", [1, 100, 20_000])
def test_few_rows_are_all_landmarks(n):
    assert n_landmarks(n) == n


def test_landmarks_are_as_many_as_the_work_allows():
    counts = [n_landmarks(n) for n in (20_001, 50_000, 100_000, 1_000_000)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 6000
    assert counts[-1] == 2000
    # The work of a hundred thousand rows is that of fifty thousand.
    assert 1e5 * counts[2] ** 2 == pytest.approx(5e4 * counts[1] ** 2, rel=0.01)
