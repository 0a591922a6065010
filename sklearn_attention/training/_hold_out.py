"""Rows kept back to judge what was learned from the others."""

import numbers

import torch

from .._validation import check_in_open_interval, check_positive


def hold_out(n_samples, fraction, *, chronological, generator=None, gap=0, strata=None):
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
    strata : LongTensor of shape (n_samples,), default=None
        For random rows, the class of each: every class is held out in proportion, and the last
        row of a class only where nothing else is left.

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
    if strata is not None:
        shuffled = _spread(shuffled, strata)
    return shuffled[:n_left].sort().values, shuffled[n_left:].sort().values


def _spread(rows, strata):
    """Shuffled rows in an order whose every end has the strata in proportion."""
    rows = rows[strata[rows].argsort(stable=True)]
    sizes = strata[rows].unique_consecutive(return_counts=True)[1]
    place = torch.cat([torch.arange(int(size)) for size in sizes])
    # The first row of each stratum before all others: it is the last to be held out.
    share = (place + 0.5) / sizes.repeat_interleave(sizes)
    return rows[torch.where(place > 0, share, -1.0).argsort(stable=True)]
