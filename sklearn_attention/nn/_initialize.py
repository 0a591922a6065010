"""Starting values of parameters, all in one place."""

import torch
from torch import nn

_TABLE_SPREAD = 0.02


class OutputProjection(nn.Linear):
    """The last layer of what a block adds to the stream of tokens."""


@torch.no_grad()
def initialize(module, generator=None, *, output_gain=1.0):
    """Draw the parameters of a module and of all modules inside it; return the module."""
    # Matrices are uniform on +-sqrt(6 / (n_in + n_out)), which keeps the spread of signals and
    # of gradients alike (Glorot and Bengio 2010); queries, keys and values count as three
    # matrices, although one product computes them. Biases are 0, slopes of layer normalisation
    # 1, and tables (embeddings, learned positions) normal with standard deviation 0.02.
    # Parameters of any other kind of module stay. A generator of None is torch's global one;
    # `output_gain` multiplies the last matrix of every attention and feed-forward network.
    for part in module.modules():
        if isinstance(part, nn.Linear):
            gain = output_gain if isinstance(part, OutputProjection) else 1.0
            nn.init.xavier_uniform_(part.weight, gain, generator=generator)
            if part.bias is not None:
                part.bias.zero_()
        elif isinstance(part, nn.LayerNorm):
            part.reset_parameters()
        elif isinstance(part, nn.Embedding):
            part.weight.normal_(0.0, _TABLE_SPREAD, generator=generator)
    return module
