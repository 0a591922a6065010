"""Dropout against its definition."""

import pytest
import torch

from sklearn_attention.nn import Dropout


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
