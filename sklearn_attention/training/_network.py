"""Networks and their weights as plain arrays."""

import hashlib

import numpy as np
import torch

from ._random import torch_seed
from ._torch_threads import torch_threads

# Multiplications in one pass below which waiting for threads costs more than they save.
_WORK_OF_A_THREAD = 10**9


def build_network(kind, shape, seed):
    """A network ``kind(**shape)`` with starting weights drawn from a seed."""
    with torch_seed(seed):
        return kind(**shape)


def load_weights(network, weights):
    """Set the weights of a network from arrays."""
    network.load_state_dict({name: torch.as_tensor(value) for name, value in weights.items()})


def weights_of(network):
    """The weights of a network as arrays, which later training does not change."""
    state = network.state_dict().items()
    return {name: value.detach().cpu().numpy().copy() for name, value in state}


def digest(*parts):
    """A digest of data: of arrays by their bytes, of all else by its ``repr``."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype != object:
            found.update(repr((part.shape, part.dtype.str)).encode())
            found.update(np.ascontiguousarray(part).tobytes())
        else:
            found.update(repr(part).encode())
    return found.hexdigest()


def worthwhile_threads(network, n_tokens):
    """Number of threads that a pass of so many tokens is worth; None for all there are."""
    linear = (part for part in network.modules() if isinstance(part, torch.nn.Linear))
    work = n_tokens * sum(part.weight.numel() for part in linear)
    return 1 if work < _WORK_OF_A_THREAD else None


def threads_of_pass(network, n_tokens):
    """Context in which torch uses the threads that a pass of so many tokens is worth."""
    return torch_threads(worthwhile_threads(network, n_tokens) or torch.get_num_threads())
