"""Linear maps of windows against least squares on explicit windows."""

import numpy as np
import pytest
from forecasting_training import make_training_of, make_walks, overlapping_rows

from sklearn_attention.forecasting import Observations
from sklearn_attention.forecasting import _ridges as module
from sklearn_attention.forecasting._ridges import ALPHAS, WindowRidge

LOOKBACK, HORIZON, SEASON = 8, 4, 6


def deviations(series):
    """Units that series are compared in."""
    return np.array([np.std(values) for values in series])


def windows(series, scale, level, left_out=()):
    """Windows relative to a level, and what followed, in units of the series."""
    x, y = [], []
    for i, values in enumerate(series):
        for t in range(LOOKBACK, len(values) - HORIZON + 1):
            if (i, t) in left_out:
                continue
            past, future = values[t - LOOKBACK : t], values[t : t + HORIZON]
            base = past[-SEASON:].mean() if level else past[-1]
            x.append((past - base) / scale[i])
            y.append((future - base) / scale[i])
    return np.array(x), np.array(y)


def slow_ridge(x, y, alpha):
    """Ridge regression as least squares with further rows."""
    penalty = alpha * np.mean(np.sum(x**2, axis=0))
    x = np.concatenate([x, np.sqrt(penalty) * np.eye(LOOKBACK)])
    y = np.concatenate([y, np.zeros((LOOKBACK, HORIZON))])
    return np.linalg.lstsq(x, y, rcond=None)[0]


def slow_forecast(past, coef, level):
    base = past[-SEASON:].mean() if level else past[-1]
    return base + (past - base) @ coef


def fit(pooled, level, alpha, monkeypatch, lengths=(90, 70)):
    """A ridge whose penalty is given, and whose level does best or is given."""
    monkeypatch.setattr(module, "ALPHAS", (alpha,))
    if level is not None:
        held_out = WindowRidge._held_out

        def only(self, training, tests, products, tried, alpha):
            found = held_out(self, training, tests, products, tried, alpha)
            return found if tried == level else found + 1e6

        monkeypatch.setattr(WindowRidge, "_held_out", only)
    series = make_walks(lengths)
    training = make_training_of(series, HORIZON, LOOKBACK)
    ridge = WindowRidge(LOOKBACK, SEASON, pooled)
    return series, training, ridge, ridge.fit(training)


every_kind = pytest.mark.parametrize("pooled", [False, True], ids=["own", "pooled"])
every_level = pytest.mark.parametrize("level", [0, 1], ids=["last", "season"])


@every_kind
@every_level
@pytest.mark.parametrize("alpha", [1e-4, 0.1])
def test_maps_are_those_of_least_squares(pooled, level, alpha, monkeypatch):
    series, training, ridge, _ = fit(pooled, level, alpha, monkeypatch)
    assert ridge.relative_to_season == bool(level)
    assert ridge.coef.shape == (1 if pooled else 2, LOOKBACK, HORIZON)
    forecasts = ridge.forecast(training.origins.observations.ends(HORIZON))[:, 0]
    for i, own in enumerate(series):
        which = series if pooled else [own]
        scale = deviations(series) if pooled else deviations(series)[[i]]
        coef = slow_ridge(*windows(which, scale, level), alpha)
        np.testing.assert_allclose(ridge.coef[0 if pooled else i], coef, atol=1e-7)
        np.testing.assert_allclose(
            forecasts[i], slow_forecast(own[-LOOKBACK:], coef, level), rtol=1e-7
        )


@every_kind
@every_level
def test_held_out_forecasts_are_those_of_maps_that_have_not_seen_them(
    pooled, level, monkeypatch
):
    series, training, _, held_out = fit(pooled, level, 0.01, monkeypatch)
    validation = training.validation
    for block in range(training.n_blocks):
        left_out = {
            (i, t) for i in range(2) for t in overlapping_rows(training, i, block)
        }  # fmt: skip
        for row in np.flatnonzero(training.block == block)[::7]:
            i, t = validation.series[row], validation.known[row]
            if pooled:
                found = windows(series, deviations(series), level, left_out)
            else:
                own = {(0, step) for j, step in left_out if j == i}
                found = windows([series[i]], deviations(series)[[i]], level, own)
            coef = slow_ridge(*found, 0.01)
            expected = slow_forecast(series[i][t - LOOKBACK : t], coef, level)
            np.testing.assert_allclose(held_out[row, 0], expected, rtol=1e-6)


@every_kind
def test_level_and_penalty_are_those_of_the_least_error(pooled, monkeypatch):
    errors = {}
    for level in range(2):
        for alpha in ALPHAS:
            with monkeypatch.context() as patch:
                _, training, _, held_out = fit(pooled, level, alpha, patch)
            missed = held_out[:, 0] - training.validation.targets()
            missed /= deviations(training.origins.observations.values)[
                training.validation.series, None
            ]
            errors[bool(level), alpha] = np.nansum(missed**2)
    ridge = WindowRidge(LOOKBACK, SEASON, pooled)
    ridge.fit(training)
    assert (ridge.relative_to_season, ridge.alpha) == min(errors, key=errors.get)


def test_a_series_too_short_has_no_map_of_its_own_but_a_pooled_one():
    series = make_walks([90, 13, 6])
    training = make_training_of(series, HORIZON, LOOKBACK)
    ends = training.origins.observations.ends(HORIZON)
    own, pooled = (WindowRidge(LOOKBACK, SEASON, kind) for kind in (False, True))
    held_out = own.fit(training)
    pooled.fit(training)
    there = ~np.isnan(held_out[:, 0, 0])
    assert set(training.validation.series[there]) == {0}
    np.testing.assert_array_equal(np.isnan(own.forecast(ends)[:, 0, 0]), [False, True, True])
    found = pooled.forecast(ends)[:, 0, 0]
    np.testing.assert_array_equal(np.isnan(found), [False, False, True])


def test_unknown_series_are_forecast_by_the_pooled_map_alone():
    series = make_walks([90, 80])
    training = make_training_of(series, HORIZON, LOOKBACK)
    unknown = Observations([series[1] + 7], np.zeros(1, dtype=int), np.array([-1]))
    known = Observations([series[1]], np.zeros(1, dtype=int), np.array([1]))
    own, pooled = (WindowRidge(LOOKBACK, SEASON, kind) for kind in (False, True))
    own.fit(training)
    pooled.fit(training)
    assert np.isnan(own.forecast(unknown.ends(HORIZON))).all()
    both = (
        own.forecast(known.ends(HORIZON))[0],
        own.forecast(training.origins.observations.ends(HORIZON))[1],
    )
    np.testing.assert_allclose(*both)
    found = pooled.forecast(unknown.ends(HORIZON))
    expected = pooled.forecast(known.ends(HORIZON)) + 7
    np.testing.assert_allclose(found, expected)


def test_no_series_is_long_enough():
    training = make_training_of(make_walks([10, 9]), HORIZON, LOOKBACK)
    for pooled in (False, True):
        ridge = WindowRidge(LOOKBACK, SEASON, pooled)
        assert np.isnan(ridge.fit(training)).all()
        assert np.isnan(ridge.forecast(training.origins.observations.ends(HORIZON))).all()


def test_constant_series_have_maps_too():
    training = make_training_of([np.full(60, 7.0)], HORIZON, LOOKBACK)
    ridge = WindowRidge(LOOKBACK, SEASON, False)
    np.testing.assert_allclose(ridge.fit(training)[:, 0], 7.0)
    ends = training.origins.observations.ends(HORIZON)
    np.testing.assert_allclose(ridge.forecast(ends), 7.0)
