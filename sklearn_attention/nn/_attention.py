"""The weighted average of a transformer: attention on any kernel."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch.nn.functional import pad, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from .._validation import check_in_interval
from ..kernels import Gaussian, Kernel, RadialKernel, ScaledDotProduct
from ..kernels._base import as_kernel
from ..kernels._feature_kernels import FeatureKernel
from ._linear_attention import at_least_single, feature_weights, linear_attention
from ._masks import causal_mask, check_mask, empty_rows, join_masks, mask_logits, open_rows
from ._random import draw_seed, drop, seeded_fused_kernel

# Up to the first number of pairs of queries and keys, their weights are stored for the
# gradient. Otherwise they are computed twice, in blocks of at most the second number of pairs.
_KEPT, _BLOCK = 2**22, 2**20


def attention(
    queries,
    keys,
    values,
    kernel: str | Kernel | Callable[..., Any] = "scaled_dot_product",
    *,
    mask=None,
    causal: bool = False,
    need_weights: bool = False,
    dropout: float = 0.0,
) -> Any:
    r"""Average the values of every head, weighted by a kernel between queries and keys.

    It is for networks: it takes tensors and masks, and has gradients. For arrays take
    :func:`sklearn_attention.attend`.

    .. math:: o_t = \frac{\sum_s m_{ts}\, K(q_t, k_s)\, v_s}{\sum_s m_{ts}\, K(q_t, k_s)}

    with :math:`m_{ts}` 1 or 0 for a mask of bool, and :math:`e^{b_{ts}}` for a mask
    :math:`b` of floats.

    Parameters
    ----------
    queries : Tensor of shape (B, n_heads, T_q, head_dim)
        In units of the bandwidth, like the keys.
    keys : Tensor of shape (B, n_heads, T_k, head_dim)
    values : Tensor of shape (B, n_heads, T_k, d_value)
    kernel : str, Kernel or callable, default="scaled_dot_product"
        Name of a kernel, a kernel, or a function of queries and keys.
    mask : Tensor of bool or float, default=None
        Broadcastable to (B, n_heads, T_q, T_k), with two or four dimensions. True where a
        key may be attended; floats are added to the logits, the logarithm of the kernel.
    causal : bool, default=False
        Whether step t attends only to the steps 1 to t, itself included.
    need_weights : bool, default=False
        Whether to return the weights too.
    dropout : float, default=0.0
        Probability with which a weight is set to 0; the others are scaled up. Kernels
        with features drop a key for all queries of a head at once.

    Returns
    -------
    averages : Tensor of shape (B, n_heads, T_q, d_value)
        0 where a query has no key: none is allowed, or none is within the reach of a compact
        kernel, or the weights of a signed kernel cancel.
    weights : Tensor of shape (B, n_heads, T_q, T_k) or None
        As they are before dropout: rows sum to 1, or are 0 where there is no key.

    Raises
    ------
    ValueError
        If shapes do not fit, or `mask` or `dropout` is not valid.
    TypeError
        If a gradient is needed of a kernel that is computed by NumPy.

    Notes
    -----
    For the scaled dot product this is the attention of Vaswani et al. (2017), by torch's
    fused kernel unless `need_weights` is set. So is the Gaussian: with a further entry 1 for
    queries and :math:`-\lVert k \rVert^2 / 2` for keys its logarithm is a dot product, up to
    a term that cancels. Where that loses digits (rows far from the origin), differences are
    squared.

    A kernel of random features takes time and memory linear in length,
    causal or not, unless `need_weights` is set or a mask differs between queries. Other masks
    take all pairs, with the same result.

    All other kernels, and dropout on a processor, take memory linear in length as well unless
    `need_weights` is set: above 4 million pairs these are computed in blocks, and again for
    the gradient.

    A sum of signed weights is too near to 0 to be divided by where it is less than the root
    of the precision times the sum of their sizes, as in :func:`sklearn_attention.attend`.
    For signed features the limit is their own sampling error; see
    :class:`~sklearn_attention.kernels.TrigonometricFeatures`.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import attention
    >>> x = torch.tensor([[0.0], [1.0], [2.0]])[None, None]
    >>> averages, weights = attention(x, x, x, "gaussian", causal=True, need_weights=True)
    >>> weights[0, 0].round(decimals=2)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.3800, 0.6200, 0.0000],
            [0.0800, 0.3500, 0.5700]])
    """
    kernel = as_kernel(kernel)
    _check_shapes(queries, keys, values)
    dropout = check_in_interval("dropout", dropout, 0.0, 1.0, closed_right=False)
    if mask is not None:
        mask = check_mask("mask", mask, (*queries.shape[:3], keys.shape[2]))
    # No fused kernel of a processor has dropout.
    fused = not need_weights and not (dropout and queries.device.type == "cpu")
    if causal and queries.shape[2] != keys.shape[2]:
        raise ValueError(
            f"causal=True needs as many queries as keys, got {queries.shape[2]} and "
            f"{keys.shape[2]}: pass causal=False, and a mask that is True for the keys that "
            "each query may attend to."
        )
    if isinstance(kernel, FeatureKernel):
        return _by_features(queries, keys, values, kernel, mask, causal, need_weights, dropout)
    if causal and (mask is not None or not fused or not isinstance(kernel, ScaledDotProduct)):
        mask, causal = join_masks(mask, causal_mask(queries.shape[2], queries.device)), False
    if fused and isinstance(kernel, ScaledDotProduct):
        return _fused(queries, keys, values, mask, causal=causal, dropout=dropout), None
    if fused and isinstance(kernel, Gaussian):
        single = at_least_single(queries), at_least_single(keys)
        if expands_accurately(*single):
            return _fused_gaussian(*single, values, mask, dropout), None
    if need_weights:
        return _weighted(queries, keys, values, mask, kernel, dropout)
    return _in_blocks(queries, keys, values, mask, kernel, dropout), None


def _in_blocks(queries, keys, values, mask, kernel, dropout):
    """Compute averages, for blocks of sequences and queries if there are many pairs.

    The weights of a block are computed again for its gradient. Dropout is then drawn again
    too, so each block has a generator of its own.
    """
    n_batch, n_heads, n_queries, n_keys = *queries.shape[:3], keys.shape[2]
    if n_batch * n_heads * n_queries * n_keys <= _KEPT:
        return _weighted(queries, keys, values, mask, kernel, dropout)[0]
    # A block has n_rows sequences of the batch, and n_steps queries of each.
    n_steps = max(1, min(n_queries, _BLOCK // (n_heads * n_keys)))
    n_rows = max(1, _BLOCK // (n_heads * n_keys * n_steps))

    def average(seed, *block):
        generator = torch.Generator(queries.device).manual_seed(seed) if dropout else None
        return _weighted(*block, kernel, dropout, generator)[0]

    averages = []
    for i in range(0, n_batch, n_rows):
        rows, blocks = slice(i, i + n_rows), []
        row_mask = mask[rows] if mask is not None and len(mask) > 1 else mask
        for j in range(0, n_queries, n_steps):
            steps, block_mask = slice(j, j + n_steps), row_mask
            if row_mask is not None and row_mask.shape[2] > 1:
                block_mask = row_mask[:, :, steps]
            seed = draw_seed() if dropout else 0
            block = queries[rows, :, steps], keys[rows], values[rows], block_mask
            options = {"use_reentrant": False, "preserve_rng_state": False}
            blocks.append(checkpoint(average, seed, *block, **options))
        averages.append(torch.cat(blocks, dim=2))
    return torch.cat(averages)


def _weighted(queries, keys, values, mask, kernel, dropout, generator=None):
    """Return averages (B, n_heads, T_q, d_value) and weights (B, n_heads, T_q, T_k)."""
    weigh = _positive_weights if kernel.signed is False else _signed_weights
    weights = weigh(kernel, queries, keys, mask).to(values.dtype)
    return drop(weights, dropout, generator) @ values, weights


def _by_features(queries, keys, values, kernel, mask, causal, need_weights, dropout):
    """Return averages and weights by the features of a kernel, in linear time if possible."""
    if dropout:
        # A key is dropped for all queries, as there are no single weights to drop.
        values = values * drop(torch.ones_like(values[..., :1]), dropout)
    if not need_weights and (mask is None or mask.shape[2] == 1):
        return linear_attention(queries, keys, values, kernel, mask=mask, causal=causal), None
    if causal:
        mask = join_masks(mask, causal_mask(queries.shape[2], queries.device))
    weights = feature_weights(queries, keys, kernel, mask=mask).to(values.dtype)
    return weights @ values, weights if need_weights else None


def _fused(queries, keys, values, mask, *, dropout, causal=False, scale=None):
    """Average by the scaled dot product with torch's fused kernel."""
    empty = None
    if mask is not None:
        # The result of a fused kernel for a row without keys depends on the device.
        empty = empty_rows(mask)
        mask = open_rows(mask, empty)
        if mask.dtype != torch.bool:
            mask = mask.to(queries.dtype)
    options = {"attn_mask": mask, "is_causal": causal, "dropout_p": dropout, "scale": scale}
    with seeded_fused_kernel(queries.device) if dropout else nullcontext():
        averages = scaled_dot_product_attention(queries, keys, values, **options)
    return averages if empty is None else averages.masked_fill(empty, 0.0)


def _fused_gaussian(queries, keys, values, mask, dropout):
    """Average by the Gaussian kernel as a dot product, in the precision of the queries.

    Its logarithm -|q - k|^2 / 2 is [q, 1] . [k, -|k|^2 / 2] minus |q|^2 / 2, which cancels.
    """
    with torch.autocast(queries.device.type, enabled=False):
        queries = torch.cat([queries, torch.ones_like(queries[..., :1])], dim=-1)
        keys = torch.cat([keys, -0.5 * keys.square().sum(-1, keepdim=True)], dim=-1)
        # torch has a fused kernel only for values as wide as the keys.
        n_missing = queries.shape[-1] - values.shape[-1]
        padded = pad(values, (0, max(n_missing, 0))).to(queries.dtype)
        averages = _fused(queries, keys, padded, mask, dropout=dropout, scale=1.0)
    return averages[..., : values.shape[-1]].to(values.dtype)


def _positive_weights(kernel, queries, keys, mask):
    """Return weights (B, n_heads, T_q, T_k), the softmax of the logarithm of the kernel."""
    logits = compare(kernel, queries, keys, logarithm=True)
    if mask is not None:
        logits = mask_logits(logits, mask)
    # A row with only -inf would be NaN, and so would its gradient.
    empty = empty_rows(logits)
    return torch.softmax(logits.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)


def _signed_weights(kernel, queries, keys, mask):
    """Return weights (B, n_heads, T_q, T_k), the kernel divided by its sum over keys.

    They are 0 where the sum is 0 but for rounding.
    """
    weights = compare(kernel, queries, keys, logarithm=False)
    if mask is not None:
        is_bool = mask.dtype == torch.bool
        weights = weights.masked_fill(~mask, 0.0) if is_bool else weights * mask.exp()
    total = weights.sum(dim=-1, keepdim=True)
    error_bound = torch.finfo(weights.dtype).eps ** 0.5 * weights.abs().sum(
        dim=-1, keepdim=True
    )
    is_nonzero = total.abs() > error_bound
    return (weights / total.masked_fill(~is_nonzero, 1.0)).masked_fill(~is_nonzero, 0.0)


def compare(kernel, queries, keys, *, logarithm):
    """Compute the kernel of each head, or its logarithm, (B, n_heads, T_q, T_k).

    It has single precision at least, also under autocast. Kernels of the distance and the
    scaled dot product take all heads at once; other kernels compare one matrix after another.
    """
    with torch.autocast(queries.device.type, enabled=False):
        queries, keys = at_least_single(queries), at_least_single(keys)
        if isinstance(kernel, RadialKernel):
            # A kernel with a kink at 0 would show the square root of rounding errors.
            squared = squared_distances(queries, keys, exact=kernel.kinked)
            return kernel.log_profile(squared) if logarithm else kernel.profile(squared)
        if logarithm and isinstance(kernel, ScaledDotProduct):
            return queries * queries.shape[-1] ** -0.5 @ keys.mT
        compare_head = kernel.log if logarithm else kernel
        heads = zip(queries.flatten(0, 1), keys.flatten(0, 1), strict=True)
        values = [compare_head(q, k) for q, k in heads]
        shape = (*queries.shape[:2], queries.shape[2], keys.shape[2])
        return torch.stack(values).view(shape) if values else queries.new_zeros(shape)


def squared_distances(queries, keys, *, exact=False):
    """Compute squared Euclidean distances, (..., T_q, T_k).

    They are |q|^2 + |k|^2 - 2 q.k where this is accurate. Elsewhere, and with `exact`, rows are
    subtracted from rows, which is slower.
    """
    if exact or not expands_accurately(queries, keys):
        difference = torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist")
        return difference.square()
    norms = queries.square().sum(-1)[..., :, None] + keys.square().sum(-1)[..., None, :]
    return (norms - 2 * queries @ keys.mT).clamp_min(0)


@torch.no_grad()
def expands_accurately(queries, keys):
    """Return True if |q|^2 + |k|^2 - 2 q.k is accurate in the tensors' precision."""
    if queries.numel() == 0 or keys.numel() == 0:
        return True
    size = sum(x.square().sum(-1).max() for x in (queries, keys))
    # Rounding may change a squared distance by this much.
    tolerance = 1e-10 if queries.dtype == torch.float64 else 1e-4
    return bool(torch.finfo(queries.dtype).eps * size <= tolerance)


def _check_shapes(queries, keys, values):
    """Raise ValueError unless the shapes are those that `attention` needs."""
    for name, x in (("queries", queries), ("keys", keys), ("values", values)):
        if x.ndim != 4:
            raise ValueError(
                f"{name} must have shape (B, n_heads, T, head_dim), got {tuple(x.shape)}: add "
                "a dimension for heads with x[:, None]."
            )
    if queries.shape[3] != keys.shape[3] or not (
        queries.shape[:2] == keys.shape[:2] == values.shape[:2]
    ):
        raise ValueError(
            f"queries of shape {tuple(queries.shape)}, keys of shape {tuple(keys.shape)} and "
            f"values of shape {tuple(values.shape)} do not fit each other: pass all three with "
            "the same batch size and number of heads, and queries and keys with the same "
            "head_dim."
        )
    if keys.shape[2] != values.shape[2]:
        raise ValueError(
            f"there are {keys.shape[2]} keys but {values.shape[2]} values: pass one value for "
            "each key."
        )
