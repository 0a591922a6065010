"""torch's global random numbers, which dropout draws from, without a trace outside."""

import contextlib

import torch


@contextlib.contextmanager
def torch_seed(seed, device="cpu"):
    """Seed torch's global generators within, and put them back as they were.

    Those of the processor and, if given, of one CUDA device: layers start from the first,
    dropout draws from that of its device. All threads of a process share them.

    Parameters
    ----------
    seed : int
    device : str or torch.device, default="cpu"

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.training import torch_seed
    >>> with torch_seed(0):
    ...     layer = torch.nn.Linear(3, 1)
    """
    device = torch.device(device)
    before = random_states(device)
    try:
        # Not torch.manual_seed, which also seeds devices that nobody restores.
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
    finally:
        set_random_states(before, device)


def random_states(device):
    """States of the global generators, of the processor and of a device.

    Parameters
    ----------
    device : torch.device

    Returns
    -------
    states : list of Tensor
    """
    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state(device)] if device.type == "cuda" else states


def set_random_states(states, device):
    """Undo what was drawn since :func:`random_states`.

    Parameters
    ----------
    states : list of Tensor
    device : torch.device
    """
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)
