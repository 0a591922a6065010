"""Weights of candidate forecasts, from their errors at validation origins."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._blocks import evenly_spread
from .._stacking import nonnegative_weights
from ._analogs import OwnAnalogs
from ._calibration import MAX_CALIBRATION_ORIGINS
from ._candidate_attention import MIN_WEIGHT, CandidateAttention, softmax_weights
from ._classical import Classical, LastSeason
from ._feature_effects import FeatureEffects, fit_each, fit_without_effects, learn_effects
from ._origins import PANEL, Origins, Validation, combine, split_at_ends
from ._ridges import WindowRidge
from ._season import (
    choose_lookback,
    min_series_length,
    season_of_frequency,
    short_season,
    steps_in_a_year,
)
from ._transformer_candidate import TransformerCandidate
from ._trees import Trees
from ._window_regressor import window_regressors

# In the errors of one of many series those of all series have a share, which depends on whether
# the series are long. On twenty sets errors are 0.996 of those with shares by other blocks.
_PANEL_SHARE_IF_SHORT, _PANEL_SHARE_IF_LONG = 0.75, 0.5
# For a single series, origins within a horizon of whole years before its end count 11 times.
# On fourteen series errors are 0.99 of those without, on fifteen others 0.997.
_WEIGHT_OF_NEAR = 11
# Lookbacks in seasons, or in steps without a season, and the shortest and longest in steps.
# They have to fit into half of a series.
_SEASONS, _STEPS, _MIN_STEPS, _MAX_STEPS = (1, 3, 7, 14, 21, 30), (8, 24, 56), 4, 1100
# For series shorter than four seasons the last season is a candidate, if it is short. It cannot
# be validated if no origin has a season before it, and hardly if a series has one and a half
# seasons. Then it gets three quarters of the weight: on series of M3 and NN3 that are cut to 13
# to 17 months errors are 0.73 to 0.95 of those without it, on simulated ones of 5 quarters 0.6.
_FEW_SEASONS, _FEWEST_SEASONS, _SHARE_IF_UNVALIDATED = 4, 1.5, 0.75
# Origins near whole years count more if a year has 30 steps and a series 20 horizons.
_MIN_STEPS_OF_YEAR, _MIN_HORIZONS = 30, 20
# Fraction of the error that trees or a transformer have to save, since they do better on steps
# held out among those that they learn from than on later ones. A first part of the trees has to
# save it, too; a transformer that was trained briefly saves several times less than later.
_MIN_SAVED, _MIN_SAVED_BRIEFLY = 0.02, 1e-3
CANDIDATES = ("classical", "ridge", "analogs", "features", "trees", "transformer")
# These learn effects of features themselves, and come after the others.
_WITH_FEATURES = (Trees, TransformerCandidate)


def choose_weights(forecasts, validation, attends=False):
    """Choose weights of candidates by their errors at validation origins.

    Parameters
    ----------
    forecasts : ndarray of shape (n_validation, n_candidates, horizon)
        Held-out forecasts, NaN where a candidate has none.
    validation : Validation
    attends : bool, default=False
        Whether weights in a panel may depend on the states of series.

    Returns
    -------
    weights : ndarray of shape (n_series, n_candidates)
    new_series_weights : ndarray of shape (n_candidates,)
    held_out : ndarray of shape (n_validation, horizon)
        Combined forecasts, by weights chosen without the block of each origin, and attention
        without origins within a horizon.
    attention : CandidateAttention or None
        What adapts the weights to the state of a series; None if it does not help.
    """
    tests, n_series = validation.tests, len(validation.scale)
    series, targets = tests.series, tests.targets()
    # Errors are root mean squares of each origin. A mean of squares over origins would let a
    # few hard stretches, such as a cold winter or a holiday, choose the weights for all others.
    # But for series that mostly are at their minimum, such as 0, this median has the smallest
    # mean of roots, and the mean has the smallest mean of squares.
    n_observed = np.maximum((~np.isnan(targets)).sum(axis=1), 1)[:, None]
    errors = np.nansum((forecasts - targets[:, None]) ** 2, axis=2) / n_observed
    is_squared = validation.is_intermittent
    errors[~is_squared[series]] **= 0.5
    errors[np.isnan(forecasts).any(axis=2)] = np.nan
    panel_share = _PANEL_SHARE_IF_LONG if validation.are_long else _PANEL_SHARE_IF_SHORT
    counts = np.ones(len(series))
    if n_series == 1:
        panel_share, counts[near_whole_years(tests)] = 0.0, _WEIGHT_OF_NEAR

    def weights_by(rows):
        """Weights (n_series + 1, n_candidates), and the errors that they are made of."""
        log_errors, panel_log_errors = relative_errors(
            errors[rows], series[rows], is_squared, counts[rows]
        )
        of_new_series = np.full((1, len(panel_log_errors)), np.nan)
        log_errors = np.concatenate([log_errors, of_new_series])
        weights = softmax_weights(log_errors, panel_log_errors, panel_share)
        if n_series == 1 and not is_squared[0] and len(errors[rows]):
            residuals = forecasts[rows] - targets[rows, None]
            # On fourteen series errors are 0.98 of those without stacking, on fifteen others
            # 1.00. Panels gain nothing.
            weights = (weights + stacked_weights(weights[0], residuals, counts[rows])) / 2
        return weights, log_errors

    held_out, naive = np.empty_like(targets), tests.past(1)
    held_out_log_errors = np.empty_like(errors)
    for rows, other_rows in validation.folds():
        weights, log_errors = weights_by(other_rows)
        held_out[rows] = combine(forecasts[rows], weights[series[rows]], naive[rows])
        held_out_log_errors[rows] = log_errors[series[rows]]
    weights, log_errors = weights_by(slice(None))
    weights[weights < MIN_WEIGHT] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    attention = None
    if attends and validation.is_panel:
        attention, held_out = _fit_attention(
            forecasts, validation, errors, held_out_log_errors, held_out,
            log_errors=log_errors, is_excluded=is_squared, panel_share=panel_share,
        )  # fmt: skip
    return weights[:-1], weights[-1], held_out, attention


def _fit_attention(forecasts, validation, errors, held_out_log_errors, held_out, **fields):
    """Fit attention over errors at validation origins; return it, and combinations with it.

    If it does not help, None and `held_out`. `errors` and `held_out_log_errors` are
    (n_validation, n_candidates), the latter without the block of each origin.
    """
    tests = validation.tests
    series, n_known = tests.series, np.sum(~np.isnan(errors), axis=1)
    size = np.nansum(errors, axis=1) / np.maximum(n_known, 1)
    unit = np.bincount(series, size) / np.maximum(np.bincount(series), 1)
    rows = np.flatnonzero(~fields["is_excluded"][series] & (unit[series] > 0))
    if len(rows) == 0:
        return None, held_out
    origins, forecasts, unit = tests.take(rows), forecasts[rows], unit[series[rows]]
    targets, naive, log_errors = origins.targets(), origins.past(1), held_out_log_errors[rows]

    def combined(tests, expected):
        weights = softmax_weights(log_errors[tests], expected, fields["panel_share"])
        return combine(forecasts[tests], weights, naive[tests])

    def error_of(tests, expected):
        residuals = combined(tests, expected) - targets[tests]
        return np.sqrt(np.nanmean(residuals**2, axis=1)) / unit[tests]

    attention = CandidateAttention.fit(
        origins, forecasts, errors[rows] / unit[:, None], error_of, **fields
    )
    if attention is not None:
        expected = attention.expected(origins, forecasts, leave_out=True)
        held_out = held_out.copy()
        held_out[rows] = combined(slice(None), expected)
    return attention, held_out


def near_whole_years(origins):
    """Return True for origins within a horizon of whole years before the end; (n_origins,).

    False for all if a year has few steps, as of months or quarters, or a series few horizons.
    """
    year, lengths = steps_in_a_year(origins.table.time), origins.table.lengths[origins.series]
    if not _MIN_STEPS_OF_YEAR <= year < np.inf:
        return np.zeros(len(origins), dtype=bool)
    is_long = lengths >= _MIN_HORIZONS * origins.horizon
    distance = np.abs((origins.steps_left + year / 2) % year - year / 2)
    return is_long & (distance <= origins.horizon)


def stacked_weights(weights, residuals, counts):
    """Move weights (n_candidates,) towards those with the least error of the combination.

    `residuals` (n_origins, n_candidates, horizon) are NaN where a forecast or the truth is
    unknown; `counts` (n_origins,) says how often an origin counts.
    """
    # Exponentiated gradients (Kivinen and Warmuth 1997) on the root mean squares of origins.
    # Slopes are relative to the error. A step is at most 1, as towards a candidate without any
    # error, and becomes half as long after one that went too far.
    is_known = ~np.isnan(residuals)
    mean = np.where(is_known, residuals, 0.0).sum(axis=1, keepdims=True)
    mean /= np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    residuals = np.where(is_known, residuals, mean)
    products = residuals @ residuals.transpose(0, 2, 1)
    best, min_error, slope, rate = weights, np.inf, 0.0, 1.0
    for _ in range(30):
        half_gradient = products @ weights
        sizes = np.sqrt(np.maximum(half_gradient @ weights, 1e-300))[:, None]
        error = counts @ sizes
        if error < min_error:
            best, min_error = weights, error
            slope = counts @ (half_gradient / sizes - sizes) / error
        else:
            rate /= 2
        weights = best * np.exp(-rate * np.clip(slope, -1, 1))
        weights /= weights.sum()
    return best


def relative_errors(errors, series, is_squared, counts=1.0):
    """Compare errors of candidates with those of the best one, by series and for all.

    Parameters
    ----------
    errors : ndarray of shape (n_origins, n_candidates)
        NaN where a candidate has no forecast.
    series : ndarray of int of shape (n_origins,)
    is_squared : ndarray of bool of shape (n_series,)
        True if the errors of a series are squares.
    counts : float or ndarray of shape (n_origins,)
        How often each origin counts.

    Returns
    -------
    log_errors : ndarray of shape (n_series, n_candidates)
        Logarithms of the ratios of errors; NaN where a candidate was not validated.
    panel_log_errors : ndarray of shape (n_candidates,)
        Their means over series.
    """
    counts = np.broadcast_to(counts, series.shape)[:, None]
    has_error = ~np.isnan(errors)

    def totals(cells):
        by_series = np.zeros((len(is_squared), errors.shape[1]))
        np.add.at(by_series, series, counts * np.where(has_error, cells, 0.0))
        return by_series

    total, count = totals(errors), totals(1.0)
    is_validated, max_count = count > 0, count.max(axis=1, keepdims=True)
    # A candidate that lacks forecasts at some origins is compared, at those where it has them,
    # with the candidates that have forecasts at all origins.
    is_complete = (count == max_count)[series]
    reference = totals(np.where(is_complete, errors, 0.0).sum(axis=1, keepdims=True))
    share = reference / np.maximum(reference.max(axis=1, keepdims=True), 1e-300)
    mean = total / np.maximum(np.where(reference > 0, share * max_count, count), 1e-300)
    # Smaller differences are rounding errors.
    n_validated = np.maximum(is_validated.sum(axis=1, keepdims=True), 1)
    mean += 1e-9 * mean.sum(axis=1, keepdims=True) / n_validated + 1e-300
    best = np.where(is_validated, mean, np.inf).min(axis=1, keepdims=True)
    log_errors = np.log(mean) - np.log(np.minimum(best, 1e300))
    log_errors = np.where(is_validated, log_errors, 0.0)
    # Where nothing happened, a candidate may be perfect by chance. With limits from 0.7 to 4
    # errors are within 0.2 %.
    log_errors[is_squared] = np.minimum(log_errors[is_squared] / 2, 2.3)
    panel_log_errors = log_errors.sum(axis=0) / np.maximum(is_validated.sum(axis=0), 1)
    panel_log_errors[~is_validated.any(axis=0)] = 1e9  # as bad as can be
    return np.where(is_validated, log_errors, np.nan), panel_log_errors


@dataclass(frozen=True, eq=False)
class CombinedForecast:
    """Fitted candidates with their weights."""

    candidates: list
    effects: FeatureEffects | None  # of features, for candidates that do not use these
    weights: np.ndarray  # (n_series, n_names) of the training series; rows sum to 1
    of_new_series: np.ndarray  # (n_names,)
    attention: CandidateAttention | None = None  # adapts weights to the states of series

    @classmethod
    def of(cls, transformer):
        """Make a forecast of a transformer without other candidates."""
        n_series = len(transformer.scaling.unit)
        return cls([transformer], None, np.ones((n_series, 1)), np.ones(1))

    @property
    def names(self):
        """Names of all candidate forecasts."""
        return [name for candidate in self.candidates for name in candidate.names]

    @property
    def transformer(self):
        """The transformer if it is a candidate, which then is the last; otherwise None."""
        last = self.candidates[-1]
        return last if isinstance(last, TransformerCandidate) else None

    def on(self, device):
        """Return the same with a transformer, if there is one, that computes on a device."""
        if self.transformer is None:
            return self
        last = replace(self.transformer, device=device)
        return replace(self, candidates=[*self.candidates[:-1], last])

    def share_of(self, kind):
        """Compute the mean weight over series of all candidates of a class."""
        is_kind = [isinstance(c, kind) for c in self.candidates for _ in c.names]
        return float(self.weights[:, is_kind].sum(axis=1).mean())

    def without_forecast(self, origins):
        """Name the candidates of classes that have no forecast at any origin."""
        has_forecast = ~np.isnan(self.each(origins)).all(axis=(0, 2))
        classes = [type(candidate) for candidate in self.candidates for _ in candidate.names]
        able = {kind for kind, has in zip(classes, has_forecast, strict=True) if has}
        return [n for n, kind in zip(self.names, classes, strict=True) if kind not in able]

    def weights_at(self, origins):
        """Return weights of the candidates at origins; (n_origins, n_names)."""
        training_index = origins.training_index
        return np.where(
            (training_index >= 0)[:, None], self.weights[training_index], self.of_new_series
        )

    def each(self, origins, is_wanted=None):
        """Compute forecasts of the candidates, (n_origins, n_names, horizon).

        They are NaN where a candidate has none. Only candidates with a name that `is_wanted`
        (n_names,) are computed.
        """
        if is_wanted is None:
            is_wanted = np.ones(len(self.names), dtype=bool)
        if self.effects is None:
            return _side_by_side(self.candidates, origins, is_wanted)
        n_plain = sum(not isinstance(c, _WITH_FEATURES) for c in self.candidates)
        end = sum(len(candidate.names) for candidate in self.candidates[:n_plain])
        plain = self.effects.added_to(
            lambda left_over: _side_by_side(
                self.candidates[:n_plain], left_over, is_wanted[:end]
            ),
            origins,
        )
        with_features = _side_by_side(self.candidates[n_plain:], origins, is_wanted[end:])
        return np.append(plain, with_features, axis=1)


def new_candidates(kinds, table, horizon, seasons, lookback):
    """Make candidates to be fitted, of the names and regressors in `kinds`; may be none.

    Windows are measured in the first of the `seasons`, unless `lookback` is a number.
    """
    lengths, candidates = window_lengths(table, horizon, seasons[0], lookback), []
    if "classical" in kinds:
        # For many series the usual season is enough. Blocks of further seasons change errors by
        # 0.999 on 25 sets, and take 6 % of the seconds.
        candidates.append(Classical(seasons[0]))
        if len(table) < PANEL:
            candidates += [
                Classical(season, further=True, blocks=False) for season in seasons[1:]
            ]
        season = round(seasons[0]) if seasons[0] > 1 else season_of_frequency(table.time.offset)
        season = short_season(season or 1)
        are_short = np.median(table.lengths) < _FEW_SEASONS * season
        if are_short and 1 < season <= table.lengths.max():
            candidates.append(LastSeason(season))
    if "ridge" in kinds:
        candidates += [WindowRidge(length) for length in lengths[-3:]]
    if "analogs" in kinds:
        candidates += [OwnAnalogs(length, seasons[0]) for length in lengths]
    regressors, longest = [k for k in kinds if not isinstance(k, str)], table.lengths.max()
    if regressors and longest >= min_series_length(horizon):
        length = choose_lookback(longest, lookback or "auto", horizon, round(seasons[0]))
        candidates += window_regressors(regressors, length)
    return candidates


def window_lengths(table, horizon, season, lookback=None):
    """Choose lengths of windows, ascending: a given `lookback`, or several by the season."""
    if lookback is not None:
        return [lookback]
    longest = 0.5 * (np.quantile(table.lengths, 0.75) - horizon)
    lengths = [round(count * season) for count in _SEASONS] if season > 1 else _STEPS
    return [length for length in lengths if _MIN_STEPS <= length <= min(longest, _MAX_STEPS)]


def quick_candidates(candidates):
    """Select the candidates that choose between logarithms and plain values.

    These are the classical ones and the analogs of middle length. On 25 sets errors are 0.997
    of those with all analogs, in 0.91 of the seconds.
    """
    classical = [candidate for candidate in candidates if isinstance(candidate, Classical)]
    analogs = [candidate for candidate in candidates if isinstance(candidate, OwnAnalogs)]
    middle = len(analogs) // 2
    return [*classical, *analogs[middle : middle + 1]] if classical else candidates


class Combination(NamedTuple):
    """Fitted candidates with all that is known of them at validation origins."""

    combined: CombinedForecast
    validation: Validation
    every: np.ndarray  # (n_validation, n_names, horizon), held-out forecasts of each candidate
    held_out: np.ndarray  # (n_validation, horizon), combined by weights of other blocks
    effects: Any  # the results of `learn_effects`, (None, []) without


def fit_combined(
    table,
    horizon,
    candidates,
    lookback,
    *,
    effect_season=None,
    share=None,
    begun=None,
    attends=True,
):
    """Fit candidates and choose their weights; a Combination.

    Parameters
    ----------
    table : Table
    horizon : int
    candidates : list
        To be fitted.
    lookback : int
        Steps of the longest window, that there should be before each validation origin.
    effect_season : float, default=None
        If given, effects of features are learned from differences over so many steps.
    share : float, default=None
        Share of long series that is validated; None for the usual one.
    begun : Combination, default=None
        Of other candidates for the same table, which then come first.
    attends : bool, default=True
        Whether weights in a panel may depend on the states of series.
    """
    options = {} if share is None else {"share": share}
    validation = Validation.from_table(table, horizon, lookback, **options)
    if begun is not None:
        effects = begun.effects
    else:
        effects = (
            (None, []) if effect_season is None else learn_effects(validation, effect_season)
        )
    if effects[0] is None:
        candidates, every = fit_each(candidates, validation)
    else:
        candidates, every = fit_without_effects(candidates, validation, *effects)
    if begun is not None:
        candidates = [*begun.combined.candidates, *candidates]
        every = np.append(begun.every, every, axis=1)
    *weights, held_out, attention = choose_weights(every, validation, attends)
    names = np.array([name for candidate in candidates for name in candidate.names])
    is_last_season = names == "last season"
    longest = validation.origins.table.lengths.max()
    seasons = [c.season for c in candidates if isinstance(c, LastSeason)]
    is_unvalidated = np.isnan(every[:, is_last_season]).all()
    if seasons and (is_unvalidated or longest <= _FEWEST_SEASONS * seasons[0]):
        weights = [
            (1 - _SHARE_IF_UNVALIDATED) * w + _SHARE_IF_UNVALIDATED * is_last_season
            for w in weights
        ]
    combined = CombinedForecast(candidates, effects[0], *weights, attention)
    return Combination(combined, validation, every, held_out, effects)


def add_candidate(fitted, candidate, unable):
    """Add a candidate that learns effects of features itself, if it saves enough error.

    `fitted` is a Combination. If the candidate has nothing to learn from, its name is appended
    to `unable`.
    """
    combined, validation, every, held_out = fitted[:4]
    is_transformer = isinstance(candidate, TransformerCandidate)
    candidate, trial = candidate.tried_on(validation)
    min_saved = _MIN_SAVED_BRIEFLY if is_transformer else _MIN_SAVED
    if trial is not None and best_share(validation, held_out, trial[:, 0])[1] < min_saved:
        return fitted
    candidate, forecasts = candidate.fit(validation)
    forecast = forecasts[:, 0]
    if np.isnan(forecast).all():
        unable.extend(candidate.names)
    # The other candidates are many and alike, so the weight is that of a mixture with their
    # combination, not a softmax of errors.
    share, saved = best_share(validation, held_out, forecast)
    if share < MIN_WEIGHT or saved < _MIN_SAVED:
        return fitted
    mixed, has_forecast = held_out.copy(), ~np.isnan(forecast).any(axis=1)
    for rows, other_rows in validation.folds():
        other_rows = other_rows if len(other_rows) else slice(None)
        share_of_fold, _ = best_share(validation, held_out, forecast, other_rows)
        rows = rows[has_forecast[rows]]
        mixed[rows] += share_of_fold * (forecast - held_out)[rows]
    weights, of_new_series = (
        np.concatenate([(1 - share) * w, np.full((*w.shape[:-1], 1), share)], axis=-1)
        for w in (combined.weights, combined.of_new_series)
    )
    combined = replace(
        combined, candidates=[*combined.candidates, candidate], weights=weights,
        of_new_series=of_new_series,
    )  # fmt: skip
    every = np.append(every, forecasts, axis=1)
    return fitted._replace(combined=combined, every=every, held_out=mixed)


def best_share(validation, held_out, forecast, rows=slice(None)):
    """Choose the weight of a forecast in a mixture, and return the share of error it saves.

    `held_out`, the other forecast, and `forecast` are (n_validation, horizon), NaN if unknown.
    """
    residuals = (validation.tests.targets() - held_out)[rows]
    moves = (forecast - held_out)[rows]
    series = validation.tests.series[rows]
    unit, is_squared = validation.scale[series, None], validation.is_intermittent[series]
    is_known = ~np.isnan(residuals + moves)
    residuals, moves = (np.where(is_known, x, 0.0) / unit for x in (residuals, moves))

    def sizes(share):
        size = np.sqrt(np.sum((residuals - share * moves) ** 2, axis=1, keepdims=True))
        if is_squared.any():  # as in `choose_weights`
            size[is_squared] = np.sqrt(np.mean(size[is_squared] ** 2))
        return size

    # Squares relative to their roots: a few hard stretches do not choose for all others.
    weights = np.broadcast_to(1 / np.maximum(sizes(0.5), 1e-12), moves.shape).ravel()
    (share,) = nonnegative_weights(moves.reshape(-1, 1), residuals.ravel(), weights)
    share = float(min(share, 1.0))
    before, after = (np.sum(sizes(s)) for s in (0.0, share))
    return share, (before - after) / max(before, 1e-300)


def fit_transformer(transformer, table, horizon):
    """Fit a transformer without other candidates, but to the last fifth of the origins.

    These are returned as well, to calibrate it on.
    """
    origins = Origins.within(table, horizon, transformer.lookback)
    origins, tests = split_at_ends(origins, 0.2)
    combined = CombinedForecast.of(transformer.learn(origins))
    rows = evenly_spread(np.arange(len(tests)), MAX_CALIBRATION_ORIGINS)
    return combined, tests.take(rows)


def _side_by_side(candidates, origins, is_wanted):
    """Join forecasts of candidates with a wanted name; (n_origins, n_names, horizon)."""
    forecasts = np.full((len(origins), len(is_wanted), origins.horizon), np.nan)
    first = 0
    for candidate in candidates:
        names = slice(first, first + len(candidate.names))
        first = names.stop
        if is_wanted[names].any():
            forecasts[:, names] = candidate.forecast(origins)
    return forecasts
