"""The search for the bottom of a curve of scales."""

import numpy as np
import pytest

from sklearn_attention.bandwidth._minimize import minimize_scale


@pytest.mark.parametrize("phase", [0.0, 2.0, 5.0])
def test_the_deepest_of_many_valleys(phase):
    def bumpy(h):
        x = np.log(h)
        return np.cos(2.5 * x + phase) + 0.02 * (x - 1) ** 2

    grid = np.exp(np.linspace(np.log(1e-3), np.log(1e3), 20_001))
    brute = bumpy(grid).min()
    assert minimize_scale(bumpy, 1e-3, 1e3)[1] <= brute + 1e-6


def test_infinite_and_nan_regions():
    def partly(h):
        return np.where(h < 0.1, np.nan, np.where(h > 10, np.inf, (h - 2) ** 2))

    assert minimize_scale(partly, 1e-3, 1e3)[0] == pytest.approx(2, rel=1e-3)
    assert minimize_scale(lambda h: h * np.nan, 1, 2)[1] == np.inf


def test_minimum_at_an_end_and_of_equals_the_widest():
    assert minimize_scale(lambda h: h, 0.5, 2)[0] == pytest.approx(0.5, rel=1e-3)
    assert minimize_scale(lambda h: -h, 0.5, 2)[0] == pytest.approx(2, rel=1e-3)
    assert minimize_scale(lambda h: h * 0, 1, 100)[0] == pytest.approx(100)


def test_a_coarse_search_follows_the_lowest_valley_alone():
    tried = []

    def two_valleys(h):
        tried.extend(h)
        x = np.log(h)
        return np.minimum((x + 2) ** 2, (x - 2) ** 2 + 0.1)

    low, high = np.exp([-5, 5])
    found = minimize_scale(two_valleys, low, high, step=0.5, precision=0.1)[0]
    assert found == pytest.approx(np.exp(-2), rel=0.02)
    # 21 points of the grid, four about the bottom, and the bottom of the cubic through these.
    assert len(tried) == 21 + 5
