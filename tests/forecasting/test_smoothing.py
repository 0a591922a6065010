"""Exponential smoothing against plain recursions."""

from itertools import product

import numpy as np
import pytest

from sklearn_attention.forecasting._smoothing import (
    DAMPINGS,
    LEVEL_RATES,
    TREND_RATES,
    damped,
    holt,
    simple,
    slopes,
)

CHOICES = {
    simple: [(alpha, None, 1.0) for alpha in LEVEL_RATES],
    holt: [(*rates, 1.0) for rates in TREND_RATES],
    damped: [(*rates, phi) for rates, phi in product(TREND_RATES, DAMPINGS)],
}
pytestmark = pytest.mark.usefixtures("all_rates")
every_kind = pytest.mark.parametrize("kind", CHOICES)


def make(n_series=3, n_steps=15, seed=0):
    """Walks with a trend."""
    return np.cumsum(0.3 + np.random.default_rng(seed).normal(size=(n_series, n_steps)), axis=1)


def slow_state(known, alpha, beta, phi):
    """Level and trend after the steps known."""
    n_first = min(3, len(known) - 1)
    level, trend = known[0], 0.0
    if beta is not None and n_first > 0:
        trend = (known[n_first] - known[0]) / n_first
    for value in known[1:]:
        error = value - level - phi * trend
        level = level + phi * trend + alpha * error
        if beta is not None:
            trend = phi * trend + alpha * beta * error
    return level, trend


def slow_best(values, choices):
    """State of the choice with the least squared error so far, at every step."""
    errors = dict.fromkeys(choices, 0.0)
    for t in range(len(values)):
        states = {choice: slow_state(values[: t + 1], *choice) for choice in choices}
        # The first of those that differ by rounding.
        least = min(errors.values())
        best = next(choice for choice in choices if errors[choice] <= least * (1 + 1e-9))
        yield (*states[best], best[2])
        if t + 1 < len(values):
            for choice, (level, trend) in states.items():
                errors[choice] += (values[t + 1] - level - choice[2] * trend) ** 2


@every_kind
def test_states_are_those_of_a_loop(kind):
    values = make()
    found = kind(values)
    for i, own in enumerate(values):
        level, trend, damping = map(np.array, zip(*slow_best(own, CHOICES[kind]), strict=True))
        np.testing.assert_allclose(found.level[i], level, atol=1e-9)
        np.testing.assert_allclose(found.trend[i], trend, atol=1e-9)
        # At the first steps all choices have the same error.
        np.testing.assert_array_equal(found.damping[i, 3:], damping[3:])


@every_kind
def test_paths_go_on_from_the_state(kind):
    states = kind(make())
    series, last = np.array([0, 2, 2]), np.array([5, 3, 14])
    found = states.path(series, last, 4)
    for row, i, t in zip(found, series, last, strict=True):
        value, trend = states.level[i, t], states.trend[i, t]
        for step in range(4):
            trend = trend * states.damping[i, t]
            value = value + trend
            assert row[step] == pytest.approx(value)


@every_kind
def test_nothing_after_a_step_matters_to_it(kind):
    values = make()
    expected = kind(values)
    for t in (0, 1, 2, 5, 9):
        changed = values.copy()
        changed[:, t + 1 :] = 100 * make(seed=1)[:, t + 1 :]
        found, shorter = kind(changed), kind(values[:, : t + 1])
        for name in ("level", "trend", "damping"):
            own = getattr(expected, name)[:, : t + 1]
            np.testing.assert_array_equal(getattr(found, name)[:, : t + 1], own)
            np.testing.assert_array_equal(getattr(shorter, name), own)


@every_kind
def test_level_and_unit_do_not_matter(kind):
    values = make()
    plain, moved = kind(values), kind(1000 * values - 7e4)
    np.testing.assert_allclose(moved.level, 1000 * plain.level - 7e4, rtol=1e-9)
    np.testing.assert_allclose(moved.trend, 1000 * plain.trend, rtol=1e-6, atol=1e-6)


def test_slopes_are_those_of_least_squares():
    values = 50 + make(2, 12)
    found = slopes(values)
    np.testing.assert_array_equal(found[:, 0], 0)
    for i in range(2):
        for t in range(1, 12):
            expected = np.polyfit(np.arange(t + 1), values[i, : t + 1], 1)[0]
            assert found[i, t] == pytest.approx(expected, abs=1e-9)
