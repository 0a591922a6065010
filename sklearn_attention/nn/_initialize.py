"""How parameters start: all of it in one place."""

import torch
from torch import nn

_TABLE_SPREAD = 0.02


@torch.no_grad()
def initialize(module, generator=None):
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

    Returns
    -------
    module : torch.nn.Module
        The same.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import Encoder, initialize
    >>> encoder = Encoder(2, 8, 2, 16)
    >>> encoder = initialize(encoder, torch.Generator().manual_seed(0))
    """
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight, generator=generator)
            if part.bias is not None:
                part.bias.zero_()
        elif isinstance(part, nn.LayerNorm):
            part.reset_parameters()
        elif isinstance(part, nn.Embedding):
            part.weight.normal_(0.0, _TABLE_SPREAD, generator=generator)
    return module
