"""The transformer that predicts the next token."""

from torch import nn
from torch.nn.functional import linear

from ..nn import Dropout, Encoder, initialize, make_positions


class LanguageNetwork(nn.Module):
    """Causal encoder of tokens, and for each of them the logits of the next one.

    The table of the tokens' vectors also reads off the logits.

    Parameters
    ----------
    n_tokens : int
        Size of the vocabulary.
    max_length : int
        Most tokens of a sequence.
    d_model, n_heads, n_layers, d_feedforward : int
        As for :class:`~sklearn_attention.nn.Encoder`.
    positions : {"rotary", "learned", "sinusoidal"}
        How tokens know where they stand.
    dropout : float
        Probability with which parts are left out in training.
    **options
        What else the encoder takes.
    """

    def __init__(
        self,
        n_tokens,
        max_length,
        *,
        d_model,
        n_heads,
        n_layers,
        d_feedforward,
        positions,
        dropout,
        **options,
    ):
        super().__init__()
        self.max_length = max_length
        self.embed = nn.Embedding(n_tokens, d_model)
        self.positions = make_positions(positions, d_model, max_length=max_length)
        self.dropout = Dropout(dropout)
        rotary = positions == "rotary"
        # Biases would cost an eighth of the time.
        self.encoder = Encoder(
            n_layers, d_model, n_heads, d_feedforward, rotary=rotary, dropout=dropout,
            bias=False, **options,
        )  # fmt: skip
        initialize(self)

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
        # (B, T, d_model)
        x = self.positions(self.embed(ids), 0 if cache is None else cache.n_tokens)
        x, weights = self.encoder(
            self.dropout(x), causal=True, need_weights=need_weights, cache=cache
        )
        return linear(x, self.embed.weight), weights
