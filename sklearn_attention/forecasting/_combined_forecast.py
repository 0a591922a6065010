"""Candidate forecasts, validated and combined."""

from dataclasses import dataclass, replace

import numpy as np

from ._classical import Classical
from ._combination import PANEL, Combination, choose_weights, combine
from ._feature_effects import FeatureEffects, fit_each, fit_without_effects, learn_effects
from ._feature_ridge import FeatureRidge
from ._lookback import choose_lookback, least_length
from ._measures import naive_scales
from ._own_analogs import OwnAnalogs
from ._profiles import SeasonalProfiles
from ._ridges import WindowRidge
from ._validation_origins import make_training
from ._window_regressor import window_regressors

# Lookbacks of ridges and analogs in seasons, or in steps of series without; so many of those
# that fit into half of a series (three quarters, where all series share a map), the longest.
_SEASONS, _STEPS, _N_LOOKBACKS = (1, 3, 7, 14, 21, 30), (8, 24, 56), 3
_OWN_SHARE, _POOLED_SHARE = 0.5, 0.75
_SHORTEST, _LONGEST = 4, 1100
# Share of long series that is validated where a candidate is trained on what came before.
_SHARE_BEHIND = 0.25
CANDIDATES = ("classical", "seasonal", "ridge", "analogs", "features")


@dataclass(frozen=True, eq=False)
class CombinedForecast:
    """Candidates with their weights.

    Attributes
    ----------
    candidates : list
        Fitted candidates.
    effects : FeatureEffects or None
        What features add, which candidates have not seen.
    weights : ndarray of shape (n_series, n_names)
        Of each training series; rows sum to 1.
    usual : ndarray of shape (n_names,)
        Weights for other series.
    """

    candidates: list
    effects: FeatureEffects | None
    weights: np.ndarray
    usual: np.ndarray

    @property
    def names(self):
        """Names of all candidate forecasts."""
        return [name for candidate in self.candidates for name in candidate.names]

    def without_last(self):
        """The same without a further candidate that has no weight."""
        weights, usual = self.weights[:, :-1], self.usual[:-1]
        total = weights.sum(axis=1, keepdims=True)
        return replace(self, weights=weights / total, usual=usual / usual.sum())

    def weights_at(self, origins):
        """Weights of the candidates at some origins; (n_origins, n_names)."""
        own = origins.identity
        return np.where((own >= 0)[:, None], self.weights[own], self.usual)

    def each(self, origins, wanted=None):
        """Forecasts of the candidates; (n_origins, n_names, horizon).

        Parameters
        ----------
        origins : Origins
        wanted : ndarray of bool of shape (n_names,), default=None
            Candidates none of whose names is wanted are left out, NaN in their place.
        """
        parts, first, ahead = [], 0, 0.0
        if self.effects is not None:
            ahead = self.effects.ahead(origins)[:, None]
            rest = self.effects.take_out(origins.table)
            origins = replace(origins, table=rest)
        for candidate in self.candidates:
            names = slice(first, first + len(candidate.names))
            first = names.stop
            if wanted is None or wanted[names].any():
                parts.append(candidate.forecast(origins))
            else:
                shape = len(origins), len(candidate.names), origins.horizon
                parts.append(np.full(shape, np.nan))
        return np.concatenate(parts, axis=1) + ahead

    def forecast(self, origins, further=None):
        """Combined forecasts at some origins.

        Parameters
        ----------
        origins : Origins
        further : ndarray of shape (n_origins, n_further, horizon), default=None
            Forecasts of candidates that are not kept here, whose weights are the last ones.

        Returns
        -------
        forecasts : ndarray of shape (n_origins, horizon)
            The last value known where no candidate has a forecast.
        """
        weights = self.weights_at(origins)
        further = np.empty((len(origins), 0, origins.horizon)) if further is None else further
        forecasts = np.append(self.each(origins, weights.any(axis=0)), further, axis=1)
        there = ~np.isnan(forecasts).any(axis=2)
        lost = np.flatnonzero(~(there & (weights > 0)).any(axis=1))
        if len(lost):  # too short for all that have weight
            every = self.each(origins.take(lost))
            forecasts[lost] = np.append(every, further[lost], axis=1)
        combined = combine(forecasts, weights)
        return np.where(np.isnan(combined), origins.past(1), combined)


def fit_combined(observations, horizon, seasons, lookback, logs, kinds=CANDIDATES, others=()):
    """Fit candidates, and weigh them by their errors at validation origins.

    Parameters
    ----------
    observations : Table
    horizon : int
    seasons : list of float
        Steps in a season; windows are measured in the first.
    lookback : int or None
        Steps of the windows of ridges and analogs; None for several by the season.
    logs : bool
        Whether the series are logarithms.
    kinds : sequence of str and regressors
        Which of the candidates.
    others : sequence of candidates, default=()
        Further ones, which have the last weights and are not kept.

    Returns
    -------
    combined : CombinedForecast
    combination : Combination
    training : Training
    """
    n_series = len(observations.values)
    typical = np.quantile(observations.lengths, 0.75) - horizon
    if lookback is None:
        every = _lookbacks(seasons[0], _OWN_SHARE * typical)
        own = every[-_N_LOOKBACKS:]
        pooled = _lookbacks(seasons[0], _POOLED_SHARE * typical)[-_N_LOOKBACKS:]
    else:
        every = own = pooled = [lookback]
    scale = naive_scales(observations.values)
    sizes = horizon, max(own, default=_SHORTEST)
    # A candidate that is trained on what came before all validation origins needs most of it.
    options = {"share": _SHARE_BEHIND} if others else {}
    training = make_training(observations, *sizes, scale, **options)
    candidates = []
    regressors = [one for one in kinds if not isinstance(one, str)]
    kinds = {one for one in kinds if isinstance(one, str)}
    if "classical" in kinds:
        # Of many series the usual season is enough, and costs enough.
        adjusted = seasons if n_series < PANEL else seasons[:1]
        candidates += [Classical(own, logs, own != seasons[0]) for own in adjusted]
    if "seasonal" in kinds:
        candidates += [SeasonalProfiles(season) for season in seasons if season > 1]
    if "ridge" in kinds:
        lengths = sorted({*own, *pooled}) if n_series > 1 else own
        candidates += [WindowRidge(length, n_series > 1) for length in lengths]
    if "analogs" in kinds:
        candidates += [OwnAnalogs(length, seasons[0]) for length in every]
    if "features" in kinds and observations.n_features:
        candidates.append(FeatureRidge(seasons[0]))
    longest = observations.lengths.max()
    if regressors and longest >= least_length(horizon):
        length = choose_lookback(longest, lookback or "auto", horizon, round(seasons[0]))
        candidates += window_regressors(regressors, length)
    if not candidates:  # series are too short for those that are wanted
        candidates.append(Classical(seasons[0], logs))
    wanted = "features" in kinds
    effects, apart = learn_effects(training, seasons[0]) if wanted else (None, [])
    n_names = sum(len(one.names) for one in (*candidates, *others))
    if effects is None:
        candidates, held_out = fit_each(candidates, training)
    else:
        candidates, found = fit_without_effects(candidates, training, effects, apart)
        held_out = [found]
    held_out += [one.fit(training) for one in others]
    if len(training.block) == 0:
        # Nothing can be validated: all candidates that have a forecast count alike.
        equal = np.full(n_names, 1 / n_names)
        nothing, weights = np.empty((0, horizon)), np.tile(equal, (n_series, 1))
        combination = Combination(weights, equal, nothing, np.nan, nothing)
    else:
        combination = choose_weights(np.concatenate(held_out, axis=1), training)
    combined = CombinedForecast(candidates, effects, combination.weights, combination.usual)
    return combined, combination, training


def _lookbacks(season, most):
    """Lengths of windows, ascending."""
    lengths = [round(count * season) for count in _SEASONS] if season > 1 else _STEPS
    most = min(most, _LONGEST)
    return [length for length in lengths if _SHORTEST <= length <= most]
