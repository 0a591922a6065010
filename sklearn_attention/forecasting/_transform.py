"""The scale that forecasts are made on, without outliers, and bounds of what comes back."""

from dataclasses import dataclass, field, replace

import numpy as np

from .._blocks import evenly_spread
from ._origins import PANEL, by_group
from ._table import naive_scales

# Series that logarithms are tried on.
_MOST_TRIED = 50
# Logarithms of what is not positive are those of this share of the least positive value.
_FLOOR = 0.1
# What is added where there are zeros, or values below the first share of their median: a share
# of the median of positive values.
_NEAR_ZERO, _SHIFT = 0.1, 0.2
# Share of errors that forecasts of few series without logarithms have to save: on fourteen sets
# errors are 0.989 of those without such a share, on fifteen others 1.000.
_LEAST_SAVED = 0.02
# Share of zeros from which on logarithms are not tried: means of them are far below the mean.
_MOST_ZEROS = 0.05


@dataclass(frozen=True, eq=False)
class Transform:
    """The scale that forecasts are made on, and the way back."""

    log: bool = False
    shift: float = 0.0  # is added before logarithms are taken
    least: float = 1.0  # positive value of the training series, shifted
    bounds: tuple | None = None  # of forecasts, None for an open end
    # Training series (n_series,) without a negative value, whose forecasts have none either.
    non_negative: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))

    @classmethod
    def within(cls, bounds, values):
        """No other scale; bounds of training series, "auto" by their signs."""
        if not isinstance(bounds, str):
            return cls(bounds=bounds)
        return cls(non_negative=np.array([series.min() >= 0 for series in values]))

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
                "a series has only negative values, but the forecaster works on logarithms, "
                "since no training series is negative: fit it with log=False."
            )
        least = np.minimum.accumulate(np.where(values > 0, values, np.inf))
        return np.log(np.maximum(values, _FLOOR * np.where(least < np.inf, least, self.least)))

    def decode(self, values, origins):
        """Forecasts (n_origins, ...) from those on that scale, at origins in the series."""
        if self.log:
            values = np.exp(np.minimum(values, 700.0)) - self.shift  # which is finite
        return self.clip(values, origins)

    def clip(self, values, origins):
        """Clip forecasts (n_origins, ...) in the units of the series to their bounds."""
        if self.bounds is not None:
            return np.clip(values, *self.bounds)
        if not self.non_negative.any():
            return values
        # A further series is like those learned from if these are alike; one that has been
        # negative is free from then on.
        identity = origins.identity
        like = np.where(identity >= 0, self.non_negative[identity], self.non_negative.all())
        least = np.where(like & ~origins.been_negative(), 0.0, -np.inf)
        return np.maximum(values, least.reshape(-1, *[1] * (values.ndim - 1)))


def check_bounds(bounds):
    """Refuse bounds that are not valid."""
    if bounds is None or (isinstance(bounds, str) and bounds == "auto"):
        return
    ends = () if isinstance(bounds, str) or np.ndim(bounds) == 0 else tuple(bounds)
    if len(ends) != 2 or (None not in ends and not ends[0] < ends[1]):
        raise ValueError(
            f"bounds={bounds!r} is not valid: pass 'auto', None, or a pair (lower, upper) with "
            "lower below upper, either of which may be None."
        )


def shift_of(values):
    """Constant added to non-negative series before logarithms are taken."""
    # 0 where they stay clear of zero: otherwise logarithms exaggerate differences between small
    # values. Of many series it is 0 too, unless there are zeros.
    flat = np.concatenate(values)
    positive = flat[flat > 0]
    tried = values if len(values) < PANEL else ()
    near = any(series.min() < _NEAR_ZERO * np.median(series) for series in tried)
    if len(positive) == 0 or (len(positive) == len(flat) and not near):
        return 0.0
    return float(_SHIFT * np.median(positive))


def choose_transform(table, log, plain, fit):
    """Choose the scale on which candidates have smaller errors, if `log` is "auto".

    Parameters
    ----------
    table : Table
        On the original scale.
    log : bool or "auto"
    plain : Transform
        Without logarithms.
    fit : callable
        ``fit(table)`` returns a Combination.

    Returns
    -------
    transform : Transform
    fitted : Combination or None
        The one on this scale, if it was fitted to all series.
    """
    values, shift = table.values, shift_of(table.values)
    flat = np.concatenate(values)
    possible = flat.min() >= 0 and flat.any()
    min_positive = (flat + shift).min(where=flat + shift > 0, initial=np.inf)
    plain = replace(plain, shift=shift, least=float(min_positive))
    logarithms = replace(plain, log=True)
    if log != "auto":
        if log and not possible:
            raise ValueError(
                f"log=True is for series that are not negative, nor all 0, but the least "
                f"value is {flat.min()}: pass log='auto', or add a constant to the series."
            )
        return (logarithms if log else plain), None
    # Of series that never change, logarithms have a size that depends on the unit.
    changes = any(np.ptp(series) > 0 for series in values)
    if not (possible and changes) or (flat == 0).mean() > _MOST_ZEROS:
        return plain, None
    # Absolute errors are least at the median, which of counts with zeros is below the mean.
    power = 1 if flat.min() > 0 else 2
    rows = evenly_spread(np.arange(len(values)), _MOST_TRIED)
    sample = table.take(rows)
    results = []
    for transform in (plain, logarithms):
        fitted = fit(transform.encode(sample))
        if len(fitted.validation.block) == 0:
            return logarithms, None
        origins = replace(fitted.validation.tests, table=sample)
        residuals = transform.decode(fitted.held_out, origins) - origins.targets()
        scaled = np.abs(residuals / naive_scales(sample.values)[origins.series, None])
        error = np.nanmean(scaled**power)
        error *= 1.0 if transform.log or len(values) >= PANEL else 1 + _LEAST_SAVED
        results.append((error, transform, fitted if len(rows) == len(values) else None))
    return min(results, key=lambda result: result[0])[1:]


# How improbable a value has to be to be replaced: one in so many.
_RARE = 1e6


def damped(table):
    """A table in which no value is far outside of the range of those before it."""
    value = table.value.copy()
    for length, series in by_group(table.lengths):
        rows = table.first[series][:, None] + np.arange(length)
        value[rows] = without_outliers(value[rows])
    return replace(table, value=value)


def without_outliers(values):
    """Series (n_series, n_steps), values far outside the range so far replaced by the last."""
    # Far is farther than c^(1/n) times that range, after n values: it is narrower than it
    # should be by such a factor with a probability of about 1 / c. A replaced value extends the
    # range of the next ones, so that of a shift of the level only the first step is replaced. A
    # step without change takes one from n, so neither steps between plateaus nor counts that
    # are mostly 0 are replaced.
    later = values[:, 2:]
    changes = np.where(values[:, 1:-1] == values[:, :-2], -1.0, 1.0).cumsum(axis=1)
    low, high = (f.accumulate(values, axis=1)[:, 1:-1] for f in (np.minimum, np.maximum))
    with np.errstate(over="ignore"):  # beyond the largest numbers there is nothing
        factor = np.where(changes > 0, _RARE ** (1 / np.maximum(changes, 1)), np.inf)
        width = np.where(high > low, high - low, 1.0) * factor
        far = (later > high + width) | (later < low - width)
    later = np.where(far, values[:, 1:-1], later)
    return np.concatenate([values[:, :2], later], axis=1)
