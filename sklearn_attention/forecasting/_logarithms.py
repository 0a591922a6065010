"""Logarithms of series, and whether candidates do better on them."""

from dataclasses import dataclass, replace

import numpy as np

from ._metrics import naive_scales
from ._origins import PANEL, evenly_spread

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
    """The scale that candidates work on, and the way back."""

    log: bool = False
    shift: float = 0.0  # is added before logarithms are taken
    least: float = 1.0  # positive value of the training series, shifted
    bounds: tuple | None = None  # of forecasts, None for an open end

    def encode(self, table):
        """A table on that scale, of which no step depends on later ones of its series."""
        return (
            table.with_values(list(map(self._logarithm, table.values))) if self.log else table
        )

    def _logarithm(self, values):
        """Logarithms of a series, (n_steps,)."""
        values = values + self.shift
        if not (values >= 0).any():
            raise ValueError(
                "a series has negative values alone, but the forecaster works on logarithms, "
                "since no training series is negative: fit it with log=False."
            )
        least = np.minimum.accumulate(np.where(values > 0, values, np.inf))
        return np.log(np.maximum(values, _FLOOR * np.where(least < np.inf, least, self.least)))

    def decode(self, values):
        """Forecasts from those on that scale, of any shape."""
        if self.log:
            values = np.exp(np.minimum(values, _LARGEST)) - self.shift
        return values if self.bounds is None else np.clip(values, *self.bounds)


def shift_of(values):
    """A constant to be added to series that are not negative before logarithms are taken.

    Nothing where they stay clear of zero: below, logarithms make too much of differences
    between small values. Of many series nothing either, unless there are zeros.
    """
    flat = np.concatenate(values)
    positive = flat[flat > 0]
    tried = values if len(values) < PANEL else ()
    near = any(series.min() < _NEAR_ZERO * np.median(series) for series in tried)
    if len(positive) == 0 or (len(positive) == len(flat) and not near):
        return 0.0
    return float(_SHIFT * np.median(positive))


def choose_transform(table, horizon, log, bounds, fit):
    """The scale on which candidates have smaller errors on some series, where `log` is "auto".

    `fit(table, logs)` is :func:`fit_combined`. Returns what it found on that scale as well, if
    that was for all series, otherwise None.
    """
    values, shift = table.values, shift_of(table.values)
    flat = np.concatenate(values)
    possible = flat.min() >= 0 and flat.any()
    least = (flat + shift).min(where=flat + shift > 0, initial=np.inf)
    logarithms = Transform(True, shift, float(least), bounds)
    plain = replace(logarithms, log=False)
    if log != "auto":
        if log and not possible:
            raise ValueError(
                f"log=True is for series that are not negative, nor all 0, but the least "
                f"value is {flat.min()}: pass log='auto', or add a constant to the series."
            )
        return (logarithms if log else plain), None
    if not possible:
        return plain, None
    rows = evenly_spread(len(values), _MOST_TRIED)
    few = table.take(rows)
    tried = []
    for transform in (plain, logarithms):
        fitted = fit(transform.encode(few), logs=transform.log)
        _, training, _, held_out = fitted
        if len(training.block) == 0:
            return logarithms, None
        origins = replace(training.validation, table=few)
        missed = transform.decode(held_out) - origins.targets()
        error = np.nanmean(np.abs(missed / naive_scales(few.values)[origins.series, None]))
        tried.append((error, transform, fitted))
    _, transform, fitted = min(tried, key=lambda one: one[0])
    return transform, fitted if len(rows) == len(table) else None
