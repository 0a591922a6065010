"""Effects of features against least squares on explicit differences, row by row."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from forecasting_validation import overlapping_rows

from sklearn_attention import KernelForecaster, TransformerForecaster
from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting import _feature_effects as module
from sklearn_attention.forecasting._combination import CombinedForecast
from sklearn_attention.forecasting._feature_effects import (
    added_by_features,
    fit_without_effects,
    learn_effects,
    level_shares,
    rare_events,
    with_distances,
    with_unknown_levels,
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
    observations = Table.from_arrays(values, features=features, future_columns=np.array(known))
    return Validation.from_table(observations, HORIZON, 2 * SEASON)


def targets_of(validation, series, block):
    """Steps of a series that are forecast in a block, by a loop."""
    rows = overlapping_rows(validation, series, block)
    return set(range(min(rows) + HORIZON - 1, max(rows) + 1)) if rows else set()


def slow_coef(basis, validation, known, left_out):
    observations, x, y, kept = validation.origins.table, [], [], []
    for i, values in enumerate(observations.observations):
        table = basis(parts_of(observations)[i][:, known], np.array(known))
        for t in range(SEASON, len(values)):
            kept.append({t, t - SEASON}.isdisjoint(left_out[i]))
            x.append(table[t] - table[t - SEASON])
            y.append((values[t] - values[t - SEASON]) / validation.scale[i])
    x, y = np.array(x), np.array(y)
    n = x.shape[1]
    penalty = ALPHA * np.mean(np.sum(x**2, axis=0))
    x = np.concatenate([x[kept], np.sqrt(penalty) * np.eye(n)])
    return np.linalg.lstsq(x, np.concatenate([y[kept], np.zeros(n)]), rcond=None)[0]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """However many steps there are, effects are learned apart from each block."""
    monkeypatch.setattr(module, "_ROWS_PER_COEFFICIENT", np.inf)


def test_of_many_steps_they_are_learned_once(monkeypatch):
    validation, ridge = make(), WindowRidge(SEASON)
    monkeypatch.setattr(module, "_ROWS_PER_COEFFICIENT", 30)
    found, held_out = combined(validation, ridge)
    rest, table = slow_rest(found.effects, validation)
    expected = ridge.fit(Validation.from_table(rest, HORIZON, 2 * SEASON))[1]
    tests = validation.tests
    for row, (i, known) in enumerate(zip(tests.series, tests.n_known, strict=True)):
        expected[row] += table[i][known : known + HORIZON]
    np.testing.assert_allclose(held_out, expected)


@pytest.mark.parametrize("known", [(0, 1), (0,)])
def test_effects_are_those_of_least_squares_apart_from_the_block(known, monkeypatch):
    monkeypatch.setattr(module, "PENALTIES", (ALPHA,))
    validation = make(known=known)
    found, held_out = learn_effects(validation, SEASON)
    none = [set(), set()]
    expected = slow_coef(found.basis, validation, known, none)
    np.testing.assert_allclose(found.coef, expected, rtol=1e-6)
    assert len(held_out) == validation.n_blocks == 5
    for block, effects in enumerate(held_out):
        left_out = [targets_of(validation, i, block) for i in range(2)]
        expected = slow_coef(effects.basis, validation, known, left_out)
        np.testing.assert_allclose(effects.coef, expected, rtol=1e-6)


def combined(validation, *candidates):
    """Candidates on what effects leave, with equal weights, and their held-out forecasts."""
    effects, apart = learn_effects(validation, SEASON)
    fitted, held_out = fit_without_effects(candidates, validation, effects, apart)
    n = held_out.shape[1]
    weights = np.full((len(validation.scale), n), 1 / n)
    return CombinedForecast(fitted, effects, weights, weights[0]), held_out


def parts_of(table):
    """Features of each series."""
    return np.split(table.features, table.first_rows[1:])


def slow_rest(effects, validation):
    """Series without effects, and the effects on each step."""
    observations, rest, table = validation.origins.table, [], []
    for values, own, unit in zip(
        observations.observations, parts_of(observations), validation.scale, strict=True
    ):
        table.append(unit * (effects.basis(own, np.arange(2)) @ effects.coef))
        rest.append(values - table[-1][: len(values)])
    return observations.with_observations(rest), table


def test_forecasts_are_those_of_series_without_effects():
    validation, ridge = make(), WindowRidge(SEASON)
    found = combined(validation, ridge)[0]
    rest, table = slow_rest(learn_effects(validation, SEASON)[0], validation)
    alone = WindowRidge(SEASON)
    alone, _ = alone.fit(Validation.from_table(rest, HORIZON, 2 * SEASON))
    expected = (
        alone.forecast(Origins.at_ends(rest, HORIZON)) + np.array(table)[:, None, -HORIZON:]
    )
    np.testing.assert_allclose(
        found.each(Origins.at_ends(validation.origins.table, HORIZON)), expected
    )


@pytest.mark.parametrize(
    ("validation", "season"),
    [(make(effect=0.0), 7.0), (make(known=()), 7.0), (make((7, 5)), 7.0), (make((3, 2)), 1.0)],
    ids=["no effect", "nothing known", "no longer than a season", "nothing validated"],
)
def test_there_are_none_where_features_explain_nothing(validation, season):
    assert learn_effects(validation, season) == (None, [])


# Values of the columns of `make_events` but at events.
USUAL = np.array([4.0, 0.0, 0.0])


def make_events(every, lasting=1, n=60):
    """Two series, with a number, a frequent flag, and a rare one."""
    steps = np.arange(n)
    rare = (steps % every >= every - lasting) * 1.0
    features = np.column_stack([steps / 7, steps % 2, rare])
    parts = [features, np.roll(features, 9, axis=0)[:40]]
    return Table.from_arrays(
        [np.zeros(n), np.zeros(33)], features=parts, future_columns=[0, 1, 2]
    )


@pytest.mark.parametrize(("every", "lasting"), [(25, 1), (30, 2)])
def test_distances_from_rare_events_are_those_of_a_loop(every, lasting):
    table = make_events(every, lasting)
    assert rare_events(table, 3, USUAL) == rare_events(table, 7, USUAL) == {2: 1.0}
    longer = with_distances(table, {2: 1.0})
    np.testing.assert_array_equal(longer.future_columns, range(5))
    np.testing.assert_array_equal(longer.features[:, :3], table.features)
    for i in range(2):
        own = longer.features[table.series == i]
        there = np.flatnonzero(own[:, 2])
        for step, (since, until) in enumerate(own[:, 3:]):
            before, after = step - there[there <= step], there[there >= step] - step
            assert since == min(min(before, default=99), 4)
            assert until == min(min(after, default=99), 4)


def test_what_is_frequent_or_no_flag_or_not_known_beforehand_is_no_event():
    assert rare_events(make_events(7), 7, USUAL) == {}
    assert rare_events(make_events(45, lasting=3), 3, USUAL) == {}  # for a season
    assert (
        rare_events(replace(make_events(25), future_columns=np.array([0, 1])), 7, USUAL) == {}
    )
    table = make_events(25)
    features = table.features.copy()
    features[features[:, 2] > 0, 2] += np.arange(np.sum(features[:, 2] > 0))
    assert rare_events(replace(table, features=features), 7, USUAL) == {}


def test_the_values_of_a_flag_do_not_matter_nor_do_copies_of_it():
    table = make_events(25)
    for values in ((0, 2), (1, 0), (-1, 1)):
        features = table.features.copy()
        features[:, 2] = np.where(features[:, 2] == 1, values[1], values[0])
        usual, copy = np.array([4.0, 0.0, values[0]]), features[:, [2]]
        other = replace(table, features=features)
        assert rare_events(other, 7, usual) == {2: values[1]}
        np.testing.assert_array_equal(
            with_distances(other, {2: values[1]}).features[:, 3:],
            with_distances(table, {2: 1.0}).features[:, 3:],
        )
        twice = replace(
            table,
            features=np.append(features, copy, axis=1),
            future_columns=np.array([0, 1, 2, 3]),
        )
        assert rare_events(twice, 7, np.append(usual, values[0])) == {2: values[1]}


def test_constants_and_copies_of_features_change_no_effects():
    validation = make()
    expected, apart = learn_effects(validation, SEASON)
    table, constant = (
        validation.origins.table,
        np.ones((len(validation.origins.table.features), 1)),
    )
    more = np.append(table.features, constant, axis=1)
    more = np.append(more, table.features[:, :1], axis=1)
    wider = replace(table, features=more, future_columns=np.arange(4))
    other = replace(
        validation,
        origins=replace(validation.origins, table=wider),
        tests=replace(validation.tests, table=wider),
    )
    found, others_apart = learn_effects(other, SEASON)
    assert len(apart) == len(others_apart)
    for one, another in zip([expected, *apart], [found, *others_apart], strict=True):
        for before, after in zip(
            one.remove_from(table).observations,
            another.remove_from(wider).observations,
            strict=True,
        ):
            np.testing.assert_allclose(after, before, rtol=1e-12)


def test_a_level_that_is_not_known_may_be_any_of_the_others():
    features = np.zeros((10, 4))
    features[:, 0] = np.arange(10)
    features[np.arange(10), 1 + np.arange(10) % 3] = 1
    table = Table.from_arrays([np.zeros(10)], features=[features], future_columns=[0, 1, 2, 3])
    ((columns, share),) = level_shares(table, ["number", *3 * ["event"]])
    assert columns == [1, 2, 3]
    np.testing.assert_allclose(share, [0.4, 0.3, 0.3])
    asked = features.copy()
    asked[[2, 7], 1:] = 0
    filled, unknown = with_unknown_levels(replace(table, features=asked), [(columns, share)])
    ((of_category, rows),) = unknown
    assert of_category == columns
    np.testing.assert_array_equal(rows, [2, 7])
    np.testing.assert_array_equal(filled.features[rows, 1:], [share, share])
    others = np.delete(np.arange(10), rows)
    np.testing.assert_array_equal(filled.features[others], features[others])
    # Where training had rows of no level, these are one of the levels.
    assert level_shares(replace(table, features=asked), ["number", *3 * ["event"]]) == []


@pytest.mark.parametrize("n_features", [1, 4])
def test_what_features_add_is_the_mean_over_two_orders(n_features):
    rng = np.random.default_rng(0)
    features, usual = rng.normal(size=(9, n_features)), rng.normal(size=n_features)
    table = Table.from_arrays(
        [np.arange(6.0)], features=[features], future_columns=range(n_features)
    )

    def forecast(table):
        rows = table.features[6:]
        return np.prod(1 + rows, axis=1) + rows @ np.arange(n_features)

    def mixed(kept):
        rows = features.copy()
        rows[6:] = np.where(np.isin(np.arange(n_features), kept), rows[6:], usual)
        return forecast(replace(table, features=rows))

    expected = [mixed([])]
    for column in range(n_features):
        parts = []
        for before in (range(column), range(column + 1, n_features)):
            parts.append(mixed([*before, column]) - mixed([*before]))
        expected.append(np.mean(parts, axis=0))
    found = added_by_features(forecast, table, usual, [[i] for i in range(n_features)])
    np.testing.assert_allclose(found, np.column_stack(expected), atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), forecast(table), atol=1e-12)


def make_shop(n=60, further=6):
    """Sales with a promotion of 9, a price of -2 a unit and a closed kind of day of -4."""
    rng, days = np.random.default_rng(0), pd.date_range("2024", periods=n + further, name="day")
    X = pd.DataFrame(
        {"promotion": rng.random(len(days)) < 0.2, "price": rng.normal(size=len(days))}, days
    )
    X["kind"] = rng.choice(["open", "open", "closed"], len(days))
    X.iloc[-3:, 0] = [True, False, True]
    true = pd.DataFrame(
        {
            "promotion": 9.0 * X["promotion"], "price": -2 * X["price"],
            "kind": -4.0 * (X["kind"] == "closed"),
        }
    )  # fmt: skip
    week, noise = WEEK[np.arange(len(days)) % SEASON], 0.3 * rng.normal(size=len(days))
    return X, (50 + week + true.sum(axis=1) + noise).rename("sales"), true


class TestExplainFeatures:
    @pytest.mark.parametrize("forecaster", [KernelForecaster, TransformerForecaster])
    def test_columns_are_effects_and_sum_to_the_forecast(self, forecaster):
        X, y, true = make_shop(100)
        model = forecaster(3).fit(X[:-6], y[:-6])
        found = model.explain_features(X[-6:])  # two horizons
        assert found.columns.tolist() == ["usual", "promotion", "price", "kind"]
        np.testing.assert_allclose(found.sum(axis=1), model.predict(X[-6:]))
        wanted = true - [0, -2 * X["price"][:-6].median(), 0]
        np.testing.assert_allclose(found[["promotion", "price", "kind"]], wanted[-6:], atol=1.2)

    def test_what_is_not_known_beforehand_is_none_of_them(self):
        X, y, _ = make_shop()
        model = KernelForecaster(3, past_features=["price"]).fit(X[:-6], y[:-6])
        found = model.explain_features(X[["promotion", "kind"]][-6:-3])
        assert found.columns.tolist() == ["usual", "promotion", "kind"]
        with pytest.raises(ValueError, match="needs features that are known in advance"):
            KernelForecaster(3, past_features=list(X)).fit(X[:-6], y[:-6]).explain_features()

    def test_what_cannot_be_told_apart_or_is_past_is_refused(self):
        X, y, _ = make_shop()
        named = X.rename(columns={"price": "usual"})
        model = KernelForecaster(3).fit(named[:-6], y[:-6])
        with pytest.raises(
            ValueError, match=r"X has a column named 'usual', which is.* rename it"
        ):
            model.explain_features(named[-6:])
        model = KernelForecaster(3).fit(X[:-6], y[:-6])
        with pytest.raises(
            ValueError,
            match=r"X has .* from 2024-02-28 on: pass only steps after the end of the series\.",
        ):
            model.explain_features(X[-8:])

    def test_usual_is_what_was_usual_in_the_fit(self):
        X, y, _ = make_shop()
        model = KernelForecaster(3).fit(X[:-6], y[:-6])
        later = X[-6:-3].assign(price=9.0, promotion=True)
        median = np.quantile(X["price"][:-6], 0.5, method="lower")
        X = X[-3:].assign(promotion=False, price=median)
        found = model.update(later, y[-6:-3]).explain_features(X)
        assert (found[["promotion", "price"]] == 0).all(axis=None)
