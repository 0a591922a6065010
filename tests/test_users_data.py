"""Every estimator on data as users have it, with its defaults where they take no time."""

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.base import clone, is_classifier
from slow_cases import slow_but
from users_data import SERIES, TABLES, days_with_a_feature

from sklearn_attention import (
    ConditionalKernelDensity,
    KernelAttentionClassifier,
    KernelAttentionRegressor,
    KernelForecaster,
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonCV,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
    Training,
    TransformerClassifier,
    TransformerForecaster,
    TransformerRegressor,
)

pytestmark = [
    pytest.mark.usefixtures("few_trees", "few_rates"),
    # Searches warn of constant columns and few rows, networks of steps that do not suffice.
    pytest.mark.filterwarnings("ignore:bandwidth="),
    pytest.mark.filterwarnings("ignore:The validation loss was still falling"),
    pytest.mark.filterwarnings("ignore:transformer_weight_ is"),
]

NETWORK = {"d_model": 8, "n_heads": 2, "n_layers": 1, "training": Training(max_steps=3)}
OF_TABLES = {
    "average": NadarayaWatsonRegressor(),
    "lines": LocalPolynomialRegressor(degree=1),
    "votes": NadarayaWatsonClassifier(),
    "best average": NadarayaWatsonCV(["gaussian"], [0.3, 1.0]),
    "best line": LocalPolynomialCV(["gaussian"], [0.5, 1.0], degrees=[0, 1]),
    "density": ProductKernelDensity(bandwidth="scott"),
    "conditional density": ConditionalKernelDensity(bandwidth="scott"),
    "kernel attention": KernelAttentionRegressor(n_folds=2),
    "classes by kernel attention": KernelAttentionClassifier(n_folds=2),
    "regressor": TransformerRegressor(**NETWORK),
    "classifier": TransformerClassifier(**NETWORK),
}
OF_SERIES = {
    "analogs": KernelForecaster(3, lookback=6),
    "forecaster": TransformerForecaster(3, candidates=["classical", "ridge"]),
}
QUICK = {
    ("average", "readings"), ("votes", "shops"), ("density", "survey"),
    ("best line", "readings"), ("kernel attention", "orders"),
}  # fmt: skip
BOTH = [
    (name, table) for name in OF_TABLES for table in TABLES
    # Those that compare candidates have none for categories.
    if not (name.startswith("best") and table in ("shops", "survey"))
]  # fmt: skip


def data_of(name, table):
    """Of smoothers, which refuse missing numbers, the complete rows."""
    X, y = TABLES[table]()
    kind = type(OF_TABLES[name]).__name__
    if not kind.startswith(("KernelAttention", "Transformer")):
        complete = X.notna().all(axis=1).to_numpy()
        X, y = X[complete], y[complete]
    return X, np.where(y > np.median(y), "high", "low") if kind.endswith("Classifier") else y


def fit(name, X, y):
    return clone(OF_TABLES[name]).fit(X, y)


def answer(model, X, y):
    """Numbers that the model says of rows."""
    if hasattr(model, "score_samples"):
        takes_y = isinstance(model, ConditionalKernelDensity)
        return model.score_samples(X, y) if takes_y else model.score_samples(X)
    return model.predict_proba(X) if is_classifier(model) else model.predict(X)


@pytest.mark.parametrize(("name", "table"), slow_but(QUICK, BOTH))
def test_a_table_is_learned_in_any_form_and_unit(name, table):
    X, y = data_of(name, table)
    model = fit(name, X, y)
    found = answer(model, X, y)
    assert np.isfinite(found).all()
    if hasattr(model, "predict"):
        # More is told than by the mean of all, or by the class of most.
        usual = 0.6 if is_classifier(model) else 0.1
        assert table == "orders" or model.score(X, y) > usual
    again = X.reset_index(drop=True)
    np.testing.assert_array_equal(answer(model, again, y), found)
    rows = polars.from_pandas(again)
    np.testing.assert_allclose(answer(fit(name, rows, y), rows, y), found, rtol=1e-6, atol=1e-9)
    if hasattr(model, "predict_interval"):
        lower, upper = model.predict_interval(X).T
        assert (lower <= found + 1e-9).all()
        assert (found <= upper + 1e-9).all()
        assert ((lower <= y) & (y <= upper)).mean() > 0.75
        scaled = fit(name, X, 1000 * y - 7).predict_interval(X)
        expected = 1000 * np.column_stack([lower, upper]) - 7
        np.testing.assert_allclose(scaled, expected, rtol=0, atol=0.1 * np.std(y))


@pytest.mark.parametrize(
    ("name", "series"),
    slow_but(
        [
            *(("analogs", series) for series in SERIES),
            ("forecaster", "a_machine_that_stands_still"),
        ],
        [(name, series) for name in OF_SERIES for series in SERIES],
    ),
)
def test_a_series_goes_on_in_its_own_calendar(name, series):
    data = SERIES[series]()
    model = clone(OF_SERIES[name]).fit(data)
    found = model.predict()
    assert np.isfinite(np.asarray(found)).all()
    steps = data.index
    if isinstance(steps, pd.PeriodIndex):
        expected = pd.period_range(steps[-1] + 1, periods=3)
    else:
        expected = pd.date_range(steps[-1], periods=4, freq=steps.freq)[1:]
    assert found.index.equals(expected)
    ends = [np.asarray(model.predict_quantiles(quantiles=[q])) for q in (0.05, 0.95)]
    assert (ends[0] <= ends[1]).all()
    moved = clone(OF_SERIES[name]).fit(1000 * data + 5e5).predict()
    size = np.asarray(data).std(axis=0)
    np.testing.assert_allclose((np.asarray(moved) - 5e5) / 1000, found, atol=0.3 * size.max())


@pytest.mark.parametrize("name", OF_SERIES)
def test_a_feature_that_is_known_ahead_shows_in_the_forecast(name):
    y, X, ahead = days_with_a_feature()
    ahead = ahead.assign(promotion=[0.0, 1.0, 0.0])
    model = clone(OF_SERIES[name])
    if name == "forecaster":
        model.set_params(candidates=["classical", "features"])
    model.fit(X, y)
    effect = (model.predict(ahead) - model.predict(0 * ahead)).to_numpy()
    assert 10 < effect[1] < 30
    np.testing.assert_allclose(effect[[0, 2]], 0, atol=2)
