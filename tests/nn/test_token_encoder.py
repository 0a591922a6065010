"""Tokens with their positions are what the blocks see."""

import pytest
import torch
from torch_weights import SHAPE, padding_of, scatter, tokens

from sklearn_attention.nn import (
    Decoder,
    Encoder,
    KeyValueCache,
    TokenDecoder,
    TokenEncoder,
    sinusoidal_encoding,
)

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
