"""Pairs of sequences in batches, to learn from and to predict."""

import numpy as np
import torch

from ..text import pad
from ..text._special import PADDING
from ..training._batches import blocks_by_length
from ..training._fit_network import resolve_device
from ..training._network import threads_of_pass
from ._seq2seq_network import pair_loss

# Tokens that are computed at once where nothing is learned; each has a score for all tokens.
MOST_TOKENS = 2**13


class PairBatches:
    """Pairs to learn from, and pairs held out, by their positions in lists of ids."""

    def __init__(self, sources, targets, device, rows, held_out):
        device = resolve_device(device)
        self._parts = [torch.from_numpy(pad(ids)[0]).to(device) for ids in (sources, targets)]
        self._lengths = torch.tensor(
            [sum(map(len, p)) for p in zip(sources, targets, strict=True)]
        )
        self._rows, self._held_out = torch.from_numpy(rows), torch.from_numpy(held_out)

    def __len__(self):
        """Number of pairs to learn from."""
        return len(self._rows)

    @property
    def lengths(self):
        """Tokens of source and target of the pairs to learn from, LongTensor (n_pairs,)."""
        return self._lengths[self._rows]

    def loss(self, label_smoothing):
        """The loss of a batch, as :func:`~sklearn_attention.training.train` takes it."""

        def batch_loss(network, rows):
            batch = self._batch(self._rows[rows.cpu()])
            return pair_loss(network, *batch, label_smoothing=label_smoothing)

        return batch_loss

    def held_out_loss(self):
        """The mean loss of a token held out, as ``train`` takes it; None if there is none."""
        if len(self._held_out) == 0:
            return None
        found = blocks_by_length(self._lengths[self._held_out].numpy(), MOST_TOKENS)
        blocks = [self._held_out[torch.from_numpy(rows)] for rows in found]

        def validation_loss(network):
            total, n_tokens = 0.0, 0
            for rows in blocks:
                source, target = self._batch(rows)
                n = int((target[:, 1:] != PADDING).sum())
                total += n * pair_loss(network, source, target).item()
                n_tokens += n
            return total / n_tokens

        return validation_loss

    def arrays(self):
        """All parts of the batches, a list of ndarray."""
        rows = [self._rows.numpy()]
        return rows + [ids.numpy(force=True) for ids in self._parts]

    def _batch(self, rows):
        """Source and target of some pairs, without columns that have only padding."""
        batch = [ids[rows.to(ids.device)] for ids in self._parts]
        return [ids[:, : int((ids != PADDING).sum(dim=1).max())] for ids in batch]


@torch.no_grad()
def by_length(function, network, *parts, most_tokens=MOST_TOKENS):
    """Results of ``function(network, *ids)`` for sequences, those of similar length together.

    The function returns a list with one result per row; `parts` are lists of ids.
    """
    device = next(network.parameters()).device
    lengths = np.array([sum(map(len, row)) for row in zip(*parts, strict=True)])
    blocks = blocks_by_length(lengths, most_tokens)
    results = [None] * len(lengths)
    n_tokens = max(lengths[rows].sum() for rows in blocks)
    with threads_of_pass(network, n_tokens):
        for rows in blocks:
            ids = [torch.from_numpy(pad([part[i] for i in rows])[0]) for part in parts]
            found = function(network, *(x.to(device) for x in ids))
            for row, result in zip(rows, found, strict=True):
                results[row] = result
    return results
