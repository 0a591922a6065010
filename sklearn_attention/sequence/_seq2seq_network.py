"""The transformer that reads one sequence and writes another."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear

from ..nn import TokenDecoder, TokenEncoder, initialize
from ..text import PADDING
from ._language_network import OUTPUT_GAIN


class Seq2SeqNetwork(nn.Module):
    """Encoder of a source, and decoder that predicts each next token of a target.

    Tokens are embedded with standard deviation 1, positions are added, and the embedding of
    the target's tokens also scores what comes next.

    Parameters
    ----------
    n_source, n_target : int
        Sizes of the vocabularies.
    shared : bool
        Whether both sides have one vocabulary and one embedding.
    d_model : int
        Width of the tokens.
    max_length : int
        Tokens of the longest sequence, START or END included.
    **shape
        What else :class:`~sklearn_attention.nn.TokenEncoder` takes, for both sides.
    """

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
        """The source's tokens, as the decoder sees them.

        Parameters
        ----------
        source : LongTensor of shape (B, S)

        Returns
        -------
        encoded : Tensor of shape (B, S, d_model)
        """
        x = self.embed_source(source) * self.d_model**0.5
        return self.encoder(x, padding=source != PADDING)[0]

    def decode(self, target, encoded, real, *, cache=None, need_weights=False):
        """Tokens of the target, each knowing those before it and the source.

        Parameters
        ----------
        target : LongTensor of shape (B, T)
        encoded : Tensor of shape (B, S, d_model)
        real : Tensor of bool of shape (B, S)
            Where the source has no padding.
        cache : KeyValueCache, default=None
            Of tokens before these.
        need_weights : bool, default=False

        Returns
        -------
        x : Tensor of shape (B, T, d_model)
        weights : list of pairs of Tensor, or None
        """
        # Padding stands behind a target's end, where nothing before it looks.
        x = self.embed_target(target) * self.d_model**0.5
        return self.decoder(
            x, encoded, source_padding=real, cache=cache, need_weights=need_weights
        )

    def scores(self, x):
        """Logits of each next token.

        Parameters
        ----------
        x : Tensor of shape (..., d_model)

        Returns
        -------
        logits : Tensor of shape (..., n_target)
        """
        return linear(x, self.embed_target.weight)


def pair_loss(network, source, target, *, label_smoothing=0.0):
    r"""Mean negative log-likelihood of the targets' tokens, END among them.

    Parameters
    ----------
    network : Seq2SeqNetwork
    source : LongTensor of shape (B, S)
    target : LongTensor of shape (B, T)
        From START on.
    label_smoothing : float, default=0.0
        Share :math:`\epsilon` of the probability that is asked for of all tokens alike:
        :math:`-(1 - \epsilon) \log p_y - \epsilon\, \overline{\log p}`.

    Returns
    -------
    loss : Tensor
    """
    x, real = _before_each_token(network, source, target)
    return cross_entropy(
        network.scores(x), target[:, 1:][real], label_smoothing=label_smoothing
    )


def log_likelihoods(network, source, target):
    """Log-probability of every token of the targets, given the source and those before.

    Parameters
    ----------
    network, source, target
        As for :func:`pair_loss`.

    Returns
    -------
    logs : list of Tensor
        For each target its tokens after START.
    """
    x, real = _before_each_token(network, source, target)
    logs = network.scores(x).float().log_softmax(dim=-1)
    own = logs.gather(1, target[:, 1:][real][:, None])[:, 0]
    return list(own.split(real.sum(dim=1).tolist()))


def cross_weights(network, source, target):
    """What each token of the targets averages of its source.

    Parameters
    ----------
    network, source, target
        As for :func:`pair_loss`.

    Returns
    -------
    weights : list of Tensor of shape (n_layers, n_heads, n_target, n_source)
        For each pair its real tokens, those of the target after START.
    """
    real = source != PADDING
    _, maps = network.decode(target[:, :-1], network.encode(source), real, need_weights=True)
    layers = torch.stack([cross for _, cross in maps], dim=1)
    n_read, n_written = real.sum(dim=1), (target[:, 1:] != PADDING).sum(dim=1)
    sizes = zip(layers, n_written.tolist(), n_read.tolist(), strict=True)
    return [weights[:, :, :written, :read] for weights, written, read in sizes]


def _before_each_token(network, source, target):
    """What the decoder says before real tokens, (n_real, d_model); and where they are."""
    encoded, following = network.encode(source), target[:, 1:]
    x, _ = network.decode(target[:, :-1], encoded, source != PADDING)
    real = following != PADDING
    # Scores are the largest part of the work: none for padding.
    return x[real], real
