"""Reading features, and placing their rows on the steps of the series."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from ._missing import fill_line, refuse_too_large
from ._panel import LONG


def read_table(forecaster, table, *, reset, may_lack=()):
    """Features as numbers; names and number of columns are set on a forecaster, or compared.

    Parameters
    ----------
    forecaster : Forecaster
    table : DataFrame or array
        A frame may have no columns.
    reset : bool
        Whether this is `fit`.
    may_lack : sequence of str, default=()
        Names of columns that a frame need not have.

    Returns
    -------
    table : ndarray of shape (n_rows, n_features)
        With missing values where there are, also in place of columns that it lacks.
    """
    if isinstance(table, pd.DataFrame) and table.shape[1] == 0:
        if forecaster.n_features_in_ > len(may_lack):
            raise ValueError(
                f"X has 0 features, but {type(forecaster).__name__} was fitted with "
                f"{forecaster.n_features_in_}: pass X with their columns."
            )
        return np.full((len(table), forecaster.n_features_in_), np.nan)
    if isinstance(table, pd.DataFrame):
        _refuse_text(table)
        if set(may_lack) - set(table.columns):
            names = forecaster.feature_names_in_
            kept = [name for name in names if name in table.columns or name in may_lack]
            table = table.reindex(columns=kept)
    if issparse(table):
        raise TypeError("X is sparse, which is not supported: pass X.toarray().")
    checks = {"dtype": np.float64, "ensure_all_finite": False}
    return validate_data(forecaster, table, reset=reset, **checks)


def _refuse_text(table):
    wrong = [name for i, name in enumerate(table) if not _may_be_numeric(table.iloc[:, i])]
    if wrong:
        raise ValueError(
            f"X has columns that are not numeric, {wrong}: encode categories, for example "
            "with pandas.get_dummies, and make numbers of dates; the index may have dates."
        )


def _may_be_numeric(column):
    if column.dtype.kind in "biufc":
        return True
    # Objects may be numbers all the same; whether they are is seen as they are converted.
    return column.dtype == object and not column.map(lambda v: isinstance(v, str)).any()


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of features, and which steps of which series they are about.

    Attributes
    ----------
    table : ndarray of shape (n_rows, n_features)
    steps, rows : list of ndarray of int
        For each series, positions and the rows that are about them.
    """

    table: np.ndarray
    steps: list
    rows: list

    @classmethod
    def place(cls, table, index, panel, begins):
        """Place rows on the steps of a panel.

        An index has steps, for all series alike, or series and step, in two levels. Rows
        without one follow one another, from a step `begins` of each series on.
        """
        rows = [np.arange(len(table))] * len(panel)
        if index is None:
            return cls(table, [begin + rows[0] for begin in begins], rows)
        if not isinstance(index, pd.MultiIndex):
            return cls(table, [panel.time.positions(index)] * len(panel), rows)
        tidy = panel.form == "tidy"
        if panel.form not in (*LONG, "dict") or index.nlevels != (3 if tidy else 2):
            wanted = "the columns 'unique_id' and 'ds', or " if tidy else ""
            raise ValueError(
                f"X has an index of {index.nlevels} levels, but y is not long: give X {wanted}"
                "the index of the time alone."
            )
        of_row, steps = index.get_level_values(0), index.get_level_values(1)
        series = pd.Index(panel.names, tupleize_cols=False).get_indexer(of_row)
        if (series < 0).any():
            unknown = sorted(map(str, set(of_row[series < 0])))
            raise ValueError(f"X has rows of unknown series, {unknown}: fit them first.")
        order = np.argsort(series, kind="stable")
        rows = np.split(order, np.searchsorted(series[order], np.arange(1, len(panel))))
        return cls(table, [panel.time.positions(steps[own]) for own in rows], rows)

    def features(self, panel, missing):
        """Features of every observation, which all need a row; a table for each series."""
        found = []
        for i, (start, end) in enumerate(zip(panel.starts, panel.ends, strict=True)):
            steps, values = self._within(i, start, end)
            own, lost = _spread(steps, values, end - start)
            if len(lost):
                lost = panel.time.name_steps(start + lost)
                raise ValueError(f"X has no rows for {lost}, where y has values: add them.")
            found.append(_filled(own, start, panel.time, missing))
        return found

    def replaced(self, i, features, known, panel, missing):
        """Features of a series, its known columns replaced where there are rows."""
        steps, values = self._within(i, panel.starts[i], panel.ends[i])
        if len(steps) == 0:
            return features
        features = features.copy()
        features[steps[:, None], known] = values[:, known]
        return _filled(features, panel.starts[i], panel.time, missing)

    def later(self, i, known, n_steps, panel, missing):
        """Known features of at most so many steps after the end of a series, without gaps."""
        end = panel.ends[i]
        steps, values = self._within(i, end, np.inf)
        if len(steps) == 0:
            raise ValueError(
                "X does not cover the horizon: the forecaster was fitted with features, so "
                "pass X with rows for the steps to forecast, from "
                f"{panel.time.name_steps([end])} on."
            )
        own, lost = _spread(steps, values[:, known], steps.max() + 1)
        if len(lost):
            raise ValueError(
                "X does not cover the horizon: there are no rows for "
                f"{panel.time.name_steps(end + lost)}, which lie between the end of the series "
                "and the steps to forecast. Add them."
            )
        return _filled(own[:n_steps], end, panel.time, missing)

    def _within(self, i, start, end):
        """Steps of a series from `start` on, counted from there, and their features."""
        there = (self.steps[i] >= start) & (self.steps[i] < end)
        return self.steps[i][there] - start, self.table[self.rows[i][there]]


def _spread(steps, values, n_steps):
    """A row for each of n steps, and those for which there is none."""
    spread = np.full((n_steps, values.shape[1]), np.nan)
    spread[steps] = values
    return spread, np.setdiff1d(np.arange(n_steps), steps)


def _filled(table, start, time, missing):
    """A table of steps that follow one another, from `start` on, without missing values."""
    refuse_too_large(table, start, time, "X")
    lost = np.isnan(table)
    if not lost.any():
        return table
    at_ends = lost[0].any() or lost[-1].any()
    if missing == "raise" or at_ends:
        steps = time.name_steps(start + np.flatnonzero(lost.any(axis=1)))
        remedy = "fill those at the ends" if at_ends else "pass missing='interpolate' or fill"
        raise ValueError(f"X has missing values (NaN) at {steps}: {remedy}.")
    return np.apply_along_axis(fill_line, 0, table)


def refuse_leakage(panel, known, names):
    """Raise if a feature that is known beforehand is the target itself."""
    for column in known:
        for values, features, name in zip(
            panel.values, panel.features, panel.names, strict=True
        ):
            varies = (values != values[0]).any()
            if varies and np.array_equal(features[:, column], values):
                raise ValueError(
                    f"X has the column {names[column]!r}, which is the target {name!r} itself "
                    "and will not be known when it is to be forecast: remove it."
                )
