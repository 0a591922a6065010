"""Bootstrap test of whether a smoother depends on a feature."""

from typing import Any, NamedTuple

import numpy as np

from .._blocks import blocks_of_queries
from .._column_stats import replace_zeros
from ..kernels._product_kernel import mixed_kernel

# The draws of a feature end when this many have had a larger ratio than the data (Besag and
# Clifford 1991): p-values above 0.1 have a relative standard error of 22 %.
_ENOUGH = 20
# Errors below this share of the largest target are rounding; exact fits have about 1e-14.
_ROUNDING = 1e-12


class Significance(NamedTuple):
    r"""Test of whether each feature matters to a smoother, by a wild bootstrap.

    It is the result of `feature_significance`.

    The statistic of a number is the mean squared derivative of the smoother over the
    training rows, that of a category the mean squared difference between predictions at
    its levels. The null hypothesis is the same smoother with a bandwidth at which the
    feature has no effect [1]_ [2]_. It is tested by the ratio of its squared leave-one-out
    errors to those of the smoother in use. Targets are drawn from it: its predictions plus
    its leave-one-out errors, with random signs. Their ratios are those that chance makes.

    If the targets chose anything, such as the bandwidth, all is chosen again for each draw,
    since a bandwidth that suits the noise finds structure in it. Draws end when twenty have
    had a ratio as large as that of the data [3]_.

    If a given bandwidth is too wide, the smoother is biased. A feature without effect may
    reduce the bias if it is correlated with one that matters, and is then found to matter. Let
    the fit choose the bandwidth.

    Attributes
    ----------
    statistics : ndarray of shape (n_features,)
        In squared units of the target, for one unit of the feature.
    p_values : ndarray of shape (n_features,)
        Share of the draws, and of the data themselves, with a ratio as large; where draws
        ended early, of the draws alone.

    References
    ----------
    .. [1] Racine, J. (1997). Consistent significance testing for nonparametric regression.
       Journal of Business and Economic Statistics 15, 369-378.
    .. [2] Racine, J. S., Hart, J. and Li, Q. (2006). Testing the significance of categorical
       predictor variables in nonparametric regression models. Econometric Reviews 25,
       523-544.
    .. [3] Besag, J. and Clifford, P. (1991). Sequential Monte Carlo p-values. Biometrika 78,
       301-304.
    """

    statistics: Any
    p_values: Any


def feature_significance(smoother, n_resamples, random_state, choose_again, progress):
    """Test every feature of the smoother of a regressor.

    ``choose_again(values)`` returns the smoother of other targets, (n_samples, n_outputs); it
    is None if nothing about the smoother was chosen by the targets.
    """
    # In units that are powers of two, so that squares neither overflow nor vanish.
    exponent = np.frexp(np.abs(smoother.table).max())[1]
    table = np.ldexp(smoother.table, -exponent)
    statistics, p_values, n_features = [], [], len(smoother.columns.kinds)
    for j, kind in enumerate(smoother.columns.kinds):
        unit = np.frexp(smoother.bandwidth[j])[1] if kind == "numeric" else 0
        with np.errstate(over="ignore", under="ignore"):
            statistic = np.ldexp(_statistic(smoother, table, j, unit), 2 * (exponent - unit))
        statistics.append(statistic)
        without = _without(smoother, j).of_rows(smoother)
        null, left_out = (np.ldexp(x, -exponent) for x in (without.fitted, without.left_out))
        errors = table - left_out  # in-sample errors would be smaller than the noise is
        signs = random_state.choice([-1.0, 1.0], size=(len(table), n_resamples))
        observed, drawn = _ratios(smoother, j).mean(), np.empty(0)
        if choose_again is None:
            for block in blocks_of_queries(n_resamples, table.size):
                values = null[:, None] + errors[:, None] * signs[:, block, None]
                ratios = _ratios(smoother.replace(values=values.reshape(len(table), -1)), j)
                drawn = np.append(drawn, ratios.reshape(values.shape[1:]).mean(axis=1))
        else:
            for n_drawn, sign in enumerate(signs.T, 1):
                chosen = choose_again(null + errors * sign[:, None])
                drawn = np.append(drawn, _ratios(chosen, j).mean())
                state = f"feature {j + 1} of {n_features}, draw {n_drawn} of {n_resamples}"
                progress.update(j * n_resamples + n_drawn, state)
                if (drawn >= observed).sum() == _ENOUGH:
                    break
        n_larger, n_more = np.sum(drawn >= observed), int(len(drawn) == n_resamples)
        # Where draws ended early, the last of them had a larger ratio.
        p_values.append((n_larger + n_more) / (len(drawn) + n_more))
    return Significance(np.array(statistics), np.array(p_values))


def _ratios(smoother, j):
    """Return squared leave-one-out errors without feature j over those with it, per output."""
    smoothers = _without(smoother, j), smoother
    errors = np.stack([each.errors.loo_residuals for each in smoothers])
    known = (smoother.counts > 0) & np.isfinite(errors).all(axis=(0, 2))
    # In units of the targets, so that squares do not overflow. What is rounding counts as 0.
    errors = errors[:, known] / replace_zeros(np.abs(smoother.table).max(axis=0))
    errors = np.where(np.abs(errors) < _ROUNDING, 0.0, errors)
    without, with_it = np.average(errors**2, axis=1, weights=smoother.counts[known])
    with np.errstate(divide="ignore", invalid="ignore"):
        # Errors that are all 0 are as small without the feature.
        return np.nan_to_num(without / with_it, nan=1.0, posinf=np.inf)


def _statistic(smoother, table, j, unit):
    """Return the dependence of the smoother of a table on feature j; of slopes, per 2**unit."""
    if smoother.columns.kinds[j] == "numeric":
        change = [np.ldexp(smoother.gradient(smoother.keys, table)[:, :, j], unit)]
    else:
        change = _between_levels(smoother, table, j)
    squares = sum(step**2 for step in change).sum(axis=1) / len(change)
    return np.average(squares, weights=smoother.counts)


def _between_levels(smoother, values, j):
    """Return differences of predictions at each level of feature j from those at its own."""
    predictions = smoother.predict(smoother.keys, values)
    is_j = np.arange(smoother.keys.shape[1]) == j
    moved = (np.where(is_j, level, smoother.keys) for level in np.unique(smoother.keys[:, j]))
    return [smoother.predict(keys, values) - predictions for keys in moved]


def _without(smoother, j):
    """Return the smoother that does not depend on feature j."""
    columns, is_j = smoother.columns, np.arange(smoother.keys.shape[1]) == j
    smoother = smoother.without(j)
    if columns.kinds[j] != "numeric":
        return smoother.rescaled(lambda lam: np.where(is_j, columns.highest_lam, lam))
    fields = {"keys": np.where(is_j, 0, smoother.keys)}
    if smoother.local and len(columns.numeric) == len(columns.kinds) > 1:
        # Polynomials have no coefficients of columns that are not compared.
        fields["columns"] = columns.without(is_j)
        fields["kernel"] = mixed_kernel(smoother.kernel, fields["columns"], None)
    return smoother.replace(**fields)
