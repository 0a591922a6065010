"""The gate: open as far as a hold-out supports, shut where it does not."""

import numpy as np
import pytest

from sklearn_attention.forecasting._gate import fit_gate


def make(share, noise=0.1, n=80, seed=0):
    rng = np.random.default_rng(seed)
    corrections = rng.normal(size=(n, 3))
    return share * corrections + noise * rng.normal(size=(n, 3)), corrections, np.arange(n)


@pytest.mark.parametrize("share", [0.2, 0.6, 1.0])
def test_is_the_share_of_least_squares(share):
    residuals, corrections, origins = make(share, noise=0.01)
    grid = np.linspace(0, 1, 1001)
    errors = [np.sum((residuals - g * corrections) ** 2) for g in grid]
    assert fit_gate(residuals, corrections, origins) == pytest.approx(
        grid[np.argmin(errors)], abs=1e-3
    )


def test_is_1_at_most():
    assert fit_gate(*make(3.0)) == 1.0


@pytest.mark.parametrize("share", [0.0, -0.5])
def test_is_shut_where_nothing_is_gained(share):
    assert fit_gate(*make(share, noise=1.0, seed=1)) == 0.0


def test_one_stretch_of_gain_is_not_enough():
    residuals, corrections, origins = make(0.0, noise=0.0)
    residuals[:20] = corrections[:20]  # the others are hit by what does not help them
    assert fit_gate(residuals, corrections, origins) == 0.0


def test_stretches_are_those_of_time():
    residuals, corrections, origins = make(0.0, noise=0.0)
    residuals[:60] = corrections[:60]
    mixed = np.random.default_rng(0).permutation(80)
    shuffled = residuals[mixed], corrections[mixed]
    assert fit_gate(*shuffled, origins[mixed]) == 0.0
    assert fit_gate(*shuffled, origins) > 0


def test_few_windows_and_no_corrections_shut_it():
    residuals, corrections, origins = make(1.0)
    assert fit_gate(residuals[:7], corrections[:7], origins[:7]) == 0.0
    assert fit_gate(residuals, 0 * corrections, origins) == 0.0
