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
from ._series import select_forecast, series_position
from ._style import (
    GREY,
    INK,
    Display,
    draw_waterfall,
    format_number,
    format_numbers,
    printable_name,
)


class ExplanationDisplay(Display):
    """Picture of the training rows, windows or forecasts that a prediction averages.

    Use it to show someone why a single prediction is what it is.

    Make one by :meth:`from_estimator`. A prediction is a baseline plus the contributions of
    rows. The contribution of a row is its weight times the difference of its target from the
    baseline. Each bar begins where the one above it ends. Names on the left include weights,
    which sum to 100 % if the prediction is an average. Numbers on the right say what each bar
    adds; together with the baseline they sum to the prediction. Rows that are not named have
    two bars, one for their positive and one for their negative contributions, since large ones
    may cancel. The label of the axis includes `weight_share_`.

    Parameters
    ----------
    labels : list of str
        Names of rows, windows or candidates, the largest weight first.
    weights : ndarray of shape (k,)
        Signed weights of these.
    values : ndarray of shape (k,)
        Targets of these rows or windows, or forecasts of these candidates.
    prediction : float
        The prediction that is explained.
    baseline : float
        Beginning of the first bar, such as the mean of all targets.
    others : tuple of two ndarray of shape (n_others,), default=((), ())
        Weights and values of the rows or candidates that are not named.
    name : str, default="prediction"
        Label of the axis.
    remainder : str, default="remainder"
        Name of the part of the prediction that comes from no row.
    classes : list of str, default=None
        Classes of the rows, which are written in place of their values.

    Attributes
    ----------
    contributions_ : ndarray of shape (k + 1,)
        Contributions of those that are named. The last one is that of all others and of the
        remainder: with the baseline, all contributions sum to the prediction.
    others_ : ndarray of shape (2,)
        Sum of the positive contributions of rows that are not named, and sum of their negative
        ones.
    remainder_ : float
        Part of the prediction that comes from no row, such as boosted trees, or the effect of
        averaging logarithms of forecasts. The last contribution is this plus the sum of
        `others_`.
    weight_share_ : float
        Sum of the absolute weights of those that are named, divided by the sum of all.
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
        unnamed = other_weights * (other_values - baseline)
        self.others_ = np.array([unnamed[unnamed > 0].sum(), unnamed[unnamed < 0].sum()])
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
            Name of the series whose forecast is explained, for a forecaster of several series;
            None is the first.
        labels : array-like of shape (n_samples,) or data frame, default=None
            Names of the training rows, or a data frame of these rows, whose index has their
            names. None takes the index of the data frame in `fit`, or the positions of rows.
        class_label : label, default=None
            Class of a classifier that rows speak for or against; None is the predicted one.
            Rows of this class have the value 1 and all others 0. So the bars lead from the
            frequency of the class to its weighted share. This is the probability that
            NadarayaWatsonClassifier predicts, and the score of KernelAttentionClassifier before
            it is calibrated.
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
            display = cls._from_candidates(model, rows, k, step, series, labels)
        else:
            display = cls._from_training_rows(model, X, rows, k, labels, class_label)
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def _from_training_rows(cls, model, X, rows, k, labels, class_label):
        """Explain the prediction for one row by the training rows that it averages.

        `X` is the row as it was passed, and `rows` has it as it reaches the model.
        """
        _check_one_prediction(model, X, rows)
        # Indices, weights and values of all training rows, the largest weight first.
        (indices,), (weights,), (values,) = model._explain(rows, len(model.keys_))
        training_values = model.values_
        options: dict[str, Any] = {}
        if is_classifier(model):
            if class_label is None:
                class_label = predicted_class(model, rows)
            position = _class_position(model, class_label)
            label = model.classes_.tolist()[position]
            options["classes"] = [*map(str, values[:k])]
            options["name"] = f"weighted share of {label!r}"
            training_values = training_values[:, position]
            values = (values == class_label).astype(float)
        elif class_label is not None:
            raise ValueError(f"class_label={class_label!r} is for classifiers: omit it.")
        if getattr(model, "boosting_share_", 0):
            # The prediction is a sum: a factor times the average of the rows, plus trees.
            weights = weights * model._stacking[0, 0]
            options["remainder"] = "boosted trees"
        if is_classifier(model):
            prediction = float(weights @ values)
        else:
            prediction = float(np.ravel(model.predict(rows))[0])
        _check_finite(prediction)
        row = row_names(X)
        if row is not None and not is_classifier(model):
            options["name"] = f"row {row[0]} of X: predicted {format_number(prediction, '.4g')}"
        return cls(
            _names_of_rows(labels, model, indices, k),
            weights[:k],
            values[:k],
            others=(weights[k:], values[k:]),
            prediction=prediction,
            baseline=float(np.average(training_values, weights=model.key_weights_)),
            **options,
        )

    @classmethod
    def _from_candidates(cls, forecaster, X, k, step, series, labels):
        """Explain the forecast `step` steps ahead by the candidates that it averages."""
        if labels is not None:
            raise ValueError(
                "labels name training rows, but a forecaster has none: pass labels=None."
            )
        horizon = forecaster.horizon_
        if not 1 <= check_positive("step", step, integer=True) <= horizon:
            raise ValueError(f"step={step} is not within the horizon: pass 1 to {horizon}.")
        panel = forecaster.observed_
        position = series_position(series, panel.names)
        table = forecaster.explain(X)
        if "series" in table:
            table = table[table["series"] == panel.names[position]]
        values, weights = table[step].to_numpy(), table["weight"].to_numpy()
        forecast = select_forecast(forecaster.predict(X), panel, position).iloc[:, 0]
        if len(forecast) < step:
            raise ValueError(
                f"step={step} is after the last step of the forecast: pass a step from 1 to "
                f"{len(forecast)}."
            )
        time = row_names(forecast)[step - 1]
        series_name = f"{panel.names[position]}, " if len(panel.names) > 1 else ""
        n_steps = "1 step" if step == 1 else f"{step} steps"
        return cls(
            table["candidate"].tolist()[:k],
            weights[:k],
            values[:k],
            others=(weights[k:], values[k:]),
            baseline=float(values.mean()),
            prediction=float(forecast.iloc[step - 1]),
            name=f"forecast of {series_name}{time}, {n_steps} ahead",
            remainder="averages of logarithms" if forecaster.log_ else "remainder",
        )

    def _bars(self):
        """Return the names of all bars, and their signed lengths, which are contributions.

        There are bars for the named rows, for the positive and the negative contributions of
        all others, and for the remainder, unless this is due to rounding.
        """
        texts = [f" of {format_number(value, '.4g')}" for value in self.values]
        directions = "up", "down"
        if self.classes:
            texts = [f", {printable_name(str(name), 20)}" for name in self.classes]
            directions = "for", "against"
        names = [
            f"{printable_name(str(label))}   {format_number(weight, '.0%')}{text}"
            for label, weight, text in zip(self.labels, self.weights, texts, strict=True)
        ]
        moves = self.contributions_[:-1].tolist()
        weights, values = np.asarray(self.others, dtype=np.float64)
        signs = np.sign(weights * (values - self.baseline))
        for sign, move, direction in zip((1, -1), self.others_, directions, strict=True):
            has_sign = signs == sign
            if has_sign.any():
                weight = format_number(weights[has_sign].sum(), ".0%")
                names.append(f"{has_sign.sum()} others {direction}   {weight}")
                moves.append(move)
        # A smaller remainder may be due to rounding in single precision.
        if abs(self.remainder_) > 1e-5 * (abs(self.prediction) + np.abs(moves).sum()):
            names.append(self.remainder)
            moves.append(self.remainder_)
        return names, moves

    @property
    def _figure_size(self):
        return 6.4, 1.5 + 0.32 * len(self._bars()[0])

    def _draw(self, ax):
        """Draw the bars, and lines at the baseline and at the prediction."""
        names, moves = self._bars()
        draw_waterfall(ax, self.baseline, moves, names, format_numbers(moves, sign="+"))
        ax.axvline(self.baseline, color=GREY, lw=1, ls=":", label="baseline")
        ax.axvline(self.prediction, color=INK, lw=1, ls="--", label="prediction")
        form = ".0%" if self.classes else ".4g"
        ends = format_number(self.baseline, form), format_number(self.prediction, form)
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

    `labels` is the parameter, and `indices` (n_rows,) has the positions of training rows, the
    one with the largest weight first.
    """
    if labels is None:
        stored = model._row_labels
        return [f"row {label_text(i if stored is None else stored[i])}" for i in indices[:k]]
    if isinstance(labels, str) or not np.iterable(labels):
        raise ValueError(
            f"labels={labels!r} is not valid: pass a list with a name for each training row."
        )
    names = row_names(labels) if isinstance(labels, pd.DataFrame) else list(labels)
    # Kernel attention stores neither duplicates nor rows without weight: it has fewer rows.
    has_right_size = len(names) == len(indices) or hasattr(model, "members_")
    if not has_right_size or len(names) <= indices.max():
        raise ValueError(
            f"labels has {len(names)} names, but {indices.max() + 1} rows were fitted: pass a "
            "name for each of these."
        )
    return [label_text(names[i]) for i in indices[:k]]
