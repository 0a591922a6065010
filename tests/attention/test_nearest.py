"""The nearest keys: along a line, by a tree, and among all pairs, against a loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_attention import attend, attention_weights
from sklearn_attention.attention import LeaveOneOut, attention_sums
from sklearn_attention.attention._algorithms import _nearest
from sklearn_attention.attention._algorithms._line import Line
from sklearn_attention.attention._algorithms._nearest import nearest_along, nearest_sums
from sklearn_attention.attention._read import key_ranges, read
from sklearn_attention.kernels import Epanechnikov, ProductKernel

N = 80
PLACES = {
    "normal": lambda rng, d: rng.normal(size=(N, d)),
    "tied": lambda rng, d: np.round(rng.normal(size=(N, d))),
    "outlier": lambda rng, d: np.vstack([rng.normal(size=(N - 1, d)), np.full((1, d), 1e9)]),
    "next to nothing": lambda rng, d: 1e-200 * rng.normal(size=(N, d)),
}


def slow_nearest(keys, columns, queries, left_out):
    distances, sums = [], []
    for query, (low, high) in zip(queries, left_out, strict=True):
        others = [k for k in range(len(keys)) if not low <= k < high]
        scale = np.abs(keys).max()
        apart = [np.sqrt((((keys[k] - query) / scale) ** 2).sum()) * scale for k in others]
        near = [k for k, x in zip(others, apart, strict=True) if x <= min(apart) * (1 + 1e-14)]
        distances.append(min(apart))
        sums.append(columns[:, near].sum(axis=1))
    return np.array(distances), np.array(sums).T


@pytest.mark.parametrize(
    ("place", "gap"),
    [("normal", None), ("tied", 0), ("outlier", 0), ("normal", 2), ("next to nothing", None)],
)
@pytest.mark.parametrize("way", ["line", "tree", "pairs"])
def test_equals_a_loop(place, gap, way, monkeypatch):
    rng = np.random.default_rng(0)
    d = 1 if way == "line" else 3
    keys = PLACES[place](rng, d)
    if way == "tree" and place == "next to nothing":
        pytest.skip("squares of such distances vanish in a tree")
    columns = rng.uniform(1, 2, (3, N))
    own = np.where(np.arange(N) % 5, np.arange(N), -1)
    queries, left_out = keys, key_ranges(own, gap or 0)
    if gap is None:
        queries, left_out = PLACES[place](rng, d)[:30], np.zeros((30, 2), dtype=int)
    expected = slow_nearest(keys, columns, queries, left_out)
    left_out = None if gap is None else left_out
    rounding = 1e-14 * np.abs(queries).sum(axis=1)
    monkeypatch.setattr(_nearest, "FEW_PAIRS", 0 if way == "tree" else np.inf)
    monkeypatch.setattr(_nearest, "IN_CACHE", 1000)
    if way == "line":
        line = Line(keys[:, 0], columns[0], (columns[1:] / columns[0]).T, Epanechnikov())
        found = nearest_along(line, queries[:, 0], left_out, rounding)
    else:
        found = nearest_sums(keys, columns, queries, left_out, rounding)
    for ours, slow in zip((found.distance, found.sums), expected, strict=True):
        np.testing.assert_allclose(ours, slow, rtol=1e-12)


@pytest.mark.parametrize("leave_out", [False, True])
def test_light_keys_along_a_line_beside_heavy_ones(leave_out):
    """Sums over the nearest have all digits, also without a key that outweighs its twins."""
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 30, N).astype(float)[:, None]
    weights, values = 10.0 ** rng.uniform(-20, 20, N), rng.uniform(1, 2, (N, 2))
    queries = keys if leave_out else rng.integers(0, 90, (60, 1)) / 3
    left_out = key_ranges(np.arange(N) if leave_out else np.full(60, -1))
    columns = weights * np.vstack([np.ones(N), values.T])
    expected = slow_nearest(keys, columns, queries, left_out)
    line = Line(keys[:, 0], weights, values, Epanechnikov())
    left_out, rounding = left_out if leave_out else None, np.full(len(queries), 1e-12)
    found = nearest_along(line, queries[:, 0], left_out, rounding)
    for ours, slow in zip((found.distance, found.sums), expected, strict=True):
        np.testing.assert_allclose(ours, slow, rtol=1e-12)


def test_no_other_key():
    one = np.zeros((1, 2))
    found = nearest_sums(one, np.ones((2, 1)), one, np.array([[0, 1]]), np.zeros(1))
    np.testing.assert_array_equal(found.distance, [np.inf])
    np.testing.assert_array_equal(found.sums, np.zeros((2, 1)))


GRID = np.arange(60)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x / 10,
        lambda x: -x / 10,
        lambda x: x / 3,
        lambda x: (x / 10).astype(np.float32),
        lambda x: (x / 10 - 2.95) / 1.7318,
        lambda x: 1.7e18 + x * 86400e9,
    ],
    ids=["tenths", "mirrored", "thirds", "float32", "standardized", "nanoseconds"],
)
@pytest.mark.parametrize("d", [1, 2])
def test_equally_near_keys_share_whatever_the_rounding(change, d):
    """Every query half-way between two keys averages both, in every algorithm."""
    x, between = change(GRID), change(GRID[:-1] + 0.5)
    keys, queries = (np.column_stack([c, change(0 * c)][:d]) for c in (x, between))
    values = GRID**2.0
    options = {"kernel": "epanechnikov", "bandwidth": float(abs(x[1] - x[0]) / 8)}
    half_way = (values[1:] + values[:-1]) / 2
    for algorithm in ("auto", "dense"):
        found = attend(queries, keys, values, algorithm=algorithm, **options)[0]
        np.testing.assert_allclose(found, half_way, rtol=1e-6)
    weights = attention_weights(queries, keys, **options)
    np.testing.assert_allclose(weights @ values, half_way, rtol=1e-6)
    # Without itself a row has two neighbours, and without these two others.
    for gap in (0, 2):
        left_out = LeaveOneOut(keys, values, gap=gap, **options).predictions().left_out[:, 0]
        near = np.arange(1 + gap, 59 - gap)
        expected = (values[near - 1 - gap] + values[near + 1 + gap]) / 2
        np.testing.assert_allclose(left_out[near], expected, rtol=1e-6)
    # Two keys in different parts.
    parts = (attention_sums(queries, keys[k::2], values[k::2], **options) for k in (0, 1))
    np.testing.assert_allclose(sum(parts).average()[0][:, 0], half_way, rtol=1e-6)


def test_a_huge_key_makes_no_others_equally_near():
    keys = np.append(GRID / 10, 1e17)[:, None]
    found, _ = attend([[0.26]], keys, keys[:, 0], "epanechnikov", bandwidth=0.01)
    np.testing.assert_allclose(found, 0.3)


def test_columns_that_no_kernel_compares_make_nothing_near():
    keys = np.column_stack([GRID / 10, 1e17 * np.cos(GRID)])
    queries = np.column_stack([(GRID[:-1] + 0.5) / 10, np.zeros(59)])
    kernel = ProductKernel([("first", "epanechnikov", [0])])
    options = {"bandwidth": 0.01}
    for algorithm in ("auto", "dense"):
        found, _ = attend(queries, keys, GRID, kernel, algorithm=algorithm, **options)
        np.testing.assert_allclose(found, GRID[:-1] + 0.5, rtol=1e-9)
    weights = attention_weights(queries, keys, kernel, **options)
    np.testing.assert_allclose(weights @ GRID, GRID[:-1] + 0.5, rtol=1e-9)


@given(
    st.lists(st.integers(-40, 40), min_size=3, max_size=12, unique=True),
    st.sampled_from([1e-7, 0.1, 1 / 3, 86400e9]),
    st.sampled_from([0.0, 5.0, 1000.0]),
)
def test_ties_do_not_depend_on_unit_order_or_mirror_image(places, unit, start):
    x = np.array(places, dtype=float)
    queries, values = np.arange(-41, 42) / 2, np.cos(x)
    expected, _ = attend(queries[:, None], x[:, None], values, "boxcar", bandwidth=0.1)
    order = np.argsort(values)
    for sign in (-1.0, 1.0):
        keys, at = (sign * (start + points[:, None]) * unit for points in (x[order], queries))
        found, _ = attend(at, keys, values[order], "boxcar", bandwidth=0.1 * unit)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_precision_is_that_of_the_coarser_table():
    x = GRID[:, None] / 10
    roundings = [
        read(queries, keys, None, "gaussian", bandwidth=1.0)[0].rounding[3]
        for queries, keys in ((x, x), (x.astype("f4"), x), (x, x.astype("f4")))
    ]
    assert roundings[1] > 1e8 * roundings[0]
    assert roundings[2] == pytest.approx(roundings[1], rel=1e-6)


def test_distances_that_single_precision_tells_apart_are_no_ties():
    days = np.float32([[19000], [19002], [19004], [19006.25]])
    values = np.float32([0, 1, 2, 10])
    for algorithm in ("auto", "dense"):
        options = {"bandwidth": 0.5, "algorithm": algorithm}
        mean, _ = attend(np.float32([[19005]]), days, values, "epanechnikov", **options)
        assert mean.tolist() == [2.0]


def test_a_column_that_is_the_same_in_all_keys_makes_no_ties():
    keys = [[1.7e18, 0.0], [1.7e18, 1.0]]
    options = {"bandwidth": [1e3, 0.1]}
    assert attend([[1.7e18, 0.4]], keys, [0.0, 1.0], "epanechnikov", **options)[0] == 0
