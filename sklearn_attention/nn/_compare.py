"""A kernel between all queries and keys of every head at once."""

import torch

from ..kernels import RadialKernel, ScaledDotProduct

# How far rounding may move a squared distance before rows are subtracted one by one.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}


def compare(kernel, queries, keys, *, logarithm):
    """The kernel of all queries and keys of each head, or its logarithm."""
    # In single precision at least, also under autocast. Kernels of the distance and the scaled
    # dot product take all heads at once; others compare one matrix after the other.
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
    """Squared Euclidean distances, (..., T_q, T_k)."""
    # As |q|^2 + |k|^2 - 2 q.k where that is accurate. Elsewhere, and with `exact`, rows are
    # subtracted from rows, which is slower.
    if exact or not expands_accurately(queries, keys):
        difference = torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist")
        return difference.square()
    norms = queries.square().sum(-1)[..., :, None] + keys.square().sum(-1)[..., None, :]
    return (norms - 2 * queries @ keys.mT).clamp_min(0)


@torch.no_grad()
def expands_accurately(queries, keys):
    """True if distances are accurate as a dot product, in these tensors' precision."""
    if queries.numel() == 0 or keys.numel() == 0:
        return True
    size = sum(x.square().sum(-1).max() for x in (queries, keys))
    return bool(torch.finfo(queries.dtype).eps * size <= _TOLERANCE[queries.dtype])


def at_least_single(x):
    """The tensor in single precision if it was in half."""
    return x if x.dtype == torch.float64 else x.float()
