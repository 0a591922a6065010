"""Windows of a stream of texts."""

import itertools

import numpy as np
import pytest

from sklearn_attention.sequence._token_windows import (
    TokenStream,
    TokenWindows,
    context_start,
    context_stride,
)
from sklearn_attention.text._special import END, PADDING, START

LENGTHS = (3, 0, 17, 1, 40)


def make_texts(lengths=LENGTHS):
    """Texts in which every token is another number."""
    numbers = np.arange(10, 10 + sum(lengths))
    return np.split(numbers, np.cumsum(lengths)[:-1])


def pairs_of(texts):
    """All pairs of neighbours, slowly."""
    found = []
    for text in texts:
        whole = [START, *text.tolist(), END]
        found += itertools.pairwise(whole)
    return found


def counted(batch):
    """Pairs that count in some windows."""
    ids, following = batch
    real = following != PADDING
    return list(zip(ids[real].tolist(), following[real].tolist(), strict=True))


def all_rows(windows):
    return np.arange(len(windows))


@pytest.mark.parametrize("max_length", [1, 7, 100])
def test_every_pair_counts_in_one_window(max_length):
    texts = make_texts()
    for stride in (None, context_stride(max_length)):
        windows = TokenWindows(TokenStream.from_texts(texts), max_length, stride)
        ids, following = windows.batch(all_rows(windows))
        assert ids.shape == following.shape
        assert ids.shape[1] <= max_length
        assert counted((ids, following)) == pairs_of(texts)


@pytest.mark.parametrize("max_length", [1, 7, 100])
def test_overlapping_windows_are_the_contexts_that_texts_are_written_from(max_length):
    (text,) = make_texts([40])
    whole = [START, *text.tolist(), END]
    windows = TokenWindows(
        TokenStream.from_texts([text]), max_length, context_stride(max_length)
    )
    ids, following = windows.batch(all_rows(windows))
    contexts = {
        int(row_following[i]): row_ids[: i + 1].tolist()
        for row_ids, row_following in zip(ids, following, strict=True)
        for i in np.flatnonzero(row_following != PADDING)
    }
    for n_tokens in range(1, len(whole)):
        start = context_start(n_tokens, max_length)
        assert contexts[whole[n_tokens]] == whole[start:n_tokens]
        assert (start == 0) == (n_tokens <= max_length)
        assert n_tokens - start <= max_length
        assert n_tokens - start > max_length // 2 or start == 0


@pytest.mark.parametrize(("fraction", "length"), [(0.01, 4), (0.5, 1), (0.999, 1000)])
def test_a_share_is_held_out(fraction, length):
    texts = make_texts()
    pairs = pairs_of(texts)
    learned, held_out = TokenStream.from_texts(texts).hold_out(fraction, length)
    parts = [TokenWindows(part, 4) for part in (learned, held_out)]
    seen = [counted(part.batch(all_rows(part))) for part in parts]
    assert sorted(seen[0] + seen[1]) == sorted(pairs)
    assert len(seen[1]) == min(max(1, round(fraction * len(pairs))), len(pairs) - 1)


def test_what_is_held_out_is_spread_over_a_text():
    stream = TokenStream.from_texts(make_texts([3999]))
    learned, held_out = stream.hold_out(0.1, 16)
    np.testing.assert_array_equal(held_out.n_pairs, [40] * 10)
    np.testing.assert_array_equal(held_out.first, 180 + 400 * np.arange(10))
    np.testing.assert_array_equal(learned.n_pairs, [180, *[360] * 9, 180])
    # No shorter stretches than are wanted, but one.
    assert stream.hold_out(0.1, 150)[1].n_pairs.tolist() == [200, 200]
    assert stream.hold_out(0.1, 500)[1].first.tolist() == [1800]


def test_moved_windows_stay_within_their_texts():
    texts = make_texts()
    pairs = set(pairs_of(texts))
    windows = TokenWindows(TokenStream.from_texts(texts), 8)
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = rng.permutation(len(windows))
        ids, following = windows.moved_batch(rows, rng.random(len(rows)) - 0.5)
        assert set(counted((ids, following))) <= pairs
        # A longer text fills its windows, a shorter one is there whole.
        lengths = (following != PADDING).sum(axis=1)
        n_windows = [1, 1, 3, 1, 6]
        expected = np.repeat([min(n + 1, 8) for n in LENGTHS], n_windows)
        np.testing.assert_array_equal(lengths, expected[rows])
        np.testing.assert_array_equal(windows.lengths, expected)
