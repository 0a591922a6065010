"""The transformer as a candidate: its units, its base, and what it learns from."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from forecasting_training import (
    check_knows_nothing_later,
    make_training_of,
    make_walks,
    unknown_twins,
)

from sklearn_attention import Training, TransformerForecaster
from sklearn_attention.forecasting import Table
from sklearn_attention.forecasting import _transformer_candidate as module
from sklearn_attention.forecasting._network import outputs_of
from sklearn_attention.forecasting._ridges import WindowRidge
from sklearn_attention.forecasting._transformer_candidate import (
    Scaling,
    TransformerCandidate,
)
from sklearn_attention.forecasting._transformer_forecaster import NETWORK
from sklearn_attention.training._report import Report

LOOKBACK, HORIZON = 8, 3


@contextmanager
def begin(n_epochs):
    """Without callbacks."""

    class Task:
        def subcontext(self, **options):
            return self

        def call_on_fit_task_begin(self, **options):
            pass

        def call_on_fit_task_end(self, **options):
            return False

    yield Report(Task(), None), lambda one: {}


def make(**options):
    parameters = {"d_model": 8, "n_heads": 2, "n_layers": 1, "training": Training(max_steps=2)}
    settings = NETWORK.settings(TransformerForecaster(**parameters | options))
    return TransformerCandidate(LOOKBACK, settings=settings, begin=begin)


class TestScaling:
    def test_is_measured_before_the_last_origin(self):
        series = make_walks([30, 20])
        origins = Table.of(series).origins(HORIZON, LOOKBACK)
        scaling = Scaling.of(origins, LOOKBACK)
        level, unit = scaling.units(origins.take([0, -1]))
        for i, own in enumerate(series):
            assert level[i] == pytest.approx(own[:-HORIZON].mean())
            assert unit[i] == pytest.approx(own[:-HORIZON].std())
        assert len(scaling.center) == len(scaling.scale) == 0

    def test_of_unknown_series_is_that_so_far(self):
        table = Table.of(make_walks([30, 20]))
        scaling = Scaling.of(table.origins(HORIZON, LOOKBACK), LOOKBACK)
        twins = unknown_twins(table)
        series, known = np.array([1, 0, 1]), np.array([7, 30, 1])
        level, unit = scaling.units(twins.at_ends(HORIZON).at(series, known))
        for i, n, own, spread in zip(series, known, level[:, 0], unit[:, 0], strict=True):
            past = twins.values[i][:n]
            assert own == pytest.approx(past.mean())
            assert spread == pytest.approx(past.std() if n > 1 else 1.0)

    def test_constant_series_and_features_are_divided_by_one(self):
        table = Table.of([np.full(30, 7.0)], features=[np.full((33, 1), 5.0)])
        origins = table.origins(HORIZON, LOOKBACK)
        past, features, later = Scaling.of(origins, LOOKBACK).inputs(origins)
        assert (past == 0).all()
        assert (features == 0).all()
        assert later is None
        assert past.dtype == features.dtype == np.float32


class TestFit:
    def test_adds_to_a_ridge_and_learns_from_what_came_before(self, monkeypatch):
        learned, fit_network = [], module.fit_network

        def recorded(*args, data, **options):
            learned.extend(data[5:7])
            return fit_network(*args, data=data, **options)

        monkeypatch.setattr(module, "fit_network", recorded)
        candidate, training = make(), make_training_of(make_walks([120, 80]), HORIZON, LOOKBACK)
        monkeypatch.setattr(module, "_FEWEST_WINDOWS", 20)
        fitted, held_out = candidate.fit(training)
        assert candidate.network is candidate.ridge is None
        assert fitted.settings is fitted.begin is None
        series, known = learned
        assert (known >= LOOKBACK).all()
        assert (known + HORIZON <= training.earliest()[series]).all()
        np.testing.assert_array_equal(held_out, fitted.forecast(training.validation))
        ridge = WindowRidge(LOOKBACK).fit(training)[0].forecast(training.validation)
        network = fitted.network.module("cpu")
        outputs = outputs_of(network, fitted.scaling, training.validation)
        unit = fitted.scaling.units(training.validation)[1]
        np.testing.assert_allclose(held_out[:, 0], ridge[:, 0] + unit * outputs)

    def test_without_enough_windows_there_is_none(self):
        training = make_training_of(make_walks([40]), HORIZON, LOOKBACK)
        fitted, held_out = make().fit(training)
        assert fitted.network is None
        assert held_out.shape == (len(training.validation), 1, HORIZON)
        assert np.isnan(held_out).all()


class TestLearn:
    def test_without_a_ridge_it_adds_to_the_level(self):
        origins = Table.of(make_walks([60, 50])).origins(HORIZON, LOOKBACK)
        fitted = make().learn(origins)
        level, unit = fitted.scaling.units(origins)
        outputs = outputs_of(fitted.network.module("cpu"), fitted.scaling, origins)
        np.testing.assert_allclose(fitted.forecast(origins)[:, 0], level + unit * outputs)
        shape = fitted.network.shape
        assert (shape["lookback"], shape["horizon"]) == (LOOKBACK, HORIZON)
        assert (shape["n_past"], shape["n_future"], shape["relative"]) == (0, 0, False)
        assert shape["patch_length"] == 2  # four patches at least

    def test_where_the_ridge_has_none_the_last_value_is_the_base(self):
        training = make_training_of(make_walks([60]), HORIZON, LOOKBACK)
        ridge, _ = WindowRidge(LOOKBACK).fit(training)
        fitted = replace(make(), ridge=ridge).learn(training.origins)
        origins = training.origins.take([2])
        outputs = outputs_of(fitted.network.module("cpu"), fitted.scaling, origins)
        expected = origins.past(1) + fitted.scaling.unit[0] * outputs
        np.testing.assert_allclose(fitted.forecast(origins)[:, 0], expected)

    def test_no_windows(self):
        origins = Table.of(make_walks([9])).origins(HORIZON, LOOKBACK)
        with pytest.raises(ValueError, match="horizon=3 and lookback_=8 leave no windows"):
            make().learn(origins)

    @pytest.mark.parametrize("twins", [False, True])
    @pytest.mark.parametrize("with_ridge", [False, True])
    def test_nothing_later_matters(self, with_ridge, twins):
        rng, series = np.random.default_rng(0), make_walks([60, 50])
        features = [rng.normal(size=(len(own) + HORIZON, 2)) for own in series]
        table = Table.of(series, features=features, known=np.array([1]))
        candidate = make()
        if with_ridge:
            training = make_training_of(series, HORIZON, LOOKBACK)
            candidate = replace(candidate, ridge=WindowRidge(LOOKBACK).fit(training)[0])
        fitted = candidate.learn(table.origins(HORIZON, LOOKBACK))
        table = unknown_twins(table) if twins else table
        check_knows_nothing_later(fitted.forecast, table, HORIZON, 1e-5)  # single precision
