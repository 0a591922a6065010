"""Bootstrap test of whether a smoother depends on a feature."""

from typing import Any, NamedTuple

import numpy as np

from ..kernels import mixed_kernel

# A feature whose bandwidth is this many times its extent has no say.
_WIDE = 1e6
_VALUES_AT_ONCE = 64


class Significance(NamedTuple):
    r"""Significance of every feature, from a wild bootstrap.

    The statistic of a number is the mean squared derivative of the smoother over the
    training rows, that of a category the mean squared difference between predictions at
    its levels. The null hypothesis is the same smoother with a bandwidth at which the
    feature has no say. Targets are drawn from it by multiplying with random signs the
    leave-one-out errors of the smoother in use, which hold no signal of the feature. The
    smoother of these targets, at the bandwidths in use, gives what the statistic may be by
    chance [1]_ [2]_.

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


def feature_significance(model, n_resamples, random_state):
    """Test every feature of a fitted regressor.

    Parameters
    ----------
    model : SmootherRegressor
    n_resamples : int
    random_state : numpy.random.RandomState

    Returns
    -------
    significance : Significance
    """
    values = model._columns_of_values
    statistics, p_values = [], []
    for j, kind in enumerate(model.columns_.kinds):
        observed = _statistic(model, values, j, kind).sum()
        null = _without(model, j, kind)
        drawn = np.zeros(n_resamples)
        signs = random_state.choice([-1.0, 1.0], size=(len(values), n_resamples))
        for fitted, error in zip(null.fitted.T, model._errors.T, strict=True):
            drawn += _statistic(model, fitted[:, None] + error[:, None] * signs, j, kind)
        statistics.append(observed)
        p_values.append((1 + np.sum(drawn >= observed)) / (1 + n_resamples))
    return Significance(np.array(statistics), np.array(p_values))


def _statistic(model, values, j, kind):
    """Dependence on feature j of the smoother of each column of values."""
    counts = model._counts
    found = []
    for start in range(0, values.shape[1], _VALUES_AT_ONCE):
        part = values[:, start : start + _VALUES_AT_ONCE]
        if kind == "numeric":
            change = [model._gradient(model.keys_, part)[:, :, j]]
        else:
            change = _between_levels(model, part, j)
        squares = sum(step**2 for step in change) / len(change)
        found.append(np.average(squares, axis=0, weights=counts))
    return np.concatenate(found)


def _between_levels(model, values, j):
    here = model._predictions(model.keys_, values)
    differences = []
    for level in np.unique(model.keys_[:, j]):
        moved = model.keys_.copy()
        moved[:, j] = level
        differences.append(model._predictions(moved, values) - here)
    return differences


def _without(model, j, kind):
    """Predictions of the training rows by the smoother to which feature j is nothing."""
    bandwidth = model.columns_.divisors(model.bandwidth_)
    if kind == "numeric":
        bandwidth[j] = _WIDE * max(np.ptp(model.keys_[:, j]), bandwidth[j])
        # However wide the window, a polynomial has slopes along what is not constant.
        keys = model.keys_.copy()
        keys[:, j] = 0
        return model._predict_training(model.values_, bandwidth, keys=keys)
    lam = model.bandwidth_.copy()
    lam[j] = model.columns_.highest_lam[j]
    of_numbers = [part for name, part, _ in model.kernel_.kernels if name == "numbers"]
    kernel = mixed_kernel(*of_numbers or [None], model.columns_, lam)
    return model._predict_training(model.values_, bandwidth, kernel)
