"""Baselines against loops."""

import numpy as np
import pytest

from sklearn_attention.forecasting import seasonal_naive


def test_seasonal_naive_repeats_the_last_season():
    past = np.arange(12.0).reshape(2, 6)
    for season in range(1, 7):
        expected = [[row[6 - season + step % season] for step in range(9)] for row in past]
        np.testing.assert_array_equal(seasonal_naive(past, 9, season), expected)
    with pytest.raises(ValueError, match="season_length=7 is longer"):
        seasonal_naive(past, 2, 7)
