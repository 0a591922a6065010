"""Random numbers: starting values, dropout, and the generators that a thread draws from."""

import contextlib
import threading

import torch
from torch import nn
from torch.nn.functional import dropout

from .._validation import check_in_interval

_own = threading.local()
# Held while a device's global generator stands in for a thread's own.
_lock = threading.Lock()


class OutputProjection(nn.Linear):
    """The last layer of what a block adds to the stream of tokens."""


@torch.no_grad()
def initialize(module, *, output_gain=1.0):
    """Draw the parameters of a module and of all modules inside it; return the module."""
    # Matrices are uniform on +-sqrt(6 / (n_in + n_out)), which keeps the spread of signals and
    # of gradients alike (Glorot and Bengio 2010); queries, keys and values count as three
    # matrices, although one product computes them. Biases are 0, slopes of layer normalisation
    # 1, and tables (embeddings, learned positions) normal with standard deviation 0.02.
    # Parameters of any other kind of module stay. `output_gain` multiplies the last matrix of
    # every attention and feed-forward network.
    for part in module.modules():
        if isinstance(part, nn.Linear):
            gain = output_gain if isinstance(part, OutputProjection) else 1.0
            nn.init.xavier_uniform_(part.weight, gain)
            if part.bias is not None:
                part.bias.zero_()
        elif isinstance(part, nn.LayerNorm):
            part.reset_parameters()
        elif isinstance(part, nn.Embedding):
            part.weight.normal_(0.0, 0.02)
    return module


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


def draw_seed():
    """Seed of another generator."""
    return int(torch.randint(2**62, (), generator=generator_for()))


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
        torch.cuda.manual_seed(draw_seed())
        try:
            yield
        finally:
            torch.cuda.set_rng_state(before)


def drop(x, probability, generator=None):
    """Set entries to 0 at random and scale the others, so that the mean stays."""
    # On a processor torch draws a number for each entry, one after the other, which takes
    # longer than the matrix products around it. Here a draw of 64 bits serves four, and the
    # probability is rounded to a multiple of 2^-16. The default generator is this thread's.
    generator = generator_for(x.device) if generator is None else generator
    if not probability or (x.device.type != "cpu" and generator is None):
        return dropout(x, probability)
    n_values = 2**16
    n_dropped = min(round(probability * n_values), n_values - 1)
    size = x.numel()
    where = {"device": x.device, "generator": generator}
    draws = torch.randint(-(2**63), 2**63 - 1, (-(-size // 4),), **where)
    numbers = draws.view(torch.int16)[:size].view(x.shape)
    kept = numbers >= n_dropped - n_values // 2
    return x * kept.to(x.dtype).mul_(n_values / (n_values - n_dropped))


class Dropout(nn.Module):
    """Set entries to 0 at random while training, as :class:`torch.nn.Dropout` does.

    Take it in networks that :func:`~sklearn_attention.training.train` fits: its draws depend
    only on the `random_state` passed there.

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

    def __init__(self, probability: float) -> None:
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
