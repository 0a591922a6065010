"""The models of `forecasting.py`, all without any tuning.

A model is a function of a task's numbers that returns an object with

* `fit(past, known)`: series up to the origin, in a dict, and features or None;
* `update(past, known)`: the same series, longer;
* `predict(horizon, known)`: a dict of arrays;
* `predict_interval(horizon, known)`: a dict of arrays of two columns, with a coverage of 90 %.

Functions import their libraries, so that a missing one affects only its own column, and imports
are not timed.
"""

import warnings

import numpy as np
import pandas as pd
from scipy.special import ndtri

COVERAGE = 0.9
NORMAL = ndtri((1 + COVERAGE) / 2)
OURS = ("TransformerForecaster", "KernelForecaster")
# Variants of TransformerForecaster, by table: without candidates that use features, and without
# all but the transformer.
VARIANTS = {"weather": ("without network and trees",), "alone": ("transformer alone",)}


# One series at a time.


class PerSeries:
    """Fits every series for itself, on its last `recent` observations, at each origin.

    Subclasses define `_fit(values)` and `_forecast(fitted, horizon)`, which returns forecasts,
    lower and upper ends. A series on which the model fails is forecast by its last value;
    `n_failed` counts these.
    """

    def __init__(self, task):
        self.task, self.n_failed = task, 0

    def fit(self, past, known=None):
        self.fitted_, self.last_ = {}, {}
        for name, series in past.items():
            values = np.asarray(series, float)[-(self.task.recent or 0) :]
            # Gaps are filled linearly, one at the end by the last value.
            values = pd.Series(values).interpolate(limit_direction="both").to_numpy()
            self.last_[name] = values
            try:
                self.fitted_[name] = self._fit(values)
            except Exception:
                self.fitted_[name] = None
                self.n_failed += 1
        return self

    update = fit

    def predict(self, horizon, known=None):
        return {name: self._ends(name, horizon)[0] for name in self.fitted_}

    def predict_interval(self, horizon, known=None):
        return {name: np.column_stack(self._ends(name, horizon)[1:]) for name in self.fitted_}

    def _ends(self, name, horizon):
        fitted = self.fitted_[name]
        if fitted is not None:
            ends = self._forecast(fitted, horizon)
            if np.all(np.isfinite(ends)):
                return ends
            self.fitted_[name] = None
            self.n_failed += 1
        values = self.last_[name]
        return spread_around(np.full(horizon, values[-1]), np.diff(values), 1)


def spread_around(forecast, missed, season):
    """Normal ends of a walk from season to season; `missed` are its one-season errors."""
    rounds = 1 + np.arange(len(forecast)) // season
    margin = NORMAL * np.sqrt(np.mean(missed**2) * rounds)
    return forecast, forecast - margin, forecast + margin


class SeasonalNaive(PerSeries):
    """The last season again; the last value where the season is 1 or the series is shorter."""

    def _fit(self, values):
        return values, self.task.season if len(values) > self.task.season else 1

    def _forecast(self, fitted, horizon):
        values, season = fitted
        forecast = np.resize(values[-season:], horizon)
        return spread_around(forecast, values[season:] - values[:-season], season)


class Naive2(PerSeries):
    """The last value, seasonally adjusted: the benchmark of the M competitions.

    A season stands where its autocorrelation is significant at 90 %; its indices are those of
    classical multiplicative decomposition.
    """

    def _fit(self, values):
        season = self.task.season
        indices = np.ones(season)
        if season > 1 and len(values) >= 3 * season and values.min() > 0:
            if is_seasonal(values, season):
                indices = seasonal_indices(values, season)
        return values / indices[np.arange(len(values)) % season], indices

    def _forecast(self, fitted, horizon):
        adjusted, indices = fitted
        ahead = (len(adjusted) + np.arange(horizon)) % len(indices)
        ends = spread_around(np.full(horizon, adjusted[-1]), np.diff(adjusted), 1)
        return tuple(end * indices[ahead] for end in ends)


def is_seasonal(values, season):
    centred = values - values.mean()
    if not centred.any():
        return False
    products = [centred[lag:] @ centred[:-lag] for lag in range(1, season + 1)]
    r = np.array(products) / (centred @ centred)
    return abs(r[-1]) > 1.645 * np.sqrt((1 + 2 * np.sum(r[:-1] ** 2)) / len(values))


def seasonal_indices(values, season):
    weights = np.ones(season) if season % 2 else np.r_[0.5, np.ones(season - 1), 0.5]
    smooth = np.convolve(values, weights / season, mode="valid")
    first = len(weights) // 2
    ratios = values[first : first + len(smooth)] / smooth
    phases = (first + np.arange(len(smooth))) % season
    indices = np.bincount(phases, ratios, season) / np.bincount(phases, minlength=season)
    return indices / indices.mean()


class Statistical(PerSeries):
    """A model of statsforecast."""

    def __init__(self, task, build):
        super().__init__(task)
        self.build = build
        self.warm_up()

    def warm_up(self):
        """Have compiled what a first fit would be timed for."""
        values = np.random.default_rng(0).gamma(9.0, size=3 * self.task.seasons[0] + 20)
        self._forecast(self._fit(values), 2)

    def _fit(self, values):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.build(len(values)).fit(values)

    def _forecast(self, fitted, horizon):
        level = round(100 * COVERAGE)
        found = fitted.predict(horizon, level=[level])
        return found["mean"], found[f"lo-{level}"], found[f"hi-{level}"]


def auto_ets(task):
    from statsforecast.models import AutoETS

    return Statistical(task, lambda n: AutoETS(season_length=fitting_season(task, n)))


def auto_theta(task):
    from statsforecast.models import AutoTheta

    return Statistical(task, lambda n: AutoTheta(season_length=fitting_season(task, n)))


def fitting_season(task, n):
    """The longest season up to that of errors of which there are two in n observations."""
    longest = min(task.season, n // 2)
    return max([season for season in task.seasons if season <= longest], default=1)


def mstl(trend, **options):
    def model(task):
        from statsforecast import models

        def build(n):
            seasons = [season for season in task.seasons if 1 < season <= n / 2]
            of_trend = getattr(models, trend)(**options)
            return models.MSTL(seasons, trend_forecaster=of_trend) if seasons else of_trend

        return Statistical(task, build)

    return model


def auto_arima(task):
    """With its own season up to 24 steps; a longer one is taken out by MSTL."""
    from statsforecast.models import AutoARIMA

    if task.seasons[-1] > 24:
        return mstl("AutoARIMA", seasonal=False)(task)
    return Statistical(task, lambda n: AutoARIMA(season_length=fitting_season(task, n)))


# All series at once.

BOOSTING = {
    "n_estimators": 300,
    "learning_rate": 0.05,
    "colsample_bytree": 0.8,
    "random_state": 0,
    "n_jobs": 1,
    "verbose": -1,
}


class BoostedLags:
    """LightGBM from lags, all series together, every step ahead by one model.

    A row is an origin and a number of steps ahead. Its target is how far the series moves
    until then, in units of the mean absolute difference between neighbours in a window before
    the origin. Its features are the steps ahead, the last values, the values of the last three
    seasons (of each length) that stand where the target does, means of windows, the length of
    the past, all less the last value and in the same units, and the known features at the
    target. The loss is the absolute error; intervals are two further models with the quantile
    loss. Of more than 200 000 rows evenly drawn ones are learned from.
    """

    MOST_ROWS, MOST_LAGS, SEASONS_BACK, FEWEST = 200_000, 24, 3, 4

    def __init__(self, task):
        from lightgbm import LGBMRegressor

        self.task, self.regressor = task, LGBMRegressor
        self.n_lags = min(self.MOST_LAGS, max(2 * task.seasons[-1], 8))
        self.window = max(2 * task.seasons[-1], 8)

    def fit(self, past, known=None):
        self.update(past, known)
        pairs = [self._pairs(len(values)) for values in self.values_.values()]
        counts = np.array([len(steps) for _, steps in pairs])
        share = min(1.0, self.MOST_ROWS / counts.sum())
        rng, parts = np.random.default_rng(0), []
        for (name, values), (origins, steps) in zip(self.values_.items(), pairs, strict=True):
            drawn = rng.random(len(steps)) < share
            origins, steps = origins[drawn], steps[drawn]
            X, last, unit = self._features(name, origins, steps, known)
            parts.append((X, (values[origins + steps] - last) / unit))
        self.X_, self.y_ = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        seen = ~np.isnan(self.y_)
        self.X_, self.y_, self.ends_ = self.X_[seen], self.y_[seen], None
        self.middle_ = self.regressor(objective="mae", **BOOSTING).fit(self.X_, self.y_)
        return self

    def update(self, past, known=None):
        self.values_ = {name: np.asarray(series, float) for name, series in past.items()}
        return self

    def predict(self, horizon, known=None):
        return {name: values[0] for name, values in self._apply([self.middle_], horizon, known)}

    def predict_interval(self, horizon, known=None):
        if self.ends_ is None:
            self.ends_ = [
                self.regressor(objective="quantile", alpha=alpha, **BOOSTING).fit(
                    self.X_, self.y_
                )
                for alpha in ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2)
            ]
        found = self._apply(self.ends_, horizon, known)
        return {name: np.sort(ends, axis=0).T for name, ends in found}

    def _apply(self, models, horizon, known):
        steps = np.arange(1, horizon + 1)
        rows = []
        for name, values in self.values_.items():
            rows.append(self._features(name, np.full(horizon, len(values) - 1), steps, known))
        X = np.concatenate([X for X, _, _ in rows])
        found = np.stack([model.booster_.predict(X) for model in models])
        found = found.reshape(len(models), len(rows), horizon)
        for i, (name, (_, last, unit)) in enumerate(zip(self.values_, rows, strict=True)):
            yield name, last + unit * found[:, i]

    def _pairs(self, n):
        """Origins, and the steps from them to what is known."""
        horizon = self.task.horizon
        origins = np.arange(min(self.FEWEST, n - 1) - 1, n - 1)
        steps = np.arange(1, horizon + 1)
        origins, steps = (a.ravel() for a in np.meshgrid(origins, steps, indexing="ij"))
        inside = origins + steps < n
        return origins[inside], steps[inside]

    def _features(self, name, origins, steps, known):
        values = self.values_[name]
        filled = pd.Series(values).ffill().bfill().to_numpy()
        last = filled[origins]
        moves = np.abs(np.diff(filled, prepend=filled[0]))
        unit = trailing_mean(moves, self.window)[origins]
        # A window without any change is measured by the whole past, or is all there is.
        unit = np.where(unit > 0, unit, trailing_mean(moves, len(moves))[origins])
        unit = np.where(unit > 0, unit, np.maximum(np.abs(last), 1e-9))
        columns = [value_at(values, origins - lag) for lag in range(1, self.n_lags)]
        for season in self.task.seasons:
            if season > 1:
                aligned = origins + steps - season * -(-steps // season)
                for back in range(self.SEASONS_BACK):
                    columns.append(value_at(values, aligned - season * back))
        for width in (*self.task.seasons, self.window, len(filled)):
            columns.append(trailing_mean(filled, width)[origins])
        relative = (np.stack(columns, 1) - last[:, None]) / unit[:, None]
        others = [steps, np.log(origins + 1.0), np.log(unit / (np.abs(last) + unit))]
        if known is not None:
            others += list(known.to_numpy(float)[origins + steps].T)
        return np.column_stack([relative, *others]), last, unit


class BoostedSteps:
    """LightGBM on what is known of a step, one model for all steps ahead, for one series.

    Features are the known ones, their means of the last hours of a season and of a whole one,
    place in the day, the week and the year, and lags of at least the horizon: the horizon
    itself, the nearest whole seasons (of each length) and means of a season. The loss is the
    absolute error; intervals are two further models with the quantile loss.
    """

    SEASONS_BACK = 3

    def __init__(self, task):
        from lightgbm import LGBMRegressor

        self.task, self.regressor = task, LGBMRegressor

    def fit(self, past, known):
        self.update(past, known)
        self.X_, self.ends_ = self._features(known), None
        ((_, self.y_),) = past.items()
        self.middle_ = self._learned("mae")
        return self

    def update(self, past, known):
        ((self.name_, self.past_),) = past.items()
        return self

    def _learned(self, objective, **options):
        there = self.y_.notna().to_numpy()
        regressor = self.regressor(objective=objective, **BOOSTING, **options)
        return regressor.fit(self.X_[there], self.y_[there])

    def predict(self, horizon, known):
        X = self._features(known, horizon)
        return {self.name_: self.middle_.booster_.predict(X)}

    def predict_interval(self, horizon, known):
        if self.ends_ is None:
            levels = (1 - COVERAGE) / 2, (1 + COVERAGE) / 2
            self.ends_ = [self._learned("quantile", alpha=alpha) for alpha in levels]
        X = self._features(known, horizon)
        ends = np.column_stack([model.booster_.predict(X) for model in self.ends_])
        return {self.name_: np.sort(ends, axis=1)}

    def _features(self, known, last=None):
        """A row for each step, or for so many at the end."""
        seasons, horizon = self.task.seasons, self.task.horizon
        reach = horizon + (self.SEASONS_BACK + 1) * seasons[-1]
        known = known if last is None else known.iloc[-reach - last :]
        values = self.past_.reindex(known.index)
        index, day = known.index, pd.Timedelta(1, "D")
        columns = [known, *(known.rolling(n, min_periods=1).mean() for n in self._widths())]
        columns += [values.shift(horizon)]
        for season in seasons:
            nearest = season * -(-horizon // season)
            columns += [values.shift(nearest + season * i) for i in range(self.SEASONS_BACK)]
            columns += [values.shift(horizon).rolling(season, min_periods=1).mean()]
        times = [(index - index.normalize()) / day, index.dayofweek, index.dayofyear]
        X = np.column_stack([*columns, *times]).astype(float)
        return X if last is None else X[-last:]

    def _widths(self):
        """Steps that features are averaged over."""
        shortest = self.task.seasons[0]
        return sorted({max(2, shortest // 8), shortest})


def value_at(values, rows):
    """Values of rows, missing before the first."""
    return np.where(rows >= 0, values[np.maximum(rows, 0)], np.nan)


def trailing_mean(values, width):
    """At every row the mean of the last `width` values, or of all there are."""
    total = np.r_[0.0, np.cumsum(values)]
    rows = np.arange(1, len(values) + 1)
    first = np.maximum(rows - width, 0)
    return (total[rows] - total[first]) / (rows - first)


# Ours.


class Ours:
    """A forecaster of the package at its defaults."""

    def __init__(self, task, name, **options):
        import sklearn_attention

        # Gaps are announced, as its users have to.
        self.model = getattr(sklearn_attention, name)(task.horizon, **options)

    def fit(self, past, known=None):
        self.past_ = past
        if known is not None or any(np.isnan(series).any() for series in past.values()):
            self.model.set_params(missing="interpolate")
        self.model.fit(*self._data(past, known))
        return self

    def update(self, past, known=None):
        later = {name: past[name].iloc[len(own) :] for name, own in self.past_.items()}
        self.past_ = past
        self.model.update(*self._data(later, known))
        return self

    def _data(self, series, known):
        if known is None:
            return (series,)
        (own,) = series.values()
        return known.loc[own.index], own

    def predict(self, horizon, known=None):
        return self._named(self.model.predict(self._steps(horizon, known)))

    def predict_interval(self, horizon, known=None):
        steps = self._steps(horizon, known)
        return self._named(self.model.predict_interval(steps, coverage=COVERAGE))

    def _steps(self, horizon, known):
        return horizon if known is None else known.iloc[-horizon:]

    def _named(self, forecasts):
        if isinstance(forecasts, dict):
            return {name: np.asarray(own, float) for name, own in forecasts.items()}
        (name,) = self.past_
        return {name: np.asarray(forecasts, float)}


def ours(name):
    return lambda task: Ours(task, name)


def without(*left_out):
    """Ours without candidates of some kinds."""

    def model(task):
        from sklearn_attention.forecasting._combination import CANDIDATES

        kinds = [one for one in CANDIDATES if one not in left_out]
        return Ours(task, "TransformerForecaster", candidates=kinds)

    return model


MODELS = {
    "seasonal naive": SeasonalNaive,
    "Naive2": Naive2,
    "AutoTheta": auto_theta,
    "AutoETS": auto_ets,
    "MSTL": mstl("AutoETS", model="ZZN"),
    "AutoARIMA": auto_arima,
    "LightGBM": BoostedLags,
    "LightGBM on steps": BoostedSteps,
    **{name: ours(name) for name in OURS},
    "without network and trees": without("transformer", "trees"),
    "transformer alone": lambda task: Ours(task, "TransformerForecaster", candidates=None),
}
