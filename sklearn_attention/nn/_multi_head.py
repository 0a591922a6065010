"""Attention in several heads, of tokens to each other or to a source."""

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
from ._positions import RotaryPositions
from ._random import OutputProjection, initialize


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
