"""Weights of candidates against their formulas."""

import numpy as np
import pytest
from forecasting_training import make_training_of, make_walks

from sklearn_attention.forecasting import _combination as module
from sklearn_attention.forecasting._combination import (
    choose_weights,
    combine,
    relative_errors,
    softmax_weights,
)

HORIZON = 4


def make(lengths=(90, 60), noises=(0.5, 1.0, 2.0), seed=0):
    """Training, and candidates that are the truth with more and more noise."""
    training = make_training_of(make_walks(lengths), HORIZON)
    rng = np.random.default_rng(seed)
    truth = np.nan_to_num(training.validation.targets())
    scale = training.scale[training.validation.series, None]
    forecasts = [truth + noise * scale * rng.normal(size=truth.shape) for noise in noises]
    return training, np.stack(forecasts, axis=1)


class TestRelativeErrors:
    def test_are_logarithms_of_ratios_to_the_best(self):
        rng = np.random.default_rng(0)
        errors, series = rng.uniform(1, 3, size=(7, 3)), np.array([0, 0, 0, 2, 2, 2, 2])
        own, panel = relative_errors(errors, series, 3)
        for i in (0, 2):
            mean = errors[series == i].mean(axis=0)
            np.testing.assert_allclose(own[i], np.log(mean / mean.min()), atol=1e-8)
        assert np.isnan(own[1]).all()
        np.testing.assert_allclose(panel, own[[0, 2]].mean(axis=0))

    def test_what_is_not_known_is_left_out(self):
        errors = np.array([[1.0, np.nan, 4.0], [3.0, np.nan, np.nan], [1.0, 2.0, np.nan]])
        own, panel = relative_errors(errors, np.array([0, 0, 1]), 2)
        np.testing.assert_allclose(own, np.log([[1, np.nan, 2], [1, 2, np.nan]]), atol=1e-8)
        np.testing.assert_allclose(panel, np.log([1, 2, 2]), atol=1e-8)

    def test_a_candidate_that_is_never_there_is_the_worst(self):
        errors = np.array([[1.0, np.nan]])
        assert relative_errors(errors, np.array([0]), 1)[1][1] == pytest.approx(np.log(50))

    def test_perfect_candidates_leave_finite_errors(self):
        own, panel = relative_errors(np.array([[0.0, 0.0, 1.0]]), np.array([0]), 1)
        np.testing.assert_allclose(own[0], [0, 0, np.log(50)])
        assert np.isfinite(panel).all()
        own, _ = relative_errors(np.zeros((2, 2)), np.array([0, 0]), 1)
        np.testing.assert_array_equal(own, 0)


class TestSoftmaxWeights:
    @pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
    @pytest.mark.parametrize("temperature", [0.1, 0.5])
    def test_are_the_formula(self, temperature, share):
        rng = np.random.default_rng(0)
        own, panel = rng.uniform(0, 1, size=(4, 3)), rng.uniform(0, 1, size=3)
        found = softmax_weights(own, panel, temperature, share)
        for row, logs in zip(found, own, strict=True):
            error = np.exp(logs) ** (1 - share) * np.exp(panel) ** share
            weight = np.exp(-(error / error.min() - 1) / temperature)
            np.testing.assert_allclose(row, weight / weight.sum())

    def test_where_nothing_is_known_the_panel_counts(self):
        own, panel = np.array([[np.nan, np.nan], [0.0, 1.0]]), np.array([0.4, 0.1])
        found = softmax_weights(own, panel, 0.2, 0.5)
        expected = softmax_weights(panel[None], panel, 0.2, 1.0)[0]
        np.testing.assert_allclose(found[0], expected)
        assert found[0, 1] > found[0, 0]
        assert found[1, 0] > found[1, 1]

    def test_what_could_not_be_validated_has_no_weight(self):
        found = softmax_weights(np.array([[np.nan, 0.0, 0.2]]), np.zeros(3), 0.2, 0.5)
        assert found[0, 0] == 0
        assert found.sum() == pytest.approx(1)


class TestCombine:
    def test_is_the_weighted_average_of_those_that_are_there(self):
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


class TestChooseWeights:
    @pytest.mark.parametrize("lengths", [(120,), (90, 60), (40,) * 30])
    def test_rows_sum_to_1_and_the_best_is_heaviest(self, lengths):
        training, forecasts = make(lengths)
        weights, usual, held_out = choose_weights(forecasts, training)
        assert weights.shape == (len(lengths), 3)
        np.testing.assert_allclose(weights.sum(axis=1), 1)
        assert usual.sum() == pytest.approx(1)
        assert (weights >= 0).all()
        assert weights.mean(axis=0).argmax() == usual.argmax() == 0
        assert held_out.shape == training.validation.targets().shape

    def test_small_weights_are_none(self):
        training, forecasts = make(noises=(0.1, 30.0, 0.11))
        weights = choose_weights(forecasts, training)[0]
        assert (weights[:, 1] == 0).all()
        assert (weights[:, [0, 2]] > 0.01).all()

    def test_a_candidate_without_forecasts_has_no_weight(self):
        training, forecasts = make()
        first = training.validation.series == 0
        forecasts[first, 0] = np.nan
        weights, _, held_out = choose_weights(forecasts, training)
        assert weights[0, 0] == 0
        assert weights[1, 0] > 0.5
        assert np.isfinite(held_out).all()
        np.testing.assert_allclose(weights.sum(axis=1), 1)

    @pytest.mark.parametrize("lengths", [(150,), (90, 60)])
    def test_blocks_do_not_choose_their_own_weights(self, lengths, monkeypatch):
        # A single choice of temperature and share, so that errors choose nothing else.
        monkeypatch.setattr(module, "_TEMPERATURES", (0.2,))
        monkeypatch.setattr(module, "_SHARES", (0.5,))
        monkeypatch.setattr(module, "_SHARES_ALONE", (0.5,))
        training, forecasts = make(lengths)
        expected, _, combined = choose_weights(forecasts, training)
        block = training.n_blocks // 2
        rows = training.block == block
        series, scale = training.validation.series[rows], training.scale
        # In this block the best and the worst change places.
        changed = forecasts.copy()
        changed[rows] = forecasts[rows][:, ::-1]
        found, _, held_out = choose_weights(changed, training)
        weights = []
        for row in np.flatnonzero(rows):
            parts = changed[row].T, held_out[row]
            weights.append(np.linalg.lstsq(*parts, rcond=None)[0])
        for before, row in zip(weights, np.flatnonzero(rows), strict=True):
            parts = forecasts[row].T, combined[row]
            same = np.linalg.lstsq(*parts, rcond=None)[0]
            np.testing.assert_allclose(before, same, atol=1e-6)
        assert not np.allclose(found, expected)
        assert len(series) < len(training.block) / 2
        assert len(scale) == len(lengths)

    def test_weights_of_a_series_are_the_formula(self, monkeypatch):
        monkeypatch.setattr(module, "_TEMPERATURES", (0.3,))
        monkeypatch.setattr(module, "_SHARES", (0.25,))
        training, forecasts = make()
        targets, series = training.validation.targets(), training.validation.series
        errors = np.sqrt(((forecasts - targets[:, None]) ** 2).mean(axis=2))
        mean = np.array([errors[series == i].mean(axis=0) for i in range(2)])
        logs = np.log(mean / mean.min(axis=1, keepdims=True))
        error = np.exp(0.75 * logs + 0.25 * logs.mean(axis=0))
        weights = np.exp(-(error / error.min(axis=1, keepdims=True) - 1) / 0.3)
        weights /= weights.sum(axis=1, keepdims=True)
        weights[weights < 0.01] = 0
        weights /= weights.sum(axis=1, keepdims=True)
        found = choose_weights(forecasts, training)[0]
        np.testing.assert_allclose(found, weights, rtol=1e-5)

    def test_a_single_series_may_weigh_all_alike(self):
        training, forecasts = make((150,), noises=(1.0, 1.0, 1.0, 1.0))
        weights, _, held_out = choose_weights(forecasts, training)
        np.testing.assert_allclose(weights, 0.25, atol=0.1)
        errors = held_out - training.validation.targets()
        equal = forecasts.mean(axis=1) - training.validation.targets()
        assert np.nanmean(errors**2) < 1.1 * np.nanmean(equal**2)

    def test_a_few_hard_origins_do_not_choose_for_all(self):
        training, forecasts = make((150,), noises=(0.5, 0.5))
        hard = np.flatnonzero(training.block == 1)[::4]
        # Squares of the first candidate's errors there are many times all others together.
        forecasts[hard, 0] += 6 * training.scale[0]
        forecasts[hard, 1] += 4 * training.scale[0]
        easy = np.setdiff1d(np.arange(len(forecasts)), hard)
        targets = training.validation.targets()[easy]
        forecasts[easy, 0] = targets + 0.2 * (forecasts[easy, 0] - targets)
        assert choose_weights(forecasts, training)[0][0, 0] > 0.5
