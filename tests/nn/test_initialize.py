"""How parameters start."""

import math

import pytest
import torch
from torch_weights import scatter

from sklearn_attention.nn import Decoder, Encoder, LearnedPositions, MultiHeadAttention
from sklearn_attention.nn._heads import PointHead
from sklearn_attention.nn._initialize import initialize


def make_model():
    return torch.nn.Sequential(
        Encoder(2, 16, 2, 64), LearnedPositions(50, 16), PointHead(16, 4), torch.nn.PReLU()
    )


def test_each_kind_of_parameter():
    model = scatter(make_model())
    before = model[3].weight.item()
    assert initialize(model, torch.Generator().manual_seed(0)) is model
    kinds = [kind for kind in model.modules() if next(kind.children(), None) is None]
    for part in kinds:
        if isinstance(part, torch.nn.Linear):
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


def test_a_deep_stack_starts_with_signals_of_one_size():
    """Signals neither die nor explode through a deep stack."""
    encoder = initialize(Encoder(12, 32, 4, 128), torch.Generator().manual_seed(0))
    x = torch.randn(2, 10, 32, generator=torch.Generator().manual_seed(1)).requires_grad_(True)
    out, _ = encoder(x)
    assert 0.5 < out.std().item() < 2
    out.square().sum().backward()
    norms = [block.feedforward.widen.weight.grad.norm().item() for block in encoder.blocks]
    assert max(norms) < 30 * min(norms)
