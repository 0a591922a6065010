"""Weights of candidate forecasts, from their errors at validation origins."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from .._stacking import nonnegative_weights
from ._analogs import OwnAnalogs
from ._calibration import MOST_CALIBRATED
from ._classical import Classical
from ._feature_effects import FeatureEffects, fit_each, fit_without_effects, learn_effects
from ._origins import (
    PANEL,
    Origins,
    Validation,
    choose_lookback,
    combine,
    evenly_spread,
    least_length,
    split_at_ends,
)
from ._ridges import WindowRidge
from ._season import steps_in_a_year
from ._transformer_candidate import TransformerCandidate
from ._trees import Trees
from ._window_regressor import window_regressors

# Temperatures whose weights are averaged, and shares of a panel's errors in those of one of its
# series, where these are short and where they are long. On twenty sets errors are .996 of those
# with temperatures and shares chosen by errors on other blocks, at most 1.017.
_TEMPERATURES, _SHARE_IF_SHORT, _SHARE_IF_LONG = (0.05, 0.2), 0.75, 0.5
# Logarithm of errors, relative to the best, that is as bad as any: of series that mostly are 0
# candidates may have none at all. From .7 to 4 errors are within .2 %.
_WORST = 2.3
# Of one series half of the weights are those after so many steps towards the least error of the
# combination: on fourteen series errors are .98 of those without, on fifteen others 1.00. And
# origins within a horizon of its end, or of whole years before, count so many times: .99, .997.
# With panels neither gains anything.
_STACKED, _STACKING_STEPS, _NEAR = 0.5, 30, 11
# Weights below are none, so that not every candidate has to be computed.
_LEAST_WEIGHT = 0.01
# Lookbacks of ridges and analogs in seasons, or in steps of series without; for ridges so many
# of those that fit into so large a share of a series, the longest.
_SEASONS, _STEPS, _N_LOOKBACKS = (1, 3, 7, 14, 21, 30), (8, 24, 56), 3
_LARGEST_SHARE = 0.5
_SHORTEST, _LONGEST = 4, 1100
# Steps of a year, and horizons in a series, from which on origins near whole years count more.
_SHORTEST_YEAR, _FEWEST_HORIZONS = 30, 20
# Share of the windows that a transformer without others is calibrated on.
_HELD_OUT = 0.2
# Share of errors that trees or a transformer have to save: held out among steps that they
# learn from they do better than after them. Trees do on a first part of it, too. A transformer
# that was briefly trained, little: the whole training saves several times as much.
_LEAST_SAVED, _LEAST_SAVED_BRIEFLY = 0.02, 1e-3
CANDIDATES = ("classical", "ridge", "analogs", "features", "trees", "transformer")
# They learn effects of features themselves, and come after the others.
_WHOLE = (Trees, TransformerCandidate)


def choose_weights(forecasts, training):
    """Weights (n_series, n_candidates), those of a new series, and held-out combinations."""
    # Forecasts are (n_validation, n_candidates, horizon); without any, candidates count alike.
    # Combinations have weights chosen on blocks that do not overlap.
    validation, n_series = training.validation, len(training.scale)
    series, targets = validation.series, validation.targets()
    # Roots of the mean squares of each origin: by mean squares of all a few hard stretches, a
    # cold winter or a holiday, would choose the weights for all others. But of series that
    # mostly are 0 these are least for the median, which is 0, and squares for the mean.
    counts = np.maximum((~np.isnan(targets)).sum(axis=1), 1)[:, None]
    errors = np.nansum((forecasts - targets[:, None]) ** 2, axis=2) / counts
    squared = training.mostly_least
    errors[~squared[series]] **= 0.5
    errors[np.isnan(forecasts).any(axis=2)] = np.nan
    share = _SHARE_IF_LONG if training.are_long else _SHARE_IF_SHORT
    share = share if n_series > 1 else 0.0
    counts = np.ones(len(series))
    if n_series == 1:
        counts[near_whole_years(validation)] = _NEAR

    def weights_by(rows):
        own, panel = relative_errors(errors[rows], series[rows], squared, counts[rows])
        new = np.full((1, len(panel)), np.nan)
        found = softmax_weights(np.concatenate([own, new]), panel, share)
        if n_series == 1 and not squared[0] and len(errors[rows]):
            missed = forecasts[rows] - targets[rows, None]
            stacked = stacked_weights(found[0], missed, counts[rows])
            found = (1 - _STACKED) * found + _STACKED * stacked
        return found

    held_out, naive = np.empty_like(targets), validation.past(1)
    for block in range(training.n_blocks):
        rows = training.block == block
        weights = weights_by(~training.overlapping(series, validation.known, block))
        held_out[rows] = combine(forecasts[rows], weights[series[rows]], naive[rows])
    weights = weights_by(slice(None))
    weights[weights < _LEAST_WEIGHT] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    return weights[:-1], weights[-1], held_out


def near_whole_years(origins):
    """True within a horizon of the end of a series, or of whole years before; (n_origins,)."""
    # Years of months or quarters are too short for it, and so are series of few horizons.
    year, lengths = steps_in_a_year(origins.table.time), origins.table.lengths[origins.series]
    if not _SHORTEST_YEAR <= year < np.inf:
        return np.zeros(len(origins), dtype=bool)
    left, long = lengths - origins.known, lengths >= _FEWEST_HORIZONS * origins.horizon
    return long & (np.abs((left + year / 2) % year - year / 2) <= origins.horizon)


def stacked_weights(weights, missed, counts):
    """Weights (n_candidates,) with which the error of the combination is nearly the least.

    Found from some weights by exponentiated gradients, from what candidates missed, (n_origins,
    n_candidates, horizon), NaN where unknown; `counts` (n_origins,) is how often an origin
    counts.
    """
    # Kivinen and Warmuth (1997). Errors are roots of mean squares of each origin. Slopes are
    # relative to the error; a step is at most 1, as towards a candidate without any error, and
    # half as long after one that went too far.
    there = ~np.isnan(missed)
    others = np.where(there, missed, 0.0).sum(axis=1, keepdims=True)
    missed = np.where(there, missed, others / np.maximum(there.sum(axis=1, keepdims=True), 1))
    products = missed @ missed.transpose(0, 2, 1)
    best, least, slope, rate = weights, np.inf, 0.0, 1.0
    for _ in range(_STACKING_STEPS):
        slopes = products @ weights
        sizes = np.sqrt(np.maximum(slopes @ weights, 1e-300))[:, None]
        error = counts @ sizes
        if error < least:
            best, least, slope = weights, error, counts @ (slopes / sizes - sizes) / error
        else:
            rate /= 2
        weights = best * np.exp(-rate * np.clip(slope, -1, 1))
        weights /= weights.sum()
    return best


def relative_errors(errors, series, squared, counts=1.0):
    """Logarithms of errors (n_origins, n_candidates) relative to those of the best candidate.

    Of each series, (n_series, n_candidates), NaN if unknown; and their mean, (n_candidates,).
    Errors of series that are `squared` (n_series,) are squares; `counts` (n_origins,) is how
    often an origin counts.
    """
    counts = np.broadcast_to(counts, series.shape)[:, None]
    there = ~np.isnan(errors)

    def totals(cells):
        found = np.zeros((len(squared), errors.shape[1]))
        np.add.at(found, series, counts * np.where(there, cells, 0.0))
        return found

    total, count = totals(errors), totals(1.0)
    known, most = count > 0, count.max(axis=1, keepdims=True)
    # A candidate without forecasts at some origins is compared with the others where it has.
    others = np.where((count == most)[series], errors, 0.0).sum(axis=1, keepdims=True)
    beside = totals(others)
    share = beside / np.maximum(beside.max(axis=1, keepdims=True), 1e-300)
    mean = total / np.maximum(np.where(beside > 0, share * most, count), 1e-300)
    size = mean.sum(axis=1, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1)
    mean += 1e-9 * size + 1e-300  # smaller differences are rounding
    best = np.where(known, mean, np.inf).min(axis=1, keepdims=True)
    own = np.where(known, np.log(mean) - np.log(np.minimum(best, 1e300)), 0.0)
    # Where nothing happened some candidates are perfect by chance.
    own[squared] = np.minimum(own[squared] / 2, _WORST)
    panel = own.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    panel[~known.any(axis=0)] = 1e9  # as bad as can be
    return np.where(known, own, np.nan), panel


def softmax_weights(own, panel, share):
    """Weights (n_series, n_candidates) by logarithms of relative errors, own and of all."""
    # In proportion to exp(-(E_c / min(E) - 1) / temperature), with E the geometric means of the
    # errors of the series and, to a share, of the panel. A candidate that could not be
    # validated on a series, where others could, has no weight.
    unknown = np.isnan(own)
    mixed = share * panel + (1 - share) * np.where(unknown, panel, own)
    mixed[unknown & ~unknown.all(axis=1, keepdims=True)] = np.inf
    mixed -= mixed.min(axis=1, keepdims=True)
    excess = np.expm1(np.minimum(mixed, 100.0))
    return np.mean([softmax(-excess / t, axis=1) for t in _TEMPERATURES], axis=0)


@dataclass(frozen=True, eq=False)
class CombinedForecast:
    """Fitted candidates with their weights."""

    candidates: list
    effects: FeatureEffects | None  # of features, which most candidates do without
    weights: np.ndarray  # (n_series, n_names) of the training series; rows sum to 1
    of_new_series: np.ndarray  # (n_names,)

    @classmethod
    def of(cls, transformer):
        """A transformer without other candidates."""
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
        """The same, where a transformer computes on a device."""
        if self.transformer is None:
            return self
        last = replace(self.transformer, device=device)
        return replace(self, candidates=[*self.candidates[:-1], last])

    def share_of(self, kind):
        """Mean weight over series of all candidates of a class."""
        of_kind = [isinstance(one, kind) for one in self.candidates for _ in one.names]
        return float(self.weights[:, of_kind].sum(axis=1).mean())

    def without_forecast(self, origins):
        """Names of candidates of which none of the same class has a forecast."""
        there = ~np.isnan(self.each(origins)).all(axis=(0, 2))
        kinds = [type(one) for one in self.candidates for _ in one.names]
        able = {kind for kind, found in zip(kinds, there, strict=True) if found}
        return [name for name, kind in zip(self.names, kinds, strict=True) if kind not in able]

    def weights_at(self, origins):
        """Weights of the candidates at some origins; (n_origins, n_names)."""
        identity = origins.identity
        return np.where((identity >= 0)[:, None], self.weights[identity], self.of_new_series)

    def each(self, origins, wanted=None):
        """Forecasts of the candidates, (n_origins, n_names, horizon)."""
        # NaN where a candidate has none, and for names that are not `wanted` (n_names,), whose
        # candidates are not computed.
        wanted = np.ones(len(self.names), dtype=bool) if wanted is None else wanted
        if self.effects is None:
            return _side_by_side(self.candidates, origins, wanted)
        n = sum(not isinstance(one, _WHOLE) for one in self.candidates)
        end = sum(len(one.names) for one in self.candidates[:n])
        found = self.effects.added_to(
            lambda rest: _side_by_side(self.candidates[:n], rest, wanted[:end]), origins
        )
        whole = _side_by_side(self.candidates[n:], origins, wanted[end:])
        return np.append(found, whole, axis=1)


def new_candidates(kinds, table, horizon, seasons, lookback, logs=False):
    """Candidates that are to be fitted, of kinds as for :func:`fit_combined`; may be none."""
    lengths = _window_lengths(table, horizon, seasons[0], lookback)
    n_series, candidates = len(table), []
    regressors = [one for one in kinds if not isinstance(one, (str, *_WHOLE))]
    whole = [one for one in kinds if isinstance(one, _WHOLE)]
    kinds = {one for one in kinds if isinstance(one, str)}
    if "classical" in kinds:
        # Of many series the usual season is enough, and costs enough.
        adjusted = seasons if n_series < PANEL else seasons[:1]
        candidates += [Classical(season, logs, season != seasons[0]) for season in adjusted]
    if "ridge" in kinds:
        candidates += [WindowRidge(length, n_series > 1) for length in lengths[-_N_LOOKBACKS:]]
    if "analogs" in kinds:
        candidates += [OwnAnalogs(length, seasons[0]) for length in lengths]
    longest = table.lengths.max()
    if regressors and longest >= least_length(horizon):
        length = choose_lookback(longest, lookback or "auto", horizon, round(seasons[0]))
        candidates += window_regressors(regressors, length)
    return candidates or whole


def _window_lengths(table, horizon, season, lookback):
    """Steps of windows, ascending: the one that was passed, or several by the season."""
    if lookback is not None:
        return [lookback]
    most = _LARGEST_SHARE * (np.quantile(table.lengths, 0.75) - horizon)
    lengths = [round(count * season) for count in _SEASONS] if season > 1 else _STEPS
    return [length for length in lengths if _SHORTEST <= length <= min(most, _LONGEST)]


def fit_combined(table, horizon, seasons, lookback, logs, kinds, share=None, begun=None):
    """Combination of candidates by validation errors, Validation, and held-out forecasts."""
    # The latter are of all candidates, (n_validation, n_names, horizon), and combined, by
    # weights chosen on other blocks. Windows are measured in the first of the `seasons`; a
    # `lookback` of None is several by the season. `kinds` are names of candidates, regressors,
    # and trees. Of long series a `share` is validated; None for the usual one. Candidates of
    # `begun`, results of other kinds for the same table, come first.
    lengths = _window_lengths(table, horizon, seasons[0], lookback)
    options = {} if share is None else {"share": share}
    training = Validation.of(table, horizon, max(lengths, default=_SHORTEST), **options)
    candidates = new_candidates(kinds, table, horizon, seasons, lookback, logs)
    if begun is None:
        # Of the few series that logarithms are tried on, all may be too short for those wanted.
        candidates = candidates or [Classical(seasons[0], logs)]
    effects = None
    if "features" in kinds:
        effects, apart = learn_effects(training, seasons[0])
    if effects is None:
        candidates, every = fit_each(candidates, training)
    else:
        candidates, every = fit_without_effects(candidates, training, effects, apart)
    if begun is not None:
        candidates = [*begun[0].candidates, *candidates]
        every = np.append(begun[2], every, axis=1)
    weights, of_new, held_out = choose_weights(every, training)
    return CombinedForecast(candidates, effects, weights, of_new), training, every, held_out


def add_candidate(fitted, candidate, unable):
    """Results of :func:`fit_combined` with a further candidate that learns whole series."""
    # The name of one that has nothing to learn from is appended to `unable`.
    # Its share is the one with the least error of a mixture with the others, since there are
    # many of these, and alike.
    combined, training, every, held_out = fitted
    candidate, found = candidate.tried_on(training)
    least = (
        _LEAST_SAVED_BRIEFLY if isinstance(candidate, TransformerCandidate) else _LEAST_SAVED
    )
    if found is not None and best_share(training, held_out, found[:, 0])[1] < least:
        return fitted
    candidate, forecasts = candidate.fit(training)
    found, mixed = forecasts[:, 0], held_out.copy()
    if np.isnan(found).all():
        unable.extend(candidate.names)
    share, saved = best_share(training, held_out, found)
    if share < _LEAST_WEIGHT or saved < _LEAST_SAVED:
        return fitted
    for block in range(training.n_blocks):
        rows = training.block == block
        apart = ~training.overlapping(
            training.validation.series, training.validation.known, block
        )
        own = best_share(training, held_out, found, apart if apart.any() else slice(None))[0]
        there = rows & ~np.isnan(found).any(axis=1)
        mixed[there] += own * (found - held_out)[there]
    weights, of_new = (
        np.concatenate([(1 - share) * w, np.full((*w.shape[:-1], 1), share)], axis=-1)
        for w in (combined.weights, combined.of_new_series)
    )
    candidates, every = [*combined.candidates, candidate], np.append(every, forecasts, axis=1)
    combined = CombinedForecast(candidates, combined.effects, weights, of_new)
    return combined, training, every, mixed


def best_share(training, held_out, found, rows=slice(None)):
    """Share of forecasts in a mixture with the least error, and the share of error it saves.

    Both forecasts are (n_validation, horizon), NaN where there are none.
    """
    missed, moved = (training.validation.targets() - held_out)[rows], (found - held_out)[rows]
    there = ~np.isnan(missed + moved)
    missed, moved = np.where(there, missed, 0.0), np.where(there, moved, 0.0)
    # Squares relative to their roots: a few hard stretches do not choose for all others.
    series = training.validation.series[rows]
    unit, squared = training.scale[series, None], training.mostly_least[series]
    missed, moved = missed / unit, moved / unit

    def sizes(share):
        found = np.sqrt(np.sum((missed - share * moved) ** 2, axis=1, keepdims=True))
        if squared.any():  # as in the weights of candidates
            found[squared] = np.sqrt(np.mean(found[squared] ** 2))
        return found

    weights = np.broadcast_to(1 / np.maximum(sizes(0.5), 1e-12), moved.shape).ravel()
    (share,) = nonnegative_weights(moved.reshape(-1, 1), missed.ravel(), weights)
    share = float(min(share, 1.0))
    before, after = (np.sum(sizes(s)) for s in (0.0, share))
    return share, (before - after) / max(before, 1e-300)


def fit_transformer(transformer, table, horizon):
    """A transformer without other candidates, and origins that it has not learned from."""
    origins = Origins.within(table, horizon, transformer.lookback)
    origins, validation = split_at_ends(origins, _HELD_OUT)
    combined = CombinedForecast.of(transformer.learn(origins))
    return combined, validation.take(evenly_spread(len(validation), MOST_CALIBRATED))


def _side_by_side(candidates, origins, wanted):
    """Forecasts of candidates, (n_origins, n_names, horizon); NaN where no name is wanted."""
    found = np.full((len(origins), len(wanted), origins.horizon), np.nan)
    first = 0
    for candidate in candidates:
        names = slice(first, first + len(candidate.names))
        first = names.stop
        if wanted[names].any():
            found[:, names] = candidate.forecast(origins)
    return found
