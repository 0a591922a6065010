"""Random numbers of training, of a thread's own generators, and dropout, which draws them."""

import contextlib
import threading

import torch
from torch import nn
from torch.nn.functional import dropout

from .._validation import check_in_interval

# Random numbers of 16 bits, four to a draw of 64.
_BITS, _TO_A_DRAW = 16, 4
_own = threading.local()
# Held while a device's global generator stands in for one of those.
_lock = threading.Lock()


@contextlib.contextmanager
def draw_from(generators):
    """Context in which dropout draws from these generators in this thread, one per device."""
    # The processor's must be among them. Layers of torch draw from its global generators all
    # the same, which all threads share.
    before = getattr(_own, "generators", {})
    _own.generators = {generator.device.type: generator for generator in generators}
    try:
        yield
    finally:
        _own.generators = before


def generator_for(device="cpu"):
    """Generator that this thread draws from on a device; None for torch's global one."""
    return getattr(_own, "generators", {}).get(torch.device(device).type)


@contextlib.contextmanager
def seeded_fused_kernel(device):
    """Seed a CUDA device's global generator from this thread's own, and put it back.

    Fused attention takes no generator. One thread at a time may be within.
    """
    if device.type != "cuda" or generator_for(device) is None:
        yield
        return
    with _lock, torch.cuda.device(device):
        before = torch.cuda.get_rng_state()
        torch.cuda.manual_seed(int(torch.randint(2**62, (), generator=generator_for())))
        try:
            yield
        finally:
            torch.cuda.set_rng_state(before)


def drop(x, probability, generator=None):
    """Set entries to 0 at random and scale the others, so that the mean stays."""
    # On a processor torch draws a number for each entry, one after the other, which takes
    # longer than the matrix products around it. Here a draw serves four, and the probability is
    # rounded to a multiple of 2^-16. The default generator is that of this thread.
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
