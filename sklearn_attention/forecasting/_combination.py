"""Candidates: which there are, how they are fitted, and their weighted mean.

A candidate is a method, such as exponential smoothing, that makes one or more forecasts, each
with a name. `fit_combined` fits the candidates that `new_candidates` makes, and combines them
with the ensemble weights of `_ensemble_weights.py`.

Trees and a transformer learn the effects of features themselves, and are added one by one by
`add_candidate`. Each is mixed with the ensemble f of the candidates before it: with g for its
forecast, the mixture is (1 - w) f + w g, with the mixing weight w of least out-of-fold error.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from sklearn.base import is_regressor

from .._blocks import evenly_spread
from .._stacking import nonnegative_weights
from .._validation import check_choice
from ._calibration import MAX_CALIBRATION_ORIGINS
from ._candidate_attention import MIN_WEIGHT, CandidateAttention
from ._classical import Classical, LastSeason
from ._ensemble_weights import choose_weights
from ._feature_effects import FeatureEffects, fit_each, fit_without_effects, learn_effects
from ._origins import PANEL, Origins, Validation, split_at_ends
from ._own_analogs import OwnAnalogs
from ._ridges import WindowRidge
from ._season_length import (
    choose_lookback,
    min_series_length,
    season_of_frequency,
    short_season,
)
from ._transformer_candidate import TransformerCandidate
from ._trees import Trees
from ._window_regressor import window_regressors

# Lookbacks that are tried, in seasons, or in steps if there is no season. They have at least 4
# and at most 1100 steps, and fit into half of a series.
_LOOKBACK_SEASONS, _LOOKBACK_STEPS = (1, 3, 7, 14, 21, 30), (8, 24, 56)
_MIN_LOOKBACK, _MAX_LOOKBACK = 4, 1100
# For series shorter than four seasons the last season is a candidate, if it is short. It cannot
# be validated if no origin has a season before it, and hardly if a series has one and a half
# seasons. Then it gets 0.75 of the weight: on series of M3 and NN3 that are cut to 13 to 17
# months errors are 0.73 to 0.95 of those without it, on simulated ones of 5 quarters 0.6.
_MAX_SEASONS_IF_SHORT, _MIN_VALIDATED_SEASONS, _UNVALIDATED_WEIGHT = 4, 1.5, 0.75
# Fraction of the error that trees or a transformer have to save, since they do better on steps
# held out among those that they learn from than on later ones. A first part of the trees has to
# save it, too; a transformer that was trained briefly saves several times less than later.
_MIN_SAVED, _MIN_SAVED_IN_BRIEF_TRAINING = 0.02, 1e-3
CANDIDATES = ("classical", "ridge", "analogs", "features", "trees", "transformer")
# Candidates of these classes learn effects of features themselves, and come after the others.
_LEARN_FEATURES = (Trees, TransformerCandidate)


def check_candidates(candidates):
    """Raise ValueError unless these are "auto", None, or names of candidates and regressors."""
    if candidates is None or (isinstance(candidates, str) and candidates == "auto"):
        return
    if isinstance(candidates, str) or not np.iterable(candidates) or not len(candidates):
        raise ValueError(
            f"candidates={candidates!r} is not valid: pass 'auto', None, or a list of "
            f"{list(CANDIDATES)} and regressors."
        )
    if list(candidates) == ["features"]:
        raise ValueError(
            "candidates=['features'] makes no forecasts of its own: it removes the effects of "
            "features for other candidates. Add some, such as 'classical' or 'trees'."
        )
    for kind in candidates:
        if isinstance(kind, type) or not hasattr(kind, "fit"):
            check_choice("candidates", kind, CANDIDATES)
        elif not is_regressor(kind):
            raise ValueError(
                f"candidates has {kind!r}, which is not a regressor: pass names or regressors."
            )


@dataclass(frozen=True, eq=False)
class CombinedForecast:
    """Fitted candidates with their ensemble weights.

    Attributes
    ----------
    candidates : list
        Fitted candidates, those that learn the effects of features themselves last.
    effects : FeatureEffects or None
        Effects that are subtracted from series before the other candidates forecast.
    weights : ndarray of shape (n_series, n_names)
        Weights for each training series; rows sum to 1.
    new_series_weights : ndarray of shape (n_names,)
        Weights for other series.
    attention : CandidateAttention or None
        Adapts weights to the states of series.
    """

    candidates: list
    effects: FeatureEffects | None
    weights: np.ndarray
    new_series_weights: np.ndarray
    attention: CandidateAttention | None = None

    @classmethod
    def from_transformer(cls, transformer):
        """Make a combination of a transformer without other candidates."""
        n_series = len(transformer.scaling.unit)
        return cls([transformer], None, np.ones((n_series, 1)), np.ones(1))

    @property
    def names(self):
        """Names of all candidate forecasts."""
        return [name for candidate in self.candidates for name in candidate.names]

    @property
    def transformer(self):
        """The last candidate if it is a transformer; otherwise None."""
        last = self.candidates[-1]
        return last if isinstance(last, TransformerCandidate) else None

    def on_device(self, device):
        """Return the combination with its transformer, if it has one, on a device."""
        if self.transformer is None:
            return self
        moved = replace(self.transformer, device=device)
        return replace(self, candidates=[*self.candidates[:-1], moved])

    def mean_weight_of(self, kind):
        """Compute the total weight of all candidates of a class, averaged over series."""
        is_kind = [isinstance(c, kind) for c in self.candidates for _ in c.names]
        return float(self.weights[:, is_kind].sum(axis=1).mean())

    def names_without_forecast(self, origins):
        """List names of candidates whose class has no forecast at any of the origins."""
        has_forecast = ~np.isnan(self.each(origins)).all(axis=(0, 2))
        classes = [type(candidate) for candidate in self.candidates for _ in candidate.names]
        forecasting = {kind for kind, has in zip(classes, has_forecast, strict=True) if has}
        return [
            name
            for name, kind in zip(self.names, classes, strict=True)
            if kind not in forecasting
        ]

    def weights_at(self, origins):
        """Return ensemble weights at origins, without attention; (n_origins, n_names)."""
        is_training = (origins.training_index >= 0)[:, None]
        weights = self.weights[origins.training_index]
        return np.where(is_training, weights, self.new_series_weights)

    def each(self, origins, is_needed=None):
        """Compute the forecasts of all candidates; (n_origins, n_names, horizon).

        They are NaN where a candidate has none. With `is_needed` (n_names,) only candidates
        with a name that is needed are computed, and the others are NaN.
        """
        if is_needed is None:
            is_needed = np.ones(len(self.names), dtype=bool)
        if self.effects is None:
            return _forecasts_of(self.candidates, origins, is_needed)
        # Effects of features are subtracted from series for the first candidates, and added to
        # their forecasts.
        n_plain = sum(not isinstance(c, _LEARN_FEATURES) for c in self.candidates)
        plain_candidates = self.candidates[:n_plain]
        n_plain_names = sum(len(candidate.names) for candidate in plain_candidates)
        plain = self.effects.added_to(
            lambda adjusted_origins: _forecasts_of(
                plain_candidates, adjusted_origins, is_needed[:n_plain_names]
            ),
            origins,
        )
        with_features = _forecasts_of(
            self.candidates[n_plain:], origins, is_needed[n_plain_names:]
        )
        return np.append(plain, with_features, axis=1)


def new_candidates(kinds, table, horizon, seasons, lookback):
    """Make the candidates that are to be fitted together, in an order of their own.

    Parameters
    ----------
    kinds : list of str and regressors
        "classical", "ridge", "analogs", and regressors of scikit-learn. Other names are
        ignored.
    table : Table
    horizon : int
    seasons : list of float
        Seasons in steps. The first is the usual one, and the unit of lengths of windows.
    lookback : int or None
        Number of steps in a window; None for several lengths.

    Returns
    -------
    candidates : list
        Candidates that can be fitted to series of this length, perhaps none.
    """
    lengths, candidates = window_lengths(table, horizon, seasons[0], lookback), []
    if "classical" in kinds:
        # For many series the usual season is enough. Blocks of further seasons change errors by
        # 0.999 on 25 sets, and take 6 % of the seconds.
        candidates.append(Classical(seasons[0]))
        if len(table) < PANEL:
            candidates += [
                Classical(season, named_by_season=True, blocks=False) for season in seasons[1:]
            ]
        season = round(seasons[0]) if seasons[0] > 1 else season_of_frequency(table.time.offset)
        season = short_season(season or 1)
        are_short = np.median(table.lengths) < _MAX_SEASONS_IF_SHORT * season
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
    """Choose lengths of windows in steps, ascending: the `lookback`, or several by the season.

    Lengths fit into half of a series as long as the upper quartile of all. The list is empty if
    there are none.
    """
    if lookback is not None:
        return [lookback]
    max_length = min(0.5 * (np.quantile(table.lengths, 0.75) - horizon), _MAX_LOOKBACK)
    lengths = _LOOKBACK_STEPS
    if season > 1:
        lengths = [round(n_seasons * season) for n_seasons in _LOOKBACK_SEASONS]
    return [length for length in lengths if _MIN_LOOKBACK <= length <= max_length]


def quick_candidates(candidates):
    """Select the candidates whose errors choose between logarithms and plain values.

    These are the classical ones and the analogs of middle length. On 25 sets errors are 0.997
    of those with all analogs, in 0.91 of the seconds.
    """
    classical = [candidate for candidate in candidates if isinstance(candidate, Classical)]
    analogs = [candidate for candidate in candidates if isinstance(candidate, OwnAnalogs)]
    middle = len(analogs) // 2
    return [*classical, *analogs[middle : middle + 1]] if classical else candidates


class Combination(NamedTuple):
    """Fitted candidates, and their forecasts at validation origins.

    Attributes
    ----------
    combined : CombinedForecast
    validation : Validation
    candidate_forecasts : ndarray of shape (n_validation, n_names, horizon)
        Out-of-fold forecasts of all candidates.
    held_out : ndarray of shape (n_validation, horizon)
        Weighted means of these forecasts. The weights of each block are chosen on the others.
    effects : (FeatureEffects or None, list of FeatureEffects)
        Results of `learn_effects`; (None, []) if there are no effects.
    unfitted_names : tuple of str, default=()
        Names of candidates that were to be added, but for which series are too short.
    """

    combined: CombinedForecast
    validation: Validation
    candidate_forecasts: np.ndarray
    held_out: np.ndarray
    effects: tuple
    unfitted_names: tuple = ()


def fit_combined(
    table,
    horizon,
    candidates,
    lookback,
    *,
    effect_season=None,
    share=None,
    earlier=None,
    attends=True,
):
    """Fit candidates and choose their ensemble weights; return a Combination.

    Parameters
    ----------
    table : Table
    horizon : int
    candidates : list
        Candidates to be fitted.
    lookback : int
        Steps of the longest window, that there should be before each validation origin.
    effect_season : float, default=None
        Number of steps over whose differences effects of features are learned; None if no
        effects are learned.
    share : float, default=None
        Share of long series that is validated; None for the default of `Validation`.
    earlier : Combination, default=None
        Fit of other candidates to the same table. They come first, and are not fitted again.
    attends : bool, default=True
        Whether weights in a panel may depend on the states of series.
    """
    # 1. Fit the candidates, to series without the effects of features if there are any.
    options = {} if share is None else {"share": share}
    validation = Validation.from_table(table, horizon, lookback, **options)
    effects = None, []
    if earlier is not None:
        effects = earlier.effects
    elif effect_season is not None:
        effects = learn_effects(validation, effect_season)
    if effects[0] is None:
        candidates, forecasts = fit_each(candidates, validation)
    else:
        candidates, forecasts = fit_without_effects(candidates, validation, *effects)
    if earlier is not None:
        candidates = [*earlier.combined.candidates, *candidates]
        forecasts = np.append(earlier.candidate_forecasts, forecasts, axis=1)
    # 2. Choose weights by out-of-fold errors. If these cannot judge the last season, it gets a
    # fixed weight.
    *weights, held_out, attention = choose_weights(forecasts, validation, attends)
    names = np.array([name for candidate in candidates for name in candidate.names])
    is_last_season = names == "last season"
    longest = validation.origins.table.lengths.max()
    seasons = [c.season for c in candidates if isinstance(c, LastSeason)]
    is_unvalidated = np.isnan(forecasts[:, is_last_season]).all()
    if seasons and (is_unvalidated or longest <= _MIN_VALIDATED_SEASONS * seasons[0]):
        weights = [
            (1 - _UNVALIDATED_WEIGHT) * w + _UNVALIDATED_WEIGHT * is_last_season
            for w in weights
        ]
    combined = CombinedForecast(candidates, effects[0], *weights, attention)
    return Combination(combined, validation, forecasts, held_out, effects)


def add_candidate(fitted, candidate):
    """Mix a candidate that learns effects of features itself into a Combination.

    Parameters
    ----------
    fitted : Combination
    candidate : Trees or TransformerCandidate

    Returns
    -------
    fitted : Combination
        The candidates of `fitted` without the new one if it, or its cheap trial, saves too
        little of the error, or if it would get less than `MIN_WEIGHT`.
    """
    combined, validation, held_out = fitted.combined, fitted.validation, fitted.held_out
    # 1. Fit the candidate, unless a cheap trial shows that it does not help.
    is_transformer = isinstance(candidate, TransformerCandidate)
    candidate, trial_forecasts = candidate.with_trial(validation)
    if trial_forecasts is not None:
        _, saved = best_mixing_weight(validation, held_out, trial_forecasts[:, 0])
        if saved < (_MIN_SAVED_IN_BRIEF_TRAINING if is_transformer else _MIN_SAVED):
            return fitted
    candidate, forecasts = candidate.fit(validation)
    forecast = forecasts[:, 0]
    if np.isnan(forecast).all():  # The series are too short for it.
        return fitted._replace(unfitted_names=(*fitted.unfitted_names, *candidate.names))
    # 2. Choose its mixing weight. A softmax of errors would give it too little weight, since
    # the other candidates are many and alike.
    mixing_weight, saved = best_mixing_weight(validation, held_out, forecast)
    if mixing_weight < MIN_WEIGHT or saved < _MIN_SAVED:
        return fitted
    weights, new_series_weights = (
        np.concatenate(
            [(1 - mixing_weight) * w, np.full((*w.shape[:-1], 1), mixing_weight)], axis=-1
        )
        for w in (combined.weights, combined.new_series_weights)
    )
    # 3. Mix the held-out forecasts of each block by a weight chosen on the other blocks.
    mixed, has_forecast = held_out.copy(), ~np.isnan(forecast).any(axis=1)
    for rows, other_rows in validation.folds():
        other_rows = other_rows if len(other_rows) else slice(None)
        fold_weight, _ = best_mixing_weight(validation, held_out, forecast, other_rows)
        forecast_rows = rows[has_forecast[rows]]
        mixed[forecast_rows] += fold_weight * (forecast - held_out)[forecast_rows]
    combined = replace(
        combined,
        candidates=[*combined.candidates, candidate],
        weights=weights,
        new_series_weights=new_series_weights,
    )
    forecasts = np.append(fitted.candidate_forecasts, forecasts, axis=1)
    return fitted._replace(combined=combined, candidate_forecasts=forecasts, held_out=mixed)


def best_mixing_weight(validation, held_out, forecast, rows=slice(None)):
    """Choose the weight w of least error of the mixture (1 - w) held_out + w forecast.

    Parameters
    ----------
    validation : Validation
    held_out, forecast : ndarray of shape (n_validation, horizon)
        Two forecasts at validation origins, NaN if unknown.
    rows : slice or ndarray of int, default=slice(None)
        Validation origins by whose errors the weight is chosen.

    Returns
    -------
    mixing_weight : float
        From 0 to 1.
    saved : float
        Share of the error of `held_out` that the mixture saves.
    """
    residuals = (validation.tests.targets() - held_out)[rows]
    differences = (forecast - held_out)[rows]
    series = validation.tests.series[rows]
    unit, is_squared = validation.scale[series, None], validation.is_intermittent[series]
    is_known = ~np.isnan(residuals + differences)
    residuals = np.where(is_known, residuals, 0.0) / unit
    differences = np.where(is_known, differences, 0.0) / unit

    def errors(weight):
        """Compute the root sums of squares of residuals with a mixing weight; (n_rows, 1)."""
        error = np.sqrt(np.sum((residuals - weight * differences) ** 2, axis=1, keepdims=True))
        if is_squared.any():  # The squares of intermittent series are averaged.
            error[is_squared] = np.sqrt(np.mean(error[is_squared] ** 2))
        return error

    # The weight minimises a weighted sum of squares of residuals - w * differences. The squares
    # at an origin are divided by the error there of the mixture with weight 0.5, so that a few
    # hard stretches do not choose for all others.
    row_weights = np.broadcast_to(1 / np.maximum(errors(0.5), 1e-12), differences.shape).ravel()
    (weight,) = nonnegative_weights(differences.reshape(-1, 1), residuals.ravel(), row_weights)
    weight = float(min(weight, 1.0))
    error_before, error_after = np.sum(errors(0.0)), np.sum(errors(weight))
    return weight, (error_before - error_after) / max(error_before, 1e-300)


def fit_transformer(transformer, table, horizon):
    """Fit a transformer without other candidates, and hold out the last fifth of the origins.

    Returns a CombinedForecast, and up to 250 of the Origins that were held out, on which it is
    to be calibrated.
    """
    training, held_out = split_at_ends(
        Origins.within(table, horizon, transformer.lookback), fraction=0.2
    )
    combined = CombinedForecast.from_transformer(transformer.learn(training))
    rows = evenly_spread(np.arange(len(held_out)), MAX_CALIBRATION_ORIGINS)
    return combined, held_out.take(rows)


def _forecasts_of(candidates, origins, is_needed):
    """Join the forecasts of all candidates; (n_origins, n_names, horizon).

    A candidate is computed if one of its names `is_needed` (n_names,); the others are NaN.
    """
    forecasts = np.full((len(origins), len(is_needed), origins.horizon), np.nan)
    first = 0
    for candidate in candidates:
        columns = slice(first, first + len(candidate.names))
        first = columns.stop
        if is_needed[columns].any():
            forecasts[:, columns] = candidate.forecast(origins)
    return forecasts
