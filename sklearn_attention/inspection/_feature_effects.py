"""How much each feature moves predictions of a table."""

import itertools
import math
from typing import Any, Self

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from scipy.special import expit, logit
from sklearn.base import is_classifier
from sklearn.utils.validation import _num_samples

from .._frames import to_pandas
from .._shapley import BASE_VALUE, refuse_column
from .._validation import check_choice, check_positive
from ._grid import label_text
from ._pipelines import column_names, last_step, predicted_class, unfit
from ._style import (
    BLUE,
    GREY,
    INK,
    Display,
    canvas,
    draw_waterfall,
    format_number,
    format_numbers,
    printable_name,
    size_in_points,
    write_bar_names,
)

# Percentages that are written along an axis of log-odds. The second list, of all whole numbers,
# is used if fewer than two of the first are on the axis.
_PERCENTAGES = (0.1, 0.5, 1, 2, 5, *range(10, 100, 10), 95, 98, 99, 99.5, 99.9), range(1, 100)
# Factors of odds that are written along an axis of effects.
_FACTORS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)
# Dots are stacked in this many bins along a line. A stack fills the height of the line if it is
# the largest one, and has at least `_FULL_STACK` dots.
_BINS, _FULL_STACK = 80, 12


class FeatureEffectsDisplay(Display):
    """Picture of how much each feature moves predictions of a table.

    Use it to show someone which columns made a prediction what it is, or which columns matter
    most.

    Make one by :meth:`from_estimator`. For one row it is a waterfall: the bars lead from a
    typical row to this one, the largest effect first. For several rows each feature has a line
    with a dot for each row, whose colour is the rank of the feature's value. Effects of classes
    are in log-odds; the axis then has probabilities, and the bars say by which factor the odds
    change.

    Parameters
    ----------
    effects : DataFrame of shape (n_rows, 1 + n_features)
        What `explain_features` returns: "base value", and the effect of each feature.
    X : DataFrame of shape (n_rows, n_features)
        Values of the features, in columns with the names of the features.
    name : str, default="the prediction"
        What is predicted, which is written in the title and along the axis.
    is_log_odds : bool, default=False
        Whether effects are in log-odds.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes

    See Also
    --------
    ExplanationDisplay : The training rows, in place of the features, that carry a prediction.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_attention import NadarayaWatsonRegressor
    >>> from sklearn_attention.inspection import FeatureEffectsDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> X = X[["bmi", "bp", "s5"]]
    >>> model = NadarayaWatsonRegressor().fit(X[:-9], y[:-9])
    >>> display = FeatureEffectsDisplay.from_estimator(model, X[-1:], name="the progression")
    >>> display.effects.round()
         base value   bmi    bp   s5
    441       152.0 -26.0 -15.0 -4.0
    """

    def __init__(
        self,
        effects: pd.DataFrame,
        X: pd.DataFrame,
        *,
        name: str = "the prediction",
        is_log_odds: bool = False,
    ) -> None:
        self.effects, self.X, self.name, self.is_log_odds = effects, X, name, is_log_odds

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X=None,
        y=None,
        *,
        background=None,
        class_label: Any = None,
        name: str | None = None,
        ax=None,
        **kwargs,
    ) -> Self:
        """Explain rows by `explain_features`, and draw the effects.

        Parameters
        ----------
        estimator : regressor or classifier
            Fitted, with a method `explain_features` for tables, or a fitted pipeline or search
            that ends with one. The effects are then those of the columns that reach the last
            step, and are shown with the values of X if X has columns of the same names.
        X : array-like or data frame of shape (n_rows, n_features)
            Rows whose predictions are explained.
        y : None
            Ignored; all displays have it.
        background : array-like of shape (n_background, n_features), default=None
            Rows, in the form of X, whose mean prediction is that of the typical row. By default
            they are training rows, as in `explain_features`.
        class_label : label, default=None
            Class whose probability is explained. By default the class that is predicted for a
            single row, and the second of two classes for several rows.
        name : str, default=None
            What is predicted, which is written in the title and along the axis, such as "the
            price in dollars". By default "the prediction", or "the probability of" the class.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : FeatureEffectsDisplay

        Raises
        ------
        ValueError
            If the estimator does not explain features or has several outputs, X is None, or
            several rows of more than two classes have no `class_label`.
        """
        if X is None:
            raise ValueError("X=None: pass the rows that are explained, such as X_test[:1].")
        model, rows = last_step(estimator, X)
        if not hasattr(model, "explain_features") or hasattr(model, "horizon"):
            fault = "does not explain the features of a table"
            raise unfit(model, fault, "a smoother, kernel attention or a transformer of tables")
        is_log_odds = is_classifier(model)
        if is_log_odds and class_label is None and not isinstance(model.classes_, list):
            class_label = _usual_class(model, rows)
        class_label = class_label.item() if isinstance(class_label, np.generic) else class_label
        if background is not None:
            background = last_step(estimator, background)[1]
        effects = model.explain_features(rows, background=background, class_label=class_label)
        if isinstance(effects, list):
            raise unfit(model, f"has {len(effects)} outputs", "one fitted on a single output")
        columns, effects, frame = (
            column_names(estimator, rows),
            to_pandas(effects),
            to_pandas(X),
        )
        names = effects.columns[1:] if columns is None else columns
        refuse_column(names, BASE_VALUE, "mean prediction")
        effects = effects.set_axis([BASE_VALUE, *names], axis=1)
        values = pd.DataFrame(to_pandas(rows)).set_axis(names, axis=1)
        if isinstance(frame, pd.DataFrame):
            effects, values = (table.set_axis(frame.index) for table in (effects, values))
            # Steps of a pipeline may have scaled the values of X.
            unscaled = [column for column in columns or () if column in frame]
            values[unscaled] = frame[unscaled]
        if name is None:
            name = f"the probability of {class_label!r}" if is_log_odds else "the prediction"
        return cls(effects, values, name=name, is_log_odds=is_log_odds).plot(ax, **kwargs)

    def plot(self, ax=None, *, kind: str = "auto", max_features: int = 10) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        kind : {"auto", "bar"}, default="auto"
            "auto" draws a waterfall for one row, and dots for several. "bar" draws the mean
            absolute effect of each feature over the rows.
        max_features : int, default=10
            Number of features to show, those with the largest mean absolute effects. The
            waterfall has one bar for all others.

        Returns
        -------
        self : FeatureEffectsDisplay
        """
        check_choice("kind", kind, ("auto", "bar"))
        check_positive("max_features", max_features, integer=True)
        if not self.effects.index.equals(self.X.index):
            raise ValueError(
                f"effects have {len(self.effects)} rows and X has {len(self.X)}, or indices "
                "differ: pass the values of the rows whose effects these are."
            )
        sizes = self.effects.drop(columns=BASE_VALUE).abs().mean()
        sizes = sizes.sort_values(ascending=False, kind="stable")
        names, other_names = list(sizes.index[:max_features]), list(sizes.index[max_features:])
        width = 8.0 if self.is_log_odds else 7.0  # texts of log-odds are longer
        with canvas(self, ax, size=(width, 2.0 + 0.36 * len(names))) as ax:
            if kind == "bar":
                self._draw_sizes(ax, sizes[names])
            elif len(self.effects) == 1:
                self._draw_waterfall(ax, names, other_names)
            else:
                self._draw_dots(ax, names)
        return self

    def _draw_waterfall(self, ax, names, other_names):
        """Draw bars that lead from the typical row to the row that is explained.

        Each feature of `names` has a bar, and all of `other_names` share one.
        """
        row, label = self.effects.iloc[0], self.effects.index[0]
        labels = [
            f"{printable_name(name)} = {_cell_text(self.X[name].iloc[0])}" for name in names
        ]
        moves = [*row[names]]
        if other_names:
            labels.append(f"{len(other_names)} other{'s' if len(other_names) > 1 else ''}")
            moves.append(row[other_names].sum())
        # The first bar stands for the typical row, and the last one for the row that is
        # explained. Both have no length.
        moves = np.array([0.0, *moves, 0.0])
        ends = row[BASE_VALUE] + np.cumsum(moves)
        texts = self._waterfall_texts(ends, moves)
        row_name = label if isinstance(label, str) else f"{self._row_word} {label_text(label)}"
        labels = [f"typical {self._row_word}", *labels, printable_name(row_name)]
        artists = draw_waterfall(ax, ends[0], moves, labels, texts)
        for artist in (artists[0], artists[-1]):
            artist.set_fontweight("bold")
        ax.plot(ends[[0, -1]], [0, len(ends) - 1], "o", color=INK)
        if self.is_log_odds:
            places = [logit(np.array(percent) / 100) for percent in _PERCENTAGES]
            _write_ticks(ax, places, lambda x: f"{100 * expit(x):.3g}%")
        ax.set_title(f"Why {self.name} is {texts[-1]}", parse_math=False)
        ax.set_xlabel(f"{self.name}\nblue raises it, orange lowers it", parse_math=False)

    def _waterfall_texts(self, ends, moves):
        """Return the texts of all bars, given their ends and signed lengths.

        The texts of the first and the last bar are the predictions of the two rows, and the
        others say what a feature adds. If the effects are in log-odds, they say how it changes
        the probability, and by which factor it changes the odds.
        """
        if not self.is_log_odds:
            start, end = format_numbers(ends[[0, -1]], moves)
            return [start, *format_numbers(moves[1:-1], sign="+"), end]
        percentages = [*map(_percent_text, expit(ends))]
        changes = itertools.pairwise(percentages[:-1])
        texts = [
            f"{before} → {after}, odds {_factor_text(move)}"
            for (before, after), move in zip(changes, moves[1:-1], strict=True)
        ]
        return [percentages[0], *texts, percentages[-1]]

    def _draw_dots(self, ax, names):
        """Draw a line for each feature of `names`, with a dot for the effect in each row."""
        import matplotlib as mpl

        effects, colored = self.effects[names], None
        colors = mpl.colormaps["plasma"].with_extremes(bad=GREY)
        low, width = effects.min(axis=None), np.ptp(effects.to_numpy()) or 1.0
        ax.axvline(0, color=GREY, lw=1)
        for line, name in enumerate(names):
            x, values = effects[name].to_numpy(), self.X[name]
            y = line + _stack_dots((x - low) / width)
            is_number = is_numeric_dtype(values)
            ranks = values.rank(pct=True) if is_number else np.full(len(x), np.nan)
            style = {"cmap": colors, "vmin": 0, "vmax": 1, "plotnonfinite": True}
            dots = ax.scatter(x, y, s=12, lw=0, c=ranks, **style)
            if is_number:
                colored = dots
            else:
                _write_extreme_levels(ax, line, effects[name], values)
        write_bar_names(ax, [*map(printable_name, names)])
        ax.margins(x=0.1)
        ax.locator_params(axis="x", nbins=5)
        label = f"lowers it   ←   each dot is a {self._row_word}   →   raises it"
        self._describe(ax, f"What moves {self.name}", label)
        if colored is not None:
            bar = ax.figure.colorbar(colored, ax=ax, ticks=[0, 1], pad=0.01, aspect=40)
            bar.ax.set_yticklabels(["low", "high"])
            label = "value (grey: none, or not a number)"
            bar.set_label(label if len(names) > 6 else "value", labelpad=-20)
            bar.outline.set_visible(False)

    def _draw_sizes(self, ax, sizes):
        """Draw bars of mean absolute effects; `sizes` is a Series with names of features."""
        bars = ax.barh(range(len(sizes)), sizes, 0.7, color=BLUE)
        texts = format_numbers(sizes.to_numpy())
        if self.is_log_odds:
            texts = [*map(_factor_text, sizes)]
        ax.bar_label(bars, texts, padding=3, fontsize="small")
        write_bar_names(ax, [*map(printable_name, sizes.index)])
        ax.margins(x=0.15)
        self._describe(ax, f"What {self.name} depends on most", "mean absolute effect")

    @property
    def _row_word(self):
        """The word for a row: the name of the index, or "row" if it has none."""
        return self.effects.index.name or "row"

    def _describe(self, ax, title, label):
        """Write the title, and along the x-axis the `label`, which says what effects are.

        Ticks of effects on log-odds are the factors by which the odds change.
        """
        label += "\nby which factor the odds change" if self.is_log_odds else ""
        ax.set_title(title, parse_math=False)
        ax.set_xlabel(label, parse_math=False)
        if self.is_log_odds:
            logs = np.log(_FACTORS)
            places = [0.0, *logs, *-logs]
            _write_ticks(ax, [places], lambda x: _factor_text(x, ".3g") if x else "no effect")


def _stack_dots(x):
    """Return the heights of dots at places `x` (n,) from 0 to 1, relative to their line.

    Dots in the same bin are stacked, and a stack is centred on the line.
    """
    bins = pd.Series(np.round(x * _BINS))
    stacks = bins.groupby(bins)
    offsets = stacks.cumcount() - (stacks.transform("size") - 1) / 2
    return 0.8 * offsets / max(stacks.size().max(), _FULL_STACK)


def _write_extreme_levels(ax, line, effects, levels):
    """Write the levels with the lowest and the highest mean effect, above a line of dots.

    `effects` and `levels` are Series with an entry for each row.
    """
    means = effects.groupby(levels.to_numpy(), observed=True).mean().sort_values()
    # If there is only one level, it is written once.
    for side, mean in (("right", means.iloc[:1]), ("left", means.iloc[1:].iloc[-1:])):
        for level, place in mean.items():
            style = {"ha": side, "fontsize": "x-small", "parse_math": False}
            ax.text(place, line + 0.45, _cell_text(level), **style)


def _usual_class(model, rows):
    """Return the class that is predicted for a single row, or the second of two classes."""
    classes = model.classes_.tolist()
    if _num_samples(rows) == 1:
        return predicted_class(model, rows)
    if len(classes) <= 2:
        return classes[-1]
    raise ValueError(
        f"class_label=None, but there are {len(classes)} classes: pass the one whose "
        f"probability is explained, one of {classes}."
    )


def _write_ticks(ax, candidates, write):
    """Write ticks along the x-axis, at places that have room.

    Parameters
    ----------
    ax : Axes
        Axes with all other texts.
    candidates : list of sequence of float
        Lists of places. The first list is used in which at least two places have room. In a
        list, earlier places take precedence over later ones.
    write : callable
        ``write(place)`` returns the text at a place.
    """
    low, high = sorted(ax.get_xlim())
    # Names and texts of bars take room from the axes. Their characters are six points wide.
    axes = [ax.yaxis, *(child.yaxis for child in ax.child_axes)]
    n_characters = sum(
        max((len(text.get_text()) for text in axis.get_ticklabels()), default=0)
        for axis in axes
    )
    width = max(size_in_points(ax)[0] - 6 * n_characters, 100)
    distance = (high - low) * max(1 / 7, 50 / width)
    for places in candidates:
        chosen: list[float] = []
        for place in places:
            has_room = all(abs(place - neighbour) >= distance for neighbour in chosen)
            if low <= place <= high and has_room:
                chosen.append(place)
        if len(chosen) > 1:
            break
    ax.set_xticks(chosen, [write(place) for place in chosen])


def _percent_text(p):
    """Write a probability in percent, with at least one digit of its distance from 0 or 1."""
    p = np.clip(p, 1e-9, 1 - 1e-9)
    decimals = max(0, -2 - math.floor(math.log10(min(p, 1 - p))))
    return f"{p:.{decimals}%}"


def _factor_text(log_odds, form=".2f"):
    """Write the factor by which odds change, given the change of their logarithm."""
    factor = math.exp(min(abs(log_odds), 700))
    return f"{'÷' if log_odds < 0 else '×'} {factor:{form if factor < 10 else '.0f'}}"


def _cell_text(value):
    """Write a value of a feature."""
    if pd.isna(value):
        return "missing"
    is_float = isinstance(value, float | np.floating)
    return format_number(value, ".4g") if is_float else printable_name(str(value))
