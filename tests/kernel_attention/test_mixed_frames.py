"""Frames with numbers, categories, strings, booleans, and cells that are missing."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import KernelAttentionRegressor

SIZES = ["small", "medium", "large"]
READOUTS = ["average", "solve"]
QUICK = {"max_steps": 5, "n_folds": 1}


def make_frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"length": rng.uniform(-1, 1, n)})
    frame["color"] = rng.choice(["red", "green", "blue"], n)
    codes = rng.integers(3, size=n)
    frame["size"] = pd.Categorical.from_codes(codes, SIZES, ordered=True)
    frame["new"] = rng.uniform(size=n) < 0.5
    frame["kind"] = pd.Categorical(rng.choice(["a", "b"], n), ["a", "b", "never"])
    y = 2 * frame["length"] + (frame["color"] == "red") + 0.5 * codes + 0.1 * rng.normal(size=n)
    frame.loc[::9, "length"] = np.nan
    frame.loc[4::9, "color"] = None
    frame.loc[2::9, "kind"] = np.nan
    return frame, y.to_numpy()


@pytest.fixture
def data():
    return make_frame()


@pytest.mark.parametrize("readout", READOUTS)
class TestPrediction:
    def test_regressor(self, data, readout):
        frame, y = data
        model = KernelAttentionRegressor(readout, **QUICK | {"max_steps": 15}).fit(frame, y)
        queries, truth = make_frame(seed=1)
        assert model.score(queries, truth) > 0.5
        slopes, known = model.local_slopes(frame), frame["length"].notna()
        assert (slopes[known, 0] != 0).all() == (readout != "average")
        assert not slopes[~known, 0].any()
        assert not slopes[:, [1, 4]].any()
        # Lines need no kernel for what is linear, as length and size are.
        relevance = model.feature_relevance_
        assert relevance.index.tolist() == frame.columns.tolist()
        assert relevance.iloc[1] > relevance.iloc[3:].max()

    def test_unseen_levels_are_predicted(self, data, readout):
        frame, y = data
        model = KernelAttentionRegressor(readout, **QUICK).fit(frame, y)
        found = model.predict(frame.assign(color="mauve"))
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found, model.predict(frame.assign(color="pink")))
        # Neither as if red nor as if it said nothing: it is as far from every color.
        assert not np.allclose(found, model.predict(frame.assign(color="red")))


class TestLevels:
    @pytest.mark.parametrize(
        "other",
        [
            lambda frame: frame.astype({"color": "string", "kind": object}),
            lambda frame: frame.assign(color=frame["color"].fillna("zz")),
            lambda frame: frame.astype({"new": float}),
        ],
        ids=["texts", "missing is a level", "flags are numbers"],
    )
    def test_the_same_in_other_types(self, data, other):
        frame, y = data
        expected = KernelAttentionRegressor(**QUICK).fit(frame, y).predict(frame)
        found = KernelAttentionRegressor(**QUICK).fit(other(frame), y).predict(other(frame))
        np.testing.assert_array_equal(found, expected)

    def test_ordered_categories_are_numbers_in_their_order(self, data):
        frame, y = data
        model = KernelAttentionRegressor(**QUICK).fit(frame, y)
        codes = frame.assign(size=frame["size"].cat.codes.astype(float))
        other = KernelAttentionRegressor(**QUICK).fit(codes, y)
        np.testing.assert_array_equal(other.predict(codes), model.predict(frame))
        with pytest.raises(ValueError, match=r"unknown levels \['huge'\].*'size'"):
            model.predict(frame.assign(size="huge"))
