"""Candidates, their mixtures and the weights of their mean."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from forecasting_validation import make_validation_of, make_walks

from sklearn_attention.forecasting import Origins, Table, TimeIndex
from sklearn_attention.forecasting._combination import (
    CombinedForecast,
    add_candidate,
    best_mixing_weight,
    fit_combined,
    new_candidates,
    quick_candidates,
)
from sklearn_attention.forecasting._origins import PANEL
from sklearn_attention.forecasting._transformer_candidate import TransformerCandidate

HORIZON = 4
AHEAD = 3


class Stub(TransformerCandidate):
    """A transformer that forecasts the truth, or nothing worth it; a brief one the same."""

    def brief(self):
        return replace(self) if self.tried else None

    def fit(self, validation):
        if self.network is None:
            return self, np.full((len(validation.tests), 1, AHEAD), np.nan)
        missed = float(self.network != "perfect")
        unit = validation.scale[validation.tests.series, None, None]
        signs = np.where(np.arange(len(unit)) % 2, -1.0, 1.0)[:, None, None]
        return self, validation.tests.targets()[:, None] + 1e6 * missed * unit * signs


def fit_kinds(table, kinds, horizon=AHEAD, season=1.0, lookback=None, **options):
    """Fit candidates of some kinds, whose windows are measured in a season."""
    candidates = new_candidates(kinds, table, horizon, [season], lookback)
    return fit_combined(table, horizon, candidates, lookback or 8, **options)


def test_weights_are_those_of_the_series_or_the_usual_ones():
    weights, usual = np.eye(4)[[0, 2]], np.array([0.5, 0, 0, 0.5])
    model = CombinedForecast([], None, weights, usual)
    table = Table.from_arrays([np.ones(5)] * 3, training_index=np.array([1, -1, 0]))
    found = model.weights_at(Origins.at_ends(table, AHEAD))
    np.testing.assert_array_equal(found, [weights[1], usual, weights[0]])


@pytest.mark.parametrize(
    ("n", "seasons", "lookback", "lengths"),
    [
        (80, [1.0], None, [8, 24]),  # what fits into a series
        (100, [6.4, 30.0], None, [6, 19, 45]),  # in seasons
        (100, [6.4], 11, [11]),
    ],
)
def test_lengths_of_windows(n, seasons, lookback, lengths):
    candidates = new_candidates(
        ["ridge"], Table.from_arrays(make_walks([n])), AHEAD, seasons, lookback
    )  # fmt: skip
    assert [ridge.lookback for ridge in candidates] == lengths


@pytest.mark.parametrize(("n_series", "seasons"), [(1, [7.0, 30.0]), (PANEL, [7.0])])
def test_series_that_are_no_panel_have_all_seasons(n_series, seasons):
    table = Table.from_arrays(make_walks([100] * n_series))
    candidates = new_candidates(["classical"], table, AHEAD, [7.0, 30.0], None)
    assert [classical.season_length for classical in candidates] == seasons
    assert [classical.blocks for classical in candidates] == [True, False][: len(seasons)]


def test_classical_forecasts_and_analogs_of_middle_length_are_quick():
    table = Table.from_arrays(make_walks([300]))
    candidates = new_candidates(["ridge", "analogs", "classical"], table, AHEAD, [6.0], None)
    quick = quick_candidates(candidates)
    assert [type(candidate).__name__ for candidate in quick] == ["Classical", "OwnAnalogs"]
    lengths = [one.lookback for one in candidates if type(one) is type(quick[1])]
    assert lengths == [6, 18, 42, 84, 126]
    assert quick[1].lookback == 42
    ridges = new_candidates(["ridge"], table, AHEAD, [6.0], None)
    assert quick_candidates(ridges) is ridges


@pytest.mark.parametrize("with_effects", [False, True])
def test_candidates_one_after_the_other_are_those_at_once(with_effects):
    rng = np.random.default_rng(0)
    flags = (rng.random((124, 1)) < 0.5).astype(float)
    values = 100 + 20 * flags[:120, 0] + rng.normal(size=120)
    table = Table.from_arrays([values], features=[flags], future_columns=[0])
    options = {"horizon": 4, "lookback": 9, "effect_season": 7.0 if with_effects else None}
    classical, ridge = (
        new_candidates([kind], table, 4, [7.0], 9) for kind in ("classical", "ridge")
    )
    earlier = fit_combined(table, candidates=classical, **options)
    found = fit_combined(table, candidates=ridge, earlier=earlier, **options)
    expected = fit_combined(table, candidates=[*classical, *ridge], **options)
    assert found.combined.names == expected.combined.names
    assert (found.combined.effects is None) == (not with_effects)
    np.testing.assert_array_equal(found.candidate_forecasts, expected.candidate_forecasts)
    np.testing.assert_array_equal(found.held_out, expected.held_out)


def test_where_nothing_is_validated_all_count_alike():
    fitted = fit_kinds(Table.from_arrays([np.array([3.0, 4.0, 5.0])]), ["classical"])
    assert (
        len(fitted.validation.block)
        == len(fitted.candidate_forecasts)
        == len(fitted.held_out)
        == 0
    )
    combined = fitted.combined
    np.testing.assert_allclose(combined.weights, 1 / len(combined.names))
    np.testing.assert_allclose(combined.new_series_weights, combined.weights[0])
    assert add_candidate(fitted, Stub(4, network="perfect")).combined is fitted.combined


@pytest.mark.parametrize(
    ("network", "tried"),
    [("perfect", False), ("perfect", True), ("worthless", False), (None, False)],
)
def test_a_transformer_is_kept_where_it_has_weight(network, tried):
    table = Table.from_arrays(make_walks([60, 50]))
    stub = Stub(4, network=network, tried=tried)
    fitted = fit_kinds(table, ["ridge"])
    found, _, every, held_out, *_ = add_candidate(fitted, stub)
    kept = network == "perfect"
    assert (found.transformer is stub) == kept == (found.names[-1] == "transformer")
    assert found.weights.shape == (2, len(found.names))
    np.testing.assert_allclose(found.weights.sum(axis=1), 1)
    np.testing.assert_allclose(found.new_series_weights.sum(), 1)
    assert every.shape[1] == len(found.names)
    assert np.isfinite(held_out).all()


def test_a_transformer_that_does_not_help_briefly_is_not_trained():
    class Untrained(Stub):
        def fit(self, validation):
            assert not self.tried
            return super().fit(validation)

        def brief(self):
            return replace(self, tried=False)

    fitted = fit_kinds(Table.from_arrays(make_walks([60, 50])), ["ridge"])
    assert (
        add_candidate(fitted, Untrained(4, network="worthless", tried=True)).combined
        is fitted.combined
    )


def test_a_share_has_the_least_error():
    validation = make_validation_of(make_walks((90, 60)), HORIZON)
    targets, rng = validation.tests.targets(), np.random.default_rng(0)
    unit = validation.scale[validation.tests.series, None]
    one, other = (targets + size * unit * rng.normal(size=targets.shape) for size in (1, 2))
    share, saved = best_mixing_weight(validation, one, other)

    def error(s):
        missed = np.sqrt(np.nansum(((1 - s) * one + s * other - targets) ** 2, axis=1))
        return np.sum(missed / unit[:, 0])

    tried = [error(s) for s in np.linspace(0, 1, 101)]
    assert error(share) < 1.02 * min(tried)
    assert saved == pytest.approx(1 - error(share) / error(0))
    assert best_mixing_weight(validation, one, targets) == pytest.approx((1, 1))
    worse = one + (one - targets)
    assert best_mixing_weight(validation, one, worse) == (0, 0)
    some = np.where(np.arange(len(unit))[:, None] < 20, np.nan, other)
    found = best_mixing_weight(validation, one, some)[0]
    assert found == best_mixing_weight(validation, one, other, slice(20, None))[0]


def test_held_out_mixtures_are_by_shares_chosen_apart():
    table = Table.from_arrays(make_walks([90, 80]))
    fitted = fit_kinds(table, ["classical"], season=6.0)
    validation, before = fitted.validation, fitted.held_out
    rng, unit = np.random.default_rng(0), validation.scale[:, None]
    noise = unit[validation.tests.series] * rng.normal(size=before.shape)
    forecasts = validation.tests.targets() + noise

    class Noisy(Stub):
        def fit(self, validation):
            return self, forecasts[:, None]

    model, _, every, held_out, *_ = add_candidate(fitted, Noisy(4))
    share = best_mixing_weight(validation, before, forecasts)[0]
    np.testing.assert_allclose(model.new_series_weights[-1], share)
    np.testing.assert_allclose(model.weights[:, :-1], (1 - share) * fitted[0].weights)
    np.testing.assert_array_equal(every[:, -1], forecasts)
    tests = validation.tests
    for block in range(validation.n_blocks):
        rows = validation.block == block
        overlap = validation.overlapping(tests.series, tests.n_known, block)
        own = best_mixing_weight(validation, before, forecasts, ~overlap)[0]
        expected = (1 - own) * before[rows] + own * forecasts[rows]
        np.testing.assert_allclose(held_out[rows], expected)


@pytest.mark.parametrize(
    ("lengths", "season", "has_season"),
    [((30,), 12, True), ((50,), 12, False), ((30, 20, 90), 12, True), ((11,), 12, False),
     ((90,), 52, False)],
)  # fmt: skip
def test_the_last_season_is_a_candidate_for_few_short_seasons(lengths, season, has_season):
    """Also of series that are too short for other candidates with a season."""
    months = pd.date_range("2020-01-01", periods=max(lengths), freq="MS")
    table = replace(
        Table.from_arrays([np.arange(float(n)) for n in lengths]), time=TimeIndex.read(months)
    )
    candidates = new_candidates(["classical"], table, 4, [float(season)], None)
    names = [name for candidate in candidates for name in candidate.names]
    assert ("last season" in names) == has_season
    if season == 12:
        candidates = new_candidates(["classical"], table, 4, [1.0], None)
        names = [name for candidate in candidates for name in candidate.names]
        assert ("last season" in names) == has_season
