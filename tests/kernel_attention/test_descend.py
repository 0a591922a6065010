"""Gradient descent on batches of rows."""

import dataclasses

import numpy as np
import pytest

from sklearn_attention.kernel_attention import _batches
from sklearn_attention.kernel_attention._batches import PatchBatches, RandomBatches
from sklearn_attention.kernel_attention._descend import descend
from sklearn_attention.kernel_attention._kernel import LearnedKernel
from sklearn_attention.kernels import as_kernel


@dataclasses.dataclass(frozen=True)
class Point:
    """Parameters and nothing else."""

    values: np.ndarray

    def with_values(self, values):
        return Point(values)


TARGET = np.array([1.0, -2.0, 0.5, 3.0])
ALL = np.ones(4, dtype=bool)


class TestDescend:
    @pytest.mark.parametrize("units", [1.0, 1e4])
    def test_finds_the_least_of_a_quadratic(self, units):
        steep = units * np.array([1.0, 10.0, 0.1, 2.0])
        start = Point(np.zeros(4))
        found = descend(start, lambda p: steep * (p.values - TARGET), 200, 0.2, ALL)
        np.testing.assert_allclose(found.values, TARGET, atol=0.02)
        np.testing.assert_array_equal(start.values, 0)

    def test_only_free_parameters_move(self):
        free = np.array([True, False, True, False])
        gradient = lambda p: np.where(free, p.values - TARGET, np.nan)  # noqa: E731
        found = descend(Point(np.zeros(4)), gradient, 200, 0.2, free).values
        np.testing.assert_allclose(found[free], TARGET[free], atol=0.02)
        np.testing.assert_array_equal(found[~free], 0)

    def test_no_steps(self):
        start = Point(TARGET)
        assert descend(start, None, 0, 0.2, ALL) is start

    def test_first_steps_are_small_and_the_last_ones_smaller(self):
        values = []

        def slide(point):
            values.append(point.values.copy())
            return np.ones(4)

        values.append(descend(Point(np.zeros(4)), slide, 20, 0.5, ALL).values)
        steps = -np.diff(values, axis=0)[:, 0]
        # Of a constant gradient every step is the rate.
        assert steps[0] == pytest.approx(0.02)
        assert steps.max() == pytest.approx(0.5)
        assert steps.argmax() == 3
        assert steps[-1] < 0.01
        assert (np.diff(steps[3:]) < 0).all()

    def test_a_matrix_that_cannot_be_factorised_raises_the_noise(self):
        calls = []

        def gradient_at(point):
            calls.append(point.values.copy())
            if point.values[-1] < 1:
                raise np.linalg.LinAlgError
            return np.zeros(4)

        found = descend(Point(np.zeros(4)), gradient_at, 10, 0.2, ALL)
        assert len(calls) == 10
        np.testing.assert_allclose([call[-1] for call in calls[:5]], [0, 0.3, 0.6, 0.9, 1.2])
        assert found.values[-1] == pytest.approx(1.2)
        np.testing.assert_array_equal(found.values[:-1], 0)

    def test_a_given_noise_stays_what_it_is(self):
        def failing(point):
            raise np.linalg.LinAlgError

        free = np.array([True, True, True, False])
        found = descend(Point(TARGET), failing, 5, 0.2, free)
        np.testing.assert_array_equal(found.values, TARGET)

    def test_other_errors_are_passed_on(self):
        def gradient_at(point):
            raise FloatingPointError("nobody knows why")

        with pytest.raises(FloatingPointError, match="nobody knows why"):
            descend(Point(np.zeros(4)), gradient_at, 10, 0.2, ALL)


class TestRandomBatches:
    def test_are_some_rows_all_judged(self):
        batches = RandomBatches(100, 30, np.random.default_rng(0))
        drawn = []
        for _ in range(40):
            rows, n_judged = batches.draw(None)
            assert n_judged == len(rows) == len(set(rows)) == 30
            assert 0 <= rows.min() <= rows.max() < 100
            drawn.append(rows)
        assert set(np.concatenate(drawn)) == set(range(100))

    @pytest.mark.parametrize("size", [10, 50])
    def test_of_few_rows_are_all(self, size):
        rows, n_judged = RandomBatches(10, size, np.random.default_rng(0)).draw(None)
        np.testing.assert_array_equal(rows, np.arange(10))
        assert n_judged == 10


class TestPatchBatches:
    def make(self, n=1000):
        rng = np.random.default_rng(0)
        coordinates = [rng.normal(size=(n, 2)).astype("float32")]
        kernel = LearnedKernel.start(
            [np.array([0, 1])], [np.ones(2)], 2, as_kernel("gaussian"), rng, jitter=0.0
        )
        return kernel, coordinates, PatchBatches(coordinates, rng)

    def test_judged_come_first_and_none_twice(self):
        kernel, _, batches = self.make()
        drawn = [batches.draw(kernel) for _ in range(12)]
        for rows, n_judged in drawn:
            assert len(set(rows)) == len(rows)
            assert _batches._JUDGED_NEAR <= n_judged <= 8 * _batches._JUDGED_NEAR
            assert n_judged < len(rows) <= 8 * _batches._NEAR + _batches._ELSEWHERE
        assert len({tuple(rows) for rows, _ in drawn}) == 12

    def test_judged_have_their_neighbours_with_them(self):
        kernel, (z,), batches = self.make()
        rows, n_judged = batches.draw(kernel)
        far = np.square(z[rows[:n_judged], None] - z).sum(axis=2)
        nearest = np.argsort(far, axis=1)[:, :4]
        assert np.isin(nearest, rows).mean() > 0.95
        # And rows from elsewhere, so that the batch is as wide as the data.
        assert np.ptp(z[rows], axis=0).min() > 0.6 * np.ptp(z, axis=0).max()

    def test_follow_the_length_scales_after_some_draws(self):
        kernel, (z,), batches = self.make(3000)
        values = kernel.values.copy()
        kernel.named(values)["scale"][0] += [3.0, -3.0]
        narrow = kernel.with_values(values)

        def width(rows, n_judged):
            found = []
            for row in rows[:n_judged]:
                near = np.argsort(np.square(z[rows] - z[row]) @ [np.e**6, np.e**-6])[:16]
                found.append(np.abs(z[rows[near], 0] - z[row, 0]).mean())
            return np.mean(found)

        n_draws = 4 * _batches._REFRESH
        before = np.mean([width(*batches.draw(kernel)) for _ in range(n_draws)])
        after = np.mean([width(*batches.draw(narrow)) for _ in range(n_draws)])
        assert after < 0.5 * before

    @pytest.mark.parametrize("n", [1, 2, 5, 40])
    def test_of_few_rows_are_all(self, n):
        kernel, _, batches = self.make(n)
        rows, n_judged = batches.draw(kernel)
        np.testing.assert_array_equal(np.sort(rows), np.arange(n))
        assert n_judged <= n
