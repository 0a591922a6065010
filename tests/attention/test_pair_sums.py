"""Sums over pairs of rows: against loops over pairs, and their slopes against differences."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sklearn_attention.attention import _pair_sums
from sklearn_attention.attention._pair_sums import PairSums
from sklearn_attention.kernels import (
    Epanechnikov,
    Gaussian,
    Laplacian,
    Logistic,
    ProductKernel,
    ScaledDotProduct,
    Silverman,
)
from sklearn_attention.kernels._categorical import level_table

KERNELS = {
    "gaussian": Gaussian(),
    "gaussians": ProductKernel("gaussian"),
    "epanechnikov": Epanechnikov(),
    "epanechnikovs": ProductKernel("epanechnikov"),
    "logistics": ProductKernel("logistic"),
    "laplacian": Laplacian(),
    "two": ProductKernel([("a", Logistic(), [0]), ("b", Epanechnikov(), [1])]),
    "one column": ProductKernel([("a", Gaussian(), [1])]),
}
BANDWIDTH, LAM = np.array([0.7, 1.2]), np.array([0.3, 0.4])


def make_rows(place, n=25):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    X[1] = X[0]
    if place == "far":
        # One by itself, one too far for products of matrices, and two beside each other there.
        X[2], X[3], X[4:6] = [40.0, 0.0], [1e3, 0.0], [1e6, 1e6]
        X[5] += 0.5
    return X + (1e3 if place == "elsewhere" else 0.0)


def make_tables(lam):
    return [level_table("unordered", 3, lam[0]), level_table("ordered", 4, lam[1])]


def slow_sums(X, codes, kernel, weights, columns, leave_out, scale):
    """Averages and log-sums, row by row, of a kernel whose logarithm is known."""
    tables = [np.log(table) for table, _ in make_tables(LAM)] if codes.shape[1] else []
    averages, log_total = np.zeros(columns.shape), np.full(len(X), -np.inf)
    for i in range(len(X)):
        others = [k for k in range(len(X)) if k != i or not leave_out]
        logs = []
        for k in others:
            log = kernel.log(X[[i]] / scale, X[[k]] / scale)[0, 0] + sum(
                table[a, b] for table, a, b in zip(tables, codes[i], codes[k], strict=True)
            )
            logs.append(log + math.log(weights[k]))
        largest = max(logs)
        if largest == -math.inf:
            continue
        terms = np.exp(np.array(logs) - largest)
        log_total[i] = largest + math.log(terms.sum())
        averages[i] = terms @ columns[others] / terms.sum()
    return averages, log_total


@pytest.mark.parametrize(
    ("place", "mixed", "leave_out"),
    [("near", False, False), ("far", False, True), ("elsewhere", True, False)],
)
@pytest.mark.parametrize("name", KERNELS)
def test_are_loops_over_pairs(name, place, mixed, leave_out):
    X, rng = make_rows(place), np.random.default_rng(1)
    codes = np.column_stack([rng.integers(k, size=25) for k in (3, 4)])[:, : 2 * mixed]
    weights = rng.uniform(0.1, 9, size=25)
    columns = np.column_stack([np.ones(25), rng.normal(size=25)])
    kernel = KERNELS[name]
    sums = PairSums(X, codes, kernel, weights, leave_out=leave_out)
    tables = make_tables(LAM) if mixed else []
    averages, log_total, _ = sums(BANDWIDTH, tables, columns)
    given = X, codes, kernel, weights, columns, leave_out, BANDWIDTH
    slow_averages, slow_log_total = slow_sums(*given)
    np.testing.assert_allclose(log_total, slow_log_total, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(averages, slow_averages, rtol=1e-8, atol=1e-9)
    own = math.log(kernel(X[:1] * 0, X[:1] * 0)[0, 0])
    np.testing.assert_allclose(sums.log_own, own, rtol=1e-12, atol=1e-12)
    without, *_ = sums(BANDWIDTH, tables, columns, slopes=False)
    np.testing.assert_array_equal(without, averages)


@pytest.mark.parametrize(("place", "mixed"), [("near", True), ("far", False)])
@pytest.mark.parametrize("name", KERNELS)
def test_slopes_are_differences(name, place, mixed):
    X, rng = make_rows(place), np.random.default_rng(1)
    codes = np.column_stack([rng.integers(k, size=25) for k in (3, 4)])[:, : 2 * mixed]
    weights, columns = rng.uniform(0.1, 9, size=25), np.ones((25, 2))
    columns[:, 1] = rng.normal(size=25)
    sums = PairSums(X, codes, KERNELS[name], weights)
    of_logs, of_averages = rng.normal(size=25), rng.normal(size=(25, 2))

    def value(point, slopes=False):
        tables = make_tables(point[2:]) if mixed else []
        averages, logs, pull = sums(np.exp(point[:2]), tables, columns, slopes=slopes)
        found = logs[np.isfinite(logs)] @ of_logs[np.isfinite(logs)]
        return pull if slopes else found + (averages * of_averages).sum()

    point = np.append(np.log(BANDWIDTH), LAM[: 2 * mixed])
    pull = value(point, slopes=True)
    gradient = pull(of_logs, of_averages)
    for j, step in enumerate(1e-5 * np.eye(len(point))):
        ends = value(point + step), value(point - step)
        slope = (ends[0] - ends[1]) / 2e-5
        assert gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-4)
    given = of_logs, np.zeros((25, 2))
    np.testing.assert_allclose(value(point, True)(of_logs), value(point, True)(*given))


@pytest.mark.parametrize("name", ["gaussian", "epanechnikovs", "two"])
def test_blocks_and_threads_change_nothing(name, monkeypatch):
    X, codes, weights = make_rows("near", 60), np.empty((60, 0), int), np.linspace(1, 2, 60)
    sums = PairSums(X, codes, KERNELS[name], weights)
    *whole, pull = sums(BANDWIDTH)
    monkeypatch.setattr(_pair_sums, "BLOCK_PAIRS", 100)
    with ThreadPoolExecutor(2) as pool:
        sums = PairSums(X, codes, KERNELS[name], weights, map_blocks=pool.map)
        *parts, pull_parts = sums(BANDWIDTH)
        of_logs = np.ones(60)
        np.testing.assert_allclose(pull_parts(of_logs), pull(of_logs), rtol=1e-10)
    for part, field in zip(parts, whole, strict=True):
        np.testing.assert_allclose(part, field, rtol=1e-12)


@pytest.mark.parametrize(
    "kernel", [Silverman(), ProductKernel("silverman"), ScaledDotProduct()], ids=repr
)
def test_what_has_no_slopes_is_refused(kernel):
    with pytest.raises(ValueError, match="a product of positive kernels of the distance"):
        PairSums(make_rows("near"), np.empty((25, 0), int), kernel, np.ones(25))
