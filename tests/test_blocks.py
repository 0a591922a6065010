"""Blocks of rows, and the copies of rows that estimators keep."""

import numpy as np
import pytest

from sklearn_attention import _blocks
from sklearn_attention._blocks import append_rows, blocks, own_copy


@pytest.fixture
def mapped(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(20.0).reshape(10, 2))
    return np.load(tmp_path / "rows.npy", mmap_mode="r")


@pytest.mark.parametrize(("n", "size"), [(0, 3), (3, 3), (10, 3), (10, 100), (10, None)])
def test_blocks_cover_a_range(n, size):
    found = list(blocks(n, size))
    assert [i for block in found for i in range(n)[block]] == list(range(n))
    assert all(0 < block.stop - block.start <= (size or n) for block in found)


def test_a_copy_is_in_c_order_and_shares_nothing():
    rows = np.arange(6.0).reshape(2, 3).T
    found = own_copy(rows)
    np.testing.assert_array_equal(found, rows)
    assert found.flags.c_contiguous
    assert not np.shares_memory(found, rows)


def test_memory_maps_stay(mapped):
    assert own_copy(mapped) is mapped
    part = np.asarray(mapped)[2:]
    assert own_copy(part) is part


def test_rows_are_appended_to_arrays_and_maps(mapped, monkeypatch):
    monkeypatch.setattr(_blocks, "ROWS_AT_ONCE", 3)
    expected = np.concatenate([mapped, [[7.5, 8.5]]])
    for rows in (mapped, np.array(mapped)):
        found = append_rows(rows, np.array([[7.5, 8.5]]))
        np.testing.assert_array_equal(found, expected)
        assert isinstance(found, np.memmap) == isinstance(rows, np.memmap)
