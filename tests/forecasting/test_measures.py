"""How much series vary."""

import numpy as np

from sklearn_attention.forecasting._measures import dividing, naive_scales, spread_of


def test_scales_are_errors_of_the_naive_forecast():
    found = naive_scales([np.array([1.0, 4.0, 2.0]), np.array([-2.0, 2.0])])
    np.testing.assert_allclose(found, [2.5, 4.0])


def test_constant_series_have_scales_that_may_divide():
    found = naive_scales([np.ones(5), np.ones(1), np.zeros(3)])
    np.testing.assert_array_equal(found, 1.0)


def test_spread_is_none_where_there_is_only_rounding():
    rounded = np.full(50, 0.1) * 3
    assert spread_of(np.append(rounded, 0.1 + 0.2)) == 0
    values = np.array([[1.0, 4.0, 2.0], [5.0, 5.0, 5.0]])
    np.testing.assert_allclose(spread_of(values, axis=1), [np.std([1.0, 4.0, 2.0]), 0.0])
    np.testing.assert_allclose(spread_of(values), values.std())


def test_spreads_that_divide():
    np.testing.assert_array_equal(dividing(np.array([0.0, 0.5])), [1.0, 0.5])
