"""A forecaster fitted to some machines forecasts others, whose past it is handed."""

import numpy as np
import pytest
from slow_cases import slow_but

from sklearn_attention import KernelForecaster, TransformerForecaster

FORECASTERS = [KernelForecaster, TransformerForecaster]
HORIZON = 12


def readings_of_machines(n_machines, seed=0):
    """Seasonal readings of machines of any size; noise differs fifty-fold."""
    rng, t, readings = np.random.default_rng(seed), np.arange(120 + HORIZON), {}
    for k in range(n_machines):
        noise = (0.014, 0.07, 0.35, 0.7)[k // 2 % 4]
        wave = np.sin(2 * np.pi * t / 12 + rng.uniform(0, 6)) + noise * rng.normal(size=len(t))
        readings[k] = (100 + 10 * wave) * rng.uniform(1, 50)
    return readings


@pytest.mark.slow
@pytest.mark.parametrize("model", slow_but(FORECASTERS[:1], FORECASTERS))
def test_their_intervals_are_about_as_good_as_those_of_fitted_machines(model):
    readings = readings_of_machines(40)
    past = {k: values[:-HORIZON] for k, values in readings.items()}
    others = {k: past[k] for k in list(past)[1::2]}
    every = model(HORIZON, season_length=12).fit(past)
    half = model(HORIZON, season_length=12).fit({k: past[k] for k in list(past)[::2]})

    def score_of(forecasts):
        scores, covered = [], []
        for k in others:
            _, lower, upper = np.asarray(forecasts[k]).T
            actual = readings[k][-HORIZON:]
            outside = np.maximum(lower - actual, 0) + np.maximum(actual - upper, 0)
            scores.append(np.mean(upper - lower + 20 * outside) / np.std(past[k]))
            covered.append(np.mean(outside == 0))
        return np.mean(scores), np.mean(covered)

    fitted, _ = score_of(every.predict(coverage=0.9))
    by_history, covered = score_of(half.predict(history=others, coverage=0.9))
    assert by_history < 1.15 * fitted
    assert covered > 0.84
