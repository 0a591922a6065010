"""Attention over candidates: its inputs, and the forecasts that training promises."""

import numpy as np
import pytest

from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting._candidate_attention import inputs_at
from sklearn_attention.forecasting._classical import Classical
from sklearn_attention.forecasting._season import patterns_of

HORIZON = 3


@pytest.mark.parametrize("logs", [False, True])
def test_later_values_and_other_origins_do_not_matter_to_inputs(logs):
    rng = np.random.default_rng(0)
    values = [2 + np.sin(np.arange(40) * np.pi / 2) + 0.1 * rng.normal(size=40) for _ in "abc"]
    values[2] = values[2] / 1e3
    classical, series = Classical(4.0), np.array([0, 0, 1, 2, 2, 2])
    known = np.array([40, 17, 30, 12, 0, 28])
    origins = Origins.at_ends(Table.of(values), HORIZON).at(series, known)
    at_once = inputs_at(origins, classical, logs)
    for row, (i, n) in enumerate(zip(series, known, strict=True)):
        changed = [own.copy() for own in values]
        changed[i][max(n, 1) :] = 5.0
        origin = Origins.at_ends(Table.of(changed), HORIZON).at(series[[row]], known[[row]])
        one = inputs_at(origin, classical, logs)
        for name in ("past", "candidates", "statistics", "unit", "level"):
            found, expected = getattr(one, name)[0], getattr(at_once, name)[row]
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("until", [12, 30, 40])
def test_patterns_and_the_least_unit_are_those_of_the_steps_learned_from(until):
    steps = np.arange(40)
    values = 5 * np.sin(steps * np.pi / 2) * (steps < 30) + 0.01 * steps**2
    origin = Origins.at_ends(Table.of([values]), HORIZON).at(np.zeros(1, int), np.array([24]))
    origin = origin.at(origin.series, origin.known, np.array([until]))
    found = inputs_at(origin, Classical(4.0), logs=False)
    pattern = patterns_of(values[None], np.array([until]), steps[None] % 4, 4)[0]
    adjusted = values - pattern[steps % 4]
    changes = np.abs(np.diff(adjusted))
    unit = changes[:23].mean() + 1e-3 * changes[: until - 1].mean()
    assert found.unit.item() == pytest.approx(unit, rel=1e-12)
    # Of the 32 steps of the window eight lie before the series, whose first stands for them.
    expected = (np.append(np.full(8, adjusted[0]), adjusted[:24]) - adjusted[23]) / unit
    np.testing.assert_allclose(found.past[0], expected, rtol=1e-9, atol=1e-12)
    expected = adjusted[23] + pattern[[0, 1, 2]]
    np.testing.assert_allclose(found.level[0], expected, rtol=1e-12)
