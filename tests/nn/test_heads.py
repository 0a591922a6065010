"""A head against plain matrix products, and the pinball loss against its definition."""

import numpy as np
import pytest
import torch
from torch_weights import padding_of, scatter, tokens

from sklearn_attention.nn._heads import PointHead, pinball_loss


class TestPoints:
    @pytest.mark.parametrize("n_tokens", [6, None])
    def test_is_linear_in_the_tokens(self, n_tokens):
        head = scatter(PointHead(4, horizon=3, n_tokens=n_tokens).double())
        x = tokens(5, 6, 4, dtype=torch.float64)
        weight, bias = (p.detach().numpy() for p in head.parameters())
        read = x.mean(dim=1) if n_tokens is None else x.reshape(5, 24)
        found = head(x)
        assert found.shape == (5, 3)
        np.testing.assert_allclose(found.detach(), read.numpy() @ weight.T + bias, atol=1e-12)

    @pytest.mark.parametrize("n_tokens", [6, None])
    def test_padding_does_not_count(self, n_tokens):
        head = scatter(PointHead(4, horizon=3, n_tokens=n_tokens).double())
        x, real = tokens(3, 6, 4, dtype=torch.float64), padding_of([6, 2, 0], 6)
        found = head(x, padding=real)
        filled = head(x.masked_fill(~real[..., None], torch.nan), padding=real)
        assert torch.equal(found, filled)
        assert torch.isfinite(found).all()
        assert torch.equal(found[0], head(x)[0])
        if n_tokens is None:
            np.testing.assert_allclose(
                found[1].detach(), head(x[1:2, :2])[0].detach(), atol=1e-12
            )


class TestPinballLoss:
    def test_definition(self):
        levels = [0.1, 0.5, 0.8]
        predictions = tokens(4, 2, 3, dtype=torch.float64)
        targets = tokens(4, 2, seed=1, dtype=torch.float64)
        total = 0.0
        for b, step, j in np.ndindex(4, 2, 3):
            error = (targets[b, step] - predictions[b, step, j]).item()
            total += levels[j] * error if error > 0 else (levels[j] - 1) * error
        found = pinball_loss(predictions, targets, levels)
        assert found.item() == pytest.approx(total / 24)
        assert found.dtype == torch.float64
        each = pinball_loss(predictions, targets, levels, reduction="none")
        assert each.shape == (4, 2, 3)
        assert each.mean() == found
        with pytest.raises(ValueError, match="reduction='sum' is unknown"):
            pinball_loss(predictions, targets, levels, reduction="sum")

    def test_of_the_median_is_half_the_absolute_error(self):
        predictions, targets = tokens(9), tokens(9, seed=1)
        found = pinball_loss(predictions[:, None], targets, [0.5])
        assert found.item() == pytest.approx((predictions - targets).abs().mean().item() / 2)

    def test_the_mean_is_least_at_the_quantile(self):
        targets = tokens(1001, dtype=torch.float64)
        grid = torch.linspace(-2, 2, 401, dtype=torch.float64)
        losses = [pinball_loss(c.expand(1001, 1), targets, [0.8]) for c in grid]
        best = grid[int(torch.stack(losses).argmin())]
        assert best.item() == pytest.approx(np.quantile(targets, 0.8), abs=0.02)


@pytest.mark.parametrize(
    "quantiles",
    [[], [0.5, 0.1], [0.5, 0.5], [0.0, 0.5], [0.5, 1.0], [1], "half", [np.nan], 1.5],
)
def test_bad_quantiles(quantiles):
    with pytest.raises(ValueError, match=r"quantiles=.*: (pass|every|each)"):
        pinball_loss(torch.zeros(2, 1), torch.zeros(2), quantiles)


def test_bad_input():
    for arguments, message in [
        ((0, 3), "d_model=0"),
        ((4, 0), "horizon=0"),
    ]:
        with pytest.raises(ValueError, match=message):
            PointHead(*arguments)
    with pytest.raises(ValueError, match="n_tokens=0"):
        PointHead(4, 3, n_tokens=0)
    head = PointHead(4, 3, n_tokens=6)
    for shape in [(2, 5, 4), (2, 6, 3), (6, 4)]:
        with pytest.raises(ValueError, match=r"tokens must have shape \(B, 6, 4\), got"):
            head(torch.zeros(shape))
    with pytest.raises(ValueError, match=r"tokens must have shape \(B, N, 4\), got"):
        PointHead(4, 3)(torch.zeros(2, 6, 3))
    with pytest.raises(ValueError, match=r"padding=.* \(2, 6\)"):
        head(torch.zeros(2, 6, 4), padding=torch.ones(2, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"predictions of shape \(2, 3\) do not fit"):
        pinball_loss(torch.zeros(2, 3), torch.zeros(2, 1), [0.1, 0.5, 0.9])
