"""Partitions of Dask: a task for each, which reads it itself, and a tree that merges."""

import operator

import numpy as np
import pandas as pd
import pytest

from sklearn_attention._partitions import (
    map_rows,
    need_all_rows,
    partitions,
    reduce_partitions,
    reduce_rows,
    run_on_partitions,
)

dask = pytest.importorskip("dask")
arrays = pytest.importorskip("dask.array")

X = np.arange(24.0).reshape(12, 2)


def added(*tables):
    return sum(x.sum() for x in tables if x is not None)


def tasks(found):
    """Keys of all tasks that some results take, without data."""
    keys = {x.key for x in found}
    graph = found[0].dask.cull(keys).to_dict()
    return [key for key, node in graph.items() if dask.core.istask(node)]


def tables_of(kind):
    if kind == "frame":
        frames = pytest.importorskip("dask.dataframe")
        frame = frames.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=3)
        return frame[["b", "a"]] * 1.0, frame["a"].astype("float32"), None
    rows = arrays.from_array(X, chunks=(4, -1))
    return rows[:, ::-1] + 0.0, rows[:, 0].astype(np.float32), None


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_a_partition_is_one_task(kind):
    found = run_on_partitions(added, partitions(*tables_of(kind)))
    assert len(found) == len(tasks(found)) == 3
    expected = [X[rows].sum() + X[rows, 0].sum() for rows in np.split(np.arange(12), 3)]
    assert list(dask.compute(*found)) == expected


@pytest.mark.parametrize("verify", [True, False])
def test_frames_of_delayed_tasks_are_read(verify):
    frames = pytest.importorskip("dask.dataframe")
    parts = [pd.DataFrame({"a": own[:, 0]}) for own in np.split(X, 3)]
    tasks = [dask.delayed(pd.DataFrame.copy)(part) for part in parts]
    frame = frames.from_delayed(tasks, meta=parts[0][:0], verify_meta=verify)
    found = run_on_partitions(added, partitions(frame))
    assert list(dask.compute(*found)) == [part["a"].sum() for part in parts]


def noted(calls):
    def note(x):
        calls.append(x)
        return x

    return note


def test_what_is_common_is_computed_once():
    calls, rows = [], arrays.from_array(X, chunks=(4, -1))
    common = dask.delayed(noted(calls))(1)
    rows = [(k, *own) for k, own in enumerate(partitions(rows))]
    found = run_on_partitions(lambda one, two, k, x: one + two + k + x.sum(), rows, common, 2)
    expected = [3 + k + part.sum() for k, part in enumerate(np.split(X, 3))]
    assert list(dask.compute(*found)) == expected
    assert calls == [1]
    # So is what two partitions share.
    calls, whole = [], arrays.from_array(X, chunks=(6, -1)) + 0
    rows = whole.map_blocks(noted(calls), meta=X[:0]).rechunk((4, -1))
    (total,) = dask.compute(reduce_partitions(added, operator.add, partitions(rows)))
    assert (total, len(calls)) == (X.sum(), 2)


def test_results_are_merged_but_for_none():
    rows = arrays.from_array(X, chunks=(1, -1))

    def some(x):
        return None if x.sum() % 2 else x.sum()

    for function, expected in ((added, X.sum()), (some, None), (lambda x: x[0, 0] % 4, 12)):
        (found,) = dask.compute(reduce_partitions(function, operator.add, partitions(rows)))
        assert found == expected


def squares(power, x):
    return x**power, x[:, 0]


def test_a_statistic_of_rows_wherever_they_are():
    calls, rows = [], arrays.from_array(X, chunks=(5, -1))
    assert reduce_rows(noted(calls), np.append, X) is X
    assert len(calls) == 1
    assert reduce_rows(added, operator.add, X, None) == reduce_rows(
        added, operator.add, rows, None
    )
    fields = [((2,), float), ((), float)]
    for x in (X, rows):
        for found, expected in zip(map_rows(squares, x, fields, 2), squares(2, X), strict=True):
            np.testing.assert_array_equal(found, expected)
            assert isinstance(found, type(x))


def test_what_needs_all_rows_is_refused():
    need_all_rows("medians", X, None)
    with pytest.raises(ValueError, match=r"medians need all rows in memory.*Dask: pass some\."):
        need_all_rows("medians", None, arrays.from_array(X), remedy="pass some")


@pytest.mark.slow
def test_rows_that_lie_on_a_cluster():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        rows = client.persist(arrays.from_array(X, chunks=(4, -1)) + 0)
        for lying in (rows, rows[:, :1] * 2):
            (total,) = dask.compute(reduce_partitions(added, operator.add, partitions(lying)))
            assert total == lying.compute().sum()
        part = client.submit(np.negative, X)
        lying = arrays.from_delayed(dask.delayed(np.abs)(part), X.shape, float)
        (total,) = dask.compute(reduce_partitions(added, operator.add, partitions(lying)))
        assert total == X.sum()
