"""Attention in several heads, against the table of its formulas."""

import numpy as np
import pytest
import torch
from torch_weights import (
    padding_of,
    scatter,
    tokens,
)

from sklearn_attention.kernels import Matern32
from sklearn_attention.kernels._base import as_kernel
from sklearn_attention.nn import (
    MultiHeadAttention,
)

SIMPLE = ("none", "shared", "separate")


def slow_heads(layer, x, kernel):
    """Self-attention token by token, from the table of formulas."""
    x = x.double().numpy()
    weight = {name: p.detach().double().numpy() for name, p in layer.named_parameters()}
    kind = layer.projections
    identity = np.eye(layer.d_model)
    of_key = identity if kind == "none" else weight["key.weight"]
    of_query = weight["query.weight"] if kind in ("full", "separate") else of_key
    of_value = weight["value.weight"] if kind == "full" else identity
    of_out = weight["out.weight"] if kind == "full" else identity
    width = layer.d_model // layer.n_heads
    result = np.zeros(x.shape)
    for b in range(len(x)):
        averaged = np.zeros(x[b].shape)
        for head in range(layer.n_heads):
            part = slice(head * width, (head + 1) * width)
            q, k, v = ((x[b] @ m.T)[:, part] for m in (of_query, of_key, of_value))
            for t in range(len(q)):
                w = kernel(q[[t]], k)[0]
                averaged[t, part] = (w / w.sum()) @ v
        result[b] = averaged @ of_out.T
    return result


@pytest.mark.parametrize("name", ["scaled_dot_product", "gaussian"])
@pytest.mark.parametrize("projections", ["full", *SIMPLE])
def test_projections_are_their_formulas(projections, name):
    layer = MultiHeadAttention(6, 2, kernel=name, projections=projections, bias=False)
    layer = scatter(layer.double())
    x = tokens(2, 5, 6, dtype=torch.float64)
    expected = slow_heads(layer, x, as_kernel(name))
    for source in (None, x.clone()):
        for need_weights in (False, True):
            found = layer(x, source, need_weights=need_weights)[0].detach()
            np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("projections", "kernel"), [("full", Matern32()), ("shared", "scaled_dot_product")]
)
def test_padding_never_changes_an_answer(projections, kernel):
    layer = scatter(MultiHeadAttention(6, 2, kernel=kernel, projections=projections).double())
    x, real = tokens(2, 6, 6, dtype=torch.float64), padding_of([6, 4], 6)
    filled = x.masked_fill(~real[..., None], 77.0)
    alone, _ = layer(x[1:, :4])
    for need_weights in (False, True):
        for batch in (x, filled):
            together, weights = layer(batch, padding=real, need_weights=need_weights)
            np.testing.assert_allclose(together[1:, :4].detach(), alone.detach(), atol=1e-10)
    assert (weights[1, :, :, 4:] == 0).all()


class TestBadInputOfALayer:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"d_model": 10, "n_heads": 3}, "n_heads=3 does not divide d_model=10"),
            ({"d_model": 0}, "d_model=0"),
            ({"d_model": 8, "projections": "half"}, "projections='half' is unknown"),
            ({"d_model": 8, "projections": "shared", "d_source": 4}, "d_source=4 differs"),
            ({"d_model": 6, "n_heads": 2, "rotary": True}, "head_dim=3 is not valid"),
        ],
    )
    def test_parameters(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            MultiHeadAttention(**arguments)

    def test_inputs(self):
        layer, x = MultiHeadAttention(8), tokens(2, 5, 8)
        with pytest.raises(ValueError, match=r"queries must have shape \(B, T, 8\), got"):
            layer(x[0])
        with pytest.raises(ValueError, match=r"source must have shape \(B, T, 8\), got"):
            layer(x, x[..., :4])
        with pytest.raises(ValueError, match=r"padding=.* of bool of shape \(2, 5"):
            layer(x, padding=torch.ones(2, 4, dtype=torch.bool))
        with pytest.raises(ValueError, match=r"mask of shape \(5, 4\) does not fit \(B"):
            layer(x, mask=torch.ones(5, 4), padding=torch.ones(2, 5, dtype=torch.bool))
        with pytest.raises(ValueError, match="same batch size and number of"):
            layer(x, x[:1])
