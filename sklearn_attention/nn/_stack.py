"""Blocks on top of each other: encoder and decoder."""

from torch import nn

from .._validation import check_positive
from ._blocks import DecoderBlock, EncoderBlock


class _Stack(nn.Module):
    """Blocks one after the other, and a last normalisation where they have theirs before."""

    _block = None

    def __init__(self, n_layers, d_model, n_heads, d_feedforward, *, norm="pre", **options):
        super().__init__()
        n_layers = check_positive("n_layers", n_layers, integer=True)
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
            What a decoder attends to.
        need_weights : bool, default=False
            Whether to return the weights of every block.
        cache : KeyValueCache, default=None
            Of tokens before these, which these see and are remembered beside. Masks then
            have a column for each of both. It also remembers the source of a decoder, which
            has to stay the same.
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
        What else :class:`EncoderBlock` takes, for every block: `activation`, `dropout`,
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
        What else :class:`DecoderBlock` takes, for every block: `d_source`, `activation`,
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
