"""Build the parts of stored forecasters, also those of 0.2.0 that no fit makes any more.

Each function takes the fields of a dataclass as this version or 0.2.0 stored them.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import isotonic_regression

from ._calibration import Calibration
from ._candidate_attention import CandidateAttention
from ._classical import Classical, smooth
from ._ridges import WindowRidge


@dataclass(frozen=True, eq=False)
class ClassicalWithRaw(Classical):
    """Classical forecasts of logarithms, also with trends of the series themselves."""

    @property
    def names(self):
        """Names of the forecasts."""
        names = super().names
        season = names[0].removeprefix("naive")
        raw = (f"raw {name}{season}" for name in ("theta", "Holt", "damped"))
        return (*names[:6], *raw, *names[6:])

    def _adjusted(self, table, row, last, horizon):
        """Forecast adjusted series (n_rows, n_steps) after some of their steps."""
        forecasts = super()._adjusted(table, row, last, horizon)
        start = table[:, :1]
        values = np.exp(np.clip(table - start, -50, 50))
        # Forecasts stay above 5 % of the mean so far.
        floor = 0.05 * (np.cumsum(values, axis=1)[row, last] / (last + 1))[:, None]
        raw = [
            np.log(np.maximum(states.path(horizon), floor)) + start[row]
            for states in smooth([(values, row, last)])[0]
        ]
        smoothed, of_blocks = np.moveaxis(forecasts[:, 2:6], 1, 0), forecasts[:, 7]
        median = np.median([*smoothed, raw[0], raw[2]], axis=0)
        combined = [*raw, median, of_blocks, (median + of_blocks) / 2]
        return np.concatenate([forecasts[:, :6], np.stack(combined, axis=1)], axis=1)


@dataclass(frozen=True, eq=False)
class RidgeOfEachSeries(WindowRidge):
    """Ridge regression for all series, and for each of some `groups`, (n_maps - 1,)."""

    # `coef` (n_maps, lookback, horizon) begins with the coefficients for all series.
    groups: np.ndarray = ()

    @property
    def names(self):
        """Names of the forecasts."""
        return tuple(f"{kind} ridge of {self.lookback} steps" for kind in ("pooled", "own"))

    def forecast(self, origins):
        """Forecast; (n_origins, 2, horizon), NaN where there are no coefficients."""
        pooled = WindowRidge(self.lookback, self.coef[0]).forecast(origins)
        by_series = np.full_like(pooled, np.nan)
        for i, coef in zip(self.groups, self.coef[1:], strict=True):
            rows = np.flatnonzero(origins.identity == i)
            by_series[rows] = WindowRidge(self.lookback, coef).forecast(origins.take(rows))
        return np.concatenate([pooled, by_series], axis=1)


def stored_classical(logs=False, **fields):
    """Build Classical; 0.2.0 had raw trends of logarithms."""
    return (ClassicalWithRaw if logs else Classical)(**fields)


def stored_ridge(lookback, coef, groups=None, **fields):
    """Build WindowRidge; 0.2.0 had coefficients of all series first, and perhaps of each."""
    if groups is None:
        return WindowRidge(lookback, coef)
    if fields["own"]:
        coef = np.full((1, lookback, 1), np.nan) if coef is None else coef
        return RidgeOfEachSeries(lookback, coef, groups)
    return WindowRidge(lookback, None if coef is None else coef[0])


def stored_attention(logs=None, **fields):
    """Build CandidateAttention; in 0.2.0 its classical candidates knew of logarithms."""
    logs = isinstance(fields["classical"], ClassicalWithRaw) if logs is None else logs
    return CandidateAttention(**fields, logs=logs)


def stored_calibration(**fields):
    """Build Calibration; 0.2.0 had a profile only in its residuals, the `errors`."""
    if "errors" not in fields:
        return Calibration(**fields)
    errors = fields["errors"]
    mean_square = np.nan_to_num(np.nanmean(errors**2, axis=(0, 2)))
    profile = np.sqrt(isotonic_regression(mean_square))
    profile = profile / profile.mean() if profile.all() else np.ones(len(profile))
    # The unit contains the `widening`.
    names = "error", "unit", "of_new_series", "until"
    return Calibration(
        fields["levels"], errors / profile[:, None], profile, *(fields[name] for name in names)
    )


BUILDERS = {
    "Calibration": stored_calibration,
    "CandidateAttention": stored_attention,
    "Classical": stored_classical,
    "WindowRidge": stored_ridge,
}
