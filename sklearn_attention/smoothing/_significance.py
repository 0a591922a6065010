"""Bootstrap test of whether a smoother depends on a feature."""

from typing import Any, NamedTuple

import numpy as np

from .._blocks import blocks_of_queries
from .._validation import check_size


class Significance(NamedTuple):
    r"""Significance of every feature, from a wild bootstrap.

    The statistic of a number is the mean squared derivative of the smoother over the
    training rows, that of a category the mean squared difference between predictions at
    its levels. The null hypothesis is the same smoother with a bandwidth at which the
    feature has no effect. Targets are drawn from it: its predictions plus, with random signs,
    the leave-one-out errors of the smoother in use, which hold no signal of the feature. The
    smoother of these targets, at the bandwidths in use, has the distribution of the statistic
    by chance [1]_ [2]_.

    Attributes
    ----------
    statistics : ndarray of shape (n_features,)
        In squared units of the target, for one unit of the feature.
    p_values : ndarray of shape (n_features,)
        Share of the draws, and of the data themselves, with a statistic as large.

    References
    ----------
    .. [1] Racine, J. (1997). Consistent significance testing for nonparametric regression.
       Journal of Business and Economic Statistics 15, 369-378.
    .. [2] Racine, J. S., Hart, J. and Li, Q. (2006). Testing the significance of categorical
       predictor variables in nonparametric regression models. Econometric Reviews 25,
       523-544.
    """

    statistics: Any
    p_values: Any


def feature_significance(smoother, n_resamples, random_state):
    """Test every feature of the smoother of a regressor."""
    smoother.errors.need_all("feature_significance")
    errors = smoother.errors.left_out
    check_size("n_resamples", n_resamples, 3, len(errors))
    # In units that are powers of two, so that squares neither overflow nor vanish.
    exponent = np.frexp(np.abs(smoother.table).max())[1]
    table, errors = np.ldexp(smoother.table, -exponent), np.ldexp(errors, -exponent)
    statistics, p_values = [], []
    for j in range(len(smoother.columns.kinds)):
        observed = _statistic(smoother, table, j).sum()
        null = np.ldexp(_without(smoother, j).of_rows(smoother).fitted, -exponent)
        drawn = np.zeros(n_resamples)
        signs = random_state.choice([-1.0, 1.0], size=(len(errors), n_resamples))
        for fitted, error in zip(null.T, errors.T, strict=True):
            drawn += _statistic(smoother, fitted[:, None] + error[:, None] * signs, j)
        with np.errstate(over="ignore", under="ignore"):
            statistics.append(np.ldexp(observed, 2 * (exponent - _exponent_of(smoother, j))))
        p_values.append((1 + np.sum(drawn >= observed)) / (1 + n_resamples))
    return Significance(np.array(statistics), np.array(p_values))


def _statistic(smoother, values, j):
    """Dependence on feature j, in a unit of its size, of the smoother of each column."""
    numeric, found = smoother.columns.kinds[j] == "numeric", []
    for some in blocks_of_queries(values.shape[1], len(values)):
        part = values[:, some]
        if numeric:
            slopes = smoother.gradient(smoother.keys, part)[:, :, j]
            change = [np.ldexp(slopes, _exponent_of(smoother, j))]
        else:
            change = _between_levels(smoother, part, j)
        squares = sum(step**2 for step in change) / len(change)
        found.append(np.average(squares, axis=0, weights=smoother.counts))
    return np.concatenate(found)


def _exponent_of(smoother, j):
    """Of the power of two that slopes along feature j are per; 0 for a category."""
    numeric = smoother.columns.kinds[j] == "numeric"
    return np.frexp(smoother.bandwidth[j])[1] if numeric else 0


def _between_levels(smoother, values, j):
    """Differences between predictions at each level of feature j and at its own."""
    here = smoother.predict(smoother.keys, values)
    differences = []
    for level in np.unique(smoother.keys[:, j]):
        moved = smoother.keys.copy()
        moved[:, j] = level
        differences.append(smoother.predict(moved, values) - here)
    return differences


def _without(smoother, j):
    """The smoother that does not depend on feature j."""
    columns = smoother.columns
    if columns.kinds[j] == "numeric":
        keys = smoother.keys.copy()
        keys[:, j] = 0
        return smoother.replace(keys=keys)

    def widest(bandwidth):
        return np.where(np.arange(len(bandwidth)) == j, columns.highest_lam, bandwidth)

    return smoother.rescaled(widest)
