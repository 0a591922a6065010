"""Sums along one feature by algorithms of linear time, against sums over all pairs."""

import numpy as np
import pytest

from sklearn_attention.attention._algorithms import _line
from sklearn_attention.attention._algorithms._line import Line, serves_line
from sklearn_attention.attention._read import key_ranges
from sklearn_attention.kernels._base import as_kernel

N = 200
KERNELS = [
    "gaussian", "logistic", "sigmoid", "exponential", "matern32", "matern52", "boxcar",
    "triangular", "epanechnikov", "biweight", "triweight", "tricube", "cosine",
]  # fmt: skip
PLACES = {
    "cauchy": lambda rng: rng.standard_cauchy(size=N),
    "rounded": lambda rng: np.round(20 * rng.normal(size=N)),
    "far away": lambda rng: 1e6 + rng.normal(size=N),
}


def all_pairs(line, queries, scale, own):
    """Shift and sums from the matrix of all pairs."""
    u = (line.x - queries[:, None]) / scale
    logs = line.kernel.log_profile(u * u)
    if own is not None:
        logs[np.arange(len(queries)), own] = -np.inf
    shift = logs.max(axis=1)
    weights = np.exp(logs - np.where(np.isfinite(shift), shift, 0)[:, None])
    sums = []
    for _ in range(2 * line.degree + 1):
        sums.append(weights @ line.columns.T)
        weights = weights * u
    return shift, np.stack(sums)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    ("place", "leave_out"), [("cauchy", False), ("rounded", True), ("far away", True)]
)
@pytest.mark.parametrize("name", KERNELS)
def test_equals_sums_over_all_pairs(name, place, leave_out, monkeypatch):
    rng = np.random.default_rng(0)
    x, weights, values = PLACES[place](rng), rng.uniform(0.5, 2, N), rng.normal(size=(N, 2))
    lines = [Line(x, weights, values, as_kernel(name), degree) for degree in (0, 3)]
    queries, own, left_out = lines[0].points, np.arange(N), key_ranges(lines[0].order)
    if not leave_out:
        queries = np.sort(rng.choice(x, 80) + 0.3 * rng.normal(size=80))[:, None]
        own = left_out = None
    for scale in (1e-3, 0.1, 3.0, 1e3):
        # The powers of degree 0 are among those of degree 3.
        shift, expected = all_pairs(lines[1], queries[:, 0], scale, own)
        for line in lines:
            assert_alike(line.sums(queries, scale, left_out), shift, expected, line.degree)
            with monkeypatch.context() as patch:
                patch.setattr(_line.Line, "_pairs_are_faster", lambda *_: False)
                sums = line.sums(queries, scale, left_out)
                assert_alike(sums, shift, expected, line.degree)


def assert_alike(found, shift, expected, degree):
    some = expected[0, :, 0] > 0
    np.testing.assert_array_equal(np.isfinite(found.shift), some)
    total = found.sums[0, 0, some]
    np.testing.assert_allclose(
        found.shift[some] + np.log(total),
        shift[some] + np.log(expected[0, some, 0]),
        rtol=1e-14, atol=1e-9,
    )  # fmt: skip
    averages = found.sums[:, :, some] / total
    truth = expected[:, some] / expected[0, some, :1]
    for e in range(2 * degree + 1):
        below, above = truth[2 * (e // 2), :, 0], truth[2 * ((e + 1) // 2), :, 0]
        size = np.maximum(np.sqrt(below * above), 1)
        n_columns = 3 if e <= degree else 1
        error = averages[e, :n_columns].T - truth[e, :, :n_columns]
        # Sums are trusted where the bound on their rounding is 1e-9 of them; high powers of
        # polynomials by cells are rounded a little more.
        assert np.abs(error / size[:, None]).max(initial=0) < (1e-8 if e < 5 else 1e-7)


def test_kernels_with_heavy_tails_are_not_served():
    assert not serves_line(as_kernel("rational_quadratic"))
    assert not serves_line(as_kernel("periodic"))
    assert all(serves_line(as_kernel(name)) for name in KERNELS)
