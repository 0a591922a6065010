"""Frames with a row for each observation."""

import numpy as np
import pandas as pd
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
        (TIDY.drop(columns="y"), "'unique_id' and 'ds', but none of the values"),
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
    with pytest.raises(ValueError, match=r"y has the features \['x'\] beside X"):
        new().fit(X, TIDY.assign(x=1.0))
    with pytest.raises(ValueError, match=r"unknown series, \['c'\]"):
        fit(TIDY).predict(TIDY[:3].assign(unique_id="c"))
