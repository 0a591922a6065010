"""Masks of the keys that a query may attend to, and how several become one."""

import torch


def check_mask(name, mask, shape):
    """A mask as four-dimensional if it fits (B, n_heads, T_q, T_k), else raise ValueError."""
    valid = isinstance(mask, torch.Tensor) and (
        mask.dtype == torch.bool or mask.is_floating_point()
    )
    if not valid or mask.ndim not in (2, 4):
        raise ValueError(
            f"{name}={_shown(mask)} is not valid: pass a tensor of bool, True where a key may "
            "be attended, or of floats to be added to the logits, of shape (T_q, T_k) or "
            "(B, n_heads, T_q, T_k)."
        )
    whole = mask if mask.ndim == 4 else mask[None, None]
    if any(have not in (1, want) for have, want in zip(whole.shape, shape, strict=True)):
        raise ValueError(
            f"{name} of shape {tuple(mask.shape)} does not fit (B, n_heads, T_q, T_k) = "
            f"{tuple(shape)}: pass a mask of that shape, or with size 1 in each dimension in "
            "which it is the same for all, such as (B, 1, T_q, T_k) for all heads."
        )
    return whole


def check_padding(name, padding, shape):
    """Padding (B, S), True for real tokens, as a mask (B, 1, 1, S), else raise ValueError."""
    valid = isinstance(padding, torch.Tensor) and padding.dtype == torch.bool
    if not valid or tuple(padding.shape) != tuple(shape):
        raise ValueError(
            f"{name}={_shown(padding)} is not valid: pass a tensor of bool of shape "
            f"{tuple(shape)}, True where a token is real."
        )
    return padding[:, None, None]


def _shown(x):
    """What was passed for a mask, in messages."""
    return f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)


def causal_mask(n_steps, device=None, *, n_before=0):
    """Mask (1, 1, T, n_before + T) by which a step attends to itself and all before."""
    shape = (1, 1, n_steps, n_before + n_steps)
    return torch.ones(shape, dtype=torch.bool, device=device).tril_(n_before)


def join_masks(mask, other):
    """One mask that allows what both allow; None allows all, and floats stay floats."""
    if mask is None or other is None:
        return other if mask is None else mask
    return mask & other if mask.dtype == torch.bool else mask_logits(mask, other)


def mask_logits(logits, mask):
    """Logits, -inf where a mask of bool is False, or with one of floats added."""
    boolean = mask.dtype == torch.bool
    return logits.masked_fill(~mask, -torch.inf) if boolean else logits + mask


def empty_rows(mask):
    """Queries for which a mask (..., T_k) allows no key, (..., 1)."""
    if mask.dtype == torch.bool:
        return ~mask.any(dim=-1, keepdim=True)
    return torch.isneginf(mask).all(dim=-1, keepdim=True)


def open_rows(mask, rows):
    """The mask with every key allowed in some rows (..., 1)."""
    return mask | rows if mask.dtype == torch.bool else mask.masked_fill(rows, 0.0)
