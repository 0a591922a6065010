"""Networks as torch computes them: built, seeded, as plain arrays, and on how many threads."""

import hashlib

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional, init
from torch.overrides import TorchFunctionMode

from .. import _thread_pools
from .._validation import check_positive

# What takes a generator: factories, draws in place, and starting values of layers as torch
# shows them to a mode (what these call within is shown to none).
_DRAWING = {
    torch.rand, torch.randn, torch.randint, torch.randperm,
    Tensor.uniform_, Tensor.normal_, Tensor.bernoulli_,
    init.uniform_, init.normal_, init.kaiming_uniform_,
}  # fmt: skip


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
    # With less work, waiting for threads costs more than they save.
    return 1 if work < 10**9 else None


def threads_of_pass(network, n_tokens):
    """Context in which torch uses the threads that a pass of so many tokens is worth."""
    return torch_threads(worthwhile_threads(network, n_tokens) or torch.get_num_threads())


def torch_seed(seed):
    """Context in which torch draws, in this thread, from a generator of its own."""
    # For building networks, whose layers take no generator, and for training small ones of
    # torch's layers: they draw as after `torch.manual_seed`, but torch's global generators do
    # not change, and other threads are not affected. Each call of torch takes a microsecond
    # longer within.
    return _OwnGenerators(seed)


class _OwnGenerators(TorchFunctionMode):
    """One for each device, of one seed; that it is entered in a thread concerns no other."""

    def __init__(self, seed):
        super().__init__()
        self._seed, self._generators = seed, {}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call a function of torch, with the own generator if it draws."""
        kwargs = kwargs or {}
        if function is functional.dropout:
            return self._dropout(*args, **kwargs)
        if function in _DRAWING and kwargs.get("generator") is None:
            tensors = (part for part in (*args, *kwargs.values()) if isinstance(part, Tensor))
            device = next((tensor.device for tensor in tensors), kwargs.get("device"))
            kwargs = {**kwargs, "generator": self._generator(device)}
        return function(*args, **kwargs)

    def _generator(self, device):
        device = torch.device("cpu" if device is None else device)
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]

    def _dropout(self, x, p=0.5, training=True, inplace=False):
        if not training or not p:
            return x
        kept = torch.empty_like(x).bernoulli_(1 - p, generator=self._generator(x.device))
        kept.div_(1 - p)
        return x.mul_(kept) if inplace else x * kept


# The setting is both the calling thread's and, for threads to come, the process's.
_limit = _thread_pools.ThreadLimit(
    torch.get_num_threads, torch.set_num_threads, of_each_thread=True
)


def torch_threads(n_threads):
    """Let torch use so many threads, here and in new threads; yields the number before."""
    return _limit.set(check_positive("n_threads", n_threads, integer=True))
