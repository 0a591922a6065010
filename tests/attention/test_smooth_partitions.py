"""Averages and polynomials where queries or keys are Dask collections: as those of arrays."""

import time

import numpy as np
import pytest
from counted_partitions import Counted

from sklearn_attention import attend, attention_weights
from sklearn_attention.attention import attend_gradient, attend_local, attention_sums


def make_data(n=400, n_features=1):
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(n, n_features))
    # Some queries are far from all keys, where weights are tiny.
    far = np.vstack([np.full((2, n_features), 7.0), np.full((1, n_features), -9.0)])
    queries = np.vstack([keys[:: n // 17] + 0.01, far])
    return queries, keys, np.sin(3 * keys[:, 0]) + 5, rng.uniform(0, 2, n).round(1)


def divided(*tables, size=100):
    """Tables as Dask arrays, in chunks of `size` rows."""
    arrays = pytest.importorskip("dask.array")
    return [arrays.from_array(x, chunks=(size, -1)[: x.ndim]) for x in tables]


def assert_alike(fields, expected, tolerance=1e-10):
    for ours, theirs in zip(fields, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


class TestPartitions:
    def test_some_of_the_tables_alone(self):
        queries, keys, values, weights = make_data()
        expected = attend(queries, keys, values, bandwidth=0.3, sample_weight=weights)
        (asked,), parts = divided(queries, size=8), divided(keys, values, weights)
        for *rows, own in (
            (asked, keys, values, weights), (queries, parts[0], values, weights),
            (queries, keys, parts[1], weights), (queries, keys, values, parts[2]),
            (queries.tolist(), *parts),
        ):  # fmt: skip
            assert_alike(attend(*rows, bandwidth=0.3, sample_weight=own), expected)

    def test_may_be_empty_and_of_unknown_sizes(self):
        arrays = pytest.importorskip("dask.array")
        queries, *rows, _ = make_data()
        sizes = (0, 60, 60, 0, 60, 220)
        keys, values = (arrays.from_array(x, chunks=(sizes, -1)[: x.ndim]) for x in rows)
        for function, tolerance in ((attend, 1e-10), (attend_local, 1e-8)):
            expected = function(queries, *rows, bandwidth=0.3)
            found = function(queries, keys, values, bandwidth=0.3)
            assert_alike(found, expected, tolerance)
        for nothing in (queries[:0], keys[:0]):
            found = attend(nothing, keys, values)
            assert [np.asarray(field).shape for field in found] == [(0,), (0,)]
        some = rows[0][:, 0] > 0
        expected = attend(queries, rows[0][some], rows[1][some], bandwidth=0.3)
        some = keys[:, 0] > 0
        chosen = keys[some]
        assert_alike(attend(queries, chosen, values[some], bandwidth=0.3), expected)
        assert np.isnan(chosen.shape[0])

    def test_what_does_not_go(self):
        dask = pytest.importorskip("dask")
        queries, keys, values, _ = make_data(n_features=3)
        given = queries, *divided(keys, values)
        with pytest.raises(ValueError, match="leave_one_out=array"):
            attend(*given, leave_one_out=np.zeros(len(queries), dtype=int))
        with pytest.raises(ValueError, match="there are 21 queries and 400 keys"):
            attend(*given, leave_one_out=True)
        with pytest.raises(ValueError, match="query_scale is not supported with"):
            attend(*given, query_scale=np.ones(len(queries)))
        with pytest.raises(TypeError, match="values is a Dask Delayed"):
            attend(*given[:2], dask.delayed(values))
        for function in (attend_gradient, attention_weights, attention_sums):
            rows = given[:2] if function is attention_weights else given
            with pytest.raises(ValueError, match=r"keys need all rows .*pass keys.compute\(\)"):
                function(*rows)

    def test_that_do_not_coincide_are_read_once(self):
        rows = Counted()
        keys = rows.keys.rechunk((150, -1))
        found = attend(np.zeros((3, 1)), keys, rows.values, bandwidth=0.1)
        assert rows.made == 8
        tables = rows.keys.compute(), rows.values.compute()
        assert_alike(found, attend(np.zeros((3, 1)), *tables, bandwidth=0.1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the cluster, as it loses a worker
def test_a_worker_that_dies_midway(cluster):
    def late(rows):  # here, so that workers need not import this module
        time.sleep(1.0)
        return rows

    cluster, client = cluster
    queries, keys, values, _ = make_data(n=8000)
    expected, _ = attend(queries, keys, values, bandwidth=0.1)
    (asked,), (keys, values) = (
        divided(queries, size=len(queries)),
        divided(keys, values, size=1000),
    )
    keys = keys.map_blocks(late, dtype=keys.dtype)
    pending = client.compute(attend(asked, keys, values, bandwidth=0.1)[0])
    time.sleep(2.0)
    assert not pending.done()
    cluster.workers[0].process.process.kill()
    assert_alike(pending.result(timeout=60), expected)
