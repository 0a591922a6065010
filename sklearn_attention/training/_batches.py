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


def shuffled_batches(n_samples, sizes, generator, lengths=None):
    """Random batches of some sizes, which sum to `n_samples` at most, a list of LongTensor.

    Rows padded to the longest of their batch have `lengths` (n_samples,), similar in a batch.
    """
    order = torch.randperm(n_samples, generator=generator)
    batches = list(order[: sum(sizes)].split(sizes))
    if lengths is None:
        return batches
    # Batches whose rows are sorted by length together. Fewer would pad more, and more would
    # make batches of an epoch much like those of the last.
    together, arranged = 50, []
    for first in range(0, len(batches), together):
        some = batches[first : first + together]
        rows = torch.cat(some)
        rows = rows[lengths[rows].argsort(stable=True)]
        some = rows.split([len(batch) for batch in some])
        arranged += [some[i] for i in torch.randperm(len(some), generator=generator)]
    return arranged


def blocks_by_length(lengths, most_tokens, most_pairs=math.inf):
    """Positions of rows of similar length, in blocks of bounded size, padding included."""
    # A row longer than `most_tokens` is a block by itself; `most_pairs` bounds pairs of tokens
    # of the same row. The longest come first, so that a lack of memory shows at once.
    order = np.argsort(-lengths, kind="stable")
    blocks, first = [], 0
    while first < len(order):
        longest = max(1, int(lengths[order[first]]))
        n_rows = max(1, int(min(most_tokens // longest, most_pairs // longest**2, len(order))))
        blocks.append(order[first : first + n_rows])
        first += n_rows
    return blocks
