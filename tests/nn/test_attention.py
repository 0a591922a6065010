"""Attention on any kernel against loops over pairs, and its fused ways against the plain."""

import numpy as np
import pytest
import torch

from sklearn_attention.kernels import PositiveFeatures
from sklearn_attention.kernels._base import as_kernel
from sklearn_attention.nn import _attention, attention

POSITIVE = [
    "scaled_dot_product", "gaussian", "laplacian", "matern32", "rational_quadratic", "periodic",
    "locally_periodic", "logistic",
]  # fmt: skip
SIGNED = ["linear", "polynomial", "cosine_similarity", "silverman"]
# float32 rounds logits of about 10, and a signed sum may be small beside its parts.
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}


def make_heads(n_queries=5, n_keys=7, head_dim=4, *, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(n_queries, head_dim), (n_keys, head_dim), (n_keys, head_dim)]
    return [
        torch.randn(2, 3, *shape, dtype=torch.float64, generator=generator).to(dtype)
        for shape in shapes
    ]


def slow_attention(queries, keys, values, kernel, logits_mask=None):
    """Weights and averages, query by query, in double precision."""
    kernel = as_kernel(kernel)
    weights = np.zeros((*queries.shape[:3], keys.shape[2]))
    averages = np.zeros((*queries.shape[:3], values.shape[3]))
    mask = np.zeros(weights.shape) if logits_mask is None else logits_mask
    q, k, v = (x.double().numpy() for x in (queries, keys, values))
    for b, h, t in np.ndindex(*queries.shape[:3]):
        row = kernel(q[b, h, t][None], k[b, h])[0] * np.exp(mask[b, h, t])
        if row.any():
            weights[b, h, t] = row / row.sum()
        averages[b, h, t] = weights[b, h, t] @ v[b, h]
    return averages, weights


def random_mask(shape, seed=3):
    """True for about half, and nothing in one row."""
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    mask[..., 0] = True
    mask[..., 2, :] = False
    return mask


class TestAgainstLoops:
    @pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
    @pytest.mark.parametrize("kernel", POSITIVE + SIGNED)
    def test_without_mask(self, kernel, dtype):
        queries, keys, _ = make_heads(dtype=dtype)
        heads = queries, keys, make_heads(head_dim=9, dtype=dtype, seed=9)[2]
        averages, weights = slow_attention(*heads, kernel)
        scale = max(1.0, np.abs(weights).max())
        for need_weights in (False, True):
            found, maps = attention(*heads, kernel, need_weights=need_weights)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, averages, atol=scale**2 * TOLERANCE[dtype])
        np.testing.assert_allclose(maps, weights, atol=scale**2 * TOLERANCE[dtype])

    @pytest.mark.parametrize("kernel", ["scaled_dot_product", "gaussian", "linear"])
    @pytest.mark.parametrize("shape", [(5, 7), (2, 1, 5, 7), "floats"], ids=str)
    def test_masks_multiply_the_kernel_by_their_exponential(self, kernel, shape):
        heads = make_heads()
        if shape == "floats":
            mask = torch.randn(5, 7, generator=torch.Generator().manual_seed(1))
            mask[2] = mask[0, 3] = -torch.inf
            logits, close = mask.double(), 1e-6
        else:
            mask, close = random_mask(shape), 1e-10
            logits = np.where(mask, 0.0, -np.inf)
        averages, weights = slow_attention(
            *heads, kernel, np.broadcast_to(logits, (2, 3, 5, 7))
        )
        for need_weights in (False, True):
            found, maps = attention(*heads, kernel, mask=mask, need_weights=need_weights)
            np.testing.assert_allclose(found, averages, atol=close)
        np.testing.assert_allclose(maps, weights, atol=close)
        assert (maps[:, :, 2] == 0).all()

    @pytest.mark.parametrize("kernel", ["scaled_dot_product", "gaussian", "linear"])
    @pytest.mark.parametrize("masked", [False, True])
    def test_causal(self, kernel, masked):
        heads, mask = make_heads(6, 6), random_mask((6, 6)) if masked else None
        allowed = torch.ones(6, 6, dtype=torch.bool).tril()
        allowed = allowed & mask if masked else allowed
        logits = torch.zeros(6, 6, dtype=torch.float64).masked_fill(~allowed, -torch.inf)
        expected, _ = slow_attention(*heads, kernel, np.broadcast_to(logits, (2, 3, 6, 6)))
        for need_weights in (False, True):
            found, _ = attention(
                *heads, kernel, mask=mask, causal=True, need_weights=need_weights
            )
            np.testing.assert_allclose(found, expected, atol=1e-10)

    def test_no_batch_and_no_queries(self):
        queries, keys, values = make_heads()
        for kernel in ("scaled_dot_product", "gaussian", "linear"):
            for need_weights in (False, True):
                options = {"kernel": kernel, "need_weights": need_weights}
                found, _ = attention(queries[:, :, :0], keys, values, **options)
                assert found.shape == (2, 3, 0, 4)
                found, _ = attention(queries[:0], keys[:0], values[:0], **options)
                assert found.shape == (0, 3, 5, 4)


class TestEmptyRows:
    @pytest.mark.parametrize(("need_weights", "floats"), [(False, True), (True, False)])
    @pytest.mark.parametrize("kernel", ["gaussian", "exponential", "linear", "tricube"])
    def test_nothing_allowed_is_0_with_finite_gradients(self, kernel, floats, need_weights):
        # Near enough to each other for a compact kernel.
        heads = [(x / 5).requires_grad_(True) for x in make_heads(dtype=torch.float32)]
        mask = random_mask((2, 1, 5, 7))
        mask[0] = False
        if floats:
            mask = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
        found, _ = attention(*heads, kernel, mask=mask, need_weights=need_weights)
        assert (found[0] == 0).all()
        assert (found[1, :, 2] == 0).all()
        assert found[1, :, 0].any()
        (found + 1).square().sum().backward()
        for x in heads:
            assert torch.isfinite(x.grad).all()
            assert (x.grad[0] == 0).all()

    def test_signed_weights_that_cancel(self):
        keys = torch.tensor([[1.0], [-1.0], [0.5]], dtype=torch.float64)[None, None]
        queries = torch.ones(1, 1, 1, 1, dtype=torch.float64).requires_grad_(True)
        mask = torch.tensor([[True, True, False]])
        found, weights = attention(queries, keys, keys, "linear", mask=mask, need_weights=True)
        assert found.item() == 0
        assert (weights == 0).all()
        found.sum().backward()
        assert queries.grad.item() == 0
        found, _ = attention(queries, keys, keys, "linear")
        assert found.item() == pytest.approx((1 + 1 + 0.25) / 0.5)

    @pytest.mark.parametrize(("total", "is_zero"), [(2e-8, True), (4e-8, False)])
    def test_signed_weights_cancel_up_to_the_root_of_the_precision(self, total, is_zero):
        """Sums below 1.5e-8 times the sum of the sizes, which is 2 here, count as 0."""
        keys = torch.tensor([[1.0], [total - 1.0]], dtype=torch.float64)[None, None]
        queries, values = torch.ones_like(keys[:, :, :1]), torch.ones_like(keys)
        averages, _ = attention(queries, keys, values, "linear")
        assert averages.item() == pytest.approx(0.0 if is_zero else 1.0, abs=1e-6)


class TestWays:
    @pytest.mark.parametrize(
        ("dtype", "causal"), [(torch.float32, True), (torch.float64, False)], ids=str
    )
    @pytest.mark.parametrize("kernel", ["scaled_dot_product", "gaussian"])
    def test_fused_and_explicit_agree_with_their_gradients(self, kernel, causal, dtype):
        gradients = []
        for need_weights in (False, True):
            heads = [x.requires_grad_(True) for x in make_heads(9, 9, 16, dtype=dtype)]
            found, _ = attention(*heads, kernel, causal=causal, need_weights=need_weights)
            gradients.append([found, *torch.autograd.grad(found.square().sum(), heads)])
        for fused, explicit in zip(*gradients, strict=True):
            difference = (fused - explicit).abs().max()
            assert difference < 10 * TOLERANCE[dtype]

    @pytest.mark.parametrize(
        ("kernel", "need_weights"), [("gaussian", False), ("exponential", True)]
    )
    def test_far_from_the_origin(self, kernel, need_weights):
        queries, keys, values = make_heads(dtype=torch.float32)
        # Whole numbers, so that moving them rounds nothing off.
        queries, keys = (queries * 4).round() / 4, (keys * 4).round() / 4
        near, _ = attention(queries, keys, values, kernel)
        far, _ = attention(
            queries + 1024, keys + 1024, values, kernel, need_weights=need_weights
        )
        np.testing.assert_allclose(near, far, atol=1e-5)

    @pytest.mark.parametrize("kernel", ["scaled_dot_product", "matern32", "linear"])
    def test_half_precision(self, kernel):
        heads = [x.to(torch.bfloat16) for x in make_heads()]
        # A bounded linear kernel: signed sums may be near 0.
        heads[:2] = [x.abs() for x in heads[:2]]
        expected, _ = attention(*(x.double() for x in heads), kernel)
        for need_weights in (False, True):
            found, _ = attention(*heads, kernel, need_weights=need_weights)
            assert found.dtype == torch.bfloat16
            np.testing.assert_allclose(found.double(), expected, atol=0.02)
        single = [x.float() for x in heads]
        with torch.autocast("cpu", torch.bfloat16):
            found, _ = attention(*single, kernel)
        np.testing.assert_allclose(found.double(), expected, atol=0.02)

    @pytest.mark.parametrize("kernel", ["periodic", "linear"])
    def test_gradient_equals_differences(self, kernel):
        heads = [x[:1, :1].requires_grad_(True) for x in make_heads(3, 4, 2)]
        assert torch.autograd.gradcheck(lambda *x: attention(*x, kernel)[0], heads)


@pytest.mark.parametrize("kernel", ["gaussian", "matern32", PositiveFeatures(64)], ids=repr)
def test_dropout_drops_weights_and_keeps_the_mean(kernel):
    queries, keys, _ = (0.5 * x for x in make_heads(1, 400))
    values = torch.ones(2, 3, 400, 1, dtype=torch.float64)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        drawn = [attention(queries, keys, values, kernel, dropout=0.3)[0] for _ in range(30)]
    drawn = torch.stack(drawn)
    assert drawn.std() > 0.01
    assert drawn.mean().item() == pytest.approx(1, abs=0.02)


class TestBlocks:
    """Many pairs, in blocks of some rows or some queries; here 105 a row make many."""

    @staticmethod
    def gradients(kernel, block=None, **options):
        heads = [x.requires_grad_(True) for x in make_heads()]
        with pytest.MonkeyPatch.context() as patch:
            if block is not None:
                patch.setattr(_attention, "_KEPT", 0)
                patch.setattr(_attention, "_BLOCK", block)
            found, _ = attention(*heads, kernel, **options)
            # After something else was drawn, as by a thread beside this one.
            torch.rand(3)
            return [found, *torch.autograd.grad(found.square().sum(), heads)]

    @pytest.mark.parametrize("block", [50, 105])
    @pytest.mark.parametrize("kernel", ["laplacian", "periodic", "linear", "cosine_similarity"])
    def test_results_and_gradients_are_those_of_all_at_once(self, kernel, block):
        masks = [
            None,
            random_mask((2, 1, 7, 7))[:, :, :1],
            random_mask((5, 7)),
            torch.randn(2, 3, 5, 7, generator=torch.Generator().manual_seed(1)),
        ]
        for mask in masks:
            pairs = zip(
                self.gradients(kernel, mask=mask), self.gradients(kernel, block, mask=mask),
                strict=True,
            )  # fmt: skip
            for whole, parts in pairs:
                torch.testing.assert_close(parts, whole, rtol=1e-9, atol=1e-10)

    @pytest.mark.parametrize("kernel", ["scaled_dot_product", "laplacian"])
    def test_what_is_dropped_is_the_same_in_both_passes(self, kernel):
        def seeded():
            with torch.random.fork_rng():
                torch.manual_seed(0)
                return self.gradients(kernel, 50, dropout=0.5)

        first, again = seeded(), seeded()
        for one, other in zip(first, again, strict=True):
            assert torch.equal(one, other)
        # Averages are linear in the values: half the gradient of their squares times these.
        values = make_heads()[2]
        squares = first[0].square().sum().item()
        assert (first[3] * values).sum().item() == pytest.approx(2 * squares)
        assert not torch.allclose(first[0], self.gradients(kernel)[0])

    def test_memory_does_not_grow_with_pairs(self):
        kept = []

        def keep(x):
            kept.append(x.numel())
            return x

        heads = [x.requires_grad_(True) for x in make_heads(300, 300, dtype=torch.float32)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_attention, "_KEPT", 2**14)
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
                attention(*heads, "laplacian", dropout=0.1)
        assert max(kept, default=0) <= heads[0].numel()


Q, K, V = make_heads()


@pytest.mark.parametrize(
    ("heads", "options", "message"),
    [
        ((Q, K[0], V), {}, r"keys must have shape .*\(3, \d, 4\)"),
        ((Q[..., :2], K, V), {}, "same head_dim"),
        ((Q[:1], K, V), {}, "same batch size and number of"),
        ((Q, K, V[:, :, :6]), {}, "7 keys but 6 values"),
        ((Q, K, V), {"causal": True}, "causal=True needs as many queries as keys"),
        (
            (Q, K, V),
            {"mask": torch.ones(5, 6) > 0},
            r"mask of .*does not fit .* = \(2, 3, 5, 7\)",
        ),
        ((Q, K, V), {"dropout": 1.0}, "dropout=1"),
        ((Q, K, V), {"kernel": "gausian"}, "did you mean 'gaussian'"),
    ],
)
def test_bad_input_is_named(heads, options, message):
    with pytest.raises(ValueError, match=message):
        attention(*heads, **options)


def test_a_function_is_refused_where_a_gradient_is_needed():
    def of_numpy(queries, keys):
        return np.exp(queries @ keys.T)

    found, _ = attention(Q, K, V, of_numpy)
    np.testing.assert_allclose(found, attention(2 * Q, K, V)[0], atol=1e-12)
    with pytest.raises(TypeError, match="has no gradient"):
        attention(Q.clone().requires_grad_(True), K, V, of_numpy)


@pytest.mark.parametrize("kernel", ["scaled_dot_product", "gaussian"])
@pytest.mark.parametrize("unit", [1.0, 1e5])
def test_floats_of_a_mask_are_added_to_logits_of_any_size(kernel, unit):
    queries, keys, values = (x[:1, :1].to(torch.float64) for x in make_heads(3, 4, 2))
    queries, keys = queries * unit**0.5, keys * unit**0.5
    mask = torch.tensor([0.0, -2.0, -3.0, -1e9], dtype=torch.float64) * unit
    averages, _ = attention(queries, keys, values, kernel, mask=mask.expand(3, 4))
    dots = queries @ keys.mT
    if kernel == "gaussian":
        logits = dots - keys.square().sum(dim=-1)[..., None, :] / 2
    else:
        logits = dots / queries.shape[-1] ** 0.5
    expected = torch.softmax(logits + mask, dim=-1) @ values
    torch.testing.assert_close(averages, expected)
