"""The transformer of a forecaster: network, loss, outputs and weights.

B is the number of windows in a batch. In this module

* `units` (n_origins, 2) are the level and the unit, mean and standard deviation, of the series
  at each origin;
* `scaling` is a `Scaling`, which has the lookback, and mean and standard deviation of each
  feature;
* inputs of the network are (value - level) / unit and (feature - mean) / standard deviation;
* its targets, and so its outputs, are (value - base) / unit. The base is another forecast, or
  the level.
"""

import torch
from torch import nn

from ..nn import Patches, TokenEncoder
from ..nn._random import initialize
from ..training._network import use_best_threads

# Outputs are computed for 2048 windows at once.
_BLOCK = 2048


class ForecastNetwork(nn.Module):
    """Encoder of the patches of a window, and a linear map from all of them to the horizon.

    Parameters
    ----------
    lookback, horizon : int
        Steps of the window and of the forecast.
    n_past, n_future : int
        Number of features in the window, and of those known in the horizon.
    patch_length : int
        Steps of a patch. Tokens are patches of the window with its features, and patches of the
        features of the horizon.
    d_model : int
    center : "mean", "last" or None
        What is subtracted from a window before it is divided by its standard deviation; None
        for unchanged windows.
    relative : bool
        Whether outputs are differences from a base, to which the center is not added.
    **shape
        Arguments of TokenEncoder.
    """

    def __init__(
        self,
        lookback,
        horizon,
        n_past,
        n_future,
        *,
        patch_length,
        d_model,
        center,
        relative,
        **shape,
    ):
        super().__init__()
        self.center, self.relative = center, relative
        self.patches = Patches(patch_length)
        self.n_tokens = self.patches.n_patches(lookback)
        self.embed = nn.Linear(patch_length * (1 + n_past), d_model)
        self.embed_future = None
        if n_future:
            self.n_tokens += self.patches.n_patches(horizon)
            self.embed_future = nn.Linear(patch_length * n_future, d_model)
        self.encoder = TokenEncoder(d_model, max_length=self.n_tokens, **shape)
        self.head = nn.Linear(self.encoder.width * self.n_tokens, horizon)
        initialize(self)

    def forward(self, past, past_features=None, future_features=None, *, need_weights=False):
        """Compute the outputs of windows.

        Parameters
        ----------
        past : Tensor of shape (B, lookback)
        past_features : Tensor of shape (B, lookback, n_past), default=None
        future_features : Tensor of shape (B, horizon, n_future), default=None
        need_weights : bool, default=False

        Returns
        -------
        outputs : Tensor of shape (B, horizon)
        weights : list of Tensor or None
            Weights of each layer's attention, if they are needed.
        """
        x = past[..., None]  # (B, lookback, 1)
        if self.center is not None:
            center, scale = _window_units(x, self.center)
            x = (x - center) / scale
        if past_features is not None:
            x = torch.cat([x, past_features], dim=-1)  # (B, lookback, 1 + n_past)
        tokens = self.embed(self.patches(x))  # (B, n_patches, d_model)
        if self.embed_future is not None:
            future_tokens = self.embed_future(self.patches(future_features))
            tokens = torch.cat([tokens, future_tokens], dim=1)  # (B, n_tokens, d_model)
        tokens, weights = self.encoder(tokens, need_weights=need_weights)
        forecasts = self.head(tokens.flatten(1))  # (B, horizon)
        if self.center is not None:
            forecasts = forecasts * scale[..., 0]
            if not self.relative:
                forecasts = forecasts + center[..., 0]
        return forecasts, weights


def _window_units(x, center):
    """Compute the center and the standard deviation of windows `x` (B, T, 1); both (B, 1, 1).

    With them a network does not depend on levels that change over time (Kim et al. 2022,
    Reversible instance normalization, ICLR, without learned slope and shift). `center` is
    "mean" or "last".
    """
    level = x.mean(dim=1, keepdim=True) if center == "mean" else x[:, -1:]
    std = x.std(dim=1, correction=0, keepdim=True)
    # A window that is constant, but for rounding, is not divided.
    rounding = 100 * torch.finfo(x.dtype).eps * x.abs().amax(dim=1, keepdim=True)
    return level, std.masked_fill(std <= rounding, 1.0)


def squared_error(origins, base, units, scaling):
    """Make the loss of a network that learns the values after `origins` minus a base.

    `base` is of shape (n_origins, horizon or 1). ``batch_loss(network, rows)`` returns the mean
    squared error of the origins in these rows, in units of the series.
    """

    def batch_loss(network, rows):
        numbers, device = rows.cpu().numpy(), rows.device
        batch, batch_units = origins.take(numbers), units[numbers]
        targets = (batch.targets() - base[numbers]) / batch_units[:, 1:]
        outputs, _ = network(*_inputs(batch, batch_units, scaling, device))
        return (outputs - _tensor(targets, device)).square().mean()

    return batch_loss


@torch.no_grad()
def outputs_of(network, origins, units, scaling, *, need_weights=False):
    """Compute the outputs of a network in evaluation mode, without gradients.

    The outputs (n_origins, horizon) are (forecast - base) / unit. With `need_weights` the
    result is instead the weights of its attention, of shape (n_origins, n_layers, n_heads,
    n_tokens, n_tokens).
    """
    device = next(network.parameters()).device
    results = []
    with use_best_threads(network, len(origins) * network.n_tokens):
        for block in torch.arange(len(origins)).split(_BLOCK):
            rows = block.numpy()
            inputs = _inputs(origins.take(rows), units[rows], scaling, device)
            outputs, weights = network(*inputs, need_weights=need_weights)
            results.append(torch.stack(weights, dim=1) if need_weights else outputs)
    return torch.cat(results).double().cpu().numpy()


def _inputs(origins, units, scaling, device):
    """Make the inputs of the network, standardised as the module docstring says.

    Returns
    -------
    past : Tensor of shape (B, lookback)
    past_features : Tensor of shape (B, lookback, n_past) or None
    future_features : Tensor of shape (B, horizon, n_future) or None
    """
    past = (origins.past(scaling.lookback) - units[:, :1]) / units[:, 1:]
    features, future = origins.past_features(scaling.lookback), origins.future_features()
    center, scale, future_columns = scaling.center, scaling.scale, origins.table.future_columns
    if future is not None:
        future = (future - center[future_columns]) / scale[future_columns]
    return [
        _tensor(past, device),
        None if features is None else _tensor((features - center) / scale, device),
        None if future is None else _tensor(future, device),
    ]


def _tensor(values, device):
    """Convert an array to single precision on a device."""
    return torch.from_numpy(values.astype("float32")).to(device)
