"""Random numbers: starting values, dropout, and the generators that a thread draws from.

Trainings in several threads at once draw from generators of their own, so that their results do
not depend on each other. Outside a training, torch's global generators are used.
"""

import contextlib
import threading

import torch
from torch import nn
from torch.nn.functional import dropout

from .._validation import check_in_interval

# Its attribute `generators` has the generators of the present thread, by type of device.
_thread = threading.local()
# It is held while a device's global generator stands in for a thread's own.
_lock = threading.Lock()


class OutputProjection(nn.Linear):
    """Last linear layer of a sublayer, whose output is added to the stream of tokens."""


@torch.no_grad()
def initialize(module, *, output_gain=1.0):
    """Draw the parameters of a module and of all modules inside it; return the module.

    Matrices are uniform on +-sqrt(6 / (n_in + n_out)), which keeps the variance of signals and
    of gradients about constant from layer to layer (Glorot and Bengio 2010); queries, keys and
    values count as three matrices, although one product computes them. Biases are 0, slopes of
    layer normalisation 1, and tables (embeddings, learned positions) normal with standard
    deviation 0.02. Parameters of any other kind of module stay. `output_gain` multiplies the
    last matrix of every attention and feed-forward network.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            gain = output_gain if isinstance(layer, OutputProjection) else 1.0
            nn.init.xavier_uniform_(layer.weight, gain)
            if layer.bias is not None:
                layer.bias.zero_()
        elif isinstance(layer, nn.LayerNorm):
            layer.reset_parameters()
        elif isinstance(layer, nn.Embedding):
            layer.weight.normal_(0.0, 0.02)
    return module


@contextlib.contextmanager
def draw_from(generators):
    """Let dropout draw from these generators in this thread, while the context lasts.

    There is one generator per device, and that of the processor is among them. Layers of torch
    draw from torch's global generators all the same, which all threads share.
    """
    before = getattr(_thread, "generators", {})
    _thread.generators = {generator.device.type: generator for generator in generators}
    try:
        yield
    finally:
        _thread.generators = before


def generator_for(device="cpu"):
    """Return the generator that this thread draws from on a device, None for torch's own."""
    return getattr(_thread, "generators", {}).get(torch.device(device).type)


def draw_seed():
    """Draw a seed for another generator."""
    return int(torch.randint(2**62, (), generator=generator_for()))


@contextlib.contextmanager
def seeded_fused_kernel(device):
    """Seed a CUDA device's global generator from this thread's own, while the context lasts.

    Fused attention takes no generator, so that it draws from the global one. The state of the
    latter is restored at the end. Only one thread at a time may be within the context.
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
    """Set entries to 0 with a probability, and scale the others so that the mean stays.

    On a processor torch draws a number for each entry, one after the other, which takes longer
    than the matrix products around it. Here a draw of 64 bits serves four entries, and the
    probability is rounded to a multiple of 2^-16. The default generator is this thread's.
    """
    generator = generator_for(x.device) if generator is None else generator
    if not probability or (x.device.type != "cpu" and generator is None):
        return dropout(x, probability)
    n_values = 2**16
    n_dropped = min(round(probability * n_values), n_values - 1)
    size = x.numel()
    n_draws, source = -(-size // 4), {"device": x.device, "generator": generator}
    draws = torch.randint(-(2**63), 2**63 - 1, (n_draws,), **source)
    # Numbers are uniform from -2^15 to 2^15 - 1; the n_dropped smallest values drop an entry.
    numbers = draws.view(torch.int16)[:size].view(x.shape)
    is_kept = numbers >= n_dropped - n_values // 2
    return x * is_kept.to(x.dtype).mul_(n_values / (n_values - n_dropped))


class Dropout(nn.Module):
    """Set entries to 0 at random while training, as :class:`torch.nn.Dropout` does.

    Take it in networks that :func:`~sklearn_attention.training.train` fits: its draws depend
    only on the `random_state` passed there.

    Parameters
    ----------
    probability : float
        Probability with which each entry is set to 0, in [0, 1).

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
        """Drop entries of a tensor while training.

        Parameters
        ----------
        x : Tensor

        Returns
        -------
        x : Tensor of the same shape
        """
        return drop(x, self.probability) if self.training else x
