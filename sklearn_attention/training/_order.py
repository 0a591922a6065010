"""Rows that are computed together: in a batch of an epoch, or where nothing is learned."""

import math

import numpy as np
import torch

# Batches whose rows are sorted by length together. Fewer would pad more, and more would make
# batches of an epoch much like those of the last.
_SORTED_TOGETHER = 50


def shuffled_batches(n_samples, sizes, generator, lengths=None):
    """Random batches of some sizes, which sum to `n_samples` at most, a list of LongTensor.

    Rows padded to the longest of their batch have `lengths` (n_samples,), similar in a batch.
    """
    order = torch.randperm(n_samples, generator=generator)
    batches = list(order[: sum(sizes)].split(sizes))
    if lengths is None:
        return batches
    arranged = []
    for first in range(0, len(batches), _SORTED_TOGETHER):
        some = batches[first : first + _SORTED_TOGETHER]
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
