"""Corrections learned from all origins of a panel, against a loop."""

from dataclasses import replace

import numpy as np
import pytest
from forecasting_validation import make_validation_of

from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting import _panel_ridge as module
from sklearn_attention.forecasting._classical import Classical
from sklearn_attention.forecasting._panel_ridge import PanelRidge, _Features

HORIZON, CLASSICAL = 3, Classical(4.0)


@pytest.fixture(autouse=True)
def short_windows(monkeypatch):
    monkeypatch.setattr(module, "_WINDOW", 6)


def make_panel(n_series=8, n=60, seed=0):
    """Series that swing back, which classical forecasts do not know."""
    rng, panel = np.random.default_rng(seed), []
    for i in range(n_series):
        noise, values = rng.normal(size=n), np.zeros(n)
        for t in range(2, n):
            values[t] = 1.6 * values[t - 1] - 0.9 * values[t - 2] + noise[t]
        panel.append((1 + i) * (50 + values))
    return panel


def fit(panel):
    validation = make_validation_of(panel, HORIZON)
    held_out = CLASSICAL.fit(validation)[1].mean(axis=1)
    ridge, mixed = PanelRidge.fit(validation, held_out, CLASSICAL, np.random.RandomState(0))
    return validation, held_out, ridge, mixed


def error_of(forecasts, origins):
    return np.nanmean(np.abs(forecasts - origins.targets()))


def test_coefficients_are_those_of_weighted_least_squares():
    validation, *_ = fit(make_panel())
    origins = validation.origins.take(
        validation.origins.n_known > 3
    )  # after which there is a unit
    features, is_target = _Features(origins, CLASSICAL), np.ones((len(origins), HORIZON), bool)
    is_target[::5, 1] = False
    coef = features.fit(is_target, origins.series)
    residuals = features.targets - features.mean
    size = np.nanmean(np.where(is_target, np.abs(residuals), np.nan), axis=1)
    counts = np.bincount(origins.series)[origins.series]
    weights = 1 / ((size + np.median(size)) * np.sqrt(counts))
    for step in range(HORIZON):
        x, y, w = features.features_at(step), residuals[:, step], weights * is_target[:, step]
        gram = (w[:, None] * x).T @ x
        penalty = np.diag(0.03 * np.diag(gram))
        expected = np.linalg.solve(gram + penalty, x.T @ (w * y))
        np.testing.assert_allclose(coef[step], expected, rtol=1e-4, atol=1e-4)


def test_what_all_series_share_is_learned():
    panel = make_panel()
    validation, held_out, ridge, mixed = fit([series[:-HORIZON] for series in panel])
    assert 0.5 < ridge.share <= 0.75
    ends = Origins.at_ends(Table.from_arrays(panel), HORIZON)
    ends = ends.at_steps(ends.series, ends.n_known - HORIZON)
    plain = CLASSICAL.forecast(ends).mean(axis=1)
    assert error_of(ridge.forecast(ends, plain), ends) < 0.9 * error_of(plain, ends)
    # Held-out forecasts are corrected within a horizon of the end of a series.
    is_last = validation.tests.steps_left <= HORIZON
    np.testing.assert_array_equal(mixed[~is_last], held_out[~is_last])
    assert (mixed[is_last] != held_out[is_last]).all()


def test_what_does_not_help_is_left_out():
    validation = make_validation_of(make_panel(), HORIZON)
    perfect = np.nan_to_num(validation.tests.targets())
    ridge, held_out = PanelRidge.fit(validation, perfect, CLASSICAL, np.random.RandomState(0))
    assert ridge is None
    assert held_out is perfect


def test_held_out_corrections_do_not_know_the_end():
    panel = make_panel()
    validation, held_out, ridge, mixed = fit(panel)
    is_last = validation.tests.steps_left <= HORIZON
    # Corrected forecasts without the share, of a fit before and after the end has changed.
    corrected = held_out + (mixed - held_out) / ridge.share
    rng = np.random.default_rng(1)
    changed = [series.copy() for series in panel]
    for series in changed:
        series[-HORIZON:] += rng.normal(size=HORIZON)
    _, other_held_out, other, other_mixed = fit(changed)
    other_corrected = other_held_out + (other_mixed - other_held_out) / other.share
    before = validation.tests.steps_left == HORIZON
    assert (is_last >= before).all()
    np.testing.assert_allclose(corrected[before], other_corrected[before], rtol=1e-6)


@pytest.mark.parametrize(("factor", "shift"), [(1024.0, 0.0), (1.0, 7.0)])
def test_corrections_follow_units_and_shifts(factor, shift):
    panel = make_panel()
    panel[2][-8:] = panel[2][-9]  # and a series that stands still
    forecasts = []
    for series in (panel, [factor * values + shift for values in panel]):
        validation, _, ridge, _ = fit(series)
        ends = Origins.at_ends(validation.tests.table, HORIZON)
        forecasts.append(ridge.forecast(ends, CLASSICAL.forecast(ends).mean(axis=1)))
    np.testing.assert_allclose(forecasts[1], factor * forecasts[0] + shift, rtol=1e-9)


def test_constant_series_are_not_corrected():
    _, _, ridge, _ = fit(make_panel())
    table = Table.from_arrays(
        [np.full(30, 5.0), np.array([7.0])], training_index=np.array([-1, -1])
    )
    found = ridge.forecast(
        Origins.at_ends(table, HORIZON), np.repeat([[5.0], [7.0]], HORIZON, 1)
    )
    np.testing.assert_array_equal(found, [[5.0] * HORIZON, [7.0] * HORIZON])


def test_series_that_mostly_are_0_are_not_corrected():
    validation, _, ridge, _ = fit(make_panel())
    is_excluded = np.arange(8) == 3
    ridge = replace(ridge, is_excluded=is_excluded)
    ends = Origins.at_ends(validation.tests.table, HORIZON)
    plain = CLASSICAL.forecast(ends).mean(axis=1)
    found = ridge.forecast(ends, plain)
    np.testing.assert_array_equal((found == plain).all(axis=1), is_excluded)
