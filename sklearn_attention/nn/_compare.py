"""A kernel between all queries and keys of every head at once."""

import torch

from ..kernels import RadialKernel, ScaledDotProduct

# How far rounding may move a squared distance before rows are subtracted one by one.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}


def compare(kernel, queries, keys, *, logarithm):
    """The kernel, or its logarithm, of every query and key of the same head.

    Computed in single precision at least, whatever autocast says. Kernels of the distance and
    the scaled dot product take all heads in one go; the others, which see one matrix at a
    time, one after the other.

    Parameters
    ----------
    kernel : Kernel
    queries : Tensor of shape (B, n_heads, T_q, head_dim)
    keys : Tensor of shape (B, n_heads, T_k, head_dim)
    logarithm : bool

    Returns
    -------
    values : Tensor of shape (B, n_heads, T_q, T_k)
    """
    with torch.autocast(queries.device.type, enabled=False):
        queries, keys = at_least_single(queries), at_least_single(keys)
        if isinstance(kernel, RadialKernel):
            # With a kink at 0 a kernel would show the root of the error of an expansion.
            squared = squared_distances(queries, keys, exact=kernel.kinked)
            return kernel.log_profile(squared) if logarithm else kernel.profile(squared)
        if logarithm and isinstance(kernel, ScaledDotProduct):
            return queries * queries.shape[-1] ** -0.5 @ keys.mT
        of_one = kernel.log if logarithm else kernel
        heads = zip(queries.flatten(0, 1), keys.flatten(0, 1), strict=True)
        values = [of_one(q, k) for q, k in heads]
        shape = (*queries.shape[:2], queries.shape[2], keys.shape[2])
        return torch.stack(values).view(shape) if values else queries.new_zeros(shape)


def squared_distances(queries, keys, *, exact=False):
    r"""Squared Euclidean distances, :math:`|q|^2 + |k|^2 - 2 q^\top k` where that is accurate.

    Parameters
    ----------
    queries : Tensor of shape (..., T_q, head_dim)
    keys : Tensor of shape (..., T_k, head_dim)
    exact : bool, default=False
        Whether to subtract row from row, which is slower, in any case.

    Returns
    -------
    squared : Tensor of shape (..., T_q, T_k)
    """
    if exact or not expands_accurately(queries, keys):
        difference = torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist")
        return difference.square()
    norms = queries.square().sum(-1)[..., :, None] + keys.square().sum(-1)[..., None, :]
    return (norms - 2 * queries @ keys.mT).clamp_min(0)


@torch.no_grad()
def expands_accurately(queries, keys):
    """Whether distances survive being written as a dot product, in these tensors' precision.

    Parameters
    ----------
    queries, keys : Tensor of shape (..., head_dim)

    Returns
    -------
    accurate : bool
    """
    if queries.numel() == 0 or keys.numel() == 0:
        return True
    size = sum(x.square().sum(-1).max() for x in (queries, keys))
    return bool(torch.finfo(queries.dtype).eps * size <= _TOLERANCE[queries.dtype])


def at_least_single(x):
    """The tensor in single precision if it was in half.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    x : Tensor of float32 or float64
    """
    return x if x.dtype == torch.float64 else x.float()
