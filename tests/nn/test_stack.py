"""Stacks of blocks against torch's own with the same weights; tokens with their positions."""

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
    TokenDecoder,
    TokenEncoder,
    sinusoidal_encoding,
)

NORMS = ("pre", "post", "lecture")


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
class TestAgainstTorch:
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


POSITIONS = [None, "sinusoidal", "learned", "rotary"]


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


def test_dropout_is_also_of_the_tokens_that_enter():
    model = make(TokenEncoder, "sinusoidal", dropout=0.5).train()
    entered = []
    model.blocks.register_forward_pre_hook(lambda _, given: entered.append(given[0]))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model(torch.ones(20, 9, 16))
    assert (entered[0] == 0).double().mean().item() == pytest.approx(0.5, abs=0.1)
