"""Transformers: blocks of attention, stacks of blocks, and positions of tokens."""

from collections.abc import Callable
from typing import Any

from torch import nn

from .._validation import check_choice, check_size
from ..kernels import Kernel
from ._multi_head import MultiHeadAttention
from ._positions import LearnedPositions, SinusoidalPositions
from ._random import Dropout, OutputProjection, initialize


class _Residual(nn.Module):
    """A sublayer's normalisation, and the addition of its output to the stream."""

    def __init__(self, d_model, norm, dropout, bias):
        super().__init__()
        self.norm = check_choice("norm", norm, ("pre", "post", "lecture"))
        self.normalize = nn.LayerNorm(d_model, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x, sublayer, *source, **options):
        """Return the stream after the sublayer, and the weights of an attention or None."""
        inner = x if self.norm == "post" else self.normalize(x)
        out, weights = sublayer(inner, *source, **options)
        out = self.dropout(out)
        if self.norm == "post":
            return self.normalize(x + out), weights
        return (x if self.norm == "pre" else inner) + out, weights


class _FeedForward(nn.Module):
    """A network of two layers that is applied to every token by itself."""

    def __init__(self, d_model, d_feedforward, activation, dropout, bias):
        super().__init__()
        check_choice("activation", activation, ("relu", "gelu"))
        width = check_size("d_feedforward", d_feedforward, d_model)
        self.widen = nn.Linear(d_model, width, bias=bias)
        # In place, as the hidden layer before the ReLU is not needed again.
        self.activation = nn.ReLU(inplace=True) if activation == "relu" else nn.GELU()
        self.dropout = Dropout(dropout)
        self.narrow = OutputProjection(width, d_model, bias=bias)
        initialize(self)

    def forward(self, x):
        """Return tokens (B, T, d_model), and None in place of weights of an attention."""
        hidden = self.dropout(self.activation(self.widen(x)))  # (B, T, d_feedforward)
        return self.narrow(hidden), None


class EncoderBlock(nn.Module):
    r"""Block of an encoder: self-attention, then the same small network for every token.

    Use it to build a stack that :class:`Encoder` does not offer.

    With :math:`S` one of the two sublayers and :math:`N` a layer normalisation:

    ========= =================================== ==========================================
    `norm`    the stream after a sublayer         from
    ========= =================================== ==========================================
    "pre"     :math:`X + S(N(X))`                 Xiong et al. (2020); trains without warm-up
    "post"    :math:`N(X + S(X))`                 Vaswani et al. (2017)
    "lecture" :math:`N(X) + S(N(X))`              a form met in lectures: the normalised
                                                  stream is added back
    ========= =================================== ==========================================

    Parameters
    ----------
    d_model : int
        Width of the tokens.
    n_heads : int
        Divides `d_model`.
    d_feedforward : int
        Width of the network's hidden layer.
    norm : {"pre", "post", "lecture"}, default="pre"
        Position of layer normalisation; see the table.
    activation : {"relu", "gelu"}, default="relu"
        Between the two layers of the network.
    dropout : float, default=0.0
        Probability with which, while training, weights of the attention, hidden units, and
        entries of what is added to the stream are dropped.
    kernel : str, Kernel or callable, default="scaled_dot_product"
        As for :func:`attention`.
    bias : bool, default=True
        Whether projections, the network and the normalisations have biases.
    rotary : bool, default=False
        Whether queries and keys are rotated by their positions (:class:`RotaryPositions`).
    projections : {"full", "separate", "shared", "none"}, default="full"
        As for :class:`MultiHeadAttention`.

    Notes
    -----
    For "pre" and "post" this is :class:`torch.nn.TransformerEncoderLayer` with any kernel.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import EncoderBlock
    >>> block = EncoderBlock(16, n_heads=2, d_feedforward=32, kernel="gaussian")
    >>> tokens, weights = block(torch.randn(4, 10, 16), need_weights=True)
    >>> tokens.shape, weights.shape
    (torch.Size([4, 10, 16]), torch.Size([4, 2, 10, 10]))
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_feedforward: int,
        *,
        norm: str = "pre",
        activation: str = "relu",
        dropout: float = 0.0,
        kernel: str | Kernel | Callable[..., Any] = "scaled_dot_product",
        bias: bool = True,
        rotary: bool = False,
        projections: str = "full",
    ) -> None:
        super().__init__()
        setup = {"kernel": kernel, "projections": projections, "bias": bias, "dropout": dropout}
        self.attention = MultiHeadAttention(d_model, n_heads, rotary=rotary, **setup)
        self.feedforward = _FeedForward(d_model, d_feedforward, activation, dropout, bias)
        self.around_attention = _Residual(d_model, norm, dropout, bias)
        self.around_feedforward = _Residual(d_model, norm, dropout, bias)

    def forward(
        self, x, *, causal=False, mask=None, padding=None, need_weights=False, memories=None
    ):
        """Compute the tokens after both sublayers.

        Parameters
        ----------
        x : Tensor of shape (B, T, d_model)
        causal : bool, default=False
            Whether step t attends only to the steps 1 to t, itself included.
        mask : Tensor of bool or float, default=None
            As for :class:`MultiHeadAttention`, with S = T.
        padding : Tensor of bool, of shape (B, T), default=None
            True where a token is real.
        need_weights : bool, default=False
            Whether to return the weights of the attention.
        memories : pair of Memory, default=None
            A layer of a :class:`KeyValueCache`.

        Returns
        -------
        x : Tensor of shape (B, T, d_model)
        weights : Tensor of shape (B, n_heads, T, T) or None
        """
        memory, _ = memories or (None, None)
        masks = {"mask": mask, "causal": causal, "padding": padding}
        x, weights = self.around_attention(
            x, self.attention, need_weights=need_weights, memory=memory, **masks
        )
        return self.around_feedforward(x, self.feedforward)[0], weights


class DecoderBlock(nn.Module):
    """Block of a decoder: causal self-attention, attention to a source, then a small network.

    Use it to build a stack that :class:`Decoder` does not offer.

    Parameters
    ----------
    d_model, n_heads, d_feedforward
        As for :class:`EncoderBlock`.
    d_source : int, default=None
        Width of the source's tokens; None stands for `d_model`.
    norm, activation, dropout, kernel, bias, projections
        As for :class:`EncoderBlock`; kernel and projections are those of both attentions.
    rotary : bool, default=False
        Whether queries and keys of the self-attention are rotated by their positions.

    Notes
    -----
    For "pre" and "post" this is :class:`torch.nn.TransformerDecoderLayer` with any kernel.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import DecoderBlock
    >>> block = DecoderBlock(16, n_heads=2, d_feedforward=32)
    >>> source = torch.randn(4, 10, 16)
    >>> tokens, (self_weights, cross_weights) = block(
    ...     torch.randn(4, 7, 16), source, need_weights=True
    ... )
    >>> tokens.shape, self_weights.shape, cross_weights.shape
    (torch.Size([4, 7, 16]), torch.Size([4, 2, 7, 7]), torch.Size([4, 2, 7, 10]))
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_feedforward: int,
        *,
        d_source: int | None = None,
        norm: str = "pre",
        activation: str = "relu",
        dropout: float = 0.0,
        kernel: str | Kernel | Callable[..., Any] = "scaled_dot_product",
        bias: bool = True,
        rotary: bool = False,
        projections: str = "full",
    ) -> None:
        super().__init__()
        setup = {"kernel": kernel, "projections": projections, "bias": bias, "dropout": dropout}
        self.attention = MultiHeadAttention(d_model, n_heads, rotary=rotary, **setup)
        self.cross_attention = MultiHeadAttention(d_model, n_heads, d_source=d_source, **setup)
        self.feedforward = _FeedForward(d_model, d_feedforward, activation, dropout, bias)
        self.around_attention = _Residual(d_model, norm, dropout, bias)
        self.around_cross_attention = _Residual(d_model, norm, dropout, bias)
        self.around_feedforward = _Residual(d_model, norm, dropout, bias)

    def forward(
        self,
        x,
        source,
        *,
        causal=True,
        mask=None,
        padding=None,
        source_mask=None,
        source_padding=None,
        need_weights=False,
        memories=None,
    ):
        """Compute the tokens after all three sublayers.

        Parameters
        ----------
        x, causal, mask, padding, need_weights, memories
            As for :class:`EncoderBlock`, but `causal` by default.
        source : Tensor of shape (B, S, d_source)
            Usually the output of an :class:`Encoder`.
        source_mask : Tensor of bool or float, default=None
            Of shape (T, S), or broadcastable to (B, n_heads, T, S): True where a token may
            attend to a token of the source; floats are added to the logits.
        source_padding : Tensor of bool, of shape (B, S), default=None
            True where a token of the source is real.

        Returns
        -------
        x : Tensor of shape (B, T, d_model)
        weights : tuple of two Tensors or None
            Those of the self-attention (B, n_heads, T, T), and of the attention to the source
            (B, n_heads, T, S).
        """
        memory, source_memory = memories or (None, None)
        masks = {"mask": mask, "causal": causal, "padding": padding}
        x, self_weights = self.around_attention(
            x, self.attention, need_weights=need_weights, memory=memory, **masks
        )
        source_options = {"mask": source_mask, "padding": source_padding}
        source_options |= {"need_weights": need_weights, "memory": source_memory}
        x, cross_weights = self.around_cross_attention(
            x, self.cross_attention, source, **source_options
        )
        x, _ = self.around_feedforward(x, self.feedforward)
        return x, (self_weights, cross_weights) if need_weights else None


class _Stack(nn.Module):
    """Blocks one after the other, and a last normalisation if ``norm="pre"``."""

    _block = None  # the class of the blocks

    def __init__(
        self,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_feedforward: int,
        *,
        norm: str = "pre",
        **options,
    ) -> None:
        super().__init__()
        # A block needs the memory of about 2000 numbers besides its parameters.
        n_layers = check_size("n_layers", n_layers, 2000)
        self.blocks = nn.ModuleList(
            self._block(d_model, n_heads, d_feedforward, norm=norm, **options)
            for _ in range(n_layers)
        )
        # With other kinds of `norm` the stream was normalised in the last block.
        bias = options.get("bias", True)
        self.normalize = nn.LayerNorm(d_model, bias=bias) if norm == "pre" else nn.Identity()

    def forward(self, x, *source, need_weights=False, cache=None, **masks):
        """Compute the tokens after all blocks.

        Parameters
        ----------
        x : Tensor of shape (B, T, d_model)
        *source : Tensor of shape (B, S, d_source)
            Tokens that a decoder attends to.
        need_weights : bool, default=False
            Whether to return weights.
        cache : KeyValueCache, default=None
            Keys and values of earlier tokens, to which the tokens of `x` attend; those of `x`
            are then stored too. Masks have a column for each earlier and each new token. The
            cache also stores the source of a decoder, which has to stay the same.
        **masks
            `causal`, `mask`, `padding`, and of a decoder `source_mask` and `source_padding`,
            for every block.

        Returns
        -------
        x : Tensor of shape (B, T, d_model)
        weights : list, or None
            For each block the weights of its attention, (B, n_heads, T, T), or of both
            attentions of a decoder.
        """
        weights_of_blocks = []
        layers = [None] * len(self.blocks) if cache is None else cache.layers
        for block, memories in zip(self.blocks, layers, strict=True):
            x, weights = block(
                x, *source, need_weights=need_weights, memories=memories, **masks
            )
            weights_of_blocks.append(weights)
        return self.normalize(x), weights_of_blocks if need_weights else None


class Encoder(_Stack):
    """Encoder of a transformer: a stack of :class:`EncoderBlock`.

    Use it if your tokens are vectors that contain their positions already;
    :class:`TokenEncoder` adds positions.

    With ``norm="pre"``, where the stream itself is never normalised, a last layer normalisation
    follows.

    Parameters
    ----------
    n_layers : int
        Number of blocks.
    d_model, n_heads, d_feedforward, norm
        As for :class:`EncoderBlock`.
    **options
        Its further arguments: `activation`, `dropout`, `kernel`, `bias`, `rotary`,
        `projections`.

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

    Use it if your tokens are vectors that contain their positions already;
    :class:`TokenDecoder` adds positions.

    With ``norm="pre"`` a last layer normalisation follows, as for :class:`Encoder`.

    Parameters
    ----------
    n_layers : int
        Number of blocks.
    d_model, n_heads, d_feedforward, norm
        As for :class:`DecoderBlock`.
    **options
        Its further arguments: `d_source`, `activation`, `dropout`, `kernel`, `bias`, `rotary`,
        `projections`.

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
    """Encoder of a transformer that first adds a position to each token.

    Use it between the embedding and the output layer of a network of your own; take
    :class:`Encoder` if tokens contain their positions already.

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
        d_model: int,
        *,
        n_heads: int,
        n_layers: int,
        d_feedforward: int,
        positions: str | None,
        max_length: int | None = None,
        d_position: int | None = None,
        dropout: float = 0.0,
        **options,
    ) -> None:
        super().__init__()
        self.width, self.n_layers = d_model + (d_position or 0), n_layers
        self.positions, d_encoding = None, d_position or d_model
        combine = "concatenate" if d_position else "add"
        # Rotary positions are part of the attention.
        if positions == "sinusoidal":
            self.positions = SinusoidalPositions(d_encoding, combine=combine)
        elif positions == "learned":
            self.positions = LearnedPositions(max_length, d_encoding, combine=combine)
        self.dropout = Dropout(dropout)
        options |= {"rotary": positions == "rotary", "dropout": dropout}
        self.blocks = self._stack(n_layers, self.width, n_heads, d_feedforward, **options)

    def forward(self, x, *source, cache=None, **options):
        """Add positions to the tokens, and compute the tokens after all blocks.

        Parameters
        ----------
        x, *source, cache, **options
            As for :class:`Encoder` and :class:`Decoder`; positions go on after the cached ones.

        Returns
        -------
        x : Tensor of shape (B, T, width)
        weights : list or None
            As for :class:`Encoder` and :class:`Decoder`.
        """
        if self.positions is not None:
            x = self.positions(x, 0 if cache is None else cache.n_tokens)
        return self.blocks(self.dropout(x), *source, cache=cache, **options)


class TokenDecoder(TokenEncoder):
    """Decoder of a transformer that adds positions to its tokens first.

    Use it, behind a :class:`TokenEncoder`, in a network of your own that turns one sequence
    into another.

    Parameters and attributes are those of :class:`TokenEncoder`, with :class:`Decoder` in the
    place of the encoder.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import TokenDecoder
    >>> decoder = TokenDecoder(16, n_heads=2, n_layers=1, d_feedforward=32, positions="rotary")
    >>> decoder(torch.randn(4, 7, 16), torch.randn(4, 10, 16))[0].shape
    torch.Size([4, 7, 16])
    """

    _stack = Decoder
