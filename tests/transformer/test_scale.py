"""Levels and spreads of numbers."""

import numpy as np
import pytest

from sklearn_attention.transformer._scale import level_and_spread


@pytest.mark.parametrize("numbers", [np.ones(4), np.full(3, 0.1), np.zeros(0)])
def test_no_spread_divides_by_one(numbers):
    level, spread = level_and_spread(numbers)
    assert level == pytest.approx(numbers.mean() if len(numbers) else 0)
    assert spread == 1.0


def test_weighted_and_huge():
    numbers, weights = np.array([1e200, 3e200, 8e200]), np.array([1.0, 2.0, 1.0])
    level, spread = level_and_spread(numbers, weights)
    repeated = np.array([1.0, 3.0, 3.0, 8.0])
    assert level == pytest.approx(1e200 * repeated.mean())
    assert spread == pytest.approx(1e200 * repeated.std())
