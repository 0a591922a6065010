"""Frames with categories become numbers and codes, and nothing else does."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention._columns import encode_categories, extend_categories, learn_categories

SIZES = ["small", "medium", "large"]


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "length": [1.5, 2.5, 0.5, 3.0],
            "color": ["red", "blue", "red", "green"],
            "size": pd.Categorical(["large", "small", "small", "medium"], SIZES, ordered=True),
            "count": [1, 2, 3, 4],
            "flag": [True, False, True, True],
        }
    )


def codes(X, categories, kinds):
    return np.asarray(encode_categories(X, categories, kinds), dtype=float)


def test_codes_are_positions_of_levels(frame):
    categories, kinds = learn_categories(frame)
    assert kinds == ["numeric", "unordered", "ordered", "numeric", "numeric"]
    assert categories[0] is categories[3] is categories[4] is None
    assert list(categories[1]) == ["blue", "green", "red"]
    assert list(categories[2]) == SIZES
    encoded = encode_categories(frame, categories, kinds)
    assert isinstance(encoded, pd.DataFrame)
    assert list(encoded) == list(frame)
    np.testing.assert_array_equal(encoded["color"], [2, 0, 2, 1])
    np.testing.assert_array_equal(encoded["size"], [2, 0, 0, 1])
    pd.testing.assert_series_equal(encoded["length"], frame["length"])


@pytest.mark.parametrize(
    "X", [np.zeros((3, 2)), [[1, 2]], np.array([["a"]], dtype=object), None, "text", 3]
)
def test_what_is_no_frame_is_left_alone(X):
    assert learn_categories(X) == (None, None)
    assert encode_categories(X, None, None) is X
    assert extend_categories(X, None, None) is None


def test_frames_of_numbers_are_left_alone(frame):
    numbers = frame[["length", "count", "flag"]]
    assert learn_categories(numbers) == (None, None)
    assert encode_categories(numbers, None, None) is numbers


@pytest.mark.parametrize("dtype", ["category", "str", "string", object])
def test_every_kind_of_text(dtype):
    frame = pd.DataFrame({"c": pd.Series(["b", "a", "b"], dtype=dtype)})
    categories, kinds = learn_categories(frame)
    assert kinds == ["unordered"]
    assert list(categories[0]) == ["a", "b"]
    np.testing.assert_array_equal(codes(frame, categories, kinds), [[1], [0], [1]])


def test_categories_of_numbers():
    frame = pd.DataFrame({"zip": pd.Categorical([30, 10, 20, 10])})
    frame["rank"] = pd.Categorical([3, 1, 2, 1], [1, 2, 3], ordered=True)
    categories, kinds = learn_categories(frame)
    assert kinds == ["unordered", "ordered"]
    np.testing.assert_array_equal(
        codes(frame, categories, kinds), [[2, 2], [0, 0], [1, 1], [0, 0]]
    )
    # The same levels as plain numbers are the same levels.
    plain = pd.DataFrame({"zip": [10, 40], "rank": [2, 3]})
    np.testing.assert_array_equal(codes(plain, categories, kinds), [[0, 1], [-1, 2]])


def test_levels_of_several_types():
    frame = pd.DataFrame({"c": pd.Categorical(["x", 2, 1.5, "x"])})
    categories, kinds = learn_categories(frame)
    assert len(categories[0]) == 3
    found = codes(frame, categories, kinds)[:, 0]
    assert found[0] == found[3]
    assert len(set(found)) == 3


def test_columns_of_other_objects_are_no_categories():
    frame = pd.DataFrame({"n": pd.Series([1, 2.5], dtype=object), "c": ["a", "b"]})
    assert learn_categories(frame)[1] == ["numeric", "unordered"]


def test_only_levels_that_occur_unless_they_are_ordered():
    unordered = pd.DataFrame({"c": pd.Categorical(["b", "b"], ["a", "b", "c"])})
    assert list(learn_categories(unordered)[0][0]) == ["b"]
    ordered = pd.DataFrame({"c": pd.Categorical(["b", "b"], list("cba"), ordered=True)})
    assert list(learn_categories(ordered)[0][0]) == ["c", "b", "a"]


class TestMissing:
    @pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
    @pytest.mark.parametrize("dtype", ["category", "str", object])
    def test_is_a_level_of_unordered_ones(self, missing, dtype):
        frame = pd.DataFrame({"c": pd.Series(["b", missing, "a", missing], dtype=dtype)})
        categories, kinds = learn_categories(frame)
        assert list(categories[0]) == ["a", "b", None]
        np.testing.assert_array_equal(codes(frame, categories, kinds)[:, 0], [1, 2, 0, 2])
        alone = pd.DataFrame({"c": [np.nan]})
        np.testing.assert_array_equal(codes(alone, categories, kinds), [[2]])

    def test_is_unseen_where_none_was_missing(self):
        categories, kinds = learn_categories(pd.DataFrame({"c": ["a", "b"]}))
        for missing in (None, np.nan):
            query = pd.DataFrame({"c": ["a", missing]})
            np.testing.assert_array_equal(codes(query, categories, kinds)[:, 0], [0, -1])

    def test_is_an_error_in_ordered_ones(self, frame):
        spoiled = frame.assign(size=frame["size"].where(frame["count"] > 2))
        message = "X has 2 missing cells in column 'size', an ordered category.*fill them"
        with pytest.raises(ValueError, match=message):
            learn_categories(spoiled)
        with pytest.raises(ValueError, match=message):
            encode_categories(spoiled, *learn_categories(frame))


class TestUnseen:
    def test_unordered_levels_are_minus_1(self, frame):
        categories, kinds = learn_categories(frame)
        query = frame.assign(color=["red", "mauve", "Red", ""])
        np.testing.assert_array_equal(codes(query, categories, kinds)[:, 1], [2, -1, -1, -1])

    def test_ordered_levels_are_an_error(self, frame):
        categories, kinds = learn_categories(frame)
        query = frame.assign(size=["small", "huge", "tiny", "large"])
        with pytest.raises(
            ValueError, match=r"unknown levels \['huge', 'tiny'\].*'size'.*every"
        ):
            encode_categories(query, categories, kinds)
        # Text that names known levels will do, and so will another order of the dtype.
        sizes = ["small", "large", "medium", "small"]
        for column in (sizes, pd.Categorical(sizes, SIZES[::-1])):
            found = codes(frame.assign(size=column), categories, kinds)[:, 2]
            np.testing.assert_array_equal(found, [0, 2, 1, 0])

    def test_categories_where_numbers_were(self, frame):
        categories, kinds = learn_categories(frame)
        with pytest.raises(ValueError, match="categories in column 'count', which was numeric"):
            encode_categories(frame.assign(count=list("abcd")), categories, kinds)


class TestExtend:
    def test_new_levels_come_last(self, frame):
        categories, kinds = learn_categories(frame)
        more = frame.assign(color=["mauve", "red", None, "beige"])
        extended = extend_categories(more, categories, kinds)
        assert list(extended[1]) == ["blue", "green", "red", "beige", "mauve", None]
        assert list(extended[2]) == SIZES
        assert list(categories[1]) == ["blue", "green", "red"]
        np.testing.assert_array_equal(codes(more, extended, kinds)[:, 1], [4, 2, 5, 3])
        again = extend_categories(more, extended, kinds)
        assert list(again[1]) == list(extended[1])

    def test_whatever_type_they_come_in(self):
        # A key that is coded -1 would be taken for every level never seen.
        categories, kinds = learn_categories(pd.DataFrame({"zip": pd.Categorical([10, 20])}))
        for more in (pd.DataFrame({"zip": [20, 30]}), pd.DataFrame({"zip": [np.nan, 20.0]})):
            extended = extend_categories(more, categories, kinds)
            assert len(extended[0]) == 3
            assert (codes(more, extended, kinds) >= 0).all()

    def test_other_shapes_are_left_to_the_checks(self, frame):
        categories, kinds = learn_categories(frame)
        for more in (frame[["color"]], np.zeros((2, 5))):
            assert extend_categories(more, categories, kinds) is categories


class TestFrames:
    def test_index_and_names_of_any_kind(self, frame):
        expected = codes(frame, *learn_categories(frame))
        for index in (list("wxyz"), [7, 7, 7, 7], pd.date_range("2020", periods=4)):
            other = frame.set_axis(index, axis=0)
            encoded = encode_categories(other, *learn_categories(other))
            np.testing.assert_array_equal(encoded.astype(float), expected)
            assert list(encoded.index) == list(index)
        for names in (range(5), [("a", i) for i in range(5)]):
            other = frame.set_axis(list(names), axis=1)
            encoded = encode_categories(other, *learn_categories(other))
            np.testing.assert_array_equal(encoded.astype(float), expected)
            assert list(encoded.columns) == list(names)

    def test_other_shapes(self, frame):
        learnt = learn_categories(frame)
        for X in (np.zeros((4, 5)), frame[["color"]], frame.to_numpy().tolist()):
            with pytest.raises(ValueError, match=r"not the 5 columns.*pass a data frame"):
                encode_categories(X, *learnt)

    def test_rows_are_not_changed(self, frame):
        before = frame.copy(deep=True)
        encode_categories(frame, *learn_categories(frame))
        pd.testing.assert_frame_equal(frame, before)

    def test_polars(self):
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame(
            {"x": [1.0, 2.0, 3.0], "c": ["b", None, "a"], "o": ["m", "s", "m"]}
        ).with_columns(o=polars.col("o").cast(polars.Enum(["s", "m", "l"])))
        categories, kinds = learn_categories(frame)
        assert kinds == ["numeric", "unordered", "ordered"]
        encoded = encode_categories(frame, categories, kinds)
        assert isinstance(encoded, polars.DataFrame)
        np.testing.assert_array_equal(encoded.to_numpy(), [[1, 1, 1], [2, 2, 0], [3, 0, 1]])


def test_order_may_be_left_out_of_account():
    column = pd.Categorical(["low", None, "high"], ["low", "mid", "high"], ordered=True)
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "c": column})
    categories, kinds = learn_categories(frame, ordered=False)
    assert kinds == ["numeric", "unordered"]
    assert list(categories[1]) == ["high", "low", None]
    codes = encode_categories(frame, categories, kinds)["c"]
    assert list(codes) == [1, 2, 0]
