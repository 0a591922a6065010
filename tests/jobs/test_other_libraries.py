"""Estimators in the libraries that their users have beside scikit-learn."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline

from sklearn_attention import (
    KernelAttentionRegressor,
    NadarayaWatsonRegressor,
    TransformerForecaster,
)
from sklearn_attention.forecasting import mase, naive_scale

# SHAP takes seconds to load, and hands over arrays without names, which scikit-learn warns of.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def patients():
    return load_diabetes(return_X_y=True, as_frame=True)


def test_mapie_calibrates_intervals(patients):
    from mapie.regression import SplitConformalRegressor

    X, y = patients
    model = KernelAttentionRegressor(max_steps=3, n_folds=1).fit(X[:200], y[:200])
    conformal = SplitConformalRegressor(model, confidence_level=0.9, prefit=True)
    points, intervals = conformal.conformalize(X[200:300], y[200:300]).predict_interval(X[300:])
    np.testing.assert_allclose(points, model.predict(X[300:]))
    inside = (intervals[:, 0, 0] <= y[300:]) & (y[300:] <= intervals[:, 1, 0])
    assert 0.8 < inside.mean() < 1


def test_shap_adds_up_to_predictions(patients):
    import shap

    X, y = patients
    model = NadarayaWatsonRegressor(bandwidth=0.05).fit(X[:200], y[:200])
    found = shap.Explainer(model.predict, X[:10], seed=0)(X[200:202])
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(X[200:202]))


@pytest.mark.parametrize(("n_features", "tolerance"), [(6, 1e-6), (10, 0.05)])
def test_effects_of_features_are_those_of_shap(patients, n_features, tolerance):
    import shap

    X, y = patients[0].iloc[:, :n_features], patients[1]
    model = KernelAttentionRegressor(max_steps=3, n_folds=1).fit(X[:200], y[:200])
    effects = model.explain_features(X[200:205], background=X[:30])
    masker = shap.maskers.Independent(X[:30].to_numpy())
    values = shap.explainers.Exact(model.predict, masker)(X[200:205].to_numpy()).values
    errors = effects.drop(columns="base value") - values
    error, std = errors.abs().max(axis=None), model.predict(X[:200]).std()
    assert error < tolerance * std


def test_skrub_makes_columns_of_dates_and_texts():
    import skrub

    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "day": pd.date_range("2024-01-01", periods=120),
        "city": rng.choice(["Oslo", "Rome", "Lima"], 120),
        "size": rng.normal(size=120),
    })  # fmt: skip
    price = 10 * (table["city"] == "Rome") + table["size"] + table["day"].dt.month
    model = make_pipeline(
        skrub.TableVectorizer(low_cardinality="passthrough"),
        KernelAttentionRegressor(max_steps=3, n_folds=1),
    )
    model.fit(table[::2], price[::2])
    assert model.score(table[1::2], price[1::2]) > 0.9
    # Cities stay a category, which the kernel compares by itself.
    assert len(model[-1].columns_.categorical) == 1


def test_utilsforecast_judges_forecasts():
    from utilsforecast.evaluation import evaluate
    from utilsforecast.losses import coverage
    from utilsforecast.losses import mase as their_mase

    days = pd.date_range("2024-01-01", periods=84)
    noise = np.random.default_rng(0).normal(size=(2, 84))
    long = pd.concat(
        pd.DataFrame({"unique_id": name, "ds": days, "y": 50 + 9 * (days.dayofweek > 4) + own})
        for name, own in zip(["east", "west"], noise, strict=True)
    )
    past, later = long[long["ds"] < days[70]], long[long["ds"] >= days[70]]
    model = TransformerForecaster(14, candidates=["classical"]).fit(past)
    found = later.merge(model.predict(coverage=0.8), on=["unique_id", "ds"])
    names = dict(zip(found.columns[3:], ["ours", "ours-lo-80", "ours-hi-80"], strict=True))
    judged = evaluate(
        found.rename(columns=names), [partial(their_mase, seasonality=7)],
        models=["ours"], train_df=past,
    )  # fmt: skip
    for name, rows in found.groupby("unique_id"):
        scale = naive_scale(past.loc[past["unique_id"] == name, "y"], season_length=7)
        expected = mase(rows["y"], rows[found.columns[3]], scale)
        theirs = judged.loc[judged["unique_id"] == name, "ours"].item()
        np.testing.assert_allclose(theirs, expected)
    inside = coverage(found.rename(columns=names), ["ours"], level=80)["ours"]
    assert inside.between(0.5, 1).all()
