"""The transformer that predicts the next token: its loss, log-probabilities, and generation.

Batches have B sequences of T ids. A prefix or prompt begins with START.
"""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import linear, log_softmax, nll_loss

from ..nn import KeyValueCache, TokenEncoder
from ..nn._random import generator_for, initialize
from ..text import pad
from ..text._special import END, PADDING, START
from ..training._network import use_best_threads
from ._token_windows import context_start

# Factor of the initial weights of the last layer of each block. At 0 blocks would learn only
# once these weights have grown: a tenth is about as good as 0 in long trainings, and better in
# short ones (benchmarks/learning.md).
OUTPUT_GAIN = 0.1
# Largest number of tokens of a batch if nothing is learned. Each has logits of all tokens,
# which take most of the memory.
MOST_TOKENS = 2**13


class LanguageNetwork(nn.Module):
    """Causal encoder of tokens, with logits of the next token after each.

    The embeddings of the tokens are also the weights of the output layer. `shape` has arguments
    of `TokenEncoder`.
    """

    def __init__(self, n_tokens, max_length, *, d_model, **shape):
        super().__init__()
        self.max_length = max_length
        self.embed = nn.Embedding(n_tokens, d_model)
        # Biases would cost an eighth of the time.
        self.encoder = TokenEncoder(d_model, max_length=max_length, bias=False, **shape)
        initialize(self, output_gain=OUTPUT_GAIN)

    def forward(self, ids, *, cache=None, need_weights=False):
        """Return logits (B, T, n_tokens) of the token after each of ids (B, T).

        The second result are attention weights (B, n_heads, T, T) of each layer, or None.
        """
        x, weights = self.encode(ids, cache=cache, need_weights=need_weights)
        return linear(x, self.embed.weight), weights

    def encode(self, ids, *, cache=None, need_weights=False):
        """Return vectors (B, T, d_model) after the last layer, and weights as `forward`."""
        return self.encoder(
            self.embed(ids), causal=True, need_weights=need_weights, cache=cache
        )

    def log_proba(self, windows):
        """Return log-probabilities (n_pairs,) of the second tokens of all pairs of a stream.

        They are in the order of the stream of `windows`, which are TokenWindows. A pair that
        several windows share counts once, since `windows.batch` has PADDING for its second
        token in all windows but the first.
        """

        def pair_log_proba(ids, following):
            log_proba = _log_proba(self(ids)[0])  # (B, T, n_tokens)
            following_log_proba = log_proba.gather(-1, following[..., None])[..., 0]
            return following_log_proba[following != PADDING]

        indices = np.arange(len(windows))
        return self._in_batches(indices, windows.batch, pair_log_proba).astype(np.float64)

    def next_log_proba(self, prefixes):
        """Return log-probabilities (n_prefixes, n_tokens) of the next token after prefixes."""

        def log_proba_after_last(ids, is_token):
            last = is_token.sum(dim=1) - 1
            return _log_proba(self(ids)[0][torch.arange(len(ids)), last])

        return self._in_batches(prefixes, self._contexts, log_proba_after_last)

    def vectors(self, prefixes):
        """Average vectors after the last layer over the context at the end of each prefix.

        The result has the shape (n_prefixes, d_model).
        """

        def mean_vectors(ids, is_token):
            total = self.encode(ids)[0].masked_fill(~is_token[..., None], 0.0).sum(dim=1)
            return total / is_token.sum(dim=1, keepdim=True)

        return self._in_batches(prefixes, self._contexts, mean_vectors)

    def attention_maps(self, ids):
        """Return attention weights (n_layers, n_heads, T, T) within a prefix `ids` (T,)."""

        def weights_of_layers(ids, _):
            return torch.cat(self(ids, need_weights=True)[1])

        return self._in_batches([ids], self._contexts, weights_of_layers)

    def _contexts(self, prefixes):
        """Return the ids of the context at the end of each prefix, and a mask of its tokens.

        Both are (B, T), and the mask is False for padding. The network does not need the mask:
        its attention is causal, so that no token attends to the padding after it.
        """
        starts = [context_start(len(prefix), self.max_length) for prefix in prefixes]
        return pad([prefix[start:] for prefix, start in zip(prefixes, starts, strict=True)])

    @torch.no_grad()
    def _in_batches(self, items, make_batch, function):
        """Apply a function to batches of items, and concatenate its results.

        Parameters
        ----------
        items : list or ndarray
            Prefixes, or positions of windows.
        make_batch : callable
            ``make_batch(items)`` returns the arrays of a batch; the first one has ids (B, T).
        function : callable
            ``function(*tensors)`` gets these arrays as tensors, and returns a tensor.
        """
        device, results = self.embed.weight.device, []
        size = max(1, MOST_TOKENS // self.max_length)
        for first in range(0, len(items), size):
            arrays = make_batch(items[first : first + size])
            tensors = [torch.from_numpy(array).to(device) for array in arrays]
            with use_best_threads(self, tensors[0].numel()):
                results.append(function(*tensors).cpu().numpy())
        return np.concatenate(results)

    @torch.no_grad()
    def write(self, prompts, n_new, choose, stops=None):
        """Continue prompts of one length, and return a list of the new ids before END.

        Parameters
        ----------
        prompts : ndarray of int of shape (n, T)
        n_new : int
            Largest number of new tokens.
        choose : callable
            ``choose(log_proba, ids)`` returns the next tokens (n,), given log-probabilities
            (n, n_tokens) of the next token and all ids (n, n_ids) before it.
        stops : callable, default=None
            ``stops(ids)`` gets all new ids (n_ids,) of one prompt so far, and returns whether
            its continuation ends here.
        """
        device = self.embed.weight.device
        n_prompt = prompts.shape[1]
        ids = torch.full((len(prompts), n_prompt + n_new), END)
        ids[:, :n_prompt] = torch.from_numpy(prompts)
        has_ended = np.zeros(len(prompts), dtype=bool)
        # The keys and values of ids[start:first_uncached] are in the cache.
        start = first_uncached = cache = None
        for n_tokens in range(n_prompt, n_prompt + n_new):
            last_start, start = start, context_start(n_tokens, self.max_length)
            if start != last_start:
                # The context has moved on, so that all tokens have other positions in it now.
                cache, first_uncached = KeyValueCache(self.encoder.n_layers), start
            uncached = ids[:, first_uncached:n_tokens]
            with use_best_threads(self, uncached.numel()):
                logits, _ = self(uncached.to(device), cache=cache)
                log_proba = _log_proba(logits[:, -1]).cpu().numpy()
            next_ids = choose(log_proba, ids[:, :n_tokens].numpy())
            has_ended |= next_ids == END
            next_ids[has_ended] = END
            ids[:, n_tokens], first_uncached = torch.from_numpy(next_ids), n_tokens
            if stops is not None and not has_ended.all():
                written = ids[:, n_prompt : n_tokens + 1].numpy()
                for row in np.flatnonzero(~has_ended):
                    has_ended[row] = stops(written[row])
            if has_ended.all():
                break
        written = ids[:, n_prompt:].numpy()
        return [row[: np.argmax(np.append(row, END) == END)] for row in written]


def window_loss(windows):
    """Return the loss ``batch_loss(network, indices)`` of windows that are moved at random.

    `windows` are TokenWindows, and `indices` (B,) a tensor with positions of some of them. The
    loss is the negative log-likelihood of the tokens of these windows, divided by B and by the
    mean length of all windows. So all tokens count the same, also those of short windows.
    """
    mean_length = windows.lengths.mean()

    def batch_loss(network, indices):
        draws = torch.rand(len(indices), dtype=torch.float64, generator=generator_for())
        shifts = draws.numpy() - 0.5
        batch = windows.moved_batch(indices.cpu().numpy(), shifts)
        ids, following = (torch.from_numpy(array).to(indices.device) for array in batch)
        log_proba = _log_proba(network(ids)[0])  # (B, T, n_tokens)
        total = nll_loss(
            log_proba.flatten(0, 1), following.flatten(), ignore_index=PADDING, reduction="sum"
        )
        return total / (len(indices) * mean_length)

    return batch_loss


def _log_proba(logits):
    """Normalise logits (..., n_tokens) over the tokens that can come next, as float32."""
    impossible = torch.tensor([PADDING, START], device=logits.device)
    return log_softmax(logits.float().index_fill(-1, impossible, -torch.inf), dim=-1)
