"""Parts of stored forecasters, as version 0.2.0 and this version stored them.

A file has, for each dataclass of a forecaster, its name and its fields. `BUILDERS` has a
function for each name whose fields have changed; it takes the fields of either version, and
returns an object of this version. The classes of this module are candidates that 0.2.0 fitted,
and that are only forecast with now.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, softmax
from sklearn.isotonic import isotonic_regression

from ._analogs import Analogs
from ._calibration import Calibration
from ._candidate_attention import CandidateAttention
from ._classical import Classical, methods_of, smooth
from ._combination import CombinedForecast
from ._feature_effects import FeatureBasis
from ._ridges import WindowRidge
from ._season import SeasonalAdjustment
from ._table import Table
from ._transform import Transform
from ._trees import Trees

# What exponential smoothing tried in 0.2.0.
_METHODS = methods_of(
    np.linspace(0.03, 0.99, 25),
    np.linspace(0.08, 0.96, 9),
    (0.01, 0.05, 0.15, 0.4),
    (0.8, 0.9, 0.95, 0.98),
)


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
            for states in smooth([(values, row, last)], self.methods)[0]
        ]
        # 0.2.0 had blocks for every season.
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
            rows = np.flatnonzero(origins.training_index == i)
            by_series[rows] = WindowRidge(self.lookback, coef).forecast(origins.take(rows))
        return np.concatenate([pooled, by_series], axis=1)


@dataclass(frozen=True, eq=False)
class CandidateNetwork:
    """A network that weights classical forecasts by the state of a series and corrects them.

    With classical forecasts f_c it returns logits z_c and a correction r for each step ahead,
    and forecasts sum_c softmax(z)_c f_c + r. All are seasonally adjusted, relative to the last
    value, and in units of the mean absolute difference of neighbouring values.

    Attributes
    ----------
    classical : Classical
    share : float
        Mixing weight of the network beside the forecasts that it is mixed with.
    network : dict of {str: ndarray}
        Parameters of the network by their names.
    without : ndarray of bool of shape (n_series,)
        True for intermittent training series, which the network does not forecast.
    """

    classical: Classical
    share: float
    network: dict
    without: np.ndarray

    def forecast(self, origins, combined):
        """Mix combined forecasts (n_origins, horizon) with those of the network."""
        if self.share == 0:
            return combined
        share = np.where(origins.series_flags(self.without), 0.0, self.share)[:, None]
        return share * self._forecasts(origins) + (1 - share) * combined

    def _forecasts(self, origins):
        """Compute the forecasts of the network; (n_origins, horizon)."""
        # 1. Adjust the last 32 values and the classical forecasts seasonally, and bring them to
        # the level and the unit of the series.
        season = SeasonalAdjustment.learn(origins, self.classical.season_length)
        pattern = season.pattern_of_origin[:, None]
        n_known = np.maximum(origins.n_known, 1)[:, None]
        steps = np.maximum(origins.n_known[:, None] - 32 + np.arange(32), 0)
        past = origins.past(32) - season.patterns_at(pattern, steps)
        unit, unit_of_season = _units(origins, season)
        is_log = isinstance(self.classical, ClassicalWithRaw)
        if is_log:
            unit = unit + 1e-3
        else:
            unit = np.where(unit + unit_of_season > 0, unit + 1e-3 * unit_of_season, 1.0)
        level = past[:, -1:] + season.patterns_at(pattern, origins.target_steps)
        candidates = (self.classical.forecast(origins) - level[:, None]) / unit[:, None]
        past = (past - past[:, -1:]) / unit
        # 2. Make the inputs of the network, (n_origins, n_inputs).
        x = np.hstack(
            [
                np.arcsinh(past),
                np.arcsinh(candidates).reshape(len(past), -1),
                np.log(unit) if is_log else np.zeros_like(unit),
                np.log(n_known),
                np.minimum(n_known, 32) / 32,
                np.abs(past).mean(axis=1, keepdims=True) / 10,
                candidates.std(axis=(1, 2))[:, None],
            ]
        )
        # 3. Apply two hidden layers, and two linear maps to logits and corrections.
        for name in ("body.0", "body.2"):
            x = self._linear(name, x)
            x = x * ndtr(x)  # GELU
        weights = softmax(self._linear("logits", x).reshape(candidates.shape), axis=1)
        corrected = (weights * candidates).sum(axis=1) + self._linear("correction", x)
        return level + unit * corrected

    def _linear(self, name, x):
        return x @ self.network[f"{name}.weight"].T + self.network[f"{name}.bias"]


def _units(origins, season):
    """Average absolute differences of seasonally adjusted series; (2, n_origins, 1).

    The first average is over the known steps, the second over the steps that the seasonal
    pattern is learned from.
    """
    counts = np.maximum([origins.n_known, origins.n_pattern_steps], 1)
    units, order = np.empty(counts.shape), np.argsort(season.pattern_of_origin, kind="stable")
    ends = np.searchsorted(season.pattern_of_origin[order], np.arange(1, len(season.series)))
    for rows in np.split(order, ends):
        longest = counts[:, rows].max(keepdims=True)[0]
        adjusted = season.adjusted(season.pattern_of_origin[rows[:1]], longest)[0]
        changes = np.cumsum(np.abs(np.diff(adjusted, prepend=adjusted[0])))
        units[:, rows] = changes[counts[:, rows] - 1] / np.maximum(counts[:, rows] - 1, 1)
    return units[:, :, None]


def stored_classical(logs=False, methods=_METHODS, **fields):
    """Build Classical; in 0.2.0, with `logs`, it had trends of the series themselves, too."""
    if "further" in fields:
        fields["named_by_season"] = fields.pop("further")
    return (ClassicalWithRaw if logs else Classical)(**fields, methods=tuple(methods))


def stored_ridge(lookback, coef, groups=None, **fields):
    """Build WindowRidge; 0.2.0 had coefficients of all series first, and perhaps of each."""
    if groups is None:
        return WindowRidge(lookback, coef)
    if fields["own"]:
        coef = np.full((1, lookback, 1), np.nan) if coef is None else coef
        return RidgeOfEachSeries(lookback, coef, groups)
    return WindowRidge(lookback, None if coef is None else coef[0])


def stored_attention(**fields):
    """Build CandidateAttention; in 0.2.0 it was a network."""
    return (CandidateNetwork if "network" in fields else CandidateAttention)(**fields)


def stored_calibration(**fields):
    """Build Calibration; 0.2.0 had no profile, but residuals, `errors`, that grow with it."""
    if "errors" not in fields:
        return Calibration(**fields)
    never = np.full(len(fields["unit"]), np.inf)  # 0.2.0 did not allow for jumps
    errors = fields["errors"]
    mean_square = np.nan_to_num(np.nanmean(errors**2, axis=(0, 2)))
    profile = np.sqrt(isotonic_regression(mean_square))
    profile = profile / profile.mean() if profile.all() else np.ones(len(profile))
    # The unit contains the `widening`.
    names = "error", "unit", "of_new_series", "until"
    return Calibration(
        fields["levels"],
        errors / profile[:, None],
        profile,
        *(fields[name] for name in names),
        1,
        never,
        np.zeros(len(never), dtype=np.int64),
    )


def _with_new_names(kind, **new_names):
    """Make a function that builds `kind` from stored fields; `new_names` are by old names."""

    def build(**fields):
        return kind(**{new_names.get(name, name): value for name, value in fields.items()})

    return build


# Builders by the name of the stored class. The last ones only rename fields of 0.2.0.
BUILDERS = {
    "Analogs": _with_new_names(Analogs, share="seasonal_share"),
    "Calibration": stored_calibration,
    "CandidateAttention": stored_attention,
    "Classical": stored_classical,
    "WindowRidge": stored_ridge,
    "CombinedForecast": _with_new_names(CombinedForecast, of_new_series="new_series_weights"),
    "FeatureBasis": _with_new_names(FeatureBasis, bends="hinge_features"),
    "Table": _with_new_names(Table, identity="training_index", known="future_columns"),
    "Trees": _with_new_names(
        Trees, dated="has_calendar", drifts="levels_drift", averaged="averaged_columns"
    ),
    "Transform": _with_new_names(Transform, least="min_positive"),
}
STORED_FORMS = ClassicalWithRaw, RidgeOfEachSeries, CandidateNetwork
