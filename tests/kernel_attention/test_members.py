"""Members: what is learned and what is given, from which rows, by which steps."""

import dataclasses

import numpy as np
import pytest

from sklearn_attention.kernel_attention import _members as module
from sklearn_attention.kernel_attention._encodings import ENCODINGS, Encoding, TrainingRows
from sklearn_attention.kernel_attention._estimator import Options
from sklearn_attention.kernel_attention._kernel import LearnedKernel
from sklearn_attention.kernel_attention._members import (
    AverageLearner,
    PatchBatches,
    RidgeLearner,
    descend,
    squared_loss,
)
from sklearn_attention.kernels._base import as_kernel

LEARNED = Options(as_kernel("gaussian"), max_steps=8)


def make_training(n=120, seed=0, encodings=ENCODINGS):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    learned = [Encoding.learn(name, X, ["numeric"] * 3) for name in encodings]
    y = np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(n, 1))
    y, weights = (y - y.mean()) / y.std(), rng.uniform(0.5, 2, n)
    return TrainingRows(X, y, weights, learned, np.zeros(1), np.ones(1))


def fit(member, training, held_out, options=LEARNED, seed=0):
    held_out = np.asarray(held_out, dtype=int)
    rng = np.random.default_rng(seed)
    return member.fit(training, held_out, squared_loss, rng, options)


def mean_square(training, rows, predictions):
    return np.square(training.targets[rows] - predictions).mean()


def test_many_rows_are_learned_from_in_patches(monkeypatch):
    drawn = []

    class Listening(module.PatchBatches):
        def draw(self, kernel):
            drawn.append(super().draw(kernel))
            return drawn[-1]

    monkeypatch.setattr(module, "PatchBatches", Listening)
    monkeypatch.setattr(module, "_MAX_LEARNED_ROWS", 60)
    training, held_out = make_training(), np.arange(40)
    member = dataclasses.replace(RidgeLearner(), max_random_rows=50)
    fitted, left_out = fit(member, training, held_out)
    assert len(drawn) == 8
    # Learned from a sample, solved with all.
    assert max(rows.max() for rows, _ in drawn) < 60
    assert len(fitted.coefficients[0]) == 120
    assert mean_square(training, held_out, left_out) < 0.8


class TestMoreKeysThanLearnedFrom:
    @pytest.fixture(autouse=True)
    def _few_keys(self, monkeypatch):
        monkeypatch.setattr(module, "_N_KEYS", 50)
        monkeypatch.setattr(module, "_N_QUERIES", 30)

    def test_averages_use_all_held_out_rows_and_a_sample_of_the_others(self, monkeypatch):
        monkeypatch.setattr(module, "_MAX_AVERAGED", 150)
        training, held_out = make_training(400), np.arange(0, 400, 4)
        fitted, left_out = fit(AverageLearner(), training, held_out)
        assert 150 <= len(fitted.rows) <= 250
        assert np.isin(held_out, fitted.rows).all()
        assert (np.diff(fitted.rows) > 0).all()
        assert mean_square(training, held_out, left_out) < 1
        weights = fitted.weights(training, training.X[:5])
        assert weights.shape == (5, 400)
        assert not np.delete(weights, fitted.rows, axis=1).any()


@dataclasses.dataclass(frozen=True)
class Point:
    """Parameters and nothing else."""

    values: np.ndarray

    def with_values(self, values):
        return Point(values)


TARGET = np.array([1.0, -2.0, 0.5, 3.0])
ALL = np.ones(4, dtype=bool)


class TestDescend:
    def test_finds_the_least_of_a_quadratic_in_free_parameters(self):
        free = np.array([True, False, True, True])
        steep = 1e4 * np.array([1.0, 10.0, 0.1, 2.0])

        def gradient_at(point):
            return np.where(free, steep * (point.values - TARGET), np.nan)

        found = descend(Point(np.zeros(4)), gradient_at, 200, 0.2, free).values
        np.testing.assert_allclose(found[free], TARGET[free], atol=0.02)
        np.testing.assert_array_equal(found[~free], 0)

    def test_noise_rises_until_the_matrix_can_be_factorised(self):
        calls = []

        def gradient_at(point):
            calls.append(point.values.copy())
            if point.values[-1] < 1:
                raise np.linalg.LinAlgError
            return np.zeros(4)

        found = descend(Point(np.zeros(4)), gradient_at, 10, 0.2, ALL)
        assert len(calls) == 10
        np.testing.assert_allclose([call[-1] for call in calls[:5]], [0, 0.2, 0.4, 0.6, 0.8])
        assert found.values[-1] == pytest.approx(1.0)
        np.testing.assert_array_equal(found.values[:-1], 0)


@pytest.mark.parametrize("n", [1, 5, 1000])
def test_scored_rows_have_their_neighbours_in_the_batch(n):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 2)).astype("float32")
    kernel = LearnedKernel.start([np.array([0, 1])], [np.ones(2)], 2, as_kernel("gaussian"))
    rows, n_scored = PatchBatches([z], rng).draw(kernel)
    assert n_scored <= len(rows) == len(set(rows))
    if n < 1000:
        np.testing.assert_array_equal(np.sort(rows), np.arange(n))
        return
    far = np.square(z[rows[:n_scored], None] - z).sum(axis=2)
    nearest = np.argsort(far, axis=1)[:, :4]
    assert np.isin(nearest, rows).mean() > 0.95
    # And rows from elsewhere, so that the batch is as wide as the data.
    assert np.ptp(z[rows], axis=0).min() > 0.6 * np.ptp(z, axis=0).max()
