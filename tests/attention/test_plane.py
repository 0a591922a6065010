"""Sums in the plane by algorithms of linear time, against sums over all pairs."""

import numpy as np
import pytest

from sklearn_attention.attention._algorithms import _plane, _plane_pairs
from sklearn_attention.attention._algorithms._plane import Plane, serves_plane
from sklearn_attention.kernels import as_kernel

N = 300
PLACES = {
    "uniform": lambda rng: rng.uniform(size=(N, 2)),
    "cauchy": lambda rng: rng.standard_cauchy(size=(N, 2)),
    "t2": lambda rng: rng.standard_t(2, size=(N, 2)),
    "lognormal": lambda rng: rng.lognormal(size=(N, 2)),
    "clusters": lambda rng: rng.normal(size=(N, 2)) + 1000 * rng.integers(0, 4, size=(N, 2)),
    "rounded": lambda rng: np.round(5 * rng.normal(size=(N, 2))),
    "outlier": lambda rng: np.vstack([rng.normal(size=(N - 1, 2)), [[-1e6, 1e6]]]),
    "further": lambda rng: np.vstack([rng.normal(size=(N - 2, 2)), [[1e30, 0], [1e14, 1e14]]]),
    "far away": lambda rng: 1e6 + rng.normal(size=(N, 2)),
    "on a line": lambda rng: rng.normal(size=(N, 1)) * [1.0, 1e-3],
    "one place": lambda rng: np.full((N, 2), 3.0),
}


@pytest.fixture(params=["all pairs", "near pairs", "pairs by a tree", "boxes"])
def algorithm(request, monkeypatch):
    if request.param != "all pairs":
        monkeypatch.setattr(_plane_pairs, "FEW_PAIRS", 0)
    monkeypatch.setattr(_plane, "_PAIR", 1e12 if request.param == "boxes" else 0.0)
    monkeypatch.setattr(_plane, "_RANGE", 0.0)
    if request.param == "pairs by a tree":
        monkeypatch.setattr(_plane, "_TRUSTED", np.inf)


def all_pairs(plane, queries, scale, own):
    """Shift and sums from the matrix of all pairs, and sums of the terms' absolute values."""
    u, v = ((plane.points - queries[:, None]) / scale).transpose(2, 0, 1)
    logs = plane.kernel.log_profile(u * u + v * v)
    if own is not None:
        logs[np.arange(len(queries)), own] = -np.inf
    shift = logs.max(axis=1)
    weights = np.exp(logs - np.where(np.isfinite(shift), shift, 0)[:, None])
    terms = [np.where(weights > 0, weights * u**e * v**f, 0) for e, f in plane.powers]
    sums = np.stack([term @ plane.columns.T for term in terms])
    return shift, sums, np.stack([np.abs(term) @ np.abs(plane.columns.T) for term in terms])


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("leave_out", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_equals_sums_over_all_pairs(place, leave_out, algorithm):
    rng = np.random.default_rng(0)
    points = PLACES[place](rng)
    values = rng.normal(size=(N, 2))
    for degree in (0, 1):
        plane = Plane(
            points, rng.uniform(0.5, 2, size=N), values, as_kernel("gaussian"), degree
        )
        queries, own = plane.points, np.arange(N)
        if not leave_out:
            queries = rng.permutation(points)[:100] + 0.3 * rng.normal(size=(100, 2))
            own = None
        for scale in (1e-3, 0.1, 3.0, 1e3):
            found = plane.sums(queries, scale, own)
            shift, expected, size = all_pairs(plane, queries, scale, own)
            some = expected[0, :, 0] > 0
            np.testing.assert_array_equal(np.isfinite(found.shift), some)
            total = found.sums[0, 0, some]
            np.testing.assert_allclose(
                found.shift[some] + np.log(total),
                shift[some] + np.log(expected[0, some, 0]),
                rtol=1e-14, atol=1e-9,
            )  # fmt: skip
            for power, (e, f) in enumerate(plane.powers):
                n_columns = 3 if e + f <= degree else 1
                assert not found.sums[power, n_columns:].any()
                average = found.sums[power, :n_columns][:, some] / total
                truth = expected[power, some, :n_columns].T / expected[0, some, 0]
                largest = size[power, some, :n_columns].T / expected[0, some, 0]
                error = np.abs(average - truth) / np.maximum(largest, 1)
                assert error.max(initial=0) < 1e-8
