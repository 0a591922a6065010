"""Quantiles behind intervals, against sorting everything."""

import numpy as np
import pytest
from smoothing_cases import jackknife_plus

from sklearn_attention.attention._tables import weighted_quantiles
from sklearn_attention.smoothing._uncertainty import jackknife_intervals


@pytest.mark.parametrize("moved", [0.0, 1e-9, 0.1, 10.0])
def test_intervals_equal_sorting_all_errors(moved):
    rng = np.random.default_rng(0)
    for n in (3, 20, 400):
        sizes = np.abs(rng.normal(size=(n, 2))).round(2)  # with ties
        sizes[: n // 5] *= np.inf if moved == 0.1 else 1.0
        values, scale = rng.normal(size=(5, 2)), rng.uniform(0.1, 3, size=(5, 2))
        left_out = values[:, None] + moved * rng.normal(size=(5, n, 2))
        for coverage in (0.02, 0.5, 0.77, 0.9):
            found = jackknife_intervals(left_out, sizes, scale, coverage)
            for q, output in np.ndindex(5, 2):
                errors = scale[q, output] * sizes[:, output]
                expected = jackknife_plus(left_out[q, :, output], errors, coverage)
                np.testing.assert_allclose(found[q, :, output], expected, rtol=1e-12)


@pytest.mark.parametrize("n", [10, 49])
def test_a_quantile_between_two_values_is_the_smaller_one(n):
    """The first k of n equal weights sum to k / n, whatever rounding makes of the sum."""
    order = np.random.default_rng(0).permutation(n)
    levels = np.arange(1, n + 1) / n
    quantiles = weighted_quantiles(order.astype(float), np.full((1, n), 1 / n), levels)
    np.testing.assert_array_equal(quantiles[0], np.arange(n))
