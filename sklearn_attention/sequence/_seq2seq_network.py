"""The transformer that reads one sequence and writes another."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear

from ..nn import TokenDecoder, TokenEncoder
from ..nn._random import initialize
from ..text._special import PADDING
from ._language_network import OUTPUT_GAIN


class Seq2SeqNetwork(nn.Module):
    """Encoder of a source, and decoder that predicts each next token of a target."""

    # Tokens are embedded with standard deviation 1, positions are added, and the embedding of
    # the target's tokens also scores the next one. Source and target may share one vocabulary.

    def __init__(self, n_source, n_target, *, shared, d_model, max_length, **shape):
        super().__init__()
        self.d_model = d_model
        self.embed_target = nn.Embedding(n_target, d_model)
        self.embed_source = self.embed_target if shared else nn.Embedding(n_source, d_model)
        self.encoder = TokenEncoder(d_model, max_length=max_length, **shape)
        self.decoder = TokenDecoder(d_model, max_length=max_length, **shape)
        initialize(self, output_gain=OUTPUT_GAIN)
        for part in self.children():
            if isinstance(part, nn.Embedding):
                nn.init.normal_(part.weight, std=d_model**-0.5)

    def encode(self, source):
        """Vectors (B, S, d_model) of the tokens of sources (B, S)."""
        x = self.embed_source(source) * self.d_model**0.5
        return self.encoder(x, padding=source != PADDING)[0]

    def decode(self, target, encoded, real, *, cache=None, need_weights=False):
        """Vectors (B, T, d_model) of targets (B, T), and weights of the attention, or None."""
        # Each token attends to those before it, from `cache` on, and to the source, whose
        # vectors are `encoded` and which is `real` (B, S) where it has no padding.
        # Padding stands behind a target's end, to which no token before it attends.
        x = self.embed_target(target) * self.d_model**0.5
        return self.decoder(
            x, encoded, source_padding=real, cache=cache, need_weights=need_weights
        )

    def scores(self, x):
        """Logits (..., n_target) of the next token, from vectors (..., d_model)."""
        return linear(x, self.embed_target.weight)


def pair_loss(network, source, target, *, label_smoothing=0.0):
    """Mean negative log-likelihood of the tokens of targets (B, T), END included.

    With label smoothing e: -(1 - e) log p_y - e mean(log p) over all tokens.
    """
    x, real = _before_each_token(network, source, target)
    return cross_entropy(
        network.scores(x), target[:, 1:][real], label_smoothing=label_smoothing
    )


def log_likelihoods(network, source, target):
    """Log-likelihood of each token of targets after START, a list of Tensor."""
    x, real = _before_each_token(network, source, target)
    logs = network.scores(x).float().log_softmax(dim=-1)
    own = logs.gather(1, target[:, 1:][real][:, None])[:, 0]
    return list(own.split(real.sum(dim=1).tolist()))


def cross_weights(network, source, target):
    """Weights of the attention to the source, (n_layers, n_heads, T, S) for each pair."""
    real = source != PADDING
    _, maps = network.decode(target[:, :-1], network.encode(source), real, need_weights=True)
    layers = torch.stack([cross for _, cross in maps], dim=1)
    n_read, n_written = real.sum(dim=1), (target[:, 1:] != PADDING).sum(dim=1)
    sizes = zip(layers, n_written.tolist(), n_read.tolist(), strict=True)
    return [weights[:, :, :written, :read] for weights, written, read in sizes]


def _before_each_token(network, source, target):
    """Vectors of the decoder before real tokens, (n_real, d_model), and where these are."""
    encoded, following = network.encode(source), target[:, 1:]
    x, _ = network.decode(target[:, :-1], encoded, source != PADDING)
    real = following != PADDING
    # Scores are the largest part of the work: none for padding.
    return x[real], real
