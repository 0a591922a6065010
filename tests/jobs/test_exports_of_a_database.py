"""Patients as a database returns them: all columns are objects, some cells are missing."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_regressor

from sklearn_attention import (
    KernelAttentionClassifier,
    KernelAttentionRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    TransformerClassifier,
    TransformerRegressor,
)

SMALL = {
    "d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 1, "baseline": False,
    "random_state": 0,
}  # fmt: skip
QUICK = {"n_folds": 1, "max_steps": 2, "random_state": 0}
EACH = [
    NadarayaWatsonRegressor("gaussian", bandwidth=0.5),
    KernelAttentionClassifier(**QUICK),
    TransformerRegressor(**SMALL),
    NadarayaWatsonClassifier("gaussian", bandwidth=0.5),
    KernelAttentionRegressor(**QUICK),
    TransformerClassifier(**SMALL),
]
# Of each kind, and one by which numbers are predicted, and classes.
QUICKLY = EACH[:3]


def export():
    """120 patients: age, pulse, whether they smoke, month, cost, outcome and weight."""
    rng = np.random.default_rng(0)
    age, pulse = rng.integers(20, 90, 120), rng.normal(70, 9, 120).round(1)
    cost = pulse * 3 + age + rng.normal(size=120)
    table = {
        "age": age,
        "pulse": [*map(Decimal, map(str, pulse))],
        "smokes": age % 2 == 0,
        "month": pd.period_range("2015-01", periods=120, freq="M"),
        "cost": [*map(Decimal, map(str, cost.round(2)))],
        "outcome": np.where(cost > np.median(cost), "ill", "well"),
        "weight": "1.5",
    }
    frame = pd.DataFrame(table).astype(object)
    frame.loc[3, ["age", "smokes"]] = None
    frame.loc[4, ["pulse", "smokes"]] = pd.NA
    frame.loc[[7, 8], ["cost", "outcome"]] = pd.NA
    frame.loc[9, "weight"] = "unknown"
    return frame


def days(months):
    """Days since the first."""
    starts = months.astype("period[M]").dt.start_time
    return (starts - starts.min()).dt.days


# What errors say, and a table without what they name.
REMEDIES = {
    "y has missing": lambda table: table[table["y"].notna()],
    "sample_weight has texts, such as 'unknown'": lambda table: table.assign(
        weight=pd.to_numeric(table["weight"], errors="coerce")
    ),
    "sample_weight has missing values": lambda table: table.fillna({"weight": 0.0}),
    "X has dates or times in column 'month', such as Period('2015-01', 'M')": (
        lambda table: table.assign(month=days(table["month"]))
    ),
    "Input X contains NaN": lambda table: table[table[NAMES].notna().all(axis=1)],
}
NAMES = ["age", "pulse", "smokes", "month"]


@pytest.mark.parametrize(
    "estimator",
    [pytest.param(each, marks=[] if each in QUICKLY else [pytest.mark.slow]) for each in EACH],
    ids=lambda own: type(own).__name__,
)
def test_remedies_are_followed_until_the_rest_is_read(estimator):
    table = export().rename(columns={"cost" if is_regressor(estimator) else "outcome": "y"})
    said = []
    while not said or said[-1] is not None:
        X, y, weight = table[NAMES], table["y"], table["weight"]
        try:
            found, told = estimator.fit(X, y, weight).predict(X), None
        except ValueError as error:
            told = next(words for words in REMEDIES if words in str(error))
            table = REMEDIES[told](table)
        said.append(told)
    reads_missing = "NadarayaWatson" not in type(estimator).__name__
    assert sorted(map(str, said[:-1])) == sorted([*REMEDIES][: 4 if reads_missing else 5])
    assert len(table) == (118 if reads_missing else 116)

    numbers = X.mask(X.isna(), np.nan).astype(float)
    np.testing.assert_array_equal(estimator.predict(numbers), found)
    np.testing.assert_array_equal(estimator.fit(numbers, y, weight).predict(X), found)
    assert np.isfinite(estimator.score(X, y, weight))
    with pytest.raises(ValueError, match="y has missing"):
        estimator.score(X, y.where(y.index > 9, pd.NA))
