"""Ridge regression on all series of a panel that corrects the mean of classical forecasts.

Forecasts: the unweighted mean of the `Classical` forecasts plus a correction, mixed with the
ensemble of all candidates. For each step ahead the correction is a linear function of these
features: 1, the last values, how far each classical forecast is from their mean, and the mean.
Values are seasonally adjusted, relative to the last one, and divided by the mean absolute
difference of neighbouring values. Features are the arcsinh of these numbers, so that huge ones
have little influence.

Learns: the coefficients of each step ahead from all origins of all series, and its share in the
mixture from origins within a horizon of the end of each series.

Costs: the classical forecasts at up to 40 000 origins, and two linear systems for each step
ahead, one for the share and one for later forecasts.
"""

from dataclasses import dataclass

import numpy as np

from ._classical import Classical
from ._combination import best_mixing_weight
from ._origins import Origins
from ._season import SeasonalAdjustment
from ._table import mean_differences, positions

# Features are 63 of the last 64 values, relative to the last one. On twelve panels errors are
# 0.997 of those with 32. The unit is at least a tenth of the mean difference of 256 steps, for
# series that did not change lately. At most 40 000 origins are learned from.
_WINDOW, _LONG_WINDOW, _MAX_ORIGINS = 64, 256, 40_000
# The penalty is relative to the mean square of a column. On sixteen panels a third of it, three
# and ten times change errors by 1.000, 1.000 and 0.999.
_PENALTY = 0.03


@dataclass(frozen=True, eq=False)
class PanelRidge:
    """Corrections of the mean of classical forecasts, learned from all origins of all series.

    Attributes
    ----------
    classical : Classical
        Makes the forecasts that are corrected.
    is_excluded : ndarray of bool of shape (n_series,)
        True for intermittent series, which are not corrected.
    coef : ndarray of shape (horizon, n_features)
    share : float
        Mixing weight of the corrected forecasts beside those passed to `forecast`.
    """

    classical: Classical
    is_excluded: np.ndarray
    coef: np.ndarray
    share: float = 1.0

    @classmethod
    def fit(cls, validation, held_out, classical, random_state):
        """Fit corrections to all origins, if they help at the last ones.

        Parameters
        ----------
        validation : Validation
        held_out : ndarray of shape (n_validation, horizon)
            Out-of-fold means of the ensemble.
        classical : Classical
        random_state : RandomState
            Draws 40 000 origins if there are more.

        Returns
        -------
        ridge : PanelRidge or None
        mixed : ndarray of shape (n_validation, horizon)
            `held_out`, mixed with corrected forecasts at origins within a horizon of the end of
            a series. Their coefficients come from a fit to earlier steps, and so does the
            share. Earlier forecasts are not corrected.
        """
        tests, is_excluded = validation.tests, validation.is_intermittent
        is_last = tests.steps_left <= tests.horizon
        rows = np.flatnonzero(is_last & ~is_excluded[tests.series])
        first_held_out, lengths = validation.first_test_step(rows), tests.table.lengths
        series, n_known = positions(1, np.where(is_excluded, 0, np.maximum(lengths - 1, 0)))
        if len(series) > _MAX_ORIGINS:
            drawn = random_state.choice(len(series), _MAX_ORIGINS, replace=False)
            series, n_known = series[drawn], n_known[drawn]
        # All origins of a series share the seasonal pattern of the whole series: one of its own
        # for each would take the square of their number.
        origins = Origins(tests.table, series, n_known, tests.horizon, lengths[series])
        features = _Features(origins, classical)

        def fit_before(ends):
            """Fit to targets before the step `ends` (n_series,) of each series."""
            is_target = origins.target_steps < ends[series][:, None]
            return cls(classical, is_excluded, features.fit(is_target, series))

        ridge = fit_before(first_held_out)
        corrected = np.full_like(held_out, np.nan)
        last_tests = tests.take(rows).with_patterns_before(first_held_out)
        corrected[rows] = ridge.corrected(last_tests)
        share, _ = best_mixing_weight(validation, held_out, corrected)
        if share == 0:
            return None, held_out
        # Few origins determine the best share, so that it is averaged with 0.5. On fifteen
        # panels errors are 0.999, and symmetric percentage errors 0.995, of those without.
        share = (share + 0.5) / 2
        mixed = np.where(
            np.isnan(corrected), held_out, share * corrected + (1 - share) * held_out
        )
        return cls(classical, is_excluded, fit_before(lengths).coef, share), mixed

    def forecast(self, origins, combined):
        """Mix combined forecasts (n_origins, horizon) with corrected ones."""
        share = np.where(origins.series_flags(self.is_excluded), 0.0, self.share)[:, None]
        return share * self.corrected(origins) + (1 - share) * combined

    def corrected(self, origins):
        """Correct the mean of the classical forecasts; (n_origins, horizon)."""
        features = _Features(origins, self.classical)
        corrections = [features.features_at(step) @ coef for step, coef in enumerate(self.coef)]
        return features.level + features.unit * (features.mean + np.stack(corrections, axis=1))


class _Features:
    """Features, classical forecasts and targets at origins, relative to a level and in a unit.

    Attributes
    ----------
    level : ndarray of shape (n_origins, horizon)
        The last value, seasonally adjusted, plus the seasonal pattern of each target.
    unit : ndarray of shape (n_origins, 1)
        Mean absolute difference of neighbouring values, 0 for constant series.
    mean : ndarray of shape (n_origins, horizon)
        Mean of the classical forecasts.
    deviations : ndarray of shape (n_origins, n_names, horizon)
        arcsinh of the classical forecasts minus their mean.
    past : ndarray of shape (n_origins, 64)
        1, and arcsinh of the steps before the last one.
    targets : ndarray of shape (n_origins, horizon)
        NaN where unknown, and for constant series.
    """

    def __init__(self, origins, classical):
        season = SeasonalAdjustment.learn(origins, classical.season_length)
        pattern = season.pattern_of_origin[:, None]
        steps = origins.n_known[:, None] - _WINDOW + np.arange(_WINDOW)
        past = origins.past(_WINDOW) - season.patterns_at(pattern, np.maximum(steps, 0))
        long_past = origins.past(_LONG_WINDOW)
        self.unit = np.maximum(
            mean_differences(past, origins.n_known),
            0.1 * mean_differences(long_past, origins.n_known),
        )[:, None]
        is_constant = self.unit <= 1e-9 * np.abs(long_past).max(axis=1, keepdims=True)
        # A constant series has no unit: it is forecast by its last value, and not learned from.
        self.unit[is_constant] = 0.0
        divisor = np.where(is_constant, 1.0, self.unit)
        self.level = past[:, -1:] + season.patterns_at(pattern, origins.target_steps)
        forecasts = (classical.forecast(origins) - self.level[:, None]) / divisor[:, None]
        self.mean = forecasts.mean(axis=1)
        self.deviations = np.arcsinh(forecasts - self.mean[:, None])
        relative_past = np.arcsinh((past[:, :-1] - past[:, -1:]) / divisor)
        self.past = np.hstack([np.ones_like(divisor), relative_past])
        targets = np.where(is_constant, np.nan, origins.targets())
        self.targets = (targets - self.level) / divisor

    def features_at(self, step):
        """Join the features of one step ahead; (n_origins, n_features)."""
        mean = np.arcsinh(self.mean[:, [step]])
        return np.hstack([self.past, self.deviations[:, :, step], mean])

    def fit(self, is_target, series):
        """Fit a weighted ridge regression for each step ahead; (horizon, n_features).

        `is_target` (n_origins, horizon) is True for the targets to learn from, and `series`
        (n_origins,) is the series of each origin.
        """
        is_target &= ~np.isnan(self.targets)
        residuals = np.where(is_target, np.nan_to_num(self.targets) - self.mean, 0.0)
        n_targets = is_target.sum(axis=1)
        # 1. The weight of an origin is 1 / (its mean absolute residual + the median over
        # origins), so that large residuals do not dominate, and the n origins of a series count
        # as sqrt(n) origins.
        size = np.abs(residuals).sum(axis=1) / np.maximum(n_targets, 1)
        size += np.median(size[n_targets > 0]) + 1e-9 if n_targets.any() else 1.0
        n_origins = np.bincount(series[n_targets > 0], minlength=series.max(initial=0) + 1)
        weights = 1 / (size * np.sqrt(np.maximum(n_origins, 1))[series])
        # 2. Solve the normal equations of each step ahead, with a penalty.
        coef = []
        for step in range(is_target.shape[1]):
            features = self.features_at(step)
            weighted = (weights * is_target[:, step])[:, None] * features
            gram = features.T @ weighted
            penalty = _PENALTY * np.diag(gram) + 1e-9 * (1 + np.trace(gram))
            products = weighted.T @ residuals[:, step]
            coef.append(np.linalg.solve(gram + np.diag(penalty), products))
        return np.array(coef)
