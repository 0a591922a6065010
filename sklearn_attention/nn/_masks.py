"""Masks of the keys that a query may attend to, and how several become one.

A mask broadcasts to (B, n_heads, T_q, T_k). True allows a key; floats are added to the logits.
"""

import torch


def check_mask(name, mask, shape):
    """Return a mask in four dimensions; raise ValueError unless it broadcasts to `shape`.

    The shape is (B, n_heads, T_q, T_k); `name` is the mask's name in messages.
    """
    is_mask = isinstance(mask, torch.Tensor) and (
        mask.dtype == torch.bool or mask.is_floating_point()
    )
    if not is_mask or mask.ndim not in (2, 4):
        raise ValueError(
            f"{name}={_shown(mask)} is not valid: pass a tensor of bool, True where a key may "
            "be attended, or of floats to be added to the logits, of shape (T_q, T_k) or "
            "(B, n_heads, T_q, T_k)."
        )
    expanded = mask if mask.ndim == 4 else mask[None, None]
    sizes = zip(expanded.shape, shape, strict=True)
    if any(size not in (1, full_size) for size, full_size in sizes):
        raise ValueError(
            f"{name} of shape {tuple(mask.shape)} does not fit (B, n_heads, T_q, T_k) = "
            f"{tuple(shape)}: pass a mask of that shape, or with size 1 in each dimension in "
            "which it is the same for all, such as (B, 1, T_q, T_k) for all heads."
        )
    return expanded


def check_padding(name, padding, shape):
    """Return padding (B, S), True for real tokens, as a mask (B, 1, 1, S); check its shape."""
    is_bool = isinstance(padding, torch.Tensor) and padding.dtype == torch.bool
    if not is_bool or tuple(padding.shape) != tuple(shape):
        raise ValueError(
            f"{name}={_shown(padding)} is not valid: pass a tensor of bool of shape "
            f"{tuple(shape)}, True where a token is real."
        )
    return padding[:, None, None]


def _shown(x):
    """Describe what was passed for a mask, for messages."""
    return f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)


def causal_mask(n_steps, device=None, *, n_before=0):
    """Return a mask (1, 1, T, n_before + T) for T = `n_steps` queries of the last steps.

    Each step attends to itself and to all steps before, `n_before` stored ones included.
    """
    shape = (1, 1, n_steps, n_before + n_steps)
    return torch.ones(shape, dtype=torch.bool, device=device).tril_(n_before)


def join_masks(mask, other):
    """Join masks to one that allows what both allow; None allows all, floats stay floats."""
    if mask is None or other is None:
        return other if mask is None else mask
    return mask & other if mask.dtype == torch.bool else mask_logits(mask, other)


def mask_logits(logits, mask):
    """Set logits to -inf where a mask of bool is False, or add a mask of floats to them."""
    boolean = mask.dtype == torch.bool
    return logits.masked_fill(~mask, -torch.inf) if boolean else logits + mask


def empty_rows(mask):
    """Return True for queries to which a mask (..., T_k) allows no key, (..., 1)."""
    if mask.dtype == torch.bool:
        return ~mask.any(dim=-1, keepdim=True)
    return torch.isneginf(mask).all(dim=-1, keepdim=True)


def open_rows(mask, rows):
    """Allow every key in the rows of a mask where `rows` (..., 1) is True."""
    return mask | rows if mask.dtype == torch.bool else mask.masked_fill(rows, 0.0)
