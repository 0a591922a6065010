"""Random numbers of torch's own layers, without a trace outside."""

import torch
from torch import Tensor
from torch.nn import functional, init
from torch.overrides import TorchFunctionMode

# What takes a generator: factories, draws in place, and starting values of layers as torch
# shows them to a mode (what these call within is shown to none).
_DRAWING = {
    torch.rand, torch.randn, torch.randint, torch.randperm,
    Tensor.uniform_, Tensor.normal_, Tensor.bernoulli_,
    init.uniform_, init.normal_, init.kaiming_uniform_,
}  # fmt: skip


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
