"""Generators of a thread's own, and dropout against its definition."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from sklearn_attention.nn import attention
from sklearn_attention.nn._random import Dropout, draw_from, generator_for, seeded_fused_kernel


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


def test_a_processor_is_not_seeded_for_fused_kernels():
    before = torch.get_rng_state()
    own = torch.Generator().manual_seed(0)
    with draw_from([own]), seeded_fused_kernel(torch.device("cpu")):
        pass
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(own.get_state(), torch.Generator().manual_seed(0).get_state())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.93])
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


def test_neighbours_are_dropped_independently():
    torch.manual_seed(0)
    kept = Dropout(0.5)(torch.ones(4, 100_000)).ne(0).double().flatten()
    for lag in (1, 2, 3, 4, 100_000):
        together = (kept[lag:] * kept[:-lag]).mean().item()
        assert abs(together - 0.25) < 5 * (0.25 * 0.75 / len(kept)) ** 0.5 * 1.5


@pytest.mark.parametrize("shape", [(), (1,), (3, 0), (2, 3, 5)])
def test_any_shape(shape):
    assert Dropout(0.5)(torch.ones(shape)).shape == shape


def test_the_seed_decides():
    draws = []
    for _ in range(2):
        torch.manual_seed(3)
        draws.append(Dropout(0.5)(torch.ones(50)))
    assert torch.equal(*draws)
    assert not torch.equal(draws[0], Dropout(0.5)(torch.ones(50)))


def test_nothing_is_dropped_once_trained_or_at_probability_0():
    x = torch.ones(7)
    assert torch.equal(Dropout(0.9).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


@pytest.mark.parametrize("probability", [-0.1, 1.0, "half"])
def test_bad_probability(probability):
    with pytest.raises(ValueError, match="dropout="):
        Dropout(probability)
