"""Rows that judge: how like queries are to them, and how far errors reach there."""

import dataclasses

import numpy as np
import pytest

from sklearn_attention.kernel_attention import _judges
from sklearn_attention.kernel_attention._judges import Judges
from sklearn_attention.kernel_attention._kernel import LearnedKernel
from sklearn_attention.kernels import Gaussian

N = 30


def make(n=N, noise=0.2, linear=True):
    rng = np.random.default_rng(0)
    features, rows = [np.arange(2)], [rng.normal(size=(n, 2))]
    kernel = LearnedKernel.start(
        features, [np.ones(2)], 2, Gaussian(), rng, jitter=0.3, linear=linear, noise=noise
    )
    return kernel, rows, rng.uniform(0.5, 2, n)


def plain_matrix(kernel, *rows):
    """The kernel without its constant and its linear part."""
    values = kernel.values.copy()
    kernel.named(values)["linear"][:] = -np.inf
    kernel = dataclasses.replace(kernel, values=values, constant=0.0)
    return kernel.matrix(*rows)


def deviations_by_hand(kernel, rows, weights, query):
    """Of a new target at one query, by the formula."""
    known = plain_matrix(kernel, rows, None) + np.diag(kernel.noise / weights)
    at = plain_matrix(kernel, query, rows)[0]
    own = plain_matrix(kernel, query, None)[0, 0]
    return np.sqrt(own + kernel.noise - at @ np.linalg.solve(known, at))


def test_queries_have_the_kernel_and_the_deviation_of_a_new_target():
    kernel, rows, weights = make()
    queries = [np.array([[0.0, 0.0], [1.0, -2.0], [9.0, 9.0]])]
    likeness, found = Judges(kernel, rows, weights)(queries)
    np.testing.assert_allclose(np.exp(likeness), plain_matrix(kernel, queries, rows), rtol=1e-9)
    expected = [deviations_by_hand(kernel, rows, weights, [queries[0][[i]]]) for i in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found[0] < found[1] < found[2]


def test_rows_have_the_deviations_of_left_out_ones():
    kernel, rows, weights = make()
    found = Judges(kernel, rows, weights).deviations
    for i in range(N):
        others = np.delete(np.arange(N), i)
        new = deviations_by_hand(kernel, [rows[0][others]], weights[others], [rows[0][[i]]])
        own_noise = kernel.noise / weights[i] - kernel.noise
        assert found[i] == pytest.approx(np.sqrt(new**2 + own_noise), rel=1e-6)


def test_of_many_rows_some_are_known(monkeypatch):
    monkeypatch.setattr(_judges, "_MOST_KNOWN", 10)
    kernel, rows, weights = make()
    found = Judges(kernel, rows, weights)
    known = np.linspace(0, N - 1, 10).astype(int)
    some = Judges(kernel, [rows[0][known]], weights[known])
    queries = [np.random.default_rng(1).normal(size=(4, 2))]
    likeness, of_queries = found(queries)
    assert likeness.shape == (4, N)
    np.testing.assert_allclose(of_queries, some(queries)[1])
    np.testing.assert_allclose(found.deviations[known], some.deviations)
    others = np.setdiff1d(np.arange(N), known)
    np.testing.assert_allclose(found.deviations[others], some([rows[0][others]])[1])


@pytest.mark.parametrize("noise", [0.0, 1e-12])
def test_copies_without_noise_are_no_error(noise):
    kernel, rows, _ = make(noise=1.0)
    values = kernel.values.copy()
    values[-1] = np.log(noise) / 2 if noise else -np.inf
    rows = [np.repeat(rows[0][:3], 5, axis=0)]
    found = Judges(kernel.with_values(values), rows, np.ones(15))
    assert np.isfinite(found.deviations).all()
    assert (found.deviations > 0).all()
    at, far = found([np.array([rows[0][0], [50.0, 50.0]])])[1]
    assert 0 < at < 0.1 * far


def test_deviations_of_averages_do_not_vary():
    kernel, rows, weights = make()
    found = Judges(kernel, rows, weights, varied=False)
    assert (found.deviations == 1).all()
    assert (found([np.zeros((2, 2))])[1] == 1).all()
