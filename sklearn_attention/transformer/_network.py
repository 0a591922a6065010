"""The network of an encoder: tokens, transformer, one vector of a row, and what it says."""

import torch
from torch import nn

from ..nn import TokenEncoder, initialize
from ._tokens import TOKENS


class RowEncoder(nn.Module):
    """A transformer encoder, whose tokens are pooled to one vector for each row.

    Parameters
    ----------
    form : {"features", "steps", "text"}
        What rows have.
    tokens : dict
        Arguments of the tokens of that form.
    n_outputs : int
        Numbers that are said of a row.
    d_model : int
        Width of the tokens.
    pooling : {"mean", "last", "cls"}
        Which vector stands for the row: the mean of the tokens, the last one, or a further
        token before the first, which is learned.
    max_length : int or None
        Longest sequence, for learned positions.
    **shape
        What else :class:`~sklearn_attention.nn.TokenEncoder` takes.
    """

    def __init__(self, form, tokens, n_outputs, *, d_model, pooling, max_length, **shape):
        super().__init__()
        self.tokens = TOKENS[form](d_model, **tokens)
        self.pooling = pooling
        self.cls = initialize(nn.Embedding(1, d_model)) if pooling == "cls" else None
        if pooling == "cls" and max_length is not None:
            max_length += 1
        self.encoder = TokenEncoder(d_model, max_length=max_length, **shape)
        # At first all rows have the mean of the targets, or equal classes.
        self.head = nn.Linear(self.encoder.width, n_outputs)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, *inputs, real=None, need_weights=False):
        """What is said of some rows.

        Parameters
        ----------
        *inputs : Tensor of shape (B, ...)
            What the tokens are made of.
        real : Tensor of bool of shape (B, T), default=None
            False for padding; None where there is none.
        need_weights : bool, default=False
            Whether to return the weights of the attention.

        Returns
        -------
        outputs : Tensor of shape (B, n_outputs)
        pooled : Tensor of shape (B, width)
            The vectors of the rows.
        weights : list of Tensor of shape (B, n_heads, T, T) or None
            One for each layer; [CLS], if there is one, comes first.
        """
        tokens = self.tokens(*inputs)  # (B, T, d_model)
        if self.cls is not None:
            tokens = torch.cat([self.cls.weight.expand(len(tokens), 1, -1), tokens], dim=1)
            if real is not None:
                real = torch.cat([torch.ones_like(real[:, :1]), real], dim=1)
        tokens, weights = self.encoder(tokens, padding=real, need_weights=need_weights)
        pooled = self._pool(tokens, real)  # (B, width)
        return self.head(pooled), pooled, weights

    def _pool(self, tokens, real):
        if self.pooling == "cls":
            return tokens[:, 0]
        if self.pooling == "last":
            if real is None:
                return tokens[:, -1]
            rows = torch.arange(len(tokens), device=tokens.device)
            return tokens[rows, real.sum(dim=1) - 1]
        if real is None:
            return tokens.mean(dim=1)
        kept = tokens.masked_fill(~real[..., None], 0.0)
        return kept.sum(dim=1) / real.sum(dim=1, keepdim=True)
