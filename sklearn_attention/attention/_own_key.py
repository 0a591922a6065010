"""A query's own key: its share in a prediction, and predictions without it and with it."""

from typing import Any, NamedTuple

from array_api_compat import array_namespace

from .._blocks import blocks
from ._polynomial import is_determined, solve

_BLOCK_ROWS = 64


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


def own_terms(problem):
    """Terms that the queries' own keys, which lie at the queries, add to the sums of weights.

    Parameters
    ----------
    problem : Problem
        With own keys.

    Returns
    -------
    log_size, sign : array of shape (n_queries,)
        Logarithm of the absolute value, and the sign.
    """
    xp = array_namespace(problem.keys)
    kernel, x = problem.kernel, problem.queries
    if kernel.stationary or kernel.radial_form(x.shape[1]) is not None:
        x = x[:1]  # the same everywhere
    evaluate = kernel.log if kernel.signed is False else kernel
    own = [
        xp.linalg.diagonal(evaluate(x[rows], x[rows])) for rows in blocks(len(x), _BLOCK_ROWS)
    ]
    own = xp.concat(own) if own else x[:, 0]
    log_weights = xp.log(problem.weights[problem.own_key])
    if kernel.signed is False:
        return own + log_weights, xp.ones_like(log_weights)
    return xp.log(xp.abs(own)) + log_weights, xp.sign(own) + 0 * log_weights


def own_share(own, shift, total):
    """Weight of a key that is left out, as a share of what all weights would sum to.

    Parameters
    ----------
    own : tuple of array of shape (n,)
        From :func:`own_terms`.
    shift, total : array of shape (n,)
        The sum without it is ``total * exp(shift)``.

    Returns
    -------
    share : array of shape (n,)
        1 where no other key has any weight.
    """
    log_size, sign = own
    xp = array_namespace(shift)
    # Relative to the larger of both, nothing overflows.
    base = xp.maximum(shift, log_size)
    itself = sign * xp.exp(log_size - base)
    others = total * xp.exp(shift - base)
    return xp.where(itself == 0, itself, itself / (itself + others))


def with_own_key(moments, rows, *, values):
    r"""Local fits without each row and with it, from the moments without it.

    About the row itself, all terms of the polynomial but the constant are 0: with the share
    :math:`s` of the row in the weights,

    .. math:: E[\phi \phi^\top] = (1 - s)\, E_{-i}[\phi \phi^\top] + s\, e_0 e_0^\top .

    Parameters
    ----------
    moments : Moments
        About rows that are left out.
    rows : slice or array of int of shape (n,)
        Which of all rows that are predicted these are.
    values : array of shape (n_rows, p)
        The values of all.

    Returns
    -------
    predictions : Predictions
    """
    gram, cross, share = moments.gram, moments.cross, moments.share
    xp = array_namespace(cross)
    own_values = xp.asarray(values, device=cross.device)[rows]
    if gram.shape[1] == 1:
        left_out = cross[:, 0]
        fitted = left_out + share[:, None] * (own_values - left_out)
        fitted = xp.where(share[:, None] != 1, fitted, own_values)
        return Predictions(left_out, fitted, share)
    without = solve(gram, cross)
    # A row is a rank-one update of the fit without it, unless a ridge comes with it or goes.
    is_update = without.ridge == 0
    (rows,) = xp.nonzero(is_update)
    is_update[rows] = is_determined(gram[rows], 1 - share[rows])
    odds = share / xp.where(is_update, 1 - share, 1.0)
    odds = odds * (1 + (without.pull * without.mean).sum(axis=1))
    leverage = odds / (1 + odds)
    fitted = without.value + leverage[:, None] * (own_values - without.value)
    (rows,) = xp.nonzero(~is_update)
    if len(rows):
        some = (field[rows] for field in (gram, cross, share, own_values))
        fitted, leverage = fitted + 0, leverage + 0
        fitted[rows], leverage[rows] = _refit(*some)
    return Predictions(without.value, fitted, leverage)


def _refit(gram, cross, share, own_values):
    """Fits with the rows themselves, and their leverages."""
    xp = array_namespace(cross)
    # Where no other row has a say, the row itself is all there is.
    rest = (1 - share)[:, None, None]
    gram = xp.where(xp.isfinite(gram), gram, 0.0) * rest
    cross = xp.where(xp.isfinite(cross), cross, 0.0) * rest
    gram[:, 0, 0] += share
    cross[:, 0] += share[:, None] * own_values
    solution = solve(gram, cross)
    return solution.value, share * (1 + (solution.pull * solution.mean).sum(axis=1))
