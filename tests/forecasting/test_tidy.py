"""Frames with a row for each observation."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from forecasting_data import fit, make_features, make_long, make_panel, new, tidy_of

A, B = make_panel().values()
LONG, TIDY = make_long(), tidy_of(make_long())
X = make_features()


def test_further_columns_are_features():
    x = np.random.default_rng(0).normal(size=113)
    frame, features = TIDY.assign(x=x), pd.DataFrame({"x": x}, LONG.index)
    past = (TIDY["ds"] < "2019-01-01").to_numpy()
    long = fit(features[past], LONG[past])
    ahead = frame[~past].sample(frac=1, random_state=0)
    # In any order of the rows, and with the values beside them or apart; whether what
    # happened stands beside makes no difference either.
    mixed = frame[past].sample(frac=1, random_state=1)
    models = fit(mixed), fit(frame[past].drop(columns="y"), frame["y"][past].tolist())
    assert models[0].feature_names_in_ == ["x"]
    expected = long.predict(features[~past])
    for model, rows in zip(models, (ahead, ahead.drop(columns="y")), strict=True):
        found = model.predict(rows)
        steps = ["unique_id", "ds"]
        pd.testing.assert_frame_equal(found[steps], ahead[steps])
        keys = pd.MultiIndex.from_frame(found[steps])
        np.testing.assert_allclose(found["forecast"], expected.reindex(keys))
    score = long.score(features[~past], LONG[~past])
    assert models[0].score(ahead) == pytest.approx(score)
    later = (TIDY["ds"] == "2019-01-01").to_numpy()
    long.update(features[later], LONG[later])
    models[0].update(frame[later])
    np.testing.assert_array_equal(models[0].observed_.features, long.observed_.features)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (TIDY.drop(columns="y"), "'unique_id' and 'ds', but no"),
        (
            TIDY.assign(ds=TIDY["ds"].dt.strftime("%d.%m.%Y")),
            r"01.01.2015.* in its 'ds', of dtype (str|object).*pandas.to_datetime",
        ),
        (TIDY.drop(index=7), "X.*gaps in its index: 2015-08-01"),
        (TIDY.assign(place=TIDY["ds"]), "X has dates or times in column 'place'"),
    ],
)
def test_bad_frames(frame, message):
    with pytest.raises(ValueError, match=message):
        new().fit(frame)


def test_features_beside_a_tidy_frame_go_together_with_it():
    with pytest.raises(ValueError, match=r"y has the features \['x'\]"):
        new().fit(X, TIDY.assign(x=1.0))
    with pytest.raises(ValueError, match=r"unknown series, \['c'\]"):
        fit(TIDY).predict(TIDY[:3].assign(unique_id="c"))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("features", [[], ["x"]])
def test_one_series_needs_no_column_of_its_name(library, features):
    rows = tidy_of(make_long())[:60].sample(frac=1, random_state=0).sort_values("ds")
    rows = rows.assign(x=np.random.default_rng(0).normal(size=60))
    in_form = pl.from_pandas if library == "polars" else lambda frame: frame
    columns = ["unique_id", "ds", "y", *features]
    named = rows[columns]
    plain = named.drop(columns="unique_id")

    def results(rows, *key):
        frames = [in_form(part) for part in (rows[:50], rows[50:55], rows[55:])]
        model = fit(frames[0])
        yield model.predict(frames[1], coverage=0.9)
        yield model.predict(in_form(rows[50:53].drop(columns="y")))
        steps = None if not features else in_form(rows[20:50].drop(columns="y"))
        yield model.predict(steps, history=in_form(rows[20:45][[*key, "ds", "y"]]))
        yield model.backtest(in_form(rows), cv=3, coverage=0.8)
        yield model.score(frames[1])
        yield model.update(frames[1]).predict(frames[2])

    for found, expected in zip(results(plain), results(named, "unique_id"), strict=True):
        if isinstance(expected, float):
            assert found == expected
        else:
            assert type(found) is type(in_form(plain))
            expected = expected.drop("unique_id", **{"axis": 1} if library == "pandas" else {})
            assert found.equals(expected)


def test_one_series_without_name_goes_together_with_other_forms():
    rows = TIDY[:60].drop(columns="unique_id").set_axis(range(100, 160)).assign(x=[0, 1] * 30)
    model = fit(rows.drop(columns="y"), rows["y"])
    found = model.predict(rows[:2].drop(columns="y"))
    pd.testing.assert_frame_equal(found, fit(rows).predict(rows[:2]))
    assert found.index.tolist() == [100, 101]
    by_time = model.predict(rows[:2].set_index("ds")[["x"]])
    pd.testing.assert_frame_equal(by_time, found.reset_index(drop=True))
    # Of a model of a Series or of a named series it is the same series.
    for y in (A[:55], TIDY[:55]):
        grown = fit(y).update(rows[["ds", "y"]][55:])
        assert len(grown.observed_) == 1
    with pytest.raises(ValueError, match=r"y has the series \['y'\], but .* on \['a', 'b'\]"):
        fit(TIDY).update(rows[["ds", "y"]])
