"""Forecasts of a step use nothing after the step before it, whatever else is known."""

import copy
from functools import cache
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from sklearn_attention import KernelForecaster, Training, TransformerForecaster
from sklearn_attention.forecasting import _origins

SEASON, N_FIT, N_LATER, HORIZON = 6, 48, 14, 3
INDEX = pd.date_range("2015-01-01", periods=N_FIT + N_LATER + HORIZON, freq="MS")
OBSERVED, STEPS = INDEX[: N_FIT + N_LATER], np.arange(len(INDEX))
TINY = {"d_model": 4, "n_heads": 1, "n_layers": 1, "training": Training(max_steps=2)}
LEVELS = [0.5, 0.9]


def values_of(seed=0):
    """A walk with a season, well above zero."""
    noise = np.random.default_rng(seed).normal(size=len(OBSERVED))
    wave = 4 * np.sin(2 * np.pi * STEPS[: len(OBSERVED)] / SEASON + seed)
    return 60 + wave + 0.5 * np.cumsum(noise)


def make_panel(name):
    """Series by name; "new" begins after the fit."""
    _, n_series, has_features = CASES[name]
    names = ["y"] if n_series == 1 else [*map(str, range(n_series - 1)), "new"]
    panel = {name: pd.Series(values_of(i), OBSERVED) for i, name in enumerate(names)}
    if has_features:
        panel = {key: own + 4 * FEATURES["known"][OBSERVED] for key, own in panel.items()}
    if n_series > 1:
        panel["new"] = panel["new"][N_FIT + 1 :]
        panel["0"] = panel["0"][5:]
    return panel


FEATURES = pd.DataFrame(
    np.random.default_rng(9).normal(size=(len(INDEX), 2)), INDEX, columns=["known", "past"]
)


def weighing(*candidates, log=False, **parameters):
    kinds = list(candidates) or "auto"
    return TransformerForecaster(
        HORIZON, candidates=kinds, log=log, season_length=SEASON, **parameters
    )


def analogs(**parameters):
    return KernelForecaster(HORIZON, season_length=SEASON, **parameters)


# Forecasters, with the number of series, and whether there are features.
CASES = {
    "analogs": (analogs(lookback=8), 1, False),
    "analogs by the last value": (analogs(normalize="last", lookback=8), 3, False),
    "analogs by the last season": (analogs(lookback=12), 3, False),
    "analogs with features": (analogs(past_features=["past"], lookback=8), 3, True),
    "classical in a panel": (weighing("classical"), 3, False),
    "ridge in a panel": (weighing("ridge"), 3, False),
    "own analogs": (weighing("analogs"), 3, False),
    "regressor": (weighing(LinearRegression()), 3, False),
    "effects of features in a panel": (
        weighing("classical", "features", past_features=["past"]), 3, True,
    ),
    "trees": (weighing("trees"), 3, False),
    "trees with features": (weighing("trees", past_features=["past"]), 3, True),
    "transformer with features": (
        TransformerForecaster(
            HORIZON, candidates=None, lookback=12, past_features=["past"], **TINY
        ), 3, True,
    ),
    "logarithms": (weighing("ridge", "analogs", log=True), 3, False),
    "bounds": (weighing("ridge", bounds=(50, 70)), 3, False),
    "all": (weighing(log="auto"), 1, False),
    "all with features": (
        weighing(past_features=["past"], log="auto", max_epochs=1, **TINY), 1, True,
    ),
    "attention over candidates": (weighing("classical"), 31, False),
}  # fmt: skip
# What others vary too: a way to compare windows, a candidate, or whether there are several.
SLOW = {
    "attention over candidates", "all with features", "all", "analogs",
    "analogs by the last season", "classical in a panel", "bounds", "trees",
}  # fmt: skip
# Networks compute in single precision.
PRECISION = {name: 1e-4 if "transformer" in name else 1e-8 for name in CASES}
PRECISION["all with features"] = 1e-4
# Few examples of each of many cases, any of which is as plain as another.
few = settings(
    max_examples=2, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
later_values = st.tuples(
    st.integers(2, N_LATER - 1),  # before it the first step of "new" stands for itself
    st.sampled_from(["level", "season", "noise", "scale", "feature"]),
    st.integers(0, 10),
)


@cache
def fitted(name):
    model, n_series, has_features = CASES[name]
    panel = {key: own[: INDEX[N_FIT - 1]] for key, own in make_panel(name).items()}
    panel = {key: own for key, own in panel.items() if len(own)}
    y = panel["y"] if n_series == 1 else panel
    return copy.deepcopy(model).fit(*((FEATURES[:N_FIT], y) if has_features else (y,)))


def forms_of(name, panel, features):
    """X and y as `update` takes them."""
    y = panel["y"] if len(panel) == 1 else panel
    return (features, y) if CASES[name][2] else (y,)


def later_of(name, until=N_LATER, change=None):
    """What `update` appends up to a step, which may be changed from another on."""
    features = FEATURES[N_FIT : N_FIT + until].copy()
    panel = {k: own[INDEX[N_FIT] :].copy() for k, own in make_panel(name).items()}
    if change is not None:
        first, kind, seed = change
        rng = np.random.default_rng(seed)
        for own in panel.values():
            after = own.index >= INDEX[N_FIT + first]
            n, values = after.sum(), own[after].to_numpy()
            own[after] = {
                "level": values + 30, "season": 2 * values.mean() - values + 5 * rng.random(),
                "noise": 60 + 20 * rng.normal(size=n).clip(-2.5), "scale": 7 * values,
                "feature": values + 1,
            }[kind]  # fmt: skip
        features.loc[INDEX[N_FIT + first] :, "past"] += 100
    panel = {k: own[own.index < INDEX[N_FIT + until]] for k, own in panel.items()}
    panel = {k: own for k, own in panel.items() if len(own)}
    return forms_of(name, panel, features) if panel else None


def known_until(name, until, change=None):
    """The fitted forecaster after `update` with so many steps."""
    model = copy.deepcopy(fitted(name))
    return model.update(*later_of(name, until, change)) if until else model


def steps_of(name, positions):
    """What `predict` is passed for some steps."""
    return FEATURES.iloc[positions] if CASES[name][2] else INDEX[positions]


def flat(forecasts):
    """Forecasts of all series as rows of an array, a column for each end."""
    parts = forecasts.values() if isinstance(forecasts, dict) else [forecasts]
    return np.stack([np.asarray(own, dtype=float) for own in parts])


def same(found, expected, name):
    np.testing.assert_allclose(flat(found), flat(expected), rtol=PRECISION[name])


@pytest.fixture(
    params=[pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in CASES]
)
def name(request, rates):
    """Of a forecaster that is fitted once for all tests."""
    fitted(request.param)
    return request.param


@few
@given(change=later_values)
def test_what_happens_after_a_step_is_no_matter(name, change):
    until = N_FIT + change[0]
    steps = steps_of(name, np.arange(N_FIT - 3, until + 1))
    models = [known_until(name, N_LATER, own) for own in (None, change)]
    same(*(model.predict(steps, coverage=LEVELS) for model in models), name)
    same(*(model.predict_quantiles(steps) for model in models), name)
    # It does matter to the forecasts of steps after it, but for those at a bound.
    later = [model.predict(steps_of(name, [until + 1])) for model in models]
    if change[1] in ("level", "scale") and name != "bounds":
        assert (flat(later[0]) != flat(later[1])).any()


@few
@given(until=st.integers(2, N_LATER - 1))
def test_a_step_is_forecast_as_it_was_when_it_was_the_next(name, until):
    position = N_FIT + until
    # A horizon of features, all of which a transformer forecasts the first step from.
    ahead = steps_of(name, [*range(position, position + HORIZON)])
    # But for patterns that are shared.
    with mock.patch.object(_origins, "_GROWTH_OF_PATTERNS", 1 + 1e-9):
        found = flat(known_until(name, N_LATER).predict(ahead, coverage=LEVELS))
        before = flat(known_until(name, until).predict(ahead, coverage=LEVELS))
    np.testing.assert_allclose(found[:, 0], before[:, 0], rtol=PRECISION[name])


def test_one_series_is_no_matter_to_another():
    for name in ("ridge in a panel", "analogs with features"):
        model = known_until(name, N_LATER)
        other = copy.deepcopy(fitted(name))
        later = later_of(name)
        later[-1]["1"] = 3 * later[-1]["1"]
        other.update(*later)
        steps = steps_of(name, np.arange(N_FIT, N_FIT + N_LATER))
        found, expected = (one.predict(steps, coverage=LEVELS) for one in (other, model))
        for own in ("0", "new"):
            pd.testing.assert_frame_equal(found[own], expected[own])
