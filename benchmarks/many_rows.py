"""Kernel attention on rows in Parquet files: a sample of the rows beside LightGBM on all rows.

    python benchmarks/many_rows.py [--rows 1000000] [--only protein] [--parquet 10000000]

Kernel attention draws `max_rows` rows from partitions of Dask; LightGBM learns from all rows in
memory. Test rows are other ones. Expected: on smooth functions a sample is enough; where there
is still something to learn from more rows, LightGBM on all rows is better. Sets are the real
ones of `data`, with all their rows; the same rows repeated, with noise of 0.02 standard
deviations added to each feature, which says more about seconds than about errors; and a
simulated one, Friedman's function of five of 20 features, with noise of standard deviation 1.

With --parquet: seconds and memory of predictions of that many rows from Parquet files. Memory
is the peak of a process that does nothing else, with its libraries.

Seconds are the processor's, at one thread. LightGBM is in the group `bench`. About an hour.
"""

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path

import dask
import dask.dataframe as dd
import lightgbm
import numpy as np
import pandas as pd
from _results import alone, peak_megabytes, stamp

from sklearn_attention import KernelAttentionRegressor

DATA = Path(os.environ.get("SKLEARN_ATTENTION_DATA", "../shared/data"))
N_TEST, PARTITION, NOISE = 5000, 100_000, 0.02


def protein():
    frame = pd.read_csv(DATA / "uci" / "protein-tertiary-structure.csv.gz")
    return frame.rename(columns={frame.columns[-1]: "y"})


def diamonds():
    frame = pd.read_csv(DATA / "tabular" / "diamonds.csv.gz")
    texts = frame.select_dtypes(exclude="number").columns
    frame = frame.astype(dict.fromkeys(texts, "category"))
    return frame.assign(y=np.log(frame["price"])).drop(columns="price")


def simulated(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rows, 20))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    y += 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=n_rows)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(20)]).assign(y=y)


def repeated(frame, n_rows):
    """Rows as often as it takes, with noise in their features that are numbers."""
    rng = np.random.default_rng(1)
    rows = frame.iloc[np.resize(rng.permutation(len(frame)), n_rows)].reset_index(drop=True)
    for column in frame.select_dtypes("number").columns.drop("y"):
        noise = rng.normal(scale=NOISE * frame[column].std(), size=n_rows)
        rows[column] = rows[column] + noise
    return rows


def tables(n_rows):
    """Training and test rows of each set."""
    for load in (protein, diamonds):
        rows = load().sample(frac=1, random_state=0).reset_index(drop=True)
        test, training = rows[:N_TEST], rows[N_TEST:]
        yield load.__name__, training, test
        yield f"{load.__name__}, repeated", repeated(training, n_rows), test
    yield "simulated", simulated(n_rows), simulated(N_TEST, seed=1)


def seconds(function, *args):
    """Processor seconds, and what came out."""
    start = time.process_time()
    found = function(*args)
    return time.process_time() - start, found


def measured(model, training, test):
    """Cells of a line: error, seconds of the fit, microseconds of a prediction."""
    X, y = test.drop(columns="y"), test["y"]
    fit, _ = seconds(model.fit, training.drop(columns="y"), training["y"])
    predict, predictions = seconds(model.predict, X)
    error = np.sqrt(np.mean((predictions - y) ** 2))
    return [f"{error:.4g}", f"{fit:.0f}", f"{predict / len(test) * 1e6:.0f}"]


def errors(sizes, n_rows, only):
    """Lines of the table of errors."""
    for name, training, test in tables(n_rows):
        if only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for k in range(0, len(training), PARTITION):
                training[k : k + PARTITION].to_parquet(f"{folder}/{k:09}.parquet")
            rows = dd.read_parquet(folder)
            for size in sizes:
                model = KernelAttentionRegressor(max_rows=size)
                cells = measured(model, rows, test)
                sample = f"{min(size, len(training))} of {len(training)}"
                yield [name, "kernel attention", sample, *cells]
            for size in sorted({*sizes, len(training)}):
                sample = training.sample(min(size, len(training)), random_state=0)
                cells = measured(lightgbm.LGBMRegressor(n_jobs=1, verbose=-1), sample, test)
                yield [name, "LightGBM", f"{len(sample)} of {len(training)}", *cells]


def parquet(size, n_rows):
    """Line of the table of predictions from Parquet files to Parquet files."""
    model = KernelAttentionRegressor().fit(*_split(simulated(size)))
    with tempfile.TemporaryDirectory() as folder:
        Path(f"{folder}/rows").mkdir()
        for k in range(0, n_rows, PARTITION):
            rows = simulated(PARTITION, seed=k + 2).drop(columns="y")
            rows.to_parquet(f"{folder}/rows/{k:09}.parquet")
        taken, megabytes = alone(predict_files, model, folder)
        n_predicted = len(dd.read_parquet(f"{folder}/predictions"))
        assert n_predicted == n_rows
    million = taken / n_rows * 1e6
    return [f"{size}", f"{n_rows}", f"{taken:.0f}", f"{million:.0f}", f"{megabytes:.0f}"]


def predict_files(model, folder):
    """Seconds, and the most memory, of a process that predicts the rows in a folder."""
    dask.config.set(scheduler="synchronous")

    def predict():
        found = model.predict(dd.read_parquet(f"{folder}/rows"))
        found.to_dask_dataframe("y").to_frame().to_parquet(f"{folder}/predictions")

    taken, _ = seconds(predict)
    return taken, peak_megabytes()


def _split(frame):
    return frame.drop(columns="y"), frame["y"]


def print_table(header, rows):
    """Print rows as soon as they are there."""
    print()
    for line in (header, ["---"] * len(header)):
        print("| " + " | ".join(line) + " |")
    for line in rows:
        print("| " + " | ".join(line) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--only", default="")
    parser.add_argument("--parquet", type=int, default=10**7)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "max_rows=")
    dask.config.set(scheduler="synchronous")
    print("# Kernel attention on samples of many rows\n")
    print(f"{stamp('dask', 'lightgbm', 'scikit-learn')} Errors are root mean squared errors.")
    header = "set|model|training rows|error|fit, s|prediction, µs".split("|")
    print_table(header, errors(options.sizes, options.rows, options.only))
    if options.parquet:
        print("\nPredictions of rows with 20 features in Parquet files:")
        header = "training rows|rows predicted|seconds|seconds for a million|MB".split("|")
        sizes = options.parquet // 20, options.parquet // 5, options.parquet
        print_table(header, [parquet(1000, n) for n in sizes])


if __name__ == "__main__":
    main()
