"""Copy, reverse and sort sequences of 20 tokens out of 50: can attention learn algorithms?

    python benchmarks/sequence_tasks.py [--threads 2] [--pairs 15000] [--epochs 4]

A TransformerSeq2Seq learns each task from random pairs, and is asked for 2000 new ones. A
sequence counts only if all its tokens are right. Seconds are of the fit, by the clock and of
the processor. Expected: at least 99 % of the sequences, in under three minutes on one core.
"""

import argparse
import os
import time

import numpy as np
import torch
from attend import processor

from sklearn_attention import Architecture, TransformerSeq2Seq

N_TOKENS, LENGTH, N_ASKED = 50, 20, 2000
TASKS = {
    "copy": lambda X: X,
    "reverse": lambda X: X[:, ::-1],
    "sort": lambda X: np.sort(X, axis=1),
}
MODEL = {
    "shared_vocabulary": True,
    "n_layers": 2,
    "architecture": Architecture(d_feedforward=256),
    "dropout": 0.0,
    "label_smoothing": 0.0,
    "learning_rate": 3e-3,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--pairs", type=int, default=15_000)
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("# Copy, reverse, sort\n")
    print(f"{processor()}, threads: {options.threads}, torch {torch.__version__}\n")
    print(f"{options.pairs} pairs, {options.epochs} epochs.\n")
    print("| task | sequences right | tokens right | seconds | processor |")
    print("| --- | --- | --- | --- | --- |")
    for name, task in TASKS.items():
        rng = np.random.default_rng(0)
        X = rng.integers(0, N_TOKENS, (options.pairs + N_ASKED, LENGTH))
        y = task(X)
        clock, cpu = time.perf_counter(), time.process_time()
        model = TransformerSeq2Seq(**MODEL, max_epochs=options.epochs)
        model.fit(X[N_ASKED:], y[N_ASKED:])
        clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
        found, wanted = model.predict(X[:N_ASKED]), y[:N_ASKED].tolist()
        right = np.mean([a == b for a, b in zip(found, wanted, strict=True)])
        tokens = model.score(X[:N_ASKED], y[:N_ASKED])
        print(f"| {name} | {right:.2%} | {tokens:.3%} | {clock:.0f} | {cpu:.0f} |", flush=True)


if __name__ == "__main__":
    main()
