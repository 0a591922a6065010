"""The network of an encoder: tokens of rows, transformer, one vector and outputs of a row."""

import torch
from torch import nn

from ..nn import TokenEncoder
from ..nn._random import initialize
from ..text._special import UNKNOWN


class NumericTokens(nn.Module):
    """A token for every numeric feature of a row, piecewise linear in the number."""

    # t_j = b_j + z_j v_j + sum_k min(max(u_j - k, 0), 1) w_jk with the standardised number z_j
    # and its place u_j among the quantiles: linear between two quantiles and continuous
    # (Gorishniy et al. 2022). The sum starts at 0. The token of a missing number is b_j + m_j,
    # with a learned m_j that starts at 0 too.

    def __init__(self, n_features, n_pieces, d_model):
        super().__init__()
        spread = d_model**-0.5
        self.bias = nn.Parameter(torch.empty(n_features, d_model).uniform_(-spread, spread))
        self.slope = nn.Parameter(torch.empty(n_features, d_model).uniform_(-spread, spread))
        self.pieces = nn.Parameter(torch.zeros(n_features, n_pieces, d_model))
        self.missing = nn.Parameter(torch.zeros(n_features, d_model))
        self.register_buffer("starts", torch.arange(n_pieces), persistent=False)

    def forward(self, standardised, places):
        """Tokens (B, n_features, d_model); both inputs are NaN where missing."""
        missing = standardised.isnan()[..., None]  # (B, n_features, 1)
        # Zeros in their place: the gradient of what is not chosen must not be NaN.
        z, u = standardised.nan_to_num(0.0), places.nan_to_num(0.0)
        ramps = (u[..., None] - self.starts).clamp(0, 1)  # (B, n_features, n_pieces)
        bent = torch.einsum("bjk,jkd->bjd", ramps, self.pieces)
        known = z[..., None] * self.slope + bent  # (B, n_features, d_model)
        return self.bias + torch.where(missing, self.missing, known)


class FeatureTokens(nn.Module):
    """A token for every feature of a table, in the order of the features."""

    # Numbers have NumericTokens, each level of a category a learned vector. Levels that are
    # missing, or unknown in training, have one vector per category, which starts at 0.

    def __init__(self, d_model, *, n_levels, n_pieces):
        super().__init__()
        numeric = [j for j, n in enumerate(n_levels) if n is None]
        categorical = [j for j, n in enumerate(n_levels) if n is not None]
        self.numeric = NumericTokens(len(numeric), n_pieces, d_model) if numeric else None
        self.levels = None
        if categorical:
            sizes = torch.tensor([n_levels[j] + 1 for j in categorical])
            # Where the vectors of each category begin, with that of what is unknown.
            starts = sizes.cumsum(0) - sizes
            self.levels = nn.Embedding(int(sizes.sum()), d_model)
            nn.init.uniform_(self.levels.weight, -(d_model**-0.5), d_model**-0.5)
            with torch.no_grad():
                self.levels.weight[starts] = 0.0
            self.register_buffer("starts", starts, persistent=False)
        order = torch.tensor(numeric + categorical).argsort()
        self.register_buffer("order", order, persistent=False)

    def forward(self, standardised, places, codes):
        """Tokens (B, n_features, d_model); codes (B, n_categorical), -1 if unknown."""
        parts = []
        if self.numeric is not None:
            parts.append(self.numeric(standardised, places))
        if self.levels is not None:
            parts.append(self.levels(codes + 1 + self.starts))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)[:, self.order]


class StepTokens(nn.Module):
    """A token for every step of a sequence of numbers, linear in its channels."""

    # A missing value counts as the mean of its channel, plus a learned vector of the channel,
    # which starts at 0.

    def __init__(self, d_model, *, n_channels):
        super().__init__()
        self.linear = initialize(nn.Linear(n_channels, d_model))
        self.missing = nn.Linear(n_channels, d_model, bias=False)
        nn.init.zeros_(self.missing.weight)

    def forward(self, steps):
        """Tokens (B, T, d_model) of sequences (B, T, n_channels), NaN if missing."""
        missing = steps.isnan()
        tokens = self.linear(steps.nan_to_num(0.0))
        return tokens + self.missing(missing.to(tokens.dtype)) if missing.any() else tokens


class TextTokens(nn.Module):
    r"""A learned vector for every token of a text, times :math:`\sqrt{d}` as in Vaswani et al.

    The vector of unknown tokens starts at 0, and stays there if none are unknown in training.
    """

    def __init__(self, d_model, *, n_tokens):
        super().__init__()
        self.table = nn.Embedding(n_tokens, d_model)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        with torch.no_grad():
            self.table.weight[UNKNOWN] = 0.0

    def forward(self, ids):
        """Tokens (B, T, d_model) of ids (B, T)."""
        return self.table(ids) * self.table.embedding_dim**0.5


TOKENS = {"features": FeatureTokens, "steps": StepTokens, "text": TextTokens}


class RowEncoder(nn.Module):
    """A transformer encoder, whose tokens are pooled to one vector for each row."""

    # `tokens` are arguments of the tokens of a form, `shape` those of TokenEncoder. The vector
    # of a row is the mean of its tokens, the last one, or that of a further, learned token
    # before the first ("cls").

    def __init__(self, form, tokens, n_outputs, *, d_model, pooling, max_length, **shape):
        super().__init__()
        self.tokens = TOKENS[form](d_model, **tokens)
        self.pooling = pooling
        self.cls = initialize(nn.Embedding(1, d_model)) if pooling == "cls" else None
        if pooling == "cls" and max_length is not None:
            max_length += 1
        self.encoder = TokenEncoder(d_model, max_length=max_length, **shape)
        # At first all rows have the mean of the targets, or equal classes.
        self.head = nn.Linear(self.encoder.width, n_outputs)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, *inputs, real=None, need_weights=False):
        """Outputs (B, n_outputs), vectors (B, width), and maps of each layer or None.

        Tokens that are not `real` (B, T) are padding. Maps are (B, n_heads, T, T), [CLS] first.
        """
        tokens = self.tokens(*inputs)  # (B, T, d_model)
        if self.cls is not None:
            tokens = torch.cat([self.cls.weight.expand(len(tokens), 1, -1), tokens], dim=1)
            if real is not None:
                real = torch.cat([torch.ones_like(real[:, :1]), real], dim=1)
        tokens, weights = self.encoder(tokens, padding=real, need_weights=need_weights)
        pooled = self._pool(tokens, real)  # (B, width)
        return self.head(pooled), pooled, weights

    def _pool(self, tokens, real):
        if self.pooling == "cls":
            return tokens[:, 0]
        if self.pooling == "last":
            if real is None:
                return tokens[:, -1]
            rows = torch.arange(len(tokens), device=tokens.device)
            return tokens[rows, real.sum(dim=1) - 1]
        if real is None:
            return tokens.mean(dim=1)
        kept = tokens.masked_fill(~real[..., None], 0.0)
        return kept.sum(dim=1) / real.sum(dim=1, keepdim=True)
