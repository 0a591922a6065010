"""Sequences of numbers, as encoders read them."""

import numpy as np
import pytest

from sklearn_attention.transformer._forms import SequenceRows
from sklearn_attention.transformer._series_reader import join_patches, read_steps


def test_steps_are_read_one_by_one():
    X = [np.arange(3, dtype=np.float32), [4.0, np.nan]]
    first, second = read_steps(X)
    np.testing.assert_array_equal(first, [[0], [1], [2]])
    np.testing.assert_array_equal(second, [[4], [np.nan]])
    assert (first.dtype, second.dtype) == (np.float32, np.float64)


@pytest.mark.parametrize("length", [1, 2, 5, 16])
def test_patches_overlap_by_half_and_leave_nothing_out(length):
    lengths = np.array([3, 17, 16, 1])
    steps = np.arange(lengths.sum() * 2, dtype=np.float32).reshape(-1, 2)
    rows = join_patches(SequenceRows(steps, lengths), length)
    sequences = np.split(steps, np.cumsum(lengths)[:-1])
    for number, sequence in enumerate(sequences):
        (own,), _ = rows.batch(np.array([number]))
        stride = max(1, length // 2)
        assert own.shape[2] == 2 * length
        for k, patch in enumerate(own[0].reshape(-1, length, 2)):
            expected = np.full((length, 2), np.nan, dtype=np.float32)
            part = sequence[k * stride :][:length]
            expected[: len(part)] = part
            np.testing.assert_array_equal(patch, expected)
        assert k * stride + length >= len(sequence)
