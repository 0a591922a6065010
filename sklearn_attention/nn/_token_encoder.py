"""Tokens that know their position, through the blocks of a transformer."""

from torch import nn

from ._dropout import Dropout
from ._positions import make_positions
from ._stack import Decoder, Encoder


class TokenEncoder(nn.Module):
    """Tokens with their positions, through the blocks of an encoder.

    Parameters
    ----------
    d_model, n_heads, n_layers, d_feedforward : int
        As for :class:`Encoder`.
    positions : {"sinusoidal", "learned", "rotary"} or None
        How tokens know where they stand.
    max_length : int, default=None
        Length of the longest sequence, for learned positions.
    d_position : int, default=None
        Width of positions that are appended to the tokens; None adds them.
    dropout : float, default=0.0
        Also of tokens with their positions.
    **options
        What else :class:`Encoder` takes.

    Attributes
    ----------
    width : int
        Of the tokens that come out: `d_model` and what is appended.
    n_layers : int
        Number of blocks.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import TokenEncoder
    >>> encoder = TokenEncoder(
    ...     16, n_heads=2, n_layers=1, d_feedforward=32, positions="sinusoidal", d_position=4
    ... )
    >>> tokens, weights = encoder(torch.randn(4, 10, 16))
    >>> tokens.shape
    torch.Size([4, 10, 20])
    """

    _stack = Encoder

    def __init__(
        self,
        d_model,
        *,
        n_heads,
        n_layers,
        d_feedforward,
        positions,
        max_length=None,
        d_position=None,
        dropout=0.0,
        **options,
    ):
        super().__init__()
        self.width, self.n_layers = d_model + (d_position or 0), n_layers
        self.positions = make_positions(
            positions, d_position or d_model, max_length=max_length,
            combine="concatenate" if d_position else "add",
        )  # fmt: skip
        self.dropout = Dropout(dropout)
        self.blocks = self._stack(
            n_layers, self.width, n_heads, d_feedforward,
            rotary=positions == "rotary", dropout=dropout, **options,
        )  # fmt: skip

    def forward(self, x, *source, cache=None, **options):
        """Tokens after all blocks.

        Parameters
        ----------
        x : Tensor of shape (B, T, d_model)
        *source : Tensor
            What a decoder attends to.
        cache : KeyValueCache, default=None
            Of tokens before these.
        **options
            What else the blocks take.

        Returns
        -------
        x : Tensor of shape (B, T, width)
        weights : list or None
            As for :class:`Encoder` and :class:`Decoder`.
        """
        x = self.positions(x, 0 if cache is None else cache.n_tokens)
        return self.blocks(self.dropout(x), *source, cache=cache, **options)


class TokenDecoder(TokenEncoder):
    """Tokens with their positions, through the blocks of a decoder.

    Parameters and attributes are those of :class:`TokenEncoder`, with :class:`Decoder` in the
    place of the encoder.
    """

    _stack = Decoder
