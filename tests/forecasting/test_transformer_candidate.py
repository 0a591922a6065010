"""The transformer as a candidate: its units, its base, and what it learns from."""

import numpy as np
from forecasting_validation import make_validation_of, make_walks, unknown_twins

from sklearn_attention import Training, TransformerForecaster
from sklearn_attention._report import Report
from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting import _transformer_candidate as module
from sklearn_attention.forecasting._network import outputs_of
from sklearn_attention.forecasting._ridges import WindowRidge
from sklearn_attention.forecasting._transformer_candidate import Scaling, TransformerCandidate
from sklearn_attention.training._fit_network import NetworkSettings

LOOKBACK, HORIZON = 8, 3


def make(**options):
    parameters = {"d_model": 8, "n_heads": 2, "n_layers": 1, "training": Training(max_steps=2)}
    forecaster = TransformerForecaster(**parameters | options)
    report = Report(forecaster)
    report.begin(None)
    settings = NetworkSettings.of(forecaster)
    return TransformerCandidate(LOOKBACK, settings=settings, task=report.task)


class TestScaling:
    def test_of_unknown_series_is_that_so_far(self):
        table = Table.from_arrays(make_walks([30, 20]))
        scaling = Scaling.from_origins(Origins.within(table, HORIZON, LOOKBACK), LOOKBACK)
        twins = unknown_twins(table)
        series, known = np.array([1, 0, 1]), np.array([7, 30, 1])
        units = scaling.units(Origins.at_ends(twins, HORIZON).at_steps(series, known))
        pasts = [twins.observations[i][:n] for i, n in zip(series, known, strict=True)]
        expected = [(own.mean(), own.std() if len(own) > 1 else 1.0) for own in pasts]
        np.testing.assert_allclose(units, expected)


def test_adds_to_a_ridge_and_learns_from_what_came_before(monkeypatch):
    learned, fit_network = [], module.fit_network

    def recorded(*args, data, **options):
        learned.extend(data[5:7])
        return fit_network(*args, data=data, **options)

    monkeypatch.setattr(module, "fit_network", recorded)
    candidate, validation = make(), make_validation_of(make_walks([120, 80]), HORIZON, LOOKBACK)
    monkeypatch.setattr(module, "_MIN_WINDOWS", 20)
    fitted, held_out = candidate.fit(validation)
    assert candidate.network is candidate.ridge is None
    assert fitted.settings is fitted.task is fitted.attributes is None
    series, known = learned
    assert (known >= LOOKBACK).all()
    assert (known + HORIZON <= validation.first_test_step()[series]).all()
    np.testing.assert_array_equal(held_out, fitted.forecast(validation.tests))
    ridge = WindowRidge(LOOKBACK).fit(validation)[0].forecast(validation.tests)
    network = fitted.network.module("cpu")
    units = fitted.scaling.units(validation.tests)
    outputs = outputs_of(network, validation.tests, units, fitted.scaling)
    np.testing.assert_allclose(held_out[:, 0], ridge[:, 0] + units[:, 1:] * outputs)


def test_without_enough_windows_there_is_none():
    validation = make_validation_of(make_walks([40]), HORIZON, LOOKBACK)
    fitted, held_out = make().fit(validation)
    assert fitted.network is None
    assert held_out.shape == (len(validation.tests), 1, HORIZON)
    assert np.isnan(held_out).all()
