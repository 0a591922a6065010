"""Rows of a frame keep their labels: in explanations and in the picture of one."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_attention import (
    KernelAttentionRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
)
from sklearn_attention.inspection import ExplanationDisplay

RNG = np.random.default_rng(0)
# As train_test_split leaves them: in no order, and not from 0.
PATIENTS = pd.DataFrame(RNG.normal(size=(60, 2)), RNG.permutation(60) + 100, columns=["a", "b"])
RISK = PATIENTS["a"] + RNG.normal(size=60)


@pytest.mark.parametrize(
    "model",
    [NadarayaWatsonRegressor(bandwidth=0.5), KernelAttentionRegressor(max_steps=3, n_folds=1)],
    ids=["average", "kernel attention"],
)
def test_explanations_of_a_frame_name_its_rows(model):
    model.fit(PATIENTS[:50], RISK[:50])
    queries = PATIENTS[50:52]
    found = model.explain(queries, k=3)
    assert found["query"].tolist() == queries.index.repeat(3).tolist()
    assert_allclose(found["value"], RISK.loc[found["row"]])
    with pytest.warns(UserWarning, match="valid feature names"):
        plain = model.explain(queries.to_numpy(), k=3)
    assert_array_equal(found["row"], PATIENTS.index[plain.indices.ravel()])
    assert_array_equal(found["weight"], plain.weights.ravel())


def test_further_rows_bring_their_labels():
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(PATIENTS[:30], RISK[:30])
    model.partial_fit(PATIENTS[30:50], RISK[30:50])
    found = model.explain(PATIENTS[50:], k=50)
    assert_allclose(found["value"], RISK.loc[found["row"]])
    counted = PATIENTS[:30].reset_index(drop=True)
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(counted, RISK[:30])
    model.partial_fit(PATIENTS[30:50].set_axis(range(30, 50)), RISK[30:50])
    found = model.explain(PATIENTS[50:], k=50)
    assert_allclose(found["value"], RISK.iloc[found["row"]])
    # Rows that came as an array are known by their positions.
    days = PATIENTS[:30].set_index(pd.date_range("2024", periods=30, tz="Europe/Berlin"))
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(days, RISK[:30])
    model.partial_fit(counted, RISK[:30])
    rows = model.explain(PATIENTS[:1], k=60)["row"].tolist()
    assert set(rows) == {*days.index.astype(str), *range(30)}


def test_classes_and_several_outputs():
    group = np.where(RISK > 0, "high", "low")
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(PATIENTS, group)
    found = model.explain(PATIENTS[:1], k=4)
    assert_array_equal(found["value"], group[PATIENTS.index.get_indexer(found["row"])])
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(PATIENTS, np.c_[RISK, -RISK])
    found = model.explain(PATIENTS[:1], k=4)
    assert_allclose(found["value_1"], -RISK.loc[found["row"]])


def test_polars_has_positions():
    X = pl.from_pandas(PATIENTS)
    found = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, RISK).explain(X[3:5], k=2)
    assert isinstance(found, pl.DataFrame)
    assert found["query"].to_list() == [0, 0, 1, 1]
    assert_allclose(found["value"], RISK.iloc[found["row"].to_numpy()])


def test_the_picture_writes_labels_and_what_each_row_adds():
    X = PATIENTS.set_index([PATIENTS["a"].gt(0).map({True: "east", False: "west"}), RISK.index])
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X[:50], 100 * RISK[:50])
    display = ExplanationDisplay.from_estimator(model, X[50:51], k=3)
    rows = model.explain(X[50:51], k=3)["row"]
    assert display.labels == [f"row {place}, {number}" for place, number in rows]
    (place, number), predicted = X.index[50], model.predict(X[50:51])[0]
    written = f"row {place}, {number} of X: predicted {predicted:.4g}".replace("-", "\u2212")
    assert display.ax_.get_xlabel().startswith(written)
    texts = display.ax_.child_axes[0].get_yticklabels()
    added = [float(text.get_text().replace("\u2212", "-")) for text in texts]
    assert_allclose(display.baseline + sum(added), predicted, atol=0.05 * len(added))
