"""Predictions without a row, with it, and its share in them."""

from typing import Any, NamedTuple

from array_api_compat import array_namespace

from ._polynomial import solve


class Predictions(NamedTuple):
    """Predictions of the rows that are remembered.

    Attributes
    ----------
    left_out : array of shape (n_rows, n_values)
        Each row's prediction from all others.
    fitted : array of shape (n_rows, n_values)
        Its prediction from all rows.
    leverage : array of shape (n_rows,)
        Its own share in that: the diagonal of the smoother matrix.
    """

    left_out: Any
    fitted: Any
    leverage: Any


def with_own_key(gram, cross, share, own_values):
    r"""Local fits without each row and with it, from the averages without it.

    About the row itself, all terms of the polynomial but the constant are 0: with the share
    :math:`s` of the row in the weights,

    .. math:: E[\phi \phi^\top] = (1 - s)\, E_{-i}[\phi \phi^\top] + s\, e_0 e_0^\top .

    Parameters
    ----------
    gram : array of shape (n, P, P)
        Averages of the products of terms over all other rows.
    cross : array of shape (n, P, p)
        Averages of terms times values.
    share : array of shape (n,)
        The row's weight as a share of all rows'; 1 where no other has any.
    own_values : array of shape (n, p)

    Returns
    -------
    predictions : Predictions
    """
    xp = array_namespace(cross)
    if gram.shape[1] == 1:
        left_out = cross[:, 0]
        fitted = left_out + share[:, None] * (own_values - left_out)
        fitted = xp.where(share[:, None] < 1, fitted, own_values)
        return Predictions(left_out, fitted, share)
    left_out = solve(gram, cross).value
    # Where no other row has a say, the row itself is all there is.
    known = xp.isfinite(gram)
    rest = (1 - share)[:, None, None]
    gram = xp.where(known, gram, 0.0) * rest
    cross = xp.where(xp.isfinite(cross), cross, 0.0) * rest
    gram[:, 0, 0] += share
    cross[:, 0] += share[:, None] * own_values
    solution = solve(gram, cross)
    leverage = share * (1 + (solution.pull * solution.mean).sum(axis=1))
    return Predictions(left_out, solution.value, leverage)
