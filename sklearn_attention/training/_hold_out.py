"""Rows kept back to judge what was learned from the others."""

import numbers

import torch

from .._validation import check_in_open_interval, check_positive


def hold_out(n_samples, fraction, *, chronological, generator=None, gap=0):
    """Split rows into those to learn from and those to validate with.

    Parameters
    ----------
    n_samples : int
    fraction : float
        Share of the rows to validate with, between 0 and 1; at least one row, and at most all
        but one.
    chronological : bool
        Whether the last rows are held out. Otherwise random ones are.
    generator : torch.Generator, default=None
        Draws the random rows; needed for them only.
    gap : int, default=0
        With `chronological`, so many rows before the first one held out belong to neither
        part. Windows that share time steps with those held out would tell about them.

    Returns
    -------
    training, validation : LongTensor
        Positions of rows, ascending.

    Raises
    ------
    ValueError
        If no row is left to learn from.

    Examples
    --------
    >>> from sklearn_attention.training import hold_out
    >>> hold_out(8, 0.25, chronological=True, gap=1)
    (tensor([0, 1, 2, 3, 4]), tensor([6, 7]))
    """
    n_samples = check_positive("n_samples", n_samples, integer=True, minimum=2)
    fraction = check_in_open_interval("fraction", fraction, 0, 1)
    if not isinstance(gap, numbers.Integral) or isinstance(gap, bool) or gap < 0:
        raise ValueError(f"gap={gap!r} is not valid: pass a whole number of rows, 0 or more.")
    n_held = min(max(1, round(fraction * n_samples)), n_samples - 1)
    n_left = n_samples - n_held
    if chronological:
        if gap >= n_left:
            raise ValueError(
                f"gap={gap!r} leaves no row to learn from: {n_held} of {n_samples} rows are "
                "held out; pass a smaller gap or fraction, or more rows."
            )
        rows = torch.arange(n_samples)
        return rows[: n_left - gap], rows[n_left:]
    if gap:
        raise ValueError(
            f"gap={gap!r} has no meaning among random rows: pass 0, or chronological=True."
        )
    if generator is None:
        raise ValueError(
            "generator=None cannot draw rows: pass a torch.Generator, or chronological=True."
        )
    shuffled = torch.randperm(n_samples, generator=generator)
    return shuffled[:n_left].sort().values, shuffled[n_left:].sort().values
