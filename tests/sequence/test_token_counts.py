"""Counts of what followed the same tokens, against a slow and obvious count, and averages."""

import numpy as np
import pytest
from scipy.special import logsumexp
from slow_counts import kneser_ney

from sklearn_attention.sequence._token_counts import TokenCounts, choose_counts_weight
from sklearn_attention.sequence._token_windows import TokenStream
from sklearn_attention.text._special import END, START

N_TOKENS = 9


def make_texts():
    rng = np.random.default_rng(0)
    return [rng.choice([4, 5, 5, 5, 6, 7], n) for n in (30, 1, 12, 3, 3)]


def counts_of(texts, longest):
    return TokenCounts(TokenStream.from_texts(texts), N_TOKENS, longest)


# The last texts are shorter than the longest context.
@pytest.mark.parametrize(
    ("texts", "longest"), [(make_texts(), 1), (make_texts(), 4), ([[4, 5], [5]], 5)]
)
def test_are_what_a_slow_count_gives(texts, longest):
    fresh = np.array([5, 5, 4, 8, 5, 5, 6, 1, 7, 5])
    texts = [np.array(text) for text in texts]
    counts, whole = counts_of(texts, longest), [START, *fresh, END]
    prefixes = [whole[: i + 1] for i in range(len(whole) - 1)]
    expected = np.array(
        [
            [kneser_ney(texts, prefix, token, N_TOKENS, longest) for token in range(N_TOKENS)]
            for prefix in prefixes
        ]
    )
    found = np.exp(counts.next_log_proba(prefixes))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    # Pairs of several texts, in their order.
    found = np.exp(counts.pair_log_proba(TokenStream.from_texts([fresh, fresh[:3]])))
    following = np.arange(len(fresh) + 1), [*fresh, END]
    np.testing.assert_allclose(found[: len(fresh) + 1], expected[following], rtol=1e-12)
    np.testing.assert_allclose(found[-4:-1], expected[following][:3], rtol=1e-12)
    assert len(found) == len(fresh) + 1 + 3 + 1


def test_what_is_held_out_is_not_counted():
    # The only 8 stands in the middle, and so does the stretch.
    stream = TokenStream.from_texts([np.array([4, 5] * 10 + [8] + [4, 5] * 10)])
    learned, held_out = stream.hold_out(0.1, 4)
    nothing = TokenCounts(learned, N_TOKENS, 3).next_log_proba(np.array([[5, 4, 5], [0, 0, 8]]))
    assert nothing[0, 8] == nothing[0, 1]
    everything = TokenCounts(stream, N_TOKENS, 3).next_log_proba(np.array([[5, 4, 5]]))
    assert everything[0, 8] > nothing[0, 8]
    assert 8 in stream.ids[held_out.pair_positions()[0]]


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
