"""A cache saves work, and changes nothing."""

import pytest
import torch
from torch_weights import padding_of, scatter, tokens

from sklearn_attention.nn import Decoder, Encoder, KeyValueCache

SHAPE = (2, 16, 4, 24)


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"norm": "post", "rotary": True}, (1,) * 7),
        ({"kernel": "polynomial", "projections": "shared"}, (3, 4)),
    ],
    ids=str,
)
class TestGrowingSequence:
    def test_encoder(self, options, steps):
        encoder = scatter(Encoder(*SHAPE, **options)).double().eval()
        x = tokens(3, 7, 16, dtype=torch.float64)
        expected, maps = encoder(x, causal=True, need_weights=True)
        cache, first = KeyValueCache(2), 0
        for n_new in steps:
            new = slice(first, first + n_new)
            found, weights = encoder(x[:, new], causal=True, need_weights=True, cache=cache)
            torch.testing.assert_close(found, expected[:, new])
            torch.testing.assert_close(weights[1], maps[1][:, :, new, : new.stop])
            first = cache.n_tokens
        assert first == 7

    def test_decoder(self, options, steps):
        decoder = scatter(Decoder(*SHAPE, **options)).double().eval()
        x, source = (tokens(3, n, 16, dtype=torch.float64, seed=n) for n in (7, 5))
        real = padding_of([5, 2, 4], 5)
        expected, _ = decoder(x, source, source_padding=real)
        cache, first = KeyValueCache(2), 0
        for n_new in steps:
            new = slice(first, first + n_new)
            found, _ = decoder(x[:, new], source, source_padding=real, cache=cache)
            torch.testing.assert_close(found, expected[:, new])
            first = cache.n_tokens


def test_padding_covers_old_and_new_tokens():
    encoder = scatter(Encoder(*SHAPE)).eval()
    x, real = tokens(2, 6, 16), padding_of([6, 6], 6)
    real[1, 0] = False
    expected, _ = encoder(x, causal=True, padding=real)
    cache = KeyValueCache(2)
    encoder(x[:, :4], causal=True, padding=real[:, :4], cache=cache)
    found, _ = encoder(x[:, 4:], causal=True, padding=real, cache=cache)
    torch.testing.assert_close(found, expected[:, 4:])
    with pytest.raises(ValueError, match=r"padding=.*\(2, 7\)"):
        encoder(x[:, :1], causal=True, padding=real, cache=cache)


def test_select_goes_on_with_some_sequences():
    decoder = scatter(Decoder(*SHAPE)).eval()
    x, source = tokens(3, 6, 16), tokens(3, 5, 16, seed=1)
    rows = torch.tensor([2, 0, 2])
    cache = KeyValueCache(2)
    decoder(x[:, :4], source, cache=cache)
    cache.select(rows)
    found, _ = decoder(x[rows, 4:], source[rows], cache=cache)
    expected, _ = decoder(x[rows], source[rows])
    torch.testing.assert_close(found, expected[:, 4:])
