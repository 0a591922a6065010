"""Intervals and quantiles from held-out errors (split-conformal prediction)."""

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import t as student
from sklearn.isotonic import isotonic_regression

from ._origins import evenly_spread

# Held-out windows that are enough to calibrate on, evenly spread.
MOST_CALIBRATED = 250
# Relative differences below are rounding: of levels, errors, and means of them.
_ROUNDING = 1e-9
_TINY = 1e-100
# Squared horizons that the errors of all series count as among those of one (a fraction of one
# counts next to nothing, several almost all), horizons of those of a random walk
# among those of all series, and origins that its growth counts as.
_HORIZONS_OF_ALL, _HORIZONS_OF_WALKS, _ORIGINS_OF_WALKS = 1.0, 4.0, 10
# Errors below this share of the mean one are next to nothing.
_NOTHING = 0.1
# Of fewer origins errors are filled up with those of a t distribution.
_FEWEST = 60
# Errors beyond a quantile of one step ahead from which on they count relative to those of all
# steps.
_TAIL = 5.0
# Levels between the median and one that is wanted, which its quantile lies beyond.
_NESTED = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
# Where errors of the latest block exceed those of the others, intervals are wider by this power
# of their ratio, up to a limit: on 29 series covered are .894 of the steps for .872, with an
# interval score of .99; on eighteen panels .876 for .873, with the same.
_POWER_OF_LATEST, _WIDEST = 0.5, 1.6
# Errors since the fit: origins of each series that count, and horizons that held-out errors
# count as among them. Patterns are learned again whenever a series has grown by this factor.
_SINCE, _LEARNED, _GROWTH = 20, 2.0, 1.25


@dataclass(frozen=True, eq=False)
class Calibration:
    """Held-out errors in units of their expected sizes.

    Attributes
    ----------
    levels : ndarray of shape (n_levels,)
        Levels whose quantiles are calibrated, increasing; one if there are only forecasts.
    errors : ndarray of shape (n_errors, horizon, n_levels)
        Truth less quantile, in units of their series; NaN where nothing was observed. Of fewer
        than 60 origins, errors of a t distribution as well.
    error, unit : ndarray of shape (n_series,)
        Mean error of each series, as it is and divided by the growth with disagreement; NaN of
        those that did not change. The former is infinite, so that neither disagreement nor
        later errors count, where most errors are next to nothing: few jumps are the others.
    of_new_series : (float, float)
        Both of an unknown series, in units of its naive error so far.
    until : ndarray of int of shape (n_series,)
        Steps of each series that were learned from.
    widening : float
        Factor in units by which errors of the latest held-out block exceed earlier ones, in
        part; 1 where they do not.
    """

    # With e the mean error of a series and s the disagreement of candidates, errors are taken
    # to grow like sqrt(1 + s / e). The unit of an error is from other blocks of its series,
    # since later errors are not part of it either: from few blocks it is uncertain, and errors
    # in such units have longer tails, which allow for that. Where little was held out, units
    # are in part those of a random walk, and errors those of a t distribution with as many
    # degrees of freedom as series have differences.

    levels: np.ndarray
    errors: np.ndarray
    error: np.ndarray
    unit: np.ndarray
    of_new_series: tuple
    until: np.ndarray
    widening: float = 1.0
    _shifts: dict = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def fit(cls, forecasts, levels=(0.5,), block=0):
        """Calibrate by forecasts of origins that were not learned from."""
        origins, levels = forecasts.origins, np.array(levels)
        table, series, n = origins.table, origins.series, len(origins)
        scale, errors = own_scales(table.values), _missed(forecasts)
        n_steps = max(2.0, np.median(table.lengths) - 1)
        walks = growth_of_walks(origins.horizon, n_steps)
        # Series that did not change have no errors to learn from.
        changing = np.array([np.ptp(own) > 0 for own in table.values])
        clear = changing[series]
        growth = growth_of_errors(errors[clear], scale[series[clear]], walks)
        weight, walk = _horizons(origins) * clear, walks.mean()

        def units(errors, rows=slice(None)):
            return error_units(errors[rows], series[rows], weight[rows], scale, growth, walk)

        error, error_of_new, _ = units(errors)
        exact = mostly_exact(errors, series, len(table))
        # Candidates that disagree after a jump are no worse than errors after it.
        error = np.where(exact, np.inf, error)
        errors = errors / _growth(forecasts, error[series])[:, :, None]
        unit, of_new, clear = units(errors)
        apart, block = unit[series], np.broadcast_to(block, n)
        for one in np.unique(block):
            other = block != one
            if other.any():
                apart[~other] = units(errors, other)[0][series[~other]]
        apart = np.where(exact[series], unit[series], apart)
        counted = (clear & ~exact)[series]
        wider = widening_of(errors[counted], series[counted], block[counted] == 0, growth)
        unit, of_new = wider * unit, wider * of_new
        errors = errors / apart[:, None, None]
        # Series that are forecast but for rounding are left out of the errors of others.
        errors = errors[clear[series]]
        if len(errors) < _FEWEST:
            # Quantiles that were never held out may have no spread at all.
            apart = levels if len(errors) else np.full(len(levels), 0.5)
            further = errors_of_a_distribution(_FEWEST - len(errors), apart, n_steps)
            errors = np.concatenate([errors, growth[:, None] * further])
        error, unit = np.where(changing, (error, unit), np.nan)
        return cls(levels, errors, error, unit, (error_of_new, of_new), table.lengths, wider)

    def intervals(self, forecasts, coverages, drift=1.0, n_blocks=1):
        """Ends of intervals; (n_origins, horizon, 2 * n_coverages)."""
        ends = [(1 + side * coverage) / 2 for coverage in coverages for side in (-1, 1)]
        found = self._found(forecasts, ends, interval_end, drift, n_blocks)
        pairs = found.reshape(*found.shape[:2], len(coverages), 2)
        # A mean may lie beyond quantiles of a distribution.
        center = forecasts.mean[:, :, None]
        lower, upper = np.minimum(pairs[..., 0], center), np.maximum(pairs[..., 1], center)
        return np.stack([lower, upper], axis=3).reshape(found.shape)

    def quantiles(self, forecasts, levels, drift=1.0, n_blocks=1):
        """Quantiles of some levels; (n_origins, horizon, n_levels)."""
        return self._found(forecasts, levels, quantile_shift, drift, n_blocks)

    def _found(self, forecasts, wanted, shift, drift, n_blocks):
        """Quantiles, moved by `shift` of their level; none lies within those before it."""
        at = np.unique([*wanted, *_NESTED, 0.5, *(1 - level for level in _NESTED)])
        for level in at:
            if (shift, level) not in self._shifts:
                self._shifts[shift, level] = shift(self.errors, self.levels, level)
        shifts = np.stack([self._shifts[shift, level] for level in at], axis=-1)
        unit = (np.asarray(drift).reshape(-1, 1) * self._units(forecasts))[:, :, None]
        center = forecasts.mean[:, :, None]
        if forecasts.quantiles is None:
            found = center + unit * nested_quantiles(shifts, at, wanted)
        else:
            apart = [errors_at(forecasts.quantiles, self.levels, level) for level in at]
            found = nested_quantiles(np.stack(apart, axis=-1) + unit * shifts, at, wanted)
        # Distances grow by the root of the number of blocks, as in a random walk.
        found = center + np.sqrt(n_blocks) * (found - center)
        # Levels between usual ones may still cross.
        return np.sort(found, axis=2)[..., np.argsort(np.argsort(wanted))]

    def _units(self, forecasts):
        """Errors to be expected at the origins; (n_origins, horizon or 1)."""
        origins = forecasts.origins
        learned = (origins.identity >= 0) & ~np.isnan(self.unit[origins.identity])
        scale = 1.0
        if not learned.all():
            scale = origins.units(np.where(np.isnan(self.unit), np.nan, 1.0), own_scales)
        error, unit = (
            np.where(learned, own[origins.identity], scale * new)
            for own, new in zip((self.error, self.unit), self.of_new_series, strict=True)
        )
        return unit[:, None] * _growth(forecasts, error)

    def origins_since(self, origins):
        """Origins since the fit whose errors are known at some, and which those are of each."""
        never = np.iinfo(np.int32).max  # of series that sizes have not been learned of
        first = np.full(len(origins.table), never)
        first[: len(self.until)] = np.where(np.isfinite(self.error), self.until, never)
        first = first[origins.series]
        width = np.maximum(origins.known - first - origins.horizon + 1, 0)
        known = np.full((len(origins), _SINCE), -1)
        for row in np.flatnonzero(width):
            spread = evenly_spread(width[row], _SINCE)
            known[row, : len(spread)] = first[row] + spread
        series = np.broadcast_to(origins.series[:, None], known.shape)
        there = known >= 0
        pairs = np.column_stack([series[there], known[there]])
        pairs, place = np.unique(pairs, axis=0, return_inverse=True)
        rows = np.full(known.shape, -1)
        rows[there] = place
        series, known = pairs.T
        first = self.until[series]
        grown = np.floor(np.log(known / first) / np.log(_GROWTH) + 1e-9)
        learned = np.floor(first * _GROWTH**grown).astype(np.int64)
        return origins.at(series, known, np.minimum(learned, known)), rows

    def drift(self, since, rows):
        """Factors (n_origins,) by which errors since the fit exceed those held out, in part."""
        # `rows` (n_origins, n_since) are those of `since` before each origin, -1 for none.
        errors = _missed(since) / self._units(since)[:, :, None]
        held_out = np.nanmean(np.abs(self.errors)) or 1.0
        size = np.nanmean(np.abs(errors), axis=(1, 2)) / held_out
        there, known = rows >= 0, since.origins.known
        count = there.sum(axis=1)
        mean = np.where(there, size[rows], 0.0).sum(axis=1) / np.maximum(count, 1)
        last = np.where(there, known[rows], 0).max(axis=1)
        span = last - np.where(there, known[rows], last[:, None]).min(axis=1)
        n_horizons = span / since.origins.horizon + 1
        share = np.where(count > 0, n_horizons / (n_horizons + _LEARNED), 0.0)
        return 1 + share * (mean - 1)


def _missed(forecasts):
    """Truth less forecasts, or quantiles; (n_origins, horizon, n_levels)."""
    found = forecasts.quantiles
    found = forecasts.mean[:, :, None] if found is None else found
    return forecasts.origins.targets()[:, :, None] - found


def _growth(forecasts, error):
    """Factors of errors where candidates disagree, (n_origins, horizon or 1).

    `error` (n_origins,) is the usual one.
    """
    if forecasts.disagreement is None:
        return np.ones((len(error), 1))
    return np.sqrt(1 + forecasts.disagreement / error[:, None])


def widening_of(errors, series, latest, growth):
    """Factor by which errors of the latest block exceed those of the others, in part."""
    # `latest` (n_origins,) are its origins. A geometric mean over series.
    size, there = np.abs(errors).mean(axis=2), ~np.isnan(errors).any(axis=2)
    size = np.where(there, size, 0.0).sum(axis=1)
    size /= np.maximum((there * growth).sum(axis=1), _TINY)
    logs = []
    for part in (latest, ~latest):
        count = np.bincount(series[part], there.any(axis=1)[part], series.max(initial=0) + 1)
        mean = np.bincount(series[part], size[part], len(count)) / np.maximum(count, _TINY)
        logs.append(np.log(mean, where=mean > 0, out=np.full(len(mean), np.nan)))
    ratio = logs[0] - logs[1]
    ratio = ratio[~np.isnan(ratio)].mean() if (~np.isnan(ratio)).any() else 0.0
    return float(np.clip(np.exp(_POWER_OF_LATEST * ratio), 1.0, _WIDEST))


def own_scales(values):
    """Mean absolute differences between neighbours of series, above rounding; (n_series,)."""
    sizes = [np.abs(series).max(initial=0.0) for series in values]
    # A single value has no difference, only a size.
    steps = [
        np.abs(np.diff(series)).mean() if len(series) > 1 else size
        for series, size in zip(values, sizes, strict=True)
    ]
    return np.maximum(steps, np.maximum(_ROUNDING * np.array(sizes), _TINY))


def growth_of_walks(horizon, n_steps):
    """Errors of a random walk, whose drift is the mean of so many steps; (horizon,)."""
    ahead = np.arange(1, horizon + 1)
    return np.sqrt(ahead * (1 + ahead / n_steps))


def growth_of_errors(errors, scale, walks):
    """Mean errors (n_origins, horizon, n_levels) of each step ahead, 1 on average; (horizon,).

    In part those of random walks, (horizon,), and nearly these where there are few origins.
    """
    size = np.abs(errors).mean(axis=2) / scale[:, None]
    there = ~np.isnan(size)
    if there.any():
        size = np.where(there, np.minimum(size, np.nanquantile(size, 0.95)), 0)
        mean = size.sum() / (there * walks).sum()
        total = size.sum(axis=0) + _ORIGINS_OF_WALKS * mean * walks
        found = total / (there.sum(axis=0) + _ORIGINS_OF_WALKS)
        walks = found if mean > 0 else walks
    return walks / walks.mean()


def _horizons(origins):
    """Number of horizons that all origins of a series span, per origin; (n_origins,)."""
    series, n = origins.series, len(origins.table)
    first, last = np.full(n, np.inf), np.zeros(n)
    np.minimum.at(first, series, origins.known)
    np.maximum.at(last, series, origins.known + origins.horizon)
    last = np.minimum(last, origins.table.lengths)
    span = (last - first)[series] / origins.horizon
    return span / np.bincount(series, minlength=n)[series]


def error_units(errors, series, weight, scale, growth, walk):
    """Error sizes (n_series,), that of an unknown series in units of `scale`, and a mask."""
    # The mask (n_series,) is True where there are errors beyond rounding. Sizes are of errors
    # (n_origins, horizon, n_levels), NaN where nothing was observed, and partly those of all
    # series, which partly are those of a random walk. `weight` (n_origins,) is the number of
    # horizons that an origin counts as, `scale` (n_series,) the errors of naive forecasts,
    # `growth` (horizon,) that of errors with steps ahead, `walk` the mean error of a random
    # walk.
    size = np.abs(errors).mean(axis=2)
    there, n = ~np.isnan(size), len(scale)
    total = np.where(there, size, 0).sum(axis=1)
    total /= np.maximum((there * growth).sum(axis=1), _TINY)
    weight = np.where(there.any(axis=1), weight, 0)
    count = np.bincount(series, weight, minlength=n)
    error = np.bincount(series, weight * total / scale[series], minlength=n)
    error = np.maximum(error / np.maximum(count, _TINY), _ROUNDING)
    # Series that are forecast but for rounding, such as constant ones, do not count for others.
    clear = (count > 0) & (error > _ROUNDING * max(1, error.max(initial=0.0)))
    said = clear if clear.any() else count > 0
    # Sizes differ by factors: one series of large errors must not widen those of all others.
    logs = (count[said] * np.log(error[said])).sum() + _HORIZONS_OF_WALKS * np.log(walk)
    typical = float(np.exp(logs / (count[said].sum() + _HORIZONS_OF_WALKS)))
    share = count**2 / (count**2 + _HORIZONS_OF_ALL)
    return scale * typical * np.where(count > 0, error / typical, 1.0) ** share, typical, clear


def mostly_exact(errors, series, n):
    """True for series most errors of which are next to nothing; (n_series,)."""
    # A few jumps make up their mean error, which says nothing of blocks without one.
    size = np.abs(errors).mean(axis=2)
    there = np.sum(~np.isnan(size), axis=1)
    count = np.maximum(np.bincount(series, there, n), 1)
    mean = np.bincount(series, np.nansum(size, axis=1), n) / count
    small = np.bincount(series, np.sum(size <= _NOTHING * mean[series, None], axis=1), n)
    return small > count / 2


def errors_of_a_distribution(n, levels, n_steps):
    """Quantiles of Student's t less those of levels, of mean size 1; (n, 1, n_levels)."""

    def spread(n):
        found = student.ppf((np.arange(n) + 0.5) / n, n_steps)
        return found[:, None, None] - student.ppf(levels, n_steps)

    return spread(n) / np.abs(spread(1000)).mean()


def nested_quantiles(found, at, wanted):
    """Of each level wanted the value farthest from the median of levels up to it; (..., n).

    `found` (..., n_levels) is of the levels `at`: usual ones count, no matter what is wanted.
    """
    kept = np.isin(at, [*_NESTED, 0.5, *(1 - level for level in _NESTED)])
    columns = []
    for level in wanted:
        within = (at >= 0.5) & (at <= level) if level > 0.5 else (at <= 0.5) & (at >= level)
        values = found[..., within & (kept | (at == level))]
        columns.append(values.max(axis=-1) if level > 0.5 else values.min(axis=-1))
    return np.stack(columns, axis=-1)


def errors_at(errors, levels, level):
    """Errors of the quantile of a level, between those of the levels that were kept."""
    place = np.interp(level, levels, np.arange(len(levels)))
    below = int(place)
    above = min(below + 1, len(levels) - 1)
    return errors[..., below] + (place - below) * (errors[..., above] - errors[..., below])


def interval_end(errors, levels, level):
    """Shift of the end of an interval, at a level; (horizon,)."""
    margin = interval_margin(errors, levels, abs(2 * level - 1))
    return np.sign(level - 0.5) * margin


def interval_margin(errors, levels, coverage):
    """Margin (horizon,) by which an interval between two quantiles has to be widened."""
    # Conformalised quantile regression (Romano, Patterson and Candes 2019, NeurIPS 32): the
    # score of an origin is max(q_lo - y, y - q_hi), and the margin the ceil((n + 1) c)-th
    # smallest score, negative where quantiles are too far apart. With point forecasts, scores
    # are absolute errors. The fewer scores of a step lie beyond its margin, the more it is that
    # of all steps, in units of their sizes.
    below = errors_at(errors, levels, (1 - coverage) / 2)
    above = errors_at(errors, levels, (1 + coverage) / 2)
    scores = np.maximum(-below, above)  # NaN where nothing was observed
    counts = np.sum(~np.isnan(scores), axis=0)
    ranks = np.ceil((counts + 1) * coverage - _ROUNDING).astype(np.int64)
    own = np.sort(scores, axis=0)  # NaN last
    own = own[np.clip(ranks, 1, len(scores)) - 1, np.arange(scores.shape[1])]
    size = _sizes(scores, counts)
    pooled = np.sort((scores / np.where(size > 0, size, 1.0)).ravel())
    pooled = pooled[~np.isnan(pooled)]
    rank = min(len(pooled), int(np.ceil((len(pooled) + 1) * coverage - _ROUNDING)))
    return _partly(own, size * pooled[max(rank, 1) - 1], counts * (1 - coverage))


def quantile_shift(errors, levels, level):
    """Shift of a quantile, the quantile of that level of its own errors."""
    # In part, where there are few, that of the errors of all steps in units of their size.
    errors = errors_at(errors, levels, level)
    counts = np.sum(~np.isnan(errors), axis=0)
    own, there = np.zeros(len(counts)), counts > 0
    own[there] = np.nanquantile(errors[:, there], level, axis=0)
    size = _sizes(errors, counts)
    pooled = np.nanquantile(errors / np.where(size > 0, size, 1.0), level)
    return _partly(own, size * pooled, counts * min(level, 1 - level))


def _sizes(scores, counts):
    """Root mean squares of steps ahead, which do not shrink with the horizon; (horizon,)."""
    squares = np.where(np.isnan(scores), 0, scores) ** 2
    mean = squares.sum(axis=0) / np.maximum(counts, 1)
    return np.sqrt(isotonic_regression(mean, sample_weight=np.maximum(counts, 1e-9)))


def _partly(own, of_all, n_beyond):
    """Quantiles of each step ahead, in part those of all steps, by how many lie beyond them."""
    share = np.maximum(0, 1 - _TAIL / np.maximum(n_beyond, _TINY))
    return np.where(share > 0, share * own, 0) + (1 - share) * of_all
