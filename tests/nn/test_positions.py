"""Encodings of positions against their formulas, element by element."""

import math

import pytest
import torch
from torch_weights import tokens

from sklearn_attention.nn import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    sinusoidal_encoding,
)


@pytest.mark.parametrize("base", [10_000.0, 50.0])
def test_sinusoidal_formula(base):
    encoding = sinusoidal_encoding(30, 8, base=base)
    for t in range(30):
        for k in range(4):
            angle = t / base ** (2 * k / 8)
            assert encoding[t, 2 * k].item() == pytest.approx(math.sin(angle))
            assert encoding[t, 2 * k + 1].item() == pytest.approx(math.cos(angle))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
class TestCombined:
    def test_sinusoidal(self, dtype):
        x = tokens(2, 9, 6, dtype=dtype)
        encoding = sinusoidal_encoding(9, 6).to(dtype)
        added = SinusoidalPositions(6)(x)
        assert added.dtype == dtype
        assert torch.equal(added, x + encoding)
        wide = SinusoidalPositions(4, combine="concatenate")(x)
        assert torch.equal(wide[..., :6], x)
        assert torch.equal(wide[1, :, 6:], sinusoidal_encoding(9, 4).to(dtype))

    def test_learned(self, dtype):
        x = tokens(2, 9, 6, dtype=dtype)
        layer = LearnedPositions(12, 6).to(dtype)
        assert torch.equal(layer(x), x + layer.table.weight[:9])
        layer(x).sum().backward()
        gradient = layer.table.weight.grad
        assert (gradient[:9] == 2).all()
        assert (gradient[9:] == 0).all()
        wide = LearnedPositions(12, 4, combine="concatenate").to(dtype)
        assert wide(x).shape == (2, 9, 10)
        assert torch.equal(wide(x)[1, :, 6:], wide.table.weight[:9])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SinusoidalPositions(5), "d_position=5 is not valid: pass an even number"),
        (lambda: SinusoidalPositions(4, combine="multiply"), "combine='multiply' is unknown"),
        (lambda: LearnedPositions(0, 4), "max_length=0"),
        (lambda: RotaryPositions(3), "head_dim=3 is not valid"),
        (lambda: SinusoidalPositions(4)(torch.zeros(1, 2, 6)), "d_position=4 cannot be added"),
        (lambda: LearnedPositions(3, 4)(torch.zeros(1, 4, 4)), "max_length=3 is too short"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


class TestRotationsAsComplexNumbers:
    """Whatever lies in memory how, and whatever was computed before."""

    def slow(self, x, first):
        width, rotated = x.shape[-1], torch.empty_like(x, dtype=torch.float64)
        for t in range(x.shape[-2]):
            for k in range(width // 2):
                angle = (first + t) * 10_000.0 ** (-2 * k / width)
                cos, sin = math.cos(angle), math.sin(angle)
                a, b = x[..., t, 2 * k].double(), x[..., t, 2 * k + 1].double()
                rotated[..., t, 2 * k] = a * cos - b * sin
                rotated[..., t, 2 * k + 1] = a * sin + b * cos
        return rotated

    @pytest.mark.parametrize(
        ("layout", "dtype", "first"),
        [
            ("plain", torch.float64, 5), ("plain", torch.bfloat16, 0),
            ("heads", torch.float32, 1), ("odd offset", torch.float32, 0),
            ("odd stride", torch.float32, 5),
        ],
    )  # fmt: skip
    def test_against_pair_after_pair(self, dtype, first, layout):
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(2, 3, 7, 4, generator=generator)
        if layout == "heads":
            x = torch.randn(2, 7, 3, 4, generator=generator).transpose(1, 2)
        elif layout == "odd offset":
            x = torch.randn(2, 3, 7, 6, generator=generator)[..., 1:5]
        elif layout == "odd stride":
            x = torch.randn(2, 3, 7, 5, generator=generator)[..., :4]
        x = x.to(dtype)
        found = RotaryPositions(4)(x, first)
        assert found.dtype == dtype
        assert found.shape == x.shape
        error = 1e-2 if dtype == torch.bfloat16 else 1e-6
        torch.testing.assert_close(found.double(), self.slow(x, first), rtol=error, atol=error)

    def test_what_was_computed_without_gradients_serves_later(self):
        with torch.inference_mode():
            RotaryPositions(10)(torch.randn(1, 1, 33, 10))
        x = torch.randn(1, 1, 33, 10, requires_grad=True)
        RotaryPositions(10)(x).square().sum().backward()
        # Rotations keep lengths.
        torch.testing.assert_close(x.grad, 2 * x.detach(), rtol=1e-4, atol=1e-5)
