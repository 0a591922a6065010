"""Speed and memory of exact Gaussian averages, against peers in the same run.

    python benchmarks/attend.py

Prints a table of seconds and ratios for n = m = 20 000 queries and keys in float32, the
peak memory for n = m = 200 000, and how the cost grows with the number of pairs. Peers:

* torch tiles: blocks of queries against all keys by squared differences (`torch.cdist`,
  exact for close pairs), a shifted exponential, and a product with the values; the scores
  are clamped so that no denormal numbers slow it down. The best of several block sizes
  counts.
* product tiles: the same, but with the squares expanded, so that a block of scores is one
  matrix product; in place throughout. The best that torch written by hand seems to allow.
* KeOps: `pykeops`, where it is installed and compiles.

Peers and ours take turns, and the best of the rounds counts for each.
"""

import argparse
import contextlib
import subprocess
import sys
import time
from functools import partial
from itertools import product

import numpy as np
import torch
from _results import stamp

from sklearn_attention import attend

N = 20_000
ROUNDS = 3
TILE_ROWS = (128, 512, 2048)


def tiles(queries, keys, values, n_rows, scores_of):
    """Gaussian averages by blocks of queries, as one writes them in torch by hand."""
    averages = []
    for block in queries.split(n_rows):
        scores = scores_of(block, keys)
        scores -= scores.amax(1, keepdim=True)
        weights = scores.clamp_min_(-80).exp_()
        averages.append(weights @ values / weights.sum(1, keepdim=True))
    return torch.cat(averages)


def distance_scores(block, keys):
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(block, keys, compute_mode=mode).square_().mul_(-0.5)


def product_scores(block, keys):
    return torch.addmm(-0.5 * keys.square().sum(1), block, keys.T)


SCORES = {"torch tiles": distance_scores, "product tiles": product_scores}


def keops(queries, keys, values):
    """Gaussian averages by KeOps' soft-max reduction."""
    from pykeops.torch import LazyTensor

    q, k, v = LazyTensor(queries[:, None]), LazyTensor(keys[None]), LazyTensor(values[None])
    return (-((q - k) ** 2).sum(-1) / 2).sumsoftmaxweight(v, dim=1)


def keops_works():
    """True if KeOps is installed and finds a compiler."""
    x = torch.ones(2, 1)
    # What is printed is the page.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            import pykeops

            pykeops.set_verbose(False)
            return keops(x, x, x).shape == (2, 1)
        except Exception as error:  # whatever a compiler may do
            print(f"KeOps left out: {type(error).__name__}: {error}")
            return False


def seconds(functions, rounds=ROUNDS):
    """Best time of each function; they take turns."""
    best = dict.fromkeys(functions, np.inf)
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.process_time()
            function()
            best[name] = min(best[name], time.process_time() - start)
    return best


def make_data(n, d, dtype=np.float32):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, width)).astype(dtype) for width in (d, d, 1)]


def compare(d, with_keops):
    """One row of the table."""
    queries, keys, values = make_data(N, d)
    q, k, v = map(torch.from_numpy, (queries, keys, values))
    functions = {"ours": lambda: attend(queries, keys, values, bandwidth=1.0)[0]}
    for name, n_rows in product(SCORES, TILE_ROWS):
        functions[name, n_rows] = partial(tiles, q, k, v, n_rows, SCORES[name])
    if with_keops:
        functions["keops"] = lambda: keops(q, k, v)
    exact = attend(*(x.astype(float) for x in (queries[:500], keys, values)))[0]
    errors = {name: abs(np.asarray(f())[:500] - exact).max() for name, f in functions.items()}
    best = seconds(functions)
    row = [f"{d}", f"{best['ours']:.2f}", f"{N**2 / best['ours'] / 1e9:.2f}"]
    row.append(f"{errors['ours']:.0e}")
    peers = [min(best[name, n_rows] for n_rows in TILE_ROWS) for name in SCORES]
    peers += [best["keops"]] if with_keops else []
    for peer in peers:
        row += [f"{peer:.2f}", f"{peer / best['ours']:.1f}"]
    return row + ["–", "–"] * (not with_keops)


def growth():
    """Seconds per pair for growing n = m, relative to the first."""
    sizes = (10_000, 20_000, 40_000)
    functions = {}
    for n in sizes:
        data = make_data(n, 8)
        functions[n] = lambda data=data: attend(*data)
    best = seconds(functions)
    return [(n, best[n] / n**2 / (best[sizes[0]] / sizes[0] ** 2)) for n in sizes]


def peak_memory(n=200_000, d=8):
    """Megabytes above the import at n = m, and seconds, in a process of its own."""
    megabytes, elapsed = numbers_printed_by("attend", "measure_memory", n, d)
    return megabytes, elapsed


def numbers_printed_by(script, function, *args):
    """Numbers that a function of another script here prints in a process of its own."""
    program = (
        f"import sys; sys.path.insert(0, {sys.path[0]!r})\n"
        f"import {script}\n"
        f"{script}.{function}(*{args!r})\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return list(map(float, run.stdout.split()))


def measure_memory(n, d):
    """Print what `peak_memory` reads."""
    attend(*make_data(10, d))
    before = process_memory("VmRSS")
    start = time.process_time()
    attend(*make_data(n, d))
    elapsed = time.process_time() - start
    print(process_memory("VmHWM") - before, elapsed)


def process_memory(field):
    """Megabytes of this process, now (VmRSS) or at its peak (VmHWM), from Linux."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(field))
    return int(line.split()[1]) / 1024


def report():
    with_keops = keops_works()
    lines = [
        f"# Exact Gaussian averages of {N // 1000} 000 values at as many queries, float32",
        "",
        f"{stamp('torch', 'pykeops')} “error” is the largest difference to the result in "
        "float64. “× ours” divides a peer's seconds by ours.",
        "",
        "| d | ours (s) | 10⁹ pairs/s | error | torch tiles (s) | × ours "
        "| product tiles (s) | × ours | KeOps (s) | × ours |",
        "|" + "---|" * 10,
    ]
    lines += ["| " + " | ".join(compare(d, with_keops)) + " |" for d in (1, 8, 64)]
    megabytes, elapsed = peak_memory()
    relative = ", ".join(f"{n // 1000} 000: {ratio:.2f}" for n, ratio in growth())
    lines += [
        "",
        f"With 200 000 queries and keys of 8 features, an average takes {elapsed:.0f} s and "
        f"{megabytes:.0f} MB beyond the import.",
        "",
        f"Time per pair with 8 features, relative to 10 000 queries and keys: {relative}.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments = parser.parse_args()
    text = report()
    print(text)
