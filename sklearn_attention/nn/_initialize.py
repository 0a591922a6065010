"""Starting values of parameters, all in one place."""

import torch
from torch import nn

_TABLE_SPREAD = 0.02


class OutputProjection(nn.Linear):
    """The last layer of what a block adds to the stream of tokens."""


@torch.no_grad()
def initialize(module, generator=None, *, output_gain=1.0):
    r"""Draw the parameters of a module, and of all modules inside it, anew.

    * Matrices: uniform on :math:`\pm\sqrt{6 / (n_\text{in} + n_\text{out})}`, which keeps the
      spread of signals and of gradients alike (Glorot and Bengio 2010). Queries, keys and
      values count as three matrices, although one product computes them.
    * Biases: 0.
    * Layer normalisation: slope 1, bias 0.
    * Tables (embeddings, learned positions): normal with standard deviation 0.02.

    Parameters of any other kind of module stay as they are.

    Parameters
    ----------
    module : torch.nn.Module
        Changed in place.
    generator : torch.Generator, default=None
        The source of random numbers; None takes torch's global one, as torch's own modules do.
    output_gain : float, default=1.0
        Factor of the last matrix of every attention and feed-forward network.

    Returns
    -------
    module : torch.nn.Module
        The same.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import Encoder
    >>> from sklearn_attention.nn._initialize import initialize
    >>> encoder = Encoder(2, 8, 2, 16)
    >>> encoder = initialize(encoder, torch.Generator().manual_seed(0))
    """
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
