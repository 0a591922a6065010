"""From held-out errors to intervals and quantiles (split-conformal prediction)."""

from dataclasses import dataclass, field

import numpy as np

from ._metrics import naive_scales
from ._origins import evenly_spread

# Rounding must not require one more error than needed.
_SLACK = 1e-9
# Errors below this share of the largest are rounding.
_EXACT = 1e-9
# Origins that the errors of all series count as among those of one.
_BORROWED = 1.0
# Errors since the fit: origins of each series that count, and horizons that held-out errors
# count as among them. Patterns are learned anew whenever a series has grown by this factor.
_SINCE, _LEARNED, _GROWTH = 20, 2.0, 1.25


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""Held-out errors in units of what was to be expected of each of them.

    Attributes
    ----------
    levels : ndarray of shape (n_levels,)
        Whose quantiles are calibrated, increasing; one level if there are only forecasts.
    errors : ndarray of shape (n_held_out, horizon, n_levels)
        Truth less quantile, in units of their series; NaN where nothing was observed.
    error, unit : ndarray of shape (n_series,)
        Mean error of each series, and what is left of it where disagreement is allowed for.
    usual : (float, float)
        Both of a series that nothing is known of, in units of its naive error.
    until : ndarray of int of shape (n_series,)
        Steps of each series when it was learned from.

    Notes
    -----
    With :math:`\sigma` the mean error of a series and :math:`s` the disagreement of candidates,
    errors are taken to grow like :math:`\sqrt{1 + s / \sigma}`. The unit of an error is from
    other blocks of its series, as those to come are no part of it either: from few blocks it is
    uncertain, and the errors in such units have the longer tails that make up for it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.forecasting import Calibration, Forecasts, Origins, Table
    >>> origins = Origins.within(Table.of([np.arange(8.0)]), horizon=1)
    >>> naive = Forecasts(origins, origins.past(1))
    >>> Calibration.fit(naive).intervals(naive, [0.5])[-1]
    array([[5., 7.]])
    """

    levels: np.ndarray
    errors: np.ndarray
    error: np.ndarray
    unit: np.ndarray
    usual: tuple
    until: np.ndarray
    _margins: dict = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def fit(cls, forecasts, levels=(0.5,), block=0):
        """Calibrate by forecasts of origins that were not learned from.

        Parameters
        ----------
        forecasts : Forecasts
            With quantiles of the `levels`, if there is a distribution.
        levels : sequence of float, default=(0.5,)
        block : int or ndarray of int of shape (n_origins,), default=0
            Block of time that each origin is in.

        Returns
        -------
        calibration : Calibration
        """
        origins, levels = forecasts.origins, np.array(levels)
        table = origins.table
        scale = naive_scales(table.values)
        if len(origins) == 0:
            errors = _errors_of_walks(table.values, scale, origins.horizon, len(levels))
            return cls(levels, errors, scale, scale, (1.0, 1.0), table.lengths)
        errors, series = _missed(forecasts), origins.series
        error, usual_error = error_units(errors, series, scale)
        errors = errors / _growth(forecasts, error[series])[:, :, None]
        unit, usual = error_units(errors, series, scale)
        units = unit[series]
        for one in np.unique(block):
            other = block != one
            if other.any():
                apart, _ = error_units(errors[other], series[other], scale)
                units[~other] = apart[series[~other]]
        errors = errors / units[:, None, None]
        return cls(levels, errors, error, unit, (usual_error, usual), table.lengths)

    def intervals(self, forecasts, coverages, drift=1.0, n_blocks=1):
        """Ends of intervals.

        Parameters
        ----------
        forecasts : Forecasts
            With quantiles of just these ends, if there is a distribution.
        coverages : sequence of float
        drift : float or ndarray of shape (n_origins,), default=1.0
            Factor of the errors, from :meth:`drift`.
        n_blocks : int, default=1
            Which block of forecasts made from forecasts these are in, counted from 1.

        Returns
        -------
        ends : ndarray of shape (n_origins, horizon, 2 * n_coverages)
            Of each coverage the lower end, then the upper.
        """
        margins = list(map(self._margin, coverages))
        shifts = np.stack([end for one in margins for end in (-one, one)], axis=-1)
        found = self._moved(forecasts, shifts, drift, n_blocks)
        pairs = found.reshape(*found.shape[:2], len(coverages), 2)
        return np.sort(pairs, axis=3).reshape(found.shape)

    def quantiles(self, forecasts, levels, drift=1.0, n_blocks=1):
        """Quantiles of some levels.

        Parameters
        ----------
        forecasts : Forecasts
            With quantiles of these levels, if there is a distribution.
        levels : sequence of float
        drift : float or ndarray of shape (n_origins,), default=1.0
            Factor of the errors, from :meth:`drift`.
        n_blocks : int, default=1
            Which block of forecasts made from forecasts these are in, counted from 1.

        Returns
        -------
        quantiles : ndarray of shape (n_origins, horizon, n_levels)
        """
        shifts = [quantile_shift(self.errors, self.levels, level) for level in levels]
        found = self._moved(forecasts, np.stack(shifts, axis=-1), drift, n_blocks)
        # Corrections may make quantiles cross.
        return np.sort(found, axis=2)[:, :, np.argsort(np.argsort(levels))]

    def _margin(self, coverage):
        """That of :func:`interval_margin`, which is found once."""
        if coverage not in self._margins:
            self._margins[coverage] = interval_margin(self.errors, self.levels, coverage)
        return self._margins[coverage]

    def _moved(self, forecasts, shifts, drift, n_blocks):
        center = forecasts.mean[:, :, None]
        found = center if forecasts.quantiles is None else forecasts.quantiles
        unit = np.asarray(drift).reshape(-1, 1) * self._units(forecasts)
        found = found + unit[:, :, None] * shifts
        # Distances grow by the root of the number of blocks, as in a random walk.
        return center + np.sqrt(n_blocks) * (found - center)

    def _units(self, forecasts):
        """Errors to be expected at the origins; (n_origins, horizon or 1)."""
        identity, scale = forecasts.origins.identity, 1.0
        if (identity < 0).any():
            scale = forecasts.origins.units(np.ones(len(self.unit)))
        error, unit = (
            np.where(identity >= 0, learned[identity], scale * usual)
            for learned, usual in zip((self.error, self.unit), self.usual, strict=True)
        )
        return unit[:, None] * _growth(forecasts, error)

    def origins_since(self, origins):
        """Origins since the fit whose errors are known at some origins.

        Parameters
        ----------
        origins : Origins

        Returns
        -------
        since : Origins
            Each of them once.
        rows : ndarray of int of shape (n_origins, n_since)
            Those before each origin, -1 for none.
        """
        first = np.full(len(origins.table), np.iinfo(np.int32).max)
        first[: len(self.until)] = self.until
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
        """Factors by which errors since the fit exceed those held out, in part.

        Parameters
        ----------
        since : Forecasts
            At least one, at the origins of :meth:`origins_since`, with quantiles of `levels` if
            there is a distribution.
        rows : ndarray of int of shape (n_origins, n_since)
            Those before each origin, -1 for none.

        Returns
        -------
        drift : ndarray of shape (n_origins,)
        """
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


def _errors_of_walks(values, scale, horizon, n_levels):
    """Errors of a random walk, for series too short to hold anything out.

    Steps of all series in their units, times the root of the number of steps ahead.
    """
    pairs = zip(values, scale, strict=True)
    steps = np.concatenate([np.zeros(1), *(np.diff(series) / size for series, size in pairs)])
    growth = np.sqrt(np.arange(1, horizon + 1))
    return np.repeat((steps[:, None] * growth)[:, :, None], n_levels, axis=2)


def error_units(errors, series, scale):
    """Size of the errors (n_origins, horizon, n_levels) of each series, in part that of all.

    Positive, (n_series,), with that of a series that nothing is known of, in units of `scale`,
    the errors (n_series,) of naive forecasts. Errors are NaN where nothing was observed.
    """
    there = ~np.isnan(errors)
    total = np.where(there, np.abs(errors), 0).sum(axis=(1, 2))
    ratio = total / np.maximum(there.sum(axis=(1, 2)), 1) / scale[series]
    count = np.bincount(series, minlength=len(scale))
    error = np.bincount(series, ratio, minlength=len(scale)) / np.maximum(count, 1)
    positive = error > 0
    # Series that are forecast but for rounding, such as constant ones, say nothing of others.
    clear = error > _EXACT * error.max(initial=0.0)
    usual = float(np.exp(np.log(error[clear]).mean())) if clear.any() else 1.0
    # Sizes differ by factors: one series of large errors must not widen those of all others.
    share = count / (count + _BORROWED)
    return scale * usual * np.where(positive, error / usual, 1.0) ** share, usual


def errors_at(errors, levels, level):
    """Errors of the quantile of a level, between those of the levels that were kept."""
    place = np.interp(level, levels, np.arange(len(levels)))
    below = int(place)
    above = min(below + 1, len(levels) - 1)
    return errors[..., below] + (place - below) * (errors[..., above] - errors[..., below])


def interval_margin(errors, levels, coverage):
    r"""By how much an interval between two quantiles has to be widened; (horizon,).

    Conformalised quantile regression [1]_: the score of an origin is how far the truth lies
    outside of the interval, :math:`E_i = \max(\hat q_{lo} - y_i, y_i - \hat q_{hi})`, and the
    margin its :math:`\lceil (n + 1) c \rceil`-th smallest value; negative where quantiles are
    too far apart. With point forecasts it is that of the absolute errors. A step with too few
    scores for the coverage has the margin of the scores of all steps, each in units of the
    largest root mean square up to its step.

    References
    ----------
    .. [1] Romano, Y., Patterson, E. and Candes, E. J. (2019). Conformalized quantile
       regression. Advances in Neural Information Processing Systems 32.
    """
    below = errors_at(errors, levels, (1 - coverage) / 2)
    above = errors_at(errors, levels, (1 + coverage) / 2)
    scores = np.maximum(-below, above)  # NaN where nothing was observed
    counts = np.sum(~np.isnan(scores), axis=0)
    ranks = np.ceil((counts + 1) * coverage - _SLACK).astype(np.int64)
    ordered = np.sort(scores, axis=0)  # NaN last
    squares = np.where(np.isnan(scores), 0, scores) ** 2
    size = np.sqrt(squares.sum(axis=0) / np.maximum(counts, 1))
    # Sizes do not shrink with the horizon: a step without any score has that of those before.
    size = np.maximum.accumulate(np.where(counts > 0, size, 0))
    # Steps with too few scores borrow those of all steps, in units of their size.
    pooled = np.sort((scores / np.where(size > 0, size, 1.0)).ravel())
    pooled = pooled[~np.isnan(pooled)]
    rank = min(len(pooled), int(np.ceil((len(pooled) + 1) * coverage - _SLACK)))
    own = ordered[np.clip(ranks, 1, len(scores)) - 1, np.arange(scores.shape[1])]
    return np.where(ranks <= counts, own, size * pooled[rank - 1])


def quantile_shift(errors, levels, level):
    """By how much a quantile has to be moved: the quantile of that level of its own errors."""
    errors = errors_at(errors, levels, level)
    there = ~np.isnan(errors).all(axis=0)
    shift = np.zeros(errors.shape[1])
    shift[there] = np.nanquantile(errors[:, there], level, axis=0)
    # A step that nothing was observed of is moved as the last one that was.
    return shift[np.maximum.accumulate(np.where(there, np.arange(len(there)), 0))]
