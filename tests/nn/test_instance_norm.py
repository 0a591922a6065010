"""Windows in their own units against NumPy, window by window."""

import numpy as np
import pytest
import torch
from torch_weights import tokens

from sklearn_attention.nn._instance_norm import InstanceNorm

DTYPES = {torch.float32: 1e-5, torch.float64: 1e-12}


def make_windows(dtype=torch.float64):
    levels = torch.tensor([[-50.0, 3.0], [0.0, 1e3], [7.0, 1e-3]], dtype=dtype)[:, None]
    return tokens(3, 20, 2, dtype=dtype) * levels.abs().clamp_min(1) / 10 + levels


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("center", ["mean", "last"])
def test_formula_and_way_back(center, scale, dtype):
    x, norm = make_windows(dtype), InstanceNorm(center, scale=scale)
    inner, units = norm(x)
    assert inner.dtype == dtype
    for window, channel in np.ndindex(3, 2):
        series = x[window, :, channel].double().numpy()
        level = series.mean() if center == "mean" else series[-1]
        spread = series.std() if scale else 1.0
        np.testing.assert_allclose(
            inner[window, :, channel], (series - level) / spread, atol=20 * DTYPES[dtype]
        )
        assert units.center[window, 0, channel].item() == pytest.approx(level)
        assert units.scale[window, 0, channel].item() == pytest.approx(spread)
    np.testing.assert_allclose(norm.reverse(inner, units), x, rtol=DTYPES[dtype])
    forecast = tokens(3, 5, 2, dtype=dtype)
    expected = forecast * units.scale + units.center
    assert torch.equal(norm.reverse(forecast, units), expected)


def test_windows_of_one_channel_take_columns_of_quantiles():
    norm = InstanceNorm()
    _, units = norm(make_windows()[..., :1])
    quantiles = tokens(3, 5, 9, dtype=torch.float64)
    found = norm.reverse(quantiles, units)
    for window in range(3):
        expected = quantiles[window] * units.scale[window] + units.center[window]
        assert torch.equal(found[window], expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("level", [0.0, 0.1, 1e6 / 3, -1e-20])
@pytest.mark.parametrize("center", ["mean", "last"])
def test_constant_windows_are_not_divided(center, level, dtype):
    x = torch.full((2, 37, 1), level, dtype=dtype, requires_grad=True)
    norm = InstanceNorm(center)
    inner, units = norm(x)
    assert (units.scale == 1).all()
    assert inner.abs().max() <= 1e-5 * abs(level)
    norm.reverse(inner.square(), units).sum().backward()
    assert torch.isfinite(x.grad).all()


def test_small_units_are_no_constants():
    x = 1e-12 * tokens(1, 30, 1, dtype=torch.float64)
    inner, _ = InstanceNorm()(x)
    assert inner.std(correction=0).item() == pytest.approx(1)


def test_a_window_of_one_step():
    inner, units = InstanceNorm()(torch.tensor([[[3.0]]]))
    assert inner.item() == 0
    assert (units.center.item(), units.scale.item()) == (3, 1)


def test_bad_input():
    with pytest.raises(ValueError, match="center='median' is unknown"):
        InstanceNorm("median")
    norm = InstanceNorm()
    with pytest.raises(
        ValueError, match=r"x must have shape \(B, T, n_channels\), got \(3, 4\)"
    ):
        norm(torch.zeros(3, 4))
    for n_channels, shape in [(1, (3, 5)), (1, (2, 5, 1)), (2, (3, 5, 3))]:
        _, units = norm(torch.zeros(3, 4, n_channels))
        with pytest.raises(ValueError, match=r"does not fit 3 windows"):
            norm.reverse(torch.zeros(shape), units)
