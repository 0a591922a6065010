"""Level and units of series."""

import numpy as np

from sklearn_attention.forecasting._measures import measure


def test_are_mean_deviation_and_the_error_of_the_naive_forecast():
    found = measure([np.array([1.0, 4.0, 2.0]), np.array([-2.0, 2.0])])
    np.testing.assert_allclose(found.scale, [2.5, 4.0])
    np.testing.assert_allclose(found.level, [7 / 3, 0.0])
    np.testing.assert_allclose(found.unit, [np.std([1.0, 4.0, 2.0]), 2.0])


def test_constant_series_have_units_that_may_divide():
    found = measure([np.ones(5), np.ones(1), np.full(50, 0.1) * 3])
    np.testing.assert_array_equal(found.scale, 1.0)
    np.testing.assert_array_equal(found.unit, 1.0)


def test_some_of_them():
    found = measure([np.array([1.0, 4.0]), np.array([-2.0, 2.0])]).take([1, 1, 0])
    np.testing.assert_array_equal(found.level, [0.0, 0.0, 2.5])


def test_level_and_unit_of_the_beginning():
    late = np.concatenate([np.zeros(8), [5.0, 9.0]])
    whole = np.concatenate([[1.0, 3.0] * 4, [50.0, 90.0]])
    found = measure([whole, late], 0.8)
    np.testing.assert_allclose(found.level, [2.0, 1.4])
    np.testing.assert_allclose(found.unit, [1.0, late.std()])
    np.testing.assert_allclose(found.scale, [np.abs(np.diff(whole)).mean(), 1.0])
