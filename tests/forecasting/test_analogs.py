"""Weights of analogs, the windows they are of, and the distribution of what followed."""

import numpy as np
import pytest
from forecasting_data import lag_matrix, make_values

from sklearn_attention import KernelForecaster, attend, attention_weights
from sklearn_attention.attention._tables import weighted_quantiles
from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting._analogs import Analogs
from sklearn_attention.forecasting._origins import Windows
from sklearn_attention.kernels import ProductKernel
from sklearn_attention.kernels._base import as_kernel

LOOKBACK, HORIZON = 3, 2
KERNELS = {name: as_kernel(name) for name in ("gaussian", "epanechnikov")}
KERNELS["product"] = ProductKernel([(f"c{i}", "gaussian", [i]) for i in range(LOOKBACK)])


def make(lengths=(40, 60, 12)):
    rng = np.random.default_rng(0)
    return Table.from_arrays([rng.normal(size=n).cumsum() for n in lengths])


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
    origins = Origins.at_ends(table, HORIZON).at_steps(
        np.array([2, 0, 1]), np.array([12, 17, 55])
    )
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
    origins = Origins.at_ends(table, HORIZON).at_steps(
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


def test_quantiles_are_those_of_the_weights():
    rng = np.random.default_rng(0)
    weights, values = rng.dirichlet(np.ones(30), size=4), rng.normal(size=30)
    weights[0, :25] = 0
    weights[0] /= weights[0].sum()
    levels = [0.001, 0.99, 0.1, 0.5]
    found = weighted_quantiles(values, weights, levels)
    for query in range(4):
        order = np.argsort(values)
        reached = np.cumsum(weights[query, order])
        first = np.searchsorted(reached, np.array(levels) * reached[-1])
        np.testing.assert_array_equal(found[query], values[order[first]])


def test_standardized_windows_of_a_small_series_are_forecast_as_those_of_a_large_one():
    large, small = make_values(60), make_values(60, seed=1)
    model = KernelForecaster(4, lookback=6, bandwidth=1.0, normalize="standard")
    expected = model.fit({"a": large, "b": small}).predict()
    forecasts = model.fit({"a": large, "b": 1e-3 * small}).predict()
    np.testing.assert_allclose(forecasts["a"], expected["a"])
    np.testing.assert_allclose(forecasts["b"], 1e-3 * expected["b"])


def test_many_windows_are_remembered_evenly_over_time_and_phases():
    steps = np.arange(48_000)
    values = np.sin(2 * np.pi * steps / 24) + np.random.default_rng(0).normal(size=48_000)
    model = KernelForecaster(2, lookback=4, bandwidth=1.0, normalize=None).fit(values)
    remembered = model.analogs_.steps
    assert model.n_windows_ == len(remembered) == 20_000
    assert remembered[-1] == 48_000 - 2
    for n_parts in (24, 168, 7):
        for label in (remembered % n_parts, remembered * n_parts // 48_000):
            counts = np.bincount(label)
            assert len(counts) == n_parts
            assert counts.min() > 0.6 * counts.mean()
    windows = lag_matrix(values, 4)[0][remembered - 4]
    np.testing.assert_array_equal(model.analogs_.keys, windows)


def test_windows_before_a_jump_are_no_analogs():
    rng = np.random.default_rng(0)
    values = np.r_[0.01 * rng.normal(size=60), 5 + 0.01 * rng.normal(size=40)]
    analogs = Analogs(6, KERNELS["gaussian"], "standard", np.ones(1))
    known = analogs.comparable(Origins.within(Table.from_arrays([values]), 4, 6)).n_known
    # What follows 57 to 60 steps has the jump in it, and these windows do not.
    assert not set(range(57, 61)) & set(known)
    assert set(range(10, 57)) <= set(known)
    assert set(range(70, 97)) <= set(known)


@pytest.mark.parametrize("normalize", ["standard", "seasonal", "standard_seasonal"])
def test_the_last_deviation_is_that_from_the_level_and_the_last_season(normalize):
    values, season, known = make_values(60), 5, 40
    origins = Origins.within(Table.from_arrays([values]), 3, 10).at_steps(
        np.array([0]), np.array([known])
    )
    options = (origins, 10, normalize, 1.0, season, 0.6)
    plain = Windows.at_origins(*options)
    moved = Windows.at_origins(*options, last_share=np.array([1.0, 0.5, 0.0]))
    past, steps = values[:known], np.arange(3)
    level = past[-10:].mean() if normalize == "standard" else past[-season:].mean()
    unit = past[-10:].std() if "standard" in normalize else 1.0
    # The last value is expected to differ from the level as the one a season before.
    expected = level if normalize == "standard" else level + 0.6 * (past[-1 - season] - level)
    deviation = past[-1] - expected
    assert plain.last_deviation[0, 0] == pytest.approx(deviation / unit)
    np.testing.assert_allclose(
        moved.restore(np.zeros((1, 3))) - plain.restore(np.zeros((1, 3))),
        [deviation * np.array([1.0, 0.5, 0.0])],
    )
    np.testing.assert_allclose(moved.restore(moved.values)[0], values[known + steps])
