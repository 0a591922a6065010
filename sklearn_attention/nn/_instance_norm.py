"""Every window in its own units, and back again."""

from typing import NamedTuple

import torch
from torch import nn

from .._validation import check_choice

# A spread that is this many roundings of the largest value is none.
_ROUNDINGS = 100


class Units(NamedTuple):
    """Center and scale of a window; made by :class:`InstanceNorm`."""

    center: torch.Tensor  # (B, 1, n_channels)
    scale: torch.Tensor  # (B, 1, n_channels)


class InstanceNorm(nn.Module):
    r"""Express every window in units of its own level and spread, reversibly.

    :math:`\tilde x_t = (x_t - c) / s` for each window and channel by itself, with :math:`c` the
    mean, or the last value, and :math:`s` the standard deviation, 1 without `scale` (Kim et al.
    2022, without learned slope and shift; last value without scale: Zeng et al. 2023). So a
    model does not depend on levels that change over time. A window that is constant, but for
    rounding, is not divided.
    """

    def __init__(self, center="mean", *, scale=True):
        super().__init__()
        self.center = check_choice("center", center, ("mean", "last"))
        self.scale = bool(scale)

    def forward(self, x):
        """Windows (B, T, n_channels) in their own units, and these as :class:`Units`."""
        if x.ndim != 3 or x.shape[1] == 0:
            raise ValueError(
                f"x must have shape (B, T, n_channels), got {tuple(x.shape)}: use x[..., None] "
                "for series of one channel."
            )
        center = x.mean(dim=1, keepdim=True) if self.center == "mean" else x[:, -1:]
        scale = self._spread(x) if self.scale else torch.ones_like(center)
        return (x - center) / scale, Units(center, scale)

    def reverse(self, y, units):
        """From units of the windows to the original ones: (B, horizon, n_channels).

        Or (B, horizon, n_columns), for windows of one channel.
        """
        n_windows, _, n_channels = units.center.shape
        if y.ndim != 3 or len(y) != n_windows or n_channels not in (1, y.shape[2]):
            raise ValueError(
                f"y of shape {tuple(y.shape)} does not fit {n_windows} windows of {n_channels} "
                "channels: pass (B, horizon, n_channels), with y[..., None] for one channel."
            )
        return y * units.scale + units.center

    @staticmethod
    def _spread(x):
        spread = x.std(dim=1, correction=0, keepdim=True)  # (B, 1, n_channels)
        largest = x.detach().abs().amax(dim=1, keepdim=True)
        constant = spread <= _ROUNDINGS * torch.finfo(x.dtype).eps * largest
        return spread.masked_fill(constant, 1.0)
