"""Series are moved to the level after a break before anything is learned of them."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import KernelForecaster, TransformerForecaster
from sklearn_attention.forecasting import Table
from sklearn_attention.forecasting._breaks import aligned

MODELS = [TransformerForecaster, KernelForecaster]
OPTIONS = {"season_length": 6, "min_ratio": 2.0, "max_since": 40}


def make(n=60, first=40, shift=30.0, season=6, seed=0):
    """A season around 50, with noise, and another level from a step on."""
    t, noise = np.arange(n), np.random.default_rng(seed).normal(size=n)
    return 50 + 4 * np.sin(2 * np.pi * t / season) + 0.5 * noise + shift * (t >= first)


@pytest.mark.parametrize("shift", [30.0, -30.0])
def test_what_was_before_a_break_is_moved_to_the_level_after_it(shift):
    values, without = make(shift=shift), make(shift=0.0)
    table, since = aligned(Table.from_arrays([without, values]), **OPTIONS)
    assert since.tolist() == [np.inf, 20]
    np.testing.assert_array_equal(table.observations[0], without)
    np.testing.assert_array_equal(table.observations[1][40:], values[40:])
    # About the level after it the series moves as it did, by its noise more or less.
    moved = table.observations[1][:40]
    assert np.abs(moved - (without[:40] + shift)).max() < 1.5
    assert np.corrcoef(moved, without[:40])[0, 1] > 0.999


@pytest.mark.parametrize(("n", "first"), [(30, 15), (30, 22), (32, 20), (26, 23), (24, 13)])
def test_two_seasons_tell_what_a_break_is(n, first):
    # The change a season later is not another break.
    options = OPTIONS | {"season_length": 12}
    values, without = (make(n, first, shift, season=12) for shift in (30.0, 0.0))
    table, since = aligned(Table.from_arrays([values, without]), **options)
    assert since.tolist() == [n - first, np.inf]
    assert np.abs(table.observations[0][:first] - without[:first] - 30).max() < 2.5


@pytest.mark.parametrize(
    "values",
    [
        make(shift=3.0),  # not larger than other changes
        make() - 30.0 * (np.arange(60) >= 50),  # came back
        make(first=59),  # an outlier, for all that is known
        make(first=10),  # in the first half
        5.0 * np.arange(60),
        np.ones(60),
        make(n=9, first=6),
    ],
    ids=["small", "return", "last", "early", "trend", "constant", "short"],
)
def test_what_is_no_break_stays(values):
    table, since = aligned(Table.from_arrays([values]), **OPTIONS)
    assert np.isinf(since).all()
    np.testing.assert_array_equal(table.observations[0], values)


def test_breaks_are_recent_and_large():
    table = Table.from_arrays([make()])
    for change in ({"max_since": 19}, {"min_ratio": 60.0}):
        assert np.isinf(aligned(table, **OPTIONS | change)[1]).all()
    features = Table.from_arrays([make()], features=[np.zeros((60, 1))])
    assert np.isinf(aligned(features, **OPTIONS)[1]).all()


def test_what_moves_more_since_a_break_has_moved_as_much_before():
    values = make()
    level = np.where(np.arange(60) >= 40, 250, 50)
    quieter = level + np.where(np.arange(60) >= 40, 0.0, values - level)
    wilder = level + np.where(np.arange(60) >= 40, 5.0, 1.0) * (values - level)
    sizes = []
    for series in (quieter, wilder):
        table, since = aligned(Table.from_arrays([series]), **OPTIONS | {"min_ratio": 1.2})
        assert since[0] == 20
        sizes.append(np.std(table.observations[0][:40]) / np.std(series[:40]))
    assert sizes[0] < 0.3
    assert sizes[1] == pytest.approx(2)  # at most
    # Counts stay counts: nothing falls below 0.
    table, _ = aligned(Table.from_arrays([np.maximum(make(shift=-50.0), 0.0)]), **OPTIONS)
    assert table.observations[0].min() >= 0


@pytest.mark.usefixtures("all_rates")
@pytest.mark.parametrize("n_since", [3, 12])
@pytest.mark.parametrize("model", MODELS)
def test_forecasts_go_on_from_the_level_after_a_break(model, n_since):
    months = pd.date_range("2015-01-01", periods=96, freq="MS")
    values = make(n=108, first=96 - n_since, shift=-40.0, season=12)
    found = model(12).fit(pd.Series(values[:96], months)).predict(coverage=0.9)
    assert np.abs(found["forecast"] - values[96:]).mean() < 2.5
    assert (found["lower_90"] <= values[96:]).mean() > 0.7
    assert (found["upper_90"] >= values[96:]).mean() > 0.7


@pytest.mark.parametrize("model", MODELS)
def test_a_jump_that_is_observed_for_three_steps_lasts(model):
    months = pd.date_range("2015-01-01", periods=63, freq="MS")
    values = make(n=66, first=60, shift=40.0, season=12)
    fitted = model(3).fit(pd.Series(values[:60], months[:60]))
    fitted.update(pd.Series(values[60:63], months[60:]))
    found = fitted.predict(coverage=0.9)
    assert np.abs(found["forecast"] - values[63:]).max() < 6
    assert (found["upper_90"] >= values[63:] - 1).all()


@pytest.mark.parametrize("model", MODELS)
def test_what_was_observed_stays_what_it_was(model):
    months = pd.date_range("2015-01-01", periods=96, freq="MS")
    series = pd.Series(make(n=96, first=80, shift=-40.0, season=12), months)
    fitted = model(12).fit(series)
    np.testing.assert_array_equal(fitted.observed_.observations[0], series)
    # Steps before the break are forecast from those before them.
    before = fitted.predict(months[60:70])
    assert np.abs(before - series[60:70]).mean() < 4


def test_a_level_that_comes_back_slowly_is_no_break():
    t = np.arange(60)
    back = 30.0 * np.clip((58 - t) / 12, 0, 1) * (t >= 40)
    values = make(shift=0.0) + back
    assert np.isinf(aligned(Table.from_arrays([values]), **OPTIONS)[1]).all()
    stays = make(shift=0.0) + np.maximum(back, 20.0 * (t >= 40))
    assert aligned(Table.from_arrays([stays]), **OPTIONS)[1][0] == 20


def test_a_break_is_found_among_large_changes_of_the_season():
    t, noise = np.arange(60), np.random.default_rng(0).normal(size=60)
    values = 6.0 * (t % 6) + 0.3 * noise + 25.0 * (t >= 40)
    assert np.abs(np.diff(values)).max() < 2 * 30
    table, since = aligned(Table.from_arrays([values]), **OPTIONS)
    assert since[0] == 20
    assert np.abs(table.observations[0][:40] - (values[:40] + 25)).max() < 2
