"""Logarithms of series, and whether candidates do better on them."""

from dataclasses import dataclass

import numpy as np

from ._combination import PANEL
from ._measures import naive_scales
from ._origins import evenly_spread

# Series that logarithms are tried on.
_MOST_TRIED = 50
# Logarithms of what is not positive are those of this share of the least positive value.
_FLOOR = 0.1
_LARGEST = 700.0
# What is added where there are zeros, or values below the first share of their median: a share
# of the median of positive values.
_NEAR_ZERO, _SHIFT = 0.1, 0.2


@dataclass(frozen=True)
class Transform:
    """The scale that candidates work on, and the way back.

    Attributes
    ----------
    log : bool
        Whether to take logarithms.
    shift : float
        What is added before.
    bounds : (float, float) or None
        What forecasts are clipped to; None for an open end.
    """

    log: bool
    shift: float
    bounds: tuple | None

    def encode(self, values):
        """A series as candidates see it.

        Parameters
        ----------
        values : ndarray of shape (n_steps,)
        """
        if not self.log:
            return values
        values = values + self.shift
        positive = values[values > 0]
        if len(positive) == 0:
            raise ValueError(
                "history has no positive value, but the forecaster works on logarithms, since "
                "no training series is negative: fit it with log=False."
            )
        return np.log(np.maximum(values, _FLOOR * positive.min()))

    def decode(self, values):
        """Forecasts from what candidates answer.

        Parameters
        ----------
        values : ndarray
        """
        if self.log:
            values = np.exp(np.minimum(values, _LARGEST)) - self.shift
        return values if self.bounds is None else np.clip(values, *self.bounds)


def shift_of(values):
    """A constant to be added to series that are not negative before logarithms are taken.

    Nothing where they stay clear of zero: below, logarithms tell more of differences between
    small values than there is to tell. Of many series nothing either, unless there are zeros.

    Parameters
    ----------
    values : list of ndarray of shape (n_steps,)
    """
    flat = np.concatenate(values)
    positive = flat[flat > 0]
    few = len(values) < PANEL
    near = [own.min() < _NEAR_ZERO * np.median(own) for own in values] if few else [False]
    if len(positive) == 0 or (len(positive) == len(flat) and not any(near)):
        return 0.0
    return float(_SHIFT * np.median(positive))


def choose_transform(observations, horizon, log, bounds, fit):
    """Whether candidates do better on logarithms, by their errors on some series.

    Parameters
    ----------
    observations : Table
    horizon : int
    log : bool or "auto"
        "auto" tries both where no value is negative.
    bounds : (float, float) or None
    fit : callable
        Fits candidates to observations, which are logarithms or not, its second argument.

    Returns
    -------
    transform : Transform
    fitted : object or None
        What `fit` returned with that transform, if it was for all series.
    """
    values, shift = observations.values, shift_of(observations.values)
    plain, logarithms = (Transform(own, shift, bounds) for own in (False, True))
    least = min(own.min() for own in values)
    possible = least >= 0 and any(own.any() for own in values)
    if log != "auto":
        if log and not possible:
            raise ValueError(
                f"log=True is for series that are not negative, nor all 0, but the least "
                f"value is {least}: pass log='auto', or add a constant to the series."
            )
        return (logarithms if log else plain), None
    if not possible:
        return plain, None
    rows = evenly_spread(len(values), _MOST_TRIED)
    few = observations.take(rows)
    tried = []
    for transform in (plain, logarithms):
        fitted = fit(few.with_values(list(map(transform.encode, few.values))), transform.log)
        _, combination, training = fitted
        if len(training.block) == 0:
            return logarithms, None
        origins = few.at_ends(horizon).at(training.validation.series, training.validation.known)
        missed = transform.decode(combination.held_out) - origins.targets()
        error = np.nanmean(np.abs(missed / naive_scales(few.values)[origins.series, None]))
        tried.append((error, transform, fitted))
    _, transform, fitted = min(tried, key=lambda one: one[0])
    return transform, fitted if len(rows) == len(values) else None
