"""Growth of errors where rows are few or far, against fits without rows and regions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from smoothing_cases import CASES, refit_without, take

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.smoothing import _error_growth, _remoteness
from sklearn_attention.smoothing._error_growth import regions
from sklearn_attention.smoothing._local_errors import widened
from sklearn_attention.smoothing._remoteness import one_sided


def growth_of(model):
    return model.smoother_.growth


def wave(n=80, seed=0, **options):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(size=n))
    y = np.sin(7 * x) + 0.2 * rng.normal(size=n)
    return LocalPolynomialRegressor(bandwidth=0.08, **options).fit(x[:, None], y)


def at(model, queries):
    smoother = model.smoother_
    return smoother.growth.at(queries, smoother.local_rows(queries).smoother)


@pytest.mark.parametrize("kind", ["plain-1", "weights-0", "weights-1", "absent-2", "frame-1"])
def test_variances_are_those_of_fits_without_each_row(kind, monkeypatch):
    ((_, model, X, y, weight),) = (case for case in CASES if case[0] == kind)
    # Of the distance, which other tests are about, nothing.
    monkeypatch.setattr(_error_growth, "_rates", lambda smoother, rows, usual: np.zeros((2, 1)))
    model = clone(model).set_params(empty="nan").fit(X, y, weight)
    counts = np.ones(len(y)) if weight is None else weight
    kept = np.flatnonzero(counts)
    for i in kept[:4]:
        rest = np.flatnonzero(np.arange(len(y)) != i)
        other = refit_without(model, X, y, i, weight)
        effects = other.smoother_matrix(take(X, [i]))[0]
        some = counts[rest] > 0
        unit = counts[kept].mean()
        fit = np.sum(effects[some] ** 2 * unit / counts[rest][some])
        noise = 1.0
        if weight is not None:
            averages = clone(model).set_params(degree=0).fit(X, y, weight)
            near = refit_without(averages, X, y, i, weight).smoother_matrix(take(X, [i]))[0]
            noise = near[some] @ (unit / counts[rest][some])
        found = growth_of(model).at_rows[i, 0]
        np.testing.assert_allclose(found, np.sqrt(noise + fit), rtol=1e-6)


def test_among_rows_there_is_the_variance_of_the_fit_alone():
    model = wave()
    queries = model.keys_[10:60:7]
    expected = np.sqrt(1 + (model.smoother_matrix(queries) ** 2).sum(axis=1))
    np.testing.assert_allclose(at(model, queries)[:, 0], expected, rtol=1e-9)


@pytest.mark.slow
def test_rates_are_those_at_which_errors_in_regions_are_as_large():
    model = wave()
    smoother, found = model.smoother_, growth_of(model)
    left_out, sizes, squares, weights = np.abs(model.loo_residuals_), [], [], []
    scaled = left_out / found.at_rows[:, 0]
    wide = NadarayaWatsonRegressor(bandwidth=0.08).fit(model.keys_, scaled**2)
    wide = wide.smoother_
    wide = wide.replace(factor=widened(smoother, 20).factor)
    variances = np.array(
        [
            np.sum(refit_without(model, model.keys_, model.values_, i)
                   .smoother_matrix(model.keys_[[i]]) ** 2)
            for i in range(80)
        ]
    )  # fmt: skip
    scaled = left_out / np.sqrt(1 + variances)
    spreads = np.sqrt(wide.average(model.keys_, scaled**2))
    usual = np.quantile(scaled / spreads, 0.9)
    places = model.keys_ / 0.08
    limit = 4 * np.median(np.sort(np.abs(places - places.T), axis=1)[:, 1])
    for region in regions(places, model.values_[:, None]):
        left = np.setdiff1d(np.arange(80), region)
        other = clone(model).fit(model.keys_[left], model.values_[left])
        for i in region:
            beyond = np.abs(places[i] - places[left]).min() - limit
            if beyond > 0:
                effects = other.smoother_matrix(model.keys_[[i]])
                error = model.values_[i] - other.predict(model.keys_[[i]])[0]
                size = abs(error) / np.sqrt(1 + np.sum(effects**2)) / spreads[i] / usual
                sizes.append(beyond), squares.append((size**2 - 1) / beyond**2)
                weights.append(one_sided(places[[i]], places[left])[0])
    squares, weights = np.array(squares), np.array(weights)
    for rate, own in zip(found._rates[:, 0], (1 - weights, weights), strict=True):
        held = np.sum(own * (squares <= rate * (1 + 1e-6))) / own.sum()
        below = np.sum(own * (squares < rate * (1 - 1e-6))) / own.sum()
        assert below < 0.9 <= held + 1e-9
    assert found._rates[1] >= 1 / max(sizes) ** 2


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_far_away_growth_is_in_proportion_to_the_distance(degree):
    model = wave(degree=degree)
    found = growth_of(model)
    noise, fit, model_errors = found.parts(np.array([[1e3], [2e3]]), np.zeros((2, 80)))
    assert np.sqrt(model_errors[1] / model_errors[0]) == pytest.approx(2, rel=1e-2)
    assert (noise == 1).all()
    assert (fit == 0).all()


def test_growth_is_continuous_and_larger_in_gaps_and_outside():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 0.4, 60), rng.uniform(0.7, 1, 40)])
    model = LocalPolynomialRegressor(bandwidth=0.06)
    model.fit(x[:, None], np.sin(9 * x) + 0.2 * rng.normal(size=100))
    grid = np.linspace(-0.5, 1.5, 4001)[:, None]
    growth = np.sqrt(growth_of(model).parts(grid, np.zeros((len(grid), 100)))[2][:, 0])
    assert np.abs(np.diff(growth)).max() < 0.02 * growth.max()
    here = np.interp([0.2, 0.55, 0.85, -0.3, 1.3], grid[:, 0], growth)
    assert here[0] == here[2] == 1
    assert here[[1, 3, 4]].min() > 1.5


def test_of_curves_that_are_easily_followed_errors_grow_less():
    x = np.linspace(0, 1, 60)
    noise = 0.1 * np.random.default_rng(0).normal(size=60)
    rates = [
        growth_of(
            LocalPolynomialRegressor(bandwidth=0.2).fit(x[:, None], curve + noise)
        )._rates[1, 0]
        for curve in (x, np.sin(9 * x))
    ]
    assert rates[1] > 5 * rates[0]


def test_categories_alone_have_no_distance():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"color": rng.choice(list("rgb"), 40)})
    model = NadarayaWatsonRegressor(bandwidth=[0.2]).fit(frame, rng.normal(size=40))
    smoother = model.smoother_
    effects = smoother.effects(model.keys_[:5])
    growth = smoother.growth.at(model.keys_[:5], effects)[:, 0]
    np.testing.assert_allclose(growth, np.sqrt(1 + (effects**2).sum(axis=1)))


def test_regions_are_shares_of_the_rows_that_do_not_depend_on_their_order():
    places, values = np.split(np.random.default_rng(0).normal(size=(50, 3)), [2], axis=1)
    found = list(regions(places, values))
    assert {len(rows) for rows in found} == {5, 8, 10, 15, 20, 25}
    order = np.random.default_rng(1).permutation(50)
    for rows, moved in zip(found, regions(places[order], values[order]), strict=True):
        np.testing.assert_array_equal(order[moved], rows)
    for rows, same in zip(found, regions(places[:, ::-1], values), strict=True):
        np.testing.assert_array_equal(rows, same)
    # Of a grid values tell the columns from each other.
    grid = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), axis=-1).reshape(-1, 2)
    turned = regions(grid[:, ::-1], grid[:, :1])
    for region, same in zip(regions(grid, grid[:, :1]), turned, strict=True):
        np.testing.assert_array_equal(region, same)
    assert list(regions(places[:8], values[:8])) == []


@pytest.mark.parametrize("bandwidth", [0.5, AdaptiveBandwidth(8)])
def test_samples_of_rows_tell_nearly_the_same(data, bandwidth, monkeypatch):
    X, y = data
    X, y = np.tile(X, (4, 1)), np.tile(y, 4)
    X += 0.1 * np.random.default_rng(0).normal(size=X.shape)
    model = LocalPolynomialRegressor(bandwidth=bandwidth).fit(X, y)
    whole = at(model, 3 * X[:9])
    monkeypatch.setattr(_error_growth, "_MOST_ROWS", 80)
    monkeypatch.setattr(_error_growth, "_MOST_PAIRS", 160 * 100)
    monkeypatch.setattr(_remoteness, "_MOST_DIRECTIONS", 40)
    sampled = at(clone(model).fit(X, y), 3 * X[:9])
    np.testing.assert_allclose(np.log(sampled), np.log(whole), atol=1.1)
    assert not np.array_equal(sampled, whole)
