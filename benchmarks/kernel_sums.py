"""Speed and accuracy of kernel sums along one feature, against peers in the same run.

    python benchmarks/kernel_sums.py [--rows N]

The density of N = 1 000 000 keys at as many queries, at one bandwidth, in processor seconds:

* ours: `attend`, which also computes averages.
* KernelDensity: the tree of scikit-learn, with ``rtol=1e-7``.
* TreeKDE: the tree of KDEpy, with its tolerances.
* FFTKDE: KDEpy's sums on a grid, interpolated at the queries.

KDEpy is in the dependency group `bench`, and left out where it is missing. A peer starts with
1000 rows and continues with ten times as many, up to N, while the next run should take 20
seconds at most; ours is timed with as many rows. Errors are the largest difference to sums over
all pairs at 1000 of the queries, relative to the largest of these. Expected: trees stop at
10 000 or 100 000 rows; the grid is several times faster than ours and accurate to four digits,
since KDEpy cuts off the tails of kernels.
"""

import argparse
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from _results import markdown, stamp
from sklearn.neighbors import KernelDensity

from sklearn_attention import attend

try:
    from KDEpy import FFTKDE, TreeKDE
except ImportError:
    FFTKDE = TreeKDE = None

BANDWIDTH = 0.05
LIMIT = 20
GRID = 2**16
CHECKED = 1000


class Kernel(NamedTuple):
    """A kernel by its names elsewhere, its deviation, its integral and its formula."""

    scikit_learn: str
    kdepy: str
    deviation: float  # what KDEpy calls the bandwidth
    integral: float
    values: Callable


KERNELS = {
    "gaussian": Kernel(
        "gaussian", "gaussian", 1, 1, lambda u: np.exp(-u * u / 2) / math.sqrt(2 * math.pi)
    ),
    "epanechnikov": Kernel(
        "epanechnikov", "epa", math.sqrt(1 / 5), 1, lambda u: 0.75 * np.maximum(1 - u * u, 0)
    ),
    "laplacian": Kernel(
        "exponential", "exponential", math.sqrt(2), 2, lambda u: np.exp(-abs(u))
    ),
}


def make_data(n):
    """Queries and keys, in three groups of which one lies apart."""
    rng = np.random.default_rng(0)
    centers = rng.choice([0.0, 2.0, 20.0], p=[0.6, 0.3, 0.1], size=(2, n))
    return centers + 0.7 * rng.normal(size=(2, n))


def all_pairs(name, queries, keys):
    values, integral = KERNELS[name].values, KERNELS[name].integral
    means = [values((query - keys) / BANDWIDTH).mean() for query in queries]
    return np.array(means) / (integral * BANDWIDTH)


def ours(name, queries, keys):
    zeros = np.zeros(len(keys))
    _, log_sums = attend(queries[:, None], keys[:, None], zeros, name, bandwidth=BANDWIDTH)
    return np.exp(log_sums) / (KERNELS[name].integral * BANDWIDTH * len(keys))


def kernel_density(name, queries, keys):
    kernel = KERNELS[name].scikit_learn
    model = KernelDensity(kernel=kernel, bandwidth=BANDWIDTH, rtol=1e-7)
    return np.exp(model.fit(keys[:, None]).score_samples(queries[:, None]))


def kdepy(method, name, places, keys):
    kernel = KERNELS[name]
    # In units of the bandwidth: its tolerances are absolute.
    model = method(kernel.kdepy, bw=kernel.deviation).fit(keys / BANDWIDTH)
    return model.evaluate(places / BANDWIDTH) / BANDWIDTH


def tree_kde(name, queries, keys):
    order = np.argsort(queries)  # it takes sorted places alone
    densities = np.empty(len(queries))
    densities[order] = kdepy(TreeKDE, name, queries[order], keys)
    return densities


def fft_kde(name, queries, keys):
    low, high = min(queries.min(), keys.min()), max(queries.max(), keys.max())
    grid = np.linspace(low - 1, high + 1, GRID)
    return np.interp(queries, grid, kdepy(FFTKDE, name, grid, keys))


PEERS = {"KernelDensity": kernel_density}
if TreeKDE is not None:
    PEERS |= {"TreeKDE": tree_kde, "FFTKDE": fft_kde}


def timed(function, name, queries, keys):
    """Processor seconds and densities."""
    start = time.process_time()
    densities = function(name, queries, keys)
    return time.process_time() - start, densities


def largest_run(function, name, queries, keys):
    """Rows, processor seconds and densities of the largest run within the limit."""
    n = min(1000, len(keys))
    elapsed, densities = timed(function, name, queries[:n], keys[:n])
    growth = 100
    while 10 * n <= len(keys) and growth * elapsed <= LIMIT:
        before, n = elapsed, 10 * n
        elapsed, densities = timed(function, name, queries[:n], keys[:n])
        growth = elapsed / before
    return n, elapsed, densities


def compare(n_rows):
    """Rows of the table: every kernel by ours, then by each peer."""
    queries, keys = make_data(n_rows)
    cells = []
    for name in KERNELS:
        exact = {}

        def error(densities, name=name, exact=exact):
            n = len(densities)
            if n not in exact:
                exact[n] = all_pairs(name, queries[:CHECKED], keys[:n])
            return abs(densities[:CHECKED] - exact[n]).max() / exact[n].max()

        ours(name, queries[:10], keys[:10])
        elapsed, densities = min(
            (timed(ours, name, queries, keys) for _ in range(3)), key=lambda run: run[0]
        )
        row = [name, "ours", f"{n_rows}", f"{elapsed:.2f}", "", "", f"{error(densities):.0e}"]
        cells.append(row)
        for peer, function in PEERS.items():
            n, elapsed, densities = largest_run(function, name, queries, keys)
            our_seconds = min(timed(ours, name, queries[:n], keys[:n])[0] for _ in range(3))
            cells.append([
                name, peer, f"{n}", f"{elapsed:.2f}", f"{our_seconds:.3f}",
                f"{elapsed / our_seconds:.1f}", f"{error(densities):.0e}",
            ])  # fmt: skip
    return cells


def report(n_rows):
    header = ["kernel", "by", "rows", "seconds", "ours, as many rows (s)", "× ours", "error"]
    return "\n".join([
        "# Densities along one feature, at as many queries as keys",
        "",
        f"{stamp('numpy', 'scikit-learn', 'KDEpy')} Seconds are processor seconds. The "
        f"bandwidth is {BANDWIDTH}; the keys form three groups of standard deviation 0.7. "
        f"FFTKDE has a grid of {GRID} points. “× ours” divides a peer's seconds by ours for "
        "as many rows. “error” is the largest difference to sums over all pairs, divided by "
        "the largest density.",
        "",
        *markdown(header, compare(n_rows)),
    ])  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rows", type=int, default=1_000_000, metavar="N", help="of queries and of keys"
    )
    arguments = parser.parse_args()
    text = report(arguments.rows)
    print(text)
