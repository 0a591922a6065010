"""Keys and queries that are too many at once, or in partitions of Dask: as all at once."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import attend
from sklearn_attention.attention import (
    _smoother,
    attend_local,
    attention_sums,
)


def make_data(order="random", n_features=1, n=400):
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(n, n_features))
    keys = {"random": keys, "sorted": keys[np.argsort(keys[:, 0])]}[order]
    # Some are far from all keys, where weights are next to nothing.
    far = np.vstack([np.full((2, n_features), 7.0), -9 + 0 * keys[:1]])
    queries = np.vstack([keys[:: n // 17] + 0.01, far])
    return queries, keys, np.sin(3 * keys[:, 0]) + 5, rng.uniform(0, 2, n).round(1)


def divided(*tables, size=100):
    arrays = pytest.importorskip("dask.array")
    return [
        None if x is None else arrays.from_array(x, chunks=(size, -1)[: x.ndim]) for x in tables
    ]


def assert_alike(found, expected, tolerance=1e-10):
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def in_chunks(function, *args, **options):
    """By chunks of 50 keys, and blocks of as many queries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_smoother, "ROWS_AT_ONCE", 50)
        return function(*args, **options)


def in_partitions(function, queries, *rows, sample_weight=None, **options):
    """By partitions of 100 keys, for queries in memory and in partitions."""
    (asked,), (keys, values, weights) = (
        divided(queries, size=8),
        divided(*rows, sample_weight),
    )
    options["sample_weight"] = weights
    found = function(queries, keys, values, **options)
    assert all(isinstance(field, np.ndarray) for field in found)
    again = function(asked, keys, values, **options)
    assert [field.chunks[0] for field in again] == [asked.chunks[0]] * len(found)
    assert_alike(again, found, 1e-8)
    return found


each_way = pytest.mark.parametrize("way", [in_chunks, in_partitions])


@pytest.mark.parametrize(
    ("kernel", "n_features", "order", "bandwidth", "empty"),
    [
        ("gaussian", 1, "sorted", 0.3, "nearest"),
        ("epanechnikov", 1, "sorted", 0.02, "nan"),
        ("epanechnikov", 3, "sorted", 0.3, "nearest"),
        ("silverman", 2, "random", 0.3, "nearest"),
    ],
)
@each_way
def test_averages(way, kernel, n_features, order, bandwidth, empty):
    queries, keys, values, weights = make_data(order, n_features)
    options = {"kernel": kernel, "bandwidth": bandwidth, "empty": empty}
    for own in (None, weights):
        expected = attend(queries, keys, values, sample_weight=own, **options)
        found = way(attend, queries, keys, values, sample_weight=own, **options)
        assert_alike(found, expected)


@pytest.mark.parametrize(
    ("kernel", "order", "empty", "degree"),
    [
        ("gaussian", "random", "nearest", 1),
        ("boxcar", "sorted", "nearest", 2),
        ("laplacian", "random", "nan", 2),
    ],
)
@each_way
def test_local_polynomials(way, kernel, order, empty, degree):
    queries, keys, values, weights = make_data(order)
    values = np.column_stack([values, keys])
    options = {"kernel": kernel, "bandwidth": 0.3, "empty": empty, "degree": degree}
    options["sample_weight"] = weights
    expected = attend_local(queries, keys, values, **options)
    found = way(attend_local, queries, keys, values, **options)
    # Parabolas a dozen bandwidths from all keys lose some digits.
    assert_alike(found, expected, 1e-9 if degree == 1 else 1e-8)


@each_way
def test_weights_of_any_size_and_none(way):
    queries, keys, values, weights = make_data("sorted")
    weights[:200] = 0  # whole chunks
    expected, log_sums = attend(
        queries, keys[200:], values[200:], bandwidth=0.3, sample_weight=weights[200:]
    )
    for size in (1.0, 1e300, 1e-300):
        options = {"bandwidth": 0.3, "sample_weight": size * weights}
        found = way(attend, queries, keys, values, **options)
        assert_alike(found, (expected, log_sums + np.log(size)))
    with pytest.raises(ValueError, match="sample_weight is 0 for every key"):
        way(attend, queries, keys, values, sample_weight=0 * weights)


@pytest.mark.parametrize("empty", ["nearest", "nan"])
def test_sums_of_parts_know_what_answers_where_no_key_is(empty):
    queries, keys, values, weights = make_data("sorted")
    options = {"kernel": "epanechnikov", "bandwidth": 0.01, "empty": empty}
    expected, _ = attend(queries, keys, values, sample_weight=weights, **options)
    one, two = (
        in_chunks(
            attention_sums, queries, keys[some], values[some], sample_weight=weights[some],
            **options,
        )
        for some in (slice(300), slice(300, None))
    )  # fmt: skip
    assert_alike((one + two).average(empty)[0][:, 0], expected)


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "n_features"), [("gaussian", 1), ("epanechnikov", 3)])
def test_leave_one_out(kernel, n_features, monkeypatch):
    _, keys, values, weights = make_data(n_features=n_features)
    keys[5] = 20  # its own weight is all there is
    options = {"bandwidth": 0.1, "leave_one_out": True}
    expected = attend(keys, keys, values, kernel, sample_weight=weights, **options)
    (asked,), parts = divided(keys, size=90), divided(keys, values, weights)
    for rows_at_once in (_smoother.ROWS_AT_ONCE, 15):
        monkeypatch.setattr(_smoother, "ROWS_AT_ONCE", rows_at_once)
        for own_keys, own_values, own in ((keys, values, weights), parts):
            found = attend(asked, own_keys, own_values, kernel, sample_weight=own, **options)
            assert found[0].chunks == asked.chunks[:1]
            assert_alike(found, expected)


@pytest.mark.parametrize("function", [attend, attend_local])
def test_errors_of_a_later_chunk(function):
    queries, keys, values, weights = make_data("random")
    keys[300] = np.inf
    with pytest.raises(ValueError, match="keys contains infinity"):
        in_chunks(function, queries, keys, values)
    keys[300] = 0
    weights[350] = -1
    with pytest.raises(ValueError, match="sample_weight has a negative value"):
        in_chunks(function, queries, keys, values, sample_weight=weights)
    with pytest.raises(ValueError, match=r"values must have shape \(400,\)"):
        in_chunks(function, queries, keys, values[:-1])


@pytest.mark.parametrize("function", [attend, attend_local])
@pytest.mark.parametrize(
    "form",
    [
        np.ndarray.tolist, lambda x: x.astype(object),
        lambda x: (pd.DataFrame if x.ndim == 2 else pd.Series)(x, index=np.arange(len(x)) + 5),
    ],
    ids=["lists", "objects", "pandas"],
)  # fmt: skip
def test_any_of_the_tables_in_any_form(function, form):
    queries, keys, values, weights = make_data("random", n_features=2, n=150)
    tables = {
        "queries": np.vstack([queries, keys[:60]]), "keys": keys, "values": values,
        "sample_weight": weights, "query_scale": np.linspace(1, 2, len(queries) + 60),
    }  # fmt: skip
    expected = function(**tables)
    for names in (*([name] for name in tables), tables):
        given = {name: form(x) if name in names else x for name, x in tables.items()}
        assert_alike(in_chunks(function, **given), expected)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_local_lines_in_space_do_not_read_a_map_whole(kernel, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(20_000, 3))
    np.save(tmp_path / "keys.npy", keys)
    keys_on_disk = np.load(tmp_path / "keys.npy", mmap_mode="r")
    values, queries = keys[:, 0] ** 2, rng.normal(size=(5, 3))
    expected = attend_local(queries, keys, values, kernel, bandwidth=1.5)
    monkeypatch.setattr(_smoother, "ROWS_AT_ONCE", 500)
    tracemalloc.start()
    found = attend_local(queries, keys_on_disk, values, kernel, bandwidth=1.5)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert_alike(found, expected)
    # That is what a chunk of the keys takes; all of them have 24 bytes each.
    assert peak < 14 * len(keys)
