"""Rows held out, to validate with."""

import torch

from .._validation import check_in_open_interval, check_positive


def hold_out(n_samples, fraction, *, generator, strata=None):
    """Split rows at random into those to learn from and those to validate with.

    Parameters
    ----------
    n_samples : int
    fraction : float
        Share of the rows to validate with, between 0 and 1; at least one row, and at most all
        but one.
    generator : torch.Generator
    strata : LongTensor of shape (n_samples,), default=None
        The class of each row: every class is held out in proportion, and the last row of a
        class only where nothing else is left.

    Returns
    -------
    training, validation : LongTensor
        Positions of rows, ascending.

    Raises
    ------
    ValueError
        If there is no row to hold out or to learn from.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.training import hold_out
    >>> training, validation = hold_out(8, 0.25, generator=torch.Generator().manual_seed(0))
    >>> len(training), len(validation)
    (6, 2)
    """
    n_samples = check_positive("n_samples", n_samples, integer=True, minimum=2)
    fraction = check_in_open_interval("fraction", fraction, 0, 1)
    n_held = min(max(1, round(fraction * n_samples)), n_samples - 1)
    n_left = n_samples - n_held
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
