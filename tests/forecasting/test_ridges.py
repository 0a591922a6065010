"""Linear maps of windows against least squares on explicit windows."""

import numpy as np
import pytest
from forecasting_validation import make_validation_of, make_walks, overlapping_rows

from sklearn_attention.forecasting import Origins
from sklearn_attention.forecasting import _ridges as module
from sklearn_attention.forecasting._ridges import PENALTIES, WindowRidge

LOOKBACK, HORIZON = 8, 4


def deviations(series):
    """Units that series are compared in."""
    return np.array([np.std(values) for values in series])


def windows(series, scale, left_out=(), lookback=LOOKBACK, horizon=HORIZON):
    """Windows relative to their last value, and what followed, in units of the series."""
    x, y = [], []
    for i, values in enumerate(series):
        for t in range(lookback, len(values) - horizon + 1):
            if (i, t) not in left_out:
                x.append((values[t - lookback : t] - values[t - 1]) / scale[i])
                y.append((values[t : t + horizon] - values[t - 1]) / scale[i])
    return np.array(x), np.array(y)


def slow_ridge(x, y, alpha, every):
    """Ridge regression as least squares with further rows.

    The penalty is relative to all windows, of which these may be only some.
    """
    penalty = alpha * np.mean(np.sum(every**2, axis=0))
    x = np.concatenate([x, np.sqrt(penalty) * np.eye(x.shape[1])])
    y = np.concatenate([y, np.zeros((x.shape[1], y.shape[1]))])
    return np.linalg.lstsq(x, y, rcond=None)[0]


def slow_coef(series, alpha, left_out=(), **size):
    """Coefficients of all windows but those that are left out."""
    scale = deviations(series)
    every, _ = windows(series, scale, **size)
    return slow_ridge(*windows(series, scale, left_out, **size), alpha, every)


def fit(alpha, monkeypatch, lengths=(90, 70), lookback=LOOKBACK, horizon=HORIZON):
    """A ridge whose penalty is given."""
    monkeypatch.setattr(module, "PENALTIES", (alpha,))
    series = make_walks(lengths)
    validation = make_validation_of(series, horizon, lookback)
    return series, validation, *WindowRidge(lookback).fit(validation)


@pytest.mark.parametrize("alpha", [1e-4, 0.1])
def test_coefficients_are_those_of_least_squares(alpha, monkeypatch):
    series, validation, ridge, _ = fit(alpha, monkeypatch)
    coef = slow_coef(series, alpha)
    np.testing.assert_allclose(ridge.coef, coef, atol=1e-7)
    found = ridge.forecast(Origins.at_ends(validation.origins.table, HORIZON))
    for values, forecast in zip(series, found, strict=True):
        past = values[-LOOKBACK:]
        expected = past[-1] + (past - past[-1]) @ coef
        np.testing.assert_allclose(forecast[0], expected, rtol=1e-7)


@pytest.mark.parametrize(
    ("lengths", "lookback", "horizon"),
    [
        ((90, 70), 8, 4),  # a block has more windows than steps, and more tests than steps
        ((110, 60), 4, 11),  # fewer tests
        (30 * (36,), 14, 2),  # few windows of a series
    ],
)
def test_held_out_forecasts_are_those_of_a_fit_without_the_block(
    lengths, lookback, horizon, monkeypatch
):
    size = {"lookback": lookback, "horizon": horizon}
    series, validation, _, held_out = fit(0.01, monkeypatch, lengths, **size)
    tests = validation.tests
    for block in range(validation.n_blocks):
        left_out = {
            (i, t) for i in range(len(series)) for t in overlapping_rows(validation, i, block)
        }  # fmt: skip
        coef = slow_coef(series, 0.01, left_out, **size)
        for row in np.flatnonzero(validation.block == block):
            i, t = tests.series[row], tests.n_known[row]
            past = series[i][t - lookback : t]
            expected = past[-1] + (past - past[-1]) @ coef
            np.testing.assert_allclose(held_out[row, 0], expected, rtol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 3.0, 30.0])
def test_the_penalty_has_the_least_error(noise, monkeypatch):
    rng = np.random.default_rng(0)
    series = [walk + noise * rng.normal(size=len(walk)) for walk in make_walks((90, 70))]
    validation = make_validation_of(series, HORIZON, LOOKBACK)
    unit = deviations(series)[validation.tests.series]

    def error(penalties):
        monkeypatch.setattr(module, "PENALTIES", penalties)
        _, held_out = WindowRidge(LOOKBACK).fit(validation)
        missed = (held_out[:, 0] - validation.tests.targets()) / unit[:, None]
        return np.nansum(missed**2)

    assert error(PENALTIES) == min(error((alpha,)) for alpha in PENALTIES)


def test_no_series_is_long_enough():
    validation = make_validation_of(make_walks([10, 9]), HORIZON, LOOKBACK)
    ridge, held_out = WindowRidge(LOOKBACK).fit(validation)
    assert np.isnan(held_out).all()
    assert np.isnan(ridge.forecast(Origins.at_ends(validation.origins.table, HORIZON))).all()
