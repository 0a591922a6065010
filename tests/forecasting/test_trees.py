"""Trees against a table that is written out row by row, and what they learn."""

import numpy as np
import pandas as pd
import pytest
from forecasting_validation import make_walks
from sklearn.ensemble import HistGradientBoostingRegressor

from sklearn_attention import TransformerForecaster
from sklearn_attention.forecasting import Origins, Table, TimeIndex
from sklearn_attention.forecasting import _trees as module
from sklearn_attention.forecasting._origins import Validation
from sklearn_attention.forecasting._trees import Trees, calendar_of

HORIZON, SEASONS = 4, (6.0, 15.2)


def make_validation(lengths=(90, 70), seed=0):
    """Walks with a season, a known flag, a known number, and a number known up to now."""
    rng = np.random.default_rng(seed)
    features = [
        np.column_stack([rng.random(n + HORIZON) < 0.3, *rng.normal(size=(2, n + HORIZON))])
        for n in lengths
    ]
    values = [
        own + 5 * table[: len(own), 0]
        for own, table in zip(make_walks(lengths), features, strict=True)
    ]
    table = Table.from_arrays(
        values, features=[own.astype(float) for own in features], future_columns=[0, 1]
    )
    return Validation.from_table(table, HORIZON, 6)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "_MIN_TREES", 10)
    monkeypatch.setattr(module, "_MAX_TREES", 10)


def slow_row(values, features, known, ahead, level, unit, drifts):
    """Columns of a row, one after the other, its level and its unit."""
    step = known + ahead
    means = [np.mean(values[max(known - m, 0) : known]) for m in (6, 15)]
    level = means[0] if drifts else level

    def at(t):
        return values[t] if t >= 0 else np.nan

    own = [*means, values[known - 1]]
    for m in (6, 15):
        lag = step
        while lag >= known:
            lag -= m
        own += [at(lag), at(lag - m), values[known - 1] - at(known - 1 - m) + level]
    last = [features[max(step + 1 - m, 0) : step + 1, 1].mean() for m in (6, 15)]
    columns = [(value - level) / unit for value in own]
    columns += [ahead, *features[step, :2], features[known - 1, 2], *last]
    return columns, level, unit


def parts_of(table):
    return np.split(table.features, table.first_rows[1:])


@pytest.mark.parametrize("drifts", [False, True])
def test_forecasts_are_those_of_a_table_written_out(quick, monkeypatch, drifts):
    monkeypatch.setattr(module, "_DRIFT_RATIO", np.inf if drifts else 0.0)
    validation = make_validation()
    table = validation.origins.table
    fitted, _ = Trees(SEASONS).fit(validation)

    def rows_at(places):
        return [
            slow_row(
                table.observations[i], parts_of(table)[i], known, ahead,
                table.observations[i].mean(), table.observations[i].std(), drifts,
            )
            for i, known, ahead in places
        ]  # fmt: skip

    series, step, ahead = module._rows_of(table, HORIZON)
    places = list(zip(series, step - ahead, ahead, strict=True))
    columns, level, unit = (np.array(part) for part in zip(*rows_at(places), strict=True))
    values = np.array([table.observations[i][k + a] for i, k, a in places])
    trees = HistGradientBoostingRegressor(
        max_iter=10, learning_rate=0.2, max_leaf_nodes=len(values) // 50, early_stopping=False,
        random_state=0,
    )  # fmt: skip
    trees.fit(columns, (values - level) / unit)
    origins = Origins.at_ends(table, HORIZON).at_steps(
        np.array([0, 1, 0]), np.array([90, 70, 3])
    )
    later = [
        (i, known, ahead)
        for i, known in zip(origins.series, origins.n_known, strict=True)
        for ahead in range(HORIZON)
    ]
    columns, level, unit = (np.array(part) for part in zip(*rows_at(later), strict=True))
    expected = level + unit * trees.predict(columns)
    found = fitted.forecast(origins)
    np.testing.assert_allclose(found[:, 0].ravel(), expected, rtol=1e-9)


def test_validation_origins_are_forecast_by_trees_learned_apart(quick, monkeypatch):
    validation = make_validation((200,))
    _, found = Trees(SEASONS).fit(validation)
    table, first = validation.origins.table, validation.block == 0
    # What is forecast in a group of blocks may change, and no forecast of their trees does.
    learned = []
    monkeypatch.setattr(
        module.Trees, "_fit_to",
        lambda self, rows, share=1: learned.append((rows, share)) or self,
    )  # fmt: skip
    Trees(SEASONS).fit(validation)
    assert [share for _, share in learned] == [0.5, 0.5, 1]
    _, step, _ = module._rows_of(table, HORIZON)
    all_targets = learned[2][0].targets
    for part, (rows, _) in enumerate(learned[:2]):
        is_learned = np.isin(all_targets, rows.targets)
        for block in range(part, 5, 2):
            known = validation.tests.n_known[validation.block == block]
            inside = (step >= known.min()) & (step < known.max() + HORIZON)
            assert inside.any()
            assert not is_learned[inside].any()
        assert is_learned.mean() > 0.3
    assert len(learned) == 3
    assert np.isfinite(found[first]).all()


def test_levels_that_drift_go_on_beyond_what_was_learned(quick):
    steps = np.arange(200.0)
    validation = Validation.from_table(
        Table.from_arrays([100 + steps + np.sin(steps)]), HORIZON, 6
    )
    fitted, _ = Trees((6.0,)).fit(validation)
    assert fitted.levels_drift
    found = fitted.forecast(Origins.at_ends(validation.origins.table, HORIZON))[0, 0]
    np.testing.assert_allclose(found, 300 + np.arange(HORIZON), atol=2)
    # Nor does one that is shorter than a season say anything.
    wave = Table.from_arrays(
        [np.sin(2 * np.pi * steps / 6) + 0.1 * (steps % 5), np.arange(5.0)]
    )
    assert not Trees((6.0,)).fit(Validation.from_table(wave, HORIZON, 6))[0].levels_drift


def test_short_series_have_none():
    validation = Validation.from_table(Table.from_arrays([np.arange(9.0)]), 2, 3)
    fitted, found = Trees((1.0,)).fit(validation)
    assert fitted.fitted is None
    assert np.isnan(found).all()
    assert np.isnan(fitted.forecast(validation.tests)).all()
    assert Trees((1.0,), tried=True).with_trial(validation)[1] is None


@pytest.mark.parametrize(("freq", "columns"), [("30min", 5), ("D", 4), ("MS", 3), ("YS", 0)])
def test_the_calendar_has_what_steps_differ_in(freq, columns):
    index = pd.date_range("2023-03-05", periods=40, freq=freq)
    found = calendar_of(TimeIndex.read(index), 50)
    assert found.shape == (50, columns)
    periods = calendar_of(TimeIndex.read(index[:20].to_period()), 20)
    np.testing.assert_array_equal(periods, found[:20])


def test_columns_of_the_calendar():
    index = pd.date_range("2023-12-31 23:00", periods=3, freq="h")
    angle = 2 * np.pi * np.array([365, 1, 1]) / 365.25
    expected = [
        [23 * 3600, 0, 3600], [6, 0, 0], np.sin(angle), np.cos(angle), [12, 1, 1],
    ]  # fmt: skip
    found = calendar_of(TimeIndex.read(index), 3)
    np.testing.assert_allclose(found, np.transpose(expected))


def test_without_features_there_are_none_but_those_wanted():
    rng, days = np.random.default_rng(1), pd.date_range("2023-01-01", periods=120, name="day")
    y = pd.Series(50 + 8 * (days.day_of_week < 5) + 0.1 * rng.normal(size=120), days)
    model = TransformerForecaster(7, log=False, candidates=["classical", "trees"]).fit(y)
    assert "trees" in model.candidate_weights_
    # Fresh rows of an array have no dates.
    assert np.isfinite(model.predict(history=y.to_numpy()[None, -30:])).all()
    model.set_params(candidates="auto").fit(y)
    assert "trees" not in model.candidate_weights_


@pytest.mark.parametrize(("freq", "n_columns"), [("D", 4), ("W", 3), ("h", 5)])
def test_clocks_that_change_do_not_change_the_columns(freq, n_columns):
    index = pd.date_range("2024-01-01", periods=500, freq=freq, tz="Europe/Berlin")
    # Up to summer steps are shorter than a day, or a week, in the mean.
    time = TimeIndex.read(index)
    assert {calendar_of(time, n).shape[1] for n in range(20, 500, 40)} == {n_columns}
