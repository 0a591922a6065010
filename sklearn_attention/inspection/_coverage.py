"""Coverage of intervals, nominal against actual."""

import numpy as np
from scipy.stats import binom

from .._validation import check_probabilities
from ._errors import named
from ._pipelines import check_fitted
from ._style import BLUE, GREY, canvas

_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


class CoverageDisplay:
    """Share of observations within intervals, over their nominal coverage.

    Make one by :meth:`from_estimator` or :meth:`from_predictions`. On the diagonal the coverage
    is as stated; below it intervals are too narrow. The grey region contains the shares of so
    many independent observations with probability 95 %.

    Parameters
    ----------
    coverage : ndarray of shape (n_levels,)
        Nominal coverage.
    actual : ndarray of shape (n_levels,)
        Share of observations within.
    n_samples : int or None
        Number of independent observations; None for steps of series.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes

    Examples
    --------
    >>> from sklearn_attention import LocalPolynomialRegressor
    >>> from sklearn_attention.datasets import make_smoothing_curve
    >>> from sklearn_attention.inspection import CoverageDisplay
    >>> X, y = make_smoothing_curve("heavisine", 400, signal_to_noise=3, random_state=0)
    >>> model = LocalPolynomialRegressor().fit(X[::2], y[::2])
    >>> display = CoverageDisplay.from_estimator(model, X[1::2], y[1::2], coverage=[0.5, 0.9])
    >>> display.actual.round(2)
    array([0.51, 0.9 ])
    """

    def __init__(self, coverage, actual, *, n_samples=None):
        self.coverage, self.actual, self.n_samples = coverage, actual, n_samples

    @classmethod
    @named
    def from_estimator(cls, estimator, X=None, y=None, *, coverage=_LEVELS, ax=None, **kwargs):
        """Draw the coverage of the intervals of an estimator.

        Parameters
        ----------
        estimator : regressor or forecaster
            One with `predict_interval`, fitted; or a forecaster, of which `backtest` fits
            clones.
        X, y : array-like
            Rows that were not fitted, and their targets of one output; for a forecaster the
            arguments of `backtest`.
        coverage : array-like of shape (n_levels,), default=(0.1, 0.2, ..., 0.9, 0.95)
            Probabilities, between 0 and 1.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : CoverageDisplay
        """
        levels = check_probabilities("coverage", coverage)
        if X is None:
            raise ValueError(
                "X=None: pass rows that were not fitted, and y, their targets; of a forecaster "
                "its series."
            )
        if hasattr(estimator, "backtest") and not isinstance(estimator, type):
            table = estimator.backtest(X, y, coverage=levels.tolist())
            ends = [
                table[[f"lower_{100 * level:g}", f"upper_{100 * level:g}"]].to_numpy()
                for level in levels
            ]
            shares = _shares(table["actual"].to_numpy(), ends)
            return cls(levels, shares).plot(ax=ax, **kwargs)
        check_fitted(estimator)
        if not hasattr(estimator, "predict_interval"):
            raise ValueError(
                f"estimator is {type(estimator).__name__}, which has no intervals: pass one "
                "with predict_interval, or use CoverageDisplay.from_predictions."
            )
        if y is None:
            raise ValueError("y=None: pass the targets of X.")
        intervals = [estimator.predict_interval(X, coverage=level) for level in levels]
        return cls.from_predictions(y, intervals, levels, ax=ax, **kwargs)

    @classmethod
    @named
    def from_predictions(cls, y, intervals, coverage, *, ax=None, **kwargs):
        """Draw the coverage of given intervals.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Observations, independent of one another.
        intervals : array-like of shape (n_levels, n_samples, 2)
            For each level lower and upper ends.
        coverage : array-like of shape (n_levels,)
            Their nominal coverage, between 0 and 1.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : CoverageDisplay
        """
        levels = check_probabilities("coverage", coverage)
        y, intervals = np.asarray(y), np.asarray(intervals)
        if y.ndim != 1:
            raise ValueError(f"y has shape {y.shape}: pass one output, (n_samples,).")
        if intervals.shape != (len(levels), len(y), 2):
            raise ValueError(
                f"intervals has shape {intervals.shape}: pass (n_levels, n_samples, 2), here "
                f"({len(levels)}, {len(y)}, 2)."
            )
        return cls(levels, _shares(y, intervals), n_samples=len(y)).plot(ax=ax, **kwargs)

    @named
    def plot(self, ax=None):
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        self : CoverageDisplay
        """
        with canvas(self, ax, size=(4.8, 4.4)) as ax:
            ax.plot([0, 1], [0, 1], color=GREY, lw=1, ls="--")
            if self.n_samples is not None:
                levels = np.linspace(0, 1, 101)
                ends = binom.interval(0.95, self.n_samples, levels)
                ends = np.array(ends) / self.n_samples
                ends[:, 0], ends[:, -1] = 0, 1
                ax.fill_between(levels, *ends, color=GREY, alpha=0.25, lw=0)
            ax.plot(self.coverage, self.actual, "o-", color=BLUE, ms=5, clip_on=False)
            ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
            ax.set(xlabel="coverage asked for", ylabel="share of observations within")
        return self


def _shares(y, intervals):
    """Share of the observations within the intervals of each level, (n_levels,)."""
    return np.array([np.mean((y >= ends[:, 0]) & (y <= ends[:, 1])) for ends in intervals])
