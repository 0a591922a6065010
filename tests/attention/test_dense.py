"""Sums pair by pair: however they are cut and shared, and whatever computes them, the same."""

import functools
from dataclasses import replace

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from sklearn_attention import attend, attention_weights
from sklearn_attention.attention import LeaveOneOut, _reduce, attend_local
from sklearn_attention.attention._algorithms import _dense, _fused
from sklearn_attention.attention._algorithms._dense import GroupedPairs, split
from sklearn_attention.attention._read import read
from sklearn_attention.attention._solve import Basis, std_of_keys
from sklearn_attention.kernels import Gaussian

N = 300


def make_problem(kernel="gaussian", bandwidth=1.0, *, leave_one_out=False, d=3):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, d)), rng.normal(size=(N, 2))
    problem, _ = read(
        X, X, y, kernel, bandwidth=bandwidth, sample_weight=rng.uniform(0.5, 2, N),
        leave_one_out=leave_one_out,
    )  # fmt: skip
    return problem


def finished(sums):
    return sums.sums[0, 1:] / sums.sums[0, 0], sums.log_total


def over_all(problem, degree=0, *, quick=None):
    columns = problem.kernel.numeric_columns(problem.keys.shape[1])
    basis = Basis(degree, len(columns) if degree else 0)
    pairs = GroupedPairs(problem, basis, std_of_keys(problem.keys[:, columns], problem.weights))
    pairs.is_quick = pairs.is_quick if quick is None else quick
    return pairs.over_all(np.arange(N), np.ones(N))


@pytest.mark.parametrize(
    ("kernel", "leave_one_out", "bandwidth"),
    [("gaussian", True, 0.5), ("gaussian", False, 5.0), ("scaled_dot_product", True, 5.0)],
)
def test_fused_and_products_equal_differences(kernel, leave_one_out, bandwidth):
    problem = make_problem(kernel, bandwidth, leave_one_out=leave_one_out)
    expected = finished(over_all(problem, quick=False))
    fused = _fused.fused_sums(problem)
    sure = fused.error_bound == 0
    assert sure.all() != leave_one_out or bandwidth == 5.0
    for found, where in ((fused, sure), (over_all(problem), sure | True)):
        for ours, slow in zip(finished(found), expected, strict=True):
            np.testing.assert_allclose(ours[..., where], slow[..., where], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_single_precision_where_it_is_accurate(leave_one_out):
    problem = make_problem("gaussian", 1.0, leave_one_out=leave_one_out)
    expected = finished(over_all(problem, quick=False))
    fused = _fused.fused_sums(replace(problem, dtype=np.float32))
    sure = fused.error_bound == 0
    assert sure.mean() > 0.5
    # Single precision was used, and has the digits that its results show.
    assert 1e-9 < np.abs(finished(fused)[0] - expected[0])[..., sure].max() < 1e-4
    for ours, slow in zip(finished(fused), expected, strict=True):
        np.testing.assert_allclose(ours[..., sure], slow[..., sure], rtol=1e-4, atol=1e-4)
    # Of places too far from the middle for its digits nothing is.
    far = make_problem("gaussian", 1e-3)
    assert np.isinf(_fused.fused_sums(replace(far, dtype=np.float32)).error_bound).all()


def test_where_the_private_operator_is_gone(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
    expected = attend(X, X, y, leave_one_out=True)

    class NoOperators:
        def __getattr__(self, name):
            raise AttributeError(name)

    monkeypatch.setattr(torch.ops, "aten", NoOperators())
    monkeypatch.setattr(_reduce, "_MIN_FUSED_PAIRS", 0)
    for ours, theirs in zip(attend(X, X, y, leave_one_out=True), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11)


@pytest.mark.parametrize(
    ("kernel", "bandwidth", "repays", "expected"),
    [
        ("gaussian", 1.0, 0, ["fused"]),
        ("gaussian", 1e-3, 0, ["fused", "quick", "shifted"]),  # products would be rounded
        ("gaussian", 1.0, np.inf, ["quick"]),
        ("gaussian", 1e-2, np.inf, ["quick", "shifted"]),  # where some weigh nothing
        ("scaled_dot_product", 1.0, 0, ["fused"]),
        ("scaled_dot_product", 1.0, np.inf, ["shifted"]),
        ("epanechnikov", 1.0, 0, ["shifted"]),
    ],
)
def test_the_fastest_accurate_way_is_taken(monkeypatch, kernel, bandwidth, repays, expected):
    taken, weigh, fused = [], _dense.shifted_weights, _fused.fused_sums

    def spy(*args, quick=False):
        taken.append("quick" if quick else "shifted")
        return weigh(*args, quick=quick)

    monkeypatch.setattr(_dense, "shifted_weights", spy)
    monkeypatch.setattr(_fused, "fused_sums", lambda p: taken.append("fused") or fused(p))
    monkeypatch.setattr(_reduce, "_MIN_FUSED_PAIRS", repays)
    problem = make_problem(kernel, bandwidth, leave_one_out=True)
    sums = _reduce.Reduction(problem).sums(np.arange(N))
    assert list(dict.fromkeys(taken)) == expected
    assert sums.is_accurate.all()


@pytest.mark.parametrize(("kernel", "degree"), [("gaussian", 1), ("epanechnikov", 0)])
def test_threads_give_the_same_bit_for_bit(kernel, degree, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1200, 3)), rng.normal(size=1200)

    def fitted():
        smoother = LeaveOneOut(X, y, kernel, bandwidth=0.6, degree=degree)
        one = attend(X, X, y, kernel) if not degree else attend_local(X, X, y, kernel)
        return [*one, *smoother.scores([0.5, 1.0, 3.0])]

    found = []
    for n_threads in (1, 3):
        with threadpool_limits(n_threads):
            found.append(fitted())
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)


def test_weights_of_any_size_and_far_queries():
    """Sums without shifts that are too small are made again with them."""
    rng = np.random.default_rng(0)
    keys, values = rng.normal(size=(60, 3)), rng.normal(size=60)
    queries = np.vstack([keys[:5], keys[:5] + 60, keys[:5] + 1e5])
    weights = 10.0 ** rng.uniform(-300, 0, 60)
    found, log_total = attend(queries, keys, values, sample_weight=weights)
    logs = Gaussian().log(queries, keys) + np.log(weights)
    most = logs.max(axis=1)
    table = np.exp(logs - most[:, None])
    np.testing.assert_allclose(found, table @ values / table.sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(log_total, most + np.log(table.sum(axis=1)), rtol=1e-9)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_what_has_no_weight_does_not_count(degree):
    """However far away a key is, and however large its value, for queries far from others."""
    rng = np.random.default_rng(0)
    keys, values = rng.normal(size=(60, 3)), rng.normal(size=60)
    keys[0] = 1e30
    if not degree:
        values[0] = 1e300
    queries = rng.normal((35.0, 0.0, 0.0), size=(8, 3))
    average = functools.partial(attend_local, degree=degree) if degree else attend
    found = average(queries, keys, values, algorithm="dense")
    keys[0], values[0] = 1e3, 0.0
    nearer = average(queries, keys, values, algorithm="dense")
    for field, expected in zip(found, nearer, strict=True):
        np.testing.assert_allclose(field, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "distance"),
    [("gaussian", 1.5e308), ("epanechnikov", 1e160), ("logistic", 1e160)],
)
def test_queries_whose_squares_overflow_take_the_nearest(kernel, distance):
    keys, values = np.diag([1.0, 2.0, 3.0]), np.arange(3.0)
    queries = np.eye(3) * distance
    found, log_total = attend(queries, keys, values, kernel, algorithm="dense")
    nearest = attention_weights(queries, keys, kernel) @ values
    # Nothing but rounding is left of the difference between keys.
    np.testing.assert_allclose(found, nearest)
    np.testing.assert_array_equal(log_total, -np.inf)


@pytest.mark.parametrize(
    "points",
    [
        np.array([[1e17 + 16], [1e17 + 32]]),  # whose middle rounds to one of them
        np.random.default_rng(0).normal(size=(100, 3)) * [1, 30, 1000],
        np.zeros((5, 2)),
        np.zeros((0, 2)),
    ],
    ids=["neighbouring floats", "random", "one place", "no points"],
)
@pytest.mark.parametrize("most", [1, 7, np.inf])
def test_groups_hold_every_point_once(points, most):
    groups = split(points, np.arange(len(points)), max_rows=most, max_width=4.0)
    assert sorted(i for group in groups for i in group.tolist()) == list(range(len(points)))
    for group in groups:
        assert 0 < len(group) <= most
        assert (np.ptp(points[group], axis=0) <= 4.0).all()
