"""The network of a forecaster: what it learns from, and how it is asked."""

import torch

from ..training import threads_of_pass

# Windows that are answered at once.
_BLOCK = 2048


def squared_error(origins, base, scaling):
    """The loss of a network that learns what a base leaves of what followed.

    Parameters
    ----------
    origins : Origins
    base : ndarray of shape (n_origins, horizon)
        Forecasts that the network adds to.
    scaling : Scaling
        In which units the network sees windows.

    Returns
    -------
    batch_loss : callable
        As for :func:`~sklearn_attention.training.train`.
    """

    def batch_loss(network, rows):
        numbers = rows.cpu().numpy()
        batch = origins.take(numbers)
        aim = (batch.targets() - base[numbers]) / scaling.units(batch)[1]
        aim = torch.from_numpy(aim).to(rows.device, torch.float32)
        return (network(*_inputs(scaling, batch, rows.device))[0] - aim).square().mean()

    return batch_loss


@torch.no_grad()
def ask_network(network, scaling, origins, *, need_weights=False):
    """What a network says of windows.

    Parameters
    ----------
    network : ForecastNetwork
        In evaluation mode, on the device to compute on.
    scaling : Scaling
    origins : Origins
    need_weights : bool, default=False
        Whether to return the weights of the attention in place of the forecasts.

    Returns
    -------
    found : ndarray of shape (n_origins, horizon) or (n_origins, n_layers, n_heads, \
n_tokens, n_tokens)
        In the units of the network.
    """
    device = next(network.parameters()).device
    found = []
    with threads_of_pass(network, len(origins) * network.n_tokens):
        for rows in torch.arange(len(origins)).split(_BLOCK):
            inputs = _inputs(scaling, origins.take(rows.numpy()), device)
            forecasts, maps = network(*inputs, need_weights=need_weights)
            found.append(torch.stack(maps, dim=1) if need_weights else forecasts)
    return torch.cat(found).double().cpu().numpy()


def _inputs(scaling, origins, device):
    parts = scaling.inputs(origins)
    return [None if x is None else torch.from_numpy(x).to(device) for x in parts]
