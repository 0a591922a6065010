"""The nearest keys: along a line, by a tree, and among all pairs, against a loop."""

import numpy as np
import pytest

from sklearn_attention.attention._algorithms import _nearest
from sklearn_attention.attention._algorithms._nearest import nearest_along, nearest_sums

N = 80
PLACES = {
    "normal": lambda rng, d: rng.normal(size=(N, d)),
    "tied": lambda rng, d: np.round(rng.normal(size=(N, d))),
    "outlier": lambda rng, d: np.vstack([rng.normal(size=(N - 1, d)), np.full((1, d), 1e9)]),
    "next to nothing": lambda rng, d: 1e-200 * rng.normal(size=(N, d)),
}


def slow_nearest(keys, columns, queries, own):
    distances, sums = [], []
    for query, left_out in zip(queries, own, strict=True):
        others = [k for k in range(len(keys)) if k != left_out]
        scale = np.abs(keys).max()
        apart = [np.sqrt((((keys[k] - query) / scale) ** 2).sum()) * scale for k in others]
        near = [k for k, x in zip(others, apart, strict=True) if x <= min(apart) * (1 + 1e-14)]
        distances.append(min(apart))
        sums.append(columns[:, near].sum(axis=1))
    return np.array(distances), np.array(sums).T


@pytest.mark.parametrize(
    ("place", "leave_out"),
    [("normal", False), ("tied", True), ("outlier", True), ("next to nothing", False)],
)
@pytest.mark.parametrize("way", ["line", "tree", "pairs"])
def test_equals_a_loop(place, leave_out, way, monkeypatch):
    rng = np.random.default_rng(0)
    d = 1 if way == "line" else 3
    keys = PLACES[place](rng, d)
    if way == "line":
        keys = np.sort(keys, axis=0)
    if way == "tree" and place == "next to nothing":
        pytest.skip("squares of such distances vanish in a tree")
    columns = rng.uniform(1, 2, (3, N))
    queries, own = keys, np.where(np.arange(N) % 5, np.arange(N), -1)
    if not leave_out:
        queries, own = PLACES[place](rng, d)[:30], np.full(30, -1)
    expected = slow_nearest(keys, columns, queries, own)
    own = own if leave_out else None
    monkeypatch.setattr(_nearest, "FEW_PAIRS", 0 if way == "tree" else np.inf)
    monkeypatch.setattr(_nearest, "ROWS_AT_ONCE", 1000)
    monkeypatch.setattr(_nearest, "IN_CACHE", 1000)
    if way == "line":
        found = nearest_along(keys[:, 0], columns, queries[:, 0], own)
    else:
        found = nearest_sums(keys, columns, queries, own)
    for ours, slow in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, slow, rtol=1e-12)


@pytest.mark.parametrize("leave_out", [False, True])
def test_light_keys_along_a_line_beside_heavy_ones(leave_out):
    """Sums over the nearest have all digits, also without a key that outweighs its twins."""
    rng = np.random.default_rng(0)
    keys = np.sort(rng.integers(0, 30, N)).astype(float)[:, None]
    weights = 10.0 ** rng.uniform(-20, 20, N)
    columns = weights * rng.uniform(1, 2, (3, N))
    queries = keys if leave_out else rng.integers(0, 90, (60, 1)) / 3
    own = np.arange(N) if leave_out else np.full(60, -1)
    expected = slow_nearest(keys, columns, queries, own)
    found = nearest_along(keys[:, 0], columns, queries[:, 0], own if leave_out else None)
    for ours, slow in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, slow, rtol=1e-12)


def test_no_other_key():
    one = np.zeros((1, 2))
    distance, sums = nearest_sums(one, np.ones((2, 1)), one, np.zeros(1, dtype=int))
    np.testing.assert_array_equal(distance, [np.inf])
    np.testing.assert_array_equal(sums, np.zeros((2, 1)))
