"""The scale on which the kernels of a density compare rows."""

import numpy as np

from sklearn_attention.smoothing._scale import Scale

# A lower bound of 1, an upper bound of 5, and a column without bounds.
BOUNDS = np.array([[1.0, np.inf], [-np.inf, 5.0], [-np.inf, np.inf]])
SCALE = Scale(BOUNDS, np.array([0.5, 2.0, np.nan]))
ROWS = np.array([[1.0, 5.0, -7.0], [1.5, 3.0, 0.0], [9.0, -4.0, 7.0]])


def test_columns_beside_a_bound_become_logarithms():
    Z = SCALE.apply(ROWS)
    np.testing.assert_allclose(Z[:, 0], np.log(ROWS[:, 0] - 1 + 0.5))
    np.testing.assert_allclose(Z[:, 1], -np.log(5 - ROWS[:, 1] + 2))
    np.testing.assert_array_equal(Z[:, 2], ROWS[:, 2])
    np.testing.assert_allclose(SCALE.invert(Z), ROWS)
    # Bounds are those of the scale.
    np.testing.assert_allclose(SCALE.scaled_bounds[0, 0], Z[0, 0])
    np.testing.assert_allclose(SCALE.scaled_bounds[1, 1], Z[0, 1])


def test_log_slopes_are_those_of_all_columns():
    step = 1e-6
    rise = SCALE.apply(ROWS[1:] + step) - SCALE.apply(ROWS[1:] - step)
    expected = np.log(np.abs(rise / (2 * step))).sum(axis=1)
    np.testing.assert_allclose(SCALE.log_slopes(ROWS[1:]), expected, atol=1e-8)


def test_rows_move_into_the_bounds():
    rows, is_inside = SCALE.clip(np.array([[0.0, 4.0, 9.0], [2.0, 4.0, 9.0]]))
    np.testing.assert_array_equal(rows, [[1.0, 4.0, 9.0], [2.0, 4.0, 9.0]])
    assert is_inside.tolist() == [False, True]
    assert Scale().clip(rows)[1] is True
