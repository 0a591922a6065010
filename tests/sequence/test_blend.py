"""Averages of probabilities by counts and by a network, and the weight of both."""

import numpy as np
import pytest
from scipy.special import logsumexp

from sklearn_attention.sequence._blend import Blend, choose_counts_weight
from sklearn_attention.sequence._token_counts import TokenCounts
from sklearn_attention.sequence._token_windows import TokenStream

COUNTS = TokenCounts(TokenStream.of([np.array([4, 5, 6, 4, 5])]), 7, 3)


def test_are_weighted_averages():
    network = np.log(np.random.default_rng(0).dirichlet(np.ones(7), 2))
    prefixes = [[2], [2, 4, 5, 6, 4]]
    found = Blend(COUNTS, 0.3).of_all_tokens(network, prefixes)
    counted = COUNTS.of_all_tokens(np.array([[0, 0, 2], [5, 6, 4]]))
    np.testing.assert_allclose(np.exp(found), 0.3 * np.exp(counted) + 0.7 * np.exp(network))
    assert found.dtype == network.dtype
    assert Blend(COUNTS, 0.3).of_all_tokens(network.astype("f4"), prefixes).dtype == np.float32
    pairs, log_proba = TokenStream.of([np.array([4, 6])]), np.log([0.2, 0.5, 0.1])
    expected = 0.3 * np.exp(COUNTS.of_pairs(pairs)) + 0.7 * np.exp(log_proba)
    np.testing.assert_allclose(np.exp(Blend(COUNTS, 0.3).of_pairs(log_proba, pairs)), expected)


@pytest.mark.parametrize("n", [20, 2000])
def test_the_weight_is_the_likeliest(n):
    rng = np.random.default_rng(0)
    network, counted = np.log(rng.random((2, n)) ** [[1], [2]])
    weight = choose_counts_weight(network, counted)

    def likelihood(weight):
        both = np.log([1 - weight, weight])
        of_tokens = logsumexp([network + both[0], counted + both[1]], axis=0).sum()
        return of_tokens + 5 * both.sum()

    assert all(likelihood(weight) >= likelihood(weight + step) for step in (-1e-3, 1e-3))


def test_few_tokens_leave_the_weight_near_a_half():
    assert choose_counts_weight(np.zeros(1), np.full(1, -9.0)) == pytest.approx(0.45, abs=0.02)
    assert choose_counts_weight(np.zeros(9999), np.full(9999, -9.0)) < 0.01
    assert choose_counts_weight(np.full(9999, -9.0), np.zeros(9999)) > 0.99
