"""Pairs of query and key per second, and their share of the processor's limit.

    python benchmarks/all_pairs.py [--rows 20000] [--threads 1]

Gaussian and Epanechnikov averages of one column of values over random rows in single precision,
all pairs compared (``algorithm="dense"``). The limit is the slowest of the steps that every
algorithm needs, each by itself in torch on blocks that stay in cache: the products of all
queries with all keys, one exponential for each pair (Gaussian), and the product of the weights
with the values.
"""

import argparse
import itertools
import platform
import time

import torch

from sklearn_attention import attend

KERNELS = "gaussian", "epanechnikov"
FEATURES = 2, 8, 64
# Rows of the blocks that limits are measured on, and the best of so many rounds.
BLOCK, ROUNDS = 1024, 3


def seconds(function):
    """The best of some rounds."""

    def once():
        start = time.perf_counter()
        function()
        return time.perf_counter() - start

    once()
    return min(once() for _ in range(ROUNDS))


def limit(queries, keys, values, kernel):
    """Seconds of the slowest part of a pass over all pairs."""
    n_blocks = (len(queries) / BLOCK) * (len(keys) / BLOCK)
    rows, others, some = queries[:BLOCK], keys[:BLOCK], values[:BLOCK, None]
    scores = rows @ others.T
    parts = {
        "scores": lambda: torch.mm(rows, others.T, out=scores),
        "weights times values": lambda: torch.mm(scores, some),
    }
    if kernel == "gaussian":
        parts["exponentials"] = lambda: torch.exp(scores)
    repeats = 50

    def many(function):
        for _ in range(repeats):
            function()

    found = {name: seconds(lambda f=f: many(f)) / repeats for name, f in parts.items()}
    slowest = max(found, key=found.get)
    return n_blocks * found[slowest], slowest


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000, help="of queries and of keys")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    n, machine = arguments.rows, platform.processor() or platform.machine()
    print("# All pairs\n")
    print(f"{machine}, {arguments.threads} threads, {n} queries and keys.\n")
    print("| kernel | features | seconds | 10⁹ pairs a second | share of the limit | limit |")
    print("|---|---|---|---|---|---|")
    for kernel, d in itertools.product(KERNELS, FEATURES):
        taken, bound, part = case(kernel, d, n)
        print(
            f"| {kernel} | {d} | {taken:.3f} | {n * n / taken / 1e9:.2f} "
            f"| {100 * bound / taken:.0f} % | {part} |",
            flush=True,
        )


def case(kernel, d, n):
    """Seconds of the averages, of their limit, and what that is."""
    generator = torch.Generator().manual_seed(0)
    queries, keys = (torch.randn(n, d, generator=generator) for _ in range(2))
    values = torch.randn(n, generator=generator)
    # Most pairs are within reach of a kernel that ends.
    options = {"bandwidth": 2 * d**0.5, "algorithm": "dense"}
    taken = seconds(lambda: attend(queries, keys, values, kernel, **options))
    return taken, *limit(queries, keys, values, kernel)


if __name__ == "__main__":
    main()
