"""How parameters start."""

import math

import pytest
import torch
from torch_weights import scatter, tokens

from sklearn_attention.nn import (
    Decoder,
    Encoder,
    LearnedPositions,
    MultiHeadAttention,
    PointHead,
    initialize,
)


def make_model():
    return torch.nn.Sequential(
        Encoder(2, 16, 2, 64), LearnedPositions(50, 16), PointHead(16, 4), torch.nn.PReLU()
    )


def test_each_kind_of_parameter():
    model = scatter(make_model())
    before = model[3].weight.item()
    assert initialize(model, torch.Generator().manual_seed(0)) is model
    last = [part for block in model[0].blocks for part in last_layers(block)]
    kinds = [kind for kind in model.modules() if next(kind.children(), None) is None]
    for part in kinds:
        if part in last:
            assert (part.weight == 0).all()
            assert (part.bias == 0).all()
        elif isinstance(part, torch.nn.Linear):
            bound = math.sqrt(6 / (part.in_features + part.out_features))
            assert part.weight.abs().max() <= bound
            assert part.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.2)
            assert (part.bias == 0).all()
        elif isinstance(part, torch.nn.LayerNorm):
            assert (part.weight == 1).all()
            assert (part.bias == 0).all()
        elif isinstance(part, torch.nn.Embedding):
            assert part.weight.std().item() == pytest.approx(0.02, rel=0.1)
            assert abs(part.weight.mean().item()) < 0.003
    assert model[3].weight.item() == before


def test_the_generator_decides_and_the_global_one_is_untouched():
    model, seed = make_model(), torch.Generator().manual_seed
    state = torch.get_rng_state()
    first = [p.clone() for p in initialize(model, seed(0)).parameters()]
    again = [p.clone() for p in initialize(model, seed(0)).parameters()]
    other = [p.clone() for p in initialize(model, seed(1)).parameters()]
    assert torch.equal(torch.get_rng_state(), state)
    assert all(map(torch.equal, first, again))
    assert not all(map(torch.equal, first, other))


def test_modules_start_so():
    modules = [
        lambda: MultiHeadAttention(8, 2), lambda: Encoder(1, 8, 2, 16),
        lambda: Decoder(1, 8, 2, 16), lambda: PointHead(8, 3), lambda: LearnedPositions(9, 8),
    ]  # fmt: skip
    for make in modules:
        module = make()
        for part in module.modules():
            if isinstance(part, torch.nn.Linear):
                assert (part.bias == 0).all()
            elif isinstance(part, torch.nn.Embedding):
                assert part.weight.abs().max() < 0.2


@pytest.mark.parametrize("projections", ["full", "separate"])
def test_a_new_stack_adds_nothing_but_averages_without_projections(projections):
    x, source = tokens(4, 20, 32), tokens(4, 10, 32, seed=1)
    for out, added in (
        (Encoder(12, 32, 4, 64, projections=projections)(x)[0], projections == "separate"),
        (Decoder(3, 32, 4, 64, projections=projections)(x, source)[0], projections != "full"),
    ):
        assert torch.allclose(out, torch.nn.functional.layer_norm(x, (32,))) != added


def test_all_layers_of_a_deep_stack_learn_from_the_first_steps():
    """Nothing stays at 0, and gradients neither die nor explode."""
    encoder = initialize(Encoder(12, 32, 4, 128), torch.Generator().manual_seed(0))
    x, aim = tokens(4, 20, 32), tokens(4, 20, 32, seed=1)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=1.0)
    for _ in range(2):
        optimizer.zero_grad()
        (encoder(x)[0] - aim).square().mean().backward()
        optimizer.step()
    for layer in ("attention.query", "attention.value", "feedforward.widen"):
        norms = [block.get_submodule(layer).weight.grad.norm() for block in encoder.blocks]
        assert 0 < max(norms) < 30 * min(norms)


def last_layers(block):
    """Of both sublayers."""
    return block.attention.out, block.feedforward.narrow
