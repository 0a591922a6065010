"""Derivatives of leave-one-out errors against differences, and the errors themselves."""

import numpy as np
import pytest

from sklearn_attention import Columns
from sklearn_attention.attention import LeaveOneOut, _pair_sums
from sklearn_attention.attention._leave_one_out_gradient import LeaveOneOutGradient
from sklearn_attention.bandwidth._criteria import SMOOTHER_CRITERIA, criterion_slopes
from sklearn_attention.kernels import (
    Epanechnikov,
    Gaussian,
    Laplacian,
    Periodic,
    ProductKernel,
    Triweight,
)
from sklearn_attention.kernels._product_kernel import mixed_kernel

NUMBERS = np.log([0.6, 0.9])
CATEGORIES = np.log([0.4, 0.7])
KINDS = ["numeric", "unordered", "numeric", "ordered"]
COLUMNS = Columns(KINDS, (None, range(3), None, range(4)))


def make_data(mixed, n=30, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(0, 1, (n, 2))
    numbers[:, 0] += 1e3
    values = np.sin(5 * numbers[:, :1]) + 0.3 * rng.normal(size=(n, 2))
    if not mixed:
        return numbers, values
    codes = rng.integers(0, 3, n), rng.integers(0, 4, n)
    return np.column_stack([numbers[:, 0], codes[0], numbers[:, 1], codes[1]]), values


def by_leave_one_out(X, values, kernel, mixed, options):
    if mixed:
        # An unordered category's worth r is lam / (c - 1) / (1 - lam).
        r = np.exp(CATEGORIES)
        lam = 2 * r[0] / (1 + 2 * r[0])
        kernel = mixed_kernel(kernel, COLUMNS, [0, lam, 0, r[1]])
        h = np.exp([NUMBERS[0], 0, NUMBERS[1], 0])
    else:
        h = np.exp(NUMBERS)
    return LeaveOneOut(X, values, kernel, bandwidth=h, **options).scores([1.0])


@pytest.mark.parametrize(
    ("kernel", "degree", "mixed", "weighted"),
    [
        (Gaussian(), 0, False, True),
        (Gaussian(), 2, True, True),
        (ProductKernel("gaussian"), 1, False, False),
        (Triweight(), 1, True, True),
        (ProductKernel("triweight"), 0, True, False),
        (Laplacian(), 2, False, True),
        (Periodic(period=5.0), 1, True, False),
    ],
)
def test_scores_and_their_gradients(kernel, degree, mixed, weighted):
    (X, values), n = make_data(mixed), 30.0
    weight = np.random.default_rng(1).uniform(0.2, 2, 30) if weighted else None
    options = dict(degree=degree, sample_weight=weight)
    smoother = LeaveOneOutGradient(X, values, kernel, KINDS if mixed else KINDS[::2], **options)
    point = np.concatenate([NUMBERS, CATEGORIES]) if mixed else NUMBERS
    scores, _ = smoother(point[:2], point[2:])
    expected = by_leave_one_out(X, values, kernel, mixed, options)
    np.testing.assert_allclose(scores, np.array(expected)[:, 0], rtol=1e-7)
    ends = [
        [smoother(*np.split(point + move, [2]))[0] for move in (step, -step)]
        for step in 1e-5 * np.eye(len(point))
    ]
    for criterion, function in SMOOTHER_CRITERIA.items():
        scores, pull = smoother(point[:2], point[2:])
        if not np.isfinite(function(scores, n)):
            continue
        gradient = pull(criterion_slopes(criterion, scores, n, 1.0))
        for slope, (after, before) in zip(gradient, ends, strict=True):
            difference = float(function(after, n) - function(before, n)) / 2e-5
            assert slope == pytest.approx(difference, rel=2e-4, abs=2e-6)


@pytest.mark.parametrize("empty", ["nearest", "nan"])
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_rows_on_a_grid_without_neighbours(degree, empty):
    """Several rows are equally near: they answer by their average."""
    X = np.array([[i, j] for i in range(5) for j in range(5)], dtype=float)
    values = np.random.default_rng(0).normal(size=(25, 1))
    options = {"degree": degree, "empty": empty}
    smoother = LeaveOneOutGradient(X, values, Epanechnikov(), 2 * ["numeric"], **options)
    scores, pull = smoother(np.log([0.5, 0.5]))
    expected = LeaveOneOut(X, values, Epanechnikov(), bandwidth=0.5, **options).scores([1.0])
    np.testing.assert_allclose(scores.left_out, expected.left_out[0], rtol=1e-10)
    assert empty == "nan" or np.isfinite(pull((1.0, 1.0, 1.0))).all()


@pytest.mark.parametrize(("log_h", "d"), [(-12.0, 1), (-5.0, 3), (0.0, 3), (12.0, 1)])
def test_gaussian_both_ways(log_h, d, monkeypatch):
    rng = np.random.default_rng(0)
    X, values = rng.normal(size=(80, d)), rng.normal(size=(80, 2))
    X[:4] = X[4:8]
    weight = rng.uniform(0.2, 2, 80)
    smoother = LeaveOneOutGradient(X, values, Gaussian(), ["numeric"] * d, sample_weight=weight)
    point = np.full(d, log_h)
    for slopes in np.eye(3):
        scores, pull = smoother(point)
        with monkeypatch.context() as patch:
            patch.setattr(_pair_sums, "_HUGE", 0.0)
            others, other_pull = smoother(point)
        np.testing.assert_allclose(scores, others, rtol=1e-8)
        gradient, other = pull(tuple(slopes)), other_pull(tuple(slopes))
        np.testing.assert_allclose(gradient, other, rtol=1e-6, atol=1e-9)


def test_only_categories():
    rng = np.random.default_rng(0)
    X, values = rng.integers(0, 3, (40, 2)).astype(float), rng.normal(size=(40, 1))
    smoother = LeaveOneOutGradient(X, values, Gaussian(), ["unordered", "ordered"])
    scores, pull = smoother((), CATEGORIES)
    r = np.exp(CATEGORIES)
    table = r[0] ** (X[:, None, 0] != X[:, 0]) * r[1] ** abs(X[:, None, 1] - X[:, 1])
    without = table - np.eye(40)
    errors = without @ values / without.sum(axis=1, keepdims=True) - values
    assert scores.left_out == pytest.approx((errors**2).mean(), rel=1e-10)
    assert scores.trace == pytest.approx((1 / table.sum(axis=1)).sum(), rel=1e-10)
    assert np.abs(pull((1.0, 0.0, 0.0))).min() > 0
