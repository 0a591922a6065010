"""Weights of analogs, the windows they are of, and the distribution of what followed."""

import numpy as np
import pytest
from forecasting_data import lag_matrix, make_values

from sklearn_attention import KernelForecaster, attend, attention_weights
from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting._analogs import (
    Analogs,
    choose_analogs,
    distribution_quantiles,
    left_out,
    search_bandwidth,
)
from sklearn_attention.kernels import ProductKernel
from sklearn_attention.kernels._base import as_kernel

LOOKBACK, HORIZON = 3, 2
KERNELS = {name: as_kernel(name) for name in ("gaussian", "epanechnikov")}
KERNELS["product"] = ProductKernel([(f"c{i}", "gaussian", [i]) for i in range(LOOKBACK)])


def make(lengths=(40, 60, 12)):
    rng = np.random.default_rng(0)
    return Table.of([rng.normal(size=n).cumsum() for n in lengths])


def fit(kernel="gaussian", bandwidth=1.0, pooled=True, normalize=None):
    table = make()
    analogs = Analogs(
        LOOKBACK, KERNELS[kernel], normalize, np.ones(3), np.full(LOOKBACK, bandwidth), pooled
    )
    return analogs.fit(Origins.within(table, HORIZON, LOOKBACK)), table


@pytest.mark.parametrize(
    ("kernel", "bandwidth"), [("gaussian", 0.05), ("epanechnikov", 1.0), ("product", 1.0)]
)
def test_forecasts_are_averages_by_attention(kernel, bandwidth):
    analogs, table = fit(kernel, bandwidth)
    origins = Origins.at_ends(table, HORIZON).at(np.array([2, 0, 1]), np.array([12, 17, 55]))
    keys = analogs.windows(origins).keys + 0.3
    options = {"bandwidth": analogs.bandwidth, "empty": "nearest"}
    weights = attention_weights(keys, analogs.keys, analogs.kernel, **options)
    every = slice(0, len(analogs.keys))
    np.testing.assert_allclose(analogs.weights(every, keys), weights, rtol=1e-9, atol=1e-200)
    expected, _ = attend(
        origins.past(3), analogs.keys, analogs.values, analogs.kernel, **options
    )
    mean, quantiles = analogs.forecast(origins)
    np.testing.assert_allclose(mean, expected, rtol=1e-10)
    assert quantiles is None


def test_the_nearest_windows_count_where_none_has_weight():
    analogs, _ = fit("epanechnikov", 1e-3)
    twice = analogs.keys[[4, 4, 20]] + [[0.0, 0.0, 5.0]]
    keys = np.concatenate([twice, analogs.keys])
    analogs = Analogs(**vars(analogs) | {"keys": keys})
    weights = analogs.weights(slice(0, len(keys)), keys[:1] + 1e-2)
    np.testing.assert_array_equal(weights[0, :3], [0.5, 0.5, 0.0])
    assert weights.sum() == 1


def test_own_windows_are_those_of_the_series_if_there_are_enough():
    analogs, table = fit(pooled=False)
    origins = Origins.at_ends(table, HORIZON).at(
        np.array([1, 2, 0, 1]), np.array([60, 12, 40, 30])
    )
    found = {tuple(rows): analogs.series[memory] for rows, memory in analogs.memories(origins)}
    assert {rows: set(series) for rows, series in found.items()} == {
        (1,): {0, 1, 2}, (2,): {0}, (0, 3): {1}
    }  # fmt: skip
    mean, _ = analogs.forecast(origins)
    for row in range(4):
        found, _ = analogs.forecast(origins.take([row]))
        np.testing.assert_allclose(found[0], mean[row], rtol=1e-12)


@pytest.mark.parametrize("terms", [1, 4_000_000])
def test_quantiles_are_those_of_the_weights(terms, monkeypatch):
    monkeypatch.setattr("sklearn_attention.forecasting._analogs._TERMS", terms)
    rng = np.random.default_rng(0)
    weights, values = rng.dirichlet(np.ones(30), size=4), rng.normal(size=(30, 2))
    weights[0, :25] = 0
    weights[0] /= weights[0].sum()
    levels = [0.001, 0.99, 0.1, 0.5]
    found = distribution_quantiles(weights, values, levels)
    for query in range(4):
        for step in range(2):
            order = np.argsort(values[:, step])
            reached = np.cumsum(weights[query, order])
            first = np.searchsorted(reached, np.array(levels) * reached[-1])
            expected = values[order[first], step]
            np.testing.assert_array_equal(found[query, step], expected)


def slow_leave_one_out(keys, values, origins, bandwidth, kernel):
    """Mean squared error, every window predicted from those that share no target with it."""
    errors = []
    for key, value, origin in zip(keys, values, origins, strict=True):
        others = np.abs(origins - origin) >= values.shape[1]
        weights = kernel((key / bandwidth)[None], keys[others] / bandwidth)[0]
        errors.append(weights @ values[others] / weights.sum() - value)
    return np.mean(np.square(errors))


@pytest.mark.parametrize(("kernel", "n_features"), [("gaussian", 2), ("matern32", 0)])
def test_the_bandwidth_is_of_least_leave_one_out_error(kernel, n_features):
    kernel = as_kernel(kernel)
    keys, values = lag_matrix(make_values(80), 5, 3)
    keys = keys - keys.mean()
    features = np.random.default_rng(0).normal(size=(len(keys), 3 * n_features))
    keys, origins = np.hstack([keys, features]), np.arange(len(keys)) + 5
    bandwidth, errors = search_bandwidth(left_out(origins, 3), keys, values, 5, kernel)
    score = errors.mean()
    assert score == pytest.approx(slow_leave_one_out(keys, values, origins, bandwidth, kernel))
    assert len(np.unique(bandwidth[:5])) == 1
    for factor in (0.5, 0.7, 1.5, 2.0):
        other = slow_leave_one_out(keys, values, origins, factor * bandwidth, kernel)
        assert other >= score * (1 - 1e-9)
    if n_features:
        # These say nothing, and so have no say.
        spread = keys.std(axis=0)
        assert (bandwidth[5:] / spread[5:] > bandwidth[0] / spread[0]).all()


def test_standardized_windows_of_a_small_series_are_forecast_as_those_of_a_large_one():
    large, small = make_values(60), make_values(60, seed=1)
    model = KernelForecaster(4, lookback=6, bandwidth=1.0, normalize="standard")
    expected = model.fit({"a": large, "b": small}).predict()
    forecasts = model.fit({"a": large, "b": 1e-3 * small}).predict()
    np.testing.assert_allclose(forecasts["a"], expected["a"])
    np.testing.assert_allclose(forecasts["b"], 1e-3 * expected["b"])


def test_errors_of_lookbacks_are_in_the_unit_of_the_shortest_windows():
    """Every window is predicted from those that share no step to forecast with it."""
    values = np.random.default_rng(2).normal(size=50) + np.sin(np.arange(50))
    origins = Origins.within(Table.of([values]), HORIZON, 3)
    kernel, expected = as_kernel("gaussian"), []
    unit = lag_matrix(values[3:], 3, HORIZON)[0].std(axis=1, keepdims=True)
    # All windows vary enough to be compared.
    assert unit.min() > 0.1 * np.median(unit)
    for lookback in (3, 6):
        past, later = lag_matrix(values[6 - lookback :], lookback, HORIZON)
        level, spread = past.mean(axis=1, keepdims=True), past.std(axis=1, keepdims=True)
        keys, followed = (past - level) / spread, (later - level) / spread
        weights, starts = kernel(keys, keys), np.arange(len(keys))
        weights[np.abs(starts[:, None] - starts) < HORIZON] = 0
        predictions = level + spread * (weights @ followed) / weights.sum(axis=1, keepdims=True)
        expected.append(np.mean(((predictions - later) / unit) ** 2))
    analogs = Analogs(3, kernel, "standard", np.ones(1))
    best, error = choose_analogs(analogs, origins, [3, 6], 1.0)
    assert error == pytest.approx(min(expected))
    assert best.lookback == 6
