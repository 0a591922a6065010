"""Seasonal adjustment: patterns that are there, and those that are not."""

import numpy as np
import pytest

from sklearn_attention.forecasting import Table
from sklearn_attention.forecasting._adjustment import (
    SeasonalAdjustment,
    patterns_of,
    phase_of,
)


def pattern_of(values, phase, m):
    """Pattern of a single series."""
    return patterns_of(values[None], np.array([len(values)]), phase[None], m)[0]


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


@pytest.mark.parametrize("m", [4, 7, 12])
def test_a_known_pattern_is_recovered(m):
    rng = np.random.default_rng(0)
    pattern = 3 * rng.normal(size=m)
    pattern -= pattern.mean()
    steps = np.arange(10 * m + 3)
    values = 100 + 0.4 * steps + pattern[steps % m]
    found = pattern_of(values, steps % m, m)
    np.testing.assert_allclose(found, pattern, atol=1e-8)
    noisy = values + 0.2 * rng.normal(size=len(steps))
    np.testing.assert_allclose(pattern_of(noisy, steps % m, m), pattern, atol=0.3)


@pytest.mark.parametrize("m", [4, 7])
def test_the_pattern_is_that_of_a_loop_but_for_the_shrinkage(m):
    rng = np.random.default_rng(1)
    steps = np.arange(9 * m + 2)
    values = 2 * np.sin(2 * np.pi * steps / m) + 0.5 * rng.normal(size=len(steps))
    found, slow = pattern_of(values, steps % m, m), slow_pattern(values, m)
    share = found[0] / slow[0]
    np.testing.assert_allclose(found, share * slow, atol=1e-12)
    assert 0.9 < share < 1


def test_much_noise_shrinks_the_pattern_more():
    steps, season = np.arange(48), np.sin(np.arange(48) * 2 * np.pi / 12)
    noise = np.random.default_rng(2).normal(size=48)
    shares = []
    for size in (0.1, 0.3, 0.6):
        values = season + size * noise
        found, slow = pattern_of(values, steps % 12, 12), slow_pattern(values, 12)
        shares.append(found[0] / slow[0])
    assert 1 > shares[0] > shares[1] > shares[2] > 0


def test_there_is_hardly_a_pattern_where_there_is_only_noise():
    rng = np.random.default_rng(0)
    found = [pattern_of(rng.normal(size=96), np.arange(96) % 12, 12) for _ in range(40)]
    sizes = np.array([pattern.std() for pattern in found])
    assert np.mean(sizes == 0) > 0.5
    assert sizes.mean() < 0.1


@pytest.mark.parametrize(
    "values", [np.arange(11.0) % 4, np.full(40, 3.0), np.zeros(40), np.arange(40.0)]
)
def test_short_constant_and_straight_series_have_none(values):
    found = pattern_of(values, np.arange(len(values)) % 4, 4)
    np.testing.assert_allclose(found, 0, atol=1e-12)


def test_phases_of_whole_seasons_are_remainders():
    for m in (1, 4, 12):
        np.testing.assert_array_equal(phase_of(np.arange(100), m), np.arange(100) % m)


@pytest.mark.parametrize("m", [45.86, 52.18, 6.5, 30.4])
def test_phases_of_fractional_seasons_do_not_drift(m):
    positions = np.arange(2000)
    phases = phase_of(positions, m)
    n_phases = round(m)
    assert phases.min() == 0
    assert phases.max() == n_phases - 1
    expected = [int(np.floor(((t / m) % 1) * n_phases + 1e-9)) for t in positions]
    np.testing.assert_array_equal(phases, np.minimum(expected, n_phases - 1))


def test_patterns_of_fractional_seasons():
    m = 22.4
    steps = np.arange(450)
    values = np.sin(2 * np.pi * steps / m)
    season = SeasonalAdjustment.of(Table.of([values[:400]]).at_ends(1), m)
    found = season.at(0, steps)
    # A phase is 1/22 of the circle, so that the sine moves by .29 within one at most.
    assert np.abs(found - values).max() < 0.3
    assert np.sqrt(np.mean((found - values) ** 2)) < 0.12


def test_series_that_begin_later_have_their_phases_from_then_on():
    steps = np.arange(60)
    values = 5 * np.sin(2 * np.pi * steps / 12)
    origins = Table.of([values, values[17:]], np.array([0, 17])).at_ends(1)
    late = SeasonalAdjustment.of(origins, 12)
    np.testing.assert_allclose(late.at(0, steps), values, atol=1e-6)
    np.testing.assert_allclose(late.at(1, steps[:20]), values[17:37], atol=1e-6)
    both = late.at(np.array([0, 1])[:, None], np.array([[40, 41], [1, 2]]))
    np.testing.assert_allclose(both, [values[40:42], values[18:20]], atol=1e-6)


def test_each_origin_has_the_pattern_of_what_it_learns_from():
    rng, steps = np.random.default_rng(3), np.arange(50)
    values = [rng.normal(size=50), 9 * np.sin(np.pi / 2 * steps) + rng.normal(size=50)]
    table = Table.of(values, np.array([0, 3]))
    series, known = np.array([1, 0, 1, 1, 0, 1, 1]), np.array([40, 9, 30, 40, 11, 7, 0])
    for learned in (None, np.array([30, 9, 30, 20, 0, 50, 0])):
        season = SeasonalAdjustment.of(table.at_ends(1).at(series, known, learned), 4.0)
        counts = known if learned is None else learned
        for i, n, row in zip(series, counts, season.row, strict=True):
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
    season = SeasonalAdjustment.of(Table.of(values).at_ends(1), 12)
    found = season.adjusted(np.array([1, 0]), np.array([4, 9]))
    np.testing.assert_allclose(found[0], [2, 3, 4, 5, 5, 5, 5, 5, 5])
    np.testing.assert_allclose(found[1], 0.1 * steps[:9], atol=0.01)
