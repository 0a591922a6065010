"""Transformers: attention in several heads, blocks, stacks of blocks, and tokens' positions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear

from .._validation import check_choice, check_in_interval, check_positive, check_size
from ..kernels import Kernel
from ..kernels._base import as_kernel
from ._attention import attention
from ._masks import causal_mask, check_mask, check_padding, join_masks
from ._positions import LearnedPositions, RotaryPositions, SinusoidalPositions
from ._random import Dropout, OutputProjection, initialize


class MultiHeadAttention(nn.Module):
    r"""Attention in several heads, of tokens to each other or to a source.

    Use it as a layer of a network of your own, with any kernel; :class:`Encoder` stacks it.

    Tokens are cut into `n_heads` pieces, of width ``head_dim = d_model / n_heads``, and every
    head averages by itself (:func:`attention`). With :math:`x` the token of the query and
    :math:`z_s` those of the keys, the `projections` are:

    ========== ===================================== ======================================
    name       weight of :math:`z_s`                 output
    ========== ===================================== ======================================
    "full"     :math:`K(W_q x, W_k z_s)`             :math:`W_o \sum_s w_s W_v z_s`
    "separate" :math:`K(U_q x, U_k z_s)`             :math:`\sum_s w_s z_s`
    "shared"   :math:`K(U x, U z_s)`                 :math:`\sum_s w_s z_s`
    "none"     :math:`K(x, z_s)`                     :math:`\sum_s w_s z_s`
    ========== ===================================== ======================================

    Parameters
    ----------
    d_model : int
        Width of the tokens.
    n_heads : int, default=1
        Divides `d_model`.
    kernel : str, Kernel or callable, default="scaled_dot_product"
        As for :func:`attention`.
    projections : {"full", "separate", "shared", "none"}, default="full"
        Learned projections; see the table.
    d_source : int, default=None
        Width of the source's tokens; None stands for `d_model`. Only full projections allow
        another width.
    bias : bool, default=True
        Whether full projections add a bias; the others have none.
    rotary : bool, default=False
        Whether queries and keys are rotated by their positions (:class:`RotaryPositions`).
    dropout : float, default=0.0
        Probability with which a weight is dropped while training.

    Attributes
    ----------
    query, key, value, out : torch.nn.Linear
        :math:`W_q, W_k, W_v, W_o` of full projections; of the others `query` and `key` hold
        :math:`U_q` and :math:`U_k`, or only `key` holds :math:`U`.

    Notes
    -----
    With full projections and the scaled dot product, this is the layer of Vaswani et al.
    (2017). The simple forms, read from the last to the second row, lead up to it in lectures:
    :math:`A \propto \exp(x^\top z)`, then :math:`\exp((U x)^\top (U z))`, then
    :math:`\exp((U_q x)^\top (U_k z))`. The kernel divides these dot products by
    :math:`\sqrt{\text{head\_dim}}`, which a factor of :math:`U`, or of the tokens, undoes.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import MultiHeadAttention
    >>> layer = MultiHeadAttention(16, n_heads=2)
    >>> tokens = torch.randn(4, 10, 16)  # (B, T, d_model)
    >>> out, weights = layer(tokens, causal=True, need_weights=True)
    >>> out.shape, weights.shape
    (torch.Size([4, 10, 16]), torch.Size([4, 2, 10, 10]))
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        *,
        kernel: str | Kernel | Callable[..., Any] = "scaled_dot_product",
        projections: str = "full",
        d_source: int | None = None,
        bias: bool = True,
        rotary: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.d_model = check_size("d_model", d_model, d_model, 2)
        self.n_heads = check_positive("n_heads", n_heads, integer=True)
        if self.d_model % self.n_heads:
            raise ValueError(
                f"n_heads={n_heads!r} does not divide d_model={d_model!r}: pass a number that "
                "does, so that all heads have the same width."
            )
        self.kernel = as_kernel(kernel)
        self.projections = check_choice(
            "projections", projections, ("full", "separate", "shared", "none")
        )
        self.d_source = check_positive(
            "d_source", self.d_model if d_source is None else d_source, integer=True
        )
        if projections != "full" and self.d_source != self.d_model:
            raise ValueError(
                f"d_source={d_source!r} differs from d_model={d_model!r}, which "
                f"projections={projections!r} cannot bridge: pass projections='full'."
            )
        self.dropout = check_in_interval("dropout", dropout, 0.0, 1.0, closed_right=False)
        full = projections == "full"
        if projections in ("full", "separate"):
            self.query = nn.Linear(self.d_model, self.d_model, bias=full and bias)
        if projections != "none":
            self.key = nn.Linear(self.d_source, self.d_model, bias=full and bias)
        if full:
            self.value = nn.Linear(self.d_source, self.d_model, bias=bias)
            self.out = OutputProjection(self.d_model, self.d_model, bias=bias)
        head_dim = self.d_model // self.n_heads
        self.rotary = RotaryPositions(head_dim) if rotary else None
        initialize(self)

    def forward(
        self,
        queries,
        source=None,
        *,
        mask=None,
        causal=False,
        padding=None,
        need_weights=False,
        memory=None,
    ):
        """Attend to the source, or the tokens to each other.

        Parameters
        ----------
        queries : Tensor of shape (B, T, d_model)
        source : Tensor of shape (B, S, d_source), default=None
            Tokens to attend to; None stands for the queries.
        mask : Tensor of bool or float, default=None
            Of shape (T, S), or broadcastable to (B, n_heads, T, S). True where a key may be
            attended; floats are added to the logits.
        causal : bool, default=False
            Whether step t attends only to the steps 1 to t, itself included.
        padding : Tensor of bool, of shape (B, S), default=None
            True where a token of the source is real.
        need_weights : bool, default=False
            Whether to return the weights, which is slower.
        memory : Memory, default=None
            A part of a :class:`KeyValueCache`. Queries that attend to each other also attend to
            the stored ones, so that S counts both; a source is stored at the first call, and
            read from memory afterwards.

        Returns
        -------
        out : Tensor of shape (B, T, d_model)
        weights : Tensor of shape (B, n_heads, T, S) or None
            As they are before dropout.

        Raises
        ------
        ValueError
            If shapes do not fit.
        """
        self._check_tokens("queries", queries, self.d_model)
        keys = queries if source is None else source
        self._check_tokens("source", keys, self.d_source)
        n_before = 0 if memory is None or source is not None else memory.n_tokens
        n_keys = n_before + keys.shape[1]
        if mask is not None:
            shape = (len(queries), self.n_heads, queries.shape[1], n_keys)
            mask = check_mask("mask", mask, shape)
        if padding is not None:
            mask = join_masks(mask, check_padding("padding", padding, (len(keys), n_keys)))
        if causal and n_before:
            if queries.shape[1] > 1:
                later = causal_mask(queries.shape[1], queries.device, n_before=n_before)
                mask = join_masks(mask, later)
            causal = False
        q, k, v = self._project_and_store(queries, source, memory)
        dropout = self.dropout if self.training else 0.0
        options = {"mask": mask, "causal": causal, "need_weights": need_weights}
        # (B, n_heads, T, head_dim)
        averages, weights = attention(q, k, v, self.kernel, dropout=dropout, **options)
        out = averages.transpose(1, 2).flatten(2)  # (B, T, d_model)
        return self.out(out) if self.projections == "full" else out, weights

    def _project_and_store(self, queries, source, memory):
        """Return queries, and keys and values of new and stored tokens.

        They are (B, n_heads, T or S, head_dim). The new tokens are stored in the memory.
        """
        if source is not None and memory is not None and memory.n_tokens:
            return self._heads(self._project_queries(queries)), memory.keys, memory.values
        q, k, v = self._project(queries, source, 0 if memory is None else memory.n_tokens)
        return (q, k, v) if memory is None else (q, *memory.grow(k, v))

    def _project(self, queries, source, first):
        """Return queries, keys and values, (B, n_heads, T or S, head_dim) each.

        `first` is the position of the first token, for rotations.
        """
        keys = queries if source is None else source
        if self.projections == "full" and source is None:
            # One product with a matrix of three times the height is faster than three products,
            # and one rotation of queries and keys is faster than two.
            layers = (self.query, self.key, self.value)
            weight = torch.cat([layer.weight for layer in layers])  # (3 d_model, d_model)
            has_bias = self.query.bias is not None
            bias = torch.cat([layer.bias for layer in layers]) if has_bias else None
            qkv = self._heads(linear(queries, weight, bias))  # (B, 3 n_heads, T, head_dim)
            qk, v = qkv.split([2 * self.n_heads, self.n_heads], dim=1)
            q, k = self._rotate(qk, first).chunk(2, dim=1)
            return q, k, v
        q = self._project_queries(queries)
        if self.projections == "none":
            k = keys
        else:
            k = q if self.projections == "shared" and source is None else self.key(keys)
        v = self.value(keys) if self.projections == "full" else keys
        q, k, v = (self._heads(x) for x in (q, k, v))
        return self._rotate(q, first), self._rotate(k, first), v

    def _rotate(self, x, first):
        """Rotate queries or keys by their positions, if rotary positions are used."""
        return x if self.rotary is None else self.rotary(x, first)

    def _project_queries(self, queries):
        """Return projected queries before they are cut into heads, (B, T, d_model)."""
        if self.projections == "none":
            return queries
        return (self.key if self.projections == "shared" else self.query)(queries)

    def _heads(self, x):
        """Cut tokens (B, T, n * d_model) into heads, (B, n * n_heads, T, head_dim)."""
        return x.unflatten(-1, (-1, self.d_model // self.n_heads)).transpose(1, 2)

    def _check_tokens(self, name, x, width):
        """Raise ValueError unless x are tokens (B, T, width); `name` is theirs in messages."""
        if x.ndim != 3 or x.shape[-1] != width:
            raise ValueError(
                f"{name} must have shape (B, T, {width}), got {tuple(x.shape)}: pass a batch "
                "of sequences of tokens of that width."
            )


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
