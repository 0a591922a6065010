"""A chain forecasts the sales of a shop that opens tomorrow, by those of twenty other shops."""

import numpy as np
import pandas as pd
import pytest
from slow_cases import slow_but

from sklearn_attention import (
    ConditionalKernelDensity,
    KernelAttentionClassifier,
    KernelAttentionRegressor,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)

REGRESSORS = [
    KernelAttentionRegressor(n_folds=1, max_steps=5),
    NadarayaWatsonRegressor(bandwidth="scott"),
    LocalPolynomialRegressor(bandwidth="scott", degree=1),
    ConditionalKernelDensity(bandwidth="scott"),
]


def months_of_shops(seed):
    """Eight months of 25 shops, of which the last five open; shops differ by 10."""
    rng = np.random.default_rng(seed)
    shop, size = np.repeat(np.arange(25), 8), rng.uniform(size=200)
    typical = 50 + 5 * np.sin(4 * size) + 10 * rng.normal(size=25)[shop]
    X = pd.DataFrame({"size": size, "shop": [f"shop {k}" for k in shop]})
    return X, typical + rng.normal(size=200), shop >= 20


@pytest.mark.parametrize(
    "model", slow_but(REGRESSORS[:2], REGRESSORS), ids=lambda model: type(model).__name__
)
def test_the_interval_of_a_new_shop_is_as_wide_as_shops_differ(model):
    covered, widths = [], {"known": [], "new": []}
    for seed in range(2):
        X, sales, opens = months_of_shops(seed)
        model.fit(X[~opens], sales[~opens])
        lower, upper = model.predict_quantiles(X[opens], [0.05, 0.95]).T
        covered += [*((lower < sales[opens]) & (sales[opens] < upper))]
        widths["new"].append(np.mean(upper - lower))
        widths["known"].append(np.diff(model.predict_quantiles(X[:30], [0.05, 0.95])).mean())
    assert 0.75 < np.mean(covered) < 1
    assert 24 < np.mean(widths["new"]) < 44  # 33 if all were known but which shop it is
    assert np.mean(widths["known"]) < 15


def test_a_shop_that_nobody_wrote_down_is_one_of_the_known_ones():
    X, sales, opens = months_of_shops(0)
    model = NadarayaWatsonRegressor(bandwidth="scott").fit(X[~opens], sales[~opens])
    blank = X[~opens].assign(shop=pd.Series([None] * len(X), dtype="str"))
    lower, upper = model.predict_interval(blank, coverage=0.9).T
    assert 0.85 < np.mean((lower < sales[~opens]) & (sales[~opens] < upper)) < 0.99
    # Of two sexes a missing one is in between, not far beyond both.
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"sex": rng.choice(["m", "f"], 100), "age": rng.uniform(20, 60, 100)})
    height = 165 + 13 * (people["sex"] == "m") + 4 * rng.normal(size=100)
    model = NadarayaWatsonRegressor(bandwidth="scott").fit(people, height)
    blank = people.assign(sex=pd.Series([None] * 100, dtype="str"))
    lower, upper = model.predict_interval(blank, coverage=0.9).T
    assert 0.85 < np.mean((lower < height) & (height < upper))
    assert np.mean(upper - lower) < 13 + 2 * 4 * 1.645 + 8


@pytest.mark.slow
def test_probabilities_of_new_mothers_are_not_those_of_a_known_one():
    """The column that names the mother does no harm to those who are not in it."""
    rng = np.random.default_rng(9)
    effects, losses = 2 * rng.normal(size=300), []
    mother = np.repeat(np.arange(300), 4)
    X = pd.DataFrame({"age": rng.normal(size=1200), "mother": [f"m{k}" for k in mother]})
    odds = 3 * (X["age"] + effects[mother])
    y = (rng.uniform(size=1200) < 1 / (1 + np.exp(-odds))).to_numpy()
    new = mother >= 200
    for columns in (["age", "mother"], ["age"]):
        for boosting in ("auto", None):
            model = KernelAttentionClassifier(boosting=boosting).fit(X[columns][~new], y[~new])
            p = model.predict_proba(X[columns][new])[:, 1]
            losses.append(-np.mean(np.log(np.where(y[new], p, 1 - p))))
    assert max(losses[:2]) < min(losses[2:]) + 0.05
