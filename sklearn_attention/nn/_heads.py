"""From tokens to forecasts, and the loss of quantiles."""

import torch
from torch import nn

from .._validation import check_choice, check_positive, check_probabilities
from ._initialize import initialize
from ._masks import check_padding


class PointHead(nn.Module):
    """One number per step of the horizon, linear in the tokens.

    With `n_tokens`, every position has its own coefficients; None takes the mean of the tokens.
    """

    def __init__(self, d_model, horizon, *, n_tokens=None):
        super().__init__()
        self.horizon = check_positive("horizon", horizon, integer=True)
        self.read = _Readout(d_model, self.horizon, n_tokens)

    def forward(self, tokens, *, padding=None):
        """Forecasts (B, horizon) of tokens (B, N, d_model).

        Tokens whose `padding` (B, N) is not True count as 0, and not in a mean.
        """
        return self.read(tokens, padding)


def pinball_loss(predictions, targets, quantiles, *, reduction="mean"):
    r"""Pinball loss (Koenker and Bassett 1978), which the true quantiles minimise.

    :math:`\max(\tau (y - \hat q), (\tau - 1)(y - \hat q))`; the mean, or (..., n_quantiles).
    """
    quantiles = _check_quantiles(quantiles)
    check_choice("reduction", reduction, ("mean", "none"))
    if tuple(predictions.shape) != (*targets.shape, len(quantiles)):
        raise ValueError(
            f"predictions of shape {tuple(predictions.shape)} do not fit targets of shape "
            f"{tuple(targets.shape)} and {len(quantiles)} quantiles: pass predictions of shape "
            f"{(*targets.shape, len(quantiles))}."
        )
    losses = pinball(targets[..., None] - predictions, quantiles)
    return losses.mean() if reduction == "mean" else losses


def pinball(missed, quantiles):
    """Losses of quantiles (..., n_quantiles) by how far targets are above them."""
    tau = missed.new_tensor(quantiles)
    return torch.maximum(tau * missed, (tau - 1) * missed)


class _Readout(nn.Module):
    """A linear map of all tokens, side by side, or of their mean."""

    def __init__(self, d_model, n_outputs, n_tokens):
        super().__init__()
        self.d_model = check_positive("d_model", d_model, integer=True)
        self.n_tokens = (
            None if n_tokens is None else check_positive("n_tokens", n_tokens, integer=True)
        )
        self.linear = nn.Linear(self.d_model * (self.n_tokens or 1), n_outputs)
        initialize(self)

    def forward(self, tokens, padding):
        expected = f"(B, {self.n_tokens or 'N'}, {self.d_model})"
        wrong_length = self.n_tokens is not None and tokens.shape[1:2] != (self.n_tokens,)
        if tokens.ndim != 3 or tokens.shape[2] != self.d_model or wrong_length:
            raise ValueError(
                f"tokens must have shape {expected}, got {tuple(tokens.shape)}: pass what the "
                "head was built for, or n_tokens=None for any number of tokens."
            )
        count = tokens.shape[1]
        if padding is not None:
            real = check_padding("padding", padding, tokens.shape[:2])[:, 0, 0, :, None]
            tokens = tokens.masked_fill(~real, 0.0)
            count = real.sum(dim=1).clamp_min(1)
        if self.n_tokens is None:
            return self.linear(tokens.sum(dim=1) / count)
        return self.linear(tokens.flatten(1))


def _check_quantiles(quantiles):
    checked = tuple(check_probabilities("quantiles", quantiles).tolist())
    if list(checked) != sorted(set(checked)):
        raise ValueError(f"quantiles={quantiles!r} do not increase: pass each once, in order.")
    return checked
