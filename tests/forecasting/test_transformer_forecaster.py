"""The transformer forecaster: base, network and gate, and what training it promises."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from sklearn_attention import TransformerForecaster
from sklearn_attention.datasets import make_periodic_series
from sklearn_attention.forecasting import seasonal_naive
from sklearn_attention.forecasting._network import ForecastNetwork

QUICK = {"max_steps": 4, "d_model": 8, "n_heads": 2, "n_layers": 1, "lookback": 12}


def make_series(n=160, seed=0):
    rng = np.random.default_rng(seed)
    steps = np.arange(n)
    values = 10 + 0.02 * steps + np.sin(steps / 2) + 0.1 * rng.normal(size=n)
    index = pd.date_range("2024-01-01", periods=n, freq="D")
    return pd.Series(values, index=index, name="sales")


def fit(series=None, X=None, **parameters):
    series = make_series() if series is None else series
    model = TransformerForecaster(**QUICK | {"horizon": 3} | parameters)
    return model.fit(series) if X is None else model.fit(X, series)


def test_is_base_plus_gate_times_network():
    series = make_series()
    model = fit(series, base="ridge")
    for gate in (0.0, 0.3, 1.0):
        model.gate_ = gate
        network = ForecastNetwork(**model.shape_)
        network.load_state_dict(
            {name: torch.as_tensor(value) for name, value in model.network_.items()}
        )
        window = series.to_numpy()[-12:]
        unit = series[:128].std(ddof=0)  # a fifth is held out
        relative = torch.tensor((window - series[:128].mean()) / unit, dtype=torch.float32)
        with torch.no_grad():
            correction = network(relative[None])[0][0].numpy()
        last = window[-1]
        base = last + (window - last) @ model.ridge_["coef"]
        expected = base + gate * unit * correction
        np.testing.assert_allclose(model.predict(), expected, rtol=1e-5)


def test_seasonal_base_repeats_the_last_season():
    series = make_series()
    model = fit(series, base="seasonal", season_length=7)
    model.gate_ = 0.0
    expected = seasonal_naive(series.to_numpy()[None, -12:], 3, 7)[0]
    np.testing.assert_allclose(model.predict(), expected)


def test_the_better_base_is_taken():
    assert fit(base="auto").base_ == "ridge"
    rng = np.random.default_rng(0)
    # Fourteen levels in turn: only the last season knows them, and few windows do.
    levels = 10 * rng.normal(size=14)
    series = pd.Series(np.tile(levels, 5) + 0.01 * rng.normal(size=70))
    model = fit(series, base="auto", season_length=14, lookback=14, horizon=14)
    assert model.base_ == "seasonal"
    assert model.ridge_ is None


def test_without_a_base_the_network_answers():
    series = pd.Series(make_periodic_series("sine", 400))
    model = TransformerForecaster(
        horizon=10, lookback=70, base=None, d_model=32, max_steps=120
    ).fit(series[:360])
    assert model.base_ is None
    assert model.gate_ == 1
    assert np.abs(model.predict(40) - series[360:]).max() < 0.2


@pytest.mark.filterwarnings("ignore:.*interval.*:UserWarning")
def test_level_and_unit_of_the_series_do_not_matter():
    series = make_series()
    for parameters in ({"base": None}, {"base": "ridge"}, {"instance_norm": None}):
        plain, moved = fit(series, **parameters), fit(1000 * series - 5e4, **parameters)
        expected = 1000 * plain.predict() - 5e4
        np.testing.assert_allclose(moved.predict(), expected, rtol=1e-4, atol=2)


@pytest.mark.parametrize(
    "parameters",
    [
        {"positions": "learned"},
        {"positions": "rotary"},
        {"d_position": 4},
        {"norm": "post", "activation": "relu"},
        {"norm": "lecture"},
        {"attention_kernel": "gaussian"},
        {"attention_kernel": "periodic"},
        {"patch_length": 1},
        {"patch_length": 40},
        {"instance_norm": "last"},
        {"instance_norm": None},
        {"dropout": 0.2},
        {"optimizer": "lbfgs"},
        {"schedule": "cosine", "batch_size": (16, 64)},
        {"autocast": True},
        {"max_epochs": 2, "max_steps": None},
    ],
)
def test_every_form_learns_and_answers(parameters):
    model = fit(base=None, **parameters)
    losses = model.training_history_["loss"]
    assert np.isfinite(losses).all()
    assert np.isfinite(model.predict(7)).all()


class TestFeatures:
    def make(self):
        series = make_series()
        rng = np.random.default_rng(1)
        X = pd.DataFrame(
            {"promotion": rng.integers(0, 2, len(series)), "rain": rng.normal(size=160)},
            index=series.index,
            dtype=float,
        )
        return X, series + 5 * X["promotion"]

    def test_known_ones_are_seen_ahead(self):
        X, y = self.make()
        options = {"horizon": 2, "base": None, "max_steps": 300, "d_model": 16, "n_layers": 1}
        model = fit(y[:140], X[:140], **options)
        better = np.abs(model.predict(X[140:142]) - y[140:142]).mean()
        other = X[140:142].assign(promotion=1 - X["promotion"][140:142])
        worse = np.abs(model.predict(other) - y[140:142]).mean()
        assert better < 1.5 < worse

    def test_past_ones_are_not_asked_for(self):
        X, y = self.make()
        model = fit(y[:140], X[:140], base=None, past_features=["rain", "promotion"])
        assert model.shape_["n_past"] == 2
        assert model.shape_["n_future"] == 0
        np.testing.assert_array_equal(model.predict(), model.predict(3))

    def test_units_of_features_do_not_matter(self):
        X, y = self.make()
        plain = fit(y[:140], X[:140], base=None)
        moved = fit(y[:140], 1e4 * X[:140] + 7, base=None)
        expected = plain.predict(X[140:143])
        np.testing.assert_allclose(moved.predict(1e4 * X[140:143] + 7), expected, rtol=1e-4)


class TestAttentionMaps:
    def test_rows_are_averages_of_tokens(self):
        model = fit(n_layers=2, patch_length=3)
        maps = model.attention_maps()
        assert maps.shape == (1, 2, 2, 4, 4)
        np.testing.assert_allclose(maps.sum(axis=-1), 1, atol=1e-6)
        assert (maps >= 0).all()

    def test_of_fresh_windows(self):
        windows = make_series().to_numpy()[:36].reshape(3, 12)
        assert fit(patch_length=3).attention_maps(history=windows).shape == (3, 1, 2, 4, 4)

    def test_steps_within_the_series_have_none(self):
        series = make_series()
        with pytest.raises(ValueError, match="has no steps after the series"):
            fit(series).attention_maps(series.index[-2:])


class TestTraining:
    def test_the_same_random_state_makes_the_same_forecaster(self):
        first, again, other = fit(base=None), fit(base=None), fit(base=None, random_state=1)
        np.testing.assert_array_equal(first.predict(), again.predict())
        assert not np.array_equal(first.predict(), other.predict())

    def test_leaves_torch_as_it_was(self):
        before = torch.random.get_rng_state(), torch.get_num_threads()
        fit().predict()
        assert torch.equal(before[0], torch.random.get_rng_state())
        assert before[1] == torch.get_num_threads()

    def test_a_second_fit_starts_afresh_unless_told(self):
        model = fit(base=None)
        first = model.predict()
        np.testing.assert_array_equal(model.fit(make_series()).predict(), first)
        model.set_params(warm_start=True).fit(make_series())
        assert not np.array_equal(model.predict(), first)
        assert model.training_history_["loss"][0] < fit(base=None).training_history_["loss"][0]

    def test_warm_start_of_another_shape_starts_afresh(self):
        model = fit(base=None, warm_start=True)
        model.set_params(d_model=16).fit(make_series())
        np.testing.assert_array_equal(model.predict(), fit(base=None, d_model=16).predict())

    def test_an_interrupt_leaves_a_usable_forecaster(self, monkeypatch):
        calls, forward = [], ForecastNetwork.forward

        def interrupted(network, *args, **options):
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return forward(network, *args, **options)

        monkeypatch.setattr(ForecastNetwork, "forward", interrupted)
        with pytest.warns(UserWarning, match="interrupted after 2 steps"):
            model = fit(base=None)
        assert model.training_history_["stopped"] == "interrupted"
        assert np.isfinite(model.predict_interval(coverage=0.5)).all(axis=None)

    def test_goes_on_from_a_checkpoint(self, tmp_path, monkeypatch):
        options = {"base": None, "max_epochs": 4, "max_steps": None, "dropout": 0.1}
        expected = fit(**options)
        options["checkpoint"] = str(tmp_path / "training.pt")
        calls, forward = [], ForecastNetwork.forward

        def killed(network, *args, **found):
            calls.append(1)
            if len(calls) == 5:
                raise RuntimeError("power is off")
            return forward(network, *args, **found)

        monkeypatch.setattr(ForecastNetwork, "forward", killed)
        with pytest.raises(RuntimeError, match="power is off"):
            fit(**options)
        monkeypatch.undo()
        model = fit(**options)
        for name, value in expected.network_.items():
            np.testing.assert_array_equal(model.network_[name], value)

    def test_a_checkpoint_of_other_data_is_refused(self, tmp_path):
        path = tmp_path / "training.pt"
        fit(checkpoint=path)
        with pytest.raises(ValueError, match="is of another training"):
            fit(2 * make_series(seed=1), checkpoint=path)

    def test_a_failed_fit_changes_nothing(self):
        model = fit()
        before = model.predict()
        with pytest.raises(ValueError, match="d_model=0 is not valid"):
            model.set_params(d_model=0).fit(make_series())
        np.testing.assert_array_equal(model.predict(), before)

    def test_epochs_are_tasks_of_callbacks(self):
        class Recorder:
            max_propagation_depth = None

            def __init__(self):
                self.names = []

            def setup(self, estimator, context):
                pass

            def teardown(self, estimator, context):
                pass

            def on_fit_task_begin(self, estimator, context, *, X, y):
                assert len(X) == 160
                assert y is None
                self.names.append(context.task_name)

            def on_fit_task_end(self, estimator, context):
                return len(self.names) == 4  # after the second epoch

        model = TransformerForecaster(**QUICK | {"max_epochs": 5, "max_steps": None})
        recorder = Recorder()
        model.set_callbacks(recorder).fit(make_series())
        assert recorder.names == ["fit", "training", "epoch", "epoch"]
        assert model.training_history_["stopped"] == "callback"


class TestBadParameters:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"base": "linear"}, "base='linear' is unknown"),
            ({"patch_length": 0}, "patch_length=0 is not valid"),
            ({"d_model": 1.5}, "d_model=1.5 is not valid"),
            ({"n_heads": 3}, "n_heads=3 does not divide the tokens' width 8"),
            ({"n_layers": 0}, "n_layers=0 is not valid"),
            ({"d_feedforward": -1}, "d_feedforward=-1 is not valid"),
            ({"d_position": 0}, "d_position=0 is not valid"),
            ({"positions": "none"}, "positions='none' is unknown"),
            ({"norm": "both"}, "norm='both' is unknown"),
            ({"activation": "tanh"}, "activation='tanh' is unknown"),
            ({"instance_norm": "median"}, "instance_norm='median' is unknown"),
            ({"dropout": 1}, "dropout=1"),
            ({"attention_kernel": "loud"}, "'loud'"),
            ({"optimizer": "sgd"}, "optimizer='sgd' is unknown"),
            ({"learning_rate": 0}, "learning_rate=0 is not valid"),
            ({"max_epochs": None, "max_steps": None}, "would never end"),
            ({"batch_size": 0}, "batch_size=0 is not valid"),
            ({"random_state": "a"}, "'a' cannot be used to seed"),
            ({"device": "gpu"}, "device='gpu'"),
            ({"checkpoint": "/no/such/folder/file"}, "lies in no folder"),
        ],
    )
    def test_are_named(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            fit(**parameters)


def test_a_clone_is_not_fitted_and_has_the_same_parameters():
    model = fit(d_position=2)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "network_")


def test_constant_series_stay_constant():
    model = fit(pd.Series(np.full(60, 7.0)))
    assert model.gate_ == 0
    np.testing.assert_allclose(model.predict(9), 7.0)
    assert np.isfinite(fit(pd.Series(np.full(60, 7.0)), base=None).predict(9)).all()
