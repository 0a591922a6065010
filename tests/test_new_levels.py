"""Effects of levels that no training row has: the formulas, and what all estimators promise."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t
from sklearn.base import clone
from slow_cases import slow_but

from sklearn_attention import (
    ConditionalKernelDensity,
    KernelAttentionRegressor,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
    _new_levels,
)
from sklearn_attention._new_levels import EffectDistribution

MODELS = {
    "average": NadarayaWatsonRegressor(bandwidth=[0.3, 0.1, 0.3]),
    "lines": LocalPolynomialRegressor(bandwidth=[0.3, 0.1, 0.3], degree=1),
    "conditional density": ConditionalKernelDensity(bandwidth="scott"),
    "kernel attention": KernelAttentionRegressor(n_folds=1, max_steps=2),
}
every_model = pytest.mark.parametrize("name", slow_but(MODELS.keys() - {"lines"}, MODELS))


def make_shops(n_shops=6, n_rows=4, effect=5.0, seed=0):
    """Sizes of parcels, shops and towns, and the price of each parcel, which shops change."""
    rng = np.random.default_rng(seed)
    shop, size = np.repeat(np.arange(n_shops), n_rows), rng.uniform(size=n_shops * n_rows)
    X = pd.DataFrame({
        "size": size,
        "shop": [f"shop {k}" for k in shop],
        "town": np.array(["Rome", "Oslo", "Lima"])[shop % 3],
    })  # fmt: skip
    y = 2 * size + effect * rng.normal(size=n_shops)[shop] + rng.normal(size=len(size))
    return X, y


def quantiles(model, X):
    return model.predict_quantiles(X, [0.05, 0.5, 0.95])


def effects_of(model, X):
    """The distribution of effects at queries of a fitted smoother."""
    return model.smoother_.errors.level_effects.distribution(model._read_rows(X))


LAMBDAS = {"shop": 0.1, "town": 0.3}


def slow_weights(model, X, cells, rows, category):
    """Weights of rows in an average at cells whose level in a category is new."""
    weights = np.exp(-(((X["size"][rows] - cells["size"]) / model.bandwidth_[0]) ** 2) / 2)
    for name in LAMBDAS.keys() - {category}:
        other = LAMBDAS[name] / (X[name].nunique() - 1)
        weights = weights * np.where(X[name][rows] == cells[name], 1 - LAMBDAS[name], other)
    return weights


def slow_variance(model, X, y, query, category):
    """The variance of the effect at a query, by a loop over levels and rows."""
    levels, squares = [], model.loo_residuals_**2
    for level in X[category].unique():
        same, others, excess = X[category] == level, X[category] != level, []
        for row in np.flatnonzero(same):
            weights = slow_weights(model, X, X.loc[row], others, category)
            error = y[row] - np.average(y[others], weights=weights)
            excess.append(error**2 - squares[row])
        near = slow_weights(model, X, query, same, category)
        levels.append(np.average(excess, weights=near) + squares[same].mean())
    return max(0.0, np.mean(levels) - squares.mean())


@pytest.mark.parametrize("category", ["shop", "town"])
def test_variance_is_what_rows_lose_without_their_level(category):
    X, y = make_shops()
    # Levels of one row, of three and of four.
    X, y = X.drop([1, 2, 3, 7]).reset_index(drop=True), np.delete(y, [1, 2, 3, 7])
    model = NadarayaWatsonRegressor(bandwidth=[0.2, *LAMBDAS.values()]).fit(X, y)
    queries = X[::7].assign(**{category: "new"})
    effects = effects_of(model, queries)
    expected = [slow_variance(model, X, y, row, category) for _, row in queries.iterrows()]
    np.testing.assert_allclose(effects.std[:, 0] ** 2, expected, rtol=1e-9)
    np.testing.assert_array_equal(effects.dof, max(X[category].nunique() - 1, 2))
    assert not effects_of(model, X).std.any()


def test_squares_of_half_widths_add_up():
    std, dof = np.array([[3.0, 0.0], [0.0, 2.0]]), np.array([[4.0, 1.0], [1.0, np.inf]])
    found = EffectDistribution(std, dof).inflate(
        np.array([[[-4.0, 1.0], [8.0, 2.0]], [[0.0, -3.0], [1.0, np.inf]]]),
        np.array([[0.0, 1.5], [0.5, 0.0]]),
        [0.1, 0.9],
    )
    wide = 3 * t.ppf(0.9, 4)
    np.testing.assert_allclose(found[0, :, 0], [-np.hypot(4, wide), np.hypot(8, wide)])
    np.testing.assert_array_equal(found[0, :, 1], [1, 2])
    np.testing.assert_allclose(found[1, :, 1], [-np.hypot(3, 2 * norm.ppf(0.9)), np.inf])
    normal = EffectDistribution(std, dof).normal_std
    np.testing.assert_allclose(normal[0, 0] * norm.ppf(0.95), 3 * t.ppf(0.95, 4))
    # An end on the other side of the center moves away as well.
    tiny = EffectDistribution(np.full((1, 1), 1e-9), np.full((1, 1), 5.0))
    crossed = tiny.inflate(np.array([[[2.0], [4.0]]]), np.array([[3.0]]), [0.05, 0.95])
    np.testing.assert_allclose(crossed[0, :, 0], [2, 4])


def test_a_missing_cell_stands_for_one_of_the_levels():
    """Effects differ from their mean by less than a level from the mean of the others."""
    X, y = make_shops(n_shops=2)
    model = NadarayaWatsonRegressor(bandwidth=[0.2, 0.1, 0.3]).fit(X, y)
    new, missing = (X[:3].assign(shop=pd.Series([cell] * 3)) for cell in ("new", None))
    of_new, of_missing = effects_of(model, new), effects_of(model, missing)
    np.testing.assert_allclose(of_missing.std, of_new.std / 2)
    assert np.isinf(of_missing.dof).all()
    np.testing.assert_array_equal(of_new.dof, 2)
    # Missing cells that rows of training have are a level like others.
    known = NadarayaWatsonRegressor(bandwidth=[0.2, 0.1, 0.3])
    known.fit(pd.concat([X, missing]), np.append(y, y[:3]))
    assert not effects_of(known, missing).std.any()


def make_table(n_shops=15, n_months=12):
    """One row for each shop and month, whose effects have deviations of 3 and 1."""
    rng = np.random.default_rng(0)
    shop, month = np.divmod(np.arange(n_shops * n_months), n_months)
    X = pd.DataFrame({
        "shop": [f"shop {k}" for k in shop],
        "month": [f"month {k}" for k in month],
        "town": [f"town {k}" for k in shop // 3],
        "copy": [f"copy {k}" for k in shop],
        "country": "here",
    })  # fmt: skip
    y = 3 * rng.normal(size=n_shops)[shop] + rng.normal(size=n_months)[month]
    return X, y + 0.3 * rng.normal(size=len(y))


@pytest.mark.parametrize("model", [NadarayaWatsonRegressor(), KernelAttentionRegressor()])
def test_effects_of_several_categories_add_up(model):
    """More that is not known never makes an interval narrower."""
    X, y = make_table()
    columns = ["shop", "month", "country"]
    model = clone(model).fit(X[columns], y)
    known = X[columns][:1]
    new = {"shop": ["shop"], "month": ["month"], "both": ["shop", "month"], "all": columns}
    widths = {
        name: np.diff(quantiles(model, known.assign(**dict.fromkeys(own, "new"))))[0].sum()
        for name, own in new.items()
    }
    assert widths["month"] < widths["shop"] < widths["both"]
    assert widths["both"] == pytest.approx(np.hypot(widths["shop"], widths["month"]), rel=0.1)
    # Of a country nobody knows how much countries differ.
    assert widths["all"] == pytest.approx(widths["both"], rel=0.05)


def test_shops_of_a_new_town_count_once():
    """They are new with it, and so is a copy of their column."""
    X, y = make_table()
    X = X[["town", "shop", "copy"]]
    model = NadarayaWatsonRegressor(bandwidth=[0.1, 0.1, 0.1]).fit(X, y)
    stds = {
        own: effects_of(model, X[:1].assign(**dict.fromkeys(own, "new"))).std[0, 0]
        for own in [("shop",), ("copy",), ("shop", "copy"), ("town",), ("town", "shop", "copy")]
    }
    assert stds["shop", "copy"] == pytest.approx(stds["shop",], rel=1e-9)
    assert stds["town", "shop", "copy"] == pytest.approx(stds["town",], rel=0.05)
    assert stds["town",] > 0.8 * stds["shop",]


def test_one_row_of_every_combination_of_many_categories():
    """Each category is left out once, however many combinations are asked about."""
    rng = np.random.default_rng(0)
    codes = rng.integers(5, size=(200, 6))
    X = pd.DataFrame(codes, columns=list("abcdef")).astype(str)
    y = codes.sum(axis=1) + 0.1 * rng.normal(size=200)
    model = NadarayaWatsonRegressor(bandwidth=np.full(6, 0.2)).fit(X, y)
    is_new = np.unravel_index(np.arange(2**6), [2] * 6)
    queries = pd.DataFrame(np.where(np.transpose(is_new), "new", "1"), columns=X.columns)
    stds = effects_of(model, queries).std[:, 0]
    alone = stds[2 ** np.arange(6)]
    # Not exactly, as rows that are near a query are others.
    assert stds[-1] == pytest.approx(np.linalg.norm(alone), rel=0.3)
    assert stds[0] == 0
    assert len(model.smoother_.errors.level_effects._left_out) == 6


def test_of_one_level_nothing_is_known():
    X, y = make_shops(n_shops=1)
    model = NadarayaWatsonRegressor(bandwidth=[0.2, 0.0, 0.0]).fit(X, y)
    assert not effects_of(model, X.assign(shop="new", town="new")).std.any()


def test_levels_of_one_row_tell_of_effects_by_their_own_errors():
    """Beside one large level nothing else does."""
    rng = np.random.default_rng(0)
    shop = np.append(np.zeros(100, int), np.arange(1, 31))
    X = pd.DataFrame({"size": rng.uniform(size=130), "shop": [f"shop {k}" for k in shop]})
    y = 4 * rng.normal(size=31)[shop] + 0.3 * rng.normal(size=130)
    model = NadarayaWatsonRegressor(bandwidth=[0.3, 0.01]).fit(X, y)
    std = effects_of(model, X[:1].assign(shop="new")).std[0, 0]
    assert 3 < std < 5


@every_model
def test_names_of_levels_do_not_choose_which_are_left_out(name, monkeypatch):
    monkeypatch.setattr(_new_levels, "_MAX_LEVELS", 3)
    X, y = make_shops()
    renamed = X["shop"].map({f"shop {k}": f"shop {(5 * k + 2) % 7}" for k in range(6)})
    query = X[:4].assign(shop="new")
    found, expected = (
        quantiles(clone(MODELS[name]).fit(table, y), query)
        for table in (X.assign(shop=renamed), X)
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)


@every_model
def test_intervals_at_new_levels_allow_for_their_effects(name):
    X, y = make_shops(n_shops=12)
    model = clone(MODELS[name]).fit(X, y)
    known, new = (np.diff(quantiles(model, Q)[:, [0, 2]]) for Q in (X, X.assign(shop="new")))
    # Effects have a deviation of 5, and 90 % of them are within 2 * 1.645 deviations.
    assert 0.6 * 2 * 1.645 * 5 < np.median(new) < 1.8 * 2 * 1.645 * 5
    assert np.median(known) < np.median(new) / 2
    np.testing.assert_allclose(
        quantiles(model, X.assign(shop="new")), quantiles(model, X.assign(shop="newer"))
    )


@every_model
def test_a_category_without_effect_adds_next_to_nothing(name):
    X, y = make_shops(n_shops=12, effect=0.0)
    model = clone(MODELS[name]).fit(X, y)
    known, new = (np.diff(quantiles(model, Q)[:, [0, 2]]) for Q in (X, X.assign(shop="new")))
    assert np.median(new) < 1.25 * np.median(known)


@every_model
def test_known_levels_are_not_touched_by_new_ones_beside_them(name):
    X, y = make_shops()
    model = clone(MODELS[name]).fit(X, y)
    expected, alone = quantiles(model, X), quantiles(model, X[4:6].assign(shop="new"))
    mixed = X.copy()
    mixed.loc[4:5, "shop"] = "new"
    found = quantiles(model, mixed)
    np.testing.assert_allclose(found[4:6], alone, rtol=1e-9)
    others = np.setdiff1d(np.arange(len(X)), [4, 5])
    np.testing.assert_allclose(found[others], expected[others], rtol=1e-12)


@every_model
def test_what_is_computed_is_kept_until_the_next_fit(name, monkeypatch):
    X, y = make_shops()
    model, query = clone(MODELS[name]).fit(X, y), X[:4].assign(shop="new")
    expected, calls = quantiles(model, query), []
    compute = _new_levels.LevelEffects._leave_levels_out
    monkeypatch.setattr(
        _new_levels.LevelEffects,
        "_leave_levels_out",
        lambda effects, category: calls.append(category) or compute(effects, category),
    )
    np.testing.assert_array_equal(quantiles(model, query), expected)
    assert not calls
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(quantiles(loaded, query), expected, rtol=1e-12)
    assert calls == [1]
    model.fit(X, 10 * y)
    np.testing.assert_allclose(quantiles(model, query), 10 * expected, rtol=1e-3)
    assert calls == [1, 1]


@every_model
def test_effects_follow_units_of_any_size(name):
    X, y = make_shops()
    query = X[:4].assign(shop="new")
    expected = quantiles(clone(MODELS[name]).fit(X, y), query)
    for unit in (1e-150, 1e150):
        found = quantiles(clone(MODELS[name]).fit(X, unit * y), query)
        np.testing.assert_allclose(found / unit, expected, rtol=1e-3)


@pytest.mark.parametrize(
    "name", slow_but(["average", "kernel attention"], ["average", "lines", "kernel attention"])
)
def test_each_output_has_effects_of_its_own(name):
    X, y = make_shops()
    both = np.column_stack([y, 100 * np.roll(y, 1)])
    query = X[:4].assign(shop="new")
    model = clone(MODELS[name]).fit(X, both)
    found = quantiles(model, query)
    assert found.shape == (4, 3, 2)
    if name != "kernel attention":  # which learns one kernel for all outputs
        for output in range(2):
            alone = quantiles(clone(model).fit(X, both[:, output]), query)
            np.testing.assert_allclose(found[:, :, output], alone, rtol=1e-9)
    assert (np.diff(found[:, [0, 2]], axis=1)[:, 0, 1] > 10).all()


@pytest.mark.parametrize("degree", slow_but([0], [0, "auto"]))
def test_what_a_smoother_says_of_a_new_level_agrees(degree):
    X, y = make_shops(n_shops=9)
    model = LocalPolynomialRegressor(bandwidth=[0.3, 0.1, 0.3], degree=degree).fit(X, y)
    queries = X[:5].assign(shop="new")
    effects, levels = effects_of(model, queries), [0.05, 0.3, 0.5, 0.8, 0.95]
    found = model.predict_quantiles(queries, levels)
    below = model.predict_cdf(queries[:2], found[:2])
    np.testing.assert_allclose(below, [levels, levels], atol=0.003)
    wide = np.abs(found[:, [0, 4]] - found[:, [2]])
    half_widths = effects.std * t.ppf(0.95, effects.dof)
    assert ((half_widths < wide) & (wide < 1.25 * half_widths)).all()
    # A standard deviation, times the normal quantile, is about half an interval.
    predicted, std = model.predict(queries, return_std=True)
    interval = model.predict_interval(queries, coverage=0.9)
    np.testing.assert_allclose(norm.ppf(0.95) * std, np.diff(interval)[:, 0] / 2, rtol=0.25)
    assert ((interval[:, 0] < predicted) & (predicted < interval[:, 1])).all()
    # The curve of a new shop is as uncertain as its effect.
    band = np.diff(model.confidence_band(queries, 0.9))[:, 0] / 2
    assert (half_widths[:, 0] < band).all()
    assert (band < 1.1 * norm.ppf(0.95) * std).all()
    low, high = model.predict_cdf(queries[:1], [-1e9, 1e9])[0]
    assert (low, high) == (0, 1)
    # Student's t has long tails.
    tails = [1e-4, 1e-3, 0.999, 0.9999]
    found = model.predict_quantiles(queries[:1], tails)
    np.testing.assert_allclose(model.predict_cdf(queries[:1], found)[0], tails, atol=2e-5)


def test_what_a_conditional_density_says_of_a_new_level_agrees():
    X, y = make_shops(n_shops=12)
    model = clone(MODELS["conditional density"]).fit(X, y)
    query = X[:2].assign(shop="new")
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    found = model.predict_quantiles(query, levels)
    np.testing.assert_allclose(model.predict_cdf(query, found), [levels, levels], atol=1e-6)
    grid = np.linspace(-40, 40, 2001)
    density = np.exp(model.score_samples(query[:1].iloc[np.zeros(2001, int)], grid))
    below = [np.trapezoid(np.where(grid <= q, density, 0), grid) for q in found[0]]
    np.testing.assert_allclose(below, levels, atol=0.02)
    drawn = model.sample(query, 4000, random_state=0)
    np.testing.assert_allclose(np.quantile(drawn, levels, axis=1).T, found, atol=0.6)
