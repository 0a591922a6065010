"""Averages over partitions of Dask, of which only the sums travel, as docs/size.md has it."""

import time

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from sklearn_attention import NadarayaWatsonRegressor
from sklearn_attention.attention import attend, finish, merge, partial_attend

dask = pytest.importorskip("dask")
bag = pytest.importorskip("dask.bag")
arrays = pytest.importorskip("dask.array")


def make_data():
    rng = np.random.default_rng(0)
    keys = np.sort(rng.normal(size=(8000, 1)), axis=0)  # partitions are ranges
    return np.linspace(-5, 5, 50)[:, None], keys, np.sin(3 * keys[:, 0])


def slow_part(*args, seconds=0.0, **options):
    time.sleep(seconds)
    return partial_attend(*args, **options)


def total(queries, keys, values, seconds=0.0, **options):
    """The sums over 8 partitions, merged four at a time; not yet computed."""
    keys, values = (arrays.from_array(x, chunks=(1000, *x.shape[1:])) for x in (keys, values))
    pairs = zip(keys.to_delayed().ravel(), values.to_delayed().ravel(), strict=True)
    part, asked = dask.delayed(slow_part), dask.delayed(queries)
    parts = [dask.delayed([part(asked, *pair, seconds=seconds, **options)]) for pair in pairs]
    return bag.from_delayed(parts).fold(merge, split_every=4)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplacian"])
def test_partitions_in_threads(kernel):
    data = make_data()
    expected, _ = attend(*data, kernel, bandwidth=0.1)
    found, _ = finish(total(*data, kernel=kernel, bandwidth=0.1).compute(scheduler="threads"))
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-10, atol=1e-10)


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield cluster, client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the cluster, as it loses a worker
def test_a_worker_that_dies_midway(cluster):
    cluster, client = cluster
    data = make_data()
    expected, _ = attend(*data, bandwidth=0.1)
    pending = client.compute(total(*data, seconds=1.0, bandwidth=0.1))
    time.sleep(2.0)
    assert not pending.done()
    cluster.workers[0].process.process.kill()
    found, _ = finish(pending.result(timeout=60))
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the cluster, as it ends
def test_a_grid_search_on_two_workers(cluster):
    _, keys, values = make_data()
    keys, values = keys[::20], values[::20]
    model = NadarayaWatsonRegressor(bandwidth=1.0)
    search = GridSearchCV(model, {"bandwidth": [0.05, 0.2, 1.0]}, cv=3)
    expected = search.fit(keys, values).cv_results_["mean_test_score"]
    with joblib.parallel_config(backend="dask"):
        found = search.fit(keys, values).cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
