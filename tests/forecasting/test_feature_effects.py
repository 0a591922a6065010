"""Effects of features against least squares on explicit differences, row by row."""

from dataclasses import replace

import numpy as np
import pytest
from forecasting_training import check_knows_nothing_later, overlapping_rows, unknown_twins

from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting import _feature_effects as module
from sklearn_attention.forecasting._classical import Classical
from sklearn_attention.forecasting._combination import CombinedForecast
from sklearn_attention.forecasting._feature_effects import (
    cut_at_origins,
    fit_without_effects,
    learn_effects,
    rare_events,
    with_distances,
)
from sklearn_attention.forecasting._origins import Validation
from sklearn_attention.forecasting._ridges import WindowRidge

HORIZON, SEASON, ALPHA = 5, 7, 0.01
WEEK = np.array([0.0, -5, -8, -3, 6, 18, 12])


def make(lengths=(160, 160), effect=25.0, known=(0, 1), drift=1.5):
    """A level that drifts, a week, the effect of a flag, and a feature that does nothing."""
    rng, values, features = np.random.default_rng(0), [], []
    for i, n in enumerate(lengths):
        table = np.column_stack([rng.random(n + HORIZON) < 0.3, rng.normal(size=n + HORIZON)])
        own = 100 + WEEK[np.arange(n) % SEASON] + np.cumsum(drift * rng.normal(size=n))
        own += effect * table[:n, 0] + rng.normal(size=n)
        values.append((1 + 9 * i) * own)
        features.append(table.astype(float))
    observations = Table.of(values, features=features, known=np.array(known))
    return Validation.of(observations, HORIZON, 2 * SEASON)


def targets_of(training, series, block):
    """Steps of a series that are forecast in a block, by a loop."""
    rows = overlapping_rows(training, series, block)
    return set(range(min(rows) + HORIZON - 1, max(rows) + 1)) if rows else set()


def slow_coef(basis, training, known, left_out):
    observations, x, y, kept = training.origins.table, [], [], []
    for i, values in enumerate(observations.values):
        table = basis(parts_of(observations)[i][:, known], np.array(known))
        for t in range(SEASON, len(values)):
            kept.append({t, t - SEASON}.isdisjoint(left_out[i]))
            x.append(table[t] - table[t - SEASON])
            y.append((values[t] - values[t - SEASON]) / training.scale[i])
    x, y = np.array(x), np.array(y)
    n = x.shape[1]
    penalty = ALPHA * np.mean(np.sum(x**2, axis=0))
    x = np.concatenate([x[kept], np.sqrt(penalty) * np.eye(n)])
    return np.linalg.lstsq(x, np.concatenate([y[kept], np.zeros(n)]), rcond=None)[0]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """However many steps there are, effects are learned apart from each block."""
    monkeypatch.setattr(module, "_ROWS_OF_COEFFICIENT", np.inf)


def test_of_many_steps_they_are_learned_once(monkeypatch):
    training, ridge = make(), WindowRidge(SEASON)
    monkeypatch.setattr(module, "_ROWS_OF_COEFFICIENT", 30)
    found, held_out = combined(training, ridge)
    rest, table = slow_rest(found.effects, training)
    expected = ridge.fit(Validation.of(rest, HORIZON, 2 * SEASON))[1]
    validation = training.validation
    for row, (i, known) in enumerate(zip(validation.series, validation.known, strict=True)):
        expected[row] += table[i][known : known + HORIZON]
    np.testing.assert_allclose(held_out, expected)


@pytest.mark.parametrize("known", [(0, 1), (0,)])
def test_effects_are_those_of_least_squares_apart_from_the_block(known, monkeypatch):
    monkeypatch.setattr(module, "PENALTIES", (ALPHA,))
    training = make(known=known)
    found, held_out = learn_effects(training, SEASON)
    none = [set(), set()]
    expected = slow_coef(found.basis, training, known, none)
    np.testing.assert_allclose(found.coef, expected, rtol=1e-6)
    assert len(held_out) == training.n_blocks == 5
    for block, effects in enumerate(held_out):
        left_out = [targets_of(training, i, block) for i in range(2)]
        expected = slow_coef(effects.basis, training, known, left_out)
        np.testing.assert_allclose(effects.coef, expected, rtol=1e-6)


def combined(training, *candidates):
    """Candidates on what effects leave, with equal weights, and their held-out forecasts."""
    effects, apart = learn_effects(training, SEASON)
    fitted, held_out = fit_without_effects(candidates, training, effects, apart)
    n = held_out.shape[1]
    weights = np.full((len(training.scale), n), 1 / n)
    return CombinedForecast(fitted, effects, weights, weights[0]), held_out


def parts_of(table):
    """Features of each series."""
    return np.split(table.features, table.first[1:])


def slow_rest(effects, training):
    """Series without effects, and the effects on each step."""
    observations, rest, table = training.origins.table, [], []
    for values, own, unit in zip(
        observations.values, parts_of(observations), training.scale, strict=True
    ):
        table.append(unit * (effects.basis(own, np.arange(2)) @ effects.coef))
        rest.append(values - table[-1][: len(values)])
    return observations.with_values(rest), table


def test_held_out_forecasts_are_those_of_series_without_effects():
    training, block = make(), 2
    candidates = WindowRidge(SEASON), Classical(1.0, False)  # without patterns
    held_out = combined(training, *candidates)[1][training.block == block]
    rest, table = slow_rest(learn_effects(training, SEASON)[1][block], training)
    origins = training.validation.take(training.block == block)
    expected = Classical(1.0, False).forecast(
        Origins.at_ends(rest, HORIZON).at(origins.series, origins.known)
    )
    for row, (i, known) in enumerate(zip(origins.series, origins.known, strict=True)):
        expected[row] += table[i][known : known + HORIZON]
    np.testing.assert_allclose(held_out[:, len(candidates[0].names) :], expected)


def test_forecasts_are_those_of_series_without_effects():
    training, ridge = make(), WindowRidge(SEASON)
    found = combined(training, ridge)[0]
    rest, table = slow_rest(learn_effects(training, SEASON)[0], training)
    alone = WindowRidge(SEASON)
    alone, _ = alone.fit(Validation.of(rest, HORIZON, 2 * SEASON))
    expected = (
        alone.forecast(Origins.at_ends(rest, HORIZON)) + np.array(table)[:, None, -HORIZON:]
    )
    np.testing.assert_allclose(
        found.each(Origins.at_ends(training.origins.table, HORIZON)), expected
    )


@pytest.mark.parametrize(
    ("training", "season"),
    [(make(effect=0.0), 7.0), (make(known=()), 7.0), (make((7, 5)), 7.0), (make((3, 2)), 1.0)],
    ids=["no effect", "nothing known", "no longer than a season", "nothing validated"],
)
def test_there_are_none_where_features_explain_nothing(training, season):
    assert learn_effects(training, season) == (None, [])


def test_errors_are_less_than_with_the_effects_in_the_series():
    training, candidate = make((400,)), Classical(SEASON, False)
    missed = []
    for held_out in (combined(training, candidate)[1], candidate.fit(training)[1]):
        errors = np.abs(held_out - training.validation.targets()[:, None])
        missed.append(np.nanmean(errors, axis=(0, 2)).min())
    assert missed[0] < 0.8 * missed[1]


def test_unknown_series_have_units_of_their_own():
    training = make()
    found = combined(training, Classical(SEASON, False))[0]
    seen = training.origins.table
    fresh = unknown_twins(seen)
    expected = 1000 * found.each(Origins.at_ends(seen, HORIZON)) - 5
    np.testing.assert_allclose(found.each(Origins.at_ends(fresh, HORIZON)), expected)


def test_the_last_known_features_go_on():
    training = make((160, 160))
    found = combined(training, Classical(SEASON, False))[0]
    seen = training.origins.table
    further = seen.extended(np.full((2, 2 * HORIZON), 100.0))
    longer = [np.concatenate([own, own[-1:].repeat(20, axis=0)]) for own in parts_of(seen)]
    spelled = Table.of(further.values, features=longer, known=seen.known)
    expected = found.each(Origins.at_ends(spelled, HORIZON))
    np.testing.assert_array_equal(found.each(Origins.at_ends(further, HORIZON)), expected)


@pytest.mark.parametrize("twins", [False, True])
def test_nothing_later_matters(twins, monkeypatch):
    training = make((60, 50), known=(0,))
    found = combined(training, Classical(SEASON, False), WindowRidge(SEASON))[0]
    table = training.origins.table
    table = unknown_twins(table) if twins else table
    check_knows_nothing_later(found.each, table, HORIZON, 1e-9)
    # Series that end at their origins are as many as these: they come in parts.
    origins = Origins.within(table, HORIZON, ahead=0)
    expected = found.each(origins)
    monkeypatch.setattr(module, "_MOST_VALUES", 500)
    np.testing.assert_allclose(found.each(origins), expected, rtol=1e-9)


def test_series_that_were_not_learned_from_end_at_their_origins():
    table = make((30, 20)).origins.table
    table = replace(table, identity=np.array([-1, 1]))
    series, known = np.array([0, 0, 1, 1, 0]), np.array([9, 30, 12, 20, 9])
    found = cut_at_origins(Origins.at_ends(table, HORIZON).at(series, known))
    assert list(found.table.lengths) == [9, 30, 20]
    assert list(found.table.counts) == [9 + HORIZON, 30 + HORIZON, 20 + HORIZON]
    assert list(found.table.identity) == [-1, -1, 1]
    assert list(found.series) == [0, 1, 2, 2, 0]
    origins = Origins.at_ends(table, HORIZON).at(series, known)
    np.testing.assert_array_equal(found.past(5), origins.past(5))
    np.testing.assert_array_equal(found.future_features(), origins.future_features())


def make_events(every, lasting=1, n=60):
    """Two series, with a number, a frequent flag, and a rare one."""
    steps = np.arange(n)
    rare = (steps % every >= every - lasting) * 1.0
    features = np.column_stack([steps / 7, steps % 2, rare])
    parts = [features, np.roll(features, 9, axis=0)[:40]]
    return Table.of([np.zeros(n), np.zeros(33)], features=parts, known=[0, 1, 2])


@pytest.mark.parametrize(("every", "lasting"), [(25, 1), (30, 2)])
def test_distances_from_rare_events_are_those_of_a_loop(every, lasting):
    table = make_events(every, lasting)
    assert rare_events(table, 3) == rare_events(table, 7) == [2]
    longer = with_distances(table, [2])
    np.testing.assert_array_equal(longer.known, range(5))
    np.testing.assert_array_equal(longer.features[:, :3], table.features)
    for i in range(2):
        own = longer.features[table.series == i]
        there = np.flatnonzero(own[:, 2])
        for step, (since, until) in enumerate(own[:, 3:]):
            before, after = step - there[there <= step], there[there >= step] - step
            assert since == min(min(before, default=99), 4)
            assert until == min(min(after, default=99), 4)


def test_what_is_frequent_or_no_flag_or_not_known_beforehand_is_no_event():
    assert rare_events(make_events(7), 7) == []
    assert rare_events(make_events(45, lasting=3), 3) == []  # for a season
    assert rare_events(replace(make_events(25), known=np.array([0, 1])), 7) == []
    table = make_events(25)
    features = np.where(table.features == 1, 0.5, table.features)
    assert rare_events(replace(table, features=features), 7) == []
