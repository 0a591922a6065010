"""The layers of a transformer: attention and a small network, each added to the stream."""

from functools import partial

from torch import nn

from .._validation import check_choice, check_size
from ._initialize import OutputProjection, initialize
from ._multi_head import MultiHeadAttention
from ._random import Dropout

_NORMS = ("pre", "post", "lecture")
# The hidden layer before the ReLU is not needed again, and a second one is costly.
_ACTIVATIONS = {"relu": partial(nn.ReLU, inplace=True), "gelu": nn.GELU}


class EncoderBlock(nn.Module):
    r"""Self-attention, then the same small network for every token.

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
        d_model,
        n_heads,
        d_feedforward,
        *,
        norm="pre",
        activation="relu",
        dropout=0.0,
        kernel="scaled_dot_product",
        bias=True,
        rotary=False,
        projections="full",
    ):
        super().__init__()
        self.attention = MultiHeadAttention(
            d_model, n_heads, kernel=kernel, projections=projections, bias=bias,
            rotary=rotary, dropout=dropout,
        )  # fmt: skip
        self.feedforward = _FeedForward(d_model, d_feedforward, activation, dropout, bias)
        self.around_attention = _Residual(d_model, norm, dropout, bias)
        self.around_feedforward = _Residual(d_model, norm, dropout, bias)

    def forward(
        self, x, *, causal=False, mask=None, padding=None, need_weights=False, memories=None
    ):
        """Tokens after both sublayers.

        Parameters
        ----------
        x : Tensor of shape (B, T, d_model)
        causal : bool, default=False
            Whether step t attends only to the steps 1 to t, itself included.
        mask : Tensor of bool or float, default=None
            Of shape (T, T), or broadcastable to (B, n_heads, T, T), as for
            :class:`MultiHeadAttention`.
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
        inner = self.around_attention.enter(x)
        own, _ = memories or (None, None)
        out, weights = self.attention(
            inner, mask=mask, causal=causal, padding=padding, need_weights=need_weights,
            memory=own,
        )  # fmt: skip
        x = self.around_attention.leave(x, inner, out)
        inner = self.around_feedforward.enter(x)
        return self.around_feedforward.leave(x, inner, self.feedforward(inner)), weights


class DecoderBlock(nn.Module):
    """Causal self-attention, attention to a source, then the same network for every token.

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
    >>> tokens, (own, cross) = block(torch.randn(4, 7, 16), source, need_weights=True)
    >>> tokens.shape, own.shape, cross.shape
    (torch.Size([4, 7, 16]), torch.Size([4, 2, 7, 7]), torch.Size([4, 2, 7, 10]))
    """

    def __init__(
        self,
        d_model,
        n_heads,
        d_feedforward,
        *,
        d_source=None,
        norm="pre",
        activation="relu",
        dropout=0.0,
        kernel="scaled_dot_product",
        bias=True,
        rotary=False,
        projections="full",
    ):
        super().__init__()
        self.attention = MultiHeadAttention(
            d_model, n_heads, kernel=kernel, projections=projections, bias=bias,
            rotary=rotary, dropout=dropout,
        )  # fmt: skip
        self.cross_attention = MultiHeadAttention(
            d_model, n_heads, kernel=kernel, projections=projections, bias=bias,
            d_source=d_source, dropout=dropout,
        )  # fmt: skip
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
        """Tokens after all three sublayers.

        Parameters
        ----------
        x : Tensor of shape (B, T, d_model)
        source : Tensor of shape (B, S, d_source)
            Usually the output of an :class:`Encoder`.
        causal : bool, default=True
            Whether step t attends only to the steps 1 to t of `x`, itself included.
        mask : Tensor of bool or float, default=None
            Of shape (T, T), or broadcastable to (B, n_heads, T, T): which tokens attend to
            which.
        padding : Tensor of bool, of shape (B, T), default=None
            True where a token is real.
        source_mask : Tensor of bool or float, default=None
            Of shape (T, S), or broadcastable to (B, n_heads, T, S): which tokens attend to
            which of the source.
        source_padding : Tensor of bool, of shape (B, S), default=None
            True where a token of the source is real.
        need_weights : bool, default=False
            Whether to return the weights of both attentions.
        memories : pair of Memory, default=None
            A layer of a :class:`KeyValueCache`.

        Returns
        -------
        x : Tensor of shape (B, T, d_model)
        weights : tuple of two Tensors or None
            (B, n_heads, T, T) of the tokens, and (B, n_heads, T, S) of the source.
        """
        inner = self.around_attention.enter(x)
        of_own, of_source = memories or (None, None)
        out, own = self.attention(
            inner, mask=mask, causal=causal, padding=padding, need_weights=need_weights,
            memory=of_own,
        )  # fmt: skip
        x = self.around_attention.leave(x, inner, out)
        inner = self.around_cross_attention.enter(x)
        out, cross = self.cross_attention(
            inner, source, mask=source_mask, padding=source_padding,
            need_weights=need_weights, memory=of_source,
        )  # fmt: skip
        x = self.around_cross_attention.leave(x, inner, out)
        inner = self.around_feedforward.enter(x)
        x = self.around_feedforward.leave(x, inner, self.feedforward(inner))
        return x, (own, cross) if need_weights else None


class _Residual(nn.Module):
    """Surroundings of a sublayer: its normalisation and the stream it adds to."""

    def __init__(self, d_model, norm, dropout, bias):
        super().__init__()
        self.norm = check_choice("norm", norm, _NORMS)
        self.normalize = nn.LayerNorm(d_model, bias=bias)
        self.dropout = Dropout(dropout)

    def enter(self, x):
        """The stream as the sublayer takes it."""
        return x if self.norm == "post" else self.normalize(x)

    def leave(self, x, inner, out):
        """The stream, once the sublayer has made ``out`` of ``inner``."""
        out = self.dropout(out)
        if self.norm == "post":
            return self.normalize(x + out)
        return (x if self.norm == "pre" else inner) + out


class _FeedForward(nn.Module):
    """Two layers, applied to every token by itself."""

    def __init__(self, d_model, d_feedforward, activation, dropout, bias):
        super().__init__()
        check_choice("activation", activation, _ACTIVATIONS)
        width = check_size("d_feedforward", d_feedforward, d_model)
        self.widen = nn.Linear(d_model, width, bias=bias)
        self.activation = _ACTIVATIONS[activation]()
        self.dropout = Dropout(dropout)
        self.narrow = OutputProjection(width, d_model, bias=bias)
        initialize(self)

    def forward(self, x):
        hidden = self.dropout(self.activation(self.widen(x)))  # (B, T, d_feedforward)
        return self.narrow(hidden)  # (B, T, d_model)
