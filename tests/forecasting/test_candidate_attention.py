"""Attention over the errors of candidates at past origins, against loops."""

from dataclasses import replace

import numpy as np
import pytest
from forecasting_validation import make_walks

from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting._candidate_attention import (
    CandidateAttention,
    softmax_weights,
    states_at,
)

HORIZON, N_SERIES, N_CANDIDATES = 3, 5, 4


def make_origins(seed=0):
    """Past origins of a panel, and forecasts of candidates there."""
    table = Table.from_arrays(make_walks(range(50, 50 + N_SERIES)))
    series, known = np.repeat(np.arange(N_SERIES), 8), np.tile(np.arange(20, 44, 3), N_SERIES)
    origins = Origins(table, series, known, HORIZON)
    noise = np.random.default_rng(seed).normal(size=(len(origins), N_CANDIDATES, HORIZON))
    scale = 1.0 + 9.0 * series[:, None, None]
    return origins, origins.past(1)[:, :, None] + scale * noise


def make(bandwidth=0.7, seed=0):
    """Attention of that bandwidth over random errors, and origins to ask it at."""
    origins, forecasts = make_origins(seed)
    rng = np.random.default_rng(1)
    errors = rng.uniform(0.5, 2, size=(len(origins), N_CANDIDATES))
    errors[::7, 1] = np.nan
    states = states_at(origins, forecasts)
    attention = CandidateAttention(
        log_errors=rng.normal(size=(N_SERIES + 1, N_CANDIDATES)),
        is_excluded=np.arange(N_SERIES) == 2, panel_share=0.6, states=states,
        errors=np.hstack([np.nan_to_num(errors), ~np.isnan(errors)]),
        steps_left=origins.steps_left, center=states.mean(axis=0), scale=states.std(axis=0),
        bandwidth=bandwidth,
    )  # fmt: skip
    return attention, origins, forecasts, errors


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_softmax_weights_are_the_formula(share):
    rng = np.random.default_rng(0)
    log_errors, panel = rng.uniform(0, 1, size=(4, 3)), rng.uniform(0, 1, size=3)
    found = softmax_weights(log_errors, panel, share)
    for row, logs in zip(found, log_errors, strict=True):
        error = np.exp(logs) ** (1 - share) * np.exp(panel) ** share
        parts = [np.exp(-(error / error.min() - 1) / t) for t in (0.05, 0.2)]
        np.testing.assert_allclose(row, np.mean([w / w.sum() for w in parts], axis=0))


@pytest.mark.parametrize("leave_out", [False, True])
def test_expected_errors_are_kernel_averages(leave_out):
    attention, origins, forecasts, errors = make()
    found = attention.expected(origins, forecasts, leave_out)
    scaled = np.clip((attention.states - attention.center) / attention.scale, -3, 3)
    for row in range(len(origins)):
        distance = np.sum((scaled - scaled[row]) ** 2, axis=1) / 0.7**2
        weights = np.exp(-distance / 2)
        if leave_out:  # all series share what happened at about the same time before their end
            gap = np.abs(origins.steps_left - origins.steps_left[row])
            weights[gap < HORIZON] = 0
        for candidate, error in enumerate(errors.T):
            known = ~np.isnan(error)
            mean = weights[known] @ error[known] / weights[known].sum()
            assert found[row, candidate] == pytest.approx(np.log(mean))


def test_unknown_candidates_are_as_bad_as_can_be():
    attention, origins, forecasts, _ = make()
    errors = attention.errors.copy()
    errors[:, [0, N_CANDIDATES]] = 0
    expected = replace(attention, errors=errors).expected(origins, forecasts)
    assert (expected[:, 0] == 1e9).all()
    assert (expected[:, 1:] < 1).all()


def test_weights_sum_to_those_that_they_replace():
    attention, origins, forecasts, _ = make()
    rng = np.random.default_rng(0)
    before = rng.dirichlet(np.ones(N_CANDIDATES + 1), size=len(origins))
    further = np.append(forecasts, forecasts[:, :1], axis=1)  # such as one of trees
    found = attention.weights(origins, further, before)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(found[:, -1], before[:, -1])
    is_excluded = origins.series == 2
    np.testing.assert_array_equal(found[is_excluded], before[is_excluded])
    expected = attention.expected(origins, forecasts)
    weights = softmax_weights(attention.log_errors[origins.series], expected, 0.6)
    weights[weights < 0.01] = 0
    weights *= (1 - before[:, -1:]) / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[~is_excluded, :-1], weights[~is_excluded])


def test_a_state_depends_on_nothing_after_its_origin_and_on_no_unit():
    origins, forecasts = make_origins()
    expected = states_at(origins, forecasts)
    values = [series.copy() for series in origins.table.observations]
    for i, series in enumerate(values):
        series[43:] += 100.0 * (i + 1)
    is_before = origins.n_known <= 43
    later = replace(origins, table=Table.from_arrays(values))
    np.testing.assert_array_equal(states_at(later, forecasts)[is_before], expected[is_before])
    for factor, shift in ((1e3, 5.0), (1e-30, 0.0), (1e12, 0.0)):
        moved = replace(
            origins, table=Table.from_arrays([factor * series + shift for series in values])
        )
        found = states_at(moved, factor * forecasts + shift)[is_before]
        np.testing.assert_allclose(found, expected[is_before], rtol=1e-9)
    # A candidate without a forecast does not count.
    lacking = np.append(forecasts, np.full_like(forecasts[:, :1], np.nan), axis=1)
    np.testing.assert_allclose(states_at(origins, lacking), expected)


@pytest.mark.parametrize("matters", [False, True])
def test_attention_is_kept_if_states_matter(matters):
    origins, forecasts = make_origins()
    # The first candidate is better where candidates differ little, the second elsewhere.
    state = states_at(origins, forecasts)[:, 0]
    is_low = state < np.median(state)
    is_low |= not matters
    errors = np.ones((len(origins), N_CANDIDATES))
    errors[:, 0], errors[:, 1] = np.where(is_low, 0.2, 2.0), np.where(is_low, 2.0, 0.2)

    def error_of(rows, expected):
        return errors[rows, expected.argmin(axis=1)]

    fields = {
        "log_errors": np.zeros((N_SERIES + 1, N_CANDIDATES)),
        "is_excluded": np.zeros(N_SERIES, dtype=bool), "panel_share": 0.5,
    }  # fmt: skip
    attention = CandidateAttention.fit(origins, forecasts, errors, error_of, **fields)
    assert (attention is not None) == matters
    if matters:
        chosen = attention.expected(origins, forecasts).argmin(axis=1)
        assert np.mean(chosen == np.where(is_low, 0, 1)) > 0.8
