"""Dropout that costs little on a processor too."""

import torch
from torch import nn
from torch.nn.functional import dropout

from .._validation import check_in_interval
from ._random import generator_for

# Random numbers of 16 bits, four to a draw of 64.
_BITS, _TO_A_DRAW = 16, 4


def drop(x, probability, generator=None):
    """Set entries to 0 at random; the others grow, so that the mean stays.

    Parameters
    ----------
    x : Tensor
    probability : float
        Of each entry, in [0, 1).
    generator : torch.Generator, default=None
        On the tensor's device; None is the one that :func:`draw_from` has set for this
        thread, otherwise torch's global one.

    Returns
    -------
    x : Tensor

    Notes
    -----
    On a processor torch draws a number for each entry, one after the other, which takes longer
    than the matrix products around it. Here a draw serves four, and the probability is
    rounded to a multiple of :math:`2^{-16}`.
    """
    generator = generator_for(x.device) if generator is None else generator
    if not probability or (x.device.type != "cpu" and generator is None):
        return dropout(x, probability)
    n_values = 2**_BITS
    n_dropped = min(round(probability * n_values), n_values - 1)
    size = x.numel()
    where = {"device": x.device, "generator": generator}
    draws = torch.randint(-(2**63), 2**63 - 1, (-(-size // _TO_A_DRAW),), **where)
    numbers = draws.view(torch.int16)[:size].view(x.shape)
    kept = numbers >= n_dropped - n_values // 2
    return x * kept.to(x.dtype).mul_(n_values / (n_values - n_dropped))


class Dropout(nn.Module):
    """Set entries to 0 at random while training, as :class:`torch.nn.Dropout` does.

    Parameters
    ----------
    probability : float
        Of each entry, in [0, 1).

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import Dropout
    >>> Dropout(0.5).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def __init__(self, probability):
        super().__init__()
        self.probability = check_in_interval(
            "dropout", probability, 0.0, 1.0, closed_right=False
        )

    def forward(self, x):
        """The tensor without what is dropped.

        Parameters
        ----------
        x : Tensor

        Returns
        -------
        x : Tensor of the same shape
        """
        return drop(x, self.probability) if self.training else x
