"""Rows held out, and batches: every row once, of like length where that is asked for."""

import math

import numpy as np
import pytest
import torch

from sklearn_attention import Training
from sklearn_attention.training import hold_out, train
from sklearn_attention.training._batches import blocks_by_length, shuffled_batches


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_bad_input_is_named():
    for n_samples, fraction, match in ((1, 0.3, "n_samples=1"), (10, math.nan, "fraction=nan")):
        with pytest.raises(ValueError, match=match):
            hold_out(n_samples, fraction, generator=generator())


@pytest.mark.parametrize("fraction", [0.1, 0.9])
def test_every_class_is_held_out_in_proportion(fraction):
    sizes = [100, 40, 20]
    strata = torch.arange(3).repeat_interleave(torch.tensor(sizes))
    left, held = hold_out(160, fraction, strata=strata, generator=generator())
    other = hold_out(160, fraction, strata=strata, generator=generator(1))[1]
    assert not torch.equal(held, other)
    assert sorted([*left.tolist(), *held.tolist()]) == list(range(160))
    for stratum, size in enumerate(sizes):
        assert abs((strata[held] == stratum).sum() - fraction * size) <= 1


def test_the_last_row_of_a_class_is_left():
    strata = torch.tensor([0] * 20 + [1, 2, 3])
    for seed in range(9):
        left, held = hold_out(23, 0.5, strata=strata, generator=generator(seed))
        assert set(strata[left].tolist()) == {0, 1, 2, 3}
        assert len(held) == 12


SIZES = [8] * 11 + [7] * 60


@pytest.mark.parametrize("lengths", [None, torch.arange(600) % 50], ids=["any", "similar"])
def test_every_row_is_in_one_batch(lengths):
    batches = shuffled_batches(600, SIZES, generator(), lengths)
    assert sorted(map(len, batches)) == sorted(SIZES)
    rows = torch.cat(batches)
    assert len(rows.unique()) == sum(SIZES)
    again = shuffled_batches(600, SIZES, generator(), lengths)
    assert all(map(torch.equal, batches, again))


def test_training_uses_them():
    lengths = torch.arange(64) % 8
    ranges = {}
    for name, given in (("mixed", None), ("similar", lengths)):
        seen = []

        def batch_loss(module, rows, seen=seen):
            seen.append(lengths[rows])
            return module(torch.ones(len(rows), 1)).square().mean()

        train(
            torch.nn.Linear(1, 1), batch_loss, 64, Training(), batch_size=8, max_epochs=1,
            random_state=0, lengths=given,
        )  # fmt: skip
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
