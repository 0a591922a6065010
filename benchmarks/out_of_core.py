"""Fits and predictions on memory maps of more rows than fit in memory.

    python benchmarks/out_of_core.py [--rows 100000000] [--queries 1000000]

One feature, Gaussian. Seconds are the processor's, at one thread; memory is the largest that
the process holds itself (RssAnon of Linux), without the pages of its maps.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from sklearn_attention import (
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
)

BATCH = 10**6
CASES = [
    (NadarayaWatsonRegressor, "scott"),
    (NadarayaWatsonRegressor, "loo"),
    (NadarayaWatsonClassifier, "scott"),
    (LocalPolynomialRegressor, "scott"),
    (ProductKernelDensity, "scott"),
    (ProductKernelDensity, "likelihood"),
]


def write_data(folder, n):
    """Maps of a feature, targets and classes, written in batches."""
    rng = np.random.default_rng(0)
    shapes = {"X": (np.float64, (n, 1)), "y": (np.float64, (n,)), "c": (np.int8, (n,))}
    X, y, classes = (
        np.lib.format.open_memmap(folder / f"{name}.npy", "w+", *shape)
        for name, shape in shapes.items()
    )
    for start in range(0, n, BATCH):
        rows = slice(start, min(start + BATCH, n))
        X[rows, 0] = rng.normal(size=rows.stop - start)
        y[rows] = np.sin(3 * X[rows, 0]) + 0.3 * rng.normal(size=rows.stop - start)
        classes[rows] = y[rows] > 0
    return [np.load(folder / f"{name}.npy", mmap_mode="r") for name in shapes]


def own_megabytes():
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def measured(function, *args):
    """Processor seconds, and the largest memory meanwhile."""
    peak, done = [own_megabytes()], threading.Event()

    def watch():
        while not done.wait(0.005):
            peak.append(max(peak.pop(), own_megabytes()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.process_time()
    function(*args)
    seconds = time.process_time() - start
    done.set()
    watcher.join()
    return f"{seconds:.1f}", f"{peak[0]:.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--queries", type=float, default=1e6)
    arguments = parser.parse_args()
    queries = np.random.default_rng(1).normal(size=(int(arguments.queries), 1))
    print(f"# {arguments.rows:g} rows in memory maps, {arguments.queries:g} queries\n")
    print("| estimator | bandwidth | fit | MB | predict | MB |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        X, y, classes = write_data(Path(folder), int(arguments.rows))
        targets = {NadarayaWatsonClassifier: classes, ProductKernelDensity: None}
        for kind, bandwidth in CASES:
            model = kind(bandwidth=bandwidth)
            fit = measured(model.fit, X, targets.get(kind, y))
            predict = getattr(model, "score_samples", None) or model.predict
            line = [kind.__name__, bandwidth, *fit, *measured(predict, queries)]
            print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
