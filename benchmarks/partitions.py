"""An average over partitions on two worker processes of Dask, of which only sums travel.

    python benchmarks/partitions.py [--rows 5000000] [--queries 100000]

One feature, Gaussian, eight partitions of so many rows, which each worker makes itself. Memory
is what the largest worker takes beyond a worker that has computed a partition of ten rows.
"""

import argparse
import resource
import time

import dask
import dask.bag as db
import numpy as np
from distributed import Client, LocalCluster

from sklearn_attention.attention import attend, finish, merge, partial_attend

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


def part(queries, seed, n):
    return partial_attend(queries, *partition(seed, n), bandwidth=0.01)


def total(queries, n):
    parts = [
        dask.delayed([dask.delayed(part)(queries, seed, n)]) for seed in range(N_PARTITIONS)
    ]
    return db.from_delayed(parts).fold(merge, split_every=4)


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=float, default=5e6)
    parser.add_argument("--queries", type=float, default=1e5)
    arguments = parser.parse_args()
    n, n_queries = int(arguments.rows), int(arguments.queries)
    queries = np.random.default_rng(99).normal(size=(n_queries, 1))
    workers = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**workers) as cluster, Client(cluster) as client:
        client.compute(total(queries[:10], 10)).result()
        idle = max(client.run(megabytes).values())
        start = time.perf_counter()
        found, _ = finish(client.compute(total(queries, n)).result())
        seconds = time.perf_counter() - start
        peak = max(client.run(megabytes).values())
    size = sum(x.nbytes for x in partition(0, n)) / 2**20
    print(f"{N_PARTITIONS} partitions of {n:g} rows, {n_queries:g} queries, 2 workers")
    print(
        f"seconds {seconds:.1f}; a partition {size:.0f} MB, a worker {peak - idle:.0f} MB more"
    )
    keys, values = map(
        np.concatenate, zip(*(partition(seed, n) for seed in range(N_PARTITIONS)), strict=True)
    )
    expected, _ = attend(queries, keys, values, bandwidth=0.01)
    print(f"largest difference to one process {np.abs(found[:, 0] - expected).max():.0e}")


if __name__ == "__main__":
    main()
