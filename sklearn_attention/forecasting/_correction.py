"""The network of a forecaster: what it learns from, and how it is asked."""

import torch

from ..training import threads_of_pass

# Windows that are answered at once.
_BLOCK = 2048


def squared_error(windows, base, scaling):
    """The loss of a network that learns what a base leaves of windows.

    Parameters
    ----------
    windows : Windows
    base : callable
        ``base(batch)`` returns forecasts (n_windows, horizon), which the network adds to.
    scaling : Scaling
        In which units the network sees windows.

    Returns
    -------
    batch_loss : callable
        As for :func:`~sklearn_attention.training.train`.
    """

    def batch_loss(network, rows):
        batch = windows.batch(rows.cpu().numpy())
        aim = torch.from_numpy(scaling.targets(batch, base(batch))).to(rows.device)
        return (network(*_inputs(scaling, batch, rows.device))[0] - aim).square().mean()

    return batch_loss


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
    with threads_of_pass(network, len(batch.past) * network.n_tokens):
        for rows in torch.arange(len(batch.past)).split(_BLOCK):
            part = [None if x is None else x[rows] for x in inputs]
            forecasts, maps = network(*part, need_weights=need_weights)
            found.append(torch.stack(maps, dim=1) if need_weights else forecasts)
    return torch.cat(found).double().cpu().numpy()


def _inputs(scaling, batch, device):
    parts = scaling.inputs(batch)
    return [None if x is None else torch.from_numpy(x).to(device) for x in parts]
