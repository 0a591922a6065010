"""The transformer that predicts the next token: its loss, log-probabilities, and texts."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import linear, log_softmax, nll_loss

from ..nn import KeyValueCache, TokenEncoder
from ..nn._random import generator_for, initialize
from ..text import pad
from ..text._special import END, PADDING, START
from ..training._network import threads_of_pass
from ._token_windows import context_start

# Blocks add little at first, and all learn at once: a tenth is about as good as 0 in long
# trainings, and better in short ones (benchmarks/learning.md).
OUTPUT_GAIN = 0.1
# Tokens that are computed at once where nothing is learned; each has a score for all tokens.
MOST_TOKENS = 2**13


class LanguageNetwork(nn.Module):
    """Causal encoder of tokens, with logits of the next token after each.

    One table embeds the tokens and scores the next; `shape` is that of `TokenEncoder`.
    """

    def __init__(self, n_tokens, max_length, *, d_model, **shape):
        super().__init__()
        self.max_length = max_length
        self.embed = nn.Embedding(n_tokens, d_model)
        # Biases would cost an eighth of the time.
        self.encoder = TokenEncoder(d_model, max_length=max_length, bias=False, **shape)
        initialize(self, output_gain=OUTPUT_GAIN)

    def forward(self, ids, *, cache=None, need_weights=False):
        """Logits (B, T, n_tokens) after each of ids (B, T), and weights of layers, or None."""
        x, weights = self.encode(ids, cache=cache, need_weights=need_weights)
        return linear(x, self.embed.weight), weights

    def encode(self, ids, *, cache=None, need_weights=False):
        """Tokens after all blocks, (B, T, d_model), and weights; as for :meth:`forward`."""
        return self.encoder(
            self.embed(ids), causal=True, need_weights=need_weights, cache=cache
        )

    def log_proba(self, windows):
        """Log-probabilities of the tokens in windows, each once, in the order of the stream."""

        def of_windows(ids, following):
            log_proba = _log_proba(self(ids)[0])  # (B, T, n_tokens)
            each = log_proba.gather(-1, following[..., None])[..., 0]
            return each[following != PADDING]

        rows = np.arange(len(windows))
        return self._in_batches(rows, windows.batch, of_windows).astype(np.float64)

    def next_log_proba(self, prefixes):
        """Log-probabilities (n_prefixes, n_tokens) of the next token, START being the first."""

        def of_last(ids, real):
            return _log_proba(self(ids)[0][torch.arange(len(ids)), real.sum(dim=1) - 1])

        return self._in_batches(prefixes, self._contexts, of_last)

    def vectors(self, prefixes):
        """Means (n_prefixes, d_model) of the vectors of the tokens of prefixes."""

        def mean(ids, real):
            total = self.encode(ids)[0].masked_fill(~real[..., None], 0.0).sum(dim=1)
            return total / real.sum(dim=1, keepdim=True)

        return self._in_batches(prefixes, self._contexts, mean)

    def attention_maps(self, ids):
        """Weights (n_layers, n_heads, T, T) of the attention within ids (T,), START first."""

        def of_layers(ids, _):
            return torch.cat(self(ids, need_weights=True)[1])

        return self._in_batches([ids], self._contexts, of_layers)

    def _contexts(self, prefixes):
        """The last context of each sequence: ids (B, T), and which are real."""
        # Nothing sees the padding, which comes later.
        starts = (context_start(len(prefix), self.max_length) for prefix in prefixes)
        return pad([prefix[start:] for prefix, start in zip(prefixes, starts, strict=True)])

    @torch.no_grad()
    def _in_batches(self, rows, batch_of, function):
        """Results of ``function(*batch_of(rows))`` for some rows at a time, as one array."""
        device, results = self.embed.weight.device, []
        size = max(1, MOST_TOKENS // self.max_length)
        for first in range(0, len(rows), size):
            batch = batch_of(rows[first : first + size])  # ids (B, T), and what goes with them
            batch = [torch.from_numpy(part).to(device) for part in batch]
            with threads_of_pass(self, batch[0].numel()):
                results.append(function(*batch).cpu().numpy())
        return np.concatenate(results)

    @torch.no_grad()
    def write(self, prompts, n_new, choose, stops=None):
        """Continue prompts (n, T) by up to `n_new` tokens: a list of ids before END for each.

        `choose(log_proba, ids)` returns the next tokens (n,); `stops(ids)` is True for an end.
        """
        device = self.embed.weight.device
        n_prompt = prompts.shape[1]
        ids = torch.full((len(prompts), n_prompt + n_new), END)
        ids[:, :n_prompt] = torch.from_numpy(prompts)
        ended = np.zeros(len(prompts), dtype=bool)
        start = seen = cache = None
        for n_tokens in range(n_prompt, n_prompt + n_new):
            before, start = start, context_start(n_tokens, self.max_length)
            if start != before:
                # The context has moved on, and its tokens stand at other positions.
                cache, seen = KeyValueCache(self.encoder.n_layers), start
            new = ids[:, seen:n_tokens]
            with threads_of_pass(self, new.numel()):
                logits, _ = self(new.to(device), cache=cache)
                log_proba = _log_proba(logits[:, -1]).cpu().numpy()
            chosen = choose(log_proba, ids[:, :n_tokens].numpy())
            ended |= chosen == END
            chosen[ended] = END
            ids[:, n_tokens], seen = torch.from_numpy(chosen), n_tokens
            if stops is not None and not ended.all():
                written = ids[:, n_prompt : n_tokens + 1].numpy()
                ended |= [end or stops(row) for end, row in zip(ended, written, strict=True)]
            if ended.all():
                break
        written = ids[:, n_prompt:].numpy()
        return [row[: np.argmax(np.append(row, END) == END)] for row in written]


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


def _log_proba(logits):
    """Normalised over the tokens that can come next, in single precision."""
    never = torch.tensor([PADDING, START], device=logits.device)
    return log_softmax(logits.float().index_fill(-1, never, -torch.inf), dim=-1)
