"""Random numbers of training: a thread can have generators of its own."""

import contextlib
import threading

import torch

_own = threading.local()
# Held while a device's global generator stands in for one of those.
_lock = threading.Lock()


@contextlib.contextmanager
def draw_from(generators):
    """Let what is drawn in this thread while networks learn come from these generators.

    That is what dropout leaves out, here and in attention. Layers of torch draw from its global
    generators all the same, which all threads share.

    Parameters
    ----------
    generators : list of torch.Generator
        One for each kind of device; that of the processor must be among them.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import Dropout, draw_from
    >>> with draw_from([torch.Generator().manual_seed(0)]):
    ...     kept = Dropout(0.5)(torch.ones(3))
    """
    before = getattr(_own, "generators", {})
    _own.generators = {generator.device.type: generator for generator in generators}
    try:
        yield
    finally:
        _own.generators = before


def generator_for(device="cpu"):
    """Generator that this thread draws from on a device.

    Parameters
    ----------
    device : str or torch.device, default="cpu"

    Returns
    -------
    generator : torch.Generator or None
        None is torch's global one: nobody has set another with :func:`draw_from`.
    """
    return getattr(_own, "generators", {}).get(torch.device(device).type)


@contextlib.contextmanager
def seeded_fused_kernel(device):
    """Seed a CUDA device's global generator from this thread's own, and put it back.

    Fused attention takes no generator. One thread at a time may be within.

    Parameters
    ----------
    device : torch.device
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
