"""Maps of attention draw the weights that estimators tell, by the names of tokens."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_attention import (
    TransformerClassifier,
    TransformerLanguageModel,
    TransformerSeq2Seq,
)
from sklearn_attention.inspection import AttentionMapDisplay, attention_rollout


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


def test_features_are_tokens_by_name(table):
    X, y = table
    options = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 1, "baseline": False}
    model = TransformerClassifier(**options, pooling="cls").fit(X, y > 0)
    display = AttentionMapDisplay.from_estimator(model, X[:1])
    assert display.keys == ["[CLS]", "size", "age", "noise"]
    with pytest.raises(ValueError, match="X has 2 rows"):
        AttentionMapDisplay.from_estimator(model, X[:2])


@pytest.mark.filterwarnings("ignore:The validation loss was still falling")
@pytest.mark.filterwarnings("ignore:.*max_length.?3")
def test_tokens_have_names_where_they_are_read():
    options = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 1, "max_length": 3}
    model = TransformerClassifier(tokenizer="words", pooling="cls", baseline=False, **options)
    model.fit(["very good phones", "bad"] * 5, ["yes", "no"] * 5)
    for text, keys in (
        ("very good phones", ["very", "good", "phones"]),
        ("very good phones indeed", ["very", "good", "phones"]),
        (" ", ["<unknown>"]),
    ):
        display = AttentionMapDisplay.from_estimator(model, [text])
        assert display.keys == display.queries == ["[CLS]", *keys]
    translator = TransformerSeq2Seq("characters", **options).fit(["abcd"] * 5, ["xyzx"] * 5)
    display = AttentionMapDisplay.from_estimator(translator, ["abcd"], ["xyzx"])
    assert (display.queries, display.keys) == (["x", "y", "z"], ["a", "b", "<end>"])
    display = AttentionMapDisplay.from_estimator(translator, ["ab"], ["x"], layer=0, head=1)
    assert (display.queries, display.keys) == (["x", "<end>"], ["a", "b", "<end>"])
    found = translator.attention_maps(["ab"], ["x"])[0]
    assert_allclose(display.ax_.images[0].get_array(), found[0, 1])
    reader = TransformerLanguageModel(**options | {"max_length": 8}).fit(["abcab " * 20])
    assert AttentionMapDisplay.from_estimator(reader, "abc").keys == ["<start>", "a", "b", "c"]


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
    with pytest.raises(ValueError, match="keys has 1 names, but the map"):
        AttentionMapDisplay.from_weights(np.eye(2), keys=["a"])
