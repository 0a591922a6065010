"""Which rows are in which batch of an epoch."""

import torch

# Batches whose rows are sorted by length together. Fewer would pad more, and more would make
# batches of an epoch much like those of the last.
_SORTED_TOGETHER = 50


def shuffled_batches(n_samples, sizes, generator, lengths=None):
    """Random batches, of rows of similar length where rows have lengths.

    Parameters
    ----------
    n_samples : int
    sizes : list of int
        Of the batches; they sum to `n_samples` at most.
    generator : torch.Generator
    lengths : LongTensor of shape (n_samples,), default=None
        What batches are padded to the largest of.

    Returns
    -------
    batches : list of LongTensor
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
