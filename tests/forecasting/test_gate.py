"""The gate: least squares, less its uncertainty, judged by stretches of time."""

import numpy as np
import pytest
from scipy.stats import t

from sklearn_attention.forecasting import _gate as module
from sklearn_attention.forecasting._gate import fit_gate


def make(share, noise=0.1, n=80, horizon=3, seed=0):
    rng = np.random.default_rng(seed)
    corrections = rng.normal(size=(n, horizon))
    residuals = share * corrections + noise * rng.normal(size=(n, horizon))
    return residuals, corrections, np.arange(n)


@pytest.mark.parametrize("share", [0.2, 0.6, 1.0])
def test_is_the_share_of_least_squares_where_that_is_certain(share):
    residuals, corrections, origins = make(share, noise=1e-4)
    grid = np.linspace(0, 1, 1001)
    errors = [np.sum((residuals - g * corrections) ** 2) for g in grid]
    best = grid[np.argmin(errors)]
    assert fit_gate(residuals, corrections, origins) == pytest.approx(best, abs=1e-3)


def test_is_the_lower_end_of_an_interval():
    residuals, corrections, origins = make(0.6, noise=0.8)
    products, powers = [], []
    for block in np.split(np.arange(80), 8):
        products.append(sum(corrections[i] @ residuals[i] for i in block))
        powers.append(sum(corrections[i] @ corrections[i] for i in block))
    share = sum(products) / sum(powers)
    rest = [p - share * q for p, q in zip(products, powers, strict=True)]
    error = np.sqrt(8 * np.var(rest, ddof=1)) / sum(powers)
    expected = share - t.ppf(0.9, 7) * error
    assert 0 < expected < share
    assert fit_gate(residuals, corrections, origins) == pytest.approx(expected, rel=1e-12)


def test_is_1_at_most():
    assert fit_gate(*make(3.0)) == 1.0


def test_is_shut_by_corrections_that_harm():
    assert fit_gate(*make(-0.5)) == 0.0


def test_opens_to_mere_noise_about_one_time_in_ten_and_then_little(monkeypatch):
    monkeypatch.setattr(module, "_LEAST_GAIN", 0.0)
    gates = np.array([fit_gate(*make(0.0, noise=1.0, seed=seed)) for seed in range(400)])
    assert 0.05 < np.mean(gates > 0) < 0.16
    assert gates.max() < 0.3


@pytest.mark.parametrize(("share", "opens"), [(0.1, False), (0.3, True)])
def test_is_shut_where_there_is_little_to_gain(share, opens):
    residuals, corrections, origins = make(share, noise=0.9, n=2000)
    least_squares = np.sum(residuals * corrections) / np.sum(corrections**2)
    rest = np.sum((residuals - least_squares * corrections) ** 2) / np.sum(residuals**2)
    assert (rest < 0.98) == opens
    assert (fit_gate(residuals, corrections, origins) > 0) == opens


def test_one_stretch_of_gain_is_not_enough():
    residuals, corrections, origins = make(0.0, noise=0.0)
    residuals[:10] = corrections[:10]
    assert np.sum(residuals * corrections) > 0
    assert fit_gate(residuals, corrections, origins) == 0.0


def test_stretches_are_those_of_time_whatever_the_order_of_windows():
    residuals, corrections, origins = make(0.6, noise=0.8)
    mixed = np.random.default_rng(0).permutation(80)
    shuffled = residuals[mixed], corrections[mixed]
    expected = fit_gate(residuals, corrections, origins)
    assert fit_gate(*shuffled, origins[mixed]) == pytest.approx(expected, rel=1e-12)
    assert fit_gate(*shuffled, origins) != pytest.approx(expected, rel=1e-3)


def test_stretches_are_no_shorter_than_the_horizon():
    # Two and a bit, and three horizons of time.
    assert fit_gate(*make(1.0, noise=0.01, n=29, horizon=10)) == 0.0
    assert fit_gate(*make(1.0, noise=0.01, n=30, horizon=10)) == pytest.approx(1, abs=0.05)


def test_many_short_series_are_judged_series_by_series():
    residuals, corrections, _ = make(0.5, noise=0.1, n=40)
    origins, series = np.tile([5, 6], 20), np.repeat(np.arange(20), 2)
    assert fit_gate(residuals, corrections, origins) == 0.0
    assert fit_gate(residuals, corrections, origins, series) == pytest.approx(0.5, abs=0.05)
    assert fit_gate(residuals, corrections, origins, series // 10) == 0.0


def test_no_windows_and_no_corrections_shut_it():
    residuals, corrections, origins = make(1.0)
    assert fit_gate(residuals, 0 * corrections, origins) == 0.0
    assert fit_gate(residuals[:0], corrections[:0], origins[:0]) == 0.0
