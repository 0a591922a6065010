"""Growth of errors where rows are few or far, against fits without rows and regions."""

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import toeplitz
from sklearn.base import clone
from smoothing_cases import CASES, refit_without, take

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.kernels import AitchisonAitken, ProductKernel
from sklearn_attention.smoothing import _error_growth
from sklearn_attention.smoothing._error_growth import (
    Noise,
    Remoteness,
    autocorrelation,
    autoregression,
    one_sided,
    regions,
    variance_around,
)
from sklearn_attention.smoothing._local_errors import widened


def growth_of(model):
    return model.smoother_.growth


def wave(n=80, seed=0, **options):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(size=n))
    y = np.sin(7 * x) + 0.2 * rng.normal(size=n)
    return LocalPolynomialRegressor(bandwidth=0.08, **options).fit(x[:, None], y)


def at(model, queries):
    smoother = model.smoother_
    return smoother.growth.at(queries, smoother.local_rows(queries).effects)


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
    monkeypatch.setattr(_error_growth, "_MOST_DIRECTIONS", 40)
    sampled = at(clone(model).fit(X, y), 3 * X[:9])
    np.testing.assert_allclose(np.log(sampled), np.log(whole), atol=1.1)
    assert not np.array_equal(sampled, whole)


def test_distances_are_beyond_four_times_the_median():
    rows = np.array([0.0, 1.0, 3.0, 6.0, 6.5])[:, None]
    remoteness = Remoteness(rows)
    assert remoteness.usual == 4.0  # of 1, 1, 2, .5 and .5
    np.testing.assert_allclose(
        remoteness.beyond(np.array([[-9.0], [2.0], [12.0]])), [5, 0, 1.5]
    )
    np.testing.assert_array_equal(remoteness.of()[0], 0)


def test_sides():
    rows = np.array([[0.0], [1.0]])
    found = one_sided(np.array([[0.5], [0.25], [3.0], [-1.0], [0.0]]), rows)
    # Two rows of weights one over squared distances.
    np.testing.assert_allclose(found, [0, 0.8, 1, 1, 1], atol=1e-12)
    circle = np.stack([np.cos(np.arange(8) * np.pi / 4), np.sin(np.arange(8) * np.pi / 4)], 1)
    assert one_sided(np.zeros((1, 2)), circle)[0] < 1e-12
    assert one_sided(np.array([[30.0, 0]]), circle)[0] > 0.99


@pytest.mark.parametrize("places", [np.zeros((9, 1)), np.zeros((1, 2)), np.zeros((5, 0))])
def test_rows_in_one_place_are_as_far_as_anything(places):
    remoteness = Remoteness(places)
    for distances, sides in (remoteness.of(), remoteness.of(places[:3])):
        np.testing.assert_array_equal(distances, 0)
        assert (sides >= 0).all()


def test_rows_of_weight_0_are_no_rows():
    x = np.arange(10.0)[:, None]
    model = LocalPolynomialRegressor(bandwidth=2.0).fit(x, x[:, 0], 1.0 * (x[:, 0] < 8))
    remoteness = model.smoother_.remoteness_of_rows
    np.testing.assert_allclose(remoteness.beyond(np.array([[9.0]]) / 2), [0.0])
    np.testing.assert_allclose(remoteness.beyond(np.array([[17.0]]) / 2), [5 - 2])


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_windows_have_many_rows_everywhere(kernel):
    x = np.random.default_rng(0).uniform(size=(200, 1))
    model = NadarayaWatsonRegressor(kernel, bandwidth=0.05).fit(x, x[:, 0])
    wide = widened(model.smoother_, 20)
    weights = wide.weights(np.array([[0.5], [1.0], [1.3], [2.0], [10.0], [1e4]]))
    assert (1 / (weights**2).sum(axis=1)).min() > 8
    # Among rows windows are as they are for all.
    alike = wide.replace(remoteness=None).weights(x[:5])
    np.testing.assert_allclose(wide.weights(x[:5]), alike, rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "n_columns"), [("gaussian", 2), ("periodic", 0), (ProductKernel("tricube"), 2)]
)
def test_distances_are_along_what_the_kernel_falls_along(data, kernel, n_columns):
    X, y = data
    model = NadarayaWatsonRegressor(kernel, bandwidth=[0.8, 2.0]).fit(X, y)
    found = model.smoother_.places(X)
    np.testing.assert_allclose(found, (X / [0.8, 2.0])[:, :n_columns])
    assert np.isfinite(model.predict_interval(3 * X[:5])).all()


def test_codes_of_categories_have_no_distance(data):
    X, y = data
    product = ProductKernel(
        [("x", "gaussian", [0]), ("level", AitchisonAitken(n_levels=3, lam=0.3), [1])]
    )
    codes = np.column_stack([X[:, 0], np.arange(40) % 3])
    model = NadarayaWatsonRegressor(product, bandwidth=[0.5, 1.0]).fit(codes, y)
    assert model.smoother_.places(codes).shape == (40, 1)


def autoregressive(coefficients, n, seed=0):
    shocks, found = np.random.default_rng(seed).normal(size=n + 200), np.zeros(n + 200)
    for t in range(len(coefficients), n + 200):
        found[t] = shocks[t] + sum(c * found[t - k] for k, c in enumerate(coefficients, 1))
    return found[200:]


@pytest.mark.parametrize("phi", [0.6, -0.4, 0.95])
def test_autocorrelation_of_one_lag_is_its_power(phi):
    expected = phi ** np.arange(1200.0)
    np.testing.assert_allclose(autocorrelation(np.array([phi]), 1200), expected, atol=1e-9)
    np.testing.assert_allclose(autocorrelation(np.array([phi]), 3), expected[:3], atol=1e-9)


def test_autocorrelations_of_two_lags_follow_yule_and_walker():
    a, b = 0.5, -0.3
    found = autocorrelation(np.array([a, b]), 30)
    assert found[0] == 1
    np.testing.assert_allclose(found[1], a / (1 - b))
    np.testing.assert_allclose(found[2:], a * found[1:-1] + b * found[:-2], atol=1e-12)


@pytest.mark.parametrize("coefficients", [[], [0.6], [0.5, -0.3]])
def test_autoregressions_are_found_with_their_number_of_lags(coefficients):
    found = autoregression(autoregressive(coefficients, 2000), 6)
    assert len(coefficients) <= len(found) <= len(coefficients) + 1
    np.testing.assert_allclose(found[: len(coefficients)], coefficients, atol=0.06)


def test_coefficients_solve_yule_and_walker():
    series = autoregressive([0.5, -0.3, 0.2, 0.3], 400)
    found = autoregression(series, 4)
    n, k = len(series), len(found)
    covariances = np.array([series[: n - lag] @ series[lag:] / n for lag in range(k + 1)])
    expected = np.linalg.solve(toeplitz(covariances[:-1]), covariances[1:])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert k == 4


def test_of_nothing_nothing_is_learned():
    assert len(autoregression(np.zeros(20), 5)) == 0
    assert len(autoregression(np.ones(4), 3)) <= 1


def test_variances_of_sums_are_quadratic_forms():
    rng = np.random.default_rng(0)
    effects, variances = rng.normal(size=(4, 30)), rng.uniform(0.5, 2, 30)
    coefficients = np.array([0.5, -0.3]), np.zeros(0)
    covariance = [
        np.sqrt(np.outer(variances, variances)) * toeplitz(autocorrelation(own, 30))
        for own in coefficients
    ]
    expected = np.stack([np.diag(effects @ c @ effects.T) for c in covariance], axis=1)
    found = Noise(variances, coefficients).of_sums(effects)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(Noise(variances).of_sums(effects), expected[:, 1:], rtol=1e-9)
    some = rng.uniform(size=30) > 0.4
    for noise in (Noise(variances, coefficients), Noise(variances)):
        np.testing.assert_allclose(
            noise.of_sums(effects[:, some], some), noise.of_sums(effects * some), rtol=1e-9
        )


def test_draws_have_the_covariance():
    variances = np.array([1.0, 4.0, 1.0, 1.0])
    noise = Noise(variances, (np.array([0.6]), np.zeros(0)))
    drawn = noise.draws(4000, np.random.RandomState(0))
    assert drawn.shape == (2, 4, 4000)
    root = np.sqrt(np.outer(variances, variances))
    for own, rho in zip(drawn, (0.6, 0.0), strict=True):
        expected = root * toeplitz(rho ** np.arange(4.0))
        np.testing.assert_allclose(np.cov(own), expected, atol=0.3)


def test_variance_around_is_one_over_the_mean_weight(data):
    X, y = data
    weight = np.random.default_rng(0).uniform(0.3, 3, 40)
    model = LocalPolynomialRegressor(bandwidth=0.4).fit(X, y, weight)
    smoother, equal = model.smoother_, NadarayaWatsonRegressor(bandwidth=0.4)
    found = variance_around(smoother, X[:5], smoother.noise.variances)[:, 0]
    expected = weight.mean() / equal.fit(X, weight).predict(X[:5])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    without = LocalPolynomialRegressor(bandwidth=0.4).fit(X, y).smoother_
    np.testing.assert_array_equal(variance_around(without, X[:5], np.ones(40)), np.ones((5, 1)))


@pytest.mark.slow
@pytest.mark.parametrize(("phi", "low", "high"), [(0.6, 0.3, 0.85), (0.0, -0.3, 0.3)])
def test_a_gap_tells_that_noise_of_neighbours_may_be_alike(phi, low, high):
    x = np.linspace(0, 1, 200)
    y = np.sin(5 * x) + 0.5 * autoregressive([phi], 200)
    model = LocalPolynomialRegressor(gap=5).fit(x[:, None], y)
    (coefficients,) = model.smoother_.noise.autoregressions
    assert low < autocorrelation(coefficients, 2)[1] < high
    alone = LocalPolynomialRegressor(bandwidth=0.1).fit(x[:, None], y)
    assert alone.smoother_.noise.autoregressions == (None,)
