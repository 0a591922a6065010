"""The search for lookback, memory and bandwidth of analogs."""

import numpy as np
import pytest
from forecasting_data import lag_matrix, make_values

from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting._analog_search import (
    SearchArrays,
    choose_analogs,
    group_by_memory,
    search_bandwidth,
)
from sklearn_attention.forecasting._analogs import Analogs
from sklearn_attention.kernels._base import as_kernel

LOOKBACK, HORIZON = 3, 2
KERNELS = {name: as_kernel(name) for name in ("gaussian", "epanechnikov")}


def make(lengths=(40, 60, 12)):
    rng = np.random.default_rng(0)
    return Table.from_arrays([rng.normal(size=n).cumsum() for n in lengths])


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
    spread = keys.std(axis=0)
    spread[:5] = np.sqrt(np.mean(spread[:5] ** 2))
    apart = np.abs(origins[:, None] - origins) >= 3
    outcomes = np.column_stack([values, np.zeros(len(keys))])
    ((bandwidth, errors, share),) = search_bandwidth(
        [SearchArrays(keys, outcomes, keys, outcomes, apart)], spread, 5, kernel
    )
    np.testing.assert_array_equal(share, 0)
    score = errors.mean()
    assert score == pytest.approx(slow_leave_one_out(keys, values, origins, bandwidth, kernel))
    assert len(np.unique(bandwidth[:5])) == 1
    squared = np.where(apart, ((keys[:, None, :5] - keys[:, :5]) ** 2).sum(axis=2), np.inf)
    nearest = np.median(squared.min(axis=1)) / bandwidth[0] ** 2
    for factor in (0.5, 0.7, 1.5, 2.0):
        at_nearest, at_zero = kernel.log_profile(np.array([nearest / factor**2, 0.0]))
        if at_nearest - at_zero < -5:
            continue  # a single window would have all the weight
        other = slow_leave_one_out(keys, values, origins, factor * bandwidth, kernel)
        assert other >= score * (1 - 1e-9)
    if n_features:
        # These say nothing, and so have no say.
        assert (bandwidth[5:] / spread[5:] > bandwidth[0] / spread[0]).all()


def test_errors_of_lookbacks_are_in_the_unit_of_the_shortest_windows():
    """Every window is predicted from those that share no step to forecast with it."""
    values = np.random.default_rng(2).normal(size=50) + np.sin(np.arange(50))
    origins = Origins.within(Table.from_arrays([values]), HORIZON, 3)
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
    ((best, error),) = choose_analogs(analogs, origins, [3, 6], 1.0)
    assert error == pytest.approx(min(expected))
    assert best.lookback == 6


def test_windows_are_predicted_from_the_first_memory_with_enough_of_their_series():
    origins = Origins.within(make((40, 20, 12)), HORIZON, LOOKBACK)
    memories = [(origins.take(origins.series == i), 15) for i in (0, 1)] + [(origins, 1)]
    predicted = []
    for queries, memory, apart in group_by_memory(origins, memories):
        for row, (i, known) in enumerate(zip(queries.series, queries.n_known, strict=True)):
            # Series begin at the same step.
            may = np.abs(memory.n_known - known) >= HORIZON
            np.testing.assert_array_equal(apart[row], may)
            own = {i} if i == 0 else {0, 1, 2}
            assert set(memory.series) == own
            predicted.append((i, known))
    assert sorted(predicted) == sorted(zip(origins.series, origins.n_known, strict=True))


def test_bandwidths_with_which_one_window_has_all_the_weight_are_not_tried():
    """On a line the two windows beside each predict it best, and no wider average does."""
    steps = np.arange(40.0)
    keys, usable = np.repeat(steps[:, None], 5, axis=1), ~np.eye(40, dtype=bool)
    outcomes = np.column_stack([steps, np.zeros(40)])
    ((bandwidth, *_),) = search_bandwidth(
        [SearchArrays(keys, outcomes, keys, outcomes, usable)],
        np.ones(5),
        5,
        KERNELS["gaussian"],
    )
    # Neighbours are root five apart. The kernel there is e^-5 at least, but for finer scales.
    assert 5 < 5 / bandwidth[0] ** 2 < 10 * 2**0.7 * 1.01


def test_values_are_relative_to_the_share_of_the_last_deviation_with_least_error():
    rng, n = np.random.default_rng(3), 60
    keys, deviation = rng.normal(size=(n, 4)), rng.normal(size=(n, 1))
    shares = np.array([0.9, 0.3, 0.0, 1.4])
    values = np.sin(keys) + shares * deviation + 0.3 * rng.normal(size=(n, 4))
    usable = ~np.eye(n, dtype=bool)
    outcomes = np.column_stack([values, deviation])
    without, (bandwidth, errors, share) = search_bandwidth(
        [SearchArrays(keys, outcomes, keys, outcomes, usable)],
        np.ones(4),
        4,
        KERNELS["gaussian"],
        has_level=True,
    )
    np.testing.assert_array_equal(without[2], 0)
    np.testing.assert_allclose(share, np.clip(shares, 0, 1), atol=0.2)
    assert errors.mean() < 0.7 * without[1].mean()

    def slow(share):
        return slow_leave_one_out(
            keys, values - share * deviation, np.arange(n) * 4, bandwidth, KERNELS["gaussian"]
        )

    assert errors.mean() == pytest.approx(slow(share))
    for step in np.eye(4):
        assert slow(np.clip(share + 0.05 * step, 0, 1)) >= slow(share)
        assert slow(np.clip(share - 0.05 * step, 0, 1)) >= slow(share)
