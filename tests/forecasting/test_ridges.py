"""Linear maps of windows against least squares on explicit windows."""

import numpy as np
import pytest
from forecasting_training import make_training_of, make_walks, overlapping_rows

from sklearn_attention.forecasting import Origins
from sklearn_attention.forecasting import _ridges as module
from sklearn_attention.forecasting._ridges import PENALTIES, WindowRidge

LOOKBACK, HORIZON = 8, 4
POOLED, OWN = 0, 1


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


def slow_ridge(x, y, alpha, start, every):
    """Ridge regression towards a map, as least squares with further rows.

    The penalty is relative to all windows, of which these may be only some.
    """
    penalty = alpha * np.mean(np.sum(every**2, axis=0))
    x = np.concatenate([x, np.sqrt(penalty) * np.eye(x.shape[1])])
    y = np.concatenate([y, np.sqrt(penalty) * np.broadcast_to(start, (len(x[0]), len(y[0])))])
    return np.linalg.lstsq(x, y, rcond=None)[0]


def slow_maps(series, alpha, left_out=(), wanted=None, **size):
    """The map of all series, and that of each."""
    scale = deviations(series)
    every, _ = windows(series, scale, **size)
    pooled = slow_ridge(*windows(series, scale, left_out, **size), alpha, 0.0, every)
    own = {}
    for i in range(len(series)) if wanted is None else wanted:
        out = {(0, t) for j, t in left_out if j == i}
        every, _ = windows(series[i : i + 1], scale[[i]], **size)
        left = windows(series[i : i + 1], scale[[i]], out, **size)
        own[i] = slow_ridge(*left, 1.0, pooled, every)
    return pooled, own


def fit(alpha, monkeypatch, lengths=(90, 70), lookback=LOOKBACK, horizon=HORIZON):
    """A ridge whose penalties are given."""
    monkeypatch.setattr(module, "PENALTIES", (alpha,))
    series = make_walks(lengths)
    training = make_training_of(series, horizon, lookback)
    return series, training, *WindowRidge(lookback, own=True).fit(training)


@pytest.mark.parametrize("alpha", [1e-4, 0.1])
def test_maps_are_those_of_least_squares(alpha, monkeypatch):
    series, training, ridge, _ = fit(alpha, monkeypatch)
    pooled, own = slow_maps(series, alpha)
    np.testing.assert_allclose(ridge.coef, [pooled, *own.values()], atol=1e-7)
    found = ridge.forecast(Origins.at_ends(training.origins.table, HORIZON))
    for i, values in enumerate(series):
        past = values[-LOOKBACK:]
        for name, coef in ((POOLED, pooled), (OWN, own[i])):
            expected = past[-1] + (past - past[-1]) @ coef
            np.testing.assert_allclose(found[i, name], expected, rtol=1e-7)


@pytest.mark.parametrize(
    ("lengths", "lookback", "horizon"),
    [
        ((90, 70), 8, 4),  # a block has more windows than steps, and more tests than steps
        ((110, 60), 4, 11),  # fewer tests
        (30 * (36,), 14, 2),  # few windows of a series
    ],
)
def test_held_out_forecasts_are_those_of_maps_refitted_without_the_block(
    lengths, lookback, horizon, monkeypatch
):
    size, wanted = (
        {"lookback": lookback, "horizon": horizon},
        (0,) if len(lengths) > 2 else (0, 1),
    )
    series, training, _, held_out = fit(0.01, monkeypatch, lengths, **size)
    validation = training.validation
    for block in range(training.n_blocks):
        left_out = {
            (i, t) for i in range(len(series)) for t in overlapping_rows(training, i, block)
        }  # fmt: skip
        pooled, own = slow_maps(series, 0.01, left_out, wanted, **size)
        for row in np.flatnonzero(
            (training.block == block) & np.isin(validation.series, wanted)
        ):
            i, t = validation.series[row], validation.known[row]
            past = series[i][t - lookback : t]
            for name, coef in ((POOLED, pooled), (OWN, own[i])):
                expected = past[-1] + (past - past[-1]) @ coef
                np.testing.assert_allclose(held_out[row, name], expected, rtol=1e-9)


def test_what_is_chosen_has_the_least_error(monkeypatch):
    def error(alpha):
        with monkeypatch.context() as patch:
            _, training, _, held_out = fit(alpha, patch)
        unit = deviations(training.origins.table.values)[training.validation.series]
        missed = (held_out[:, POOLED] - training.validation.targets()) / unit[:, None]
        return np.nansum(missed**2)

    training = make_training_of(make_walks((90, 70)), HORIZON, LOOKBACK)
    ridge, _ = WindowRidge(LOOKBACK, own=True).fit(training)
    assert ridge.penalty == min(PENALTIES, key=error)


def test_no_series_is_long_enough():
    training = make_training_of(make_walks([10, 9]), HORIZON, LOOKBACK)
    for own in (False, True):
        ridge, held_out = WindowRidge(LOOKBACK, own).fit(training)
        assert np.isnan(held_out).all()
        assert np.isnan(ridge.forecast(Origins.at_ends(training.origins.table, HORIZON))).all()
