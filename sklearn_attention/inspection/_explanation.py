"""The rows or candidates that a prediction averages."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.utils.validation import _num_samples

from .._validation import check_positive
from ._grid import label_text, row_names
from ._pipelines import last_step, predicted_class, unfit
from ._series import forecast_of, place_of
from ._style import (
    GREY,
    INK,
    Display,
    draw_waterfall,
    number_text,
    number_texts,
    plain_name,
)


class ExplanationDisplay(Display):
    """Picture of the training rows, windows or forecasts that a prediction averages.

    Use it to show someone why a single prediction is what it is.

    Make one by :meth:`from_estimator`. A prediction is a baseline plus the contributions of
    rows: weight times the difference of the target from the baseline. Each bar begins at the
    end of the one above. Names on the left include weights, which sum to 100 % in averages, and
    numbers on the right are what each bar adds: with the baseline they sum to the prediction.
    Rows that are not named have two bars, one for the positive and one for the negative
    contributions, since large ones may cancel. Below the axis is `weight_share_`.

    Parameters
    ----------
    labels : list of str
        Names of rows, windows or candidates, the largest weight first.
    weights : ndarray of shape (k,)
        Their signed weights.
    values : ndarray of shape (k,)
        Their targets or forecasts.
    prediction : float
        The prediction that is explained.
    baseline : float
        Beginning of the first bar, such as the mean of all targets.
    others : tuple of two ndarray of shape (n_others,), default=((), ())
        Weights and values of those that are not named.
    name : str, default="prediction"
        Label of the axis.
    remainder : str, default="remainder"
        Name of the part that comes from no row.
    classes : list of str, default=None
        Classes of the rows, to be written in place of their values.

    Attributes
    ----------
    contributions_ : ndarray of shape (k + 1,)
        Contribution of each, and last that of all others and the remainder: with the baseline
        they sum to the prediction.
    others_ : ndarray of shape (2,)
        Sums of the positive, and of the negative, contributions that are not named.
    remainder_ : float
        Part that comes from no row, such as boosted trees, or the effect of averaging
        logarithms of forecasts. The last contribution is the sum of `others_` and this.
    weight_share_ : float
        Share of those named in the sum of all absolute weights.
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
    >>> display.contributions_.round()
    array([-26.,  -6.,  -5., -37.])
    >>> display.others_.round()
    array([  1., -38.])
    """

    def __init__(
        self,
        labels: Sequence[str],
        weights: np.ndarray,
        values: np.ndarray,
        *,
        prediction: float,
        baseline: float,
        others: Any = ((), ()),
        name: str = "prediction",
        remainder: str = "remainder",
        classes: Sequence[str] | None = None,
    ) -> None:
        self.labels, self.weights, self.values = labels, weights, values
        self.prediction, self.baseline, self.others = prediction, baseline, others
        self.name, self.remainder, self.classes = name, remainder, classes
        named = np.asarray(weights) * (np.asarray(values) - baseline)
        self.contributions_ = np.append(named, prediction - baseline - named.sum())
        other_weights, other_values = np.asarray(others, dtype=np.float64)
        moves = other_weights * (other_values - baseline)
        self.others_ = np.array([moves[moves > 0].sum(), moves[moves < 0].sum()])
        self.remainder_ = float(self.contributions_[-1] - self.others_.sum())
        named_size = np.abs(weights).sum()
        total = np.abs(other_weights).sum() + named_size
        self.weight_share_ = float(named_size / total) if total > 0 else 0.0

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X=None,
        y=None,
        *,
        k: int = 10,
        step: int = 1,
        series=None,
        labels=None,
        class_label: Any = None,
        ax=None,
        **kwargs,
    ) -> Self:
        """Draw the explanation of one prediction.

        Parameters
        ----------
        estimator : regressor, classifier or TransformerForecaster
            Fitted, with a method `explain`, or a fitted pipeline that ends with one.
        X : array-like or data frame of shape (1, n_features), default=None
            The row that is explained; the index of a data frame names it. For a forecaster the
            argument of `explain`, None for the steps after the end of the series.
        y : None
            Ignored; all displays have it.
        k : int, default=10
            Number of rows or candidates to show; all if there are fewer.
        step : int, default=1
            The step ahead that is explained, for a forecaster.
        series : object, default=None
            Name of the series of a forecaster of several; None is the first.
        labels : array-like of shape (n_samples,) or data frame, default=None
            Names of the training rows, or a data frame of them, whose index names them. None
            takes the index of the frame in `fit`, or positions.
        class_label : label, default=None
            Class of a classifier that rows speak for or against; None is the predicted one.
            Rows of this class have the value 1 and all others 0, so that the bars lead from
            the frequency of the class to its weighted share, which is the probability of
            NadarayaWatsonClassifier and the score of KernelAttentionClassifier, before this is
            calibrated.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : ExplanationDisplay

        Raises
        ------
        ValueError
            If the estimator does not explain one number or class.
        """
        check_positive("k", k, integer=True)
        model, rows = last_step(estimator, X)
        if hasattr(model, "candidate_weights_"):
            display = cls._of_forecaster(model, rows, k, step, series, labels)
            return display.plot(ax=ax, **kwargs)
        _check_one_prediction(model, X, rows)
        is_class, training_values = is_classifier(model), model.values_
        (indices,), (weights,), (values,) = model._explain(rows, len(model.keys_))
        options: dict[str, Any] = {}
        if is_class:
            if class_label is None:
                class_label = predicted_class(model, rows)
            position = _class_position(model, class_label)
            label = model.classes_.tolist()[position]
            options = {
                "classes": [*map(str, values[:k])],
                "name": f"weighted share of {label!r}",
            }
            training_values = training_values[:, position]
            values = (values == class_label).astype(float)
        elif class_label is not None:
            raise ValueError(f"class_label={class_label!r} is for classifiers: omit it.")
        mean = float(np.average(training_values, weights=model.key_weights_))
        if getattr(model, "boosting_share_", 0):
            # The stack with trees multiplies the kernel part by a factor.
            weights = weights * model._stacking[0, 0]
            options["remainder"] = "boosted trees"
        prediction = float(weights @ values if is_class else np.ravel(model.predict(rows))[0])
        _check_finite(prediction)
        row = row_names(X)
        if row is not None and not is_class:
            options["name"] = f"row {row[0]} of X: predicted {number_text(prediction, '.4g')}"
        display = cls(
            _names_of_rows(labels, model, indices, k),
            weights[:k],
            values[:k],
            others=(weights[k:], values[k:]),
            prediction=prediction,
            baseline=mean,
            **options,
        )
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def _of_forecaster(cls, forecaster, X, k, step, series, labels):
        """Explain a forecast `step` steps ahead by the candidates that it averages."""
        if labels is not None:
            raise ValueError(
                "labels name training rows, but a forecaster has none: pass labels=None."
            )
        horizon = forecaster.horizon_
        if not 1 <= check_positive("step", step, integer=True) <= horizon:
            raise ValueError(f"step={step} is not within the horizon: pass 1 to {horizon}.")
        panel = forecaster.observed_
        place = place_of(series, panel.names)
        table = forecaster.explain(X)
        if "series" in table:
            table = table[table["series"] == panel.names[place]]
        values, weights = table[step].to_numpy(), table["weight"].to_numpy()
        forecast = forecast_of(forecaster.predict(X), panel, place).iloc[:, 0]
        if len(forecast) < step:
            raise ValueError(
                f"step={step} is after the last step of the forecast: pass a step from 1 to "
                f"{len(forecast)}."
            )
        when = row_names(forecast)[step - 1]
        which = f"{panel.names[place]}, " if len(panel.names) > 1 else ""
        return cls(
            table["candidate"].tolist()[:k],
            weights[:k],
            values[:k],
            others=(weights[k:], values[k:]),
            baseline=float(values.mean()),
            prediction=float(forecast.iloc[step - 1]),
            name=f"forecast of {which}{when}, {step} {'step' if step == 1 else 'steps'} ahead",
            remainder="averages of logarithms" if forecaster.log_ else "remainder",
        )

    def _bars(self):
        """Return names of all bars, and the contributions that are their lengths."""
        texts = [f" of {number_text(value, '.4g')}" for value in self.values]
        directions = "up", "down"
        if self.classes:
            texts = [f", {plain_name(str(name), 20)}" for name in self.classes]
            directions = "for", "against"
        names = [
            f"{plain_name(str(label))}   {number_text(weight, '.0%')}{text}"
            for label, weight, text in zip(self.labels, self.weights, texts, strict=True)
        ]
        moves = self.contributions_[:-1].tolist()
        weights, values = np.asarray(self.others, dtype=np.float64)
        signs = np.sign(weights * (values - self.baseline))
        for sign, move, direction in zip((1, -1), self.others_, directions, strict=True):
            of_sign = signs == sign
            if of_sign.any():
                weight = number_text(weights[of_sign].sum(), ".0%")
                names.append(f"{of_sign.sum()} others {direction}   {weight}")
                moves.append(move)
        # Rounding errors, such as those of single precision, are no remainder.
        if abs(self.remainder_) > 1e-5 * (abs(self.prediction) + np.abs(moves).sum()):
            names.append(self.remainder)
            moves.append(self.remainder_)
        return names, moves

    @property
    def _figure_size(self):
        return 6.4, 1.5 + 0.32 * len(self._bars()[0])

    def _draw(self, ax):
        names, moves = self._bars()
        draw_waterfall(ax, self.baseline, moves, names, number_texts(moves, sign="+"))
        ax.axvline(self.baseline, color=GREY, lw=1, ls=":", label="baseline")
        ax.axvline(self.prediction, color=INK, lw=1, ls="--", label="prediction")
        form = ".0%" if self.classes else ".4g"
        ends = number_text(self.baseline, form), number_text(self.prediction, form)
        ax.set_title(" → ".join(ends))
        label = f"{self.name}\n{self.weight_share_:.0%} of absolute weight is named"
        ax.set_xlabel(label, parse_math=False)


def _check_one_prediction(model, X, rows):
    """Raise ValueError unless the model explains its prediction for one row and one output.

    `rows` is X as it reaches the model.
    """
    if not hasattr(model, "explain") or hasattr(model, "horizon"):
        fault = "does not predict by a weighted average of training rows"
        remedy = (
            "a smoother such as NadarayaWatsonRegressor, kernel attention or a "
            "TransformerForecaster"
        )
        raise unfit(model, fault, remedy)
    if X is None:
        raise ValueError("X=None: pass the row that is explained, such as X_test[:1].")
    if _num_samples(rows) != 1:
        raise ValueError(f"X has {_num_samples(rows)} rows: pass one row, such as X[:1].")
    if is_classifier(model):
        n_outputs = len(model.classes_) if isinstance(model.classes_, list) else 1
    else:
        n_outputs = model.values_.shape[1] if model.values_.ndim == 2 else 1
    if n_outputs != 1:
        remedy = "one that was fitted on a single output"
        raise unfit(model, f"has {n_outputs} outputs", remedy)


def _check_finite(prediction):
    """Raise ValueError if a prediction is NaN or infinite."""
    if not np.isfinite(prediction):
        raise ValueError(
            f"the prediction of X is {prediction}, since no training row is near: pass "
            "another row, or fit with empty='nearest'."
        )


def _class_position(model, class_label):
    """Return the position of a class among those of a classifier of one output."""
    classes = model.classes_.tolist()
    try:
        return classes.index(class_label)
    except (ValueError, TypeError):  # comparisons with pandas.NA have no truth value
        raise ValueError(
            f"class_label={class_label!r} is no class: pass one of {classes}."
        ) from None


def _names_of_rows(labels, model, indices, k):
    """Return names of the `k` training rows with the largest weights.

    `labels` is the parameter, and `indices` (n_rows,) has the rows in the order of weights.
    """
    if labels is None:
        stored = model._row_labels
        return [f"row {label_text(i if stored is None else stored[i])}" for i in indices[:k]]
    if isinstance(labels, str) or not np.iterable(labels):
        raise ValueError(
            f"labels={labels!r} is not valid: pass a list with a name for each training row."
        )
    names = row_names(labels) if isinstance(labels, pd.DataFrame) else list(labels)
    # Kernel attention stores neither duplicates nor rows without weight.
    exact = len(names) == len(indices) or hasattr(model, "members_")
    if not exact or len(names) <= indices.max():
        raise ValueError(
            f"labels has {len(names)} names, but {indices.max() + 1} rows were fitted: pass a "
            "name for each of these."
        )
    return [label_text(names[i]) for i in indices[:k]]
