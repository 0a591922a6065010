"""The network of a forecaster: built, trained, and asked."""

import hashlib

import numpy as np
import torch

from ..attention import resolve_device, torch_threads
from ..training import batch_sizes, torch_seed, train
from ._network import ForecastNetwork

# Windows that are answered at once.
_BLOCK = 2048
# Multiplications in one pass below which waiting for threads costs more than they save.
_WORK_OF_A_THREAD = 10**9


def build_network(shape, seed):
    """A network with starting weights drawn from a seed.

    Parameters
    ----------
    shape : dict
        Arguments of :class:`ForecastNetwork`.
    seed : int

    Returns
    -------
    network : ForecastNetwork
    """
    with torch_seed(seed):
        return ForecastNetwork(**shape)


def learn_network(
    windows, base, scaling, shape, plan, *, seed, device, start, checkpoint, task
):
    """Train a network on what a base leaves of windows.

    Parameters
    ----------
    windows : Windows
    base : callable
        ``base(batch)`` returns forecasts (n_windows, horizon), which the network adds to.
    scaling : Scaling
        In which units the network sees windows.
    shape : dict
        Arguments of :class:`ForecastNetwork`.
    plan : Plan
    seed : int
    device : str
    start : dict of str to ndarray or None
        Weights to start from; None draws them.
    checkpoint : str or None
        As for :func:`~sklearn_attention.training.train`.
    task : EpochTasks

    Returns
    -------
    weights : dict of str to ndarray
    history : History
    """
    device = resolve_device(device)
    network = build_network(shape, seed)
    if start is not None:
        load_weights(network, start)
    network.to(device)

    def batch_loss(network, rows):
        batch = windows.batch(rows.cpu().numpy())
        aim = torch.from_numpy(scaling.targets(batch, base(batch))).to(device)
        return (network(*_inputs(scaling, batch, device))[0] - aim).square().mean()

    key = ""
    if checkpoint is not None:
        digest = hashlib.sha256(repr((shape, sorted(scaling._asdict().items()))).encode())
        for part in windows.arrays():
            digest.update(np.ascontiguousarray(part).tobytes())
        key = digest.hexdigest()
    history = train(
        network, batch_loss, len(windows), plan, random_state=seed,
        task=task, checkpoint=checkpoint, checkpoint_key=key,
        threads=_threads(network, max(map(max, batch_sizes(plan, len(windows))))),
    )  # fmt: skip
    weights = {name: value.cpu().numpy() for name, value in network.state_dict().items()}
    return weights, history


def load_weights(network, weights):
    """Give a network the weights in arrays.

    Parameters
    ----------
    network : torch.nn.Module
    weights : dict of str to ndarray
    """
    network.load_state_dict({name: torch.as_tensor(value) for name, value in weights.items()})


@torch.no_grad()
def ask_network(network, scaling, batch, *, need_weights=False):
    """What a network says of windows.

    Parameters
    ----------
    network : ForecastNetwork
        In evaluation mode, on the device to compute on.
    scaling : Scaling
    batch : WindowBatch
    need_weights : bool, default=False
        Whether to return the weights of the attention in place of the answers.

    Returns
    -------
    answers : ndarray of shape (n_windows, horizon) or (n_windows, n_layers, n_heads, \
n_tokens, n_tokens)
        In the units of the network.
    """
    device = next(network.parameters()).device
    inputs = _inputs(scaling, batch, device)
    found = []
    with torch_threads(_threads(network, len(batch.past)) or torch.get_num_threads()):
        for rows in torch.arange(len(batch.past)).split(_BLOCK):
            part = [None if x is None else x[rows] for x in inputs]
            forecasts, maps = network(*part, need_weights=need_weights)
            found.append(torch.stack(maps, dim=1) if need_weights else forecasts)
    return torch.cat(found).double().cpu().numpy()


def _threads(network, n_windows):
    """How many threads a pass through the network is worth; None for all there are."""
    tokens = network.n_tokens * n_windows
    work = tokens * sum(parameter.numel() for parameter in network.encoder.parameters())
    return 1 if work < _WORK_OF_A_THREAD else None


def _inputs(scaling, batch, device):
    parts = scaling.inputs(batch)
    return [None if x is None else torch.from_numpy(x).to(device) for x in parts]
