"""Rows that are held out, and rows that are computed together in batches."""

import math
from typing import Any

import numpy as np
import torch

from .._validation import check_in_open_interval, check_positive


def hold_out(n_samples, fraction, *, generator, strata=None) -> Any:
    """Split rows at random into those for training and those for validation.

    It is the split of the estimators that train a network; for data of your own take
    :func:`sklearn.model_selection.train_test_split`.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    fraction : float
        Share of the rows to validate with, between 0 and 1. At least one row is held out, and
        at most all but one.
    generator : torch.Generator
        Draws the rows.
    strata : LongTensor of shape (n_samples,), default=None
        The class of each row. The same share of the rows of each class is held out; the last
        row of a class is held out only if no other rows are left.

    Returns
    -------
    training, validation : LongTensor
        Positions of rows, in ascending order.

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
        shuffled = _interleave_strata(shuffled, strata)
    return shuffled[:n_left].sort().values, shuffled[n_left:].sort().values


def _interleave_strata(rows, strata):
    """Reorder shuffled rows so that the last n, for any n, have the strata in proportion.

    `rows` are positions, and `strata` (n_samples,) has the class of each row.
    """
    rows = rows[strata[rows].argsort(stable=True)]
    sizes = strata[rows].unique_consecutive(return_counts=True)[1]
    number = torch.cat([torch.arange(int(size)) for size in sizes])
    # Rows are sorted by their relative positions within their strata, except that the first row
    # of each stratum comes before all others, so that it is the last to be held out.
    fraction = (number + 0.5) / sizes.repeat_interleave(sizes)
    return rows[torch.where(number > 0, fraction, -1.0).argsort(stable=True)]


def shuffled_batches(n_samples, sizes, generator, lengths=None):
    """Draw random batches of rows; return a list of LongTensor of positions.

    `sizes` are the sizes of the batches, whose sum is at most `n_samples`. If rows are padded
    to the longest row of their batch, pass their `lengths` (n_samples,), so that the rows of a
    batch have similar lengths.
    """
    order = torch.randperm(n_samples, generator=generator)
    batches = list(order[: sum(sizes)].split(sizes))
    if lengths is None:
        return batches
    # The rows of 50 batches are sorted by length together. With fewer batches, more padding is
    # needed, and with more, batches of one epoch would be much like those of the last.
    n_together, batches_by_length = 50, []
    for first in range(0, len(batches), n_together):
        group = batches[first : first + n_together]
        rows = torch.cat(group)
        rows = rows[lengths[rows].argsort(stable=True)]
        group = rows.split([len(batch) for batch in group])
        order = torch.randperm(len(group), generator=generator)
        batches_by_length += [group[i] for i in order]
    return batches_by_length


def blocks_by_length(lengths, most_tokens, most_pairs=math.inf):
    """Split rows of `lengths` (n_rows,) into blocks of similar length and bounded size.

    Returns a list with the positions of the rows of each block. With its padding, a block has
    at most `most_tokens` tokens, and at most `most_pairs` pairs of tokens of the same row. A
    row that has more is a block by itself. The longest rows come first, so that a lack of
    memory shows at once.
    """
    order = np.argsort(-lengths, kind="stable")
    blocks, first = [], 0
    while first < len(order):
        longest = max(1, int(lengths[order[first]]))
        n_rows = max(1, int(min(most_tokens // longest, most_pairs // longest**2, len(order))))
        blocks.append(order[first : first + n_rows])
        first += n_rows
    return blocks
