"""The transformer forecaster: its candidates, and what training promises."""

import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import torch
from recorder import Recorder
from sklearn.base import clone
from sklearn.linear_model import Ridge

from sklearn_attention import Architecture, Training, TransformerForecaster
from sklearn_attention.forecasting._network import ForecastNetwork

SMALL = {"d_model": 8, "n_heads": 2, "n_layers": 1, "lookback": 12}
QUICK = SMALL | {"training": Training(max_steps=4)}


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


def test_alone_it_is_the_network_in_units_of_the_series():
    series = make_series()
    model = fit(series, candidates=None)
    network = ForecastNetwork(**model.network_.shape)
    network.load_state_dict(
        {name: torch.as_tensor(value) for name, value in model.network_.weights.items()}
    )
    # A fifth of the windows is held out; what follows the others ends before.
    n_windows = 160 - 12 - 3 + 1
    end = 12 + n_windows - int(0.2 * n_windows) - 3
    level, unit = series[:end].mean(), series[:end].std(ddof=0)
    window = series.to_numpy()[-12:]
    with torch.no_grad():
        past = torch.tensor((window - level) / unit, dtype=torch.float32)
        answer = network(past[None])[0][0].numpy()
    np.testing.assert_allclose(model.predict(), level + unit * answer, rtol=1e-5)
    assert model.transformer_weight_ == 1


@pytest.mark.parametrize(
    "parameters",
    [
        {"architecture": Architecture(positions="rotary", attention_kernel="gaussian")},
        {"architecture": Architecture(instance_norm=None, d_position=4, norm="post")},
        {"training": Training(schedule="constant", max_steps=4), "batch_size": 16},
        {"max_epochs": 2, "dropout": 0.2, "training": Training(max_steps=None)},
    ],
)
def test_every_form_learns_and_answers(parameters):
    model = fit(candidates=None, **parameters)
    losses = model.training_history_["loss"]
    assert np.isfinite(losses).all()
    assert np.isfinite(model.predict(7)).all()


def test_attention_maps_are_averages_of_tokens_also_of_fresh_windows():
    model = fit(n_layers=2, architecture=Architecture(patch_length=3), candidates=None)
    maps = model.attention_maps()
    assert maps.shape == (1, 2, 2, 4, 4)
    np.testing.assert_allclose(maps.sum(axis=-1), 1, atol=1e-6)
    assert (maps >= 0).all()
    windows = make_series().to_numpy()[:36].reshape(3, 12)
    assert model.attention_maps(history=windows).shape == (3, 2, 2, 4, 4)
    with pytest.raises(ValueError, match="has no steps after the series"):
        model.attention_maps(make_series().index[-2:])
    with pytest.raises(ValueError, match="needs the transformer, which is"):
        fit(candidates=["ridge"]).attention_maps()


@pytest.mark.parametrize("features", [False, True])
def test_callbacks_get_a_forecaster_that_predicts_before_the_end(features):
    series = make_series()
    X = pd.DataFrame({"x": np.arange(160.0) % 2}, series.index)
    later = X[-3:] if features else None
    recorder = Recorder(ask=lambda fitted: fitted.predict(later), stop_after=2)
    options = {"max_epochs": 5, "training": Training(max_steps=None), "batch_size": 64}
    candidates = ["ridge", "transformer"] if features else None
    model = TransformerForecaster(3, **QUICK | options, candidates=candidates)
    model.set_callbacks(recorder).fit(*((X, series) if features else (series,)))
    first, second = recorder.answers[:2]
    assert np.isfinite(first).all()
    assert not np.array_equal(first, second)
    if not features:
        assert recorder.begun == ["fit", "training", "epoch", "epoch"]
        assert model.training_history_["stopped"] == "callback"
        np.testing.assert_array_equal(second, model.predict())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lookback": -2}, "lookback=-2"),
        ({"lookback": 0, "candidates": "auto"}, "lookback=0 is not valid"),
        ({"candidates": "ridge"}, "candidates='ridge' is not valid"),
        ({"candidates": ["linear"]}, "candidates='linear' is unknown"),
        ({"architecture": Architecture(patch_length=0)}, "patch_length=0 is not valid"),
        ({"n_heads": 3}, "n_heads=3 does not divide d_model=8"),
        ({"architecture": Architecture(attention_kernel="loud")}, "'loud'"),
        ({"max_epochs": None, "training": Training(max_steps=None)}, "would never end"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(**{"candidates": None} | parameters)


class TestCandidates:
    @pytest.mark.parametrize("log", [False, True])
    def test_the_forecast_is_their_weighted_sum(self, log):
        series = make_series()
        model = fit({"a": series, "b": series[:60] ** 2}, log=log)
        found, history = model.explain(), {"a": series[:50]}
        assert list(found) == ["series", "candidate", "weight", 1, 2, 3]
        averaged = np.log if log else np.asarray
        for name, expected in model.predict().items():
            own = found[found["series"] == name]
            assert own["weight"].sum() == pytest.approx(1)
            assert own["weight"].is_monotonic_decreasing
            total = own["weight"].to_numpy() @ averaged(own[[1, 2, 3]].to_numpy())
            np.testing.assert_allclose(total, averaged(expected))
            weights = model.candidate_weights_.loc[name, own["candidate"]]
            np.testing.assert_array_equal(weights, own["weight"])
        fresh = model.explain(history=history)
        total = fresh["weight"].to_numpy() @ averaged(fresh[[1, 2, 3]].to_numpy())
        np.testing.assert_allclose(total, averaged(model.predict(history=history)["a"]))

    @pytest.mark.parametrize(
        ("kind", "n", "why"),
        [
            ("ridge", 8, "'ridge', since series of up to 8 steps are too short"),
            ("analogs", 20, "'analogs of 8 steps', since series of up to 20 steps"),
            ("trees", 20, "'trees', since series of up to 20 steps"),
            (
                "features",
                60,
                r"candidates=.*no forecasts of its own.*: it removes the effects of features",
            ),
            (Ridge(), 3, "'Ridge', since series of up to 3 steps"),
            ("transformer", 3, "the longest series has 3 samples"),
        ],
    )
    def test_named_candidates_are_not_replaced(self, kind, n, why):
        values = np.random.default_rng(0).normal(size=n).cumsum()
        model = TransformerForecaster(1, candidates=["classical"], season_length=2)
        known = model.fit(values[:6]).predict()
        with pytest.raises(ValueError, match=why):
            model.set_params(candidates=[kind], season_length="auto").fit(values)
        np.testing.assert_array_equal(model.predict(), known)  # nothing fitted is lost
        if kind == "transformer":
            why = "'transformer', since series of up to 3 steps"
        if kind == "features":
            why = "'features', since no features are known beforehand: pass X"
        with pytest.warns(UserWarning, match=why):
            model.set_params(candidates=["classical", kind]).fit(values)
        assert np.isfinite(model.predict()).all()

    def test_a_transformer_that_only_is_named_is_alone(self):
        y = make_series(60)
        alone = fit(y, candidates=None).predict()
        np.testing.assert_array_equal(fit(y, candidates=["transformer"]).predict(), alone)
        with pytest.warns(UserWarning, match="fitted without 'features'"):
            model = fit(y, candidates=["features", "transformer"])
        np.testing.assert_array_equal(model.predict(), alone)
        with pytest.raises(AttributeError, match="only the transformer was fitted: pass"):
            model.explain()
        assert not hasattr(model, "candidate_weights_")

    @pytest.mark.parametrize(("n", "horizon"), [(1, 4), (2, 4), (3, 1), (9, 4)])
    def test_short_series(self, n, horizon):
        values = 10 + np.random.default_rng(n).normal(size=n)
        warns = pytest.warns(UserWarning, match="horizon=4 is more than can be")
        with warns if n < horizon else nullcontext():
            model = TransformerForecaster(horizon).fit(values)
        forecasts, intervals = model.predict(7), model.predict_interval(7)
        assert np.isfinite(forecasts).all()
        assert np.isfinite(intervals).all()
        assert (intervals[:, 0] <= forecasts).all()
        assert (intervals[:, 1] >= forecasts).all()
        if n > 2:
            assert (np.diff(intervals, axis=1) > 0).all()
        np.testing.assert_allclose(model.candidate_weights_.sum(axis=1), 1)
        assert np.isfinite(model.explain()["weight"]).all()


def test_a_transformer_has_weight_where_features_tell_something():
    # Two features that only together tell something, which a linear map cannot say.
    table = np.random.default_rng(1).integers(0, 2, (403, 2)) * 2.0 - 1
    X = pd.DataFrame(table, pd.date_range("2024-01-01", periods=403), ["a", "b"])
    noise = 0.1 * np.random.default_rng(0).normal(size=403)
    y = 10 + 3 * X["a"] * X["b"] + noise
    model = fit(
        y[:400], X[:400], log=False, training=Training(max_steps=60), learning_rate=0.02,
        lookback=1, candidates=["classical", "ridge", "analogs", "features", "transformer"],
    )  # fmt: skip
    assert model.transformer_weight_ > 0.3
    assert model.candidate_weights_["transformer"].iloc[0] == model.transformer_weight_
    found = model.explain(X[400:])
    assert found["candidate"].iloc[0] == "transformer"
    expected = found["weight"].to_numpy() @ found[[1, 2, 3]].to_numpy()
    np.testing.assert_allclose(model.predict(X[400:]), expected)
    changed = model.predict(X[400:].assign(a=-X["a"]))
    assert np.abs(changed - model.predict(X[400:])).max() > 1
    maps = model.attention_maps(X[400:])
    np.testing.assert_allclose(maps.sum(axis=-1), 1, atol=1e-6)


def make_mixed_panel():
    """Series that swing back, and walks."""
    rng, panel = np.random.default_rng(0), {}
    for i, n in enumerate(rng.integers(40, 60, size=30)):
        noise, values = rng.normal(size=n), np.zeros(n)
        for t in range(2, n):
            before = values[t - 1], values[t - 2]
            pull = 1.6 * before[0] - 0.9 * before[1] if i % 2 else before[0]
            values[t] = pull + noise[t]
        panel[f"s{i}"] = 50 + values
    return panel


def test_a_panel_has_attention_over_its_candidates_and_a_correction():
    panel = make_mixed_panel()
    model = TransformerForecaster(3, candidates=["classical", "analogs"], log=False).fit(panel)
    assert model.correction_.share > 0.1
    assert model.attention_share_ == model.attention_.panel_share == 0.5
    expected, again = model.predict(), clone(model).fit(panel).predict()
    for name, forecasts in again.items():
        assert np.isfinite(forecasts).all()
        np.testing.assert_array_equal(forecasts, expected[name])
    # Weights are those at the end of each series, and change as it goes on.
    weights = model.candidate_weights_
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    explained = model.explain()
    for name, rows in explained.groupby("series"):
        np.testing.assert_array_equal(weights.loc[name, rows["candidate"]], rows["weight"])
    model.update({name: values[-1] + np.array([9.0, -9.0]) for name, values in panel.items()})
    assert np.abs(model.candidate_weights_ - weights).to_numpy().max() > 0.01


@pytest.mark.slow
def test_a_panel_without_a_transformer_does_without_torch():
    code = (
        "import sys, numpy as np; from sklearn_attention import TransformerForecaster; "
        "walks = np.random.default_rng(0).normal(size=(60, 40)).cumsum(axis=0); "
        "TransformerForecaster(3).fit(walks).predict(coverage=0.9); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
