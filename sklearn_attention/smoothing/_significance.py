"""Bootstrap test of whether a smoother depends on a feature.

The null hypothesis for feature j is the smoother at a bandwidth at which j has no effect. Its
squared leave-one-out residuals, divided by those of the smoother in use, are the residual
ratio, a number for each output. A draw is a set of targets that follow the null hypothesis. The
p-value is the fraction of draws whose ratio is at least that of the data. `Significance`
describes the method to users.
"""

from typing import Any, NamedTuple

import numpy as np

from .._blocks import blocks_of_queries
from .._column_stats import replace_zeros
from ..kernels._product_kernel import mixed_kernel

# The draws of a feature end when this many have had at least the ratio of the data (Besag and
# Clifford 1991): p-values above 0.1 have a relative standard error of 22 %.
_MAX_LARGER_DRAWS = 20
# Residuals that are smaller than this, relative to the largest target, are rounding. Exact fits
# have residuals of about 1e-14.
_ROUNDING = 1e-12


class Significance(NamedTuple):
    r"""Test of whether each feature matters to a smoother, by a wild bootstrap.

    It is the result of `feature_significance`.

    For a number, the statistic is the mean squared derivative of the smoother over the training
    rows; for a category, it is the mean squared difference between predictions at its levels.
    The null hypothesis is the same smoother with a bandwidth at which the feature has no effect
    [1]_ [2]_. It is tested by the ratio of its squared leave-one-out errors to those of the
    smoother in use. Targets are drawn from the null hypothesis: its predictions plus its
    leave-one-out errors, with random signs. The ratios of these targets are those that chance
    makes.

    If the fit chose anything by the targets, such as the bandwidth, it is chosen again for each
    draw, since a bandwidth that suits the noise finds structure in it. Draws end when twenty
    have had a ratio as large as that of the data [3]_.

    If a given bandwidth is too wide, the smoother is biased. A feature without effect may
    reduce the bias if it is correlated with one that matters, and is then found to matter. Let
    the fit choose the bandwidth.

    Attributes
    ----------
    statistics : ndarray of shape (n_features,)
        In squared units of the target, for one unit of the feature.
    p_values : ndarray of shape (n_features,)
        Fraction of the draws whose ratio is at least that of the data. The data count as one
        draw more, unless the draws ended early.

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
    """Test every feature of the smoother of a regressor; return a `Significance`.

    Parameters
    ----------
    smoother : FittedSmoother
        The smoother in use.
    n_resamples : int
        Maximum number of draws for each feature.
    random_state : RandomState
        Draws the signs of the wild bootstrap.
    choose_again : callable or None
        ``choose_again(values)`` returns the smoother that a fit chooses for other targets,
        (n_samples, n_outputs). None if the targets chose nothing.
    progress : Progress
        Shows the number of draws.
    """
    # Targets are divided by a power of 2, so that squares neither overflow nor vanish. So is
    # the unit of a number.
    exponent = np.frexp(np.abs(smoother.values_2d).max())[1]
    values = np.ldexp(smoother.values_2d, -exponent)
    statistics, p_values, n_features = [], [], len(smoother.columns.kinds)
    for j, kind in enumerate(smoother.columns.kinds):
        # 1. The statistic is in the units of the targets and of the feature.
        unit = np.frexp(smoother.bandwidth[j])[1] if kind == "numeric" else 0
        with np.errstate(over="ignore", under="ignore"):
            statistic = np.ldexp(_statistic(smoother, values, j, unit), 2 * (exponent - unit))
        statistics.append(statistic)
        # 2. Targets are drawn from the null hypothesis: its predictions, plus its leave-one-out
        # residuals with random signs (in-sample residuals would be smaller than the noise).
        null = _without_effect_of(smoother, j).predict_training_rows(smoother)
        fitted, left_out = (np.ldexp(x, -exponent) for x in (null.fitted, null.left_out))
        residuals = values - left_out
        signs = random_state.choice([-1.0, 1.0], size=(len(values), n_resamples))
        observed = _residual_ratios(smoother, j).mean()
        if choose_again is None:
            drawn = _ratios_of_draws(smoother, j, fitted, residuals, signs)
        else:
            draws = (fitted + residuals * sign[:, None] for sign in signs.T)
            drawn = np.empty(0)
            for n_drawn, draw in enumerate(draws, start=1):
                drawn = np.append(drawn, _residual_ratios(choose_again(draw), j).mean())
                state = f"feature {j + 1} of {n_features}, draw {n_drawn} of {n_resamples}"
                progress.update(j * n_resamples + n_drawn, state)
                if (drawn >= observed).sum() == _MAX_LARGER_DRAWS:
                    break
        # 3. The data count as one draw more, unless the draws ended early.
        n_larger, n_data = np.sum(drawn >= observed), int(len(drawn) == n_resamples)
        p_values.append((n_larger + n_data) / (len(drawn) + n_data))
    return Significance(np.array(statistics), np.array(p_values))


def _ratios_of_draws(smoother, j, fitted, residuals, signs):
    """Return the residual ratio of each draw, the mean over the outputs, (n_draws,).

    All draws are smoothed together, as further outputs of one smoother. `fitted` and
    `residuals` (n_rows, n_outputs) are those of the null hypothesis, and `signs` (n_rows,
    n_draws) those of the residuals in each draw.
    """
    ratios = np.empty(signs.shape[1])
    for block in blocks_of_queries(signs.shape[1], fitted.size):
        # The draws are (n_rows, n_block, n_outputs).
        draws = fitted[:, None] + residuals[:, None] * signs[:, block, None]
        smoother_of_draws = smoother.replace(values=draws.reshape(len(fitted), -1))
        ratios_of_outputs = _residual_ratios(smoother_of_draws, j).reshape(draws.shape[1:])
        ratios[block] = ratios_of_outputs.mean(axis=1)
    return ratios


def _residual_ratios(smoother, j):
    """Return the mean squared leave-one-out residual without feature j over that with it.

    The shape is (n_outputs,). Rows whose residuals are unknown do not count.
    """
    smoothers = _without_effect_of(smoother, j), smoother
    residuals = np.stack([each.errors.loo_residuals for each in smoothers])
    is_counted = (smoother.row_weights > 0) & np.isfinite(residuals).all(axis=(0, 2))
    # Residuals are in units of the largest target, so that squares do not overflow.
    max_target = replace_zeros(np.abs(smoother.values_2d).max(axis=0))
    residuals = residuals[:, is_counted] / max_target
    residuals = np.where(np.abs(residuals) < _ROUNDING, 0.0, residuals)
    weights = smoother.row_weights[is_counted]
    without_j, with_j = np.average(residuals**2, axis=1, weights=weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        # If both are 0, the feature changes nothing.
        return np.nan_to_num(without_j / with_j, nan=1.0, posinf=np.inf)


def _statistic(smoother, values, j, unit):
    """Return the mean squared change of predictions along feature j, a number.

    The predictions are those of the rows, from `values` (n_rows, n_outputs). For a number, the
    change is the derivative, for ``2**unit`` units of the feature. For a category it is the
    difference between its levels. Squares are summed over the outputs.
    """
    if smoother.columns.kinds[j] == "numeric":
        changes = [np.ldexp(smoother.gradient(smoother.keys, values)[:, :, j], unit)]
    else:
        changes = _level_differences(smoother, values, j)
    squares = sum(change**2 for change in changes).sum(axis=1) / len(changes)
    return np.average(squares, weights=smoother.row_weights)


def _level_differences(smoother, values, j):
    """Return predictions of the rows at each level of feature j, less those at their own level.

    The result is a list of arrays (n_rows, n_outputs), one for each level.
    """
    predictions = smoother.predict(smoother.keys, values)
    is_j = np.arange(smoother.keys.shape[1]) == j
    moved = (np.where(is_j, level, smoother.keys) for level in np.unique(smoother.keys[:, j]))
    return [smoother.predict(keys, values) - predictions for keys in moved]


def _without_effect_of(smoother, j):
    """Return the smoother without the effect of feature j, the null hypothesis."""
    columns, is_j = smoother.columns, np.arange(smoother.keys.shape[1]) == j
    smoother = smoother.without_terms_of(j)
    if columns.kinds[j] != "numeric":
        # At the highest lambda, all levels of a category count alike.
        return smoother.rescaled(lambda lam: np.where(is_j, columns.highest_lam, lam))
    # All keys get the same number in column j, so that their distances along j are 0.
    changes = {"keys": np.where(is_j, 0, smoother.keys)}
    if smoother.is_polynomial and len(columns.numeric) == len(columns.kinds) > 1:
        # Column j is left out of the columns that are compared. Otherwise polynomials would
        # have a coefficient for it, which equal numbers do not determine.
        changes["columns"] = columns.without(is_j)
        changes["kernel"] = mixed_kernel(smoother.kernel, changes["columns"], None)
    return smoother.replace(**changes)
