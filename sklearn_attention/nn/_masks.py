"""Which key a query may look at: masks, and how several become one."""

import torch


def check_mask(name, mask, shape):
    """Return a mask as four-dimensional if it fits, else raise ValueError.

    Parameters
    ----------
    name : str
        Name of the parameter, for the message.
    mask : Tensor of bool or float
        Of two or four dimensions, broadcastable to `shape`.
    shape : tuple of int
        The expected (B, n_heads, T_q, T_k).

    Returns
    -------
    mask : Tensor of four dimensions
    """
    valid = isinstance(mask, torch.Tensor) and (
        mask.dtype == torch.bool or mask.is_floating_point()
    )
    if not valid or mask.ndim not in (2, 4):
        what = (
            f"{mask.dtype} of shape {tuple(mask.shape)}"
            if isinstance(mask, torch.Tensor)
            else repr(mask)
        )
        raise ValueError(
            f"{name}={what} is not valid: pass a tensor of bool, True where a key may be "
            "attended, or of floats to be added to the logits, of shape (T_q, T_k) or "
            "(B, n_heads, T_q, T_k)."
        )
    whole = mask if mask.ndim == 4 else mask[None, None]
    if any(have not in (1, want) for have, want in zip(whole.shape, shape, strict=True)):
        raise ValueError(
            f"{name} of shape {tuple(mask.shape)} does not fit {tuple(shape)}, which is (B, "
            "n_heads, T_q, T_k): pass that, or 1 where all share the mask."
        )
    return whole


def check_padding(name, padding, shape):
    """Return padding as a mask of shape (B, 1, 1, S), else raise ValueError.

    Parameters
    ----------
    name : str
        Name of the parameter, for the message.
    padding : Tensor of bool, of shape (B, S)
        True where a token is real.
    shape : tuple of int
        The expected (B, S).

    Returns
    -------
    mask : Tensor of bool, of shape (B, 1, 1, S)
    """
    valid = isinstance(padding, torch.Tensor) and padding.dtype == torch.bool
    if not valid or tuple(padding.shape) != tuple(shape):
        what = (
            f"{padding.dtype} of shape {tuple(padding.shape)}"
            if isinstance(padding, torch.Tensor)
            else repr(padding)
        )
        raise ValueError(
            f"{name}={what} is not valid: pass a tensor of bool of shape {tuple(shape)}, True "
            "where a token is real."
        )
    return padding[:, None, None]


def causal_mask(n_steps, device=None, *, n_before=0):
    """The mask by which step t sees the steps 1 to t, itself included, and all before.

    Parameters
    ----------
    n_steps : int
    device : torch.device, default=None
    n_before : int, default=0
        How many keys come before the first step.

    Returns
    -------
    mask : Tensor of bool, of shape (1, 1, n_steps, n_before + n_steps)
    """
    shape = (1, 1, n_steps, n_before + n_steps)
    return torch.ones(shape, dtype=torch.bool, device=device).tril_(n_before)


def join_masks(mask, other):
    """One mask that allows what both allow.

    Parameters
    ----------
    mask : Tensor of bool or float, or None
        None allows everything.
    other : Tensor of bool, or None

    Returns
    -------
    mask : Tensor of bool or float, or None
        Float where the first is: what the second forbids is -inf.
    """
    if mask is None or other is None:
        return other if mask is None else mask
    if mask.dtype == torch.bool:
        return mask & other
    return mask.masked_fill(~other, -torch.inf)


def empty_rows(mask):
    """Where a query may look at no key at all.

    Parameters
    ----------
    mask : Tensor of bool or float, of shape (..., T_k)

    Returns
    -------
    empty : Tensor of bool, of shape (..., 1)
    """
    if mask.dtype == torch.bool:
        return ~mask.any(dim=-1, keepdim=True)
    return torch.isneginf(mask).all(dim=-1, keepdim=True)


def open_rows(mask, rows):
    """The mask with every key allowed in some rows.

    Parameters
    ----------
    mask : Tensor of bool or float
    rows : Tensor of bool, of shape (..., 1)

    Returns
    -------
    mask : Tensor like the one passed
    """
    return mask | rows if mask.dtype == torch.bool else mask.masked_fill(rows, 0.0)
