"""Exponential smoothing against plain recursions."""

import numpy as np
import pytest

from sklearn_attention.forecasting._classical import METHODS, smooth

STATES = ("level", "trend", "damping")
pytestmark = pytest.mark.usefixtures("all_rates")


def make(n_series=3, n_steps=15, seed=0):
    """Walks with a trend."""
    return np.cumsum(0.3 + np.random.default_rng(seed).normal(size=(n_series, n_steps)), axis=1)


def slow_state(known, alpha, beta, phi):
    """Level and trend after the steps known."""
    n_first = min(3, len(known) - 1)
    level, trend = known[0], 0.0
    if beta > 0 and n_first > 0:
        trend = (known[n_first] - known[0]) / n_first
    for value in known[1:]:
        error = value - level - phi * trend
        level = level + phi * trend + alpha * error
        if beta > 0:
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


def smooth_all(values):
    """States of the three methods at all steps, each (3, n_series, n_steps)."""
    row, last = (own.ravel() for own in np.indices(values.shape))
    (methods,) = smooth([(values, row, last)], METHODS)
    return [
        np.reshape([getattr(own, name) for own in methods], (3, *values.shape))
        for name in STATES
    ]


def slow_slope(values):
    """Slope of the least-squares line."""
    return np.polyfit(np.arange(len(values)), values, 1)[0] if len(values) > 1 else 0.0


@pytest.mark.parametrize("level", [0, 1e4])
def test_states_are_those_of_a_loop(level):
    values = level + make(2, 13)
    states = smooth_all(values)
    for method, choices in enumerate(METHODS):
        for i, own in enumerate(values):
            expected = np.array(list(slow_best(own, [*map(tuple, choices)]))).T
            if method == 0:  # theta has half the slope of the straight line as its trend
                expected[1] = [slow_slope(own[: t + 1]) / 2 for t in range(len(own))]
            for found, wanted in zip(states, expected, strict=True):
                # At the first steps all choices have the same error.
                np.testing.assert_allclose(
                    found[method, i, 3:], wanted[3:], rtol=1e-11, atol=1e-10
                )
            for found, wanted in zip(states[:2], expected, strict=False):
                np.testing.assert_allclose(found[method, i], wanted, rtol=1e-11, atol=1e-10)


def test_paths_go_on_from_the_state():
    table = make(), np.array([0, 2, 2]), np.array([5, 3, 14])
    ((_, _, states),) = smooth([table], METHODS)
    of_rows = zip(states.path(4), states.level, states.trend, states.damping, strict=True)
    for row, value, trend, damping in of_rows:
        for step in range(4):
            trend *= damping
            value += trend
            assert row[step] == pytest.approx(value)
