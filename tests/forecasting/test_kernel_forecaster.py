"""Analog forecasting: the average, its bandwidth, its distribution, its analogs."""

import numpy as np
import pandas as pd
import pytest
from forecasting_data import lag_matrix, make_series, make_values

from sklearn_attention import KernelForecaster, NadarayaWatsonRegressor


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_it_contains_nadaraya_watson_on_the_matrix_of_lags(kernel):
    values = make_values(90)
    model = KernelForecaster(1, lookback=4, kernel=kernel, bandwidth=3.0, normalize=None)
    model.fit(values[:70])
    X, y = lag_matrix(values[:70], 4)
    smoother = NadarayaWatsonRegressor(kernel, bandwidth=3.0).fit(X, y[:, 0])
    queries = lag_matrix(values[66:], 4)[0]
    found = model.predict(history=queries)[:, 0]
    np.testing.assert_allclose(found, smoother.predict(queries), rtol=1e-12)
    explained = smoother.explain(queries[:1], k=3)
    mine = model.explain(k=3, history=values[66:70])
    np.testing.assert_array_equal(mine["time"], explained.indices[0] + 3)
    np.testing.assert_allclose(mine["weight"], explained.weights[0])


def test_features_are_further_columns_of_the_matrix_of_lags():
    values = make_values(90)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(90, 2))
    model = KernelForecaster(
        2, lookback=4, bandwidth=2.0, normalize=None, past_features=[1]
    ).fit(features[:70], values[:70])
    X, y = lag_matrix(values[:70], 4, 2)
    past = np.lib.stride_tricks.sliding_window_view(features[:68, 1], 4)
    ahead = np.lib.stride_tricks.sliding_window_view(features[4:70, 0], 2)
    smoother = NadarayaWatsonRegressor(bandwidth=2.0).fit(np.hstack([X, past, ahead]), y)
    query = np.concatenate([values[66:70], features[66:70, 1], features[70:72, 0]])
    np.testing.assert_allclose(
        model.predict(features[70:72]), smoother.predict(query[None])[0], rtol=1e-12
    )


def test_explanations_are_weights_and_times():
    series = make_series("W-MON")
    model = KernelForecaster(3, lookback=12).fit(series)
    everything = model.explain(k=1000)
    assert len(everything) == len(model.analogs_.keys) == 60 - 12 - 3 + 1
    assert everything["weight"].sum() == pytest.approx(1)
    assert everything["weight"].is_monotonic_decreasing
    positions = series.index.get_indexer(everything["time"])
    windows = np.stack([series.iloc[p - 11 : p + 1] for p in positions])
    after = np.stack([series.iloc[p + 1 : p + 4] for p in positions])
    level, unit = windows.mean(axis=1), windows.std(axis=1)
    share = model.analogs_.last_share
    moved = (after - level[:, None] - share * (windows[:, -1] - level)[:, None]) / unit[:, None]
    last = series.iloc[-12:]
    expected = last.mean() + share * (last.iloc[-1] - last.mean())
    expected += last.std(ddof=0) * (everything["weight"].to_numpy() @ moved)
    np.testing.assert_allclose(model.predict(), expected)
    pd.testing.assert_frame_equal(model.explain(k=4), everything[:4])


def make_shapes(n=120, noise=0.1):
    """Series of which each has a shape of twelve steps of its own, with the same beginning."""
    rng = np.random.default_rng(0)
    shapes = rng.normal(size=(6, 12))
    shapes[:, :6] = shapes[0, :6]
    months = pd.date_range("2000-01-01", periods=n, freq="MS")
    return {
        f"s{i}": pd.Series(np.tile(shape, n // 12) + noise * rng.normal(size=n), months)
        for i, shape in enumerate(shapes)
    }


def test_series_without_windows_of_their_own_have_those_of_all():
    panel = make_shapes()
    short = panel["s0"][:20]
    model = KernelForecaster(6, lookback=6, normalize="standard")
    model.fit(panel | {"short": short})
    assert not model.pooled_
    short_of = set(model.explain(k=10_000).query("series == 'short'")["analog"])
    assert short_of == {*panel, "short"}
    renamed = model.predict(history={"short": short, "new": short, "s0": short})
    np.testing.assert_allclose(renamed["new"], renamed["short"])
    assert not np.allclose(renamed["new"], renamed["s0"])
    windows = model.predict(history=short.to_numpy()[None, -6:])
    np.testing.assert_allclose(windows[0], renamed["new"])
    model.update({"late": panel["s0"][-20:]})
    assert set(model.explain(k=10_000).query("series == 'late'")["analog"]) == short_of


@pytest.mark.parametrize(("normalize", "n_series"), [("seasonal", 2), ("standard_seasonal", 1)])
def test_what_follows_is_relative_to_the_last_season(normalize, n_series):
    panel = {str(i): 5 * (i + 1) * make_values(60, seed=i) for i in range(n_series)}
    model = KernelForecaster(5, season_length=4, lookback=6, bandwidth=0.8, normalize=normalize)
    found = model.fit(panel if n_series > 1 else panel["0"]).predict()

    def windows(values):
        keys, after = lag_matrix(values, 6, 5)
        keys = np.vstack([keys, values[-6:]])
        mean = keys[:, 2:].mean(axis=1, keepdims=True)
        season = keys[:, [2, 3, 4, 5, 2]] - mean
        level = mean + model.analogs_.seasonal_share * season
        unit = np.full_like(mean, np.abs(np.diff(values)).mean() if n_series > 1 else 1)
        if normalize == "standard_seasonal":
            unit = keys.std(axis=1, keepdims=True)
        return (keys - mean) / unit, (after - level[:-1]) / unit[:-1], level[-1], unit[-1]

    parts = {name: windows(values) for name, values in panel.items()}
    keys, after = (np.vstack([p[i][: len(p[1])] for p in parts.values()]) for i in (0, 1))
    assert model.pooled_
    for name, (own, _, level, unit) in parts.items():
        weights = np.exp(-(((keys - own[-1]) / 0.8) ** 2).sum(axis=1) / 2)
        expected = level + unit * (weights @ after / weights.sum())
        np.testing.assert_allclose(found[name] if n_series > 1 else found, expected)


def test_the_windows_held_out_choose():
    rng, steps = np.random.default_rng(0), np.arange(200)
    noisy = np.sin(2 * np.pi * steps / 12) + 0.5 * rng.normal(size=200)
    assert KernelForecaster(6, season_length=12).fit(noisy).normalize_ == "standard"
    # A trend that is as steep after wild windows as after calm ones.
    calm = rng.choice([0.1, 3.0], size=(8, 10)).repeat(12, axis=1)
    panel = {str(i): steps[:120] + own * rng.normal(size=120) for i, own in enumerate(calm)}
    assert KernelForecaster(6, season_length=12).fit(panel).normalize_ == "seasonal"
