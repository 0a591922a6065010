"""Attention by random features against torch's exact fused attention, in the same run.

    python benchmarks/random_features.py [--data FOLDER]

Errors of random features and their time on 16 384 steps. Features need no pairs, so they were
expected to be much faster at that length; the open question was the error. It depends on
the norms of queries and keys, and so on the spread of the logits: tokens are random, 512 wide
and layer-normed, and pass through random projections, which give logits of standard deviation
1, as in an untrained layer; smaller norms give less. "Adapted" are positive features with
directions adapted to 1024 of the steps (`PositiveFeatures.adapt`).

The heads of a layer that has been trained have entries of different sizes and a center other
than 0. The last table takes them from a small language model of Tiny Shakespeare (200 steps; 4
layers of 4 heads, 256 characters), adapts to one part of the text held out, head by head, and
measures on another. The data lie beside the repository, or where SKLEARN_ATTENTION_DATA says.

* error: median over 256 queries of the norm of the difference, divided by the norm of the exact
  average. Values are a third projection of the same tokens. The mean over two draws of the
  directions.
* times: one head in float32, without gradients. Seconds of the processor, which depend little
  on other work on the machine; set OMP_NUM_THREADS=1, so that waiting threads do not count.
  Methods take turns, and the median of the rounds counts.
"""

import argparse
import gzip
import math
import os
import statistics
import time
from functools import partial
from pathlib import Path
from unittest import mock

import torch
from _results import stamp
from torch.nn.functional import layer_norm, scaled_dot_product_attention

from sklearn_attention import Training, TransformerLanguageModel
from sklearn_attention.kernels import PositiveFeatures, TrigonometricFeatures
from sklearn_attention.nn import _transformer, attention

N_STEPS = 16_384
WIDTH = 512
N_QUERIES = 256
HEAD_DIMS = (32, 64)
SPREADS = (1.0, 0.5, 0.25, 0.1)
SIZES = (64, 256, 1024)
KINDS = ("positive", "adapted", "trigonometric")
N_TYPICAL = 1024
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


def make_kernel(name, size, seed, queries, keys):
    """Features of one kind; adapted ones suit the queries and keys that are given."""
    if name == "trigonometric":
        return TrigonometricFeatures(size, random_state=seed)
    kernel = PositiveFeatures(size, random_state=seed)
    return kernel.adapt(queries, keys) if name == "adapted" else kernel


def errors(name, head_dim, spread):
    """Median relative error for each number of features."""
    queries, keys, values = make_heads(head_dim, spread)
    asked = slice(0, N_QUERIES)
    exact = scaled_dot_product_attention(queries, keys, values)[:, :, asked]
    typical = [x[:, :, N_STEPS // 2 :][:, :, :N_TYPICAL] for x in (queries, keys)]
    found = []
    for size in SIZES:
        draws = []
        for seed in range(DRAWS):
            kernel = make_kernel(name, size, seed, *typical)
            average, _ = attention(queries[:, :, asked], keys, values, kernel)
            relative = (average - exact).norm(dim=-1) / exact.norm(dim=-1)
            draws.append(relative.median().item())
        found.append(statistics.mean(draws))
    return found


def seconds(head_dim):
    """Median times, by way and causality; all take turns."""
    heads = make_heads(head_dim, 1.0)
    ways = {}
    for causal in (False, True):
        ways["exact", causal] = partial(scaled_dot_product_attention, *heads, is_causal=causal)
        for name, size in ((k, s) for k in KINDS for s in SIZES):
            kernel = make_kernel(name, size, 0, *heads[:2])
            ways[name, size, causal] = partial(attention, *heads, kernel, causal=causal)
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


def error_rows(head_dim):
    for spread in SPREADS:
        for name in KINDS:
            found = errors(name, head_dim, spread)
            cells = [f"{head_dim}", f"{spread:g}", name, *(f"{100 * e:.0f} %" for e in found)]
            yield "| " + " | ".join(cells) + " |"


def trained_heads(text):
    """Queries, keys and values of each layer of a language model, for two parts of the text."""
    training = Training(max_steps=200, validation_fraction=None)
    model = TransformerLanguageModel(
        max_length=256, batch_size=4, training=training, device="cpu"
    )
    with torch.inference_mode(False):
        model.fit([text[:500_000]])
    parts = []
    for start in (600_000, 700_000):
        with mock.patch.object(_transformer, "attention", wraps=attention) as layers:
            model.score([text[start : start + 2048]])
        parts.append([call.args[:3] for call in layers.call_args_list])
    return parts


def trained_rows(text):
    """Errors of causal attention in trained heads, from the 128th step on."""
    seen, reported = trained_heads(text)
    asked = slice(128, None)
    for name in KINDS:
        cells = []
        for size in SIZES:
            found = []
            for (q, k, _), heads in zip(seen, reported, strict=True):
                exact = scaled_dot_product_attention(*heads, is_causal=True)[:, :, asked]
                for seed in range(DRAWS):
                    kernel = make_kernel(name, size, seed, q, k)
                    average = attention(*heads, kernel, causal=True)[0][:, :, asked]
                    relative = (average - exact).norm(dim=-1) / exact.norm(dim=-1)
                    found += relative.transpose(0, 1).flatten(1).median(dim=1).values.tolist()
            cells.append(f"{100 * statistics.median(found):.1f} % ({100 * max(found):.0f} %)")
        yield f"| {name} | " + " | ".join(cells) + " |"


def report(text):
    times = {head_dim: seconds(head_dim) for head_dim in HEAD_DIMS}
    sizes = " | ".join(f"{name} {size}" for name in KINDS for size in SIZES)
    lines = [
        f"# Attention over {N_STEPS} steps: random features and exact",
        "",
        stamp("torch"),
        "",
        "Processor seconds of one head and, in brackets, how many times faster that is than "
        "exact attention:",
        "",
        f"| head_dim | causal | exact | {sizes} |",
        "|" + "---|" * (3 + len(KINDS) * len(SIZES)),
    ]
    for head_dim in HEAD_DIMS:
        lines += time_table(times[head_dim], head_dim)
    lines += [
        "",
        "Relative error of the attention output, by the number of random features:",
        "",
        "| head_dim | spread of logits | features | "
        + " | ".join(f"error at {size}" for size in SIZES)
        + " |",
        "|" + "---|" * (3 + len(SIZES)),
    ]
    for head_dim in HEAD_DIMS:
        lines += error_rows(head_dim)
    lines += [
        "",
        "Relative error for the heads of a trained language model (head_dim 32, causal): the "
        "median over the heads and, in brackets, the worst head:",
        "",
        "| features | " + " | ".join(f"error at {size}" for size in SIZES) + " |",
        "|" + "---|" * (1 + len(SIZES)),
        *trained_rows(text),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("SKLEARN_ATTENTION_DATA", beside)
    )
    arguments = parser.parse_args()
    with gzip.open(Path(arguments.data) / "text" / "tinyshakespeare.txt.gz", "rt") as file:
        shakespeare = file.read()
    with torch.inference_mode():
        text = report(shakespeare)
    print(text)
