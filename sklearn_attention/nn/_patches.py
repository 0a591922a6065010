"""A series cut into patches, which become tokens."""

import torch
from torch import nn

from .._validation import check_positive, check_size


class Patches(nn.Module):
    r"""Cut series into patches of consecutive steps, the last of which ends at the last step.

    Put it before an encoder of long series, so that a token stands for several steps.

    A series of :math:`T` steps has :math:`N = \lceil (T - P)^+ / S \rceil + 1` patches of
    length :math:`P`, which start :math:`S` steps apart. The first patch is filled on its left
    with the first value of the series. Fewer than :math:`S` steps are filled, or :math:`P - T`
    if the series is shorter than a patch.

    Parameters
    ----------
    patch_length : int
        Number of steps in a patch, :math:`P`.
    stride : int, default=None
        Number of steps from the start of a patch to that of the next one, :math:`S`, at most
        `patch_length`. None stands for `patch_length`, so that patches do not overlap.

    Notes
    -----
    Patches are those of Nie et al. (2023), except that they fill up the last patch on the
    right. Here the most recent step is always the last one of the last patch. To treat the
    channels of a series separately, as they do, pass the channels as separate series.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import Patches
    >>> series = torch.arange(7.0).reshape(1, 7, 1)  # (B, T, n_channels)
    >>> Patches(4, stride=2)(series)
    tensor([[[0., 0., 1., 2.],
             [1., 2., 3., 4.],
             [3., 4., 5., 6.]]])
    """

    def __init__(self, patch_length: int, stride: int | None = None) -> None:
        super().__init__()
        self.patch_length = check_size("patch_length", patch_length, 4)
        self.stride = check_positive(
            "stride", self.patch_length if stride is None else stride, integer=True
        )
        if self.stride > self.patch_length:
            raise ValueError(
                f"stride={stride!r} is larger than patch_length={patch_length!r} and would "
                "leave steps out: pass at most patch_length."
            )

    def n_patches(self, n_steps) -> int:
        """Compute the number of patches of a series.

        Parameters
        ----------
        n_steps : int
            Length of the series.

        Returns
        -------
        n_patches : int
            The number :math:`N`.
        """
        n_steps = check_positive("n_steps", n_steps, integer=True)
        return -(-max(n_steps - self.patch_length, 0) // self.stride) + 1

    def forward(self, x):
        """Cut every series into patches.

        Parameters
        ----------
        x : Tensor of shape (B, T, n_channels)
            Series.

        Returns
        -------
        patches : Tensor of shape (B, n_patches, patch_length * n_channels)
            A patch has its steps one after the other, each with its channels side by side.
        """
        if x.ndim != 3 or x.shape[1] == 0:
            raise ValueError(
                f"x must have shape (B, T, n_channels), got {tuple(x.shape)}: use x[..., None] "
                "for series of one channel."
            )
        n_patches = self.n_patches(x.shape[1])
        n_missing = (n_patches - 1) * self.stride + self.patch_length - x.shape[1]
        if n_missing:
            # Fill the first patch with the first value.
            x = torch.cat([x[:, :1].expand(-1, n_missing, -1), x], dim=1)
        patches = x.unfold(1, self.patch_length, self.stride)  # (B, N, n_channels, P)
        return patches.transpose(2, 3).flatten(2)  # (B, N, P * n_channels)
