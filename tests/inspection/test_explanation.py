"""What carries one prediction adds up to it."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from sklearn_attention import (
    KernelAttentionClassifier,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    TransformerForecaster,
)
from sklearn_attention.inspection import ExplanationDisplay


def test_candidates_of_a_forecast_add_up(candidates):
    display = ExplanationDisplay.from_estimator(candidates, step=3)
    total = display.baseline + display.contributions_.sum()
    assert_allclose(total, candidates.predict(3).iloc[-1])
    with pytest.raises(ValueError, match="step=13 is not within the horizon"):
        ExplanationDisplay.from_estimator(candidates, step=13)
    with pytest.raises(ValueError, match="step=5 is after the last step"):
        ExplanationDisplay.from_estimator(candidates, 3, step=5)
    with pytest.raises(ValueError, match="labels name training rows, but a forecaster"):
        ExplanationDisplay.from_estimator(candidates, labels=["a"])


def test_an_explanation_is_of_one_number_that_is_there(averages, table, analogs, curve):
    with pytest.raises(ValueError, match="pass one row"):
        ExplanationDisplay.from_estimator(averages, table[0][:2])
    with pytest.raises(ValueError, match="KernelForecaster, which does not predict"):
        ExplanationDisplay.from_estimator(analogs)
    model = NadarayaWatsonRegressor("epanechnikov", bandwidth=0.1, empty="nan").fit(*curve)
    with pytest.raises(ValueError, match=r"the prediction of X is nan, .* empty='nearest'"):
        ExplanationDisplay.from_estimator(model, [[5.0]])


def parts(display):
    """What named rows add, the others upwards and downwards, and what no row adds."""
    named = np.sum(display.weights * (display.values - display.baseline))
    return np.array([named, *display.others_, display.remainder_])


@pytest.mark.parametrize(("model", "k"), [("averages", 1000), ("signed", 1)])
def test_contributions_add_up_and_what_cancels_is_told_apart(model, k, table, request):
    X, y = table
    if model == "signed":
        model = LocalPolynomialRegressor(degree=2, bandwidth=0.8).fit(X, y)
    else:
        model = request.getfixturevalue(model)
    display = ExplanationDisplay.from_estimator(model, X[3:4], y[3:4], k=k)
    found = model.explain(X[3:4], k=len(X))
    weights, values = found["weight"].to_numpy(), found["value"].to_numpy()
    named = weights[:k] * (values[:k] - display.baseline)
    assert_allclose(display.contributions_[:-1], named)
    moves = weights[k:] * (values[k:] - display.baseline)
    assert_allclose(display.others_, [moves[moves > 0].sum(), moves[moves < 0].sum()])
    size = np.abs(weights)
    assert_allclose(display.weight_share_, size[:k].sum() / size.sum())
    assert abs(display.remainder_) < 1e-6  # rows are all that these predict by
    total = display.baseline + parts(display).sum()
    assert_allclose(total, model.predict(X[3:4])[0], rtol=1e-9)
    assert_allclose(display.contributions_[-1], display.others_.sum() + display.remainder_)
    bars = display.ax_.patches
    assert len(bars) == min(k, len(X)) + np.count_nonzero(display.others_)
    # Each bar begins where the one before it ends.
    ends = display.baseline + np.cumsum([bar.get_width() for bar in bars])
    assert_allclose([bar.get_x() for bar in bars], [display.baseline, *ends[:-1]])
    assert_allclose(ends[-1], total)
    assert f"{display.weight_share_:.0%} of absolute weight" in display.ax_.get_xlabel()


def test_logarithms_are_no_candidates(series):
    model = TransformerForecaster(12, candidates=["ridge"], log=True)
    model.fit(np.exp(series[:-12]))
    display = ExplanationDisplay.from_estimator(model, step=2, k=1)
    assert_allclose(display.baseline + parts(display).sum(), model.predict(2).iloc[-1])
    assert display.remainder == "averages of logarithms"
    assert f"forecast of {series.index[-11]:%Y-%m-%d}, 2 steps" in display.ax_.get_xlabel()


def test_an_index_names_rows(averages, table):
    X = table[0].set_axis([f"house {i}" for i in range(80)])
    display = ExplanationDisplay.from_estimator(averages, X[7:8], k=1, labels=X)
    assert display.labels == ["house 7"]
    assert display.ax_.get_xlabel().startswith("row house 7 of X: predicted ")
    names = pd.Series(X.index, index=np.arange(80)[::-1])  # a series is its values
    display = ExplanationDisplay.from_estimator(averages, X[7:8], k=1, labels=names)
    assert display.labels == ["house 7"]
    with pytest.raises(ValueError, match="labels has 79 names, but 80 rows were fitted"):
        ExplanationDisplay.from_estimator(averages, X[7:8], labels=X[1:])


def test_one_of_several_series_is_explained(series):
    frame = pd.DataFrame({"a": series, "b": 10 - series})[:96]
    model = TransformerForecaster(6, candidates=["ridge"])
    expected = model.fit(frame).predict()["b"].iloc[2]
    long = frame.rename_axis("ds").reset_index()
    model.fit(long.melt("ds", ["a", "b"], "unique_id", "y"))
    display = ExplanationDisplay.from_estimator(model, step=3, series="b")
    assert_allclose(display.prediction, expected)
    assert_allclose(display.baseline + parts(display).sum(), expected)
    assert abs(display.remainder_) < 1e-9


@pytest.mark.parametrize("readout", ["average", "solve"])
def test_rows_speak_for_and_against_a_class(readout, table):
    X, y = table
    labels = np.where(y > 0, "dear", "cheap")
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, labels, sample_weight=1 + (y > 1))
    if readout == "solve":
        model = KernelAttentionClassifier(n_folds=1, max_steps=3, boosting=None).fit(X, labels)
    explained = model.explain(X[3:4], k=len(X))
    share = explained["weight"][explained["value"] == "dear"].sum()
    display = ExplanationDisplay.from_estimator(model, X[3:4], k=4, class_label="dear")
    assert_allclose(display.baseline + display.contributions_.sum(), share)
    assert_allclose(display.baseline, np.average(labels == "dear", weights=model.key_weights_))
    is_for = np.array(display.classes) == "dear"
    assert (
        np.sign(display.contributions_[:4]) == np.sign(display.weights) * (2 * is_for - 1)
    ).all()
    first = display.ax_.get_yticklabels()[0].get_text()
    assert first.endswith(f"%, {display.classes[0]}")
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert any(" others for " in name for name in names)
    assert display.name == "weighted share of 'dear'"
    if readout == "average":
        assert_allclose(share, model.predict_proba(X[3:4])[0, 1])
    assert (
        str(model.predict(X[3:4])[0]) in ExplanationDisplay.from_estimator(model, X[3:4]).name
    )
    formula = model.fit(X, np.where(y > 0, r"$\bad{$", "z"))
    ExplanationDisplay.from_estimator(formula, X[3:4]).figure_.canvas.draw()
    model.fit(X, labels)
    for label, message in (("new", "'new'"), (pd.NA, "<NA>")):
        expected = rf"class_label={message} is no class: pass one of \['cheap"
        with pytest.raises(ValueError, match=expected):
            ExplanationDisplay.from_estimator(model, X[3:4], class_label=label)
    for wrong in (5, "abc"):
        with pytest.raises(ValueError, match=rf"labels={wrong!r} is not valid: pass a list"):
            ExplanationDisplay.from_estimator(model, X[3:4], labels=wrong)


def test_a_class_is_for_classifiers_of_one_output(averages, table):
    X, y = table
    with pytest.raises(ValueError, match="class_label='new' is for classifiers: omit it"):
        ExplanationDisplay.from_estimator(averages, X[:1], class_label="new")
    labels = np.column_stack([y > 0, y > 1, y > 0])
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, labels)
    with pytest.raises(ValueError, match="which has 3 outputs"):
        ExplanationDisplay.from_estimator(model, X[:1])
