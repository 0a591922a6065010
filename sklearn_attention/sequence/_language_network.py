"""The transformer that predicts the next token."""

from torch import nn
from torch.nn.functional import linear

from ..nn import TokenEncoder
from ..nn._initialize import initialize

# Blocks add little at first, and all learn at once: a tenth is about as good as 0 in long
# trainings, and better in short ones (benchmarks/learning.md).
OUTPUT_GAIN = 0.1


class LanguageNetwork(nn.Module):
    """Causal encoder of tokens, and for each of them the logits of the next one.

    The table of the tokens' vectors also reads off the logits.

    Parameters
    ----------
    n_tokens : int
        Size of the vocabulary.
    max_length : int
        Most tokens of a sequence.
    d_model : int
        Width of the tokens.
    **shape
        What else :class:`~sklearn_attention.nn.TokenEncoder` takes.
    """

    def __init__(self, n_tokens, max_length, *, d_model, **shape):
        super().__init__()
        self.max_length = max_length
        self.embed = nn.Embedding(n_tokens, d_model)
        # Biases would cost an eighth of the time.
        self.encoder = TokenEncoder(d_model, max_length=max_length, bias=False, **shape)
        initialize(self, output_gain=OUTPUT_GAIN)

    def forward(self, ids, *, cache=None, need_weights=False):
        """Logits of the next token after each.

        Parameters
        ----------
        ids : LongTensor of shape (B, T)
        cache : KeyValueCache, default=None
            Of tokens before these.
        need_weights : bool, default=False
            Whether to return the weights of the attention.

        Returns
        -------
        logits : Tensor of shape (B, T, n_tokens)
        weights : list of Tensor of shape (B, n_heads, T, T) or None
            One for each layer.
        """
        x, weights = self.encode(ids, cache=cache, need_weights=need_weights)
        return linear(x, self.embed.weight), weights

    def encode(self, ids, *, cache=None, need_weights=False):
        """Tokens after all blocks, (B, T, d_model), and weights; as for :meth:`forward`."""
        return self.encoder(
            self.embed(ids), causal=True, need_weights=need_weights, cache=cache
        )
