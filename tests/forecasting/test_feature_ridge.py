"""Linear maps from features and the last steps against least squares on explicit columns."""

import numpy as np
import pytest
from forecasting_training import check_knows_nothing_later, overlapping_rows, unknown_twins

from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting import _feature_ridge as module
from sklearn_attention.forecasting._feature_ridge import FeatureRidge
from sklearn_attention.forecasting._origins import Training

HORIZON, LOOKBACK = 3, 8  # eight steps are the fewest that are seen


def make(lengths=(80, 60), known=(0, 2)):
    """Series that follow a bent feature, a flag, and what is only known up to now."""
    rng = np.random.default_rng(0)
    values, features = [], []
    for n in lengths:
        table = rng.normal(size=(n + HORIZON, 3))
        table[:, 2] = table[:, 2] > 0
        effect = np.maximum(table[:, 0], 0) + 2 * table[:, 2]
        values.append(20 + effect[:n] + 0.1 * rng.normal(size=n))
        features.append(table)
    observations = Table.of(values, features=features, known=np.array(known))
    return Training.of(observations, HORIZON, LOOKBACK)


def slow_basis(ridge, row, columns):
    basis = ridge.basis
    row = (row - basis.center) / basis.scale
    bent = [
        max(row[i] - knot, 0)
        for i, knot in zip(basis.bends, basis.knots, strict=True)
        if i in columns
    ]
    return [*row[list(columns)], *bent]


def slow_columns(ridge, training, i, t, step, known):
    """What is seen at an origin of the step that lies so many steps ahead."""
    observations = training.origins.table
    values = observations.values[i]
    table = observations.features[observations.series == i]
    past = (values[t - LOOKBACK : t] - values[t - 1]) / training.scale[i]
    ahead = [slow_basis(ridge, table[t + k], known) for k in range(step + 1)]
    now = slow_basis(ridge, table[t - 1], range(3))
    return [*past, *now, 1.0, *ahead[-1], *np.mean(ahead, axis=0)]


def slow_map(ridge, training, step, alpha, known, left_out=()):
    x, y = [], []
    for i, values in enumerate(training.origins.table.values):
        for t in range(LOOKBACK, len(values) - HORIZON + 1):
            if (i, t) not in left_out:
                x.append(slow_columns(ridge, training, i, t, step, known))
                y.append((values[t + step] - values[t - 1]) / training.scale[i])
    x, y = np.array(x), np.array(y)
    n = x.shape[1]
    penalty = alpha * np.mean(np.sum(x**2, axis=0))
    x = np.concatenate([x, np.sqrt(penalty) * np.eye(n)])
    return np.linalg.lstsq(x, np.concatenate([y, np.zeros(n)]), rcond=None)[0]


@pytest.mark.parametrize("known", [(0, 2), (0, 1, 2), ()])
def test_forecasts_are_those_of_least_squares(known, monkeypatch):
    monkeypatch.setattr(module, "_ALPHAS", (0.01,))
    training = make(known=known)
    ridge, held_out = FeatureRidge(1.0).fit(training)
    held_out = held_out[:, 0]
    assert ridge.lookback == LOOKBACK
    # The flag has too few values to bend.
    assert set(ridge.basis.bends) == {0, 1}
    found = ridge.forecast(Origins.at_ends(training.origins.table, HORIZON))[:, 0]
    observations = training.origins.table
    for step in range(HORIZON):
        coef = slow_map(ridge, training, step, 0.01, known)
        for i, values in enumerate(observations.values):
            row = slow_columns(ridge, training, i, len(values), step, known)
            expected = values[-1] + training.scale[i] * (row @ coef)
            assert found[i, step] == pytest.approx(expected, rel=1e-6)
    block = 1
    left_out = {(i, t) for i in range(2) for t in overlapping_rows(training, i, block)}
    coef = slow_map(ridge, training, 1, 0.01, known, left_out)
    for k in np.flatnonzero(training.block == block)[::5]:
        i, t = training.validation.series[k], training.validation.known[k]
        row = slow_columns(ridge, training, i, t, 1, known)
        expected = observations.values[i][t - 1] + training.scale[i] * (row @ coef)
        assert held_out[k, 1] == pytest.approx(expected, rel=1e-6)


def test_features_that_are_known_beforehand_are_used():
    training = make((200,))
    held_out = FeatureRidge(1.0).fit(training)[1][:, 0]
    missed = held_out - training.validation.targets()
    assert np.sqrt(np.nanmean(missed**2)) < 0.3


def test_unknown_series_have_units_of_their_own():
    training = make()
    ridge, _ = FeatureRidge(1.0).fit(training)
    seen = training.origins.table
    fresh = unknown_twins(seen)
    expected = 1000 * ridge.forecast(Origins.at_ends(seen, HORIZON)) - 5
    np.testing.assert_allclose(ridge.forecast(Origins.at_ends(fresh, HORIZON)), expected)


def test_series_too_short_have_none():
    training = make((10, 9))
    ridge, held_out = FeatureRidge(1.0).fit(training)
    assert np.isnan(held_out).all()
    assert np.isnan(ridge.forecast(Origins.at_ends(training.origins.table, HORIZON))).all()


@pytest.mark.parametrize("twins", [False, True])
@pytest.mark.parametrize("known", [(0, 2), ()])
def test_nothing_later_matters(known, twins):
    training = make((50, 40), known=known)
    ridge, _ = FeatureRidge(1.0).fit(training)
    table = training.origins.table
    table = unknown_twins(table) if twins else table
    check_knows_nothing_later(ridge.forecast, table, HORIZON, 1e-9)
