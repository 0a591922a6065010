"""The network that attends over candidate forecasts, and its training."""

import numpy as np
import torch
from torch import nn

from ..training import train as train_network
from ..training._network import torch_seed
from ..training._training import Training

# On seven panels errors with a network of 150 steps are .990 of those with fixed weights; with
# 300 steps they are the same, with two networks of 600 steps .987, in four times the seconds.
_WIDTH, _STEPS, _BATCH, _RATE = 64, 150, 256, 2e-3


class CandidateNetwork(nn.Module):
    """Weights of candidate forecasts and a correction, from a window and the candidates."""

    def __init__(self, n_inputs, n_candidates, horizon):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_inputs, _WIDTH), nn.GELU(), nn.Linear(_WIDTH, _WIDTH), nn.GELU()
        )
        self.logits = nn.Linear(_WIDTH, n_candidates * horizon)
        self.correction = nn.Linear(_WIDTH, horizon)
        # Training begins at equal weights, without correction.
        for layer in (self.logits, self.correction):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, columns, candidates):
        """Forecasts relative to the origin, (B, horizon), in units of the series.

        `columns` (B, n_inputs) are from :func:`_tensors`.
        """
        hidden = self.body(columns)
        weights = torch.softmax(self.logits(hidden).view(candidates.shape), dim=1)
        return (weights * candidates).sum(dim=1) + self.correction(hidden)


def train(inputs, learned, series, logs, seed):
    """Weights of a network trained on origins of many series, dict of str to ndarray."""
    # `learned` (n_origins, horizon) are the targets. A series with many origins counts as the
    # root of them; where they are logarithms, errors count in the units of these.
    learned = learned & ~np.isnan(inputs.targets)
    rows = np.flatnonzero(learned.any(axis=1))
    chance = 1 / np.sqrt(np.bincount(series[rows])[series[rows]])
    importance = _tensor(learned * (np.sqrt(inputs.unit) if logs else 1.0))
    targets = _tensor(np.nan_to_num(inputs.targets))
    columns, candidates = _tensors(inputs)
    draws = np.random.default_rng(seed)
    draws = draws.choice(rows, size=_STEPS * _BATCH, p=chance / chance.sum())
    draws = torch.from_numpy(draws)

    def loss(network, batch):
        own = draws[batch]
        missed = network(columns[own], candidates[own]) - targets[own]
        counted = importance[own]
        return (missed.abs() * counted).sum() / (counted > 0).sum()

    network = _build(inputs, seed)
    plan = Training(
        optimizer="adam", learning_rate=_RATE, warm_up=0.3, weight_decay=0.0, clip_norm=None,
        batch_size=_BATCH, max_epochs=1,
    )  # fmt: skip
    history = train_network(network, loss, len(draws), plan, random_state=seed)
    if history.stopped == "interrupted":
        raise KeyboardInterrupt  # it is meant for the whole fit
    return {name: value.numpy() for name, value in network.state_dict().items()}


@torch.no_grad()
def apply(weights, inputs):
    """Forecasts of a network, (n_origins, horizon), in the units of the series."""
    network = _build(inputs, seed=0)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    found = network(*_tensors(inputs)).double().numpy()
    return found * inputs.unit + inputs.level


def _build(inputs, seed):
    n_inputs = inputs.past.shape[1] + inputs.statistics.shape[1]
    _, n_candidates, horizon = inputs.candidates.shape
    with torch_seed(seed):
        return CandidateNetwork(n_inputs + n_candidates * horizon, n_candidates, horizon)


def _tensors(inputs):
    """Columns (n_origins, n_inputs) that the network reads, and the candidates it weighs."""
    past, candidates = (np.float32(array) for array in (inputs.past, inputs.candidates))
    # NumPy's asinh takes a twentieth of the time that torch's takes.
    parts = np.arcsinh(past), np.arcsinh(candidates).reshape(len(past), -1), inputs.statistics
    return _tensor(np.concatenate(parts, axis=1)), _tensor(candidates)


def _tensor(array):
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
