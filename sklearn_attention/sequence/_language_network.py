"""The transformer that predicts the next token."""

from torch import nn
from torch.nn.functional import linear

from ..nn import TokenEncoder
from ..nn._random import initialize

# Blocks add little at first, and all learn at once: a tenth is about as good as 0 in long
# trainings, and better in short ones (benchmarks/learning.md).
OUTPUT_GAIN = 0.1


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
