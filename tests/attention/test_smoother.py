"""Keys and queries that are too many at once: as all of them at once."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import attend
from sklearn_attention.attention import _smoother, attend_local, attention_sums


def in_chunks(function, *args, **options):
    """By chunks of 50 keys, and blocks of as many queries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_smoother, "ROWS_AT_ONCE", 50)
        return function(*args, **options)


def make_data(order, n_features=1, n=700):
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(n, n_features))
    keys = {"random": keys, "sorted": keys[np.argsort(keys[:, 0])]}[order]
    # Some are far from all keys, where weights are next to nothing.
    queries = np.vstack([keys[::40] + 0.01, np.full((2, n_features), 7.0), -9 + 0 * keys[:1]])
    values = np.sin(3 * keys[:, 0]) + 5
    return queries, keys, values, rng.uniform(0, 2, n).round(1)


def assert_alike(found, expected, tolerance=1e-10):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("kernel", "order", "bandwidth"),
    [("gaussian", "random", 0.5), ("epanechnikov", "sorted", 0.02)],
)
def test_averages_along_a_line(kernel, order, bandwidth):
    queries, keys, values, weights = make_data(order)
    options = {"bandwidth": bandwidth, "sample_weight": weights}
    expected = attend(queries, keys, values, kernel, **options)
    found = in_chunks(attend, queries, keys, values, kernel, **options)
    for ours, theirs in zip(found, expected, strict=True):
        assert_alike(ours, theirs)


@pytest.mark.parametrize(
    ("kernel", "order", "empty", "degree"),
    [
        ("gaussian", "random", "nearest", 1),
        ("boxcar", "sorted", "nearest", 2),
        ("laplacian", "random", "nan", 2),
    ],
)
def test_local_polynomials(kernel, order, empty, degree):
    queries, keys, values, weights = make_data(order)
    options = {"bandwidth": 0.3, "sample_weight": weights, "empty": empty, "degree": degree}
    expected = attend_local(queries, keys, values, kernel, **options)
    found = in_chunks(attend_local, queries, keys, values, kernel, **options)
    for ours, theirs in zip(found, expected, strict=True):
        # Parabolas a dozen bandwidths from all keys lose some digits.
        assert_alike(ours, theirs, 1e-9 if degree == 1 else 1e-8)


@pytest.mark.parametrize("empty", ["nearest", "nan"])
def test_what_answers_where_no_key_is(empty):
    queries, keys, values, weights = make_data("sorted")
    options = {"bandwidth": 0.01, "sample_weight": weights, "empty": empty}
    expected, _ = attend(queries, keys, values, "epanechnikov", **options)
    found, _ = in_chunks(attend, queries, keys, values, "epanechnikov", **options)
    assert_alike(found, expected)
    parts = (
        in_chunks(
            attention_sums, queries, keys[some], values[some], "epanechnikov", bandwidth=0.01,
            sample_weight=weights[some], empty=empty,
        )
        for some in (slice(300), slice(300, None))
    )  # fmt: skip
    one, two = parts
    assert_alike((one + two).average(empty)[0][:, 0], expected)


def test_weights_of_any_size_and_none():
    queries, keys, values, weights = make_data("sorted")
    weights[:200] = 0  # whole chunks
    expected, log_sums = attend(
        queries, keys[200:], values[200:], bandwidth=0.3, sample_weight=weights[200:]
    )
    for size in (1.0, 1e300, 1e-300):
        options = {"bandwidth": 0.3, "sample_weight": size * weights}
        found, found_sums = in_chunks(attend, queries, keys, values, **options)
        assert_alike(found, expected)
        assert_alike(found_sums, log_sums + np.log(size))
    with pytest.raises(ValueError, match="sample_weight is 0 for every key"):
        in_chunks(attend, queries, keys, values, sample_weight=0 * weights)


@pytest.mark.parametrize("function", [attend, attend_local])
def test_errors_of_a_later_chunk(function):
    queries, keys, values, weights = make_data("random")
    keys[600] = np.inf
    with pytest.raises(ValueError, match="keys contains infinity"):
        in_chunks(function, queries, keys, values)
    keys[600] = 0
    weights[650] = -1
    with pytest.raises(ValueError, match="sample_weight has a negative value"):
        in_chunks(function, queries, keys, values, sample_weight=weights)
    with pytest.raises(ValueError, match=r"values must have shape \(700,\)"):
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
        for ours, theirs in zip(in_chunks(function, **given), expected, strict=True):
            assert_alike(ours, theirs)


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
    for ours, theirs in zip(found, expected, strict=True):
        assert_alike(ours, theirs)
    # What a part of the keys takes, and not all, as 24 bytes each.
    assert peak < 12 * len(keys)
