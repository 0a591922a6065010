"""Keys and queries in partitions of Dask: as the same rows in memory."""

import time

import numpy as np
import pytest
from counted_partitions import Counted

from sklearn_attention import attend, attention_weights
from sklearn_attention.attention import attend_gradient, attend_local, attention_sums

dask = pytest.importorskip("dask")
arrays = pytest.importorskip("dask.array")


def make_data(order="random", n_features=1, n=400):
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(n, n_features))
    keys = {"random": keys, "sorted": keys[np.argsort(keys[:, 0])]}[order]
    # Some are far from all keys, where weights are next to nothing.
    far = np.vstack([np.full((2, n_features), 7.0), -9 + 0 * keys[:1]])
    queries = np.vstack([keys[:: n // 17] + 0.01, far])
    values = np.sin(3 * keys[:, 0]) + 5
    return queries, keys, values, rng.uniform(0, 2, n).round(1)


def in_partitions(*tables, size=100):
    return [
        None if x is None else arrays.from_array(x, chunks=(size, -1)[: x.ndim]) for x in tables
    ]


def assert_alike(found, expected, tolerance=1e-10):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def assert_all_alike(found, expected, tolerance=1e-10):
    for ours, theirs in zip(found, expected, strict=True):
        assert_alike(ours, theirs, tolerance)


@pytest.mark.parametrize(
    ("kernel", "n_features", "order"),
    [
        ("gaussian", 1, "sorted"), ("epanechnikov", 3, "sorted"), ("silverman", 2, "random"),
    ],
)  # fmt: skip
def test_averages(kernel, n_features, order):
    queries, *rows = make_data(order, n_features)
    for weighted in (False, True):
        keys, values, weights = rows if weighted else (*rows[:2], None)
        expected = attend(queries, keys, values, kernel, bandwidth=0.3, sample_weight=weights)
        keys, values, weights = in_partitions(keys, values, weights)
        options = {"bandwidth": 0.3, "sample_weight": weights}
        found = attend(queries, keys, values, kernel, **options)
        assert all(isinstance(field, np.ndarray) for field in found)
        assert_all_alike(found, expected)
        (asked,) = in_partitions(queries, size=8)
        found = attend(asked, keys, values, kernel, **options)
        assert all(isinstance(field, arrays.Array) for field in found)
        assert [field.chunks[0] for field in found] == 2 * [asked.chunks[0]]
        assert_all_alike(found, expected)


@pytest.mark.parametrize(
    ("kernel", "empty", "order"),
    [("gaussian", "nearest", "random"), ("epanechnikov", "nan", "sorted")],
)
def test_policies_and_polynomials(kernel, empty, order):
    queries, keys, values, weights = make_data(order)
    tables = in_partitions(keys, np.column_stack([values, keys]), weights)
    values = np.column_stack([values, keys])
    options = {"bandwidth": 0.1, "empty": empty}
    expected = attend(queries, keys, values, kernel, sample_weight=weights, **options)
    keys_, values_, weights_ = tables
    found = attend(queries, keys_, values_, kernel, sample_weight=weights_, **options)
    assert_all_alike(found, expected)
    for degree in (1, 2):
        options["degree"] = degree
        expected = attend_local(queries, keys, values, kernel, sample_weight=weights, **options)
        found = attend_local(queries, keys_, values_, kernel, sample_weight=weights_, **options)
        assert_all_alike(found, expected, 1e-8)
        (asked,) = in_partitions(queries, size=8)
        found = attend_local(asked, keys_, values_, kernel, sample_weight=weights_, **options)
        assert_all_alike(found, expected, 1e-8)


@pytest.mark.parametrize(
    ("kernel", "n_features", "order"),
    [("gaussian", 1, "random"), ("epanechnikov", 3, "random")],
)
def test_leave_one_out(kernel, n_features, order):
    _, keys, values, weights = make_data(order, n_features)
    keys[5] = 20  # its own weight is all there is
    options = {"bandwidth": 0.1, "leave_one_out": True}
    expected = attend(keys, keys, values, kernel, sample_weight=weights, **options)
    (asked,) = in_partitions(keys, size=90)
    for given in ((keys, values, weights), in_partitions(keys, values, weights)):
        keys_, values_, weights_ = given
        found = attend(asked, keys_, values_, kernel, sample_weight=weights_, **options)
        assert isinstance(found[0], arrays.Array)
        assert_all_alike(found, expected)


def test_many_queries_and_keys_in_a_partition(monkeypatch):
    from sklearn_attention.attention import _smoother

    queries, keys, values, weights = make_data("sorted", n=120)
    expected = attend(queries, keys, values, bandwidth=0.1, sample_weight=weights)
    left_out = attend(keys, keys, values, bandwidth=0.1, leave_one_out=True)
    monkeypatch.setattr(_smoother, "ROWS_AT_ONCE", 15)
    keys, values, weights = in_partitions(keys, values, weights, size=40)
    assert_all_alike(
        attend(queries, keys, values, bandwidth=0.1, sample_weight=weights), expected
    )
    found = attend(keys, keys, values, bandwidth=0.1, leave_one_out=True)
    assert_all_alike(found, left_out)
    assert found[0].chunks == keys.chunks[:1]


def test_some_of_the_tables_alone():
    queries, keys, values, weights = make_data()
    expected = attend(queries, keys, values, bandwidth=0.3, sample_weight=weights)
    (asked,) = in_partitions(queries, size=8)
    keys_, values_, weights_ = in_partitions(keys, values, weights)
    for tables in (
        (asked, keys, values, weights), (queries, keys_, values, weights),
        (queries, keys, values_, weights), (queries, keys, values, weights_),
        (asked, keys_, values, weights_), (queries.tolist(), keys_, values_, weights_),
    ):  # fmt: skip
        *rows, own = tables
        assert_all_alike(attend(*rows, bandwidth=0.3, sample_weight=own), expected)


def test_partitions_that_say_nothing():
    queries, keys, values, weights = make_data()
    weights[:150] = 0
    rows = keys, values
    expected = attend(queries, keys, values, bandwidth=0.3, sample_weight=weights)
    sizes = (0, 60, 60, 0, 60, 220)
    keys, values, weights = (
        arrays.from_array(x, chunks=(sizes, -1)[: x.ndim]) for x in (keys, values, weights)
    )
    found = attend(queries, keys, values, bandwidth=0.3, sample_weight=weights)
    assert_all_alike(found, expected)
    line = attend_local(queries, *rows, bandwidth=0.3)
    assert_all_alike(attend_local(queries, keys, values, bandwidth=0.3), line, 1e-8)
    for nothing in (queries[:0], keys[:0]):
        found = attend(nothing, keys, values)
        assert [np.asarray(field).shape for field in found] == [(0,), (0,)]
    with pytest.raises(ValueError, match="sample_weight is 0 for every key"):
        attend(queries, keys, values, sample_weight=0 * weights)


def test_sizes_that_nobody_knows_stay_unknown():
    queries, keys, values, _ = make_data()
    positive = keys[:, 0] > 0
    expected = attend(queries, keys[positive], values[positive], bandwidth=0.3)
    keys, values = in_partitions(keys, values)
    some, positive = keys[keys[:, 0] > 0], keys[:, 0] > 0
    found = attend(queries, some, values[positive], bandwidth=0.3)
    assert_all_alike(found, expected)
    assert np.isnan(some.shape[0])


def test_what_does_not_go():
    queries, keys, values, _ = make_data("random", 3)
    keys_, values_ = in_partitions(keys, values)
    with pytest.raises(ValueError, match="leave_one_out=array"):
        attend(queries, keys_, values_, leave_one_out=np.zeros(len(queries), dtype=int))
    with pytest.raises(ValueError, match="there are 21 queries and 400 keys"):
        attend(queries, keys_, values_, leave_one_out=True)
    with pytest.raises(ValueError, match="query_scale does not go with Dask collections"):
        attend(queries, keys_, values_, query_scale=np.ones(len(queries)))
    with pytest.raises(TypeError, match="values is a Dask Delayed"):
        attend(queries, keys_, dask.delayed(values))
    for function in (attend_gradient, attention_weights, attention_sums):
        rows = (queries, keys_) if function is attention_weights else (queries, keys_, values_)
        with pytest.raises(ValueError, match=r"keys need all rows .*: pass keys.compute\(\)"):
            function(*rows)


def test_partitions_that_do_not_coincide_are_read_once():
    rows = Counted()
    keys = rows.keys.rechunk((150, -1))
    found, _ = attend(np.zeros((3, 1)), keys, rows.values, bandwidth=0.1)
    assert rows.made == 8
    tables = rows.keys.compute(), rows.values.compute()
    assert_alike(found, attend(np.zeros((3, 1)), *tables, bandwidth=0.1)[0])


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield cluster, client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the cluster, as it loses a worker
def test_a_worker_that_dies_midway(cluster):
    def late(rows):  # here, so that workers need not import this module
        time.sleep(1.0)
        return rows

    cluster, client = cluster
    queries, keys, values, _ = make_data("sorted", n=8000)
    expected, _ = attend(queries, keys, values, bandwidth=0.1)
    keys, values = in_partitions(keys, values, size=1000)
    (asked,) = in_partitions(queries, size=len(queries))
    keys = keys.map_blocks(late, dtype=keys.dtype)
    pending = client.compute(attend(asked, keys, values, bandwidth=0.1)[0])
    time.sleep(2.0)
    assert not pending.done()
    cluster.workers[0].process.process.kill()
    assert_alike(pending.result(timeout=60), expected)
