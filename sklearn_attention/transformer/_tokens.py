"""From what rows have to tokens: features, steps and texts."""

import torch
from torch import nn

from ..nn import initialize
from ..text import UNKNOWN
from ._numeric_tokens import NumericTokens


class FeatureTokens(nn.Module):
    """A token for every feature of a table, in the order of the features.

    Numbers have :class:`NumericTokens`, each level of a category has a learned vector. A level
    that is missing, or was not known in training, has one of its own in every category, which
    starts at 0.

    Parameters
    ----------
    d_model : int
        Width of the tokens.
    n_levels : list of int or None
        For every feature how many levels it has; None for numbers.
    n_pieces : int
        As for :class:`NumericTokens`.
    """

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
        """Tokens of rows.

        Parameters
        ----------
        standardised, places : Tensor of shape (B, n_numeric)
            As for :class:`NumericTokens`.
        codes : Tensor of int of shape (B, n_categorical)
            -1 for what is missing or unknown.

        Returns
        -------
        tokens : Tensor of shape (B, n_features, d_model)
        """
        parts = []
        if self.numeric is not None:
            parts.append(self.numeric(standardised, places))
        if self.levels is not None:
            parts.append(self.levels(codes + 1 + self.starts))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)[:, self.order]


class StepTokens(nn.Module):
    """A token for every step of a sequence of numbers, linear in its channels.

    A missing value counts as the mean of its channel, and adds a vector of the channel, which
    is learned and starts at 0.

    Parameters
    ----------
    d_model : int
        Width of the tokens.
    n_channels : int
        Numbers in a step.
    """

    def __init__(self, d_model, *, n_channels):
        super().__init__()
        self.linear = initialize(nn.Linear(n_channels, d_model))
        self.missing = nn.Linear(n_channels, d_model, bias=False)
        nn.init.zeros_(self.missing.weight)

    def forward(self, steps):
        """Tokens of sequences.

        Parameters
        ----------
        steps : Tensor of shape (B, T, n_channels)
            Standardised; NaN where a value is missing.

        Returns
        -------
        tokens : Tensor of shape (B, T, d_model)
        """
        missing = steps.isnan()
        tokens = self.linear(steps.nan_to_num(0.0))
        return tokens + self.missing(missing.to(tokens.dtype)) if missing.any() else tokens


class TextTokens(nn.Module):
    r"""A learned vector for every token of a text, times :math:`\sqrt{d}` as in Vaswani et al.

    That of unknown tokens starts at 0, and stays there unless `max_tokens` makes some unknown
    in training.

    Parameters
    ----------
    d_model : int
        Width of the tokens.
    n_tokens : int
        Size of the vocabulary.
    """

    def __init__(self, d_model, *, n_tokens):
        super().__init__()
        self.table = nn.Embedding(n_tokens, d_model)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        with torch.no_grad():
            self.table.weight[UNKNOWN] = 0.0

    def forward(self, ids):
        """Tokens of texts.

        Parameters
        ----------
        ids : Tensor of int of shape (B, T)

        Returns
        -------
        tokens : Tensor of shape (B, T, d_model)
        """
        return self.table(ids) * self.table.embedding_dim**0.5


TOKENS = {"features": FeatureTokens, "steps": StepTokens, "text": TextTokens}
