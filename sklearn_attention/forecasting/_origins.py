"""`Origins`, from which forecasts are made, and windows, forecasts and validation at them.

An origin is the last step that a forecast may use of a series. `n_known` counts the steps of
the series up to its origin, which is the number of the first step to forecast. With a horizon
of 2 the series 5, 7, 6, 9, 8 of a table has an origin with `n_known` 3: the last value known is
6, and the targets, the values of the steps to forecast, are 9 and 8:

    >>> table = Table.from_arrays([np.array([5.0, 7.0, 6.0, 9.0, 8.0])])
    >>> Origins(table, np.array([0]), np.array([3]), horizon=2).targets()
    array([[9., 8.]])

Two further quantities belong to each origin:

- `n_pattern_steps`: a seasonal pattern is learned from this many first steps of the series, at
  most `n_known`, so that several origins can share one pattern.
- `training_index`: position of the series among the training series, -1 for a series that the
  forecaster did not learn from.

The lookback is the number of known steps that a forecast uses. The last two before this origin
are ``Origins(...).past(2)``, that is 7 and 6.

Validation origins are held out in blocks of time, the folds of the cross-validation. The
out-of-fold forecast at a validation origin comes from a candidate that has not learned from
targets of its block, but from those of all other blocks, earlier and later ones.
"""

from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .._blocks import check_memory, evenly_spread
from .._column_stats import mean_and_scale
from ._table import Table, naive_scales, positions

# A panel of at least 30 series is treated as one of many series.
PANEL = 30
# Seasonal patterns at origins before the end are learned anew whenever a series has grown by
# this factor. 4000 steps take a third of the seconds that patterns at every step take, 8000 a
# fifth, and errors are 0.997 to 1.003 of those.
_GROWTH_OF_PATTERNS = 1.25
_N_BLOCKS = 5
# There are about 400 validation origins in all: at most 100 in a series, and at least 6 in a
# long and 12 in a short one. In panels the 6 origins of a long series are a horizon apart.
_N_ORIGINS, _MAX_ORIGINS, _MIN_ORIGINS, _MIN_ORIGINS_IF_SHORT = 400, 100, 6, 12
# A series of at least 10 horizons is long. Then its last 60 % are validated, and in panels its
# last 6 horizons, since recent errors of many series suffice.
_MIN_HORIZONS_OF_LONG, _VALIDATED_SHARE, _VALIDATED_HORIZONS_IN_PANEL = 10, 0.6, 6
# A series with fewer changes is not intermittent, but nearly constant.
_MIN_CHANGES = 4
# A validation origin has at least this many steps before it.
_MIN_KNOWN = 4


@dataclass(frozen=True, eq=False)
class Origins:
    """Origins of forecasts in the series of a table, all with the same horizon.

    Attributes
    ----------
    table : Table
        Only steps before an origin are inputs of its forecast; later steps are targets.
    series : ndarray of int of shape (n_origins,)
        Series of each origin, as its position in the table.
    n_known : ndarray of int of shape (n_origins,)
        Number of steps of the series that are known, which is also the number of the first step
        to forecast, counted from the start of the series. At 0 the first value counts as known.
    horizon : int
        Number of steps to forecast.
    n_pattern_steps : ndarray of int of shape (n_origins,), default=None
        Number of first steps of the series that its seasonal pattern is learned from; None for
        `n_known`.
    """

    table: Table
    series: np.ndarray
    n_known: np.ndarray
    horizon: int
    n_pattern_steps: np.ndarray | None = None

    def __post_init__(self):
        if self.n_pattern_steps is None:
            object.__setattr__(self, "n_pattern_steps", self.n_known)

    @classmethod
    def at_ends(cls, table, horizon):
        """Make one origin for each series of a table, at its last observation."""
        return cls(table, np.arange(len(table)), table.lengths, horizon)

    @classmethod
    def within(cls, table, horizon, lookback=1):
        """Make all origins that have `lookback` steps before and `horizon` steps after them."""
        counts = np.maximum(table.lengths - lookback - horizon + 1, 0)
        return cls(table, *positions(lookback, counts), horizon)

    def __len__(self):
        return len(self.series)

    def take(self, rows):
        """Select origins by an index or a mask."""
        return self.at_steps(self.series[rows], self.n_known[rows], self.n_pattern_steps[rows])

    def with_patterns_before(self, ends):
        """Learn the patterns of each series only from its first `ends` (n_series,) steps."""
        return replace(self, n_pattern_steps=np.minimum(self.n_known, ends[self.series]))

    def with_shared_patterns(self):
        """Learn seasonal patterns anew only where a series has grown by a quarter.

        The time to learn a pattern at every step would grow with the square of the length.
        """
        # The largest power of the factor of growth that the number of steps reaches.
        power = np.floor(np.log(np.maximum(self.n_known, 1)) / np.log(_GROWTH_OF_PATTERNS))
        n_steps = np.ceil(_GROWTH_OF_PATTERNS**power).astype(np.int64)
        return replace(self, n_pattern_steps=np.minimum(self.n_known, n_steps))

    def at_steps(self, series, n_known, n_pattern_steps=None):
        """Make other origins in the same table, with the same horizon."""
        return Origins(self.table, series, n_known, self.horizon, n_pattern_steps)

    def joined(self, later):
        """Append other origins of the same table."""
        return self.at_steps(
            np.concatenate([self.series, later.series]),
            np.concatenate([self.n_known, later.n_known]),
            np.concatenate([self.n_pattern_steps, later.n_pattern_steps]),
        )

    @property
    def training_index(self):
        """Position of each origin's series among the training series, -1 for new ones."""
        return self.table.training_index[self.series]

    def series_flags(self, training_flags):
        """Return the flag of each origin's series, False for a new series; (n_origins,).

        `training_flags` (n_training_series,) are booleans.
        """
        return (self.training_index >= 0) & training_flags[self.training_index]

    def series_units(self, training_units, measure=naive_scales):
        """Return the unit of each origin's series, a positive number; (n_origins,).

        Parameters
        ----------
        training_units : ndarray of shape (n_training_series,)
            Units that were learned. A series whose unit could not be learned has NaN, and is
            measured like a new one.
        measure : callable, default=naive_scales
            Returns the units of a list of arrays. It measures a new series by the values that
            are known at the origin.
        """
        units = training_units[self.training_index]
        rows = np.flatnonzero((self.training_index < 0) | np.isnan(units))
        if len(rows):
            pairs = np.column_stack([self.series, self.n_known])[rows]
            pairs, pair_of_row = np.unique(pairs, axis=0, return_inverse=True)
            known_values = [self.table.observations[i][: max(n, 1)] for i, n in pairs]
            units[rows] = measure(known_values)[pair_of_row]
        return units

    def has_been_negative(self):
        """Return True where a known value of the series is negative; (n_origins,)."""
        count = np.append(0, np.cumsum(self.table.value < 0))
        first_row = self.table.first_rows[self.series]
        return count[first_row + np.maximum(self.n_known, 1)] > count[first_row]

    @property
    def steps_left(self):
        """Number of observed steps after each origin; (n_origins,)."""
        return self.table.lengths[self.series] - self.n_known

    @property
    def target_steps(self):
        """Steps to forecast, counted from the start of the series; (n_origins, horizon)."""
        return self.n_known[:, None] + np.arange(self.horizon)

    def past(self, length):
        """Return the last known values; (n_origins, length).

        The first value of a series stands for steps before it.
        """
        check_memory("lookback at every step", (len(self), length), "pass a smaller lookback")
        first_row = self.table.first_rows[self.series] + self.n_known - length
        if not 0 < length <= len(self.table.value) or (self.n_known < length).any():
            return self._values_at(self.n_known[:, None] - length + np.arange(length))
        # Selecting windows of a view copies only the windows that are needed.
        return sliding_window_view(self.table.value, length)[first_row]

    def lagged(self, lags):
        """Return values `lags` steps before the targets, NaN before the start of a series.

        `lags` broadcasts to (n_origins, horizon), and so does the result.
        """
        steps = self.target_steps - lags
        return np.where(steps >= 0, self._values_at(steps), np.nan)

    def targets(self):
        """Return values of the steps to forecast, NaN if unknown; (n_origins, horizon)."""
        last_step = self.table.lengths[self.series][:, None] - 1
        values = self._values_at(np.minimum(self.target_steps, last_step))
        return np.where(self.target_steps <= last_step, values, np.nan)

    def _values_at(self, steps):
        """Return values at `steps` (n_origins, n_steps), the first value for earlier steps."""
        first_row = self.table.first_rows[self.series][:, None]
        return self.table.value[first_row + np.maximum(steps, 0)]

    def past_features(self, length):
        """Return covariates of the last known steps; (n_origins, length, n_features).

        Steps before the start of a series have its first covariates. The result is None without
        covariates.
        """
        if self.table.n_features == 0:
            return None
        return self._features_at(self.n_known[:, None] - length + np.arange(length))

    def future_features(self):
        """Return future covariates of the steps to forecast; None if there are none.

        The shape is (n_origins, horizon, n_future_columns).
        """
        future_columns = self.table.future_columns
        if self.table.n_features == 0 or len(future_columns) == 0:
            return None
        return self._features_at(self.target_steps)[:, :, future_columns]

    def _features_at(self, steps):
        """Return covariates at `steps` (n_origins, n_steps); a third axis has the columns."""
        return self.table.features[self.table.feature_rows(self.series[:, None], steps)]


def split_at_ends(origins, fraction):
    """Split origins into training origins and the last ones of each series, held out.

    Parameters
    ----------
    origins : Origins
    fraction : float
        Share of the origins of each series to hold out, at least one origin.

    Returns
    -------
    training, held_out : Origins
        The last target of a training origin comes before the first target that is held out in
        its series. A series that is too short for both has no training origins.
    """
    counts = np.bincount(origins.series, minlength=len(origins.table))
    n_held_out = np.maximum(1, np.floor(counts * fraction).astype(np.int64))
    last = np.zeros_like(counts)
    np.maximum.at(last, origins.series, origins.n_known)
    first_held_out = (last + 1 - n_held_out)[origins.series]
    training = origins.take(origins.n_known + origins.horizon <= first_held_out)
    return training, origins.take(origins.n_known >= first_held_out)


def min_windows(horizon, fraction):
    """Return how many windows a series needs so that `split_at_ends` can train on some.

    Of n windows, n - floor(fraction n) have to be at least `horizon`.
    """
    # Rounding of `fraction` may ask for one window more than the formula.
    return max(horizon + 1, int((horizon - 1) / (1 - fraction) + 1e-9) + 1)


@dataclass(frozen=True, eq=False)
class Validation:
    """Origins to learn from, and validation origins in contiguous blocks of time.

    Attributes
    ----------
    origins : Origins
        All origins with a whole horizon after them and at least one step before them.
    tests : Origins
        Validation origins.
    block : ndarray of int of shape (n_validation,)
        Block of each validation origin. A block is a fold of the cross-validation.
    scale : ndarray of shape (n_series,)
        Naive scale of each series.
    """

    origins: Origins
    tests: Origins
    block: np.ndarray
    scale: np.ndarray

    @classmethod
    def from_table(cls, table, horizon, lookback, share=_VALIDATED_SHARE):
        """Spread validation origins over the last part of each series, in five blocks.

        Parameters
        ----------
        table : Table
        horizon : int
        lookback : int
            Number of steps before a validation origin, but at most a third of the series.
        share : float
            Share of a long series that is validated, unless there are many series.
        """
        n_wanted = min(_N_ORIGINS // len(table), _MAX_ORIGINS)
        columns = [np.empty((3, 0), dtype=np.int64)]
        for i, length in enumerate(table.lengths):
            max_distance = length - max(min(lookback, length // 3), _MIN_KNOWN)
            # Distances are numbers of steps from an origin to the end of its series.
            if length >= _MIN_HORIZONS_OF_LONG * horizon:
                span = int(share * length)
                if len(table) >= PANEL:
                    span = _VALIDATED_HORIZONS_IN_PANEL * horizon
                nearest, farthest, n_min = horizon, min(span, max_distance), _MIN_ORIGINS
            else:
                # Targets may be unknown within the last horizon of a short series.
                nearest, farthest = max(1, horizon // 2), min(3 * horizon, max_distance)
                n_min = _MIN_ORIGINS_IF_SHORT
            nearest = min(nearest, farthest)
            if nearest < 1:
                continue  # The series is too short to be validated.
            n_distances = farthest - nearest + 1
            distances = nearest + evenly_spread(np.arange(n_distances), max(n_wanted, n_min))
            block = (distances - nearest) * _N_BLOCKS // n_distances
            columns.append([np.full_like(distances, i), length - distances, block])
        series, n_known, block = np.concatenate(columns, axis=1)
        tests = Origins(table, series, n_known, horizon)
        scale = naive_scales(table.observations)
        return cls(Origins.within(table, horizon), tests, block, scale)

    @property
    def is_panel(self):
        """True if there are validation origins, and many series that are not intermittent."""
        return np.sum(~self.is_intermittent) >= PANEL and len(self.block) > 0

    @property
    def are_long(self):
        """True if the median series has at least 10 horizons."""
        lengths = self.tests.table.lengths
        return np.median(lengths) >= _MIN_HORIZONS_OF_LONG * self.tests.horizon

    @cached_property
    def is_intermittent(self):
        """True for a series that is at its minimum more than half of the time; (n_series,).

        Counts of rare sales are an example, whose minimum is 0.
        """
        flags = []
        for values in self.tests.table.observations:
            n_at_minimum, n_changes = (
                np.sum(values == values.min()),
                np.sum(np.diff(values) != 0),
            )
            flags.append(2 * n_at_minimum > len(values) and n_changes >= _MIN_CHANGES)
        return np.array(flags)

    @property
    def n_blocks(self):
        """Number of blocks."""
        return int(self.block.max()) + 1 if len(self.block) else 0

    def first_test_step(self, rows=slice(None)):
        """Return `n_known` of the first validation origin of each series; (n_series,).

        Only the validation origins `rows` count. For a series without any it is the length.
        """
        first = self.tests.table.lengths.copy()
        np.minimum.at(first, self.tests.series[rows], self.tests.n_known[rows])
        return first

    @cached_property
    def _spans(self):
        """Target steps of each block in each series: the first, and the one after the last.

        Both are of shape (n_series, n_blocks), and inf and -inf where a block is empty.
        """
        shape = len(self.scale), self.n_blocks
        first, end = np.full(shape, np.inf), np.full(shape, -np.inf)
        cells = self.tests.series, self.block
        np.minimum.at(first, cells, self.tests.n_known)
        np.maximum.at(end, cells, self.tests.n_known + self.origins.horizon)
        return first, end

    def overlap_bounds(self, block):
        """Bound `n_known` of the origins whose targets overlap with those of a block.

        Returns
        -------
        first, end : ndarray of shape (n_series,)
            Targets overlap if ``first <= n_known < end``.
        """
        first, end = self._spans
        return first[:, block] - self.origins.horizon + 1, end[:, block]

    def overlapping(self, series, n_known, block):
        """Return True where targets of origins overlap with those of a block; (n_origins,)."""
        first, end = (spans[series, block] for spans in self._spans)
        return (n_known > first - self.origins.horizon) & (n_known < end)

    def folds(self):
        """Yield, for each block, validation origins to predict and those to learn from.

        Both are row numbers. Targets of the latter do not overlap with targets of the block.
        """
        for block in range(self.n_blocks):
            overlaps = self.overlapping(self.tests.series, self.tests.n_known, block)
            yield np.flatnonzero(self.block == block), np.flatnonzero(~overlaps)

    def in_blocks(self, series, steps):
        """Return True where steps of a series are targets of a block; (n_steps, n_blocks)."""
        first, end = (spans[series] for spans in self._spans)
        return (steps[:, None] >= first) & (steps[:, None] < end)


def out_of_fold_forecasts(learn, validation):
    """Forecast each validation origin by a model that has not learned from its block.

    Parameters
    ----------
    learn : callable
        ``learn(block)`` returns a fitted candidate that has not seen targets of the block.
    validation : Validation

    Returns
    -------
    forecasts : ndarray of shape (n_validation, 1, horizon)
    """
    tests = validation.tests
    forecasts = np.full((len(tests), 1, tests.horizon), np.nan)
    for block, (rows, _) in enumerate(validation.folds()):
        forecasts[rows] = learn(block).forecast(tests.take(rows))
    return forecasts


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts at origins, with quantiles, and with candidates and their weights.

    Attributes
    ----------
    origins : Origins
    mean : ndarray of shape (n_origins, horizon)
        The forecasts.
    ensemble_mad : ndarray of shape (n_origins, horizon), default=None
        Mean absolute deviation of the candidate forecasts from their mean; None if there is
        only one forecast, or if only means were asked for.
    quantiles : ndarray of shape (n_origins, horizon, n_levels), default=None
        Quantiles at the levels that were passed; None if the forecaster has no distribution.
    candidate_forecasts : ndarray of shape (n_origins, n_candidates, horizon), default=None
        NaN where a candidate has no forecast.
    weights : ndarray of shape (n_origins, n_candidates), default=None
        Weights of the candidates in the mean.
    """

    origins: Origins
    mean: np.ndarray
    ensemble_mad: np.ndarray | None = None
    quantiles: np.ndarray | None = None
    candidate_forecasts: np.ndarray | None = None
    weights: np.ndarray | None = None

    @classmethod
    def from_candidates(cls, origins, combined, full=False):
        """Average the candidate forecasts; the last known value where no candidate has one.

        Parameters
        ----------
        origins : Origins
        combined : CombinedForecast
            Fitted candidates and their weights.
        full : bool, default=False
            Whether all candidates are computed, also those without weight, and `ensemble_mad`.
        """
        weights, attention = combined.weights_at(origins), combined.attention
        only_weighted = not full and attention is None
        forecasts = combined.each(origins, weights.any(axis=0) if only_weighted else None)
        if attention is not None:
            weights = attention.weights(origins, forecasts, weights)
        has_forecast = ~np.isnan(forecasts).any(axis=2)
        unforecast = np.flatnonzero(~(has_forecast & (weights > 0)).any(axis=1))
        if len(unforecast) and only_weighted:
            # These series are too short for all candidates with a weight.
            forecasts[unforecast] = combined.each(origins.take(unforecast))
        mean = combine(forecasts, weights, origins.past(1))
        mad = ensemble_mad(forecasts) if full else None
        return cls(origins, mean, mad, candidate_forecasts=forecasts, weights=weights)

    @classmethod
    def joined(cls, blocks):
        """Join Forecasts at origins of one table that have only means and quantiles."""
        origins = reduce(Origins.joined, (forecasts.origins for forecasts in blocks))
        mean = np.concatenate([forecasts.mean for forecasts in blocks])
        quantiles = np.concatenate([forecasts.quantiles for forecasts in blocks])
        return cls(origins, mean, quantiles=quantiles)

    def take(self, rows):
        """Select the forecasts of some origins by an index or a mask."""
        names = "mean", "ensemble_mad", "quantiles", "candidate_forecasts", "weights"
        arrays = [getattr(self, name) for name in names]
        selected = [None if array is None else array[rows] for array in arrays]
        return Forecasts(self.origins.take(rows), *selected)

    def moved(self, shift):
        """Add `shift` (n_origins, horizon) to means and quantiles."""
        quantiles = None if self.quantiles is None else self.quantiles + shift[:, :, None]
        return replace(self, mean=self.mean + shift, quantiles=quantiles)


def combine(forecasts, weights, otherwise):
    """Average the forecasts of candidates that have one.

    Parameters
    ----------
    forecasts : ndarray of shape (n_origins, n_candidates, horizon)
        If any step of a candidate is NaN, it has no forecast at this origin.
    weights : ndarray of shape (n_origins, n_candidates)
        If no candidate with a positive weight has a forecast, the others are averaged equally.
    otherwise : float or ndarray that broadcasts to (n_origins, horizon)
        Result where no candidate has a forecast.

    Returns
    -------
    combined : ndarray of shape (n_origins, horizon)
    """
    has_forecast = ~np.isnan(forecasts).any(axis=2)
    available = np.where(has_forecast, weights, 0.0)
    weights = np.where(available.sum(axis=1, keepdims=True) > 0, available, has_forecast)
    total = weights.sum(axis=1, keepdims=True)
    normalized_weights = weights / np.where(total > 0, total, 1.0)
    finite_forecasts = np.where(has_forecast[:, :, None], forecasts, 0.0)
    combined = np.einsum("nc,nch->nh", normalized_weights, finite_forecasts)
    return np.where(total > 0, combined, otherwise)


def ensemble_mad(forecasts):
    """Return the mean absolute deviation of candidates from their unweighted mean.

    `forecasts` are (n_origins, n_candidates, horizon); the result (n_origins, horizon) is 0
    where no candidate has a forecast.
    """
    equal_weights = np.ones(forecasts.shape[:2])
    mean = combine(forecasts, equal_weights, otherwise=0.0)
    return combine(np.abs(forecasts - mean[:, None]), equal_weights, otherwise=0.0)


# Values of the parameter `normalize`: with a STANDARD one each window is divided by its own
# standard deviation, with a SEASONAL one targets are relative to the last season.
STANDARD = ("standard", "standard_seasonal")
SEASONAL = ("seasonal", "standard_seasonal")


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows before origins, and their targets, relative to a level and in a unit.

    A window is the stretch of the last `lookback` known steps. Windows are the keys of kernel
    averages, and targets the values.

    Attributes
    ----------
    origins : Origins
    keys : ndarray of shape (n_origins, n_columns)
        (Values - mean of the last steps) / `unit` of the steps of each window, then past
        covariates of these steps, and future covariates of the steps to forecast.
    level : ndarray of shape (n_origins, 1) or (n_origins, horizon)
        Level that is subtracted from targets.
    unit : ndarray of shape (n_origins, 1)
        Number by which values and targets are divided.
    last_deviation : ndarray of shape (n_origins, 1)
        (Last value - its level) / `unit`.
    """

    origins: Origins
    keys: np.ndarray
    level: np.ndarray
    unit: np.ndarray
    last_deviation: np.ndarray

    @classmethod
    def at_origins(
        cls,
        origins,
        lookback,
        normalize,
        unit=1.0,
        season=1,
        seasonal_share=1.0,
        last_share=0.0,
        features=True,
    ):
        """Make the window of `lookback` steps before each origin.

        The level of the target k steps ahead is m, the mean of the last steps, plus
        `seasonal_share` times (the last known value of the phase of the target - m), if the
        normalization is seasonal, plus `last_share` times the last deviation.

        Parameters
        ----------
        origins : Origins
        lookback : int
        normalize : str, int or None
            "last", "seasonal", "standard" or "standard_seasonal", None for the level 0, or the
            number of last steps whose mean is the level.
        unit : float or ndarray of shape (n_origins, 1), default=1.0
            Ignored if `normalize` is in STANDARD.
        season : int, default=1
            Number of steps in a season, whose mean is m if `normalize` is in SEASONAL.
        seasonal_share : float, default=1.0
        last_share : float or ndarray of shape (horizon,), default=0.0
        features : bool, default=True
            Whether keys have covariates.
        """
        keys = origins.past(lookback)
        is_unscaled = np.ndim(unit) == 0 and unit == 1
        # 1. The level is the mean of the last steps, and the unit may be that of the window.
        level_steps = {"standard": lookback, "last": 1, None: 0}
        n_level = season if normalize in SEASONAL else level_steps.get(normalize, normalize)
        level = np.zeros((len(keys), 1))
        unit = np.broadcast_to(unit, (len(keys), 1))
        if n_level:
            level = keys[:, -n_level:].mean(axis=1, keepdims=True)
        if normalize in STANDARD:
            unit, is_unscaled = mean_and_scale(keys.T)[1][:, None], False
        keys -= level
        if not is_unscaled:
            keys /= unit
        last_deviation = keys[:, -1:]
        # 2. The level of the targets is moved by the last season and by the last deviation.
        if normalize in SEASONAL:
            # The first column is a season before the last value, and has its phase.
            seasonal = seasonal_share * (origins.past(season + 1) - level)
            last_deviation = last_deviation - seasonal[:, :1] / unit
            level = level + seasonal[:, 1 + np.arange(origins.horizon) % season]
        level = level + last_share * unit * last_deviation
        if features and origins.table.n_features:
            keys = np.concatenate([keys, *_covariate_columns(origins, lookback)], axis=1)
        return cls(origins, keys, level, unit, last_deviation)

    def __len__(self):
        return len(self.keys)

    @cached_property
    def values(self):
        """Targets relative to the level and in the unit; (n_origins, horizon)."""
        return (self.origins.targets() - self.level) / self.unit

    def restore(self, values):
        """Convert relative values back to the units of the series.

        `values` are of shape (n_origins, horizon) or (n_origins, horizon, n_levels).
        """
        new_axes = tuple(range(2, values.ndim))
        level, unit = np.expand_dims(self.level, new_axes), np.expand_dims(self.unit, new_axes)
        return level + unit * values


def _covariate_columns(origins, lookback):
    """Return past covariates of the windows and future covariates of the targets, flattened.

    The result is a list of arrays of shape (n_origins, n_steps * n_columns).
    """
    past = origins.past_features(lookback)
    future = origins.future_features()
    # Future covariates are compared only at the targets, which they concern directly.
    arrays = [np.delete(past, origins.table.future_columns, axis=2)]
    if future is not None:  # There are future covariates.
        arrays.append(future)
    return [array.reshape(len(array), array.shape[1] * array.shape[2]) for array in arrays]
