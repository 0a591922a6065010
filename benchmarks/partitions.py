"""Smoothing of partitions by two worker processes of Dask, which exchange only sums.

    python benchmarks/partitions.py [--rows 2000000] [--queries 100000]

One feature, Gaussian, eight partitions of so many rows. They are not stored: a worker generates
a partition for each task, as it would read one from a file. Memory is that of the largest
worker, beyond that of a worker after the same tasks with ten rows.
"""

import argparse
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from _results import stamp
from distributed import Client, LocalCluster

from sklearn_attention import NadarayaWatsonRegressor

N_PARTITIONS, PIECE = 8, 10**5


def partition(seed, n):
    """Made in pieces, as nothing beside the partition shall take memory."""
    rng = np.random.default_rng(seed)
    keys, values = np.empty((n, 1)), np.empty(n)
    for start in range(0, n, PIECE):
        own = keys[start : start + PIECE, 0]
        own[:] = rng.normal(size=len(own))
        values[start : start + PIECE] = np.sin(3 * own) + 0.3 * rng.normal(size=len(own))
    return keys, values


def collections(n):
    parts = [dask.delayed(partition, nout=2)(seed, n) for seed in range(N_PARTITIONS)]
    X = [da.from_delayed(keys, (n, 1), float) for keys, _ in parts]
    y = [da.from_delayed(values, (n,), float) for _, values in parts]
    return da.concatenate(X), da.concatenate(y)


def megabytes():
    """The largest memory of this process so far, by Linux."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def fit(X, y, queries):
    return NadarayaWatsonRegressor(bandwidth="scott").fit(X, y).bandwidth_


def fit_by_search(X, y, queries):
    return NadarayaWatsonRegressor(bandwidth="loo").fit(X, y).bandwidth_


def fit_and_predict(X, y, queries):
    return NadarayaWatsonRegressor(bandwidth=0.01).fit(X, y).predict(queries)


def fit_and_leave_one_out(X, y, queries):
    return NadarayaWatsonRegressor(bandwidth=0.01).fit(X, y).loo_score_


def measured(function, n, queries):
    """Result of a function on a cluster, its seconds, and megabytes of a worker."""
    workers = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**workers) as cluster, Client(cluster) as client:
        function(*collections(10), queries[:10])
        idle = max(client.run(megabytes).values())
        start = time.perf_counter()
        found = function(*collections(n), queries)
        seconds = time.perf_counter() - start
        return found, seconds, max(client.run(megabytes).values()) - idle


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=float, default=2e6)
    parser.add_argument("--queries", type=float, default=1e5)
    arguments = parser.parse_args()
    rows, n_queries = int(arguments.rows), int(arguments.queries)
    queries = np.random.default_rng(99).normal(size=(n_queries, 1))
    print("# Rows in partitions of Dask\n")
    print(
        f"{stamp('dask', 'numpy')} {N_PARTITIONS} partitions of one feature are processed by "
        f"two workers, and {n_queries} queries are predicted. A worker does not keep a "
        "partition; it generates it again for each task. Memory does not include libraries. "
        "Seconds are wall time. “difference” compares results with those of all rows in "
        "memory.\n"
    )
    print(
        "| task | rows of a partition | MB of a partition | seconds | MB of a worker | "
        "difference |"
    )
    print("|---|---|---|---|---|---|")
    cases = {fit: rows, fit_by_search: rows, fit_and_predict: rows}
    cases[fit_and_leave_one_out] = rows // 10
    for function, n in cases.items():
        parts = [partition(seed, n) for seed in range(N_PARTITIONS)]
        size = sum(x.nbytes for x in parts[0]) / 2**20
        expected = function(*map(np.concatenate, zip(*parts, strict=True)), queries)
        del parts
        found, seconds, peak = measured(function, n, queries)
        difference = np.abs(found - expected).max()
        print(
            f"| {function.__name__} | {n:g} | {size:.0f} | {seconds:.1f} | {peak:.0f} "
            f"| {difference:.0e} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
