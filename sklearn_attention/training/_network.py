"""Networks in torch: building them, their weights as arrays, seeds, and numbers of threads."""

import hashlib

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional, init
from torch.overrides import TorchFunctionMode

from .. import _thread_pools
from .._validation import check_positive

# Functions of torch that take a generator: they make random tensors, draw in place, or
# initialise layers. A mode of torch sees calls of functions that initialise layers, but no
# calls inside them.
_DRAWING = {
    torch.rand, torch.randn, torch.randint, torch.randperm,
    Tensor.uniform_, Tensor.normal_, Tensor.bernoulli_,
    init.uniform_, init.normal_, init.kaiming_uniform_,
}  # fmt: skip


def build_network(kind, shape, seed):
    """Build a network ``kind(**shape)`` with starting weights drawn from a seed."""
    with torch_seed(seed):
        return kind(**shape)


def load_weights(network, weights):
    """Set the weights of a network from arrays."""
    network.load_state_dict({name: torch.as_tensor(value) for name, value in weights.items()})


def weights_of(network):
    """Copy the weights of a network to arrays, by name."""
    state = network.state_dict().items()
    return {name: value.detach().cpu().numpy().copy() for name, value in state}


def digest(*values):
    """Compute a digest of data: of arrays by their bytes, of all other objects by ``repr``."""
    sha = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray) and value.dtype != object:
            sha.update(repr((value.shape, value.dtype.str)).encode())
            sha.update(np.ascontiguousarray(value).tobytes())
        else:
            sha.update(repr(value).encode())
    return sha.hexdigest()


def worthwhile_threads(network, n_tokens):
    """Return the best number of threads for a pass of `n_tokens` tokens; None for all."""
    layers = (layer for layer in network.modules() if isinstance(layer, torch.nn.Linear))
    work = n_tokens * sum(layer.weight.numel() for layer in layers)
    # With less work, waiting for threads costs more than they save.
    return 1 if work < 10**9 else None


def use_best_threads(network, n_tokens):
    """Return a context in which torch uses the best number of threads for a pass.

    In the pass, `network` computes `n_tokens` tokens.
    """
    return torch_threads(worthwhile_threads(network, n_tokens) or torch.get_num_threads())


def torch_seed(seed):
    """Let torch draw, in this thread, from a generator of its own while the context lasts.

    It is for building networks, whose layers take no generator, and for training small networks
    of torch's layers: they draw as after `torch.manual_seed`, but torch's global generators do
    not change, and other threads are not affected. Within the context each call of torch takes
    a microsecond longer.
    """
    return _OwnGenerators(seed)


class _OwnGenerators(TorchFunctionMode):
    """Mode of torch that passes generators, one for each device, to functions that draw.

    A mode concerns only the thread that enters it.
    """

    def __init__(self, seed):
        super().__init__()
        self._seed, self._generators = seed, {}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call a function of torch, with a generator of this mode if the function draws."""
        kwargs = kwargs or {}
        if function is functional.dropout:
            return self._dropout(*args, **kwargs)
        if function in _DRAWING and kwargs.get("generator") is None:
            values = *args, *kwargs.values()
            tensors = (value for value in values if isinstance(value, Tensor))
            device = next((tensor.device for tensor in tensors), kwargs.get("device"))
            kwargs = {**kwargs, "generator": self._generator(device)}
        return function(*args, **kwargs)

    def _generator(self, device):
        """Return the generator for a device, None for the processor; make it on first use."""
        device = torch.device("cpu" if device is None else device)
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]

    def _dropout(self, x, p=0.5, training=True, inplace=False):
        """Do what `torch.nn.functional.dropout` does, which takes no generator."""
        if not training or not p:
            return x
        factors = torch.empty_like(x).bernoulli_(1 - p, generator=self._generator(x.device))
        factors.div_(1 - p)
        return x.mul_(factors) if inplace else x * factors


# torch's setting holds for the calling thread, and for all threads that start later.
_limit = _thread_pools.ThreadLimit(
    torch.get_num_threads, torch.set_num_threads, of_each_thread=True
)


def torch_threads(n_threads):
    """Let torch use `n_threads` threads, here and in new threads; yield the number before."""
    return _limit.set(check_positive("n_threads", n_threads, integer=True))
