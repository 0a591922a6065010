"""Keys and values of earlier tokens, stored so that they are computed once."""

import torch

from .._validation import check_size


class KeyValueCache:
    """Keys and values of the tokens that an encoder or a decoder has processed already.

    Use it to generate sequences, so that a new token does not make the network compute all
    earlier ones again.

    In a causal stack the keys and values of a token do not depend on later tokens. With a
    cache only new tokens are passed to the stack, which returns their outputs as if all tokens
    had been passed. The cost of a token is linear in the number of tokens before it. The cache
    of a decoder also holds the keys and values of its source.

    Parameters
    ----------
    n_layers : int
        Number of blocks of the stack.

    Attributes
    ----------
    layers : list of (Memory, Memory)
        For each block the memory of its own tokens, and that of the tokens of its source.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import Encoder, KeyValueCache
    >>> encoder, tokens = Encoder(2, 8, 2, 16).eval(), torch.randn(1, 5, 8)
    >>> all_outputs, _ = encoder(tokens, causal=True)
    >>> cache = KeyValueCache(2)
    >>> _ = encoder(tokens[:, :4], causal=True, cache=cache)
    >>> last, _ = encoder(tokens[:, 4:], causal=True, cache=cache)
    >>> cache.n_tokens, torch.allclose(last, all_outputs[:, 4:], atol=1e-6)
    (5, True)
    """

    def __init__(self, n_layers: int) -> None:
        self.layers = [
            (Memory(), Memory()) for _ in range(check_size("n_layers", n_layers, 100))
        ]

    @property
    def n_tokens(self):
        """Number of tokens so far: the position of the next one."""
        return self.layers[0][0].n_tokens

    def select(self, rows, *, source=True) -> None:
        """Keep some of the sequences in a given order; a sequence may be kept several times.

        Parameters
        ----------
        rows : LongTensor of shape (n,)
            Positions of the sequences to keep.
        source : bool, default=True
            Whether sources are selected too. This is not needed if each sequence is replaced by
            one that has the same source.
        """
        for token_memory, source_memory in self.layers:
            token_memory.select(rows)
            if source:
                source_memory.select(rows)


class Memory:
    """Keys and values of one attention, (B, n_heads, T, head_dim) each, or None at first."""

    def __init__(self):
        self.keys = self.values = None

    @property
    def n_tokens(self):
        """Number of stored tokens."""
        return 0 if self.keys is None else self.keys.shape[2]

    def grow(self, keys, values):
        """Append keys and values of new tokens, and return those of all tokens."""
        if self.keys is not None:
            keys = torch.cat([self.keys, keys], dim=2)
            values = torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values
        return keys, values

    def select(self, rows):
        """Keep the sequences at these positions, in this order."""
        if self.keys is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]
