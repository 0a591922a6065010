"""Sums in the plane by algorithms of linear time, against sums over all pairs."""

import numpy as np
import pytest

from sklearn_attention.attention._algorithms import _boxes, _chebyshev, _plane
from sklearn_attention.attention._algorithms._plane import Plane, serves_plane
from sklearn_attention.attention._read import key_ranges
from sklearn_attention.kernels._base import as_kernel

N = 150
GAUSSIAN = as_kernel("gaussian")
PEAK = 1 / np.sqrt(2 * np.pi)
PLACES = {
    "cauchy": lambda rng: rng.standard_cauchy(size=(N, 2)),
    "clusters": lambda rng: rng.normal(size=(N, 2)) + 1000 * rng.integers(0, 4, size=(N, 2)),
    "rounded": lambda rng: np.round(5 * rng.normal(size=(N, 2))),
    "outlier": lambda rng: np.vstack([rng.normal(size=(N - 1, 2)), [[-1e6, 1e6]]]),
    "further": lambda rng: np.vstack(
        [rng.normal(size=(N - 51, 2)), [[1e30, 0]], 1e14 + rng.normal(size=(50, 2))]
    ),
    "close together, far away": lambda rng: 1e6 + 1e-3 * rng.normal(size=(N, 2)),
    "on a line": lambda rng: rng.normal(size=(N, 1)) * [1.0, 1e-3],
    "one place": lambda rng: np.full((N, 2), 3.0),
}


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Boxes for few pairs too."""
    monkeypatch.setattr(_plane, "FEW_PAIRS", 0)
    monkeypatch.setattr(_plane, "_PAIRS_OF_CELL", 0.0)


def powers_of(u, most):
    return np.cumprod([np.ones_like(u), *most * [u]], axis=0)


def all_pairs(plane, queries, scale, own):
    """Shift and sums from the matrix of all pairs, and sums of the terms' absolute values."""
    u, v = ((plane.points - queries[:, None]) / scale).transpose(2, 0, 1)
    logs = plane.kernel.log_profile(u * u + v * v)
    if own is not None:
        logs[np.arange(len(queries)), own] = -np.inf
    shift = logs.max(axis=1)
    weights = np.exp(logs - np.where(np.isfinite(shift), shift, 0)[:, None])
    # What weighs nothing is left out, however large its terms are.
    u, v = (powers_of(np.where(weights > 0, x, 0), 2 * plane.degree) for x in (u, v))
    terms = [weights * u[e] * v[f] for e, f in plane.powers]
    sums = np.stack([term @ plane.columns.T for term in terms])
    return shift, sums, np.stack([np.abs(term) @ np.abs(plane.columns.T) for term in terms])


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    ("place", "leave_out", "degree"),
    [(place, k % 2 == 1, k // 2 % 2) for k, place in enumerate(PLACES)],
)
def test_equals_sums_over_all_pairs(place, leave_out, degree):
    rng = np.random.default_rng(0)
    points, weights, values = (
        PLACES[place](rng),
        rng.uniform(0.5, 2, N),
        rng.normal(size=(N, 2)),
    )
    queries, own = points, np.arange(N)
    if not leave_out:
        queries = rng.permutation(points)[:70] + 0.3 * rng.normal(size=(70, 2))
        own = None
    plane, left_out = (
        Plane(points, weights, values, GAUSSIAN, degree),
        None if own is None else key_ranges(own),
    )
    n_sure = 0
    for scale in (1e-3, 0.1, 3.0, 1e3):
        expected = all_pairs(plane, queries, scale, own)
        found = plane.sums(queries, scale, left_out)
        n_sure += found.is_accurate.sum()
        assert_alike(found, *expected, plane)
    assert n_sure > (0 if place == "further" else len(queries))


def assert_alike(found, shift, expected, size, plane):
    some = found.is_nonzero
    assert (expected[0, some, 0] > 0).all()
    total = found.sums[0, 0, some]
    np.testing.assert_allclose(
        found.shift[some] + np.log(total),
        shift[some] + np.log(expected[0, some, 0]),
        rtol=1e-14, atol=1e-9,
    )  # fmt: skip
    for power, (e, f) in enumerate(plane.powers):
        n_columns = 3 if e + f <= plane.degree else 1
        assert not found.sums[power, n_columns:].any()
        average = found.sums[power, :n_columns][:, some] / total
        truth = expected[power, some, :n_columns].T / expected[0, some, 0]
        largest = size[power, some, :n_columns].T / expected[0, some, 0]
        error = np.abs(average - truth) / np.maximum(largest, 1)
        assert error.max(initial=0) < 1e-8


@pytest.mark.parametrize(("places", "degree"), [("normal", 1), ("clusters of many rows", 0)])
def test_squares_of_many_and_of_few_rows(places, degree, monkeypatch):
    rng = np.random.default_rng(1)
    n, scale = 2500, 0.25
    points = rng.normal(size=(n, 2))
    if places != "normal":
        points = 0.01 * points + rng.integers(0, 2, size=(n, 1))
    plane = Plane(points, np.ones(n), rng.normal(size=(n, 3)), GAUSSIAN, degree)
    some = rng.permutation(n)[:50]
    whole = plane.sums(points, scale).sums
    _, expected, size = all_pairs(plane, points[some], scale, None)
    for power, (e, f) in enumerate(plane.powers):
        n_columns = 4 if e + f <= degree else 1
        error = np.abs(whole[power, :n_columns, some] - PEAK * expected[power, :, :n_columns])
        assert (error / size[0, :, :1]).max() < 1e-10
    # A little at a time.
    for name in ("IN_MEMORY", "IN_CACHE"):
        monkeypatch.setattr(_boxes, name, 1)
    monkeypatch.setattr(_chebyshev, "IN_CACHE", 1)
    parts = plane.sums(points, scale).sums
    np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-9)


def test_some_queries_have_no_key_of_their_own():
    rng = np.random.default_rng(2)
    plane = Plane(rng.normal(size=(N, 2)), np.ones(N), np.ones((N, 0)), GAUSSIAN)
    own = np.where(np.arange(N) % 2, np.arange(N), -1)
    found = plane.sums(plane.points, 0.5, key_ranges(own))
    whole = plane.sums(plane.points, 0.5)
    missing = np.exp(whole.log_total) - np.exp(found.log_total)
    np.testing.assert_allclose(missing, np.where(own >= 0, PEAK, 0), atol=1e-12)


def test_the_only_key_left_out():
    plane = Plane(np.zeros((1, 2)), np.ones(1), np.ones((1, 1)), GAUSSIAN, degree=1)
    found = plane.sums(plane.points, 1.0, np.array([[0, 1]]))
    assert not found.is_accurate.any()


def test_few_pairs_and_narrow_bandwidths_are_left_to_other_algorithms(monkeypatch):
    monkeypatch.undo()
    rng = np.random.default_rng(0)
    planes = [
        Plane(rng.random((n, 2)), np.ones(n), np.ones((n, 0)), GAUSSIAN) for n in (90, 3000)
    ]
    served = [plane.sums(plane.points, h) is not None for plane in planes for h in (0.001, 0.1)]
    assert served == [False, False, False, True]
    # A bandwidth for each query.
    assert planes[1].sums(planes[1].points, np.full(3000, 0.1)) is None


def test_only_gaussians_are_served():
    assert serves_plane(GAUSSIAN)
    for name in ("logistic", "rational_quadratic", "matern32", "boxcar"):
        assert not serves_plane(as_kernel(name))
