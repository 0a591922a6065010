"""Means and deviations, of all rows at once and of blocks and partitions of them."""

import numpy as np
import pytest

from sklearn_attention import _blocks
from sklearn_attention._column_stats import (
    column_stats,
    mean_and_scale,
    mean_squares,
    merge_stats,
    min_max_sum,
    stats_in_memory,
    std_above_rounding,
)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(100, 3)) * [1, 1e-150, 1e150] + [5, 0, 0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [7, 1000])
def test_blocks_change_nothing(rows, weighted, size, monkeypatch):
    monkeypatch.setattr(_blocks, "ROWS_AT_ONCE", size)
    weights = np.random.default_rng(1).integers(0, 3, 100) * 1.0 if weighted else None
    if weighted:
        weights[14:28] = 0  # a block of no weight
    found = column_stats(rows, weights)
    mean, deviation = found.mean, std_above_rounding(found)
    center = np.average(rows, axis=0, weights=weights)
    unit = np.array([1, 1e-150, 1e150])
    scaled = ((rows - center) / unit) ** 2
    np.testing.assert_allclose(mean / unit, center / unit, rtol=1e-12, atol=1e-12)
    expected = np.sqrt(np.average(scaled, axis=0, weights=weights))
    np.testing.assert_allclose(deviation / unit, expected, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_partitions_are_joined(rows, weighted):
    da = pytest.importorskip("dask.array")
    weights = np.arange(len(rows)) % 3.0 if weighted else None
    parts = da.from_array(rows, chunks=(30, 3)), None if weights is None else da.array(weights)
    found, whole = column_stats(*parts), column_stats(rows, weights)
    for ours, expected in zip(found, whole, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)
    both = merge_stats(stats_in_memory(rows[:30]), stats_in_memory(rows[30:]))
    np.testing.assert_allclose(
        std_above_rounding(both), std_above_rounding(column_stats(rows)), rtol=1e-12
    )
    expected = np.average(rows**2, axis=0, weights=weights)
    for tables in ((rows, weights), parts):
        np.testing.assert_allclose(mean_squares(*tables), expected, rtol=1e-12)
    column = rows[:, 0]
    own = column if weights is None else column[weights > 0]
    lazy = da.from_array(column, chunks=((0, 30, len(rows) - 30),))
    for given in ((column, weights), (lazy, parts[1])):
        assert min_max_sum(*given) == pytest.approx((own.min(), own.max(), own.sum()))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_constant_is_one_in_any_number_of_rows(weighted):
    rng = np.random.default_rng(0)
    constants = rng.normal(size=200)
    X = np.tile(constants, (3000, 1))
    weights = rng.uniform(size=3000) if weighted else None
    if weighted:
        X[0], weights[0] = 1e17, 0.0
    assert (std_above_rounding(column_stats(X, weights)) == 0).all()
    np.testing.assert_array_equal(column_stats(X, weights).mean, constants)
    # So it is where rounding makes a difference between its numbers.
    rounded = np.column_stack([np.append(np.full(8, 0.3), 0.1 + 0.2), np.arange(9.0)])
    assert (std_above_rounding(column_stats(rounded)) > 0).tolist() == [False, True]


@pytest.mark.parametrize("numbers", [np.ones(4), np.append(np.full(50, 0.1) * 3, 0.3), []])
def test_no_spread_and_that_of_rounding_are_one(numbers):
    level, spread = mean_and_scale(np.array(numbers))
    assert level == pytest.approx(np.mean(numbers) if len(numbers) else 0)
    assert spread == 1.0
