"""The search for the bottom of a curve of scales."""

import numpy as np

from sklearn_attention.bandwidth import minimize_scale


def test_a_high_valley_takes_no_time_beside_a_wall():
    """Only the grid looks into it, however high the curve is elsewhere."""
    tried = []

    def curve(scales):
        x = np.log(scales)
        tried.extend(x)
        valleys = 1 - 0.9 * np.exp(-((x - 4) ** 2)) - 0.3 * np.exp(-((x + 4) ** 2))
        return np.where(x > 6.9, 1e9, valleys), False

    scale, _ = minimize_scale(curve, np.exp(-7), np.exp(7), step=0.2)
    assert abs(np.log(scale) - 4) < 1e-2
    assert sum(abs(x + 4) < 0.2 for x in tried) <= 3
