"""Weights of candidate forecasts, from their errors at validation origins."""

from itertools import product

import numpy as np

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


def choose_weights(forecasts, training):
    """Weights of candidates by their held-out forecasts, (n_validation, n_candidates, horizon).

    Temperature and share of the panel are those with the least error on blocks that did not
    choose the weights; choices that do about as well are averaged, since which of them is best
    is partly luck. The error at an origin is the root of the mean square of its steps. Roots
    are averaged, not squares, by which a few hard stretches, a cold winter or a holiday, would
    choose the weights for all others. Where nothing was validated all candidates count alike.

    Returns
    -------
    weights : ndarray of shape (n_series, n_candidates)
        Rows sum to 1.
    usual : ndarray of shape (n_candidates,)
        Weights for a series that nothing is known of.
    held_out : ndarray of shape (n_validation, horizon)
        Combined forecasts, by weights chosen on what does not overlap.
    """
    series, targets = training.validation.series, training.validation.targets()
    naive = training.validation.past(1)  # where no candidate has a forecast
    scale, n_series = training.scale[series, None], len(training.scale)
    if len(series) == 0:
        equal = np.full((n_series + 1, forecasts.shape[1]), 1 / forecasts.shape[1])
        return equal[1:], equal[0], targets
    missed = (forecasts - targets[:, None]) ** 2
    counts = np.maximum((~np.isnan(targets)).sum(axis=1), 1)[:, None]
    errors = np.sqrt(np.nansum(missed, axis=2) / counts)
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
            held_out[rows] = combine(forecasts[rows], weights, naive[rows])
        missed = np.sqrt(np.nansum((held_out - targets) ** 2, axis=1, keepdims=True) / counts)
        error = np.mean(missed / scale)
        tried.append((error, held_out, choice))
    least = min(error for error, *_ in tried)
    trust = np.exp(-np.array([e / max(least, 1e-300) - 1 for e, *_ in tried]) / _TOLERANCE)
    trust /= trust.sum()
    own, panel = relative(slice(None))
    unknown = np.full((1, len(panel)), np.nan)
    choices = list(zip(trust, (choice for *_, choice in tried), strict=True))

    def averaged(own):
        return _without_least(sum(t * softmax_weights(own, panel, *c) for t, c in choices))

    held_out = sum(t * held_out for t, (_, held_out, _) in zip(trust, tried, strict=True))
    return averaged(own), averaged(unknown)[0], held_out


def relative_errors(errors, series, n_series):
    """Logarithms of errors (n_origins, n_candidates) relative to those of the best candidate.

    Of each series, (n_series, n_candidates), NaN where nothing is known, and their mean over
    series, (n_candidates,).
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
    r"""Weights (n_series, n_candidates) by logarithms of relative errors of these, and of all.

    .. math:: w_c \propto \exp\left(-\frac{E_c / \min_b E_b - 1}{\tau}\right),

    errors being geometric means of those of the series and, to a share, of the panel. A
    candidate that could not be validated on a series, where others could, has no weight.
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


def combine(forecasts, weights, otherwise):
    """Weighted averages of forecasts (n_origins, n_candidates, horizon), as far as there are.

    Where all that have weight are NaN, the others are averaged; where all are, `otherwise`.
    """
    there = ~np.isnan(forecasts).any(axis=2)
    weights = np.where(there, weights, 0.0)
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, there)
    total = weights.sum(axis=1, keepdims=True)
    weights = weights / np.where(total > 0, total, 1.0)
    combined = np.einsum("nc,nch->nh", weights, np.where(there[:, :, None], forecasts, 0.0))
    return np.where(total > 0, combined, otherwise)


def disagreement(forecasts):
    """Mean distances of candidates from their mean, without weights; (n_origins, horizon).

    0 where no candidate has a forecast.
    """
    there = ~np.isnan(forecasts).any(axis=2)
    equal = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
    filled = np.where(there[:, :, None], forecasts, 0.0)
    mean = np.einsum("nc,nch->nh", equal, filled)
    return np.einsum("nc,nch->nh", equal, np.abs(filled - mean[:, None]))
