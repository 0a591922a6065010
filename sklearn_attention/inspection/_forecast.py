"""A forecast with intervals, after its history."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd

from .._frames import to_pandas
from .._validation import check_positive, check_probabilities
from ..forecasting._forms import is_tidy, pandas_if_dated, read_series
from ._pipelines import check_fitted, unfit
from ._series import plain_times, select_forecast, series_position
from ._style import BLUE, COLORS, GREY, INK, ORANGE, Display, write_dates

# Largest number of features whose effects have a colour of their own.
_MAX_EFFECTS = 4


class ForecastDisplay(Display):
    """Picture of a forecast with its intervals, the history and the actual values.

    Use it for forecasts of one series; :class:`BacktestDisplay` shows forecasts from several
    points in the past.

    Make one by :meth:`from_estimator`.

    Parameters
    ----------
    history : Series
        Observations before the forecast.
    forecast : Series
        The forecast.
    intervals : dict of float to DataFrame, default=None
        For each coverage a frame with the ends of intervals in columns "lower" and "upper".
    actual : Series, default=None
        Actual values.
    analogs : list of (float, Series), default=None
        For each past window that is similar to the last one, its weight, and the window with
        the values that followed it, at their times.
    effects : DataFrame, default=None
        What each feature adds to the forecast, as
        :meth:`~sklearn_attention.forecasting.Forecaster.explain_features` returns it: its first
        column is the forecast with the features at their usual values.
    name : str, default=None
        Name of the series.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes

    Examples
    --------
    >>> from sklearn_attention import KernelForecaster
    >>> from sklearn_attention.datasets import make_periodic_series
    >>> from sklearn_attention.inspection import ForecastDisplay
    >>> series = make_periodic_series("sine", 400)
    >>> model = KernelForecaster(horizon=60, lookback=60).fit(series[:340])
    >>> display = ForecastDisplay.from_estimator(model, y=series[340:], n_analogs=3)
    >>> len(display.forecast), list(display.intervals), len(display.analogs)
    (60, [0.5, 0.8, 0.95], 3)
    """

    _figure_size = 7.6, 3.8

    def __init__(
        self,
        history: Any,
        forecast: Any,
        *,
        intervals: Any = None,
        actual: Any = None,
        analogs: Any = None,
        effects: Any = None,
        name: str | None = None,
    ) -> None:
        self.history, self.forecast, self.intervals = history, forecast, intervals
        self.actual, self.analogs, self.effects, self.name = actual, analogs, effects, name

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X=None,
        y=None,
        *,
        series=None,
        coverage: float | Sequence[float] = (0.5, 0.8, 0.95),
        n_past=None,
        n_analogs: int = 0,
        effects: bool = False,
        ax=None,
        **kwargs,
    ) -> Self:
        """Draw the forecast of a fitted forecaster.

        Parameters
        ----------
        estimator : KernelForecaster or TransformerForecaster
            A fitted forecaster.
        X : object, default=None
            Steps to forecast, as for `predict`.
        y : Series, DataFrame or array-like, default=None
            Actual values, in any form that `fit` takes. Only those of the series that is drawn
            are used. An array begins with the first step of the forecast.
        series : object, default=None
            Name of the series; None is the first.
        coverage : float or list of float, default=(0.5, 0.8, 0.95)
            Probabilities of the intervals; an empty list draws none.
        n_past : int, default=None
            Number of steps of history; None is four times the number of steps of the forecast.
        n_analogs : int, default=0
            Number of similar windows of the same series to mark, for a KernelForecaster. They
            are those with the largest weights, but end at least `lookback` steps apart.
        effects : bool, default=False
            Whether to draw what known features add to the forecast, as bars that begin at the
            forecast with usual values of the features. All steps of X must be after the end of
            the series.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : ForecastDisplay
        """
        check_fitted(estimator)
        if not hasattr(estimator, "observed_"):
            remedy = "KernelForecaster or TransformerForecaster"
            raise unfit(estimator, "is not a forecaster", remedy)
        levels = check_probabilities("coverage", coverage).tolist() if np.size(coverage) else []
        # A copy of the forecaster returns pandas objects, whatever the library of the series.
        panel, estimator = estimator.observed_, copy.copy(estimator)
        estimator.observed_ = replace(panel, form=replace(panel.form, library="pandas"))
        position = series_position(series, panel.names)
        table = select_forecast(estimator.predict(X, coverage=levels or None), panel, position)
        past = _observed(panel, position)
        n_past = 4 * len(table) if n_past is None else n_past
        check_positive("n_past", n_past, integer=True)
        actual = None if y is None else _actual_values(y, panel, position, table.index)
        intervals = {
            level: table.iloc[:, 1 + 2 * i : 3 + 2 * i].set_axis(["lower", "upper"], axis=1)
            for i, level in enumerate(levels)
        }
        analogs = _analogs(estimator, X, panel, position, n_analogs) if n_analogs else None
        added = (
            select_forecast(estimator.explain_features(X), panel, position) if effects else None
        )
        display = cls(
            past if n_analogs else past.iloc[-n_past:],
            table.iloc[:, 0],
            intervals=intervals,
            actual=actual,
            analogs=analogs,
            effects=added,
            name=panel.names[position],
        )
        return display.plot(ax=ax, **kwargs)

    def _draw(self, ax):
        """Draw the history, the forecast, and what else was passed."""
        for level in sorted(self.intervals or {}, reverse=True):
            ends = self.intervals[level]
            ax.fill_between(
                ends.index, ends["lower"], ends["upper"], color=BLUE, alpha=0.18, lw=0
            )
        ax.plot(self.history, color=GREY, lw=1.2, label="observed")
        max_weight = max((weight for weight, _ in self.analogs or []), default=1.0)
        for number, (weight, window) in enumerate(self.analogs or []):
            opacity = 0.25 + 0.75 * weight / max_weight
            label = None if number else "similar windows, and what followed"
            ax.plot(window, color=ORANGE, lw=2.2, alpha=opacity, label=label)
        if self.effects is not None:
            _draw_effects(ax, self.effects)
        if self.actual is not None:
            ax.plot(self.actual, color=INK, lw=1.2, label="what happened")
        levels = ", ".join(f"{100 * level:g}" for level in sorted(self.intervals or {}))
        label = f"forecast; {levels} % intervals" if levels else "forecast"
        ax.plot(self.forecast, color=BLUE, lw=2, label=label)
        ax.set_ylabel("" if self.name is None else str(self.name))
        ax.margins(x=0.01)
        write_dates(ax, self.forecast.index)


def _draw_effects(ax, effects):
    """Draw bars of what features add to the forecast with usual values of the features.

    The bars begin at this forecast: positive effects are stacked above it, and negative ones
    below it.
    """
    usual, added = effects.iloc[:, 0], effects.iloc[:, 1:]
    largest = added.abs().mean().sort_values(ascending=False, kind="stable").index
    named, unnamed = list(largest[:_MAX_EFFECTS]), list(largest[_MAX_EFFECTS:])
    bars = {str(name): added[name] for name in named}
    if unnamed:
        bars[f"{len(unnamed)} others"] = added[unnamed].sum(axis=1)
    width = 0.8 * (effects.index[1] - effects.index[0]) if len(effects) > 1 else 0.8
    top, bottom = usual.to_numpy(), usual.to_numpy()
    for color, (name, effect) in zip(COLORS[1:], bars.items(), strict=False):
        heights = effect.to_numpy()
        start = np.where(heights >= 0, top, bottom)
        ax.bar(effects.index, heights, width, start, color=color, alpha=0.75, label=name)
        top, bottom = top + np.maximum(heights, 0), bottom + np.minimum(heights, 0)
    label = "forecast if features were usual"
    ax.plot(usual, color=BLUE, lw=1.4, ls=":", label=label)


def _actual_values(y, panel, position, index):
    """Return the actual values of one series, at plain times.

    `y` is the parameter, `position` that of the series in `panel`, and `index` has the times of
    the forecast.
    """
    y, name = pandas_if_dated(y), panel.names[position]
    if isinstance(y, dict) or is_tidy(y) or isinstance(getattr(y, "index", 0), pd.MultiIndex):
        table = read_series(y, earlier=panel, missing="interpolate")
        if table.row_counts[position]:
            return _observed(table, position)
        raise ValueError(
            f"y has no values of the series {name!r}: pass a y that contains them."
        )
    y = to_pandas(y)
    if isinstance(y, pd.DataFrame):
        if y.shape[1] > 1 and name not in y.columns:
            raise ValueError(
                f"y has the columns {list(y.columns)[:5]}, but none for {name!r}, the series "
                "to be drawn: pass its values as a Series, or in a column of that name."
            )
        y = y[name] if name in y.columns else y.iloc[:, 0]
    if isinstance(y, pd.Series):
        return y.set_axis(plain_times(y.index))
    y = np.asarray(y, dtype=np.float64)
    if y.size != max(y.shape, default=0):
        raise ValueError(
            f"y has shape {y.shape}, but one series is drawn: pass its values as an array of "
            "shape (n_steps,)."
        )
    y = y.ravel()[: len(index)]
    return pd.Series(y, index[: len(y)])


def _observed(panel, position):
    """Return the observations of the series at `position` of a panel, at plain times."""
    start, values = panel.starts[position], panel.observations[position]
    return pd.Series(values, plain_times(panel.time.index_between(start, start + len(values))))


def _analogs(forecaster, X, panel, position, k):
    """Return the `k` past windows of a series with the largest weights that do not overlap.

    `position` is that of the series in `panel`. The result has a pair for each window: its
    weight, and the window with the values that followed it.
    """
    if not hasattr(forecaster, "analogs_"):
        raise ValueError(
            f"n_analogs={k} draws similar windows of the past, which "
            f"{type(forecaster).__name__} does not have: pass n_analogs=0, or a "
            "KernelForecaster."
        )
    check_positive("n_analogs", k, integer=True)
    table = forecaster.explain(X, k=len(forecaster.analogs_.keys))
    if "series" in table:
        name = panel.names[position]
        table = table[(table["series"] == name) & (table["analog"] == name)]
    series, times = _observed(panel, position), panel.time
    ends = plain_times(times.index_between(0, len(times))).get_indexer(
        plain_times(pd.Index(table["time"]))
    )
    analogs, chosen_ends, lookback = [], [], forecaster.lookback_
    for end, weight in zip(ends - panel.starts[position], table["weight"], strict=True):
        # Windows that overlap are almost the same.
        is_separate = all(abs(end - chosen) >= lookback for chosen in chosen_ends)
        if len(analogs) < k and is_separate:
            window = series.iloc[max(0, end + 1 - lookback) : end + 1 + forecaster.horizon_]
            chosen_ends.append(end)
            analogs.append((float(weight), window))
    return analogs
