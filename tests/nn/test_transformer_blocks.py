"""Blocks and stacks against torch's own layers with the same weights."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch_weights import (
    copy_decoder_layer,
    copy_encoder_layer,
    copy_linear,
    padding_of,
    scatter,
    tokens,
)

from sklearn_attention.nn import Decoder, DecoderBlock, Encoder, EncoderBlock

SHAPE = {"d_model": 16, "n_heads": 4, "d_feedforward": 24}
THEIR_SHAPE = {"d_model": 16, "nhead": 4, "dim_feedforward": 24}
NORMS = ("pre", "post", "lecture")


def their_options(norm, activation, bias=True, dtype=torch.float32):
    return {
        **THEIR_SHAPE, "dropout": 0.0, "activation": activation, "batch_first": True,
        "norm_first": norm == "pre", "bias": bias, "dtype": dtype,
    }  # fmt: skip


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
class TestAgainstTorch:
    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_encoder_block(self, norm, activation, bias, dtype):
        theirs = scatter(
            torch.nn.TransformerEncoderLayer(**their_options(norm, activation, bias, dtype))
        )
        ours = EncoderBlock(**SHAPE, norm=norm, activation=activation, bias=bias).to(dtype)
        copy_encoder_layer(ours, theirs)
        x, real = tokens(3, 7, 16, dtype=dtype), padding_of([7, 5, 2], 7)
        allowed = torch.ones(7, 7, dtype=torch.bool).tril()
        tolerance = 1e-6 if dtype == torch.float32 else 1e-12
        # The streams are larger than 1: differences are relative to their size.
        for given, mine in [
            ({}, {}),
            ({"src_mask": ~allowed}, {"causal": True}),
            ({"src_mask": ~allowed}, {"mask": allowed}),
            ({"src_key_padding_mask": ~real}, {"padding": real}),
            (
                {"src_mask": ~allowed, "src_key_padding_mask": ~real},
                {"causal": True, "padding": real},
            ),
        ]:
            expected = theirs(x, **given)
            for need_weights in (False, True):
                found, _ = ours(x, need_weights=need_weights, **mine)
                scale = max(1, expected.abs().max().item())
                assert (found - expected).abs().max() <= tolerance * scale

    def test_decoder_block(self, norm, activation):
        theirs = scatter(torch.nn.TransformerDecoderLayer(**their_options(norm, activation)))
        ours = DecoderBlock(**SHAPE, norm=norm, activation=activation)
        copy_decoder_layer(ours, theirs)
        x, source = tokens(3, 7, 16), tokens(3, 9, 16, seed=1)
        real, source_real = padding_of([7, 5, 2], 7), padding_of([3, 9, 1], 9)
        allowed = torch.ones(7, 7, dtype=torch.bool).tril()
        expected = theirs(
            x, source, tgt_mask=~allowed, tgt_key_padding_mask=~real,
            memory_key_padding_mask=~source_real,
        )  # fmt: skip
        for need_weights in (False, True):
            found, _ = ours(
                x, source, padding=real, source_padding=source_real, need_weights=need_weights
            )
            scale = max(1, expected.abs().max().item())
            assert (found - expected).abs().max() <= 1e-6 * scale
        expected = theirs(x, source)
        found, _ = ours(x, source, causal=False)
        assert (found - expected).abs().max() <= 1e-6 * max(1, expected.abs().max().item())

    def test_encoder(self, norm, activation):
        layer = torch.nn.TransformerEncoderLayer(**their_options(norm, activation))
        last = torch.nn.LayerNorm(16) if norm == "pre" else None
        theirs = scatter(
            torch.nn.TransformerEncoder(layer, 2, last, enable_nested_tensor=False)
        )
        ours = Encoder(2, **SHAPE, norm=norm, activation=activation)
        for block, their_block in zip(ours.blocks, theirs.layers, strict=True):
            copy_encoder_layer(block, their_block)
        if last is not None:
            copy_linear(ours.normalize, theirs.norm)
        x, real = tokens(3, 7, 16), padding_of([7, 5, 2], 7)
        expected = theirs(x, src_key_padding_mask=~real)
        found, weights = ours(x, padding=real, need_weights=True)
        assert (found - expected).abs().max() <= 1e-6 * max(1, expected.abs().max().item())
        assert [w.shape for w in weights] == [(3, 4, 7, 7)] * 2

    def test_decoder(self, norm, activation):
        layer = torch.nn.TransformerDecoderLayer(**their_options(norm, activation))
        last = torch.nn.LayerNorm(16) if norm == "pre" else None
        theirs = scatter(torch.nn.TransformerDecoder(layer, 2, last))
        ours = Decoder(2, **SHAPE, norm=norm, activation=activation)
        for block, their_block in zip(ours.blocks, theirs.layers, strict=True):
            copy_decoder_layer(block, their_block)
        if last is not None:
            copy_linear(ours.normalize, theirs.norm)
        x, source = tokens(3, 7, 16), tokens(3, 9, 16, seed=1)
        allowed = torch.ones(7, 7, dtype=torch.bool).tril()
        expected = theirs(x, source, tgt_mask=~allowed)
        found, weights = ours(x, source, need_weights=True)
        assert (found - expected).abs().max() <= 1e-6 * max(1, expected.abs().max().item())
        assert [[w.shape for w in pair] for pair in weights] == [
            [(3, 4, 7, 7), (3, 4, 7, 9)]
        ] * 2


def test_lecture_norm_adds_the_normalised_stream_back():
    block = scatter(EncoderBlock(**SHAPE, norm="lecture").double())
    x = tokens(2, 5, 16, dtype=torch.float64)
    first = block.around_attention.normalize(x)
    y = first + block.attention(first)[0]
    second = block.around_feedforward.normalize(y)
    expected = second + block.feedforward(second)
    np.testing.assert_allclose(block(x)[0].detach(), expected.detach(), atol=1e-12)
    usual = EncoderBlock(**SHAPE, norm="pre").double()
    usual.load_state_dict(block.state_dict())
    assert (usual(x)[0] - expected).abs().max() > 0.1


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kernel", ["scaled_dot_product", "gaussian", "periodic", "matern52"])
class TestEveryKernelAndNorm:
    def decoder(self, norm, kernel):
        return scatter(Decoder(2, **SHAPE, norm=norm, kernel=kernel).double())

    def test_causality_by_gradient(self, norm, kernel):
        decoder = self.decoder(norm, kernel)
        x = tokens(2, 5, 16, dtype=torch.float64).requires_grad_(True)
        source = tokens(2, 4, 16, seed=1, dtype=torch.float64).requires_grad_(True)
        out, _ = decoder(x, source)
        for t in range(5):
            of_x, of_source = torch.autograd.grad(
                out[:, t].square().sum(), (x, source), retain_graph=True
            )
            assert (of_x[:, t + 1 :] == 0).all()
            assert of_x[:, t].any()
            # All of the source is visible from the first step on.
            assert (of_source != 0).any(dim=-1).all()

    def test_padding_never_changes_an_answer(self, norm, kernel):
        decoder = self.decoder(norm, kernel)
        x, source = (tokens(2, n, 16, seed=n, dtype=torch.float64) for n in (6, 5))
        real, source_real = padding_of([6, 3], 6), padding_of([5, 2], 5)
        together, _ = decoder(x, source, padding=real, source_padding=source_real)
        alone, _ = decoder(x[1:, :3], source[1:, :2])
        np.testing.assert_allclose(together[1:, :3].detach(), alone.detach(), atol=1e-9)

    def test_gradients_are_finite_where_all_is_masked(self, norm, kernel):
        encoder = Encoder(2, **SHAPE, norm=norm, kernel=kernel)
        x = tokens(2, 5, 16).requires_grad_(True)
        out, _ = encoder(x, padding=padding_of([5, 0], 5))
        out.square().sum().backward()
        assert torch.isfinite(x.grad).all()
        assert all(torch.isfinite(p.grad).all() for p in encoder.parameters())


@pytest.mark.parametrize("norm", NORMS)
def test_without_positions_an_encoder_is_equivariant_to_permutations(norm):
    x, order = tokens(2, 5, 16, dtype=torch.float64), torch.tensor([3, 0, 4, 1, 2])
    for rotary in (False, True):
        encoder = scatter(Encoder(2, **SHAPE, norm=norm, rotary=rotary).double())
        difference = (encoder(x)[0][:, order] - encoder(x[:, order])[0]).abs().max()
        assert (difference > 1e-3) if rotary else (difference < 1e-10)


def test_only_pre_norm_ends_in_a_normalisation():
    for norm in NORMS:
        for stack in (Encoder(1, **SHAPE, norm=norm), Decoder(1, **SHAPE, norm=norm)):
            assert isinstance(stack.normalize, torch.nn.LayerNorm) == (norm == "pre")


def test_masks_reach_every_block():
    """A mask of the source, and one of the tokens, in the decoder's terms."""
    decoder = scatter(Decoder(2, **SHAPE).double())
    x, source = (tokens(2, n, 16, seed=n, dtype=torch.float64) for n in (6, 5))
    mask = torch.eye(6, dtype=torch.bool)
    source_mask = torch.arange(5) < 2
    _, weights = decoder(
        x, source, mask=mask, source_mask=source_mask.expand(6, 5), need_weights=True
    )
    for own, cross in weights:
        np.testing.assert_array_equal(own.detach(), np.broadcast_to(np.eye(6), (2, 4, 6, 6)))
        assert (cross[..., 2:] == 0).all()
        assert (cross[..., :2] > 0).all()


def test_source_of_another_width():
    decoder = Decoder(2, **SHAPE, d_source=6)
    assert decoder(tokens(2, 5, 16), tokens(2, 3, 6))[0].shape == (2, 5, 16)


def test_dropout_only_while_training():
    encoder, x = Encoder(1, **SHAPE, dropout=0.4), tokens(2, 6, 16)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert not torch.equal(encoder(x)[0], encoder(x)[0])
        encoder.eval()
        assert torch.equal(encoder(x)[0], encoder(x)[0])


def test_copies_and_pickles():
    encoder, x = Encoder(1, **SHAPE, kernel="periodic", rotary=True), tokens(2, 6, 16)
    for twin in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert torch.equal(twin(x)[0], encoder(x)[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "both"}, "norm='both' is unknown"),
        ({"activation": "swish"}, "activation='swish' is unknown"),
        ({"d_feedforward": 0}, "d_feedforward=0"),
        ({"dropout": 2}, "dropout=2"),
        ({"n_heads": 3}, "n_heads=3 does not divide"),
        ({"n_layers": 0}, "n_layers=0"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        Encoder(**{"n_layers": 1, **SHAPE, **options})
    with pytest.raises(ValueError, match=message):
        Decoder(**{"n_layers": 1, **SHAPE, **options})
