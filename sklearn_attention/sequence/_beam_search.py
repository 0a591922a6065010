"""Writing a target: the most likely next token again and again, or several beams of them."""

import torch

from ..nn import KeyValueCache
from ..text._special import END, PADDING, START, UNKNOWN

# Tokens that are read, never written.
_NEVER = [PADDING, START, UNKNOWN]


@torch.no_grad()
def beam_search(network, source, *, n_beams, length_penalty, max_length):
    """Likeliest targets of sources (B, S), a list of lists of ids without END."""
    # Beams are prefixes of a target. Each step extends all of them by every token and keeps the
    # likeliest `n_beams` of each source, until so many of its prefixes have ended. Of these the
    # one of largest log P / ((5 + n) / 6)^length_penalty is taken, with n its number of tokens
    # (Wu et al. 2016). A prefix of `max_length` tokens counts as ended.
    search = _Search(network, source, n_beams, length_penalty)
    for n_written in range(1, max_length + 1):
        search.step(last=n_written == max_length)
        if not len(search.open):
            break
    return search.targets


class _Search:
    """Sources that are not finished, with their beams side by side."""

    def __init__(self, network, source, n_beams, length_penalty):
        n = len(source)
        self.network, self.n_beams, self.length_penalty = network, n_beams, length_penalty
        # Beam k of the i-th open source is row i * n_beams + k.
        self.open = torch.arange(n, device=source.device)
        self.encoded = network.encode(source).repeat_interleave(n_beams, dim=0)
        self.real = (source != PADDING).repeat_interleave(n_beams, dim=0)
        self.cache = KeyValueCache(network.decoder.n_layers)
        self.tokens = source.new_full((n * n_beams, 1), START)
        # All beams begin alike: only the first of them counts at first.
        self.scores = self.encoded.new_full((n, n_beams), -torch.inf)
        self.scores[:, 0] = 0.0
        self.targets, self.best = [[] for _ in range(n)], [-torch.inf] * n
        self.n_ended = torch.zeros(n, dtype=torch.long, device=source.device)

    def step(self, last):
        """Extend every beam by a token."""
        logits = self._next_logits()  # (n_open * n_beams, n_target)
        logits[:, _NEVER] = -torch.inf
        logs = logits.log_softmax(dim=-1).view(len(self.open), self.n_beams, -1)
        n_tokens = logs.shape[-1]
        extended = (self.scores[:, :, None] + logs).flatten(1)
        # As many of the best may end as there are beams, and as many have to go on.
        scores, places = extended.topk(2 * self.n_beams, dim=1)  # (n_open, 2 n_beams)
        beams, tokens = places // n_tokens, places % n_tokens
        ended = tokens == END
        if last:
            ended = torch.ones_like(ended)
        ended[:, self.n_beams :] = False
        # Where there are fewer prefixes than beams, the rest have probability 0.
        ended &= scores > -torch.inf
        self._collect(ended, scores, beams, tokens)
        self._go_on(tokens, scores, beams)
        self._close(last)

    def _next_logits(self):
        x, _ = self.network.decode(
            self.tokens[:, -1:], self.encoded, self.real, cache=self.cache
        )  # (n_open * n_beams, 1, d_model)
        return self.network.scores(x[:, 0]).float()

    def _collect(self, ended, scores, beams, tokens):
        """Keep the best of the prefixes that have ended."""
        n_written = self.tokens.shape[1]
        unit = ((5 + n_written) / 6) ** self.length_penalty
        for i, j in ended.nonzero().tolist():
            score = scores[i, j].item()
            which = self.open[i].item()
            if score / unit > self.best[which]:
                self.best[which] = score / unit
                prefix = self.tokens[i * self.n_beams + beams[i, j], 1:].tolist()
                token = tokens[i, j].item()
                self.targets[which] = prefix if token == END else [*prefix, token]
        self.n_ended += ended.sum(dim=1)

    def _go_on(self, tokens, scores, beams):
        """The likeliest beams that have not ended."""
        going = scores.masked_fill(tokens == END, -torch.inf)
        self.scores, best = going.topk(self.n_beams, dim=1)  # (n_open, n_beams)
        own = torch.arange(len(self.open), device=best.device)[:, None] * self.n_beams
        rows = (own + beams.gather(1, best)).flatten()
        if self.n_beams > 1:
            # Beams of one source share its keys and values.
            self.cache.select(rows, source=False)
        self.tokens = torch.cat([self.tokens[rows], tokens.gather(1, best).view(-1, 1)], dim=1)

    def _close(self, last):
        """Drop the sources that are finished."""
        stays = (self.n_ended < self.n_beams) & (not last)
        if stays.all():
            return
        rows = stays.repeat_interleave(self.n_beams).nonzero()[:, 0]
        self.cache.select(rows)
        self.tokens, self.encoded, self.real = (
            x[rows] for x in (self.tokens, self.encoded, self.real)
        )
        self.open, self.scores, self.n_ended = (
            x[stays] for x in (self.open, self.scores, self.n_ended)
        )
