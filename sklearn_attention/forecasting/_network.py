"""The transformer that answers windows."""

import torch
from torch import nn

from ..nn import InstanceNorm, Patches, PointHead, TokenEncoder, initialize


class ForecastNetwork(nn.Module):
    """Encoder of the patches of a window, and a linear map from all of them to what follows.

    Parameters
    ----------
    lookback, horizon : int
        Steps of a window, and of what follows.
    n_past, n_future : int
        Features during the window, and those known during what follows.
    patch_length : int
        Steps that make one token.
    d_model : int
        Width of the tokens.
    center : {"mean", "last"} or None
        Level that every window is taken relative to, in units of its own spread; None leaves
        windows as they are.
    relative : bool
        Whether answers are differences, in units of the window, rather than at its level.
    **shape
        What else :class:`~sklearn_attention.nn.TokenEncoder` takes.
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
        self.norm = None if center is None else InstanceNorm(center)
        self.relative = relative
        self.patches = Patches(patch_length)
        self.n_tokens = self.patches.n_patches(lookback)
        self.embed = nn.Linear(patch_length * (1 + n_past), d_model)
        self.embed_future = None
        if n_future:
            self.n_tokens += self.patches.n_patches(horizon)
            self.embed_future = nn.Linear(patch_length * n_future, d_model)
        self.encoder = TokenEncoder(d_model, max_length=self.n_tokens, **shape)
        self.head = PointHead(self.encoder.width, horizon, n_tokens=self.n_tokens)
        initialize(self)

    def forward(self, past, past_features=None, future_features=None, *, need_weights=False):
        """What follows some windows.

        Parameters
        ----------
        past : Tensor of shape (B, lookback)
        past_features : Tensor of shape (B, lookback, n_past), default=None
        future_features : Tensor of shape (B, horizon, n_future), default=None
        need_weights : bool, default=False
            Whether to return the weights of the attention.

        Returns
        -------
        forecasts : Tensor of shape (B, horizon)
        weights : list of Tensor of shape (B, n_heads, n_tokens, n_tokens) or None
            One for each layer.
        """
        x, units = past[..., None], None  # (B, lookback, 1)
        if self.norm is not None:
            x, units = self.norm(x)
        if past_features is not None:
            x = torch.cat([x, past_features], dim=-1)  # (B, lookback, 1 + n_past)
        tokens = self.embed(self.patches(x))  # (B, n_patches, d_model)
        if self.embed_future is not None:
            later = self.embed_future(self.patches(future_features))
            tokens = torch.cat([tokens, later], dim=1)  # (B, n_tokens, d_model)
        tokens, weights = self.encoder(tokens, need_weights=need_weights)
        forecasts = self.head(tokens)  # (B, horizon)
        if units is not None:
            forecasts = forecasts * units.scale[..., 0]
            if not self.relative:
                forecasts = forecasts + units.center[..., 0]
        return forecasts, weights
