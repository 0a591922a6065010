"""Stacks of blocks, and stacks for tokens with their positions."""

from torch import nn

from .._validation import check_size
from ._blocks import DecoderBlock, EncoderBlock
from ._positions import make_positions
from ._random import Dropout


class _Stack(nn.Module):
    """Blocks one after the other, and a last normalisation where they have theirs before."""

    _block = None

    def __init__(self, n_layers, d_model, n_heads, d_feedforward, *, norm="pre", **options):
        super().__init__()
        n_layers = check_size("n_layers", n_layers, 2000)  # besides its parameters
        self.blocks = nn.ModuleList(
            self._block(d_model, n_heads, d_feedforward, norm=norm, **options)
            for _ in range(n_layers)
        )
        # After blocks of other kinds the stream is normalised, or was just before.
        bias = options.get("bias", True)
        self.normalize = nn.LayerNorm(d_model, bias=bias) if norm == "pre" else nn.Identity()

    def forward(self, x, *source, need_weights=False, cache=None, **masks):
        """Tokens after all blocks.

        Parameters
        ----------
        x : Tensor of shape (B, T, d_model)
        *source : Tensor of shape (B, S, d_source)
            Tokens that a decoder attends to.
        need_weights : bool, default=False
            Whether to return the weights of every block.
        cache : KeyValueCache, default=None
            Tokens before these, which these attend to; these are then stored too. Masks have a
            column for each of both. It also stores the source of a decoder, which has to
            stay the same.
        **masks
            `causal`, `mask` and `padding`, and of a decoder `source_mask` and
            `source_padding`, as for its blocks: the same in every block.

        Returns
        -------
        x : Tensor of shape (B, T, d_model)
        weights : list, or None
            For each block the weights of its attention, (B, n_heads, T, T), or of a decoder's
            two.
        """
        maps = []
        layers = [None] * len(self.blocks) if cache is None else cache.layers
        for block, memories in zip(self.blocks, layers, strict=True):
            x, weights = block(
                x, *source, need_weights=need_weights, memories=memories, **masks
            )
            maps.append(weights)
        return self.normalize(x), maps if need_weights else None


class Encoder(_Stack):
    """Encoder of a transformer: a stack of :class:`EncoderBlock`.

    With ``norm="pre"`` a last layer normalisation follows, as the stream itself is never
    normalised there.

    Parameters
    ----------
    n_layers : int
        Number of blocks.
    d_model, n_heads, d_feedforward : int
        As for :class:`EncoderBlock`.
    norm : {"pre", "post", "lecture"}, default="pre"
        As for :class:`EncoderBlock`.
    **options
        Further arguments of :class:`EncoderBlock`, for every block: `activation`, `dropout`,
        `kernel`, `bias`, `rotary`, `projections`.

    Attributes
    ----------
    blocks : torch.nn.ModuleList
        The blocks, from the first to the last.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import Encoder
    >>> encoder = Encoder(2, d_model=16, n_heads=2, d_feedforward=32, norm="post")
    >>> tokens, weights = encoder(torch.randn(4, 10, 16), causal=True, need_weights=True)
    >>> tokens.shape, len(weights), weights[0].shape
    (torch.Size([4, 10, 16]), 2, torch.Size([4, 2, 10, 10]))
    """

    _block = EncoderBlock


class Decoder(_Stack):
    """Decoder of a transformer: a stack of :class:`DecoderBlock`.

    With ``norm="pre"`` a last layer normalisation follows, as for :class:`Encoder`.

    Parameters
    ----------
    n_layers : int
        Number of blocks.
    d_model, n_heads, d_feedforward : int
        As for :class:`DecoderBlock`.
    norm : {"pre", "post", "lecture"}, default="pre"
        As for :class:`DecoderBlock`.
    **options
        Further arguments of :class:`DecoderBlock`, for every block: `d_source`, `activation`,
        `dropout`, `kernel`, `bias`, `rotary`, `projections`.

    Attributes
    ----------
    blocks : torch.nn.ModuleList
        The blocks, from the first to the last.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import Decoder
    >>> decoder = Decoder(2, d_model=16, n_heads=2, d_feedforward=32)
    >>> tokens, weights = decoder(torch.randn(4, 7, 16), torch.randn(4, 10, 16))
    >>> tokens.shape, weights
    (torch.Size([4, 7, 16]), None)
    """

    _block = DecoderBlock


class TokenEncoder(nn.Module):
    """Tokens with their positions, through the blocks of an encoder.

    Parameters
    ----------
    d_model, n_heads, n_layers, d_feedforward : int
        As for :class:`Encoder`.
    positions : {"sinusoidal", "learned", "rotary"} or None
        Encoding of the positions of tokens.
    max_length : int, default=None
        Length of the longest sequence, for learned positions.
    d_position : int, default=None
        Width of positions that are appended to the tokens; None adds them.
    dropout : float, default=0.0
        As for :class:`Encoder`; also of tokens with their positions.
    **options
        Further arguments of :class:`Encoder`.

    Attributes
    ----------
    width : int
        Width of the output's tokens: `d_model`, and `d_position` if appended.
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
            Tokens that a decoder attends to.
        cache : KeyValueCache, default=None
            Of tokens before these.
        **options
            Further arguments of the blocks.

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
