"""Blocks against torch's own layers with the same weights."""

import numpy as np
import pytest
import torch
from torch_weights import (
    SHAPE,
    copy_decoder_layer,
    copy_encoder_layer,
    padding_of,
    scatter,
    their_options,
    tokens,
)

from sklearn_attention.nn import DecoderBlock, EncoderBlock


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
