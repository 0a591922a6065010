"""Displays of what carries predictions: rows, candidates, attention, blends, trainings."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import (
    NadarayaWatsonRegressor,
    TransformerClassifier,
    TransformerLanguageModel,
    TransformerSeq2Seq,
)
from sklearn_attention.inspection import (
    AttentionMapDisplay,
    BlendDisplay,
    ExplanationDisplay,
    TrainingDisplay,
    attention_rollout,
)


@pytest.mark.parametrize("model", ["averages", "kernel_attention", "smoother"])
def test_contributions_add_up_to_the_prediction(model, table, curve, request):
    model = request.getfixturevalue(model)
    X = table[0][:1] if model.n_features_in_ == 3 else curve[0][:1]
    display = ExplanationDisplay.from_estimator(model, X, k=4)
    total = display.baseline + display.contributions_.sum()
    assert_allclose(total, model.predict(X)[0])
    _, weights, values = model.explain(X, k=4)
    expected = weights[0] * (values[0] - display.baseline)
    assert_allclose(display.contributions_[:-1], expected)
    bars = display.ax_.patches
    assert_allclose(bars[0].get_x(), display.baseline + min(0, expected[0]))
    assert_allclose(sum(bar.get_width() for bar in bars), total - display.baseline)
    assert len(bars) == 5


def test_all_rows_leave_nothing_for_others(averages, table):
    display = ExplanationDisplay.from_estimator(averages, table[0][:1], k=1000)
    assert_allclose(display.contributions_[-1], 0, atol=1e-12)
    assert len(display.ax_.patches) == len(table[0])


def test_rows_are_named(averages, table):
    names = [f"house {i}" for i in range(len(table[0]))]
    display = ExplanationDisplay.from_estimator(averages, table[0][7:8], k=1, labels=names)
    assert display.ax_.get_yticklabels()[0].get_text().startswith("house 7 ")


def test_candidates_of_a_forecast_add_up(candidates):
    display = ExplanationDisplay.from_estimator(candidates, step=3)
    total = display.baseline + display.contributions_.sum()
    assert_allclose(total, candidates.predict(3).iloc[-1])
    with pytest.raises(ValueError, match="step=13 is not within the horizon"):
        ExplanationDisplay.from_estimator(candidates, step=13)


def test_an_explanation_is_of_one_number(averages, table, analogs):
    with pytest.raises(ValueError, match="pass one row"):
        ExplanationDisplay.from_estimator(averages, table[0][:2])
    with pytest.raises(ValueError, match="KernelForecaster does not explain"):
        ExplanationDisplay.from_estimator(analogs)


def test_a_pipeline_explains_in_its_last_step(table):
    X, y = table
    model = make_pipeline(StandardScaler(), NadarayaWatsonRegressor()).fit(X, y)
    display = ExplanationDisplay.from_estimator(model, X[:1])
    assert_allclose(display.prediction, model.predict(X[:1])[0])


def test_the_map_of_a_smoother_is_its_matrix(smoother, curve):
    display = AttentionMapDisplay.from_estimator(smoother, curve[0][:30])
    drawn = display.ax_.images[0].get_array()
    assert_allclose(drawn, smoother.smoother_matrix(curve[0][:30]))
    assert drawn.min() < 0
    assert display.ax_.images[0].get_cmap().name == "PuOr"
    assert display.ax_.images[0].norm.vmin == -display.ax_.images[0].norm.vmax


def test_maps_of_a_text_are_a_grid_of_layers_and_heads(encoder):
    display = AttentionMapDisplay.from_estimator(encoder, ["very good"])
    found = encoder.attention_maps(["very good"])[0]
    assert display.ax_.shape == found.shape[:2] == (2, 2)
    for axes, weights in zip(display.ax_.flat, found.reshape(4, 2, 2), strict=True):
        assert_allclose(axes.images[0].get_array(), weights)
    assert display.keys == ["very", "good"]
    assert [t.get_text() for t in display.ax_[1, 0].get_xticklabels()] == ["very", "good"]
    assert display.ax_[0, 0].get_xticks().size == 0
    display.plot(layer=1, head=0)
    assert_allclose(display.ax_.images[0].get_array(), found[1, 0])
    with pytest.raises(ValueError, match="head=2 is not valid: pass 0 to 1"):
        display.plot(head=2)


@pytest.mark.parametrize(
    ("keys", "rotation"), [(["very", "good"], 0), (["the", "phone", "is", "broken"] * 2, 90)]
)
def test_long_names_stand_upright(keys, rotation):
    weights = np.full((1, 2, len(keys), len(keys)), 1 / len(keys))
    display = AttentionMapDisplay.from_weights(weights, keys=keys)
    assert {text.get_rotation() for text in display.ax_[0, 0].get_xticklabels()} == {rotation}


def test_features_are_tokens_by_name(table):
    X, y = table
    model = TransformerClassifier(
        d_model=8, n_heads=2, n_layers=1, max_epochs=2, pooling="cls"
    ).fit(X, y > 0)
    display = AttentionMapDisplay.from_estimator(model, X[:1])
    assert display.keys == ["[CLS]", "size", "age", "noise"]
    with pytest.raises(ValueError, match="X has 2 rows"):
        AttentionMapDisplay.from_estimator(model, X[:2])


@pytest.mark.filterwarnings("ignore:The validation loss was still falling")
def test_tokens_of_writers_are_named():
    options = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 1}
    reader = TransformerLanguageModel(**options).fit(["abcab " * 20])
    display = AttentionMapDisplay.from_estimator(reader, "abc")
    assert display.keys == ["<start>", "a", "b", "c"]
    translator = TransformerSeq2Seq("characters", **options).fit(
        ["ab", "ba"] * 5, ["x", "y"] * 5
    )
    display = AttentionMapDisplay.from_estimator(translator, ["ab"], ["xy"], layer=0, head=1)
    assert display.queries == ["x", "y", "<end>"]
    assert display.keys == ["a", "b", "<end>"]
    found = translator.attention_maps(["ab"], ["xy"])[0]
    assert_allclose(display.ax_.images[0].get_array(), found[0, 1])


def test_rollout_passes_through_all_layers():
    random = np.random.default_rng(0)
    weights = random.random((3, 2, 5, 5))
    weights /= weights.sum(axis=3, keepdims=True)
    found = attention_rollout(weights)
    assert_allclose(found.sum(axis=1), 1)
    first, second, third = (0.5 * (layer.mean(axis=0) + np.eye(5)) for layer in weights)
    assert_allclose(found, third @ second @ first)
    display = AttentionMapDisplay.from_weights(weights, rollout=True)
    assert_allclose(display.ax_.images[0].get_array(), found)
    with pytest.raises(ValueError, match=r"weights has shape \(5, 5\)"):
        attention_rollout(weights[0, 0])


def test_names_of_weights_are_counted():
    with pytest.raises(ValueError, match="keys has 1 names for 2"):
        AttentionMapDisplay.from_weights(np.eye(2), keys=["a"])


def test_a_blend_is_drawn_by_weight(candidates, kernel_attention, encoder):
    display = BlendDisplay.from_estimator(candidates)
    widths = [bar.get_width() for bar in display.ax_.patches]
    expected = candidates.candidate_weights_.iloc[0].sort_values(ascending=False)
    assert_allclose(widths, expected[expected != 0][:15])
    parts = BlendDisplay.from_estimator(kernel_attention).weights.columns
    assert list(parts) == list(kernel_attention.blend_weights_)
    assert BlendDisplay.from_estimator(encoder).weights.shape == (1, 2)


def test_weights_of_many_series_are_points():
    weights = pd.DataFrame({"a": [0.2, 0.6], "b": [0.8, 0.4]}, index=["x", "y"])
    display = BlendDisplay(weights).plot()
    assert [bar.get_width() for bar in display.ax_.patches] == pytest.approx([0.6, 0.4])
    assert_allclose(display.ax_.lines[0].get_xdata(), [0.8, 0.4])


def test_a_training_is_drawn_epoch_by_epoch(encoder):
    display = TrainingDisplay.from_estimator(encoder)
    history = encoder.training_history_
    training, validation, kept, _ = display.ax_.lines
    assert_allclose(training.get_ydata(), history["loss"])
    assert_allclose(validation.get_ydata(), history["validation_loss"])
    assert kept.get_xdata()[0] == history["best_epoch"] + 1
    assert display.plot(log=True).ax_.get_yscale() == "log"


@pytest.mark.parametrize("display", [TrainingDisplay, BlendDisplay, AttentionMapDisplay])
def test_others_are_refused_by_name(display):
    line = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"LinearRegression (has|blends|is)"):
        display.from_estimator(line)
