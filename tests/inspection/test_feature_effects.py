"""Pictures of the effects of features: what they write adds up, and names what it shows."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from sklearn_attention import (
    KernelAttentionClassifier,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
)
from sklearn_attention.inspection import FeatureEffectsDisplay


@pytest.fixture(scope="module")
def shops():
    """A table of a number, a category and a number that is always the same; classes."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=90), "city": rng.choice(["Oslo", "$Rome$"], 90)})
    X["floor"] = 2.0
    X.index = [f"shop {i}" for i in range(90)]
    opens = np.where(X["size"] + (X["city"] == "Oslo") + rng.normal(size=90) > 0.5, "yes", "no")
    return X, opens


@pytest.fixture(scope="module")
def classes(shops):
    return KernelAttentionClassifier(n_folds=1, max_steps=3, boosting=None).fit(*shops)


def bar_texts(ax):
    return tick_names(ax.child_axes[0].yaxis)


def tick_names(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def as_number(text):
    return float(text.replace("\u2212", "-").replace(",", ""))


def test_bars_of_a_number_lead_from_the_typical_row_to_its_prediction(averages, table):
    X, _ = table
    row = X[5:6]
    display = FeatureEffectsDisplay.from_estimator(averages, row, name="the price")
    ax, effects = display.ax_, averages.explain_features(row).iloc[0]
    start, *moves, end = map(as_number, bar_texts(ax))
    assert start == pytest.approx(effects["base value"], abs=0.01)
    assert end == pytest.approx(averages.predict(row)[0], abs=0.01)
    assert sum(moves) == pytest.approx(end - start, abs=0.02)
    order = effects[1:].abs().sort_values(ascending=False).index
    expected = [f"{name} = {row[name].iloc[0]:.4g}".replace("-", "\u2212") for name in order]
    assert tick_names(ax.yaxis) == ["typical row", *expected, "row 5"]
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, [0, *effects[order], 0], atol=1e-9)
    assert ax.get_title(loc="left") == f"Why the price is {bar_texts(ax)[-1]}"


def test_bars_of_a_class_are_factors_of_its_odds(classes, shops):
    X, _ = shops
    display = FeatureEffectsDisplay.from_estimator(classes, X[3:4], class_label="yes")
    effects = classes.explain_features(X[3:4], class_label="yes").iloc[0]
    start, *factors, end = bar_texts(display.ax_)
    assert start == f"{expit(effects['base value']):.0%}"
    assert end == f"{classes.predict_proba(X[3:4])[0, 1]:.0%}"
    order = effects[1:].abs().sort_values(ascending=False).index
    odds = effects["base value"]
    for text, effect in zip(factors, effects[order], strict=True):
        sign, before, odds = "÷" if effect < 0 else "×", expit(odds), odds + effect
        way = f"{before:.0%} → {expit(odds):.0%}"
        assert text == f"{way}, odds {sign} {np.exp(abs(effect)):.2f}"
    assert tick_names(display.ax_.yaxis)[-1] == "shop 3"
    assert "floor = 2" in tick_names(display.ax_.yaxis)
    assert display.ax_.get_title(loc="left") == f"Why the probability of 'yes' is {end}"
    for place, text in zip(
        display.ax_.get_xticks(), tick_names(display.ax_.xaxis), strict=True
    ):
        assert f"{expit(place):.0%}" == text
    small = display.effects.assign(size=0.1, city=0.0, **{"base value": 0.0})
    narrow = FeatureEffectsDisplay(small, X[3:4], is_log_odds=True).plot().ax_
    assert len(narrow.get_xticks()) >= 2
    alone = FeatureEffectsDisplay.from_estimator(classes, X[3:4])
    assert repr(str(classes.predict(X[3:4])[0])) in alone.name


def test_the_smallest_effects_are_one_bar(averages, table):
    X, _ = table
    display = FeatureEffectsDisplay.from_estimator(averages, X[5:6], max_features=2)
    assert tick_names(display.ax_.yaxis)[3] == "1 other"
    display = FeatureEffectsDisplay.from_estimator(averages, X[5:6], max_features=1)
    effects = averages.explain_features(X[5:6]).iloc[0]
    rest = effects[1:].drop(effects[1:].abs().idxmax()).sum()
    assert tick_names(display.ax_.yaxis)[2] == "2 others"
    assert display.ax_.patches[2].get_width() == pytest.approx(rest)


def test_dots_are_effects_and_colours_are_values(classes, shops):
    X, _ = shops
    display = FeatureEffectsDisplay.from_estimator(classes, X[:30])
    effects = classes.explain_features(X[:30], class_label="yes")
    assert "'yes'" in display.name
    names = tick_names(display.ax_.yaxis)
    assert sorted(names) == sorted(X)
    for line, (name, dots) in enumerate(zip(names, display.ax_.collections, strict=True)):
        x, y = dots.get_offsets().T
        np.testing.assert_allclose(x, effects[name])
        assert (np.abs(y - line) < 0.5).all()
        assert len(np.unique(dots.get_offsets(), axis=0)) == 30
        if name == "city":
            assert dots.get_array().mask.all()
        else:
            np.testing.assert_allclose(dots.get_array(), X[name][:30].rank(pct=True))
    assert len(display.figure_.axes) == 2  # with the colours' own
    assert "no effect" in tick_names(display.ax_.xaxis)
    assert {text.get_text() for text in display.ax_.texts} == {"Oslo", "$Rome$"}
    only_texts = FeatureEffectsDisplay(display.effects[["base value", "city"]], display.X)
    assert len(only_texts.plot().figure_.axes) == 1


def test_rows_with_missing_cells_have_dots(averages, table):
    X, _ = table
    effects = averages.explain_features(X[:5])
    cells = X[:5].assign(size=[1.0, np.nan, 2.0, np.nan, 3.0])
    display = FeatureEffectsDisplay(effects, cells).plot()
    assert display.figure_.axes[1].get_ylabel() == "value"
    line = tick_names(display.ax_.yaxis).index("size")
    dots = display.ax_.collections[line]
    assert dots.get_array().mask.sum() == 2
    display.figure_.canvas.draw()
    assert len(dots.get_facecolors()) == 5


def test_effects_against_rows_of_ones_own(table):
    X, y = table
    model = make_pipeline(StandardScaler(), NadarayaWatsonRegressor(bandwidth=0.5)).fit(X, y)
    display = FeatureEffectsDisplay.from_estimator(model, X[5:6], background=X[10:20])
    np.testing.assert_allclose(display.effects["base value"], model.predict(X[10:20]).mean())


def test_names_and_texts_have_room_beside_the_bars(classes, shops):
    import matplotlib.pyplot as plt

    X, _ = shops
    figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
    long = X[3:4].rename(columns={"size": "a name that goes on and on " * 2})
    effects = classes.explain_features(X[3:4]).set_axis(["base value", *long], axis=1)
    FeatureEffectsDisplay(effects, long, is_log_odds=True).plot(ax=axes[1])
    figure.canvas.draw()
    names, texts = axes[1].get_yticklabels(), axes[1].child_axes[0].get_yticklabels()
    assert any("…" in name.get_text() for name in names)
    assert min(name.get_window_extent().x0 for name in names) > axes[0].bbox.x1
    assert max(text.get_window_extent().x1 for text in texts) < figure.bbox.x1
    for heights in (
        [label.get_window_extent() for label in column] for column in (names, texts)
    ):
        assert all(above.y0 > below.y1 for above, below in itertools.pairwise(heights))


def test_labels_of_classes_are_written_plainly(table):
    X, y = table
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, (y > 0).astype(int))
    display = FeatureEffectsDisplay.from_estimator(model, X[:2])
    assert display.name == "the probability of 1"
    display = FeatureEffectsDisplay.from_estimator(model, X[:1])
    assert display.name == f"the probability of {model.predict(X[:1])[0]}"


def test_bars_of_several_rows_are_mean_absolute_effects(averages, table):
    X, _ = table
    display = FeatureEffectsDisplay.from_estimator(averages, X[:9], kind="bar", max_features=2)
    sizes = averages.explain_features(X[:9]).iloc[:, 1:].abs().mean()
    sizes = sizes.sort_values(ascending=False)[:2]
    np.testing.assert_allclose([bar.get_width() for bar in display.ax_.patches], sizes)
    assert tick_names(display.ax_.yaxis) == sizes.index.tolist()


def test_values_and_names_are_those_before_the_steps_of_a_pipeline(table):
    X, y = table
    grid = {"nadarayawatsonregressor__bandwidth": [0.5]}
    model = make_pipeline(StandardScaler(), NadarayaWatsonRegressor())
    model = GridSearchCV(model, grid, cv=2).fit(X, y)
    display = FeatureEffectsDisplay.from_estimator(model, X[5:6])
    pd.testing.assert_frame_equal(display.X, X[5:6])
    np.testing.assert_allclose(display.effects.sum(axis=1), model.predict(X[5:6]))
    model = model.best_estimator_.set_output(transform="pandas").fit(X, y)
    display = FeatureEffectsDisplay.from_estimator(model, X[5:6])
    pd.testing.assert_frame_equal(display.X, X[5:6])
    columns = make_column_transformer((OneHotEncoder(sparse_output=False), ["size"]))
    encoded = make_pipeline(columns, NadarayaWatsonRegressor(bandwidth=0.5))
    encoded.fit(X.round(), y)
    display = FeatureEffectsDisplay.from_estimator(encoded, X[5:6].round())
    assert all(name.startswith("onehotencoder__size_") for name in display.X)


def test_columns_without_names_do_not_have_values_of_others(table):
    X, y = table
    X = X.set_axis(["x0", "x1", "x2"], axis=1)
    step = FunctionTransformer(lambda frame: np.asarray(frame)[:, 1:])
    model = make_pipeline(step, NadarayaWatsonRegressor(bandwidth=0.5)).fit(X, y)
    display = FeatureEffectsDisplay.from_estimator(model, X[:1])
    assert display.X.iloc[0].tolist() == X.iloc[0, 1:].tolist()
    model = make_pipeline(StandardScaler(), NadarayaWatsonRegressor(bandwidth=0.5))
    model.fit(X.rename(columns={"x1": "base value"}), y)
    with pytest.raises(ValueError, match="X has a column named 'base value'"):
        FeatureEffectsDisplay.from_estimator(model, X.rename(columns={"x1": "base value"}))


def test_arrays_and_frames_of_polars(averages, table):
    X, y = table
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X.to_numpy(), y)
    display = FeatureEffectsDisplay.from_estimator(model, X.to_numpy()[5:6])
    assert display.X.columns.tolist() == ["x0", "x1", "x2"]
    frame = pl.DataFrame(X[5:6].to_dict("list"))
    display = FeatureEffectsDisplay.from_estimator(averages, frame)
    np.testing.assert_allclose(display.effects, averages.explain_features(X[5:6]))


def test_what_is_extreme_is_written_as_it_is():
    effects = pd.DataFrame({"base value": [-7.6], "a b": [13.8], "c": [0.0]}, index=["r"])
    X = pd.DataFrame({"a b": [None], "c": [pd.Timestamp("2026-01-01")]}, index=["r"])
    display = FeatureEffectsDisplay(effects, X, is_log_odds=True).plot()
    assert bar_texts(display.ax_) == [
        "0.05%", "0.05% → 99.8%, odds × 984609", "99.8% → 99.8%, odds × 1.00", "99.8%",
    ]  # fmt: skip
    names = ["typical row", "a b = missing", "c = 2026-01-01 00:00:00", "r"]
    assert tick_names(display.ax_.yaxis) == names
    table = pd.DataFrame(
        {"n": [123456], "x": [0.5], "s": np.array([0.1], np.float32)}, index=[7]
    )
    none = pd.DataFrame({"base value": [1.0], "n": [0.0], "x": [0.0], "s": [0.0]}, index=[7])
    display = FeatureEffectsDisplay(none, table).plot()
    names = ["typical row", "n = 123456", "x = 0.5", "s = 0.1", "row 7"]
    assert tick_names(display.ax_.yaxis) == names
    flat = pd.DataFrame({"base value": [5.0], "c": [0.0]})
    display = FeatureEffectsDisplay(flat, pd.DataFrame({"c": [1]})).plot()
    assert bar_texts(display.ax_) == ["5.00", "+0.00", "5.00"]
    huge = pd.DataFrame({"base value": [1e30], "c\nd": [-1e30]}, index=["long " * 20])
    cells = pd.DataFrame({"c\nd": [1]}, index=huge.index)
    display = FeatureEffectsDisplay(huge, cells).plot()
    assert bar_texts(display.ax_) == ["1.00e+30", "\u22121.00e+30", "0.00e+00"]
    assert len(tick_names(display.ax_.yaxis)[-1]) == 25
    assert FeatureEffectsDisplay(
        pd.concat([flat, flat]), pd.DataFrame({"c": [1]}, [0, 0])
    ).plot()


def test_what_cannot_be_drawn_is_refused(averages, analogs, classes, table, shops):
    X, y = table
    with pytest.raises(ValueError, match="X=None: pass the rows that are explained"):
        FeatureEffectsDisplay.from_estimator(averages)
    with pytest.raises(ValueError, match="KernelForecaster, which does not explain the feat"):
        FeatureEffectsDisplay.from_estimator(analogs, X)
    with pytest.raises(ValueError, match="kind='pie' is unknown: choose from"):
        FeatureEffectsDisplay.from_estimator(averages, X[:2], kind="pie")
    effects = averages.explain_features(X[:1])
    with pytest.raises(ValueError, match="effects have 1 rows and X has 2, or indices differ"):
        FeatureEffectsDisplay(effects, X[:2]).plot()
    both = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="which has 2 outputs: pass one fitted on a single"):
        FeatureEffectsDisplay.from_estimator(both, X[:2])
    labels = np.digitize(y, [-0.5, 0.5])
    three = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, labels)
    with pytest.raises(ValueError, match=r"there are 3 classes: pass .* one of \[0, 1, 2\]"):
        FeatureEffectsDisplay.from_estimator(three, X[:2])
    two = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, np.column_stack([labels, labels]))
    with pytest.raises(ValueError, match="which has 2 outputs"):
        FeatureEffectsDisplay.from_estimator(two, X[:1])
