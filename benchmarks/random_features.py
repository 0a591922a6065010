"""Attention by random features against torch's exact fused attention, in the same run.

    python benchmarks/random_features.py [--save FILE]

How many features give a median relative error of 5 %, what time they take on 16 384 steps,
and from which length on they would be faster than the exact average. Features do not look at
pairs, so they were expected to be much faster at that length; what is open is the error. It
depends on how long queries and keys are, which shows in the spread of the logits: tokens are
random, 512 wide and layer-normed, and pass through random projections, which give logits of
standard deviation 1, as in a layer that has not been trained; shorter queries and keys give
less.

* error: median over 256 queries of the length of the difference, divided by the length of the
  exact average. Values are a third projection of the same tokens. The mean over two draws of
  the directions.
* features for 5 %: from the error at the largest number, as if it fell with the root of the
  number from there on. An error above 50 % is not yet on that line, and gives none.
* times: one head in float32, without gradients. Seconds of the processor, which other work on
  the machine does not change much; set OMP_NUM_THREADS=1, so that waiting threads do not count.
  Ways take turns, and the median of the rounds counts. Times for other numbers of features by
  a line through those measured.
"""

import argparse
import math
import platform
import statistics
import time
from functools import partial

import numpy as np
import torch
from torch.nn.functional import layer_norm, scaled_dot_product_attention

from sklearn_attention.kernels import PositiveFeatures, TrigonometricFeatures
from sklearn_attention.nn import attention

N_STEPS = 16_384
WIDTH = 512
N_QUERIES = 256
HEAD_DIMS = (32, 64)
SPREADS = (1.0, 0.5, 0.25, 0.1)
SIZES = (64, 256, 1024)
KINDS = {"positive": PositiveFeatures, "trigonometric": TrigonometricFeatures}
TARGET = 0.05
ROUNDS = 3
DRAWS = 2


def make_heads(head_dim, spread, seed=0):
    """Queries, keys and values, (1, 1, N_STEPS, head_dim), and the spread of the logits."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randn(N_STEPS, WIDTH, generator=generator)
    tokens = layer_norm(tokens, (WIDTH,))
    heads = [
        (tokens @ torch.randn(WIDTH, head_dim, generator=generator) / math.sqrt(WIDTH))[
            None, None
        ]
        for _ in range(3)
    ]
    return [x * math.sqrt(spread) for x in heads[:2]] + heads[2:]


def errors(kind, head_dim, spread, causal):
    """Median relative error for each number of features."""
    queries, keys, values = make_heads(head_dim, spread)
    # The last steps of a causal sequence, which see all others, are 256 queries of all keys.
    asked = slice(-N_QUERIES, None) if causal else slice(0, N_QUERIES)
    exact = scaled_dot_product_attention(queries, keys, values, is_causal=causal)[:, :, asked]
    found = []
    for size in SIZES:
        draws = []
        for seed in range(DRAWS):
            kernel = kind(size, random_state=seed)
            if causal:
                average, _ = attention(queries, keys, values, kernel, causal=True)
                average = average[:, :, asked]
            else:
                average, _ = attention(queries[:, :, asked], keys, values, kernel)
            relative = (average - exact).norm(dim=-1) / exact.norm(dim=-1)
            draws.append(relative.median().item())
        found.append(statistics.mean(draws))
    return found


def features_needed(found):
    """How many features would reach the target: the error falls with the root of the number."""
    return SIZES[-1] * (found[-1] / TARGET) ** 2 if found[-1] < 0.5 else math.inf


def seconds(head_dim):
    """Median times, by way and causality; all take turns."""
    heads = make_heads(head_dim, 1.0)
    ways = {}
    for causal in (False, True):
        ways["exact", causal] = partial(scaled_dot_product_attention, *heads, is_causal=causal)
        for (name, kind), size in ((k, s) for k in KINDS.items() for s in SIZES):
            ways[name, size, causal] = partial(attention, *heads, kind(size), causal=causal)
    taken = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, run in ways.items():
            start = time.process_time()
            run()
            taken[way].append(time.process_time() - start)
    return {way: statistics.median(times) for way, times in taken.items()}


def time_table(times, head_dim):
    for causal in (False, True):
        exact = times["exact", causal]
        cells = [f"{head_dim}", "yes" if causal else "no", f"{exact:.2f}"]
        for name in KINDS:
            for size in SIZES:
                taken = times[name, size, causal]
                cells.append(f"{taken:.2f} ({exact / taken:.1f})")
        yield "| " + " | ".join(cells) + " |"


def time_at(times, name, causal, n_features):
    slope, level = np.polyfit(SIZES, [times[name, size, causal] for size in SIZES], 1)
    return level + slope * n_features


def error_rows(times, head_dim):
    for spread in SPREADS:
        for name, kind in KINDS.items():
            found = errors(kind, head_dim, spread, causal=False)
            needed = features_needed(found)
            cells = [f"{head_dim}", f"{spread:g}", name, *(f"{100 * e:.0f} %" for e in found)]
            if math.isinf(needed):
                cells += ["–"] * 5
            else:
                cells.append(f"{needed:,.0f}".replace(",", " "))
                for causal in (False, True):
                    ratio = times["exact", causal] / time_at(times, name, causal, needed)
                    # Exact time grows with the square of the length, that of features with it.
                    even = f"{N_STEPS / ratio:,.0f}".replace(",", " ")
                    cells += [f"{ratio:.2g}", even]
            yield "| " + " | ".join(cells) + " |"


def causal_errors(head_dim, spread):
    for name, kind in KINDS.items():
        found = errors(kind, head_dim, spread, causal=True)
        yield f"{name} " + ", ".join(f"{100 * e:.0f} %" for e in found)


def processor():
    """Name of the processor, where Linux tells it."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":")[1].strip() for line in file if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def report():
    times = {head_dim: seconds(head_dim) for head_dim in HEAD_DIMS}
    sizes = " | ".join(f"{name} {size}" for name in KINDS for size in SIZES)
    lines = [
        f"# Attention over {N_STEPS} steps: random features and exact",
        "",
        f"{processor()}, {torch.get_num_threads()} threads, torch {torch.__version__}.",
        "",
        "Processor seconds of one head, and in brackets how many times faster than exact:",
        "",
        f"| head_dim | causal | exact | {sizes} |",
        "|" + "---|" * (3 + len(KINDS) * len(SIZES)),
    ]
    for head_dim in HEAD_DIMS:
        lines += time_table(times[head_dim], head_dim)
    lines += [
        "",
        "Error by number of features, the number for 5 %, and there how many times faster than "
        "exact and from which length on faster, without and with a causal mask:",
        "",
        "| head_dim | spread of logits | features | "
        + " | ".join(f"error at {size}" for size in SIZES)
        + " | number for 5 % | × exact | breaks even at | × exact, causal | breaks even at |",
        "|" + "---|" * (3 + len(SIZES) + 5),
    ]
    for head_dim in HEAD_DIMS:
        lines += error_rows(times[head_dim], head_dim)
    lines += [
        "",
        f"Causal, head_dim 32, spread 0.5, the last {N_QUERIES} steps: "
        + "; ".join(causal_errors(32, 0.5))
        + f" at {', '.join(map(str, SIZES))} features.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", metavar="FILE", help="also write the table to this file")
    arguments = parser.parse_args()
    with torch.inference_mode():
        text = report()
    print(text)
    if arguments.save:
        with open(arguments.save, "w") as file:
            file.write(text + "\n")
