"""Batches: every row once, and of like length where that is asked for."""

import math

import numpy as np
import pytest
import torch

from sklearn_attention.training import Plan, train
from sklearn_attention.training._order import blocks_by_length, shuffled_batches

SIZES = [8] * 11 + [7] * 60


def generator():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("lengths", [None, torch.arange(600) % 50], ids=["any", "similar"])
def test_every_row_is_in_one_batch(lengths):
    batches = shuffled_batches(600, SIZES, generator(), lengths)
    assert sorted(map(len, batches)) == sorted(SIZES)
    rows = torch.cat(batches)
    assert len(rows.unique()) == sum(SIZES)
    again = shuffled_batches(600, SIZES, generator(), lengths)
    assert all(map(torch.equal, batches, again))


def test_rows_of_a_batch_have_similar_lengths():
    lengths = torch.randint(1, 100, (600,), generator=generator())

    def padding(batches):
        return sum(int((lengths[b].max() - lengths[b]).sum()) for b in batches)

    mixed = padding(shuffled_batches(600, SIZES, generator()))
    assert padding(shuffled_batches(600, SIZES, generator(), lengths)) < 0.2 * mixed


def test_short_rows_do_not_come_first():
    lengths = torch.arange(600)
    first = [
        shuffled_batches(600, SIZES, generator().manual_seed(s), lengths)[0] for s in range(9)
    ]
    means = torch.tensor([lengths[rows].double().mean() for rows in first])
    assert means.max() - means.min() > 150


def test_training_uses_them():
    lengths = torch.arange(64) % 8
    ranges = {}
    for name, given in (("mixed", None), ("similar", lengths)):
        seen = []

        def batch_loss(module, rows, seen=seen):
            seen.append(lengths[rows])
            return module(torch.ones(len(rows), 1)).square().mean()

        plan = Plan(batch_size=8, max_epochs=1)
        train(torch.nn.Linear(1, 1), batch_loss, 64, plan, random_state=0, lengths=given)
        ranges[name] = sum(int(x.max() - x.min()) for x in seen)
    assert ranges["similar"] == 0 < ranges["mixed"]


@pytest.mark.parametrize(("most_tokens", "most_pairs"), [(500, math.inf), (500, 4000), (9, 9)])
def test_blocks_are_as_large_as_both_limits_let_them_be(most_tokens, most_pairs):
    """Of tokens, and of pairs of tokens of the same row, padding included."""
    lengths = np.random.default_rng(0).integers(0, 40, 300)
    blocks = blocks_by_length(lengths, most_tokens, most_pairs)
    order = np.concatenate(blocks)
    np.testing.assert_array_equal(np.sort(order), np.arange(300))
    assert (np.diff(lengths[order]) <= 0).all()

    def fit(n_rows, longest):
        return n_rows * longest <= most_tokens and n_rows * longest**2 <= most_pairs

    for number, block in enumerate(blocks, 1):
        longest = max(1, lengths[block[0]])
        assert len(block) == 1 or fit(len(block), longest)
        assert number == len(blocks) or not fit(len(block) + 1, longest)
