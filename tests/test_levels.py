"""Levels are found, put in order, and known again in cells of another type."""

import re

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import Columns

# Levels in a fit, cells in a query, and the codes of these: -1 for other levels, -2 for none.
SAME_LEVELS = {
    "integers": (["94107", "94110"], [94110, 94107, 5], [1, 0, -1]),
    "floats": (["94107", "94110"], [94110.0, np.nan, 94107.5], [1, -2, -1]),
    "texts": (pd.Categorical([10, 20]), ["20", "10.0", "30"], [1, 0, -1]),
    "flags": (["True", "False"], [False, True], [0, 1]),
    "texts of flags": (pd.Categorical([True, False]), ["False", "True"], [0, 1]),
    "bins": (pd.cut([1, 2], [0, 1, 2]), ["(1, 2]", "(0, 1]"], [1, 0]),
    "an order": (pd.Categorical(list("31"), list("123"), ordered=True), [3, 1], [2, 0]),
    "mixed": (["94107", "94110"], pd.Series([94110, "94107"], dtype=object), [1, 0]),
    "own missing": (["a", "94110"], pd.array([94110, None], "Int64"), [0, -2]),
    "other categories": (["7", "8"], pd.Categorical([8, 7], [8, 9, 7]), [1, 0]),
    "no text of two levels": (["1", "1.0"], [1, 2], [-1, -1]),
    "no missing one": (["a", None, "None"], ["None", None, "a"], [0, 2, 1]),
}  # fmt: skip


def codes(X, columns):
    return np.asarray(columns.encode(X), dtype=float)


def test_cells_that_cannot_be_levels_are_named():
    frame = pd.DataFrame({"x": [1.0, 2.0], "c": [{"a": 1}, {"a": 2}]})
    with pytest.raises(
        TypeError, match=r"cells in column 'c'.*'dict'.*\): convert the column to strings or"
    ):
        Columns.learn(frame, ["c"])
    frame["c"] = frame["c"].astype(str)
    assert Columns.learn(frame, ["c"]).n_levels == [0, 2]


def test_objects_of_polars_are_a_category_if_all_are_texts():
    polars = pytest.importorskip("polars")
    for cells, kind in ((["b", None, "a"], "unordered"), (["b", 1, "a"], "numeric")):
        frame = polars.DataFrame({"c": polars.Series(cells, dtype=polars.Object)})
        assert Columns.learn(frame).kinds == (kind,)


def test_only_levels_that_occur_unless_they_are_ordered():
    unordered = pd.DataFrame({"c": pd.Categorical(["b", "b"], ["a", "b", "c"])})
    assert list(Columns.learn(unordered).categories[0]) == ["b"]
    ordered = pd.DataFrame({"c": pd.Categorical(["b", "b"], list("cba"), ordered=True)})
    assert list(Columns.learn(ordered).categories[0]) == ["c", "b", "a"]


@pytest.mark.parametrize(("fitted", "asked", "expected"), SAME_LEVELS.values(), ids=SAME_LEVELS)
def test_equal_texts_are_the_same_level(fitted, asked, expected):
    columns = Columns.learn(pd.DataFrame({"c": fitted}))
    query = pd.DataFrame({"c": asked})
    np.testing.assert_array_equal(codes(query, columns)[:, 0], expected)
    if columns.kinds == ("unordered",):
        n_new = np.count_nonzero(np.array(expected) < 0)
        assert columns.extend(query).n_levels == [columns.n_levels[0] + n_new]


@pytest.mark.parametrize(
    ("fitted", "asked", "words", "found"),
    [
        (
            ["02134", "01001"],
            [2134, 5],
            "2134, of int64, in column 'zip'.*of type (str|object), such as '01001'",
            [1, -1],
        ),
        (["02134", "01001"], [2134.0, np.nan], "2134.0, of float64", [1, -2]),
        (["02134", "94107"], [94107, 2134], "2134, of int64", [1, 0]),
        (["2134", "94107"], [1, 2, 3, 4, 5, 6], "1, of int64", [-1] * 6),
        (["yes", "no"], [True], "True, of bool", [-1]),
        (
            pd.Categorical([2134, 1]),
            ["02134", "red"],
            "'02134', of (str|object), in column 'zip'.*of type int",
            [1, -2],
        ),
        (pd.Categorical(["b"], ["b"], ordered=True), [1], "1, of int64", None),
    ],
)
def test_none_of_the_type_of_the_levels(fitted, asked, words, found):
    columns = Columns.learn(pd.DataFrame({"zip": fitted}))
    X = pd.DataFrame({"zip": asked})
    with pytest.raises(ValueError, match=rf"X has {words}") as error:
        columns.encode(X)
    if columns.kinds == ("ordered",):
        return
    with pytest.raises(ValueError, match="which is none of its levels in the"):
        columns.extend(X)
    # The remedy, followed.
    _, _, cast = str(error.value).rpartition(" by ")
    X["zip"] = eval(cast.rstrip("."), {"X": X, "pandas": pd})
    np.testing.assert_array_equal(codes(X, columns)[:, 0], found)


@pytest.mark.parametrize("n_levels", [300, 600])
def test_a_text_for_nearly_every_row_is_doubted(n_levels):
    texts = [f"2024-{i % n_levels}" for i in range(601)]
    frame = pd.DataFrame({"when": texts})
    if n_levels == 300:
        assert Columns.learn(frame).n_levels == [300]
    else:
        with pytest.warns(UserWarning, match="600 different texts in the 601 rows.*'when'"):
            Columns.learn(frame)


NUMBERS = [str(k) for k in range(30)]


@pytest.mark.parametrize("texts", [["?"], ["N/K", "Total"], ["1,000"], ["nan"], ["7 (est.)"]])
@pytest.mark.parametrize("dtype", [object, "str"])
def test_a_few_texts_among_numbers_are_doubted(texts, dtype):
    column = pd.Series(NUMBERS + texts, dtype=dtype)
    X = pd.DataFrame({"power": column, "weight": range(len(column))})
    message = (
        rf"strings, such as {re.escape(str(texts))}, and numbers in column 'power'.*to_numeric"
    )
    with pytest.warns(UserWarning, match=message):
        columns = Columns.learn(X)
    assert columns.kinds == ("unordered", "numeric")
    # Both remedies work.
    numbers = X.assign(power=pd.to_numeric(X["power"], errors="coerce"))
    assert Columns.learn(numbers).kinds == ("numeric", "numeric")
    assert Columns.learn(X.assign(power=X["power"].astype("category"))) == columns
    assert Columns.learn(X, ["power"]) == columns


def test_codes_and_texts_are_not_doubted():
    for cells in (
        NUMBERS,
        [f"{k:05}" for k in range(30)],
        [*NUMBERS, None],
        list("abcdefghij"),
    ):
        columns = Columns.learn(pd.DataFrame({"code": cells * 2}))
        assert columns.kinds == ("unordered",)
    # Of every ten levels two are texts.
    columns = Columns.learn(pd.DataFrame({"code": [*NUMBERS[:8], "A", "B"] * 3}))
    assert columns.n_levels == [10]
