"""Averages over many rows of a few features, and their densities: seconds, growth, memory.

    python benchmarks/scale.py [--rows 1000000] [--only averages] [--choice]

As many queries as keys, at a bandwidth that has about 100 keys within its reach at the median
query (of the Gaussian, within two bandwidths). Beside "auto", in the same run: all pairs
(`algorithm="dense"`) and, for the Epanechnikov kernel, RadiusNeighborsRegressor of scikit-learn
with the same weights; both for some of the queries, with seconds extrapolated to all.
Seconds are the processor's, at one thread. Memory is the peak of a process that does nothing
else, above its memory with the data.

Densities of as many rows, by `ProductKernelDensity`, beside KernelDensity of scikit-learn at
rtol=1e-10, at the same rows and bandwidth; the aim for one feature was 20 times its speed.
Compact kernels are products with one factor for each feature, of which KernelDensity has none:
it takes the same kernel of the distance, at a bandwidth that covers as many rows.

With --choice: over kernels, features, rows, bandwidths and distributions, the share of cases
where "auto" takes at most 1.5 times the seconds of the faster of all pairs and near keys.
"""

import argparse
import itertools
import time
import warnings
from unittest import mock

import numpy as np
import torch
from _results import stamp
from attend import numbers_printed_by, process_memory
from scipy.spatial import KDTree
from sklearn.neighbors import KernelDensity, RadiusNeighborsRegressor

from sklearn_attention import ProductKernelDensity, attend
from sklearn_attention.attention._algorithms._near_keys import NearKeys
from sklearn_attention.attention._smoother import fastest_algorithm
from sklearn_attention.kernels import ProductKernel

N_NEIGHBORS = 100
CASES = [("epanechnikov", 2), ("epanechnikov", 4), ("gaussian", 3)]
# Kernel, features and bandwidth: a rule's, or one that reaches about 100 rows.
DENSITIES = [
    ("gaussian", 1, "scott"), ("gaussian", 1, None), ("gaussian", 2, None),
    ("gaussian", 3, None), ("epanechnikov", 4, None),
]  # fmt: skip
SAMPLE_PAIRS, PEER_PAIRS = 10**8, 10**9
DISTRIBUTIONS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_t(2, size=shape),
    "clusters": lambda rng, shape: (
        0.1 * rng.normal(size=shape) + 3 * rng.integers(0, 5, size=(shape[0], 1))
    ),
    "ties": lambda rng, shape: np.round(4 * rng.normal(size=shape)) / 4,
    "outlier": lambda rng, shape: np.vstack([rng.normal(size=shape)[1:], [[1e6] * shape[1]]]),
}


def make_data(n, n_features, distribution="normal"):
    """Queries, keys and values."""
    rng = np.random.default_rng(0)
    queries, keys = (DISTRIBUTIONS[distribution](rng, (n, n_features)) for _ in range(2))
    return queries, keys, np.sin(keys[:, 0])


def bandwidth_for(kernel, queries, keys, n_neighbors=N_NEIGHBORS, p=2):
    """Bandwidth with so many keys within reach of the median query, in a norm."""
    some = queries[:: max(1, len(queries) // 1000)]
    distance = KDTree(keys).query(some, [n_neighbors], p=p)[0]
    return float(np.median(distance)) / (2 if kernel == "gaussian" else 1) or 1.0


def seconds(function, *args, **options):
    """Processor seconds, and what came out."""
    start = time.process_time()
    found = function(*args, **options)
    return time.process_time() - start, found


def radius_neighbors(queries, keys, values, bandwidth):
    """The same averages by scikit-learn; NaN where no key is within reach."""

    def weights(distances):
        return [np.maximum(1 - (own / bandwidth) ** 2, 1e-300) for own in distances]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about queries without neighbours
        model = RadiusNeighborsRegressor(radius=bandwidth, weights=weights, algorithm="kd_tree")
        return model.fit(keys, values).predict(queries)


def table(n_most):
    """Rows of the table, kernel by kernel."""
    for kernel, n_features in CASES:
        before = None
        for n in 10 ** np.arange(4, int(np.log10(n_most)) + 1):
            queries, keys, values = make_data(n, n_features)
            bandwidth = bandwidth_for(kernel, queries, keys)
            elapsed, (found, _) = seconds(
                attend, queries, keys, values, kernel, bandwidth=bandwidth
            )
            some = queries[: max(100, SAMPLE_PAIRS // n)]
            share = len(queries) / len(some)
            dense, (asked, _) = seconds(
                attend, some, keys, values, kernel, bandwidth=bandwidth, algorithm="dense"
            )
            peer = None
            if kernel == "epanechnikov":
                some_more = queries[:10_000]
                peer, _ = seconds(radius_neighbors, some_more, keys, values, bandwidth)
                peer *= len(queries) / len(some_more)
            (megabytes,) = numbers_printed_by(
                "scale", "measure_memory", int(n), n_features, kernel, bandwidth
            )
            yield [
                kernel, f"{n_features}", f"{n}", f"{elapsed:.2f}",
                f"{dense * share / elapsed:.1f}", f"{peer / elapsed:.1f}" if peer else "–",
                f"{np.log10(elapsed / before):.2f}" if before else "",
                f"{megabytes:.0f}",
                f"{np.abs(found[: len(some)] - asked).max():.0e}",
            ]  # fmt: skip
            before = elapsed


def measure_memory(n, n_features, kernel, bandwidth):
    """Print the megabytes that averages take above those of the data."""
    torch.set_num_threads(1)
    queries, keys, values = make_data(n, n_features)
    attend(queries[:10], keys[:10], values[:10], kernel, bandwidth=bandwidth)
    before = process_memory("VmRSS")
    attend(queries, keys, values, kernel, bandwidth=bandwidth)
    print(process_memory("VmHWM") - before)


def density_table(n_most):
    """Rows of the table of densities."""
    for kernel, n_features, rule in DENSITIES:
        before = None
        for n in 10 ** np.arange(4, int(np.log10(n_most)) + 1):
            queries, keys, _ = make_data(n, n_features)
            bandwidth = peers_bandwidth = rule
            if rule is None:
                product = kernel != "gaussian"
                peers_bandwidth = bandwidth_for(kernel, queries, keys)
                bandwidth = bandwidth_for(kernel, queries, keys, p=np.inf if product else 2)
            model = ProductKernelDensity(kernel, bandwidth=bandwidth).fit(keys)
            model.score_samples(queries[:10])  # loads what it needs
            elapsed, found = seconds(model.score_samples, queries)
            if rule is not None:
                peers_bandwidth = float(model.bandwidth_[0])
            peer = KernelDensity(kernel=kernel, bandwidth=peers_bandwidth, rtol=1e-10)
            some = queries[: PEER_PAIRS // n]
            theirs, _ = seconds(peer.fit(keys).score_samples, some)
            theirs *= len(queries) / len(some)
            some = queries[: max(100, SAMPLE_PAIRS // n)]
            _, asked = attend(
                some, keys, keys[:, :0], ProductKernel(kernel), bandwidth=model.bandwidth_,
                algorithm="dense", empty="nan",
            )  # fmt: skip
            asked -= np.log(n) + np.log(model.bandwidth_).sum()
            seen, own = np.isfinite(asked), found[: len(some)]
            assert (seen == np.isfinite(own)).all()
            yield [
                kernel, f"{n_features}", f"{model.bandwidth_[0]:.2g}", f"{n}",
                f"{elapsed:.2f}", f"{theirs / elapsed:.1f}",
                f"{np.log10(elapsed / before):.2f}" if before else "",
                f"{np.abs(own[seen] - asked[seen]).max():.0e}",
            ]  # fmt: skip
            before = elapsed


def choices():
    """For each case seconds of the choice, of all pairs and of near keys alone."""
    grid = itertools.product(
        ("epanechnikov", "gaussian"), (3, 5), ((3000, 3000), (20_000, 2000), (20_000, 20_000)),
        (5, 100, 1000), DISTRIBUTIONS,
    )  # fmt: skip
    for kernel, n_features, (n_queries, n_keys), n_neighbors, distribution in grid:
        queries, keys, values = make_data(max(n_queries, n_keys), n_features, distribution)
        queries, keys, values = queries[:n_queries], keys[:n_keys], values[:n_keys]
        bandwidth = bandwidth_for(kernel, queries, keys, n_neighbors)
        given = {"bandwidth": bandwidth, "empty": "nan"}
        chosen = fastest_algorithm(queries, keys, kernel, bandwidth=bandwidth)
        found = {}
        # Trees are grown in any case; what else uses the machine counts less the second time.
        for name in ("dense", "near"):
            with mock.patch.object(NearKeys, "saves_time", return_value=name == "near"):
                pair = [
                    seconds(attend, queries, keys, values, kernel, **given) for _ in range(2)
                ]
            found[name] = min(taken for taken, _ in pair)
        yield found[chosen], found["dense"], found["near"]


def print_table(header, rows):
    """Print rows as soon as they are there."""
    print()
    for line in itertools.chain([header, ["---"] * len(header)], rows):
        print("| " + " | ".join(line) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of queries and of keys")
    parser.add_argument("--only", choices=["averages", "densities"], help="one of the tables")
    parser.add_argument("--choice", action="store_true", help="judge the choice as well")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("# Averages and densities of many rows\n")
    print(
        f"{stamp('torch', 'scikit-learn')} Seconds are processor seconds. “× …” divides a "
        "peer's seconds by ours; “exponent” is the growth of our seconds from the row above: 1 "
        "is linear in the number of rows."
    )
    if arguments.only != "densities":
        header = [
            "kernel", "features", "rows", "seconds", "× all pairs",
            "× RadiusNeighborsRegressor", "exponent", "MB", "error",
        ]  # fmt: skip
        print_table(header, table(arguments.rows))
    if arguments.choice:
        found = np.array(list(choices()))
        ratio = found[:, 0] / found[:, 1:].min(axis=1)
        print(
            f"\nOf {len(found)} cases, what was chosen is within 1.5 times the faster in "
            f"{100 * np.mean(ratio <= 1.5):.0f} %; the worst takes {ratio.max():.1f} times as "
            f"long. All pairs alone would be within 1.5 times in "
            f"{100 * np.mean(found[:, 1] <= 1.5 * found[:, 2]):.0f} %."
        )
    if arguments.only != "averages":
        header = [
            "density", "features", "bandwidth", "rows", "seconds", "× KernelDensity",
            "exponent", "error",
        ]  # fmt: skip
        print(
            "\nLog-densities at as many queries as rows. KernelDensity has rtol=1e-10. Our "
            "Epanechnikov kernel is a product over features; KernelDensity's is a function "
            "of the distance."
        )
        print_table(header, density_table(arguments.rows))


if __name__ == "__main__":
    main()
