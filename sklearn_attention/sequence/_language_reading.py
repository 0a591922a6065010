"""The loss of a language network, its log-probabilities, and the texts it writes."""

import numpy as np
import torch
from torch.nn.functional import log_softmax, nll_loss

from ..nn import KeyValueCache
from ..nn._random import generator_for
from ..text import pad
from ..text._special import END, PADDING, START
from ..training._network import threads_of_pass
from ._token_windows import context_start

# Tokens that the network sees at once.
_BLOCK = 2**13


def window_loss(windows):
    """Loss for `train`: minus the log-likelihood per token of windows, each moved at random."""
    # Batches of short windows count less than those of long ones, so that all tokens count
    # alike.
    mean_length = windows.lengths.mean()

    def batch_loss(network, rows):
        draws = torch.rand(len(rows), dtype=torch.float64, generator=generator_for())
        shifts = draws.numpy() - 0.5
        batch = windows.moved(rows.cpu().numpy(), shifts)
        ids, following = (torch.from_numpy(part).to(rows.device) for part in batch)
        log_proba = _log_proba(network(ids)[0])  # (B, T, n_tokens)
        total = nll_loss(
            log_proba.flatten(0, 1), following.flatten(), ignore_index=PADDING, reduction="sum"
        )
        return total / (len(rows) * mean_length)

    return batch_loss


@torch.no_grad()
def log_proba_of(network, windows):
    """Log-probabilities of the tokens in windows, each once, in the order of their stream."""
    device, found = next(network.parameters()).device, []
    size = max(1, _BLOCK // windows.max_length)
    for first in range(0, len(windows), size):
        rows = np.arange(first, min(first + size, len(windows)))
        ids, following = map(torch.from_numpy, windows.batch(rows))
        with threads_of_pass(network, ids.numel()):
            log_proba = _log_proba(network(ids.to(device))[0])  # (B, T, n_tokens)
            each = log_proba.gather(-1, following.to(device)[..., None])[..., 0].cpu()
        found.append(each[following != PADDING].double().numpy())
    return np.concatenate(found)


@torch.no_grad()
def next_log_proba(network, prefixes):
    """Log-probabilities (n_prefixes, n_tokens) of the next token; prefixes begin with START."""
    found = []
    for ids, lengths in _contexts(network, prefixes):
        with threads_of_pass(network, ids.numel()):
            logits, _ = network(ids)
            last = logits[torch.arange(len(ids)), lengths - 1]  # (B, n_tokens)
            found.append(_log_proba(last).cpu())
    return torch.cat(found).numpy()


@torch.no_grad()
def text_vectors(network, prefixes):
    """Means (n_prefixes, d_model) of the network's vectors of the tokens of prefixes."""
    found = []
    for ids, lengths in _contexts(network, prefixes):
        with threads_of_pass(network, ids.numel()):
            tokens = network.encode(ids)[0]  # (B, T, d_model)
            real = torch.arange(ids.shape[1]) < lengths[:, None]
            total = tokens.masked_fill(~real[..., None].to(tokens.device), 0.0).sum(dim=1)
            found.append(total.cpu() / lengths[:, None])
    return torch.cat(found).numpy()


def _contexts(network, prefixes):
    """The last context of each sequence, in batches: ids of shape (B, T), and lengths.

    Nothing sees the padding, which comes later.
    """
    device = next(network.parameters()).device
    size = max(1, _BLOCK // network.max_length)
    for first in range(0, len(prefixes), size):
        parts = [
            prefix[context_start(len(prefix), network.max_length) :]
            for prefix in prefixes[first : first + size]
        ]
        ids, real = pad(parts)
        yield torch.from_numpy(ids).to(device), torch.from_numpy(real.sum(axis=1))


@torch.no_grad()
def write(network, prompts, n_new, choose, stops=None):
    """Continue prompts (n, T) by up to `n_new` tokens: a list of ids before END for each.

    `choose(log_proba, ids)` returns the next tokens (n,); `stops(ids)` is True for an end.
    """
    device = next(network.parameters()).device
    n_prompt = prompts.shape[1]
    ids = torch.full((len(prompts), n_prompt + n_new), END)
    ids[:, :n_prompt] = torch.from_numpy(prompts)
    ended = np.zeros(len(prompts), dtype=bool)
    start = seen = cache = None
    for n_tokens in range(n_prompt, n_prompt + n_new):
        before, start = start, context_start(n_tokens, network.max_length)
        if start != before:
            # The context has moved on, and its tokens stand at other positions.
            cache, seen = KeyValueCache(network.encoder.n_layers), start
        new = ids[:, seen:n_tokens]
        with threads_of_pass(network, new.numel()):
            logits, _ = network(new.to(device), cache=cache)
            log_proba = _log_proba(logits[:, -1]).cpu().numpy()
        chosen = choose(log_proba, ids[:, :n_tokens].numpy())
        ended |= chosen == END
        if ended.all():
            break
        chosen[ended] = END
        ids[:, n_tokens], seen = torch.from_numpy(chosen), n_tokens
        if stops is not None:
            written = ids[:, n_prompt : n_tokens + 1].numpy()
            ended |= [end or stops(row) for end, row in zip(ended, written, strict=True)]
            if ended.all():
                break
    written = ids[:, n_prompt:].numpy()
    return [row[: np.argmax(np.append(row, END) == END)] for row in written]


@torch.no_grad()
def attention_weights(network, ids):
    """Weights (n_layers, n_heads, T, T) of the attention within ids (T,), START first."""
    device = next(network.parameters()).device
    with threads_of_pass(network, len(ids)):
        _, maps = network(torch.from_numpy(ids)[None].to(device), need_weights=True)
    return torch.cat(maps).cpu().numpy()


def _log_proba(logits):
    """Normalised over the tokens that can come next, in single precision."""
    never = torch.tensor([PADDING, START], device=logits.device)
    return log_softmax(logits.float().index_fill(-1, never, -torch.inf), dim=-1)
