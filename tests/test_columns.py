"""Frames with categories become numbers and codes, and nothing else does."""

import datetime

import numpy as np
import pandas as pd
import pytest
from every_estimator import answer
from sklearn.base import clone

from sklearn_attention import (
    Columns,
    KernelAttentionClassifier,
    KernelAttentionRegressor,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
    TransformerRegressor,
)
from sklearn_attention._columns import encode_usual_frame
from sklearn_attention._frames import numeric_table

SIZES = ["small", "medium", "large"]
QUICK = {"n_folds": 1, "max_steps": 2}
TINY = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 1, "random_state": 0}


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


def codes(X, columns):
    return np.asarray(columns.encode(X), dtype=float)


def test_codes_are_positions_of_levels(frame):
    before = frame.copy(deep=True)
    columns = Columns.learn(frame)
    assert columns.kinds == ("numeric", "unordered", "ordered", "numeric", "numeric")
    assert columns.categories == (None, ("blue", "green", "red"), tuple(SIZES), None, None)
    encoded = columns.encode(frame)
    assert list(encoded) == list(frame)
    np.testing.assert_array_equal(encoded["color"], [2, 0, 2, 1])
    np.testing.assert_array_equal(encoded["size"], [2, 0, 0, 1])
    pd.testing.assert_series_equal(encoded["length"], frame["length"])
    pd.testing.assert_frame_equal(frame, before)
    # Nothing can change them, so that they may be keys.
    with pytest.raises(AttributeError):
        columns.kinds = ("numeric",) * 5
    assert {columns: 1}[Columns.learn(before)] == 1


@pytest.mark.parametrize(
    "X",
    [np.zeros((3, 2)), [[1, 2]], np.array([[1, True]]), None, 3, pd.DataFrame({"a": [True]})],
    ids=repr,
)
def test_what_has_no_categories_is_left_alone(X):
    columns = Columns.learn(X)
    assert columns == Columns.numbers(len(columns.kinds))
    assert columns.encode(X) is X
    assert columns.extend(X) == columns


@pytest.mark.parametrize("dtype", ["category", "str", object])
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_cells_of_every_kind_of_text_are_a_level(missing, dtype):
    frame = pd.DataFrame({"c": pd.Series(["b", missing, "a", missing], dtype=dtype)})
    columns = Columns.learn(frame)
    assert columns.kinds == ("unordered",)
    assert columns.categories == (("a", "b", None),)
    np.testing.assert_array_equal(codes(frame, columns)[:, 0], [1, 2, 0, 2])
    # Where none was missing they are neither a level nor another one.
    complete = Columns.learn(frame[["c"]][::2])
    np.testing.assert_array_equal(codes(frame, complete)[:, 0], [1, -2, 0, -2])


def test_categories_of_numbers():
    frame = pd.DataFrame({"zip": pd.Categorical([30, 10, 20, 10])})
    frame["rank"] = pd.Categorical([3, 1, 2, 1], [1, 2, 3], ordered=True)
    columns = Columns.learn(frame)
    assert columns.kinds == ("unordered", "ordered")
    np.testing.assert_array_equal(codes(frame, columns), [[2, 2], [0, 0], [1, 1], [0, 0]])
    # The same levels as plain numbers are the same levels.
    plain = pd.DataFrame({"zip": [10, 40], "rank": [2, 3]})
    np.testing.assert_array_equal(codes(plain, columns), [[0, 1], [-1, 2]])


def test_levels_that_were_not_seen(frame):
    columns = Columns.learn(frame)
    query = frame.assign(color=["red", "mauve", "Red", ""])
    np.testing.assert_array_equal(codes(query, columns)[:, 1], [2, -1, -1, -1])
    # Text that names levels of an order will do, and so will another order of the dtype.
    sizes = ["small", "large", "medium", "small"]
    for column in (sizes, pd.Categorical(sizes, SIZES[::-1])):
        found = codes(frame.assign(size=column), columns)[:, 2]
        np.testing.assert_array_equal(found, [0, 2, 1, 0])


def test_tables_that_are_not_like_the_first(frame):
    columns = Columns.learn(frame)
    lost = frame["size"].where(frame["count"] > 2)
    for words, X in (
        (
            "2 missing cells in column 'size', an ordered category.*fill",
            frame.assign(size=lost),
        ),
        (
            r"unknown levels \['huge', 'tiny'\].*'size'.*every",
            frame.assign(size=["small", "huge", "tiny", "large"]),
        ),
        (
            "categories in column 'count', which is",
            frame.assign(count=list("abcd")),
        ),
        (r"have the 5 columns of the fit.*pass a table", frame[["color"]]),
        (r"have the 5 columns of the fit.*pass a table", frame.to_numpy()[:, 1:].tolist()),
    ):
        with pytest.raises(ValueError, match=words):
            columns.encode(X)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.ones((4, 2)) + 1j, r"^Complex data .*: X has \(1\+1j\) in column 0\. Pass real"),
        (
            pd.DataFrame({"when": pd.to_timedelta([1, 2, 3], "h"), "size": 1.0}),
            "'when': make numbers of them, such as",
        ),
        (
            pd.DataFrame({"s": pd.Categorical(["a", None], ["b", "a"], ordered=True)}),
            "X has 1 missing cells in column 's', an ordered category",
        ),
    ],
)
def test_what_cannot_be_learned_is_named(X, words):
    with pytest.raises(ValueError, match=words):
        Columns.learn(X)
    with pytest.raises(
        ValueError,
        match=r"kinds=\('number',\) does not match.*column pass 'numeric'",
    ):
        Columns(("number",), (None,))


READERS = [
    LocalPolynomialRegressor(bandwidth=0.5),
    NadarayaWatsonClassifier(bandwidth=0.5),
    ProductKernelDensity(bandwidth=0.5),
    KernelAttentionRegressor(**QUICK),
    pytest.param(TransformerRegressor(**TINY), marks=pytest.mark.slow),
]


def rows_with_codes():
    """Rows with a column of codes as texts, and targets."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(size=60), "zip": rng.choice(["10", "20", "30"], 60)})
    return X, (X["x"] + (X["zip"] == "10")).round().to_numpy()


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("estimator", READERS, ids=lambda own: type(own).__name__)
def test_every_estimator_reads_levels_of_other_types_and_cells_by_position(estimator):
    """As they come back from a file, and as explainers make tables of a frame."""
    X, y = rows_with_codes()
    model = clone(estimator).fit(X, y)
    expected = answer(model, (X, y))
    cells = X.to_numpy(dtype=object)
    for rows in (X.assign(zip=X["zip"].astype(int)), cells, cells.tolist()):
        np.testing.assert_array_equal(answer(model, (rows, y)), expected)
    with pytest.raises(ValueError, match="X has True, of bool"):
        answer(clone(estimator).fit(X.assign(zip=X["zip"] + "a"), y), (X.assign(zip=True), y))


@pytest.mark.parametrize("estimator", [KernelAttentionRegressor, KernelAttentionClassifier])
@pytest.mark.parametrize("named", [["zip"], [1], [False, True]])
def test_numbers_that_are_categories_of_kernel_attention(estimator, named):
    X, y = rows_with_codes()
    numbers = X.astype({"zip": float})
    model = estimator(**QUICK, categorical_features=named).fit(numbers, y)
    assert model.columns_.kinds == ("numeric", "unordered")
    np.testing.assert_allclose(model.predict(numbers), estimator(**QUICK).fit(X, y).predict(X))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_cells_without_names_are_read_by_position(frame, missing):
    frame = frame.astype({"color": object})
    frame.loc[3, "color"] = missing
    columns, cells = Columns.learn(frame), frame.to_numpy(dtype=object)
    for X in (cells, cells.tolist()):
        encoded = columns.encode(X)
        assert encoded.dtype == np.float64
        np.testing.assert_array_equal(encoded, codes(frame, columns))
        assert columns.extend(X) == columns
    texts = np.hstack([cells[:3, :4].astype(str), [["1"], ["0"], ["1"]]])
    np.testing.assert_array_equal(columns.encode(texts), codes(frame[:3], columns))
    cells[0, 1] = "mauve"
    assert columns.encode(cells)[0, 1] == -1
    assert "mauve" in columns.extend(cells).categories[1]
    cells[0, 3] = "many"
    with pytest.raises(ValueError, match="could not convert string to float: 'many'"):
        columns.encode(cells)


def test_new_levels_come_last(frame):
    columns = Columns.learn(frame)
    more = frame.assign(color=["mauve", "red", None, "beige"])
    extended = columns.extend(more)
    assert extended.categories[1] == ("blue", "green", "red", "beige", "mauve", None)
    assert extended.categories[2] == tuple(SIZES)
    assert columns.categories[1] == ("blue", "green", "red")
    np.testing.assert_array_equal(codes(more, extended)[:, 1], [4, 2, 5, 3])
    assert extended.extend(more) == extended
    # Other shapes are left to checks of them.
    for other in (frame[["color"]], np.zeros((2, 4))):
        assert columns.extend(other) is columns


def test_new_levels_may_be_of_another_type():
    """One that is coded -1 would be taken for every level that was never seen."""
    columns = Columns.learn(pd.DataFrame({"zip": pd.Categorical([10, 20])}))
    for cells in ([20, 30], [np.nan, 20.0]):
        more = pd.DataFrame({"zip": cells})
        extended = columns.extend(more)
        assert len(extended.categories[0]) == 3
        assert (codes(more, extended) >= 0).all()


def test_indexes_and_names_of_any_kind_stay(frame):
    expected = codes(frame, Columns.learn(frame))
    for index in (list("wxyz"), [7, 7, 7, 7], pd.date_range("2020", periods=4)):
        names = [("a", i) for i in range(5)]
        other = frame.set_axis(index, axis=0).set_axis(names, axis=1)
        encoded = Columns.learn(other).encode(other)
        np.testing.assert_array_equal(encoded.astype(float), expected)
        assert list(encoded.index) == list(index)
        assert list(encoded.columns) == names


def test_frames_of_polars():
    polars = pytest.importorskip("polars")
    cells = {"x": [1.0, 2.0, 3.0], "c": ["b", None, "a"], "o": ["m", "s", None]}
    for kind in (polars.String, polars.Categorical, polars.Enum(["s", "m", "l"])):
        # An Enum lists levels that need have no order: it is a category like others.
        frame = polars.DataFrame(cells, schema_overrides={"o": kind})
        columns = Columns.learn(frame)
        assert columns.kinds == ("numeric", "unordered", "unordered")
        assert columns.categories[2] == ("m", "s", None)
        encoded = columns.encode(frame)
        assert isinstance(encoded, polars.DataFrame)
        np.testing.assert_array_equal(encoded.to_numpy(), [[1, 1, 0], [2, 2, 1], [3, 0, 2]])
    with pytest.raises(TypeError, match=r"LazyFrame.*collect\(\)"):
        Columns.learn(frame.lazy())
    for own, words in (
        ([datetime.date(2024, 1, 1), None, None], "dates or times in column 'own'"),
        ([[1.0], [2.0], [3.0]], "a sequence in each cell of"),
        ([{"a": 1}] * 3, r"records in column 'own': .* X\.unnest\('own'\)"),
    ):
        with pytest.raises(ValueError, match=words):
            Columns.learn(frame.with_columns(polars.Series("own", own)))


class TestDecode:
    @pytest.mark.parametrize("as_frame", [False, True])
    def test_undoes_encode(self, frame, as_frame):
        frame = frame[["length", "color", "size"]].copy()
        frame.loc[1, "color"] = None
        columns = Columns.learn(frame)
        decoded = columns.decode(codes(frame, columns), as_frame=as_frame)
        again = pd.DataFrame(decoded).set_axis(frame.columns, axis=1)
        np.testing.assert_array_equal(codes(again, columns), codes(frame, columns))
        if as_frame:
            assert list(decoded[1].cat.categories) == ["green", "red"]
            assert list(decoded[2].cat.categories) == SIZES
            assert decoded[2].cat.ordered
        else:
            assert decoded[1].tolist() == [2.5, None, "small"]

    def test_levels_of_numbers_make_an_array_of_numbers(self):
        X = np.array([[3.5, 1.0], [7.0, np.nan], [3.5, 1.0]])
        columns = Columns.learn(X, [0, 1])
        assert columns.categories == ((3.5, 7.0), (1.0, None))
        encoded = columns.encode(X)
        np.testing.assert_array_equal(encoded, [[0, 0], [1, 1], [0, 0]])
        np.testing.assert_array_equal(columns.decode(encoded), X)


class TestPartitions:
    """As on the same rows in one frame."""

    @pytest.fixture(autouse=True)
    def collections(self):
        self.frames = pytest.importorskip("dask.dataframe")
        self.dask = pytest.importorskip("dask")
        with self.dask.config.set({"dataframe.convert-string": False}):
            yield

    def rows(self, *parts):
        return self.frames.from_map(parts.__getitem__, range(len(parts)), meta=parts[0][:0])

    @pytest.mark.parametrize(
        "parts",
        [
            ([], ["a", "b"], []), (["a", "b"], ["b", "c"], ["c", "a"]),
            (["a", "b"], [None, None]), ([None], [None, None]),
        ],
        ids=["empty", "absent levels", "all missing in one", "all missing"],
    )  # fmt: skip
    @pytest.mark.filterwarnings("ignore:The behavior of DataFrame concatenation with empty")
    @pytest.mark.parametrize("dtype", ["str", "category", object])
    def test_texts(self, parts, dtype):
        tables = [
            pd.DataFrame({"x": np.ones(len(part)), "c": pd.Series(part, dtype=dtype)})
            for part in parts
        ]
        # Each has the categories that occur in it.
        rows, whole = self.rows(*tables), pd.concat(tables, ignore_index=True)
        columns = Columns.learn(rows)
        assert columns == Columns.learn(whole)
        np.testing.assert_array_equal(columns.encode(rows).compute(), codes(whole, columns))

    def test_ordered_ones(self, frame):
        parts = self.frames.from_pandas(frame, npartitions=2)
        for rows in (parts, parts.assign(size=parts["size"].cat.as_unknown())):
            assert Columns.learn(rows) == Columns.learn(frame)
        other = frame.assign(size=frame["size"].cat.reorder_categories(SIZES[::-1]))
        for more in (other, frame.assign(size=frame["size"].astype(str))):
            words = "ordered category in column 'size' whose order differs.*CategoricalDtype"
            with pytest.raises(ValueError, match=words):
                Columns.learn(self.rows(frame, more))
        lost = frame.assign(size=frame["size"].where(frame["count"] > 2))
        with pytest.raises(ValueError, match=r"4 missing cells in column 'size'.*fill them"):
            Columns.learn(self.rows(lost, frame, lost))

    def test_objects(self):
        def parts(*cells):
            return [pd.DataFrame({"c": pd.Series(own, dtype=object)}) for own in cells]

        rows = self.rows(*parts([1, 2.5], [True, "3"], []))
        columns = Columns.learn(rows)
        assert columns == Columns.numbers(1)
        assert columns.encode(rows).compute()["c"].tolist() == [1.0, 2.5, 1.0, 3.0]
        rows = self.rows(*parts(["a", "b"], [1, 2]))
        encoded = Columns.learn(rows).encode(rows)
        with pytest.raises(ValueError, match=r"X has (categories|texts)"):
            encoded.compute()
        named = Columns.learn(self.rows(*parts(["a", "b"], [1, None])), ["c"])
        assert named.categories == ((1, "a", "b", None),)

    def test_numbers_are_not_read(self, frame):
        rows = self.frames.from_pandas(frame[["length", "count", "flag"]], npartitions=2)

        def refuse(*args, **options):
            raise AssertionError("computed")

        with self.dask.config.set(scheduler=refuse):
            columns = Columns.learn(rows)
            assert columns == Columns.numbers(3)
            assert columns.encode(rows) is rows
            # Nor are they where there are categories.
            asked = Columns.learn(frame).encode(self.frames.from_pandas(frame, npartitions=2))
            assert list(asked.columns) == list(frame)

    def test_many_texts_are_doubted(self):
        parts = [pd.DataFrame({"when": [f"2024-{k}-{i}" for i in range(20)]}) for k in "ab"]
        with pytest.warns(UserWarning, match="40 different texts in the 40 rows.*'when'"):
            Columns.learn(self.rows(*parts))

    def test_objects_are_read_where_they_are_needed(self):
        flags = pd.DataFrame({"a": pd.array([True, None] * 10, "boolean"), "b": range(20)})
        rows, y = self.frames.from_pandas(flags, npartitions=3), np.arange(20) % 3
        model = TransformerRegressor(**TINY, baseline=False)
        expected = clone(model).fit(flags, y).predict(flags)
        np.testing.assert_allclose(model.fit(rows, y).predict(rows), expected, rtol=1e-5)
        objects = rows.to_dask_array(lengths=True).astype(object)
        assert numeric_table(objects).shape == (20, 2)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("form", ["pandas", "Float64", "polars", "array", "lists", "objects"])
def test_errors_about_numbers_name_their_columns(form, bad):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(size=30), "pay": rng.normal(size=30)})
    other, name = X.assign(pay=X["pay"].where(X.index != 3, bad)), 1
    if form == "Float64":
        X, other = X.astype(form), other.astype(form)
    if form in ("pandas", "polars", "Float64"):
        X, other = X.assign(city="Rome"), other.assign(city="Rome")
        name = "pay"
    if form == "polars":
        X, other = map(pytest.importorskip("polars").from_pandas, (X, other))
    elif form not in ("pandas", "Float64"):
        X, other = X.to_numpy(), other.to_numpy(object if form == "objects" else float)
        X, other = (X.tolist(), other.tolist()) if form == "lists" else (X, other)
    model = NadarayaWatsonRegressor(bandwidth=1.0)
    word = "NaN" if np.isnan(bad) else "infinity"
    message = rf"Input X contains {word}(?s:.*)Columns with {word} are \[{name!r}\]: replace"
    with pytest.raises(ValueError, match=message):
        model.fit(other, np.arange(30.0))
    with pytest.raises(ValueError, match=message):
        model.fit(X, np.arange(30.0)).predict(other)


# Columns that queries have instead of those of the training frame.
OTHER_CELLS = {
    "as in fit": {},
    "unknown level": {"color": ["pink", "red", "blue", "red"]},
    "missing level": {"color": ["red", None, "blue", "red"]},
    "texts as objects": {"color": pd.Series(["red", "pink", None, "red"], dtype=object)},
    "category of other levels": {"color": pd.Categorical(["red", "pink", None, "red"])},
    "missing number": {"length": [1.0, np.nan, 2.0, 3.0]},
    "single precision": {"length": np.arange(4, dtype=np.float32)},
    "flags as numbers": {"flag": [0, 1, 1, 0]},
}


class TestUsualFrames:
    """Frames that look like those of `fit` are read to the same numbers as all others."""

    @pytest.mark.parametrize("name", OTHER_CELLS)
    @pytest.mark.parametrize("n_rows", [4, 1])
    def test_numbers_are_those_of_scikit_learn(self, frame, name, n_rows):
        model = KernelAttentionRegressor(**QUICK).fit(frame, range(4))
        queries = frame.assign(**OTHER_CELLS[name]).set_axis([7, 8, 9, 3]).iloc[:n_rows]
        found = encode_usual_frame(
            model.columns_, queries, model.feature_names_in_, allow_nan=True
        )
        expected = model._checked_rows(queries, reset=False, dtype=(np.float64, np.float32))
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype

    @pytest.mark.parametrize(
        "dtypes", [[np.float32] * 2, [np.float32, np.int64], [bool, np.int8]]
    )
    def test_precision_is_that_of_scikit_learn(self, dtypes):
        numbers = pd.DataFrame({"a": np.arange(5) % 2, "b": np.arange(5) % 3})
        numbers = numbers.astype(dict(zip("ab", dtypes, strict=True)))
        model = KernelAttentionRegressor(**QUICK).fit(numbers, range(5))
        names = model.feature_names_in_
        found = encode_usual_frame(model.columns_, numbers, names, allow_nan=True)
        expected = model._checked_rows(numbers, reset=False, dtype=(np.float64, np.float32))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize(
        "change",
        [
            lambda X: X[X.columns[::-1]],
            lambda X: X.assign(length=np.inf),
            lambda X: X.assign(length=X["length"].astype("Float64")),
            lambda X: X.assign(length=X["length"].astype(object)),
            lambda X: X.assign(color=[["red"], ["blue"], ["red"], ["red"]]),
            lambda X: X.assign(color=pd.Timestamp("2024-01-01")),
            lambda X: X.assign(color=1.0),
            lambda X: X.to_numpy(dtype=object),
            lambda X: X.iloc[:0],
        ],
    )
    def test_all_else_is_left_to_scikit_learn(self, frame, change):
        model = KernelAttentionRegressor(**QUICK).fit(frame, range(4))
        columns, names = model.columns_, model.feature_names_in_
        assert encode_usual_frame(columns, change(frame), names, allow_nan=True) is None

    def test_missing_numbers_of_smoothers_are_left_to_scikit_learn(self, frame):
        model = NadarayaWatsonRegressor(bandwidth=1.0).fit(frame, range(4))
        with pytest.raises(ValueError, match=r"Columns with NaN are \['length'\]"):
            model.predict(frame.assign(length=np.nan))

    def test_unknown_levels_of_an_ordered_category_are_refused(self, frame):
        model = KernelAttentionRegressor(**QUICK).fit(frame, range(4))
        with pytest.raises(ValueError, match="unknown levels"):
            model.predict(frame.assign(size=pd.Categorical(["huge"] * 4)))

    def test_codes_in_place_of_levels_are_refused(self, frame):
        model = KernelAttentionRegressor(**QUICK).fit(frame, range(4))
        with pytest.raises(ValueError, match="pass the levels themselves, not their codes"):
            model.predict(frame.assign(color=pd.Categorical([1, 2, 1, 2])))
