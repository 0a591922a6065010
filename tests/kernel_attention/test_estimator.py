"""Kernel attention of numbers and classes: predictions, and views of what is learned."""

import numpy as np
import pandas as pd
import pytest
from recorder import Recorder
from sklearn.base import clone

from sklearn_attention import KernelAttentionClassifier, KernelAttentionRegressor
from sklearn_attention.kernel_attention import _encodings
from sklearn_attention.kernel_attention._encodings import ENCODINGS

READOUTS = ["average", "solve"]
ESTIMATORS = [KernelAttentionRegressor, KernelAttentionClassifier]
QUICK = {"max_steps": 5, "n_folds": 1}
every_readout = pytest.mark.parametrize("readout", READOUTS)
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


def enough(readout):
    """Steps after which the readout follows the targets; averages start wider."""
    return {"max_steps": 5 if readout == "solve" else 40, "n_folds": 1}


def make_data(n=60, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)


def ask(model, X):
    if isinstance(model, KernelAttentionClassifier):
        return model.predict_proba(X)
    return model.predict(X)


def fit(estimator, X, y, weight=None, **parameters):
    y = (y > 0).astype(int) if estimator is KernelAttentionClassifier else y
    return estimator(**QUICK | parameters).fit(X, y, weight)


@every_estimator
@every_readout
def test_a_row_of_weight_0_is_absent(estimator, readout):
    X, y = make_data()
    weight = np.random.default_rng(1).uniform(0.5, 2, 60)
    weight[::6] = 0
    kept = weight > 0
    wild = np.where(kept, y, 1e3)
    with_it = fit(estimator, X, wild, weight, readout=readout)
    without = fit(estimator, X[kept], y[kept], weight[kept], readout=readout)
    np.testing.assert_array_equal(ask(with_it, X), ask(without, X))
    named = with_it.explain(X, k=60).indices
    assert named.shape == (60, 50)
    assert set(named.ravel()) == set(np.flatnonzero(kept))


def test_rows_that_are_encoded_again_and_again_are_predicted_alike(monkeypatch):
    X, y = make_data()
    expected = KernelAttentionRegressor(**QUICK).fit(X, y).predict(X)
    # Rows of which nothing is kept, as those of large tables.
    monkeypatch.setattr(_encodings, "IN_MEMORY", 0)
    found = KernelAttentionRegressor(**QUICK).fit(X, y).predict(X)
    np.testing.assert_allclose(found, expected)


@every_readout
def test_every_answer_is_of_all_outputs(readout):
    X, y = make_data(100)
    both = np.column_stack([y, 100 * X[:, 1] - 40])
    model = KernelAttentionRegressor(readout, **enough(readout)).fit(X, both)
    found, std = model.predict(X, return_std=True)
    for output in range(2):
        assert np.corrcoef(found[:, output], both[:, output])[0, 1] > 0.9
    assert std.shape == (100, 2)
    assert model.predict_quantiles(X[:5]).shape == (5, 3, 2)
    assert model.predict_interval(X[:5]).shape == (5, 2, 2)
    slopes = model.local_slopes(X[:5])
    assert slopes.shape == (5, 2, 3)
    assert slopes.any() == (readout == "solve")
    assert model.explain(X[:5], k=4).values.shape == (5, 4, 2)
    assert model.loo_residuals_.shape == (len(model.held_out_rows_), 2)


@every_readout
def test_every_output_has_its_classes(readout):
    X, y = make_data(100)
    labels = np.column_stack([np.where(y > 0, "b", "a"), np.digitize(X[:, 1], [-1, 1])])
    model = KernelAttentionClassifier(readout, **enough(readout)).fit(X, labels)
    found, predicted = model.predict_proba(X), model.predict(X)
    assert [p.shape for p in found] == [(100, 2), (100, 3)]
    for output, p in enumerate(found):
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert (predicted[:, output] == labels[:, output]).mean() > 0.8
        likeliest = model.classes_[output][p.argmax(axis=1)]
        np.testing.assert_array_equal(predicted[:, output], likeliest)


@every_readout
def test_features_of_noise_are_found(readout):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.sin(1.5 * X[:, 2]) + 0.1 * rng.normal(size=120)
    options = {"max_steps": 30, "n_folds": 1, "boosting": None}
    model = KernelAttentionRegressor(readout, **options).fit(X, y)
    relevance = model.feature_relevance_.to_numpy()
    assert (relevance >= 0).all()
    assert relevance.sum() == pytest.approx(1)
    assert relevance[2] > 2 * np.delete(relevance, 2).max()
    assert model.length_scales_.shape == (3, 4)
    alone = clone(model).set_params(encodings="standard", max_steps=80).fit(X, y)
    assert alone.bandwidth_[2] < 0.8 * np.delete(alone.bandwidth_, 2).min()


@every_estimator
def test_few_rows_are_all_held_out(estimator):
    X, y = make_data()
    model = fit(estimator, X, y, n_folds="auto", max_steps=2)
    n_folds = 4 if estimator is KernelAttentionRegressor else 8
    assert len(model.members_) == n_folds
    np.testing.assert_array_equal(np.sort(model.held_out_rows_), np.arange(60))


@every_readout
def test_rows_held_out_are_not_learned_from(readout):
    X, y = make_data(100)
    model = KernelAttentionRegressor(readout, max_steps=2, n_folds=1).fit(X, y)
    assert len(model.held_out_rows_) == 25
    # A member is learned without its fold: other targets, the same length-scales.
    other = y.copy()
    other[model.held_out_rows_] = y[model.held_out_rows_[::-1]]
    again = clone(model).fit(X, other)
    np.testing.assert_array_equal(again.length_scales_, model.length_scales_)
    assert not np.array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("encodings", ["standard", ENCODINGS])
def test_distances_in_the_space_are_those_of_the_first_members_kernel(encodings):
    X, y = make_data()
    model = KernelAttentionRegressor(encodings=encodings, **QUICK).fit(X, y)
    kernel, space = model.members_[0].kernel, model.transform(X)
    owners = [name.partition("__")[0] for name in model.get_feature_names_out()]
    named = kernel.named()
    total, far = kernel.constant, 0.0
    for encoding, amplitude in zip(model.encodings_, named["amplitude"], strict=True):
        columns = space[:, [owner == encoding.name for owner in owners]]
        squared = np.square(columns[:, None] - columns).sum(axis=2)
        total = total + np.exp(2 * amplitude - squared / 2)
        far = far + squared
    rough, rate = np.exp(2 * named["rough"]), np.exp(named["rate"])
    total = total + rough * np.exp(-rate * np.sqrt(far + 1e-4))
    rows = [encoding.encode(X) for encoding in model.encodings_]
    linear = np.exp(2 * named["linear"]) / rows[0].shape[1]
    total = total + linear * (rows[0] @ rows[0].T)
    np.testing.assert_allclose(kernel.matrix(rows, rows), total, rtol=1e-9)


@every_estimator
def test_slopes_of_solving_equal_differences(estimator):
    X, y = make_data(120)
    X = X * [1, 100, 1]
    model = fit(estimator, X, y, encodings="standard", max_steps=10)
    queries = make_data(30, seed=1)[0] * [1, 100, 1]
    found = model.local_slopes(queries)
    # Slopes of classes are those of their scores, before the link.
    scores = model._fitted if hasattr(model, "classes_") else model
    for feature, unit in enumerate((1, 100, 1)):
        moved = unit * 1e-5 * (np.arange(3) == feature)
        ends = [scores.predict(queries + sign * moved) for sign in (1, -1)]
        expected = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(unit * found[..., feature], expected, 1e-4, 1e-4)


@pytest.mark.parametrize("several", [False, True], ids=["one", "two"])
@every_readout
def test_weights_of_all_rows_make_the_prediction(readout, several):
    X, y = make_data()
    if several:
        y = np.column_stack([y, 5 + np.sign(X[:, 1])])
    weight = np.random.default_rng(1).uniform(0, 2, 60)
    weight[:4] = 0
    model = KernelAttentionRegressor(readout, boosting=None, **QUICK).fit(X, y, weight)
    queries = make_data(10, seed=1)[0]
    found, few = model.explain(queries, k=60), model.explain(queries, k=4)
    assert found.weights.shape == (10, 56)
    np.testing.assert_array_equal(found.values, y[found.indices])
    expected = np.einsum("qk,qk...->q...", found.weights, found.values)
    np.testing.assert_allclose(expected, model.predict(queries), atol=1e-7)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1)
    # The heaviest come first.
    assert (np.diff(np.abs(found.weights), axis=1) <= 0).all()
    np.testing.assert_allclose(few.weights, found.weights[:, :4], atol=1e-12)
    np.testing.assert_array_equal(few.indices, found.indices[:, :4])


def test_weights_of_classes_make_the_probability():
    X, y = make_data()
    labels = np.column_stack([np.digitize(y, [-0.5, 0.5]), y > 0])
    model = KernelAttentionClassifier("average", **QUICK).fit(X, labels)
    found = model.explain(X, k=60)
    np.testing.assert_array_equal(found.values, labels[found.indices])
    for output, p in enumerate(model.predict_proba(X)):
        own = found.values[:, :, output]
        expected = [(found.weights * (own == c)).sum(axis=1) for c in model.classes_[output]]
        np.testing.assert_allclose(p.T, expected, atol=1e-9)


@every_estimator
def test_frames_out_have_the_names_of_the_columns(estimator):
    X, y = make_data()
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": X[:, 0], "color": rng.choice(["r", "g"], 60)})
    frame["age"] = np.where(rng.uniform(size=60) < 0.2, np.nan, X[:, 1])
    model = fit(estimator, frame, y).set_output(transform="pandas")
    found, names = model.transform(frame), model.get_feature_names_out()
    assert list(found.columns) == list(names)
    assert len(set(names)) == len(names)
    # The names say what moves the columns.
    moved = frame.assign(color=frame["color"].map({"r": "g", "g": "r"}))
    changed = (model.transform(moved) != found).any(axis=0)
    # Neither r nor g is another level.
    assert list(changed) == [name[:-1].endswith("__color_level") for name in names]
    others = (model.transform(frame.assign(color="b")) != found).any(axis=0)
    assert list(others) == ["__color" in name for name in names]


@every_estimator
def test_every_member_is_a_task_of_callbacks(estimator):
    recorder, (X, y) = Recorder(), make_data()
    y = y > 0 if estimator is KernelAttentionClassifier else y
    model = estimator(max_steps=3, n_folds=2).set_callbacks(recorder).fit(X, y)
    n_members = recorder.begun.count("member")
    assert len(model.members_) <= n_members <= 4
    assert recorder.begun == ["fit"] + ["member"] * n_members
    assert recorder.ended == ["member"] * n_members + ["fit"]
