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

    .. math:: \tilde x_t = \frac{x_t - c}{s},\quad
              s = \sqrt{\tfrac1T \sum_t (x_t - \bar x)^2}

    for each window and channel by itself, so that a model need not know levels that change
    over time (Kim et al. 2022, without their learned slope and shift).

    Parameters
    ----------
    center : {"mean", "last"}, default="mean"
        The level :math:`c`: the mean :math:`\bar x` over time, or the last value.
    scale : bool, default=True
        Whether to divide by the standard deviation :math:`s`. False leaves units as they are,
        as in the linear models of Zeng et al. (2023) with the last value.

    Notes
    -----
    A window that is constant, but for rounding, is not divided.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn._instance_norm import InstanceNorm
    >>> norm = InstanceNorm(center="last")
    >>> windows = torch.tensor([[1.0], [2.0], [3.0]])[None]  # (B, T, n_channels)
    >>> inner, units = norm(windows)
    >>> inner[0, :, 0].round(decimals=2)
    tensor([-2.4500, -1.2200,  0.0000])
    >>> norm.reverse(inner, units)[0, :, 0]
    tensor([1., 2., 3.])
    """

    def __init__(self, center="mean", *, scale=True):
        super().__init__()
        self.center = check_choice("center", center, ("mean", "last"))
        self.scale = bool(scale)

    def forward(self, x):
        """Windows in their own units.

        Parameters
        ----------
        x : Tensor of shape (B, T, n_channels)

        Returns
        -------
        x : Tensor of shape (B, T, n_channels)
        units : Units
            Tensors `center` and `scale` of shape (B, 1, n_channels), for :meth:`reverse`.
        """
        if x.ndim != 3 or x.shape[1] == 0:
            raise ValueError(
                f"x must have shape (B, T, n_channels), got {tuple(x.shape)}: use x[..., None] "
                "for series of one channel."
            )
        center = x.mean(dim=1, keepdim=True) if self.center == "mean" else x[:, -1:]
        scale = self._spread(x) if self.scale else torch.ones_like(center)
        return (x - center) / scale, Units(center, scale)

    def reverse(self, y, units):
        """From the units of the windows back to the original ones.

        Parameters
        ----------
        y : Tensor of shape (B, horizon, n_channels), or with windows of one channel
            (B, horizon, n_columns)
        units : Units
            What :meth:`forward` returned.

        Returns
        -------
        y : Tensor of the same shape
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
