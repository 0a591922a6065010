"""The sequence-to-sequence transformer: its loss, its log-likelihoods, and beam search.

Batches have B sources of S ids, which end with END, and B targets of T ids between START and
END, padded at their ends. Masks `is_token` are True for ids and False for padding.
"""

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
from ..training._network import use_best_threads
from ._language_network import MOST_TOKENS, OUTPUT_GAIN


class Seq2SeqNetwork(nn.Module):
    """Encoder of a source, and decoder that predicts each next token of a target."""

    # The embeddings of the target's tokens are also the weights of the output layer. They are
    # multiplied by the square root of d_model, as in Vaswani et al. (2017), so that they have
    # standard deviation 1. Source and target may share one vocabulary.

    def __init__(self, n_source, n_target, *, shared, d_model, max_length, **shape):
        super().__init__()
        self.d_model = d_model
        self.embed_target = nn.Embedding(n_target, d_model)
        self.embed_source = self.embed_target if shared else nn.Embedding(n_source, d_model)
        self.encoder = TokenEncoder(d_model, max_length=max_length, **shape)
        self.decoder = TokenDecoder(d_model, max_length=max_length, **shape)
        initialize(self, output_gain=OUTPUT_GAIN)
        for child in self.children():
            if isinstance(child, nn.Embedding):
                nn.init.normal_(child.weight, std=d_model**-0.5)

    def encode(self, source):
        """Return vectors (B, S, d_model) of the tokens of sources (B, S)."""
        x = self.embed_source(source) * self.d_model**0.5
        return self.encoder(x, padding=source != PADDING)[0]

    def decode(self, target, encoded, source_is_token, *, cache=None, need_weights=False):
        """Decode targets: each token attends to the tokens before it and to the source.

        Parameters
        ----------
        target : Tensor of shape (B, T)
            Ids from START on; with a cache only those after the cached ones. Their padding
            needs no mask, since no token attends to later ones.
        encoded : Tensor of shape (B, S, d_model)
            Vectors of the source, from :meth:`encode`.
        source_is_token : Tensor of bool of shape (B, S)
            False for padding of the source.
        cache : KeyValueCache, default=None
            Keys and values of earlier tokens.
        need_weights : bool, default=False
            Whether to return the weights of the attention.

        Returns
        -------
        x : Tensor of shape (B, T, d_model)
            Vectors from which the next tokens are predicted.
        weights : list of tuple, or None
            For each layer weights among the target's tokens, and weights of the source's.
        """
        x = self.embed_target(target) * self.d_model**0.5
        return self.decoder(
            x, encoded, source_padding=source_is_token, cache=cache, need_weights=need_weights
        )

    def scores(self, x):
        """Return logits (..., n_target) of the next token, from vectors (..., d_model)."""
        return linear(x, self.embed_target.weight)


def pair_loss(network, source, target, *, label_smoothing=0.0):
    """Return the mean negative log-likelihood of the tokens of targets (B, T), END included.

    With label smoothing e, the loss of a token y is -(1 - e) log p_y - e mean(log p), where the
    mean is over the vocabulary.
    """
    x, is_token = _vectors_before_tokens(network, source, target)
    return cross_entropy(
        network.scores(x), target[:, 1:][is_token], label_smoothing=label_smoothing
    )


def log_likelihoods(network, source, target):
    """Return the log-likelihoods of the tokens of each target after START, a list of Tensor."""
    x, is_token = _vectors_before_tokens(network, source, target)
    logs = network.scores(x).float().log_softmax(dim=-1)
    token_logs = logs.gather(1, target[:, 1:][is_token][:, None])[:, 0]
    return list(token_logs.split(is_token.sum(dim=1).tolist()))


def cross_weights(network, source, target):
    """Return the attention to the source, a list of Tensor (n_layers, n_heads, T, S)."""
    is_token = source != PADDING
    encoded = network.encode(source)
    _, maps = network.decode(target[:, :-1], encoded, is_token, need_weights=True)
    layers = torch.stack([cross for _, cross in maps], dim=1)
    n_source, n_target = is_token.sum(dim=1), (target[:, 1:] != PADDING).sum(dim=1)
    sizes = zip(layers, n_target.tolist(), n_source.tolist(), strict=True)
    return [weights[:, :, :n_rows, :n_columns] for weights, n_rows, n_columns in sizes]


def _vectors_before_tokens(network, source, target):
    """Return the vectors (n, d_model) that predict the tokens of targets, without padding.

    The second result is a mask (B, T - 1) of the tokens after START. The decoder reads the true
    tokens (teacher forcing).
    """
    encoded = network.encode(source)
    x, _ = network.decode(target[:, :-1], encoded, source != PADDING)
    is_token = target[:, 1:] != PADDING
    # Logits take most of the time: padding is left out before they are computed.
    return x[is_token], is_token


def pair_training(pairs, held_out, device, label_smoothing):
    """Return the arguments of `fit_network` that depend on the pairs, as a dict.

    `pairs` and `held_out` are both a list of sources and one of targets.
    """
    device = resolve_device(device)

    def padded(pairs):
        return [torch.from_numpy(pad(ids)[0]).to(device) for ids in pairs]

    training, validation = padded(pairs), padded(held_out)
    lengths, blocks = _lengths(*pairs), blocks_by_length(_lengths(*held_out), MOST_TOKENS)

    def batch(padded_pairs, rows):
        """Return sources and targets of the rows, without columns that have only padding."""
        selected = [ids[rows.to(device)] for ids in padded_pairs]
        return [ids[:, : int((ids != PADDING).sum(dim=1).max())] for ids in selected]

    def batch_loss(network, rows):
        return pair_loss(network, *batch(training, rows), label_smoothing=label_smoothing)

    def validation_loss(network):
        total, n_tokens = 0.0, 0
        for rows in blocks:
            source, target = batch(validation, torch.from_numpy(rows))
            n = int((target[:, 1:] != PADDING).sum())
            total += n * pair_loss(network, source, target).item()
            n_tokens += n
        return total / n_tokens

    return {
        "batch_loss": batch_loss,
        "n_rows": len(lengths),
        "lengths": torch.from_numpy(lengths),
        "n_tokens": math.ceil(lengths.mean()),
        "validate": validation_loss if blocks else None,
        "data": [*(ids.numpy(force=True) for ids in training + validation), label_smoothing],
    }


@torch.no_grad()
def by_length(function, network, *columns, max_tokens=MOST_TOKENS):
    """Apply a function to rows, in batches of rows of similar length; return a list of arrays.

    Each of `columns` is a list with the ids of every row, such as sources and targets.
    ``function(network, *ids)`` takes a padded tensor for each column, and returns a list with a
    tensor for each row. Batches have at most `max_tokens` tokens.
    """
    device, lengths = next(network.parameters()).device, _lengths(*columns)
    blocks, results = blocks_by_length(lengths, max_tokens), [None] * len(lengths)
    with use_best_threads(network, max(lengths[rows].sum() for rows in blocks)):
        for rows in blocks:
            padded = [pad([column[i] for i in rows])[0] for column in columns]
            tensors = [torch.from_numpy(ids).to(device) for ids in padded]
            for row, result in zip(rows, function(network, *tensors), strict=True):
                results[row] = result.numpy(force=True)
    return results


def _lengths(*columns):
    """Count the tokens of each row (n_rows,) over all columns, which are lists of ids."""
    rows = zip(*columns, strict=True)
    return np.array([sum(map(len, row)) for row in rows], dtype=np.int64)


@torch.no_grad()
def beam_search(network, source, *, n_beams, length_penalty, max_length):
    """Find likely targets of sources (B, S); return a list of tensors of ids without END.

    A beam is a prefix of a target. Each step extends all beams by every token, and keeps the
    likeliest `n_beams` of each source, until `n_beams` prefixes of it have ended. The result is
    the ended prefix with the largest log P / ((5 + n) / 6)^length_penalty, where n is its
    number of tokens (Wu et al. 2016). A prefix of `max_length` tokens counts as ended.
    """
    n, device, excluded = len(source), source.device, [PADDING, START, UNKNOWN]
    best = [(-torch.inf, source.new_empty(0))] * n
    # `active` are the positions of sources that are not finished. Beam k of the i-th active
    # source is row i * n_beams + k of `encoded`, `is_token` and `prefixes`.
    active, n_ended = torch.arange(n, device=device), source.new_zeros(n)
    encoded = network.encode(source).repeat_interleave(n_beams, dim=0)
    is_token = (source != PADDING).repeat_interleave(n_beams, dim=0)
    prefixes = source.new_full((len(is_token), 1), START)
    cache = KeyValueCache(network.decoder.n_layers)
    # All beams of a source are equal at first, so that only the first one may count.
    log_proba = encoded.new_full((n, n_beams), -torch.inf)
    log_proba[:, 0] = 0.0
    for n_written in range(1, max_length + 1):
        # 1. Extend each beam by every token. At most `n_beams` of the likeliest prefixes end
        # and `n_beams` go on, so that 2 `n_beams` are enough.
        x, _ = network.decode(prefixes[:, -1:], encoded, is_token, cache=cache)
        logits = network.scores(x[:, 0]).float()
        logits[:, excluded] = -torch.inf
        token_log_proba = logits.log_softmax(dim=-1).view(len(active), n_beams, -1)
        extended = (log_proba[:, :, None] + token_log_proba).flatten(1)
        log_proba, positions = extended.topk(2 * n_beams, dim=1)
        n_tokens = token_log_proba.shape[-1]
        number = torch.arange(len(active), device=device)[:, None]
        rows, tokens = number * n_beams + positions // n_tokens, positions % n_tokens
        longer = torch.cat([prefixes[rows], tokens[..., None]], dim=-1)
        # 2. Compare the prefixes that end among the likeliest `n_beams` with earlier ones. If
        # fewer prefixes exist than beams, the others have probability 0.
        has_ended = ((tokens == END) | (n_written == max_length)) & (log_proba > -torch.inf)
        has_ended[:, n_beams:] = False
        penalty = ((5 + n_written) / 6) ** length_penalty
        _keep_best(best, active, longer, log_proba, penalty, has_ended)
        n_ended += has_ended.sum(dim=1)
        # 3. Go on with the likeliest other prefixes of the sources that are not finished.
        is_active = n_ended < n_beams
        if not is_active.any():
            break
        unended = log_proba.masked_fill(tokens == END, -torch.inf)
        log_proba, order = unended.topk(n_beams, dim=1)
        rows = rows[number, order][is_active].flatten()
        prefixes = longer[number, order][is_active].flatten(0, 1)
        if n_beams > 1 or not is_active.all():
            # Keys and values of the source are the same for all of its beams.
            cache.select(rows, source=not is_active.all())
        if not is_active.all():
            encoded, is_token = encoded[rows], is_token[rows]
            active, n_ended = active[is_active], n_ended[is_active]
            log_proba = log_proba[is_active]
    return [target for _, target in best]


def _keep_best(best, active, prefixes, log_proba, penalty, has_ended):
    """Update the best ended targets of sources in place.

    Parameters
    ----------
    best : list of tuple
        For each source the largest score so far, and the ids of this target.
    active : Tensor of shape (n_active,)
        Positions of the sources in `best`.
    prefixes : Tensor of shape (n_active, n_prefixes, T)
        Ids from START on.
    log_proba : Tensor of shape (n_active, n_prefixes)
        Log-probabilities of the prefixes. The scores are these, divided by `penalty`.
    penalty : float
    has_ended : Tensor of bool of shape (n_active, n_prefixes)
    """
    for i, j in has_ended.nonzero().tolist():
        score, position = log_proba[i, j].item() / penalty, active[i].item()
        if score > best[position][0]:
            target = prefixes[i, j, 1:]
            best[position] = score, target[target != END]
