"""Three periodic series, forecast 200 steps ahead: a published comparison, run again.

    python benchmarks/periodic.py [--seeds 0,1] [--models A,B] [--paper-seeds 0]

A report on transformers trains on the first 1000 steps of a sine, a growing sine and a square
wave, and forecasts the next 200 from its own forecasts; `make_periodic_series` has the series.
Compared are

* free: the transformer alone (`candidates=None`), windows of 400 steps in patches of 8, 50
  steps forecast at once, so that 200 take four rounds;
* lookback 99: the same with the published windows;
* published network: two post-norm layers with two heads, 128 wide, a token for each step,
  encodings added, one step forecast at a time, Adam at a constant rate, batches of 512,
  100 epochs; trained by our loop.

Printed are mean squared errors over the 200 steps, mean and largest over seeds, and seconds of
a fit, and of the published network as a multiple. Then the time of a training step of the
published network, against the same built of `torch.nn.TransformerEncoder`, in single precision
and with bfloat16 autocast.

Expected: errors far below the published ones on the smooth series. On the square wave one edge
a step too early or too late costs 0.02. All of it takes half an hour on one core, most of it
for the published network.
"""

import argparse
import os
import time

import numpy as np
import torch
from attend import processor
from torch import nn

from sklearn_attention import Architecture, Training, TransformerForecaster
from sklearn_attention.datasets import make_periodic_series
from sklearn_attention.forecasting._network import ForecastNetwork

SERIES = ("sine", "growing_sine", "square")
PUBLISHED = {"sine": 0.0050, "growing_sine": 0.0085, "square": 0.0243}
PAPER = {
    "horizon": 1,
    "lookback": 99,
    "candidates": None,
    "d_model": 128,
    "n_heads": 2,
    "n_layers": 2,
    "architecture": Architecture(
        patch_length=1, norm="post", activation="relu", instance_norm=None
    ),
    "training": Training(optimizer="adam", schedule="constant", weight_decay=0.0),
    "learning_rate": 1e-3,
    "batch_size": 512,
    "max_epochs": 100,
}
FREE = {"horizon": 50, "lookback": 400, "candidates": None}
MODELS = {
    "free": FREE,
    "lookback 99": FREE | {"lookback": 99},
    "published network": PAPER,
}
N_TRAIN, N_AHEAD = 1000, 200
STEP_BATCH, STEPS = 64, 5


def measure(model, name, seed):
    """Mean squared error and seconds of a fit."""
    series = make_periodic_series(name, N_TRAIN + N_AHEAD)
    past, future = series[:N_TRAIN], series[N_TRAIN:]
    forecaster = TransformerForecaster(**MODELS[model], random_state=seed)
    start = time.perf_counter()
    forecaster.fit(past)
    seconds = time.perf_counter() - start
    return np.mean((forecaster.predict(N_AHEAD) - future) ** 2), seconds


class TorchNetwork(nn.Module):
    """The published network of torch's own layers."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(1, 128)
        layer = nn.TransformerEncoderLayer(128, 2, 512, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(99 * 128, 1)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x[..., None])).flatten(1))


def our_network():
    return ForecastNetwork(
        99, 1, 0, 0, patch_length=1, d_model=128, n_heads=2, n_layers=2, d_feedforward=512,
        positions="sinusoidal", d_position=None, center=None, relative=False, norm="post",
        activation="relu",
    )  # fmt: skip


def step_seconds():
    """Median seconds of a training step: torch's layers and ours, without and with autocast."""
    networks = {"torch": TorchNetwork(), "ours": our_network()}
    x, y = torch.randn(STEP_BATCH, 99), torch.randn(STEP_BATCH, 1)
    taken = {(name, half): [] for half in (False, True) for name in networks}
    optimizers = {
        name: torch.optim.Adam(network.parameters(), fused=True)
        for name, network in networks.items()
    }
    for _ in range(STEPS + 1):
        for name, half in taken:
            start = time.perf_counter()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
                found = networks[name](x)
                found = found[0] if name == "ours" else found
                loss = (found - y).square().mean()
            optimizers[name].zero_grad()
            loss.backward()
            optimizers[name].step()
            taken[name, half].append(time.perf_counter() - start)
    return {key: np.median(values[1:]) for key, values in taken.items()}


def report(options):
    print(f"{processor()}, {os.cpu_count()} processors, torch {torch.__version__}\n")
    header = ["model", *(f"{name} (worst)" for name in SERIES), "seconds"]
    lines = [header, ["---"] * len(header)]
    lines.append(["published", *(f"{PUBLISHED[name]:.4f}" for name in SERIES), ""])
    seconds = {}
    for model in options.models:
        cells, taken = [], []
        seeds = options.paper_seeds if model == "published network" else options.seeds
        for name in SERIES:
            found = [measure(model, name, seed) for seed in seeds]
            errors = [error for error, _ in found]
            cells.append(f"{np.mean(errors):.2g} ({max(errors):.2g})")
            taken += [s for _, s in found]
        seconds[model] = np.median(taken)
        lines.append([f"{model}, {len(seeds)} seeds", *cells, f"{seconds[model]:.1f}"])
    for line in lines:
        print("| " + " | ".join(line) + " |")
    if "published network" in seconds:
        theirs = seconds.pop("published network")
        for model, value in seconds.items():
            ratio = theirs / value
            print(f"\nThe published network takes {ratio:.1f} times as long as {model}.")
    steps = step_seconds()
    print("\nA training step of the published network, batches of 64, milliseconds:\n")
    print("| | torch | ours | ratio |\n| --- | --- | --- | --- |")
    for half, label in ((False, "float32"), (True, "bfloat16 autocast")):
        torchs, ours = steps["torch", half], steps["ours", half]
        print(f"| {label} | {1e3 * torchs:.0f} | {1e3 * ours:.0f} | {ours / torchs:.2f} |")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0,1,2,3,4", help="default 0,1,2,3,4")
    parser.add_argument("--paper-seeds", default="0", help="of the published network")
    parser.add_argument("--models", default=",".join(MODELS), help="some of them")
    options = parser.parse_args()
    options.seeds = [int(seed) for seed in options.seeds.split(",")]
    options.paper_seeds = [int(seed) for seed in options.paper_seeds.split(",")]
    options.models = options.models.split(",")
    if unknown := set(options.models) - set(MODELS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    report(parse())
