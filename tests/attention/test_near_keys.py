"""Sums over the keys near each query, against sums over all pairs."""

import numpy as np
import pytest

from sklearn_attention import attend
from sklearn_attention.attention import LeaveOneOut
from sklearn_attention.attention._algorithms import _near_keys
from sklearn_attention.attention._algorithms._near_keys import NearKeys
from sklearn_attention.attention._read import read
from sklearn_attention.attention._reduce import Reduction
from sklearn_attention.kernels import AitchisonAitken, LiRacine, ProductKernel
from sklearn_attention.kernels._base import as_kernel

N, SAVES_TIME = 240, NearKeys.saves_time
PLACES = {
    "normal": lambda rng, d: rng.normal(size=(N, d)),
    "heavy tails": lambda rng, d: rng.standard_t(1.5, size=(N, d)),
    "clusters": lambda rng, d: 0.1 * rng.normal(size=(N, d)) + 9 * rng.integers(4, size=(N, 1)),
    "gaps": lambda rng, d: rng.normal(size=(N, d)) + 1e3 * rng.integers(2, size=(N, d)),
    "rounded": lambda rng, d: np.round(2 * rng.normal(size=(N, d))),
    "outlier": lambda rng, d: np.vstack([rng.normal(size=(N - 1, d)), np.full((1, d), 1e6)]),
    "offset": lambda rng, d: 1e6 + rng.normal(size=(N, d)),
    "one place": lambda rng, d: np.full((N, d), 3.0),
}
KERNELS = {
    "boxcar": 0.6,
    "epanechnikov": 0.7,
    "tricube": 0.5,
    "gaussian": 0.05,
    "exponential": 0.02,
}
# By products, whose keys lie in boxes and other bodies.
PRODUCTS = {
    ProductKernel("boxcar"): 0.6,
    ProductKernel("logistic"): 0.01,
    ProductKernel([("a", "epanechnikov", [0]), ("b", "gaussian", slice(1, None))]): 0.3,
    ProductKernel([("a", "boxcar", [0]), ("b", "rational_quadratic", [-1])]): 0.3,
    ProductKernel([("a", "sigmoid", [-1]), ("b", "exponential", slice(0, -1))]): 0.02,
}


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Trees for few pairs too, however much they leave to do; counts how often they serve."""
    monkeypatch.setattr(_near_keys, "FEW_PAIRS", 0)
    monkeypatch.setattr(_near_keys, "_LEAF", 24)
    monkeypatch.setattr(NearKeys, "saves_time", lambda *_: True)
    served, groups = [], NearKeys.groups

    def count(self, rows, width):
        found = groups(self, rows, width)
        if found is not None:
            served.append(len(rows))
        return found

    monkeypatch.setattr(NearKeys, "groups", count)
    return served


def data(place, n_features, seed=0):
    rng = np.random.default_rng(seed)
    keys = PLACES[place](rng, n_features)
    queries = np.vstack([keys[:50] + 0.01, PLACES[place](rng, n_features)[:100]])
    return queries, keys, rng.normal(size=(N, 2)), rng.uniform(0.1, 2, size=N)


@pytest.mark.parametrize(
    ("place", "leave_out"),
    [("heavy tails", False), ("clusters", True), ("outlier", False), ("rounded", True)],
)
@pytest.mark.parametrize("kernel", [*KERNELS, *PRODUCTS], ids=str)
def test_averages_by_trees_equal_all_pairs(place, kernel, leave_out, always):
    queries, keys, values, weights = data(place, 3 + leave_out)
    options = {
        "bandwidth": (KERNELS | PRODUCTS)[kernel], "sample_weight": weights,
        "leave_one_out": leave_out,
        "empty": "nan" if kernel == "tricube" else "nearest",
    }  # fmt: skip
    given = keys if leave_out else queries, keys, values, kernel
    found = attend(*given, **options)
    assert always
    asked = attend(*given, **options, algorithm="dense")
    np.testing.assert_allclose(found[0], asked[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[1], asked[1], rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize(("kernel", "degree"), [("epanechnikov", 0), ("gaussian", 1)])
def test_scores_at_several_scales_equal_all_pairs(kernel, degree, always, monkeypatch):
    _, keys, values, weights = data("normal", 3)
    smoother = LeaveOneOut(
        keys, values, as_kernel(kernel), bandwidth=0.3, degree=degree, sample_weight=weights
    )
    rows = np.linspace(0.5, 2.0, N)
    for scales in ([0.5, 4.0], [rows, 2 * rows]):
        always.clear()
        found = smoother.scores(scales)
        assert always.count(N) == len(scales)
        with monkeypatch.context() as patch:
            patch.setattr(NearKeys, "saves_time", lambda *_: False)
            asked = smoother.scores(scales)
        np.testing.assert_allclose(found, asked, rtol=1e-9)


def test_scores_stay_in_the_order_of_the_scales(monkeypatch):
    _, keys, values, _ = data("clusters", 3)
    smoother = LeaveOneOut(keys, values, as_kernel("epanechnikov"), bandwidth=1.0)
    scales = [50.0, 0.2, 60.0, 70.0, 0.3]
    monkeypatch.setattr(NearKeys, "saves_time", SAVES_TIME)
    monkeypatch.setattr(_near_keys, "_KEYS_OF_A_GROUP", 0)
    rows, near = np.arange(N), smoother._rows._without_row._near
    few = [near.groups(rows, np.full(N, scale)) is not None for scale in scales]
    assert few == [False, True, False, False, True]
    one_by_one = [smoother.scores([scale]) for scale in scales]
    np.testing.assert_allclose(
        smoother.scores(scales), np.squeeze(one_by_one, axis=2).T, rtol=1e-12
    )


@pytest.mark.parametrize("lam", [0.0, 1e-9, 0.2])
@pytest.mark.parametrize(
    ("numbers", "n_features"), [("gaussian", 3), (ProductKernel("boxcar"), 1)], ids=str
)
def test_kernels_with_categories_equal_all_pairs(numbers, n_features, lam, always, monkeypatch):
    queries, keys, values, _ = data("normal", n_features + 2)
    for x in (keys, queries):
        x[:, -2:] = abs(np.round(x[:, -2:]))
    # A column that no kernel looks at does not matter.
    keys, queries = (np.column_stack([np.arange(len(x)), x]) for x in (keys, queries))
    kernel = ProductKernel([
        ("numbers", numbers, slice(1, -2)), ("level", AitchisonAitken(n_levels=3, lam=lam), -2),
        ("size", LiRacine(lam=0.1 + lam), -1),
    ])  # fmt: skip
    bandwidth = 0.4 if kernel.compact else 0.02
    found = attend(queries, keys, values, kernel, bandwidth=bandwidth)
    # No level but its own counts for a query at lambda 0: the nearest key may be no bound.
    assert bool(always) == (kernel.compact or lam > 0)
    asked = attend(queries, keys, values, kernel, bandwidth=bandwidth, algorithm="dense")
    for one, other in zip(found, asked, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    monkeypatch.setattr(_near_keys, "IN_CACHE", 9)
    always.clear()
    attend(queries, keys, values, kernel, bandwidth=bandwidth, empty="nan")
    assert bool(always) == kernel.compact


@pytest.mark.parametrize(("kernel", "weight"), [("gaussian", 1.0), ("exponential", 1e-3)])
def test_less_than_1e_12_of_a_sum_is_left_out(kernel, weight, always):
    """Of one near key, and many whose share in the average shrinks from case to case."""
    away = np.random.default_rng(0).normal(size=(N - 1, 3))
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    weights, values = np.ones(N), np.ones(N)
    weights[0], values[0] = weight, 0.0
    for log_share in np.linspace(-18.0, -36.0, 13):
        fall = np.log(N - 1) - np.log(weight) - log_share
        distance = np.sqrt(2 * fall) if kernel == "gaussian" else fall
        keys = np.vstack([np.zeros((1, 3)), distance * away])
        found, _ = attend(np.zeros((1, 3)), keys, values, kernel, sample_weight=weights)
        np.testing.assert_allclose(found, np.exp(log_share), rtol=1e-6, atol=1e-12)
    assert always.count(1) >= 13


def test_trees_are_used_only_for_many_rows_and_local_kernels(monkeypatch):
    monkeypatch.undo()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))

    def grow(kernel, bandwidth, n=4000):
        problem, _ = read(
            x[:n], x, x, kernel, bandwidth=bandwidth, sample_weight=None,
            leave_one_out=False,
        )  # fmt: skip
        return Reduction(problem).name == "near"

    assert grow("epanechnikov", 0.2)
    assert not grow("epanechnikov", 3.0)  # reaches nearly all
    assert not grow("epanechnikov", 0.2, n=10)
    assert not grow("scaled_dot_product", 0.2)
    assert not grow("rational_quadratic", 0.2)  # fades too slowly
