"""Where a prediction comes from."""

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from .._validation import check_positive
from ._pipelines import last_step
from ._style import BLUE, GREY, INK, ORANGE, canvas


class ExplanationDisplay:
    """The training rows, windows or candidates that carry a prediction.

    Make one by :meth:`from_estimator`. A prediction is a baseline and the sum of what each row
    adds to it: its weight times the difference of its target from the baseline. Each bar begins
    where the one above ends.

    Parameters
    ----------
    labels : list of str
        What carries the prediction, the heaviest first.
    weights : ndarray of shape (k,)
        Their signed weights.
    values : ndarray of shape (k,)
        Their targets or forecasts.
    prediction : float
        What is explained.
    baseline : float
        Where the bars begin, such as the mean of all targets.
    name : str, default="prediction"
        What the axis is called.

    Attributes
    ----------
    contributions_ : ndarray of shape (k + 1,)
        What each adds to the baseline, and last what all others add: with the baseline they
        sum to the prediction.
    figure_ : Figure
    ax_ : Axes

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_attention import NadarayaWatsonRegressor
    >>> from sklearn_attention.inspection import ExplanationDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = NadarayaWatsonRegressor().fit(X[:-1], y[:-1])
    >>> display = ExplanationDisplay.from_estimator(model, X[-1:], k=3)
    >>> display.contributions_.round(1)
    array([-28. , -10.6,  -2.1, -25.1])
    """

    def __init__(self, labels, weights, values, *, prediction, baseline, name="prediction"):
        self.labels, self.weights, self.values = labels, weights, values
        self.prediction, self.baseline, self.name = prediction, baseline, name
        known = np.asarray(weights) * (np.asarray(values) - baseline)
        self.contributions_ = np.append(known, prediction - baseline - known.sum())

    @classmethod
    def from_estimator(cls, estimator, X=None, *, k=10, step=1, labels=None, ax=None):
        """Draw the explanation of one prediction.

        Parameters
        ----------
        estimator : regressor or TransformerForecaster
            Fitted, with a method `explain`, or a fitted pipeline that ends with one.
        X : array-like or data frame of shape (1, n_features), default=None
            The row that is explained. Of a forecaster what `explain` takes; one series.
        k : int, default=10
            How many rows or candidates to show; at most all there are.
        step : int, default=1
            Of a forecaster, the step ahead that is explained.
        labels : array-like of shape (n_samples,), default=None
            Names of the training rows; their numbers if None.
        ax : Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ExplanationDisplay

        Raises
        ------
        ValueError
            If the estimator does not explain one number.
        """
        check_is_fitted(estimator)
        check_positive("k", k, integer=True)
        if hasattr(estimator, "candidate_weights_"):
            return cls._of_forecaster(estimator, X, k, step).plot(ax=ax)
        model, rows = last_step(estimator, X)
        if not hasattr(model, "explain") or is_classifier(model) or hasattr(model, "horizon"):
            raise ValueError(
                f"{type(model).__name__} does not explain a number by the rows it comes from: "
                "pass a smoother, KernelAttentionRegressor or TransformerForecaster."
            )
        indices, weights, values = model.explain(rows, k=k)
        if values.shape[0] != 1 or values.ndim != 2:
            raise ValueError(
                f"the explanation has shape {values.shape}: pass one row as X, and a model of "
                "one output."
            )
        mean = float(np.average(model.values_, weights=model.key_weights_))
        named = [f"row {i}" if labels is None else str(labels[i]) for i in indices[0]]
        prediction = float(np.ravel(model.predict(rows))[0])
        display = cls(named, weights[0], values[0], prediction=prediction, baseline=mean)
        return display.plot(ax=ax)

    @classmethod
    def _of_forecaster(cls, forecaster, X, k, step):
        horizon = forecaster.horizon_
        if not 1 <= check_positive("step", step, integer=True) <= horizon:
            raise ValueError(f"step={step} is not within the horizon: pass 1 to {horizon}.")
        table = forecaster.explain(X)
        if "series" in table and table["series"].nunique() > 1:
            raise ValueError(
                "X asks for several series: pass a series, or steps of one, to explain one."
            )
        values, weights = table[step].to_numpy(), table["weight"].to_numpy()
        forecast = forecaster.predict(X)
        ahead = forecast.iloc[step - 1] if hasattr(forecast, "iloc") else forecast[step - 1]
        return cls(
            table["candidate"].tolist()[:k], weights[:k], values[:k],
            prediction=float(np.ravel(ahead)[0]), baseline=float(values.mean()),
            name=f"forecast {step} {'step' if step == 1 else 'steps'} ahead",
        )  # fmt: skip

    def plot(self, ax=None):
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        self : ExplanationDisplay
        """
        names = [
            f"{label}   {weight:.0%} of {value:.4g}"
            for label, weight, value in zip(self.labels, self.weights, self.values, strict=True)
        ]
        rest = 1 - np.sum(self.weights)
        if abs(rest) > 1e-6 or abs(self.contributions_[-1]) > 1e-6 * abs(self.prediction):
            names.append(f"all others   {rest:.0%}")
        moves = self.contributions_[: len(names)]
        begins = self.baseline + np.cumsum(moves) - moves
        with canvas(self, ax, size=(6.4, 1.3 + 0.32 * len(names))) as ax:
            places = np.arange(len(names))
            colors = [BLUE if move >= 0 else ORANGE for move in moves]
            ax.barh(places, moves, left=begins, color=colors, height=0.7)
            ends = begins + moves
            ax.vlines(ends[:-1], places[:-1], places[1:], color=GREY, lw=0.8)
            ax.axvline(self.baseline, color=GREY, lw=1, ls=":", label="baseline")
            ax.axvline(self.prediction, color=INK, lw=1, ls="--", label="prediction")
            ax.set_yticks(places, names)
            ax.invert_yaxis()
            ax.use_sticky_edges = False
            ax.margins(x=0.05, y=0.02)
            ax.set(xlabel=self.name, title=f"{self.baseline:.4g} → {self.prediction:.4g}")
            ax.tick_params(axis="y", length=0)
        return self
