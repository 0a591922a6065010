"""Classical forecasts against their definitions, series by series."""

import numpy as np
import pytest
from forecasting_validation import make_validation_of, make_walks

from sklearn_attention.forecasting import Origins, Table, _season
from sklearn_attention.forecasting._classical import Classical, LastSeason, smooth

HORIZON = 7
AHEAD = np.arange(1, HORIZON + 1)


def by_name(classical, series, horizon=HORIZON):
    """Forecasts after the end of a single series, by name."""
    found = classical.forecast(
        Origins.at_ends(Table.from_arrays([np.asarray(series)]), horizon)
    )[0]
    return dict(zip(classical.names, found, strict=True))


def smooth_end(method, values, n_steps=HORIZON):
    """Forecasts after the end of a series by simple smoothing, Holt's method or its damped."""
    table = np.asarray(values)[None], np.array([0]), np.array([len(values) - 1])
    states = smooth([table], Classical(1.0).methods)[0][("SES", "Holt", "damped").index(method)]
    if method == "SES":
        return np.repeat(states.level, n_steps)
    return states.path(n_steps)[0]


def make(n=40, seed=0):
    return np.cumsum(0.2 + np.random.default_rng(seed).normal(size=n)) + 50


def slow_theta(values, n_steps=HORIZON):
    """Simple smoothing, with half the slope of the straight line."""
    slope = np.polyfit(np.arange(len(values)), values, 1)[0]
    return smooth_end("SES", values, n_steps) + slope / 2 * np.arange(1, n_steps + 1)


def test_each_is_what_its_name_says():
    values = make()
    found = by_name(Classical(1.0), values)
    np.testing.assert_allclose(found["naive"], values[-1])
    drift = (values[-1] - values[0]) / 39
    np.testing.assert_allclose(found["drift"], values[-1] + drift * AHEAD)
    for name in ("SES", "Holt", "damped"):
        np.testing.assert_allclose(found[name], smooth_end(name, values))
    np.testing.assert_allclose(found["theta"], slow_theta(values))
    four = [found[name] for name in ("SES", "theta", "Holt", "damped")]
    np.testing.assert_allclose(found["median"], np.median(four, axis=0))
    both = (found["median"] + found["blocks"]) / 2
    np.testing.assert_allclose(found["classical mean"], both)


def test_further_seasons_do_without_blocks():
    values = make(90)
    season = 13.5
    found = by_name(Classical(season, named_by_season=True, blocks=False), values)
    expected = by_name(Classical(season), values)
    assert not {"blocks", "classical mean"} & {name.split(",")[0] for name in found}
    assert len(found) == len(expected) - 2
    for name, forecast in found.items():
        plain, _, named = name.partition(", ")
        assert named == "season of 13.5 steps"
        np.testing.assert_array_equal(forecast, expected[plain])


@pytest.mark.parametrize(("n", "season", "sizes"), [(40, 1.0, (1, 2, 3)), (43, 4.0, (1, 2, 4))])
def test_blocks_are_forecasts_of_means_interpolated(n, season, sizes, monkeypatch):
    monkeypatch.setattr(_season, "seasonal_patterns", lambda values, n, phase, m: 0.0)
    values, parts = make(n), []
    for size in sizes:
        n_blocks = n // size
        means = values[n - n_blocks * size :].reshape(n_blocks, size).mean(axis=1)
        ahead = slow_theta(means, HORIZON + 2), smooth_end("damped", means, HORIZON + 2)
        path = [means[-1], *np.mean(ahead, axis=0)]
        # The last mean is of steps whose centre lies so far before the last step.
        centers = -(size - 1) / 2 + size * np.arange(len(path))
        parts.append(np.interp(AHEAD, centers, path))
    found = by_name(Classical(season), values)
    np.testing.assert_allclose(found["blocks"], np.mean(parts, axis=0))


@pytest.mark.parametrize("group", [1, 100, 10**6])
def test_a_panel_gives_the_same_as_each_series_by_itself(group, monkeypatch):
    monkeypatch.setattr(_season, "_MAX_GROUP_VALUES", group)
    classical, series = Classical(6.0), make_walks([50, 1, 2, 3, 4, 26, 31, 120])
    found = classical.forecast(Origins.at_ends(Table.from_arrays(series), HORIZON))
    for own, several in zip(series, found, strict=True):
        single = classical.forecast(Origins.at_ends(Table.from_arrays([own]), HORIZON))[0]
        np.testing.assert_allclose(several, single, rtol=1e-9)


def test_held_out_patterns_are_those_before_the_block():
    series = make_walks([60])
    validation = make_validation_of(series, horizon=4)
    classical = Classical(6.0)
    _, held_out = classical.fit(validation)
    for block in range(validation.n_blocks):
        rows = np.flatnonzero(validation.block == block)
        first = validation.tests.n_known[rows].min()
        own = Table.from_arrays([series[0]])
        for row in rows:
            known = validation.tests.n_known[[row]]
            origin = (
                Origins.at_ends(own, 4)
                .at_steps(np.array([0]), known)
                .with_patterns_before(np.array([first]))
            )
            expected = classical.forecast(origin)
            np.testing.assert_allclose(held_out[row], expected[0])


@pytest.mark.parametrize("known", [3, 4, 5, 6, 8, 13])
def test_the_last_season_is_repeated_and_moved_by_its_mean_change(known):
    values, season, horizon = make(20), 4, 6
    origins = Origins.within(Table.from_arrays([values]), horizon).at_steps(
        np.array([0]), np.array([known])
    )
    repeated, moved = LastSeason(season).forecast(origins)[0]
    past, ahead = values[:known], np.arange(horizon)
    if known < season:
        assert np.isnan(repeated).all()
    else:
        np.testing.assert_array_equal(repeated, past[-season:][ahead % season])
    if known <= season:
        assert np.isnan(moved).all()
    else:
        steps = np.arange(max(season, known - season), known)
        change = np.mean([past[i] - past[i - season] for i in steps])
        np.testing.assert_allclose(moved, repeated + change * (1 + ahead // season))
