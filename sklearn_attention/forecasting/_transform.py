"""The scale on which series are forecast: logarithms or not, outliers replaced, and bounds.

The transformed scale is that of log(value + shift), or the original scale of the series. A
`Transform` maps tables (panels of series in long format) to the transformed scale (`encode`)
and forecasts back (`decode`), where they are clipped to their bounds. `choose_transform`
compares the errors of both scales.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from .._blocks import evenly_spread
from ._origins import PANEL
from ._table import by_group, naive_scales

# The scale is chosen on at most this many series.
_MAX_TRIED = 50
# The logarithm of a value that is not positive is that of 0.1 times the smallest positive
# value.
_FLOOR = 0.1
# If there are zeros, or values below 0.1 times their median, the shift is 0.2 times the median
# of positive values.
_NEAR_ZERO, _SHIFT = 0.1, 0.2
# Fewer than 30 series are forecast without logarithms only if that saves 2 % of the error: on
# fourteen sets errors are 0.989 of those without this margin, on fifteen others 1.000.
_MIN_SAVED = 0.02
# If more than 5 % of the values are 0, logarithms are not tried: forecasts would be far below
# the mean.
_MAX_SHARE_OF_ZEROS = 0.05
# A value is an outlier if one in a million values is as far from the range of earlier ones.
_VALUES_PER_OUTLIER = 1e6


@dataclass(frozen=True, eq=False)
class Transform:
    """The scale on which series are forecast, and the way back to the original scale.

    Attributes
    ----------
    log : bool
        Whether the scale is log(value + shift).
    shift : float
    min_positive : float
        Smallest positive value of the training series plus the shift. It is the floor of a
        series without any positive value.
    bounds : tuple or None
        Lower and upper bound of forecasts, each of which may be None.
    non_negative : ndarray of bool of shape (n_training_series,)
        True for a training series without a negative value, whose forecasts are clipped at 0;
        empty if the user passed bounds.
    """

    log: bool = False
    shift: float = 0.0
    min_positive: float = 1.0
    bounds: tuple | None = None
    non_negative: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))

    @classmethod
    def without_log(cls, bounds, observations):
        """Keep the original scale; the bounds "auto" depend on the signs of training series."""
        if not isinstance(bounds, str):
            return cls(bounds=bounds)
        return cls(non_negative=np.array([values.min() >= 0 for values in observations]))

    def encode(self, table):
        """Map the values of a table to the transformed scale.

        No value depends on later values of its series.
        """
        if not self.log:
            return table
        logarithms = [self._logarithm(values) for values in table.observations]
        return table.with_observations(logarithms)

    def _logarithm(self, values):
        """Return log(values + shift) of one series.

        The floor of values that are not positive is a tenth of the smallest positive value so
        far.
        """
        values = values + self.shift
        if not (values >= 0).any():
            raise ValueError(
                "a series has only negative values, but the forecaster works on logarithms, "
                "since no training series is negative: fit it with log=False."
            )
        min_so_far = np.minimum.accumulate(np.where(values > 0, values, np.inf))
        min_positive = np.where(min_so_far < np.inf, min_so_far, self.min_positive)
        return np.log(np.maximum(values, _FLOOR * min_positive))

    def decode(self, forecasts, origins):
        """Map forecasts (n_origins, ...) back to the original scale, and clip them."""
        if self.log:
            # exp(700) is finite.
            forecasts = np.exp(np.minimum(forecasts, 700.0)) - self.shift
        return self.clip(forecasts, origins)

    def clip(self, forecasts, origins):
        """Clip forecasts (n_origins, ...) on the original scale to their bounds.

        If no bounds were passed, forecasts of a series without a negative value so far, both in
        training and up to the origin, are clipped at 0.
        """
        if self.bounds is not None:
            return np.clip(forecasts, *self.bounds)
        if not self.non_negative.any():
            return forecasts
        # A new series counts as non-negative if all training series are.
        training_index = origins.training_index
        non_negative = np.where(
            training_index >= 0, self.non_negative[training_index], self.non_negative.all()
        )
        lower = np.where(non_negative & ~origins.has_been_negative(), 0.0, -np.inf)
        return np.maximum(forecasts, lower.reshape(-1, *[1] * (forecasts.ndim - 1)))


def choose_shift(observations):
    """Choose the constant that is added to non-negative series before their logarithm.

    The shift is 0 if the series stay clear of zero. Otherwise logarithms would exaggerate
    differences between small values. In a panel only zeros count as close to zero.
    """
    values = np.concatenate(observations)
    positive = values[values > 0]
    is_near_zero = False
    if len(observations) < PANEL:
        is_near_zero = any(
            series.min() < _NEAR_ZERO * np.median(series) for series in observations
        )
    if len(positive) == 0 or (len(positive) == len(values) and not is_near_zero):
        return 0.0
    return float(_SHIFT * np.median(positive))


def choose_transform(table, log, plain, fit):
    """Choose the scale on which candidates have smaller errors, if `log` is "auto".

    Parameters
    ----------
    table : Table
        Series on the original scale.
    log : bool or "auto"
    plain : Transform
        Transform without logarithms.
    fit : callable
        ``fit(table)`` fits candidates, and returns a Combination.

    Returns
    -------
    transform : Transform
    fitted : Combination or None
        The combination on this scale, if it was fitted to all series.
    """
    observations, shift = table.observations, choose_shift(table.observations)
    values = np.concatenate(observations)
    is_possible = values.min() >= 0 and values.any()
    shifted = values + shift
    min_positive = shifted.min(where=shifted > 0, initial=np.inf)
    plain = replace(plain, shift=shift, min_positive=float(min_positive))
    logarithms = replace(plain, log=True)
    if log != "auto":
        if log and not is_possible:
            raise ValueError(
                f"log=True is for series that are not negative, nor all 0, but the least "
                f"value is {values.min()}: pass log='auto', or add a constant to the series."
            )
        return (logarithms if log else plain), None
    # Logarithms of constant series have a size that depends on the unit of the series.
    has_changes = any(np.ptp(series) > 0 for series in observations)
    if not (is_possible and has_changes) or (values == 0).mean() > _MAX_SHARE_OF_ZEROS:
        return plain, None
    # The median, which has the smallest mean absolute error, is below the mean for counts with
    # zeros. Their errors are squared.
    power = 1 if values.min() > 0 else 2
    chosen = evenly_spread(np.arange(len(observations)), _MAX_TRIED)
    sample = table.take_series(chosen)
    results = []
    for transform in (plain, logarithms):
        fitted = fit(transform.encode(sample))
        if len(fitted.validation.block) == 0:
            return logarithms, None
        origins = replace(fitted.validation.tests, table=sample)
        residuals = transform.decode(fitted.held_out, origins) - origins.targets()
        scaled = np.abs(residuals / naive_scales(sample.observations)[origins.series, None])
        error = np.nanmean(scaled**power)
        if not transform.log and len(observations) < PANEL:
            error *= 1 + _MIN_SAVED
        fitted_to_all = fitted if len(chosen) == len(observations) else None
        results.append((error, transform, fitted_to_all))
    return min(results, key=lambda result: result[0])[1:]


def damped(table):
    """Replace outliers in the series of a table, each by the value before it."""
    value = table.value.copy()
    for length, series in by_group(table.lengths):
        rows = table.first_rows[series][:, None] + np.arange(length)
        value[rows] = without_outliers(value[rows])
    return replace(table, value=value)


def without_outliers(values):
    """Replace outliers of series by the value before them.

    A value is an outlier if it is farther from the range of all earlier values than c^(1/n)
    times the width of the range, after n values: by chance the range of n values is too narrow
    by this factor with a probability of about 1 / c. A replaced value extends the range for
    later ones. So only the first step of a shift of the level is replaced.

    Parameters
    ----------
    values : ndarray of shape (n_series, n_steps)

    Returns
    -------
    values : ndarray of shape (n_series, n_steps)
    """
    previous, later = values[:, 1:-1], values[:, 2:]
    # n is the number of changes minus the number of steps without change. So neither jumps
    # between plateaus nor rare counts above 0 are outliers.
    n = np.where(previous == values[:, :-2], -1.0, 1.0).cumsum(axis=1)
    low = np.minimum.accumulate(values, axis=1)[:, 1:-1]
    high = np.maximum.accumulate(values, axis=1)[:, 1:-1]
    with np.errstate(over="ignore"):  # An infinite width has no outliers.
        factor = np.where(n > 0, _VALUES_PER_OUTLIER ** (1 / np.maximum(n, 1)), np.inf)
        width = np.where(high > low, high - low, 1.0) * factor
        is_outlier = (later > high + width) | (later < low - width)
    later = np.where(is_outlier, previous, later)
    return np.concatenate([values[:, :2], later], axis=1)
