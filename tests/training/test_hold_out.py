"""Rows kept back."""

import math

import pytest
import torch

from sklearn_attention.training import hold_out


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("n", "fraction", "held"), [(10, 0.2, 2), (10, 0.01, 1), (3, 0.99, 2)])
def test_parts_are_disjoint_and_complete(n, fraction, held):
    training, validation = hold_out(n, fraction, generator=seeded())
    assert len(validation) == held
    assert sorted([*training.tolist(), *validation.tolist()]) == list(range(n))
    assert training.tolist() == sorted(training.tolist())


def test_the_generator_draws():
    found = [hold_out(50, 0.3, generator=seeded(s))[1] for s in (0, 0, 1)]
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_samples": 1}, "n_samples=1"),
        ({"fraction": 0}, "fraction=0"),
        ({"fraction": math.nan}, "fraction=nan"),
    ],
)
def test_bad_input_is_named(options, match):
    given = {"n_samples": 10, "fraction": 0.3, "generator": seeded()}
    with pytest.raises(ValueError, match=match):
        hold_out(**given | options)


class TestStrata:
    @pytest.mark.parametrize("fraction", [0.1, 0.2, 0.5, 0.9])
    def test_every_class_is_held_out_in_proportion(self, fraction):
        sizes = [100, 40, 20]
        strata = torch.arange(3).repeat_interleave(torch.tensor(sizes))
        train, held = hold_out(
            160, fraction, strata=strata,
            generator=torch.Generator().manual_seed(0),
        )  # fmt: skip
        assert sorted([*train.tolist(), *held.tolist()]) == list(range(160))
        for stratum, size in enumerate(sizes):
            assert abs((strata[held] == stratum).sum() - fraction * size) <= 1

    def test_the_last_row_of_a_class_is_left(self):
        strata = torch.tensor([0] * 20 + [1, 2, 3])
        for seed in range(20):
            generator = torch.Generator().manual_seed(seed)
            train, held = hold_out(23, 0.5, strata=strata, generator=generator)
            assert set(strata[train].tolist()) == {0, 1, 2, 3}
            assert len(held) == 12

    def test_rows_of_a_class_are_random(self):
        strata = torch.tensor([0, 1] * 10)
        drawn = {
            tuple(
                hold_out(
                    20, 0.2, strata=strata,
                    generator=torch.Generator().manual_seed(seed),
                )[1].tolist()
            )
            for seed in range(10)
        }  # fmt: skip
        assert len(drawn) > 5
