"""Candidate forecasts, validated and combined."""

from dataclasses import dataclass, replace

import numpy as np

from ._classical import Classical
from ._combination import choose_weights
from ._feature_effects import FeatureEffects, fit_each, fit_without_effects, learn_effects
from ._feature_ridge import FeatureRidge
from ._lookback import choose_lookback, least_length
from ._origins import evenly_spread, split_at_ends
from ._own_analogs import OwnAnalogs
from ._profiles import SeasonalProfiles
from ._ridges import WindowRidge
from ._training import PANEL, Training
from ._transformer_candidate import TransformerCandidate
from ._window_regressor import window_regressors

# Lookbacks of ridges and analogs in seasons, or in steps of series without; so many of those
# that fit into half of a series (three quarters, where all series share a map), the longest.
_SEASONS, _STEPS, _N_LOOKBACKS = (1, 3, 7, 14, 21, 30), (8, 24, 56), 3
_OWN_SHARE, _POOLED_SHARE = 0.5, 0.75
_SHORTEST, _LONGEST = 4, 1100
# Share of long series that is validated where a candidate is trained on what came before.
_SHARE_BEHIND = 0.25
# Share of the windows that a transformer without others is calibrated on, and how many.
_HELD_OUT, _MOST_CALIBRATED = 0.2, 250
CANDIDATES = ("classical", "seasonal", "ridge", "analogs", "features")


@dataclass(frozen=True, eq=False)
class CombinedForecast:
    """Fitted candidates with their weights."""

    candidates: list
    effects: FeatureEffects | None  # of features, which most candidates do without
    weights: np.ndarray  # (n_series, n_names) of the training series; rows sum to 1
    usual: np.ndarray  # (n_names,) for other series

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
        own = [isinstance(one, kind) for one in self.candidates for _ in one.names]
        return float(self.weights[:, own].sum(axis=1).mean())

    def weights_at(self, origins):
        """Weights of the candidates at some origins; (n_origins, n_names)."""
        own = origins.identity
        return np.where((own >= 0)[:, None], self.weights[own], self.usual)

    def each(self, origins, wanted=None):
        """Forecasts of the candidates; (n_origins, n_names, horizon).

        NaN where a candidate has none, and of candidates with none of the names `wanted`,
        (n_names,), which are not computed.
        """
        wanted = np.ones(len(self.names), dtype=bool) if wanted is None else wanted
        if self.effects is None:
            return _side_by_side(self.candidates, origins, wanted)
        last = self.transformer is not None  # it learns effects itself
        n, end = len(self.candidates) - last, len(self.names) - last
        found = self.effects.added_to(
            lambda rest: _side_by_side(self.candidates[:n], rest, wanted[:end]), origins
        )
        whole = _side_by_side(self.candidates[n:], origins, wanted[end:])
        return np.append(found, whole, axis=1)


def fit_combined(table, horizon, seasons, lookback, logs, kinds=CANDIDATES):
    """Fit candidates, and weigh them by their errors at validation origins.

    Windows are measured in the first of the `seasons`; a `lookback` of None is several by the
    season. `kinds` are names of candidates, regressors, and a transformer at last.

    Returns
    -------
    combined : CombinedForecast
    training : Training
    every : ndarray of shape (n_validation, n_names, horizon)
        Held-out forecasts of all candidates.
    held_out : ndarray of shape (n_validation, horizon)
        Combined ones, by weights that were chosen apart from them.
    """
    typical = np.quantile(table.lengths, 0.75) - horizon
    if lookback is None:
        every = _lookbacks(seasons[0], _OWN_SHARE * typical)
        own = every[-_N_LOOKBACKS:]
        pooled = _lookbacks(seasons[0], _POOLED_SHARE * typical)[-_N_LOOKBACKS:]
    else:
        every = own = pooled = [lookback]
    transformers = [one for one in kinds if isinstance(one, TransformerCandidate)]
    # A candidate that is trained on what came before all validation origins needs most of it.
    options = {"share": _SHARE_BEHIND} if transformers else {}
    training = Training.of(table, horizon, max(own, default=_SHORTEST), **options)
    n_series, candidates = len(table.values), []
    regressors = [one for one in kinds if not isinstance(one, (str, TransformerCandidate))]
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
    if "features" in kinds and table.n_features:
        candidates.append(FeatureRidge(seasons[0]))
    longest = table.lengths.max()
    if regressors and longest >= least_length(horizon):
        length = choose_lookback(longest, lookback or "auto", horizon, round(seasons[0]))
        candidates += window_regressors(regressors, length)
    if not candidates:  # series are too short for those that are wanted
        candidates.append(Classical(seasons[0], logs))
    wanted = "features" in kinds
    effects, apart = learn_effects(training, seasons[0]) if wanted else (None, [])
    if effects is None:
        candidates, every = fit_each(candidates, training)
    else:
        candidates, every = fit_without_effects(candidates, training, effects, apart)
    for one in transformers:
        one, forecasts = one.fit(training)
        if one.network is not None:
            candidates, every = [*candidates, one], np.append(every, forecasts, axis=1)
    weights, usual, held_out = choose_weights(every, training)
    if isinstance(candidates[-1], TransformerCandidate) and not weights[:, -1].any():
        # It would take most of the time of every forecast.
        candidates, weights, usual = candidates[:-1], weights[:, :-1], usual[:-1]
        weights, usual = weights / weights.sum(axis=1, keepdims=True), usual / usual.sum()
    return CombinedForecast(candidates, effects, weights, usual), training, every, held_out


def fit_alone(transformer, table, horizon):
    """A transformer without other candidates, and origins that it has not learned from."""
    origins, validation = split_at_ends(table.origins(horizon, transformer.lookback), _HELD_OUT)
    combined = CombinedForecast.of(transformer.learn(origins))
    return combined, validation.take(evenly_spread(len(validation), _MOST_CALIBRATED))


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


def _lookbacks(season, most):
    """Lengths of windows, ascending."""
    lengths = [round(count * season) for count in _SEASONS] if season > 1 else _STEPS
    most = min(most, _LONGEST)
    return [length for length in lengths if _SHORTEST <= length <= most]
