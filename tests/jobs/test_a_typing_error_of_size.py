"""A year too far, a zero too many: it is said what that takes, and nothing is lost."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import (
    KernelForecaster,
    Training,
    TransformerRegressor,
    _blocks,
)


@pytest.fixture(autouse=True)
def laptop(monkeypatch):
    monkeypatch.setattr(_blocks, "_memory_limit", lambda: 1e7)


def load(n_steps=300, freq="15min", start="2024-01-01"):
    index = pd.date_range(start, periods=n_steps, freq=freq)
    return pd.Series(10 + np.sin(np.arange(n_steps)), index=index)


def test_a_year_too_far():
    model = KernelForecaster(8, bandwidth=1.0).fit(load())
    message = r"X='2042-01-05' up to 2042-01-05 .* takes .* \(631381 x 16"
    for ask in (model.predict, model.predict_interval, model.predict_quantiles):
        with pytest.raises(MemoryError, match=message):
            ask("2042-01-05")
    for far in (pd.DatetimeIndex(["2042-01-05"]), pd.Timestamp("2042-01-05")):
        with pytest.raises(MemoryError, match=r"X.* up to 2042-01-05 00:00:00"):
            model.predict(far)
    with pytest.raises(MemoryError, match="1 x 1000000 x 16 numbers"):
        model.predict(1_000_000)
    assert model.predict("2024-01-05").index[-1] == pd.Timestamp("2024-01-05 23:45")


@pytest.mark.parametrize("missing", ["raise", "interpolate"])
def test_one_time_stamp_of_a_panel_is_years_off(missing):
    loads = {"north": load(), "south": load()}
    wrong = {**loads, "south": load().rename({load().index[-1]: pd.Timestamp("2042-01-05")})}
    model = KernelForecaster(8, bandwidth=1.0, missing=missing).fit(loads)
    before = model.predict()
    named = r"X\['south'\] up to 2042-01-05 00:00:00 at frequency '15min' takes"
    for learn in (model.fit, model.backtest):
        with pytest.raises(MemoryError, match=named):
            learn(wrong)
    later = {name: load(8, start="2042-01-05") for name in loads}
    for learn in (model.update, model.score):
        with pytest.raises(MemoryError, match="up to 2042-01-05 01:45:00"):
            learn(later)
    pd.testing.assert_series_equal(model.predict()["south"], before["south"])


def test_seconds_beside_months():
    panel = {"seconds": load(freq="s"), "months": load(60, freq="MS", start="2019-01-01")}
    with pytest.raises(MemoryError, match=r"X\['months'\] up to 2023-12-01 .*or longer ones"):
        KernelForecaster(8, bandwidth=1.0, missing="interpolate").fit(panel)
    days = {name: series.resample("D").mean().ffill() for name, series in panel.items()}
    assert len(KernelForecaster(1, bandwidth=1.0).fit(days).predict()) == 2


def test_patience_ends_what_was_to_take_all_epochs():
    X, y = np.split(np.random.default_rng(0).normal(size=(60, 3)), [2], axis=1)
    y = y.ravel()
    model = TransformerRegressor(
        d_model=8, n_heads=2, n_layers=1, max_epochs=10**12, learning_rate=0.1, random_state=0,
        training=Training(patience=1, validation_fraction=0.3, schedule="constant"),
    )  # fmt: skip
    assert len(model.fit(X, y).network_.history["loss"]) < 100
    with pytest.raises(
        MemoryError,
        match=r"d_model=8000, .* d_feedforward=16000 takes .*: pass smaller sizes",
    ):
        model.set_params(d_model=8000).fit(X, y)
    assert model.predict(X).shape == (60,)


def test_a_date_of_series_whose_time_stamps_are_in_seconds():
    series = load()
    model = KernelForecaster(8, bandwidth=1.0).fit(series.set_axis(series.index.as_unit("s")))
    assert model.predict("2024-01-05").index[-1] == pd.Timestamp("2024-01-05 23:45")
