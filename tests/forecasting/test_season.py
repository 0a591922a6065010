"""Seasonal patterns, and series without them."""

import numpy as np
import pytest

from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting._season import (
    SeasonalAdjustment,
    phase_of,
    seasonal_patterns,
)


def pattern_of(values, phase, m):
    """Pattern of a single series."""
    return seasonal_patterns(values[None], np.array([len(values)]), phase[None], m)[0]


def slow_pattern(values, m):
    """Differences from the centred moving average by phase, without the shrinkage."""
    n, half = len(values), m // 2
    total, weight = np.zeros(m), np.zeros(m)
    for t in range(half, n - half):
        window = values[t - half : t + half + 1]
        if m % 2:
            trend = window.mean()
        else:
            trend = (window[0] / 2 + window[1:-1].sum() + window[-1] / 2) / m
        own = 0.8 ** ((n - 1 - t) // m)
        total[t % m] += own * (values[t] - trend)
        weight[t % m] += own
    pattern = total / weight
    return pattern - pattern.mean()


@pytest.mark.parametrize("m", [4, 7])
def test_the_pattern_is_that_of_a_loop_but_for_the_shrinkage(m):
    rng = np.random.default_rng(1)
    steps = np.arange(9 * m + 2)
    values = 2 * np.sin(2 * np.pi * steps / m) + 0.5 * rng.normal(size=len(steps))
    found, slow = pattern_of(values, steps % m, m), slow_pattern(values, m)
    share = found[0] / slow[0]
    np.testing.assert_allclose(found, share * slow, atol=1e-12)
    assert 0.9 < share < 1


@pytest.mark.parametrize(
    "values", [np.arange(11.0) % 4, np.full(40, 3.0), np.zeros(40), np.arange(40.0)]
)
def test_short_constant_and_straight_series_have_none(values):
    found = pattern_of(values, np.arange(len(values)) % 4, 4)
    np.testing.assert_allclose(found, 0, atol=1e-12)


@pytest.mark.parametrize("m", [52.18, 6.5])
def test_phases_of_fractional_seasons_do_not_drift(m):
    positions = np.arange(2000)
    phases = phase_of(positions, m)
    n_phases = round(m)
    assert phases.min() == 0
    assert phases.max() == n_phases - 1
    expected = [int(np.floor(((t / m) % 1) * n_phases + 1e-9)) for t in positions]
    np.testing.assert_array_equal(phases, np.minimum(expected, n_phases - 1))


def test_each_origin_has_the_pattern_of_what_it_learns_from():
    rng, steps = np.random.default_rng(3), np.arange(50)
    values = [rng.normal(size=50), 9 * np.sin(np.pi / 2 * steps) + rng.normal(size=50)]
    table = Table.from_arrays(values, np.array([0, 3]))
    series, known = np.array([1, 0, 1, 1, 0, 1, 1]), np.array([40, 9, 30, 40, 11, 7, 0])
    for learned in (None, np.array([30, 9, 30, 20, 0, 50, 0])):
        season = SeasonalAdjustment.learn(
            Origins.at_ends(table, 1).at_steps(series, known, learned), 4.0
        )
        counts = known if learned is None else learned
        for i, n, row in zip(series, counts, season.pattern_of_origin, strict=True):
            assert season.series[row] == i
            phase = (table.starts[i] + steps[:n]) % 4
            expected = pattern_of(values[i][:n], phase, 4) if n else np.zeros(4)
            np.testing.assert_array_equal(season.patterns[row], expected)
        # Equal patterns of a series are one row, also where there is none.
        distinct = np.unique(np.column_stack([season.series, season.patterns]), axis=0)
        assert len(season.series) == len(distinct)


def test_adjusted_series_are_without_their_patterns_and_end_where_they_should():
    steps = np.arange(60)
    values = [5 * np.sin(np.pi / 6 * steps) + 0.1 * steps, 2.0 + steps[:20]]
    season = SeasonalAdjustment.learn(Origins.at_ends(Table.from_arrays(values), 1), 12)
    found = season.adjusted(np.array([1, 0]), np.array([4, 9]))
    np.testing.assert_allclose(found[0], [2, 3, 4, 5, 5, 5, 5, 5, 5])
    np.testing.assert_allclose(found[1], 0.1 * steps[:9], atol=0.01)


@pytest.mark.parametrize("m", [3, 4, 7])
def test_patterns_are_shrunk_by_the_share_of_their_variance_that_is_noise(m):
    """The estimator of James and Stein does not shrink three means."""
    rng = np.random.default_rng(1)
    steps, half = np.arange(6 * m), m // 2
    values = np.sin(2 * np.pi * steps / m) + 0.5 * rng.normal(size=len(steps))
    slow = slow_pattern(values, m)
    window = np.ones(m) if m % 2 else np.append(np.append(0.5, np.ones(m - 1)), 0.5)
    rest = values[half : len(values) - half] - np.convolve(values, window / m, "valid")
    inside, noise = steps[half : len(values) - half], []
    for phase in range(m):
        in_phase = inside % m == phase
        weights = 0.8 ** ((len(values) - 1 - inside[in_phase]) // m)
        noise.append(np.sum(weights**2) / weights.sum() ** 2 * rest[in_phase].var())
    share = 1 - (m - 3) / (m - 1) * np.mean(noise) / slow.var()
    assert share == 1 if m == 3 else share < 0.99
    np.testing.assert_allclose(pattern_of(values, steps % m, m), share * slow, atol=1e-12)
