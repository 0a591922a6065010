"""Layers, blocks and stacks against torch's own with the same weights, and against loops."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch_weights import (
    SHAPE,
    copy_decoder_layer,
    copy_encoder_layer,
    copy_linear,
    padding_of,
    scatter,
    their_options,
    tokens,
)

from sklearn_attention.nn import (
    Decoder,
    Encoder,
    KeyValueCache,
    MultiHeadAttention,
    TokenDecoder,
    TokenEncoder,
    sinusoidal_encoding,
)

DTYPES = {torch.float32: 1e-6, torch.float64: 1e-12}
POSITIONS = (None, "sinusoidal", "learned", "rotary")


def is_near(found, expected, tolerance=1e-6):
    """Streams are larger than 1: differences are relative to their size."""
    return (found - expected).abs().max() <= tolerance * max(1, expected.abs().max().item())


@pytest.mark.parametrize(("norm", "activation"), [("pre", "gelu"), ("post", "relu")])
class TestStackAgainstTorch:
    def test_encoder(self, norm, activation):
        bias, dtype = norm == "pre", torch.float32 if norm == "pre" else torch.float64
        layer = torch.nn.TransformerEncoderLayer(**their_options(norm, activation, bias, dtype))
        last = torch.nn.LayerNorm(16, bias=bias, dtype=dtype) if norm == "pre" else None
        theirs = scatter(
            torch.nn.TransformerEncoder(layer, 2, last, enable_nested_tensor=False)
        )
        ours = Encoder(2, **SHAPE, norm=norm, activation=activation, bias=bias).to(dtype)
        for block, their_block in zip(ours.blocks, theirs.layers, strict=True):
            copy_encoder_layer(block, their_block)
        if last is not None:
            copy_linear(ours.normalize, theirs.norm)
        x, real = tokens(3, 7, 16, dtype=dtype), padding_of([7, 5, 2], 7)
        allowed = torch.ones(7, 7, dtype=torch.bool).tril()
        for given, mine in [
            ({}, {}),
            ({"mask": ~allowed}, {"mask": allowed}),
            ({"mask": ~allowed, "src_key_padding_mask": ~real},
             {"causal": True, "padding": real}),
        ]:  # fmt: skip
            expected = theirs(x, **given)
            for need_weights in (False, True):
                found, weights = ours(x, need_weights=need_weights, **mine)
                assert is_near(found, expected, DTYPES[dtype])
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
        real, source_real = padding_of([7, 5, 2], 7), padding_of([3, 9, 1], 9)
        allowed = torch.ones(7, 7, dtype=torch.bool).tril()
        expected = theirs(
            x, source, tgt_mask=~allowed, tgt_key_padding_mask=~real,
            memory_key_padding_mask=~source_real,
        )  # fmt: skip
        for need_weights in (False, True):
            found, weights = ours(
                x, source, padding=real, source_padding=source_real, need_weights=need_weights
            )
            assert is_near(found, expected)
        assert [[w.shape for w in pair] for pair in weights] == [
            [(3, 4, 7, 7), (3, 4, 7, 9)]
        ] * 2
        assert is_near(ours(x, source, causal=False)[0], theirs(x, source))


def test_lecture_norm_adds_the_normalised_stream_back():
    encoder = scatter(Encoder(1, **SHAPE, norm="lecture").double())
    (block,), x = encoder.blocks, tokens(2, 5, 16, dtype=torch.float64)
    first = block.around_attention.normalize(x)
    y = first + block.attention(first)[0]
    second = block.around_feedforward.normalize(y)
    expected = second + block.feedforward(second)[0]
    np.testing.assert_allclose(encoder(x)[0].detach(), expected.detach(), atol=1e-12)


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


@pytest.mark.parametrize(
    "module", [MultiHeadAttention(16, 2, dropout=0.5), Encoder(1, **SHAPE, dropout=0.4)]
)
def test_dropout_only_while_training(module):
    x = tokens(2, 6, 16)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert not torch.equal(module.train()(x)[0], module(x)[0])
        expected = module.eval()(x)[0]
    # Copies, by pickle or not, answer the same.
    for twin in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(twin(x)[0], expected)


def make(kind, positions, **options):
    options = {**SHAPE, "n_layers": 2, "positions": positions, "max_length": 9, **options}
    return scatter(kind(**options)).eval()


def with_positions(x, positions, model):
    """Tokens as the blocks see them."""
    if positions == "sinusoidal":
        return x + sinusoidal_encoding(x.shape[1], 16).float()
    if positions == "learned":
        (table,) = model.positions.parameters()
        return x + table[: x.shape[1]]
    return x


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize(("kind", "stack"), [(TokenEncoder, Encoder), (TokenDecoder, Decoder)])
def test_positions_and_then_blocks(kind, stack, positions):
    model = make(kind, positions, norm="post")
    blocks = stack(2, **SHAPE, norm="post", rotary=positions == "rotary").eval()
    blocks.load_state_dict(model.blocks.state_dict())
    x, real = tokens(2, 7, 16), padding_of([7, 4], 7)
    source = [tokens(2, 5, 16, seed=1)] if kind is TokenDecoder else []
    seen = with_positions(x, positions, model)
    expected, maps = blocks(seen, *source, padding=real, need_weights=True)
    found, weights = model(x, *source, padding=real, need_weights=True)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(weights, maps)
    assert (model.width, model.n_layers) == (16, 2)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_positions_may_be_appended(positions):
    model = make(TokenEncoder, positions, d_position=4)
    x = tokens(2, 7, 16)
    seen = model.positions(x)
    assert torch.equal(seen[..., :16], x)
    found, _ = model(x)
    assert found.shape == (2, 7, 20)
    assert model.width == 20
    torch.testing.assert_close(found, model.blocks(seen)[0])


@pytest.mark.parametrize("positions", POSITIONS)
def test_tokens_after_others_are_at_later_positions(positions):
    model, x = make(TokenEncoder, positions), tokens(2, 9, 16)
    expected, _ = model(x, causal=True)
    cache = KeyValueCache(model.n_layers)
    parts = [model(part, causal=True, cache=cache)[0] for part in x.split([4, 1, 4], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), expected)
