"""Attention in several heads against torch's own layer and against loops over heads."""

import numpy as np
import pytest
import torch
from torch_weights import copy_attention, padding_of, scatter, tokens

from sklearn_attention.kernels import Matern32
from sklearn_attention.kernels._base import as_kernel
from sklearn_attention.nn import MultiHeadAttention, attention

DTYPES = {torch.float32: 1e-6, torch.float64: 1e-12}
SIMPLE = ("none", "shared", "separate")


def torch_pair(d_model=16, n_heads=4, *, bias=True, dtype=torch.float32):
    theirs = torch.nn.MultiheadAttention(
        d_model, n_heads, bias=bias, batch_first=True, dtype=dtype
    )
    scatter(theirs)
    ours = MultiHeadAttention(d_model, n_heads, bias=bias).to(dtype)
    copy_attention(ours, theirs)
    return ours, theirs


class TestAgainstTorch:
    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("cross", [False, True])
    def test_plain(self, cross, bias, dtype):
        ours, theirs = torch_pair(bias=bias, dtype=dtype)
        x = tokens(3, 7, 16, dtype=dtype)
        source = tokens(3, 9, 16, seed=1, dtype=dtype) if cross else None
        keys = x if source is None else source
        expected, maps = theirs(x, keys, keys, average_attn_weights=False)
        for need_weights in (False, True):
            found, weights = ours(x, source, need_weights=need_weights)
            assert (found - expected).abs().max() <= DTYPES[dtype]
        assert (weights - maps).abs().max() <= DTYPES[dtype]

    @pytest.mark.parametrize("need_weights", [False, True])
    def test_causal_padding_and_masks_together(self, need_weights):
        ours, theirs = torch_pair()
        x, real = tokens(3, 7, 16), padding_of([7, 4, 1], 7)
        allowed = torch.ones(7, 7, dtype=torch.bool).tril()
        expected, _ = theirs(x, x, x, attn_mask=~allowed, key_padding_mask=~real)
        for options in ({"causal": True}, {"mask": allowed}):
            found, _ = ours(x, padding=real, need_weights=need_weights, **options)
            assert (found - expected).abs().max() <= 1e-6
        logits = tokens(7, 7, seed=5)
        as_floats = torch.zeros(3, 7).masked_fill(~real, -torch.inf)
        expected, _ = theirs(x, x, x, attn_mask=logits, key_padding_mask=as_floats)
        found, _ = ours(x, mask=logits, padding=real, need_weights=need_weights)
        assert (found - expected).abs().max() <= 1e-6

    def test_gradients(self):
        ours, theirs = torch_pair(dtype=torch.float64)
        x = tokens(3, 7, 16, dtype=torch.float64)
        ours(x)[0].square().sum().backward()
        theirs(x, x, x, need_weights=False)[0].square().sum().backward()
        packed = torch.cat([part.weight.grad for part in (ours.query, ours.key, ours.value)])
        np.testing.assert_allclose(packed, theirs.in_proj_weight.grad, atol=1e-10)
        np.testing.assert_allclose(
            ours.out.weight.grad, theirs.out_proj.weight.grad, atol=1e-10
        )


def test_one_packed_product_equals_three():
    layer = scatter(MultiHeadAttention(8, 2))
    x = tokens(2, 5, 8)
    np.testing.assert_allclose(layer(x)[0].detach(), layer(x, x.clone())[0].detach(), atol=1e-6)


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


@pytest.mark.parametrize("name", ["scaled_dot_product", "gaussian", "rational_quadratic"])
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


def test_the_simplest_form_is_the_softmax_of_products_of_tokens():
    x = tokens(1, 5, 4, dtype=torch.float64)
    layer = MultiHeadAttention(4, projections="none")
    assert not list(layer.parameters())
    # The kernel divides by sqrt(d), which scaled tokens undo.
    _, weights = layer(x * 4**0.25, need_weights=True)
    np.testing.assert_allclose(weights[0, 0], torch.exp(x[0] @ x[0].T).numpy() / (
        torch.exp(x[0] @ x[0].T).sum(1, keepdim=True).numpy()
    ), atol=1e-12)  # fmt: skip


def test_number_of_matrices():
    counts = {
        projections: len(list(MultiHeadAttention(4, projections=projections).parameters()))
        for projections in ("full", *SIMPLE)
    }
    assert counts == {"full": 8, "none": 0, "shared": 1, "separate": 2}


@pytest.mark.parametrize("kernel", ["scaled_dot_product", Matern32()])
@pytest.mark.parametrize("projections", ["full", *SIMPLE])
class TestWhatEveryFormIs:
    def layer(self, projections, kernel):
        return scatter(
            MultiHeadAttention(6, 2, kernel=kernel, projections=projections).double()
        )

    def test_row_stochastic(self, projections, kernel):
        layer = self.layer(projections, kernel)
        _, weights = layer(tokens(2, 5, 6, dtype=torch.float64), need_weights=True)
        assert weights.shape == (2, 2, 5, 5)
        assert (weights >= 0).all()
        np.testing.assert_allclose(weights.sum(-1).detach(), 1.0, rtol=1e-12)

    def test_equivariant_to_permutations(self, projections, kernel):
        layer = self.layer(projections, kernel)
        x, order = tokens(2, 5, 6, dtype=torch.float64), torch.tensor([3, 0, 4, 1, 2])
        straight, permuted = layer(x)[0], layer(x[:, order])[0]
        np.testing.assert_allclose(straight[:, order].detach(), permuted.detach(), atol=1e-12)
        causal = layer(x, causal=True)[0][:, order], layer(x[:, order], causal=True)[0]
        assert (causal[0] - causal[1]).abs().max() > 1e-3

    def test_causal_by_gradient(self, projections, kernel):
        layer = self.layer(projections, kernel)
        x = tokens(2, 5, 6, dtype=torch.float64).requires_grad_(True)
        for need_weights in (False, True):
            out, _ = layer(x, causal=True, need_weights=need_weights)
            for t in range(5):
                (gradient,) = torch.autograd.grad(out[:, t].sum(), x, retain_graph=True)
                assert (gradient[:, t + 1 :] == 0).all()
                assert gradient[:, t].any()

    def test_padding_never_changes_an_answer(self, projections, kernel):
        layer = self.layer(projections, kernel)
        x, real = tokens(2, 6, 6, dtype=torch.float64), padding_of([6, 4], 6)
        filled = x.masked_fill(~real[..., None], 77.0)
        alone, _ = layer(x[1:, :4])
        for need_weights in (False, True):
            for batch in (x, filled):
                together, weights = layer(batch, padding=real, need_weights=need_weights)
                np.testing.assert_allclose(
                    together[1:, :4].detach(), alone.detach(), atol=1e-10
                )
        assert (weights[1, :, :, 4:] == 0).all()

    def test_gradients_are_finite_without_any_token(self, projections, kernel):
        layer = self.layer(projections, kernel).float()
        x = tokens(2, 5, 6).requires_grad_(True)
        for need_weights in (False, True):
            out, _ = layer(x, padding=padding_of([5, 0], 5), need_weights=need_weights)
            assert torch.isfinite(out).all()
            out.square().sum().backward()
            assert torch.isfinite(x.grad).all()
            assert all(torch.isfinite(p.grad).all() for p in layer.parameters())


def test_source_of_another_width():
    layer = scatter(MultiHeadAttention(6, 2, d_source=4).double())
    x = tokens(2, 5, 6, dtype=torch.float64)
    source = tokens(2, 3, 4, seed=1, dtype=torch.float64)
    q, k, v = (
        part(z).unflatten(-1, (2, 3)).transpose(1, 2)
        for part, z in ((layer.query, x), (layer.key, source), (layer.value, source))
    )
    expected = layer.out(attention(q, k, v)[0].transpose(1, 2).flatten(2))
    found, weights = layer(x, source, need_weights=True)
    np.testing.assert_allclose(found.detach(), expected.detach(), atol=1e-12)
    assert weights.shape == (2, 2, 5, 3)
    with pytest.raises(ValueError, match=r"source must have shape \(B, T, 4\)"):
        layer(x)


def test_rotary_answers_depend_on_differences_of_positions():
    layer = scatter(MultiHeadAttention(8, 2, rotary=True).double())
    x = tokens(1, 6, 8, dtype=torch.float64)
    # The same tokens three steps later, behind others that are masked.
    later = torch.cat([tokens(1, 3, 8, seed=4, dtype=torch.float64), x], dim=1)
    real = torch.arange(9)[None] >= 3
    found, _ = layer(later, padding=real)
    np.testing.assert_allclose(found[:, 3:].detach(), layer(x)[0].detach(), atol=1e-10)
    order = torch.tensor([1, 0, 2, 3, 4, 5])
    assert (layer(x[:, order])[0] - layer(x)[0][:, order]).abs().max() > 1e-3


def test_dropout_only_while_training():
    layer = scatter(MultiHeadAttention(8, 2, dropout=0.5))
    x = tokens(2, 6, 8)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert not torch.equal(layer(x)[0], layer(x)[0])
        layer.eval()
        assert torch.equal(layer(x)[0], layer(x)[0])


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"d_model": 10, "n_heads": 3}, "n_heads=3 does not divide d_model=10"),
            ({"d_model": 0}, "d_model=0"),
            ({"d_model": 8, "n_heads": 1.5}, "n_heads=1.5"),
            ({"d_model": 8, "projections": "half"}, "projections='half' is unknown"),
            ({"d_model": 8, "projections": "shared", "d_source": 4}, "d_source=4 differs"),
            ({"d_model": 8, "dropout": 1.0}, "dropout=1.0"),
            ({"d_model": 8, "kernel": "softmax"}, "kernel='softmax' is unknown"),
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
        with pytest.raises(
            ValueError, match=r"padding=.* pass a tensor of bool of shape \(2, 5"
        ):
            layer(x, padding=torch.ones(2, 4, dtype=torch.bool))
        with pytest.raises(ValueError, match=r"padding=torch.float32 of shape \(2, 5\)"):
            layer(x, padding=torch.ones(2, 5))
        with pytest.raises(ValueError, match=r"mask=.* is not valid"):
            layer(x, mask=torch.ones(2, 5, 5, dtype=torch.bool))
        real = torch.ones(2, 5, dtype=torch.bool)
        with pytest.raises(
            ValueError, match=r"mask of shape \(5, 4\) does not fit \(2, 1, 5, 5"
        ):
            layer(x, mask=torch.ones(5, 4), padding=real)
        with pytest.raises(ValueError, match="same batch and heads"):
            layer(x, x[:1])
