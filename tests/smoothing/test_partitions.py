"""Estimators on collections of Dask: as on the same rows in memory."""

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from counted_partitions import SCHEDULERS, Counted
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from sklearn_attention import (
    AdaptiveBandwidth,
    ConditionalKernelDensity,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
)
from sklearn_attention.kernels import Epanechnikov

arrays = pytest.importorskip("dask.array")

N_ROWS = 300
MODELS = [
    NadarayaWatsonRegressor(),
    NadarayaWatsonRegressor("epanechnikov", bandwidth="scott"),
    LocalPolynomialRegressor(bandwidth="loo", degree=1, empty="nan"),
    LocalPolynomialRegressor("epanechnikov", degree=2, bandwidth=0.6, empty="nan"),
    NadarayaWatsonClassifier(Epanechnikov(), bandwidth="silverman"),
    ProductKernelDensity(),
    ProductKernelDensity("epanechnikov"),
    ProductKernelDensity(bounds=(-9, 9)),
]


def make_data(n_features=1):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, n_features))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=N_ROWS)
    queries = np.linspace(-3, 3, 20 * n_features).reshape(20, -1)
    return X, y, rng.integers(0, 3, N_ROWS) / 2, queries


def in_partitions(*tables, size=100):
    return [arrays.from_array(x, (size, -1)[: x.ndim]) for x in tables]


def targets(model, y):
    if isinstance(model, NadarayaWatsonClassifier):
        return np.array(["low", "high"])[(y > 0).astype(int)]
    return None if isinstance(model, ProductKernelDensity) else y


def answers(model, queries):
    names = {"predict", "predict_proba", "score_samples", "cdf"}
    return {name: getattr(model, name)(queries) for name in names if hasattr(model, name)}


def assert_alike(found, expected, kind):
    assert found.keys() == expected.keys()
    for name, ours in found.items():
        assert isinstance(ours, kind), name
        if expected[name].dtype.kind == "U":
            assert (np.asarray(ours) == expected[name]).all()
        else:
            np.testing.assert_allclose(ours, expected[name], rtol=1e-10, atol=1e-10)


# One after the other with weights and without them.
@pytest.mark.parametrize(("model", "weighted"), zip(MODELS, itertools.cycle([False, True])))
def test_as_in_memory(model, weighted):
    X, y, weights, queries = make_data()
    y = targets(model, y)
    expected = clone(model).fit(X, y, sample_weight=weights if weighted else None)
    rows, own, asked = in_partitions(X, weights, queries, size=90)
    labels = None if y is None else in_partitions(y)[0]
    model = clone(model).fit(rows, labels, sample_weight=own if weighted else None)
    assert isinstance(model.keys_, arrays.Array)
    np.testing.assert_allclose(model.bandwidth_, expected.bandwidth_, rtol=1e-9)
    if isinstance(model, ProductKernelDensity):  # whose background is of "likelihood" alone
        expected.bandwidth_ = model.bandwidth_
    else:
        expected.set_params(bandwidth=model.bandwidth_)
        expected.fit(X, y, sample_weight=weights if weighted else None)
    assert_alike(answers(model, queries), answers(expected, queries), np.ndarray)
    assert_alike(answers(model, asked), answers(expected, queries), arrays.Array)
    # And the other way round.
    assert_alike(answers(expected, asked), answers(expected, queries), arrays.Array)
    truth = targets(model, np.sin(3 * queries[:, 0]))
    score = expected.score(queries, truth)
    ours = model.score(asked, None if truth is None else in_partitions(truth, size=7)[0])
    np.testing.assert_allclose(ours, score, rtol=1e-10)


@pytest.mark.parametrize(("kernel", "weighted"), [("gaussian", False), ("epanechnikov", True)])
def test_what_training_rows_are_predicted(kernel, weighted):
    X, y, weights, _ = (rows[:150] for rows in make_data())
    weights = weights if weighted else None
    # So narrow that nothing reaches some rows of weight 0.
    expected = NadarayaWatsonRegressor(kernel, bandwidth=0.3).fit(X, y, weights)
    rows, values = in_partitions(X, y, size=80)
    weights = in_partitions(weights)[0] if weighted else None
    model = NadarayaWatsonRegressor(kernel, bandwidth=0.3).fit(rows, values, weights)
    for name in ("loo_residuals_", "residuals_", "fitted_values_"):
        found = getattr(model, name)
        assert isinstance(found, arrays.Array)
        np.testing.assert_allclose(found, getattr(expected, name), rtol=1e-9, atol=1e-10)
    for name in ("loo_score_", "effective_dof_", "aicc_"):
        assert isinstance(getattr(model, name), float)
        assert getattr(model, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    assert str(model.summary()) == str(expected.summary())


def test_graphs_stay_as_they_are():
    """Fused in one call only, tasks of one name would differ, of which schedulers warn."""
    dask = pytest.importorskip("dask")
    X, y, weights, queries = make_data()
    rows, labels, own = in_partitions(X, y > 0, weights)
    some = rows[:, 0] > 0

    def refuse(graph, keys, **options):
        raise AssertionError("fused")

    with dask.config.set(array_optimize=refuse):
        for bandwidth in ("scott", "loo"):
            model = NadarayaWatsonRegressor(bandwidth=bandwidth)
            assert model.fit(rows, labels, sample_weight=own).loo_score_ < 1
        model = NadarayaWatsonClassifier(bandwidth="silverman").fit(rows[some], labels[some])
        model.predict(queries)


@pytest.fixture
def in_small_groups(monkeypatch):
    """A partition of queries is a group, and the first row is looked at with few others."""
    from sklearn_attention.attention import _smoother
    from sklearn_attention.smoothing import _estimator

    monkeypatch.setattr(_smoother, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr(_estimator, "_CHECKED_ROWS", 50)


@pytest.mark.parametrize(("scheduler", "n_workers"), SCHEDULERS)
def test_a_worker_holds_one_partition(scheduler, n_workers, in_small_groups):
    dask = pytest.importorskip("dask")
    rows, asked, model = Counted(), Counted(4), NadarayaWatsonRegressor(bandwidth="scott")
    calls = (
        lambda: model.fit(rows.keys, rows.values, sample_weight=rows.values**2),
        lambda: model.predict(np.zeros((3, 1))),
        lambda: model.predict(asked.keys).compute(),
        lambda: model.score(asked.keys, asked.values),
    )
    with dask.config.set(scheduler):
        for call in calls:
            rows.forget()
            asked.forget()
            call()
            assert 0 < rows.most <= n_workers
            assert asked.most <= n_workers
            assert not rows.alive | asked.alive


def test_dtypes_of_pandas():
    frames = pytest.importorskip("dask.dataframe")
    X, y, weights, queries = make_data()
    table = pd.DataFrame(X, columns=["x"]).assign(
        real=pd.array(y, dtype="Float64"), whole=pd.array(weights * 2, dtype="Int64"),
        flag=pd.array(y > 0, dtype="boolean"), text=np.where(y > 0, "a", "b"),
    )  # fmt: skip
    table["group"] = table["text"].astype("category")
    table["lost"] = table["whole"].mask(table["x"] > 1)
    parts = frames.from_pandas(table, npartitions=2)
    model = NadarayaWatsonRegressor(bandwidth="scott")
    model.fit(parts[["x", "whole"]], parts["real"], sample_weight=parts["whole"])
    rows = table[["x", "whole"]].to_numpy(float)
    expected = NadarayaWatsonRegressor(bandwidth="scott").fit(rows, y, weights * 2)
    asked = np.column_stack([queries, np.ones(20)])
    np.testing.assert_allclose(
        model.predict(pd.DataFrame(asked, columns=["x", "whole"])), expected.predict(asked)
    )
    known = {"whole": [0, 1, 2], "flag": [False, True], "text": ["a", "b"], "group": ["a", "b"]}
    for name, classes in known.items():
        voter = NadarayaWatsonClassifier(bandwidth="scott").fit(parts[["x"]], parts[name])
        assert voter.classes_.tolist() == classes
    for columns, target, weight, words in (
        (["lost"], "real", None, "X has missing values in column 'lost'"),
        (["x"], "lost", None, "y has missing values"),
        (["x"], "text", None, "y has a column that is not numeric, of string"),
        (["x"], "group", None, "y has a column that is not numeric, of category"),
        (["x"], "real", "text", "sample_weight has a column that is not"),
        ("x", "real", None, r"X has shape \(300,\), which is not"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(parts[columns], parts[target], None if weight is None else parts[weight])


def test_partial_fit():
    X, y, weights, queries = make_data()
    model = NadarayaWatsonRegressor(bandwidth="scott")
    for rows in (slice(120), slice(120, None)):
        model.partial_fit(*in_partitions(X[rows], y[rows], size=80))
    expected = NadarayaWatsonRegressor(bandwidth="scott").fit(X, y)
    assert isinstance(model.keys_, arrays.Array)
    np.testing.assert_allclose(model.predict(queries), expected.predict(queries), rtol=1e-10)
    model.partial_fit(X, y, sample_weight=weights)
    both = np.vstack([X, X]), np.hstack([y, y]), np.hstack([np.ones(N_ROWS), weights])
    expected.fit(*both)
    np.testing.assert_allclose(model.predict(queries), expected.predict(queries), rtol=1e-10)
    labels = in_partitions(y > 0)[0]
    voter = NadarayaWatsonClassifier(bandwidth="scott").fit(*in_partitions(X), labels)
    with pytest.raises(
        ValueError, match=r"y has classes .* that the first call of partial_fit did not"
    ):
        voter.partial_fit(*in_partitions(X), labels.astype(int) + 1)
    assert len(voter.keys_) == N_ROWS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y, w: (arrays.where(X > 2, np.nan, X), y, w), "X, in column 0, contains N"),
        (lambda X, y, w: (X, arrays.where(y > 1, np.inf, y), w), "y contains infinity"),
        (lambda X, y, w: (X, y, -w), "sample_weight has a negative value, -1"),
        (lambda X, y, w: (X, y[:50], w), "y has 50 rows, but there are 300"),
        (lambda X, y, w: (X, None, w), "NadarayaWatsonRegressor requires y"),
        (lambda X, y, w: (X[:0], y[:0], w[:0]), r"X has shape \(0, 1\)"),
        (lambda X, y, w: (X, y + 1j, w), "y has a column that is not numeric, of complex128"),
    ],
)
def test_what_is_refused(change, words):
    X, y, weights, _ = make_data()
    with pytest.raises(ValueError, match=words):
        NadarayaWatsonRegressor(bandwidth=0.3).fit(*change(*in_partitions(X, y, weights)))


def test_what_needs_all_rows():
    X, y, _, queries = make_data()
    rows, values, asked = in_partitions(X, y, queries)
    for bandwidth in ("knn-loo", AdaptiveBandwidth(5)):
        model = NadarayaWatsonRegressor(bandwidth=bandwidth)
        with pytest.raises(ValueError, match=r"distances to neighbours .* need all rows"):
            model.fit(rows, values)
    with pytest.raises(ValueError, match=r"\(n_neighbors=\d+\) need .* X.map_blocks"):
        model.fit(X, y).predict(asked)
    with pytest.raises(ValueError, match=r"sensitivity=0\.5 need .*: pass 0, or X.compute"):
        ProductKernelDensity(sensitivity=0.5).fit(rows)
    with pytest.raises(ValueError, match="several outputs in partitions"):
        NadarayaWatsonClassifier().fit(rows, arrays.stack([values > 0, values > 1], axis=1))
    with pytest.raises(NotFittedError):
        NadarayaWatsonRegressor().predict(asked)
    with pytest.raises(
        TypeError, match=r"X is a Dask Delayed.*: pass an array or a data frame"
    ):
        NadarayaWatsonRegressor().fit(pytest.importorskip("dask").delayed(X), values)
    with pytest.raises(ValueError, match=r"X has shape \(0, 1\)"):
        NadarayaWatsonRegressor(bandwidth=0.3).fit(X, y).predict(asked[:0])
    model = NadarayaWatsonRegressor(bandwidth=0.3).fit(rows, values)
    line = LocalPolynomialRegressor(bandwidth=0.3).fit(rows, values)
    for call, what in (
        (lambda: model.predict_interval(queries), "intervals, bands, quantiles and tests"),
        (lambda: model.feature_significance(), "intervals, bands, quantiles and tests"),
        (lambda: model.explain(queries), "explanations"),
        (lambda: model.smoother_matrix(queries), "effective weights"),
        (lambda: model.predict_gradient(queries), "derivatives of averages"),
        (lambda: line.loo_score_, "predictions of own rows by local polynomials"),
    ):
        with pytest.raises(ValueError, match=f"{what}.* need all rows in memory"):
            call()


SIZES = ["small", "medium", "large"]


def mixed_frame(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"length": rng.normal(size=n), "flag": rng.random(n) > 0.5})
    frame["color"] = rng.choice(["red", "green", "blue"], n)
    frame["size"] = pd.Categorical(rng.choice(SIZES, n), SIZES, ordered=True)
    frame["zip"] = pd.Categorical(rng.choice([30, 10, 20], n))
    frame.loc[rng.random(n) < 0.2, "color"] = None
    return frame, frame["length"] + (frame["color"] == "red")


@pytest.mark.parametrize(
    ("model", "known"),
    [
        (NadarayaWatsonRegressor(bandwidth=0.4, categorical_features=["flag"]), False),
        (LocalPolynomialRegressor("epanechnikov", bandwidth="scott", empty="nan"), True),
        (ProductKernelDensity(bandwidth="scott", categorical_features=[1]), False),
        # Which brings them into memory.
        (ConditionalKernelDensity(bandwidth="scott", degree=0), True),
    ],
)
def test_categories_as_in_memory(model, known):
    frames = pytest.importorskip("dask.dataframe")
    (X, y), (queries, _) = mixed_frame(80), mixed_frame(12, 1)
    queries.loc[3, "color"] = "mauve"
    y = targets(model, y)
    rows, asked = (frames.from_pandas(table, npartitions=3) for table in (X, queries))
    if not known:
        rows = rows.assign(size=rows["size"].cat.as_unknown(), zip=rows["zip"].cat.as_unknown())
    labels = None if y is None else frames.from_pandas(pd.Series(y, X.index), npartitions=3)
    expected = clone(model).fit(X, y)
    model = clone(model).fit(rows, labels)
    assert model.columns_ == expected.columns_
    assert model.feature_names_in_.tolist() == list(X)
    np.testing.assert_allclose(model.bandwidth_, expected.bandwidth_, rtol=1e-9)
    if isinstance(model, ConditionalKernelDensity):
        np.testing.assert_array_equal(model.predict(asked), expected.predict(queries))
        return
    assert_alike(answers(model, queries), answers(expected, queries), np.ndarray)
    assert_alike(answers(model, asked), answers(expected, queries), arrays.Array)
    assert_alike(answers(expected, asked), answers(expected, queries), arrays.Array)


def test_new_levels_in_further_partitions():
    frames = pytest.importorskip("dask.dataframe")
    X, y = mixed_frame(60)
    X = X[["length", "color"]].sort_values("color", ignore_index=True)
    parts = [frames.from_pandas(x, npartitions=2) for x in (X[:30], X[30:])]
    expected = NadarayaWatsonRegressor(bandwidth="scott").fit(X[:30], y[:30])
    model = clone(expected).fit(parts[0], y[:30])
    assert model.columns_.n_levels[1] < 4
    model.partial_fit(parts[1], y[30:])
    expected.partial_fit(X[30:], y[30:])
    assert model.columns_ == expected.columns_
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-10)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_columns_of_queries_must_match():
    frames = pytest.importorskip("dask.dataframe")
    X, y = mixed_frame(40)
    model = NadarayaWatsonRegressor(bandwidth=0.4).fit(frames.from_pandas(X, npartitions=2), y)
    for asked, words in (
        (X[list(X)[::-1]], "must be in the same order"),
        (X[["length", "color"]], "seen at fit time, yet now missing"),
        (X.assign(more=1.0), "unseen at fit time"),
        (X.assign(length="a"), "X has categories in column 'length', which is"),
    ):
        with pytest.raises(ValueError, match=words):
            model.predict(frames.from_pandas(asked, npartitions=2))
    with pytest.raises(ValueError, match="fit, some of them categorical"):
        model.predict(arrays.zeros((3, 4)))
    with pytest.raises(ValueError, match=r"0\.0, of float64, in column 2, which"):
        model.predict(arrays.zeros((3, 5))).compute()
    asked = frames.from_pandas(X, npartitions=2)
    cells = arrays.from_array(X.to_numpy(dtype=object), chunks=(20, 5))
    np.testing.assert_array_equal(model.predict(cells), model.predict(asked))
    with pytest.raises(ValueError, match=r"unknown levels \['huge'\] in the ordered.*'size'"):
        model.predict(frames.from_pandas(X.assign(size="huge"), npartitions=2))


def test_files_of_skops_are_refused():
    skops_io = pytest.importorskip("skops.io")
    X, y, _, queries = make_data()
    model = NadarayaWatsonRegressor(bandwidth=0.3).fit(*in_partitions(X, y))
    words = r"files of NadarayaWatsonRegressor by skops need .* in partitions of Dask"
    for given in (model, make_pipeline(model)):
        with pytest.raises(ValueError, match=f"{words}: use pickle, or fit rows in memory"):
            skops_io.dumps(given)
    for again in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        np.testing.assert_array_equal(again.predict(queries), model.predict(queries))


def partitions_of(*tables):
    frames = pytest.importorskip("dask.dataframe")
    return frames.from_map(tables.__getitem__, range(len(tables)), meta=tables[0].iloc[:0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda part: part[["b", "a"]], r"columns \['b', 'a'\] in a partition"),
        (lambda part: part.astype({"b": "str"}), "in column 'b' of a partition"),
        (lambda part: part.astype({"b": object}), "in column 'b' of a partition"),
    ],
)
def test_partitions_that_differ_are_named(change, words):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    target = table["a"] + 2 * table["b"]
    y = partitions_of(target[:20].to_frame("y"), target[20:].to_frame("y"))["y"]
    X = partitions_of(table[:20], change(table[20:]))
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(table, target)
    expected = model.predict(table)
    for call in (lambda: clone(model).fit(X, y), lambda: model.predict(X).compute()):
        with pytest.raises(ValueError, match=words) as error:
            call()
        # The remedy, followed.
        _, _, mended = str(error.value).rpartition(" by ")
        mended = eval(mended.rstrip("."), {"X": X, "pandas": pd})
        np.testing.assert_allclose(model.predict(mended), expected)
        np.testing.assert_allclose(clone(model).fit(mended, y).predict(table), expected)
