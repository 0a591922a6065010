"""Distributions of errors: weights, quantiles and the score that chooses them."""

import dataclasses

import numpy as np
import pytest

from sklearn_attention.kernel_attention import _distribution as module
from sklearn_attention.kernel_attention._distribution import (
    HeldOutRows,
    _crps,
    choose_sharpness,
    error_deviation,
    error_quantiles,
    weights_of_errors,
)
from sklearn_attention.kernel_attention._kernel import LearnedKernel
from sklearn_attention.kernels import Gaussian


def slow_crps(shares, errors, in_sample_gain, error):
    """The integral over a fine grid, of one distribution and what happened."""
    moved = errors - shares @ in_sample_gain
    low, high = min(moved.min(), error) - 0.1, max(moved.max(), error) + 0.1
    t = np.linspace(low, high, 40_001)
    reached = (shares[:, None] * (moved[:, None] <= t)).sum(axis=0)
    return np.square(reached - (error <= t)).mean() * (high - low)


@pytest.mark.parametrize("n", [1, 9])
def test_crps_equals_its_integral(n):
    rng = np.random.default_rng(n)
    # Copies, and a row of errors that are far off.
    errors = np.append(rng.normal(size=n), [8.0, 8.0])[:n] if n > 5 else rng.normal(size=n)
    shares = rng.dirichlet(np.ones(n), n)
    in_sample_gain = rng.uniform(0, 1, len(errors)) * errors
    expected = [
        slow_crps(own, errors, in_sample_gain, e) for own, e in zip(shares, errors, strict=True)
    ]
    found = _crps(shares, errors, in_sample_gain, np.arange(n))
    np.testing.assert_allclose(found, expected, atol=3e-4)
    some = np.random.default_rng(0).permutation(n)[: n // 2 + 1]
    np.testing.assert_allclose(
        _crps(shares[some], errors, in_sample_gain, some), np.array(expected)[some], atol=3e-4
    )


@pytest.mark.parametrize("sharpness", [0.0, 0.25])
def test_weights_of_errors_equal_their_formula(sharpness):
    rng = np.random.default_rng(0)
    likeness, weights = rng.normal(size=(4, 6)), rng.uniform(0.5, 2, 6)
    # Where a compact kernel reaches nobody all are alike, and where it reaches one it counts.
    likeness[1], likeness[2, :5] = -np.inf, -np.inf
    found = weights_of_errors(likeness, weights, sharpness)
    near = weights * np.exp(sharpness * likeness) if sharpness else np.tile(weights, (4, 1))
    near[1] = weights
    near /= near.sum(axis=1, keepdims=True)
    expected = 0.9 * near + 0.1 * weights / weights.sum()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


class TestCalibration:
    def make(self, spread_of, n=200, seed=0):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, n)
        errors = (spread_of(x) * rng.normal(size=n))[:, None]
        likeness = -np.square(x[:, None] - x) / (2 * 0.1**2)
        return likeness, errors, 0 * errors, np.ones(n), np.arange(n), np.ones(n)

    def test_errors_that_differ_are_weighted_by_where_they_were_made(self):
        likeness, *data, _, _ = self.make(lambda x: np.where(x > 0, 2.0, 0.1))
        some = np.random.default_rng(0).permutation(200)[:60]
        assert choose_sharpness(likeness[some], *data, some, np.ones(60)) >= 0.25
        assert choose_sharpness(*self.make(np.ones_like)) <= 0.0625

    @pytest.mark.parametrize(("n", "error"), [(2, 1.0), (5, 0.0)])
    def test_too_few_errors_and_none_at_all(self, n, error):
        errors = np.full((n, 1), error)
        data = np.zeros((n, n)), errors, 0 * errors, np.ones(n)
        assert choose_sharpness(*data, np.arange(n), np.ones(n)) == 0


def test_deviation_is_unbiased():
    rng = np.random.default_rng(0)
    errors, shares = rng.normal(size=(6, 20_000)), rng.dirichlet(np.ones(5), 1)
    found = error_deviation(shares, errors[:5])[0]
    new = errors[5] - (shares @ errors[:5])[0]
    assert np.square(found).mean() == pytest.approx(np.square(new).mean(), rel=0.03)


def test_errors_stand_in_the_middle_of_their_weights_and_a_new_ones():
    errors = np.arange(5.0)[:, None]
    shares = np.array([[0.1, 0.2, 0.3, 0.3, 0.1]])
    new = np.square(shares).sum()
    middle = (np.cumsum(shares) - shares[0] / 2 + new / 2) / (1 + new)
    found = error_quantiles(shares, errors, 0 * errors, middle[1:4])[0, :, 0]
    np.testing.assert_allclose(found, [1, 2, 3])


def test_means_are_errors_less_the_gain_in_sample_and_quantiles_rise():
    rng = np.random.default_rng(0)
    shares, errors = rng.dirichlet(np.ones(50), 3), rng.normal(size=(50, 2))
    in_sample_gain = rng.uniform(0, 1, (50, 1)) * errors
    found = error_quantiles(shares, errors, in_sample_gain, (np.arange(2000) + 0.5) / 2000)
    expected = shares @ (errors - in_sample_gain)
    np.testing.assert_allclose(found.mean(axis=1), expected, atol=0.05)
    assert (np.diff(found, axis=1) >= 0).all()


N = 30


def make(n=N, noise=0.2, linear=True):
    rng = np.random.default_rng(0)
    features, rows = [np.arange(2)], [rng.normal(size=(n, 2))]
    kernel = LearnedKernel.start(
        features, [np.ones(2)], 2, Gaussian(), linear=linear, noise=noise
    )
    return kernel, rows, rng.uniform(0.5, 2, n)


def likeness_by_hand(kernel, *rows):
    """The kernel without its constant and its linear part."""
    values = kernel.values.copy()
    kernel.named(values)["linear"][:] = -np.inf
    kernel = dataclasses.replace(kernel, values=values, constant=0.0)
    return kernel.matrix(*rows)


def deviations_by_hand(kernel, rows, weights, query):
    """Of a new target at one query, by the formula."""
    matrix = dataclasses.replace(kernel, constant=0.0).matrix
    known = matrix(rows, rows) + np.diag(kernel.noise / weights)
    at = matrix(query, rows)[0]
    own = matrix(query, query)[0, 0]
    return np.sqrt(own + kernel.noise - at @ np.linalg.solve(known, at))


def test_queries_have_the_kernel_and_the_deviation_of_a_new_target():
    kernel, rows, weights = make()
    queries = [np.array([[0.0, 0.0], [1.0, -2.0], [9.0, 9.0]])]
    held_out = HeldOutRows(kernel, rows, weights)
    found, by_hand = held_out.deviations_of(queries), likeness_by_hand(kernel, queries, rows)
    np.testing.assert_allclose(np.exp(held_out.log_kernel(queries)), by_hand, rtol=1e-9)
    to_some = held_out.log_kernel(queries, [rows[0][3:7]])
    np.testing.assert_allclose(np.exp(to_some), by_hand[:, 3:7], rtol=1e-9)
    expected = [deviations_by_hand(kernel, rows, weights, [queries[0][[i]]]) for i in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found[0] < found[1] < found[2]


def test_rows_have_the_deviations_of_left_out_ones():
    kernel, rows, weights = make()
    found = HeldOutRows(kernel, rows, weights).deviations
    for i in range(N):
        others = np.delete(np.arange(N), i)
        new = deviations_by_hand(kernel, [rows[0][others]], weights[others], [rows[0][[i]]])
        own_noise = kernel.noise / weights[i] - kernel.noise
        assert found[i] == pytest.approx(np.sqrt(new**2 + own_noise), rel=1e-6)


def test_of_many_rows_some_are_known(monkeypatch):
    monkeypatch.setattr(module, "_MAX_COMPARED", 10)
    kernel, rows, weights = make()
    found = HeldOutRows(kernel, rows, weights)
    known = np.linspace(0, N - 1, 10).astype(int)
    some = HeldOutRows(kernel, [rows[0][known]], weights[known])
    queries = [np.random.default_rng(1).normal(size=(4, 2))]
    assert found.log_kernel(queries).shape == (4, N)
    np.testing.assert_allclose(found.deviations_of(queries), some.deviations_of(queries))
    np.testing.assert_allclose(found.deviations[known], some.deviations)
    others = np.setdiff1d(np.arange(N), known)
    of_others = some.deviations_of([rows[0][others]])
    np.testing.assert_allclose(found.deviations[others], of_others)


def test_errors_that_are_next_to_nothing_have_a_sharpness():
    """As of a constant, whose errors may be 0 and their parts in the rows rounding."""
    rng = np.random.default_rng(0)
    gain = 1e-16 * rng.normal(size=(30, 1))
    likeness, rows = rng.normal(size=(30, 30)), np.arange(30)
    found = module.choose_sharpness(likeness, 0 * gain, gain, np.ones(30), rows, np.ones(30))
    assert np.isfinite(found)
