"""Descent on few parameters."""

import pytest
import torch

from sklearn_attention.training import descend


def test_finds_the_minimum_of_a_quadratic():
    place, size = torch.zeros(3), torch.tensor(5.0)
    goal = torch.tensor([0.5, -1.0, 0.2])
    before = place
    descend(
        [place, size], lambda step: (place - goal).square().sum() + (size - 4) ** 2, 300, 0.1
    )
    assert place is before
    torch.testing.assert_close(place, goal, atol=1e-3, rtol=0)
    assert float(size) == pytest.approx(4, abs=1e-3)


def test_leaves_no_trace_in_the_parameters():
    place = torch.ones(2)
    descend([place], lambda step: place.square().sum(), 3, 0.1)
    assert not place.requires_grad
    assert place.grad is None
    assert not torch.equal(place, torch.ones(2))


def test_steps_are_counted():
    seen, place = [], torch.ones(2)

    def loss_at(step):
        seen.append(step)
        return place.square().sum()

    descend([place], loss_at, 4, 0.1)
    assert seen == [0, 1, 2, 3]


def test_the_rate_rises_and_falls():
    place, places = torch.zeros(1), []

    def loss_at(step):
        places.append(place.item())
        return place.sum()  # Adam's steps then are as long as its rate

    descend([place], loss_at, 40, 0.1)
    lengths = -torch.tensor(places).diff()
    longest = int(lengths.argmax())
    assert 0 < longest < 15
    assert lengths[longest] == pytest.approx(0.1, rel=0.2)
    assert max(lengths[0], lengths[-1]) < 0.02


def test_0_steps_change_nothing():
    place = torch.ones(2)

    def loss_at(step):
        raise AssertionError("nobody asks")

    descend([place], loss_at, 0, 0.1)
    assert torch.equal(place, torch.ones(2))
    assert not place.requires_grad


def test_nothing_to_learn():
    def loss_at(step):
        raise AssertionError("nobody asks")

    descend([], loss_at, 3, 0.1)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_loss_that_is_not_finite_is_an_error(bad):
    place = torch.ones(2)

    def loss_at(step):
        return place.sum() * (bad if step == 2 else 1.0)

    with pytest.raises(FloatingPointError, match=r"loss at step 2 is (nan|inf)"):
        descend([place], loss_at, 5, 0.1)
    assert not place.requires_grad
    assert place.grad is None
