"""Ensemble weights against their formulas."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from forecasting_validation import make_validation_of, make_walks
from scipy.optimize import minimize

from sklearn_attention.forecasting import Origins, Table, TimeIndex
from sklearn_attention.forecasting._candidate_attention import softmax_weights
from sklearn_attention.forecasting._ensemble_weights import (
    choose_weights,
    near_whole_years,
    relative_errors,
    stacked_weights,
)
from sklearn_attention.forecasting._origins import combine

HORIZON = 4


def make(lengths=(90, 60), noises=(0.5, 1.0, 2.0), seed=0):
    """Training, and candidates that are the truth with more and more noise."""
    validation = make_validation_of(make_walks(lengths), HORIZON)
    rng = np.random.default_rng(seed)
    truth = np.nan_to_num(validation.tests.targets())
    scale = validation.scale[validation.tests.series, None]
    forecasts = [truth + noise * scale * rng.normal(size=truth.shape) for noise in noises]
    return validation, np.stack(forecasts, axis=1)


def test_a_combination_is_the_weighted_average_of_those_that_are_there():
    forecasts = np.random.default_rng(0).normal(size=(4, 3, 2))
    weights = np.array([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5], [0, 0, 1.0], [0.4, 0.6, 0]])
    forecasts[1, 2] = np.nan
    forecasts[2, 2, 1] = np.nan  # all that has weight is gone
    forecasts[3] = np.nan
    otherwise = np.arange(4.0)[:, None]
    found = combine(forecasts, weights, otherwise)
    np.testing.assert_allclose(found[0], weights[0] @ forecasts[0])
    np.testing.assert_allclose(found[1], 0.4 * forecasts[1, 0] + 0.6 * forecasts[1, 1])
    np.testing.assert_allclose(found[2], forecasts[2, :2].mean(axis=0))
    np.testing.assert_array_equal(found[3], 3)


def test_the_mean_of_rare_sales_has_more_than_their_median():
    rng = np.random.default_rng(0)
    sold = (rng.random((2, 120)) < 0.3) * rng.integers(1.0, 6.0, (2, 120))
    validation = make_validation_of(list(sold * 1.0), horizon=1)
    shape = validation.tests.target_steps.shape
    forecasts = np.stack([np.zeros(shape), np.full(shape, sold.mean())], axis=1)
    weights = choose_weights(forecasts, validation)[0]
    assert (weights[:, 1] > 0.7).all()


@pytest.mark.parametrize("lengths", [(150,), (90, 60)])
def test_blocks_do_not_choose_their_own_weights(lengths):
    validation, forecasts = make(lengths)
    expected, _, combined, _ = choose_weights(forecasts, validation)
    rows = validation.block == validation.n_blocks // 2
    # In this block the best and the worst change places.
    changed = forecasts.copy()
    changed[rows] = forecasts[rows][:, ::-1]
    found, _, held_out, _ = choose_weights(changed, validation)
    assert not np.allclose(found, expected)
    for row in np.flatnonzero(rows):
        before, after = (
            np.linalg.lstsq(forecast[row].T, combination[row], rcond=None)[0]
            for forecast, combination in ((forecasts, combined), (changed, held_out))
        )
        np.testing.assert_allclose(after, before, atol=1e-6)


@pytest.mark.parametrize(
    ("lengths", "share"), [((90, 60), 0.5), ((38, 36), 0.75), ((90,), 0.0)]
)
def test_weights_of_a_series_are_the_formula(lengths, share):
    validation, forecasts = make(lengths)
    targets, series = validation.tests.targets(), validation.tests.series
    errors = np.sqrt(np.nanmean((forecasts - targets[:, None]) ** 2, axis=2))
    mean = np.array([errors[series == i].mean(axis=0) for i in range(len(lengths))])
    logs = np.log(mean / mean.min(axis=1, keepdims=True))
    weights = softmax_weights(logs, logs.mean(axis=0), share)
    if len(lengths) == 1:
        missed = forecasts - targets[:, None]
        weights += stacked_weights(weights[0], missed, np.ones(len(series)))
        weights /= 2
    weights[weights < 0.01] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    found = choose_weights(forecasts, validation)[0]
    np.testing.assert_allclose(found, weights, rtol=1e-5)


def test_the_error_of_stacked_weights_is_nearly_the_least():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(60, 1, 4))
    missed = np.concatenate([common, -4 * common, 3 * common, common], axis=1)
    missed += 0.3 * rng.normal(size=missed.shape)
    counts = rng.integers(1, 4, 60).astype(float)

    def error(weights):
        return counts @ np.linalg.norm(np.einsum("c,nch->nh", weights, missed), axis=1)

    start = np.full(4, 0.25)
    found = stacked_weights(start, missed, counts)
    best = minimize(
        error, start, bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
    )  # fmt: skip
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(), 1)
    assert error(found) < best.fun + 0.02 * (error(start) - best.fun)


def test_relative_errors_are_logarithms_of_ratios_to_the_best():
    rng = np.random.default_rng(0)
    errors, series = rng.uniform(1, 3, size=(7, 3)), np.array([0, 0, 0, 2, 2, 2, 2])
    own, panel = relative_errors(errors, series, np.zeros(3, dtype=bool))
    for i in (0, 2):
        mean = errors[series == i].mean(axis=0)
        np.testing.assert_allclose(own[i], np.log(mean / mean.min()), atol=1e-8)
    assert np.isnan(own[1]).all()
    np.testing.assert_allclose(panel, own[[0, 2]].mean(axis=0))


@pytest.mark.parametrize(
    ("freq", "expected"), [("D", [0, 3, 4, 363, 367]), ("MS", []), (None, [])]
)
def test_near_whole_years(freq, expected):
    n = 800
    table = Table.from_arrays([np.arange(float(n))])
    if freq is not None:
        index = pd.date_range("1950", periods=n, freq=freq)
        table = replace(table, time=TimeIndex.read(index))
    left = np.array([0, 3, 4, 5, 60, 200, 360, 363, 367, 370])
    origins = Origins(table, np.zeros_like(left), n - left, 4)
    left = left[near_whole_years(origins)]
    assert left.tolist() == expected
