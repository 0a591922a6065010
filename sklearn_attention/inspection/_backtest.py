"""Forecasts from the past, beside the observations."""

from typing import Any, Self

import numpy as np
import pandas as pd

from .._frames import to_pandas
from ..forecasting._backtest import NAMES
from ._pipelines import unfit
from ._series import plain_times, series_position
from ._style import BLUE, GREY, INK, Display, write_dates


class BacktestDisplay(Display):
    """Picture of forecasts from several points in the past, beside the observations.

    Use it to see when a forecaster was right in the past; :class:`ForecastDisplay` shows the
    future.

    Make one by :meth:`from_estimator`, or by :meth:`from_predictions` from the result of
    `backtest`. The mean absolute error of each fold stands above its beginning, and the legend
    has the share of the observations within the intervals.

    Parameters
    ----------
    table : DataFrame
        What `backtest` returns for one series.
    name : str, default=None
        Name of the series.

    Attributes
    ----------
    errors_ : Series
        Mean absolute error of each fold.
    coverage_ : Series
        Share of the observations within the intervals of each coverage that was asked for.
    figure_ : Figure
    ax_ : Axes

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import KernelForecaster
    >>> from sklearn_attention.datasets import make_periodic_series
    >>> from sklearn_attention.inspection import BacktestDisplay
    >>> noise = 0.1 * np.random.default_rng(0).normal(size=400)
    >>> series = make_periodic_series("sine", 400) + noise
    >>> model = KernelForecaster(horizon=20, lookback=60)
    >>> display = BacktestDisplay.from_estimator(model, series, cv=3)
    >>> display.errors_.round(2).tolist()
    [0.1, 0.09, 0.07]
    >>> display.coverage_.round(2).to_dict()
    {0.9: 0.98}
    """

    _figure_size = 7.6, 3.8

    def __init__(self, table: Any, *, name: str | None = None) -> None:
        table = _with_standard_columns(to_pandas(table))
        self.table, self.name = table, name
        absolute_errors = (table["actual"] - table["forecast"]).abs()
        self.errors_ = absolute_errors.groupby(table["fold"]).mean()
        observed, shares = table.dropna(subset="actual"), {}
        for column in table:
            if str(column).startswith("lower_"):
                level = round(float(column.removeprefix("lower_")) / 100, 10)
                lower, upper = _interval_columns(level)
                is_inside = observed["actual"].between(observed[lower], observed[upper])
                shares[level] = is_inside.mean()
        self.coverage_ = pd.Series(shares, dtype=np.float64)

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X=None,
        y=None,
        *,
        cv: Any = 5,
        refit: Any = False,
        coverage: Any = 0.9,
        series=None,
        ax=None,
        **kwargs,
    ) -> Self:
        """Draw a backtest of a forecaster, which need not be fitted.

        Parameters
        ----------
        estimator : KernelForecaster or TransformerForecaster
            A clone is fitted; the estimator itself is not changed.
        X, y, cv, refit, coverage
            As for `backtest`: X is the series, or X has its features and y is the series.
        series : object, default=None
            Name of the series; None is the first.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : BacktestDisplay
        """
        if not hasattr(estimator, "backtest") or isinstance(estimator, type):
            remedy = "a forecaster, KernelForecaster(...) or TransformerForecaster(...)"
            raise unfit(estimator, "has no backtest", remedy)
        if X is None:
            raise ValueError(
                "X=None, but a backtest needs a series: pass it as X, or its features as X "
                "and the series as y."
            )
        table = estimator.backtest(X, y, cv=cv, refit=refit, coverage=coverage)
        return cls.from_predictions(table, series=series, ax=ax, **kwargs)

    @classmethod
    def from_predictions(cls, table, *, series=None, ax=None, **kwargs) -> Self:
        """Draw a result of `backtest`.

        Parameters
        ----------
        table : DataFrame
            What `backtest` returned, in any form: forecasts beside the observations. It has the
            columns "fold", "time", "forecast" and "actual", those of intervals, and "series" if
            there are several series.
        series : object, default=None
            Name of the series to draw; None is the first. The table of a single series has no
            names, and any `series` is written as its name.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : BacktestDisplay
        """
        table = _with_standard_columns(to_pandas(table))
        lacking = {"fold", "time", "forecast", "actual"}.difference(
            getattr(table, "columns", [])
        )
        if lacking or table.empty:
            fault = f"no columns {sorted(lacking)}" if lacking else "no rows"
            raise ValueError(
                f"table of type {type(table).__name__} has {fault}: pass what backtest returns."
            )
        if "series" in table:
            names = table["series"].unique().tolist()
            series = names[series_position(series, names)]
            table = table[table["series"] == series]
        return cls(table, name=series).plot(ax=ax, **kwargs)

    def _draw(self, ax):
        """Draw the observations, forecasts and intervals of all folds."""
        starts = []
        for number, (fold, rows) in enumerate(self.table.groupby("fold")):
            rows = rows.sort_values("time")
            time = plain_times(pd.Index(rows["time"]))
            for level, share in self.coverage_.items():
                lower, upper = _interval_columns(level)
                label = f"{100 * level:g} % interval: {100 * share:.0f} % within"
                style = {"color": BLUE, "alpha": 0.2, "lw": 0}
                style["label"] = None if number else label
                ax.fill_between(time, rows[lower], rows[upper], **style)
            ax.axvline(time[0], color=GREY, lw=0.8, ls="--")
            labels = [None, None] if number else ["what happened", "forecast"]
            ax.plot(time, rows["actual"], color=INK, lw=1.2, label=labels[0])
            ax.plot(time, rows["forecast"], color=BLUE, lw=2, label=labels[1])
            starts.append((fold, time[0]))
        # The errors of the folds are written along the top, where margins leave room.
        ax.margins(x=0.01, y=0.1)
        style = {"textcoords": "offset points", "va": "top", "color": GREY, "fontsize": "small"}
        for fold, start in starts:
            text, top = f"{self.errors_[fold]:.3g}", (start, 1)
            ax.annotate(text, top, (3, -2), xycoords=("data", "axes fraction"), **style)
        ax.set_title(f"mean absolute error {float(np.mean(self.errors_)):.3g}")
        ax.set_ylabel("" if self.name is None else str(self.name))
        write_dates(ax, time)


def _interval_columns(level):
    """Return the names of the columns with the lower and the upper ends of intervals."""
    return f"lower_{100 * level:g}", f"upper_{100 * level:g}"


def _with_standard_columns(table):
    """Rename the columns of a backtest in long format: "ds" becomes "time", and so on.

    The table of a backtest in another form has the standard names, and stays as it is.
    """
    if NAMES["time"] not in getattr(table, "columns", []):
        return table
    return table.rename(columns={long_name: name for name, long_name in NAMES.items()})
