"""Partitions of Dask, of estimators that learn from rows in memory."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_cases import slow_but

from sklearn_attention import (
    KernelAttentionClassifier,
    KernelAttentionRegressor,
    NadarayaWatsonRegressor,
    Training,
    TransformerClassifier,
    TransformerRegressor,
)
from sklearn_attention._partitions import partitions
from sklearn_attention._rows_in_partitions import _draw, _hash_rows

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
QUICK = {"n_folds": 1, "max_steps": 1, "boosting": None}
TINY = {
    "d_model": 8, "n_heads": 2, "n_layers": 1, "baseline": False,
    "training": Training(max_steps=2, validation_fraction=None),
}  # fmt: skip
QUANTILES = {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]}
# Estimators, and calls of their methods that predict.
CALLS = [
    (KernelAttentionRegressor(**QUICK), "predict", {}),
    (KernelAttentionRegressor(**QUICK), "predict", {"return_std": True}),
    (KernelAttentionRegressor(**QUICK), "predict_interval", {"coverage": 0.8}),
    (KernelAttentionRegressor("average", **QUICK), "predict_quantiles", {"quantiles": [0.2]}),
    (KernelAttentionRegressor(**QUICK), "explain_features", {}),
    (KernelAttentionRegressor(**QUICK), "explain_features", {"return_std": True}),
    (KernelAttentionClassifier(**QUICK), "predict", {}),
    (KernelAttentionClassifier(**QUICK), "predict_proba", {}),
    (KernelAttentionClassifier(**QUICK), "explain_features", {"class_label": "low"}),
    (TransformerRegressor(**TINY), "predict", {}),
    (TransformerRegressor(**TINY, **QUANTILES), "predict_quantiles", {"quantiles": [0.1]}),
    (TransformerRegressor(**TINY), "explain_features", {}),
    (TransformerClassifier(**TINY), "predict", {}),
    (TransformerClassifier(**TINY), "predict_proba", {}),
    (TransformerClassifier(**TINY), "predict_log_proba", {}),
]


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def make_rows(n=60, seed=0):
    """Rows of numbers and categories with missing cells, by labels, and their targets."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    color = rng.choice(["red", "green", None], n)
    rows = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, size),
            "count": rng.integers(0, 4, n),
            "color": pd.Series(color, dtype=object),
            "grade": pd.Categorical(rng.choice(list("abc"), n), ordered=True),
        }
    )
    rows.index = [f"row {k}" for k in rng.permutation(n)]
    return rows, pd.Series(size + (color == "red") + rows["count"].to_numpy(), rows.index)


def labels(y):
    return pd.Series(np.where(y > y.median(), "high", "low"), y.index)


def targets(model, y):
    return labels(y) if hasattr(model, "predict_proba") else y


def divided(rows, ends):
    """A Dask frame or series with partitions that end at these rows; some may be empty."""
    edges = [0, *sorted(ends), len(rows)]
    parts = tuple(rows[a:b] for a, b in itertools.pairwise(edges))
    return dd.from_map(parts.__getitem__, range(len(parts)), meta=rows[:0])


def assert_alike(lazy, expected):
    """Assert that lazy results are those in memory, with the same types, names and index."""
    if isinstance(expected, list | tuple):
        assert type(lazy) is type(expected)
        for pair in zip(lazy, expected, strict=True):
            assert_alike(*pair)
    elif isinstance(expected, pd.DataFrame):
        assert isinstance(lazy, dd.DataFrame)
        assert (lazy._meta.dtypes == expected.dtypes).all()
        computed = lazy.compute()
        assert lazy._meta.index.dtype == computed.index.dtype
        pd.testing.assert_frame_equal(
            computed, expected, check_index_type=False, rtol=1e-5, atol=1e-5
        )
    else:
        assert isinstance(lazy, da.Array)
        assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(lazy.compute(), expected)


@pytest.mark.parametrize(
    ("model", "method", "options"), slow_but([CALLS[k] for k in (1, 5, 7, 13)], CALLS)
)
def test_lazy_predictions_equal_those_in_memory(model, method, options):
    rows, y = make_rows()
    model.fit(rows, targets(model, y))
    # Queries have a new level, and the third partition is empty.
    queries, _ = make_rows(30, seed=1)
    queries["color"] = queries["color"].where(queries["count"] > 0, "blue")
    expected = getattr(model, method)(queries, **options)
    lazy = getattr(model, method)(divided(queries, [7, 20, 20]), **options)
    assert_alike(lazy, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, object])
@pytest.mark.parametrize("known", [True, False], ids=["sizes", "unknown sizes"])
def test_arrays_are_predicted_lazily(dtype, known):
    X = np.arange(80).reshape(40, 2) % 7 + np.arange(40)[:, None] % 3
    model = KernelAttentionRegressor(**QUICK).fit(X.astype(np.float64), X.sum(axis=1))
    X = X.astype(dtype)
    queries = da.from_array(X, chunks=((15, 0, 25), (1, 1)))
    if not known:
        queries = queries[da.ones(40, chunks=((15, 0, 25),), dtype=bool)]
    assert_alike(model.predict_interval(queries), model.predict_interval(X))


def test_several_outputs_are_predicted_lazily():
    rows, y = make_rows()
    several = pd.DataFrame({"a": labels(y), "b": rows["count"].astype(str)})
    model = KernelAttentionClassifier(**QUICK).fit(rows, several)
    queries = divided(rows, [20, 40])
    assert_alike(model.predict_proba(queries), model.predict_proba(rows))
    assert_alike(model.predict(queries), model.predict(rows))
    assert model.score(queries, divided(several, [20, 40])) == model.score(rows, several)


def test_nothing_is_computed_before_it_is_asked_for():
    rows, y = make_rows()
    model = KernelAttentionRegressor(**QUICK).fit(rows, y)
    asked = []

    def read(part):
        asked.append(part)
        return rows[:20]

    queries = dd.from_map(read, range(3), meta=rows[:0])
    predictions = model.predict(queries)
    n_counted = len(asked)  # all partitions, to count their rows, and the first for one row
    assert n_counted == 4
    np.testing.assert_allclose(predictions[:20].compute(), model.predict(rows[:20]))
    assert len(asked) == n_counted + 1


def test_lazy_predictions_are_those_of_the_fit_before_them():
    rows, y = make_rows()
    model = KernelAttentionRegressor(**QUICK).fit(rows, y)
    expected, lazy = model.predict(rows), model.predict(divided(rows, [30]))
    model.fit(rows, -y)
    np.testing.assert_allclose(lazy.compute(), expected)


def test_the_graph_has_the_model_once():
    rows, y = make_rows(300)
    model = KernelAttentionRegressor(**QUICK).fit(rows, y)
    one, many = (
        len(pickle.dumps(dict(model.predict(divided(rows[:60], ends)).dask)))
        for ends in ([30], range(1, 60))
    )
    assert (many - one) / 58 < len(pickle.dumps(model)) / 20


def test_errors_about_queries_and_arguments_come_at_once():
    rows, y = make_rows()
    model = KernelAttentionRegressor(**QUICK).fit(rows, y)
    queries = divided(rows, [30])
    with pytest.raises(ValueError, match="coverage=2"):
        model.predict_interval(queries, coverage=2)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(queries.rename(columns={"size": "length"}))
    with pytest.raises(ValueError, match="background does not fit"):
        model.explain_features(queries, background=queries[["size"]])


def test_smoothers_load_what_they_explain_into_memory():
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, X[:, 0])
    assert isinstance(model.explain_features(da.from_array(X, chunks=(5, 2))), pd.DataFrame)


def test_sequences_and_texts_are_predicted_lazily():
    rng = np.random.default_rng(0)
    X, texts = rng.normal(size=(20, 5, 2)), pd.Series(["good", "not bad", "bad", "no"] * 5)
    for rows, queries in [(X, da.from_array(X, (7, 5, 1))), (texts, divided(texts, [6]))]:
        model = TransformerRegressor(**TINY).fit(rows, np.arange(20.0))
        assert_alike(model.predict(queries), model.predict(rows))


def test_no_rows_are_refused():
    rows, y = make_rows()
    model = KernelAttentionRegressor(**QUICK).fit(rows, y)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(divided(rows[:0], [0]))


def fitted(model, X, y, weights=None):
    """A model fitted to partitions, which warns that it learns from 25 rows."""
    with pytest.warns(UserWarning, match=r"max_rows=25: .* learns from 25 of the \d\d rows"):
        return model.fit(X, y, weights)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(
    st.permutations(range(60)), st.lists(st.integers(0, 60), max_size=4), st.booleans(),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_a_sample_is_the_same_in_any_partitions(order, ends, copied, weighted, as_frames):
    """Whatever the division and the order of rows, with copies, weights of 0 and categories."""
    rows, y = make_rows()
    if copied:
        rows, y = rows.iloc[np.arange(60) % 30], y.iloc[np.arange(60) % 30]
    weights = pd.Series(np.arange(60) % 3 + 0.0, rows.index) if weighted else None
    model = KernelAttentionRegressor(**QUICK, max_rows=25)
    expected = fitted(model, divided(rows, [10]), divided(y, [10]), weights)
    expected, keys = expected.predict(rows), expected.keys_
    order = list(order)
    y = y.iloc[order]
    again = fitted(
        model,
        divided(rows.iloc[order], ends),
        divided(y, ends) if as_frames else da.from_array(y.to_numpy(), chunks=7),
        None if weights is None else weights.iloc[order],
    )
    np.testing.assert_array_equal(again.keys_, keys)
    np.testing.assert_array_equal(again.predict(rows), expected)


@pytest.mark.parametrize(
    "model", slow_but([], [KernelAttentionClassifier(**QUICK), TransformerClassifier(**TINY)])
)
def test_classes_are_drawn_from_partitions(model):
    rows, y = make_rows()
    model.set_params(max_rows=25, class_weight="balanced")
    fitted(model, divided(rows, [20, 40]), divided(labels(y), [20, 40]))
    expected = model.predict_proba(rows)
    fitted(model, divided(rows, [33]), divided(labels(y), [33]))
    np.testing.assert_array_equal(model.predict_proba(rows), expected)


def test_validation_rows_are_drawn_too():
    rows, y = make_rows()
    model = TransformerRegressor(**TINY, max_rows=25)
    parts = divided(rows, [20]), divided(y, [20])
    with pytest.warns(UserWarning, match="25 of the 60 rows") as warned:
        model.fit(rows, y, X_val=parts[0], y_val=parts[1])
    assert len(warned) == 1


def test_all_rows_are_learned_from_in_their_order():
    rows, y = make_rows()
    model = KernelAttentionRegressor(**QUICK, max_rows=60)
    expected = model.fit(rows, y).predict(rows)
    found = model.fit(divided(rows, [20]), divided(y, [20])).predict(rows)
    np.testing.assert_array_equal(found, expected)


def test_a_sample_of_copies_has_as_many_of_each_as_the_rows():
    """Of ten different rows with 100 copies each, 200 drawn ones are 20 copies of each."""
    X = da.from_array(np.arange(1000)[:, None] % 10 + 0.5, chunks=(77, 1))
    rows, y = _draw(200, partitions(X, X[:, 0]), X.chunks[0])
    assert np.unique(rows, return_counts=True)[1].tolist() == [20] * 10
    np.testing.assert_array_equal(rows[:, 0], y)


def test_a_sample_is_like_all_rows():
    """Means of 4000 of 40 000 rows differ from those of all by what chance explains."""
    X = np.random.default_rng(0).normal(size=(40_000, 3))
    (rows,) = _draw(4000, partitions(da.from_array(X, chunks=(10_000, 3))), [10_000] * 4)
    assert len(np.unique(rows, axis=0)) == 4000
    assert (np.abs(rows.mean(axis=0)) < 4 / np.sqrt(4000)).all()
    assert (np.abs(rows.std(axis=0) - 1) < 4 / np.sqrt(8000)).all()


def test_a_number_has_one_hash_in_all_types():
    columns = [np.array([1, 0, 2]), np.array([True, False, True]), np.array([1.0, 0.0, np.nan])]
    integers = pd.DataFrame(dict(enumerate(columns)))
    others = integers.astype({0: "Int8", 1: np.float64, 2: "Float64"})
    np.testing.assert_array_equal(*(_hash_rows(x) for x in (integers, others)))


@pytest.mark.parametrize("value", [0, 2.5, "many", None])
def test_a_maximum_that_is_no_count_is_refused(value):
    rows, y = make_rows()
    for model in (
        KernelAttentionRegressor(max_rows=value),
        TransformerRegressor(max_rows=value),
    ):
        with pytest.raises(ValueError, match=rf"max_rows={value!r} is not valid: pass an int"):
            model.fit(rows, y)


def test_targets_of_other_lengths_are_refused():
    rows, y = make_rows()
    model = KernelAttentionRegressor(**QUICK, max_rows=25)
    with pytest.raises(ValueError, match="y has 59 rows, but there are 60 rows of X"):
        model.fit(divided(rows, [20]), y[:59])
    with pytest.raises(ValueError, match="sample_weight has 59 rows"):
        model.fit(divided(rows, [20]), y, np.ones(59))
