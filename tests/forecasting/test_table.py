"""Units of the series of a table."""

import numpy as np

from sklearn_attention.forecasting._table import naive_scales


def test_scales_are_errors_of_the_naive_forecast():
    found = naive_scales([np.array([1.0, 4.0, 2.0]), np.array([-2.0, 2.0])])
    np.testing.assert_allclose(found, [2.5, 4.0])
    # Those of constant series may divide.
    np.testing.assert_array_equal(naive_scales([np.ones(5), np.ones(1), np.zeros(3)]), 1.0)
