"""Numbers of a table as tokens."""

import torch
from torch import nn


class NumericTokens(nn.Module):
    r"""A token for every numeric feature of a row.

    .. math:: t_j = b_j + z_j\, v_j + \sum_k \min(\max(u_j - k, 0), 1)\, w_{jk}

    where :math:`z_j` is the standardised number and :math:`u_j` its place among the quantiles
    of the feature. The sum is linear between two quantiles and continuous: the piecewise
    linear encoding of Gorishniy et al. (2022). It starts at 0. The token of a missing number
    is :math:`b_j + m_j`, where :math:`m_j`, which is learned, starts at 0 too.

    Parameters
    ----------
    n_features : int
    n_pieces : int
        Most intervals between quantiles.
    d_model : int
        Width of the tokens.

    References
    ----------
    .. [1] Gorishniy, Y., Rubachev, I. and Babenko, A. (2022). On embeddings for numerical
       features in tabular deep learning. NeurIPS 35.
    """

    def __init__(self, n_features, n_pieces, d_model):
        super().__init__()
        spread = d_model**-0.5
        self.bias = nn.Parameter(torch.empty(n_features, d_model).uniform_(-spread, spread))
        self.slope = nn.Parameter(torch.empty(n_features, d_model).uniform_(-spread, spread))
        self.pieces = nn.Parameter(torch.zeros(n_features, n_pieces, d_model))
        self.missing = nn.Parameter(torch.zeros(n_features, d_model))
        self.register_buffer("starts", torch.arange(n_pieces), persistent=False)

    def forward(self, standardised, places):
        """Tokens of rows.

        Parameters
        ----------
        standardised, places : Tensor of shape (B, n_features)
            NaN, both of them, where a number is missing.

        Returns
        -------
        tokens : Tensor of shape (B, n_features, d_model)
        """
        missing = standardised.isnan()[..., None]  # (B, n_features, 1)
        # Zeros in their place: the gradient of what is not chosen must not be NaN.
        z, u = standardised.nan_to_num(0.0), places.nan_to_num(0.0)
        ramps = (u[..., None] - self.starts).clamp(0, 1)  # (B, n_features, n_pieces)
        bent = torch.einsum("bjk,jkd->bjd", ramps, self.pieces)
        known = z[..., None] * self.slope + bent  # (B, n_features, d_model)
        return self.bias + torch.where(missing, self.missing, known)
