"""A ridge regression on all series of a panel that corrects the mean of classical forecasts."""

from dataclasses import dataclass

import numpy as np

from ._classical import Classical
from ._combination import best_mixing_weight
from ._origins import Origins
from ._season import SeasonalAdjustment
from ._table import mean_differences, positions

# Features are the last 63 steps relative to the one after them. A tenth of the mean difference
# of 256 steps is the smallest unit, for series that did not change lately. At most 40 000
# origins are learned from. On twelve panels errors are 0.997 of those with 32 steps.
_WINDOW, _LONG_WINDOW, _MAX_ORIGINS = 64, 256, 40_000
# The penalty is relative to the mean square of a column. On sixteen panels a third of it, three
# and ten times change errors by 1.000, 1.000 and 0.999.
_PENALTY = 0.03


@dataclass(frozen=True, eq=False)
class PanelRidge:
    """Corrections of the mean of classical forecasts, learned from all origins of all series.

    For each step ahead the features are 1, the last steps, how far each candidate is from the
    mean forecast, and the mean forecast. They are seasonally adjusted, relative to the last
    value, in units of the mean absolute difference of neighbouring values, and compressed by
    arcsinh.

    Attributes
    ----------
    classical : Classical
        The candidates.
    is_excluded : ndarray of bool of shape (n_series,)
        True for series that mostly are at their minimum, which are not corrected.
    coef : ndarray of shape (horizon, n_features)
    share : float
        Weight of the corrected forecasts beside those passed to `forecast`.
    """

    classical: Classical
    is_excluded: np.ndarray
    coef: np.ndarray
    share: float = 1.0

    @classmethod
    def fit(cls, validation, held_out, classical, random_state):
        """Fit to all origins; return it, and held-out forecasts with its share.

        The share, and corrections of held-out forecasts (n_validation, horizon) within a
        horizon of the end of a series, come from a fit to earlier steps. Earlier held-out
        forecasts are not corrected. If corrections do not help there, None and `held_out` are
        returned.
        """
        tests, is_excluded = validation.tests, validation.is_intermittent
        is_last = tests.steps_left <= tests.horizon
        rows = np.flatnonzero(is_last & ~is_excluded[tests.series])
        until, lengths = validation.first_test_step(rows), tests.table.lengths
        series, n_known = positions(1, np.where(is_excluded, 0, np.maximum(lengths - 1, 0)))
        if len(series) > _MAX_ORIGINS:
            drawn = random_state.choice(len(series), _MAX_ORIGINS, replace=False)
            series, n_known = series[drawn], n_known[drawn]
        # All origins of a series share the seasonal pattern of the whole series: one of its own
        # for each would take the square of their number.
        origins = Origins(tests.table, series, n_known, tests.horizon, lengths[series])
        features = _Features(origins, classical)

        def fit_before(ends):
            """Fit to the steps of each series before its end; (n_series,)."""
            is_target = origins.target_steps < ends[series][:, None]
            return cls(classical, is_excluded, features.fit(is_target, series))

        ridge = fit_before(until)
        corrected = np.full_like(held_out, np.nan)
        corrected[rows] = ridge.corrected(tests.take(rows).with_patterns_before(until))
        share, _ = best_mixing_weight(validation, held_out, corrected)
        if share == 0:
            return None, held_out
        # Few origins determine the best share, so that it is averaged with one half. On fifteen
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
        corrections = [features.at(step) @ coef for step, coef in enumerate(self.coef)]
        return features.level + features.unit * (features.mean + np.stack(corrections, axis=1))


class _Features:
    """Features, forecasts and targets at origins, relative to `level` and in a `unit`."""

    def __init__(self, origins, classical):
        season = SeasonalAdjustment.learn(origins, classical.season_length)
        row, steps = (
            season.pattern_of_origin[:, None],
            origins.n_known[:, None] - _WINDOW + np.arange(_WINDOW),
        )
        past = origins.past(_WINDOW) - season.patterns_at(row, np.maximum(steps, 0))
        long_past = origins.past(_LONG_WINDOW)
        self.unit = np.maximum(
            mean_differences(past, origins.n_known),
            0.1 * mean_differences(long_past, origins.n_known),
        )[:, None]
        is_constant = self.unit <= 1e-9 * np.abs(long_past).max(axis=1, keepdims=True)
        # A constant series has no unit: it is forecast by its last value, and not learned from.
        self.unit[is_constant] = 0.0
        divisor = np.where(is_constant, 1.0, self.unit)
        self.level = past[:, -1:] + season.patterns_at(row, origins.target_steps)
        each = (classical.forecast(origins) - self.level[:, None]) / divisor[:, None]
        self.mean = each.mean(axis=1)
        self.deviations = np.arcsinh(each - self.mean[:, None])
        past = np.arcsinh((past[:, :-1] - past[:, -1:]) / divisor)
        self.past = np.hstack([np.ones_like(divisor), past])
        targets = np.where(is_constant, np.nan, origins.targets())
        self.targets = (targets - self.level) / divisor

    def at(self, step):
        """Join the features of a step ahead; (n_origins, n_features)."""
        mean = np.arcsinh(self.mean[:, [step]])
        return np.hstack([self.past, self.deviations[:, :, step], mean])

    def fit(self, is_target, series):
        """Fit coefficients (horizon, n_features) to targets, where `is_target` is True."""
        is_target &= ~np.isnan(self.targets)
        residuals = np.where(is_target, np.nan_to_num(self.targets) - self.mean, 0.0)
        n_targets = is_target.sum(axis=1)
        size = np.abs(residuals).sum(axis=1) / np.maximum(n_targets, 1)
        size += np.median(size[n_targets > 0]) + 1e-9 if n_targets.any() else 1.0
        # An origin has weight 1 / (mean absolute residual + its median over origins), so that
        # large residuals do not dominate. All n origins of a series count as root n of them.
        n_origins = np.bincount(series[n_targets > 0], minlength=series.max(initial=0) + 1)
        weights = 1 / (size * np.sqrt(np.maximum(n_origins, 1))[series])
        coef = []
        for step in range(is_target.shape[1]):
            features = self.at(step)
            weighted = (weights * is_target[:, step])[:, None] * features
            gram = features.T @ weighted
            penalty = _PENALTY * np.diag(gram) + 1e-9 * (1 + np.trace(gram))
            products = weighted.T @ residuals[:, step]
            coef.append(np.linalg.solve(gram + np.diag(penalty), products))
        return np.array(coef)
