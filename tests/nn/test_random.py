"""Starting values, generators of a thread's own, and dropout against its definition."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch_weights import scatter

from sklearn_attention.nn import Dropout, Encoder, LearnedPositions, attention
from sklearn_attention.nn._random import (
    draw_from,
    generator_for,
    initialize,
)


def dropped():
    """Dropout of entries, and of the weights of more pairs than are kept at once."""
    x = torch.linspace(0, 1, 2100)[None, None, :, None]
    return [Dropout(0.5)(torch.ones(50)), attention(x, x, x, dropout=0.5)[0]]


def test_a_thread_may_draw_from_its_own_generators():
    before, found = torch.get_rng_state(), []
    for seed in (1, 1, 2):
        with draw_from([torch.Generator().manual_seed(seed)]):
            found.append(dropped())
    assert torch.equal(torch.get_rng_state(), before)
    assert all(map(torch.equal, found[0], found[1]))
    assert not any(map(torch.equal, found[0], found[2]))


def test_own_generators_are_of_one_thread_and_for_a_time():
    one, other = torch.Generator(), torch.Generator()
    with ThreadPoolExecutor(1) as pool, draw_from([one]):
        assert generator_for() is one
        assert pool.submit(generator_for).result() is None
        with draw_from([other]):
            assert generator_for("cpu") is other
        with pytest.raises(ZeroDivisionError), draw_from([other]):
            raise ZeroDivisionError
        assert generator_for() is one
    assert generator_for() is None


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", ["scaled_dot_product", "gaussian", "laplacian"])
def test_on_a_cuda_device_too(kernel):
    device, found = torch.device("cuda"), []
    x = torch.randn(2, 2, 300, 16, device=device, requires_grad=True)
    before, on_cpu = torch.cuda.get_rng_state(), torch.get_rng_state()
    for seed in (1, 1, 2):
        own = [torch.Generator(place).manual_seed(seed) for place in ("cpu", device)]
        with draw_from(own):
            averages = attention(x, x, x, kernel, dropout=0.5)[0]
            (gradient,) = torch.autograd.grad(averages.sum(), x)
            found.append([averages, gradient, Dropout(0.5)(x)])
    assert torch.equal(torch.cuda.get_rng_state(), before)
    assert torch.equal(torch.get_rng_state(), on_cpu)
    for own, again, other in zip(*found, strict=True):
        torch.testing.assert_close(own, again)
        assert not torch.allclose(own, other)


@pytest.mark.parametrize(
    ("probability", "dtype"),
    [(0.1, torch.float32), (0.5, torch.float64), (0.93, torch.bfloat16)],
)
def test_so_many_are_dropped_and_the_others_grow(probability, dtype):
    torch.manual_seed(0)
    x = torch.ones(401, 501, dtype=dtype, requires_grad=True)
    out = Dropout(probability)(x)
    kept = out != 0
    n = x.numel()
    # Five standard deviations.
    wide = 5 * (n * probability * (1 - probability)) ** 0.5
    assert abs((~kept).sum().item() - n * probability) < wide
    torch.testing.assert_close(
        out[kept], torch.full_like(out[kept], 1 / (1 - probability)), rtol=1e-2, atol=0
    )
    # What is dropped has no part in the gradient.
    out.sum().backward()
    torch.testing.assert_close(x.grad, out.detach())


def test_nothing_is_dropped_once_trained_or_at_probability_0():
    x = torch.ones(7)
    assert torch.equal(Dropout(0.9).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    with pytest.raises(ValueError, match="dropout=1"):
        Dropout(1.0)


def make_model():
    linear, other = torch.nn.Linear(16, 4), torch.nn.PReLU()
    return torch.nn.Sequential(Encoder(2, 16, 2, 64), LearnedPositions(50, 16), linear, other)


def test_each_kind_of_parameter():
    model = scatter(make_model())
    before = model[3].weight.item()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert initialize(model) is model
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
