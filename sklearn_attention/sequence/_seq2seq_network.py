"""The transformer that reads one sequence and writes another: its training, and its search."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear

from ..nn import KeyValueCache, TokenDecoder, TokenEncoder
from ..nn._random import initialize
from ..text import pad
from ..text._special import END, PADDING, START, UNKNOWN
from ..training._batches import blocks_by_length
from ..training._fit_network import resolve_device
from ..training._network import threads_of_pass
from ._language_network import MOST_TOKENS, OUTPUT_GAIN


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


def pair_training(pairs, held_out, device, label_smoothing):
    """Arguments of `fit_network`: the loss of pairs to learn from, and of those held out."""
    device = resolve_device(device)
    padded, judged = (
        [torch.from_numpy(pad(ids)[0]).to(device) for ids in part] for part in (pairs, held_out)
    )
    lengths, blocks = _lengths(*pairs), blocks_by_length(_lengths(*held_out), MOST_TOKENS)

    def batch(parts, rows):
        """Source and target of some pairs, without columns that have only padding."""
        found = [ids[rows.to(device)] for ids in parts]
        return [ids[:, : int((ids != PADDING).sum(dim=1).max())] for ids in found]

    def batch_loss(network, rows):
        return pair_loss(network, *batch(padded, rows), label_smoothing=label_smoothing)

    def validation_loss(network):
        total, n_tokens = 0.0, 0
        for rows in blocks:
            source, target = batch(judged, torch.from_numpy(rows))
            n = int((target[:, 1:] != PADDING).sum())
            total += n * pair_loss(network, source, target).item()
            n_tokens += n
        return total / n_tokens

    return {
        "batch_loss": batch_loss, "n_rows": len(lengths), "lengths": torch.from_numpy(lengths),
        "n_tokens": math.ceil(lengths.mean()), "validate": validation_loss if blocks else None,
        "data": [*(ids.numpy(force=True) for ids in padded + judged), label_smoothing],
    }  # fmt: skip


@torch.no_grad()
def by_length(function, network, *parts, most_tokens=MOST_TOKENS):
    """Results of ``function(network, *ids)`` for sequences, those of similar length together.

    The function returns a list with a tensor for each row; `parts` are lists of ids.
    """
    device, lengths = next(network.parameters()).device, _lengths(*parts)
    blocks, results = blocks_by_length(lengths, most_tokens), [None] * len(lengths)
    with threads_of_pass(network, max(lengths[rows].sum() for rows in blocks)):
        for rows in blocks:
            ids = [torch.from_numpy(pad([part[i] for i in rows])[0]) for part in parts]
            found = function(network, *(x.to(device) for x in ids))
            for row, result in zip(rows, found, strict=True):
                results[row] = result.numpy(force=True)
    return results


def _lengths(*parts):
    """Tokens of all sequences of each row, (n_rows,); `parts` are lists of ids."""
    return np.array([sum(map(len, row)) for row in zip(*parts, strict=True)], dtype=np.int64)


@torch.no_grad()
def beam_search(network, source, *, n_beams, length_penalty, max_length):
    """Likeliest targets of sources (B, S), a list of tensors of ids without END."""
    # Beams are prefixes of a target. Each step extends all of them by every token and keeps the
    # likeliest `n_beams` of each source, until so many of its prefixes have ended. Of these the
    # one of largest log P / ((5 + n) / 6)^length_penalty is taken, with n its number of tokens
    # (Wu et al. 2016). A prefix of `max_length` tokens counts as ended.
    n, device, never = len(source), source.device, [PADDING, START, UNKNOWN]
    targets, best = [source.new_empty(0)] * n, [-torch.inf] * n
    # Sources that are not finished; beam k of the i-th of them is row i * n_beams + k.
    going, n_ended = torch.arange(n, device=device), source.new_zeros(n)
    encoded = network.encode(source).repeat_interleave(n_beams, dim=0)
    real = (source != PADDING).repeat_interleave(n_beams, dim=0)
    prefixes, cache = (
        source.new_full((len(real), 1), START),
        KeyValueCache(network.decoder.n_layers),
    )
    # All beams begin alike: only the first of them counts at first.
    scores = encoded.new_full((n, n_beams), -torch.inf)
    scores[:, 0] = 0.0
    for n_written in range(1, max_length + 1):
        x, _ = network.decode(prefixes[:, -1:], encoded, real, cache=cache)
        logits = network.scores(x[:, 0]).float()
        logits[:, never] = -torch.inf
        logs = logits.log_softmax(dim=-1).view(len(going), n_beams, -1)
        # As many of the best may end as there are beams, and as many have to go on.
        scores, places = (scores[:, :, None] + logs).flatten(1).topk(2 * n_beams, dim=1)
        number, n_tokens = torch.arange(len(going), device=device)[:, None], logs.shape[-1]
        rows, tokens = number * n_beams + places // n_tokens, places % n_tokens
        longer = torch.cat([prefixes[rows], tokens[..., None]], dim=-1)
        # Where there are fewer prefixes than beams, the rest have probability 0.
        ended = ((tokens == END) | (n_written == max_length)) & (scores > -torch.inf)
        ended[:, n_beams:] = False
        unit = ((5 + n_written) / 6) ** length_penalty
        for i, j in ended.nonzero().tolist():
            score, which = scores[i, j].item() / unit, going[i].item()
            if score > best[which]:
                best[which] = score
                targets[which] = longer[i, j, 1 : n_written + (tokens[i, j].item() != END)]
        n_ended += ended.sum(dim=1)
        stays = n_ended < n_beams
        if not stays.any():
            break
        scores, kept = scores.masked_fill(tokens == END, -torch.inf).topk(n_beams, dim=1)
        rows, prefixes = rows[number, kept][stays].flatten(), longer[number, kept][stays]
        prefixes = prefixes.flatten(0, 1)
        if n_beams > 1 or not stays.all():
            # Beams of one source share its keys and values.
            cache.select(rows, source=not stays.all())
        if not stays.all():
            encoded, real = encoded[rows], real[rows]
            going, scores, n_ended = going[stays], scores[stays], n_ended[stays]
    return targets
