"""The transformer of a forecaster: network, loss, outputs and weights."""

import torch
from torch import nn

from ..nn import Patches, TokenEncoder
from ..nn._random import initialize
from ..training._network import threads_of_pass

# Windows at once where nothing is learned.
_BLOCK = 2048


class ForecastNetwork(nn.Module):
    """Encoder of the patches of a window, and a linear map from all of them to the horizon."""

    # Tokens are patches of `patch_length` steps of the `lookback`, with `n_past` features, and
    # of `n_future` features of the `horizon`. Windows are relative to their `center`, "mean" or
    # "last", in units of their own spread, or unchanged for None. Outputs are differences where
    # `relative`, and otherwise at that center. `shape` is that of TokenEncoder.

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
        """Outputs (B, horizon), and weights of each layer's attention if needed, else None.

        Windows are (B, lookback), features (B, lookback, n_past) and (B, horizon, n_future).
        """
        x = past[..., None]  # (B, lookback, 1)
        if self.center is not None:
            center, scale = _own_units(x, self.center)
            x = (x - center) / scale
        if past_features is not None:
            x = torch.cat([x, past_features], dim=-1)  # (B, lookback, 1 + n_past)
        tokens = self.embed(self.patches(x))  # (B, n_patches, d_model)
        if self.embed_future is not None:
            later = self.embed_future(self.patches(future_features))
            tokens = torch.cat([tokens, later], dim=1)  # (B, n_tokens, d_model)
        tokens, weights = self.encoder(tokens, need_weights=need_weights)
        forecasts = self.head(tokens.flatten(1))  # (B, horizon)
        if self.center is not None:
            forecasts = forecasts * scale[..., 0]
            if not self.relative:
                forecasts = forecasts + center[..., 0]
        return forecasts, weights


def _own_units(x, center):
    """Level and spread (B, 1, 1) of windows (B, T, 1); the level is their "mean" or "last"."""
    # So a model does not depend on levels that change over time (Kim et al. 2022, without
    # learned slope and shift). A window that is constant, but for rounding, is not divided.
    level = x.mean(dim=1, keepdim=True) if center == "mean" else x[:, -1:]
    spread = x.std(dim=1, correction=0, keepdim=True)
    rounding = 100 * torch.finfo(x.dtype).eps * x.abs().amax(dim=1, keepdim=True)
    return level, spread.masked_fill(spread <= rounding, 1.0)


def squared_error(origins, base, units, scaling):
    """Loss of a network that learns targets less a base, of some rows.

    `base` (n_origins, horizon or 1) is in the `units` of :func:`outputs_of`.
    """

    def batch_loss(network, rows):
        numbers, device = rows.cpu().numpy(), rows.device
        batch, own = origins.take(numbers), units[numbers]
        aim = (batch.targets() - base[numbers]) / own[:, 1:]
        outputs, _ = network(*_inputs(batch, own, scaling, device))
        return (outputs - _tensor(aim, device)).square().mean()

    return batch_loss


@torch.no_grad()
def outputs_of(network, origins, units, scaling, *, need_weights=False):
    """Outputs (n_origins, horizon) of a network in evaluation mode, in its units."""
    # `units` (n_origins, 2) are level and unit of each series. With `need_weights` weights of
    # the attention, (n_origins, n_layers, n_heads, n_tokens, n_tokens).
    device = next(network.parameters()).device
    found = []
    with threads_of_pass(network, len(origins) * network.n_tokens):
        for part in torch.arange(len(origins)).split(_BLOCK):
            rows = part.numpy()
            inputs = _inputs(origins.take(rows), units[rows], scaling, device)
            outputs, maps = network(*inputs, need_weights=need_weights)
            found.append(torch.stack(maps, dim=1) if need_weights else outputs)
    return torch.cat(found).double().cpu().numpy()


def _inputs(origins, units, scaling, device):
    """Windows, their features and known later ones in units of the network; None for none."""
    past = (origins.past(scaling.lookback) - units[:, :1]) / units[:, 1:]
    features, later = origins.past_features(scaling.lookback), origins.future_features()
    center, scale, future_columns = scaling.center, scaling.scale, origins.table.future_columns
    if later is not None:
        later = (later - center[future_columns]) / scale[future_columns]
    return [
        _tensor(past, device),
        None if features is None else _tensor((features - center) / scale, device),
        None if later is None else _tensor(later, device),
    ]


def _tensor(values, device):
    return torch.from_numpy(values.astype("float32")).to(device)
