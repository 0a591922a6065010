"""Weights of candidate forecasts, from their errors at validation origins."""

from dataclasses import dataclass
from itertools import product

import numpy as np

# So many series make a panel.
PANEL = 30
# Temperatures, and shares of the panel's errors in those of a series, that are tried; a single
# series has equal errors in the place of the panel's.
_TEMPERATURES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
_SHARES, _SHARES_ALONE = (0.25, 0.5, 0.75, 1.0), (0.5, 0.0)
# Weights below are none.
_LEAST_WEIGHT = 0.01
# Errors are at most so many times the least; differences below this share of it are rounding.
_WORST, _ROUNDING = np.log(50.0), 1e-9
# Relative difference of errors at which a choice of temperature and share loses trust.
_TOLERANCE = 0.05


@dataclass(frozen=True, eq=False)
class Combination:
    """Weights of candidates for each series, and what came of them.

    Attributes
    ----------
    weights : ndarray of shape (n_series, n_candidates)
        Rows sum to 1.
    usual : ndarray of shape (n_candidates,)
        Weights for a series that nothing is known of.
    held_out : ndarray of shape (n_validation, horizon)
        Combined forecasts of validation origins, by weights chosen on what does not overlap.
    error : float
        Root mean squared error of each of these, in units of its series; their mean.
    disagreement : ndarray of shape (n_validation, horizon)
        Mean distances of candidates from their mean.
    """

    weights: np.ndarray
    usual: np.ndarray
    held_out: np.ndarray
    error: float
    disagreement: np.ndarray


def choose_weights(forecasts, training):
    """Weights by the errors at validation origins.

    Temperature and share of the panel are those with the least error on blocks that did not
    choose the weights; choices that do about as well are averaged, since which of them is best
    is partly luck. The error at an origin is the root of the mean square of its steps. Roots
    are averaged, not squares, by which a few hard stretches, a cold winter or a holiday, would
    choose the weights for all others.

    Parameters
    ----------
    forecasts : ndarray of shape (n_validation, n_candidates, horizon)
        NaN where a candidate has none.
    training : Training

    Returns
    -------
    combination : Combination
    """
    series, targets = training.validation.series, training.validation.targets()
    naive = training.validation.past(1)  # where no candidate has a forecast
    scale, n_series = training.scale[series, None], len(training.scale)
    missed = (forecasts - targets[:, None]) ** 2
    seen = np.maximum((~np.isnan(targets)).sum(axis=1), 1)[:, None]
    errors = np.sqrt(np.nansum(missed, axis=2) / seen)
    errors[np.isnan(forecasts).any(axis=2)] = np.nan

    def relative(rows):
        own, panel = relative_errors(errors[rows], series[rows], n_series)
        return own, 0 * panel if n_series == 1 else panel

    parts = []
    for block in range(training.n_blocks):
        apart = ~training.overlapping(series, training.validation.known, block)
        parts.append(relative(apart if apart.any() else slice(None)))
    tried = []
    for choice in product(_TEMPERATURES, _SHARES if n_series > 1 else _SHARES_ALONE):
        held_out = np.empty_like(targets)
        for block, part in enumerate(parts):
            rows = training.block == block
            weights = softmax_weights(*part, *choice)[series[rows]]
            combined = combine(forecasts[rows], weights)
            held_out[rows] = np.where(np.isnan(combined), naive[rows], combined)
        missed = np.sqrt(np.nansum((held_out - targets) ** 2, axis=1, keepdims=True) / seen)
        error = np.mean(missed / scale)
        tried.append((error, held_out, choice))
    least = min(error for error, *_ in tried)
    trust = np.exp(-np.array([e / max(least, 1e-300) - 1 for e, *_ in tried]) / _TOLERANCE)
    trust /= trust.sum()
    own, panel = relative(slice(None))
    unknown = np.full((1, len(panel)), np.nan)
    choices = list(zip(trust, (choice for *_, choice in tried), strict=True))
    return Combination(
        _without_least(sum(t * softmax_weights(own, panel, *c) for t, c in choices)),
        _without_least(sum(t * softmax_weights(unknown, panel, *c) for t, c in choices))[0],
        sum(t * held_out for t, (_, held_out, _) in zip(trust, tried, strict=True)),
        float(least),
        disagreement(forecasts),
    )


def relative_errors(errors, series, n_series):
    """Errors of candidates relative to the best one, for each series and over all.

    Parameters
    ----------
    errors : ndarray of shape (n_origins, n_candidates)
        At validation origins; NaN where a candidate has no forecast.
    series : ndarray of int of shape (n_origins,)
    n_series : int

    Returns
    -------
    own : ndarray of shape (n_series, n_candidates)
        Logarithms; NaN where nothing is known.
    panel : ndarray of shape (n_candidates,)
        Their mean over series.
    """
    there = ~np.isnan(errors)
    total, count = (np.zeros((n_series, errors.shape[1])) for _ in range(2))
    np.add.at(total, series, np.where(there, errors, 0.0))
    np.add.at(count, series, there)
    known = count > 0
    mean = total / np.maximum(count, 1)
    size = mean.sum(axis=1, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1)
    mean += _ROUNDING * size + 1e-300
    best = np.where(known, mean, np.inf).min(axis=1, keepdims=True)
    own = np.where(known, np.minimum(np.log(mean) - np.log(np.minimum(best, 1e300)), _WORST), 0)
    panel = own.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    panel[~known.any(axis=0)] = _WORST
    return np.where(known, own, np.nan), panel


def softmax_weights(own, panel, temperature, share):
    r"""Weights of candidates by their errors.

    .. math:: w_c \propto \exp\left(-\frac{E_c / \min_b E_b - 1}{\tau}\right),

    errors being geometric means of those of the series and of the panel.

    Parameters
    ----------
    own : ndarray of shape (n_series, n_candidates)
        Logarithms of relative errors of each series, NaN where they are not known. A candidate
        that could not be validated on a series, where others could, has no weight.
    panel : ndarray of shape (n_candidates,)
        Over all series.
    temperature : float
    share : float
        Of the panel.

    Returns
    -------
    weights : ndarray of shape (n_series, n_candidates)
        Rows sum to 1.
    """
    unknown = np.isnan(own)
    mixed = share * panel + (1 - share) * np.where(unknown, panel, own)
    mixed[unknown & ~unknown.all(axis=1, keepdims=True)] = np.inf
    mixed -= mixed.min(axis=1, keepdims=True)
    weights = np.exp(-np.expm1(np.minimum(mixed, 100.0)) / temperature)
    return weights / weights.sum(axis=1, keepdims=True)


def _without_least(weights):
    """Weights with small ones left out, so that not every candidate has to be computed."""
    weights = np.where(weights < _LEAST_WEIGHT, 0.0, weights)
    return weights / weights.sum(axis=1, keepdims=True)


def combine(forecasts, weights):
    """Weighted averages of those candidates that have a forecast.

    Parameters
    ----------
    forecasts : ndarray of shape (n_origins, n_candidates, horizon)
        NaN where a candidate has none.
    weights : ndarray of shape (n_origins, n_candidates)
        Where all that have weight have no forecast, the others are averaged.

    Returns
    -------
    combined : ndarray of shape (n_origins, horizon)
        NaN where no candidate has a forecast.
    """
    there = ~np.isnan(forecasts).any(axis=2)
    weights = np.where(there, weights, 0.0)
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, there)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, total, out=np.full(weights.shape, np.nan), where=total > 0)
    return np.einsum("nc,nch->nh", weights, np.where(there[:, :, None], forecasts, 0.0))


def disagreement(forecasts):
    """Mean distances of candidates from their mean, which weights have no part in.

    Parameters
    ----------
    forecasts : ndarray of shape (n_origins, n_candidates, horizon)
        NaN where a candidate has none.

    Returns
    -------
    disagreement : ndarray of shape (n_origins, horizon)
        0 where no candidate has a forecast.
    """
    there = ~np.isnan(forecasts).any(axis=2)
    equal = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
    filled = np.where(there[:, :, None], forecasts, 0.0)
    mean = np.einsum("nc,nch->nh", equal, filled)
    return np.einsum("nc,nch->nh", equal, np.abs(filled - mean[:, None]))
