"""The steps that a forecaster is asked for, and what is known at the time."""

import numbers
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from .._validation import check_positive
from ._features import Rows, read_table
from ._missing import fill_panel
from ._observe import split_index
from ._panel import LONG, Panel
from ._series import read_panel
from ._tidy import features_of, is_tidy
from ._time import is_date, steps_until


@dataclass(frozen=True, eq=False)
class ForecastSteps:
    """Steps to forecast, and what is known at the time.

    Attributes
    ----------
    panel : Panel
        Series to forecast from; features of later steps may follow those of observations.
    positions : list of ndarray of int
        Steps that are asked for, of each series.
    n_blocks : int
        How often one block of forecasts, a horizon long, follows another.
    index : Index, default=None
        Index of the answer; None continues that of the series.
    order : ndarray of int, default=None
        How rows of the answer, one series after the other, are to be sorted.
    fresh : bool, default=False
        Whether the series are others than those observed so far.
    """

    panel: Panel
    positions: list
    n_blocks: int
    index: pd.Index | None = None
    order: np.ndarray | None = None
    fresh: bool = False

    def within(self, ends):
        """Origins before the steps that are already observed, series by series.

        `ends` are the origins at the ends of the observations.
        """
        panel, asked = self.panel, zip(self.positions, self.panel.ends, strict=True)
        steps = [own[own < end] for own, end in asked]
        series = np.repeat(np.arange(len(panel)), [len(own) for own in steps])
        # Nothing is known before the first step, which stands for itself.
        return ends.at(series, np.maximum(np.concatenate(steps) - panel.starts[series], 0))

    def collect(self, within, blocks):
        """What is asked for, for each series, in the order of `positions`.

        `within` has what is found for the origins of :meth:`within`, of shape (n_origins, ...),
        and `blocks` the same for steps after the ends, of shape (n_series, horizon, ...) each.
        """
        later, first, found = np.concatenate(blocks, axis=1) if blocks else None, 0, []
        for i, (own, end) in enumerate(zip(self.positions, self.panel.ends, strict=True)):
            past = own < end
            answer = np.empty((len(own), *within.shape[1:]))
            answer[past] = within[first : first + past.sum()]
            first += past.sum()
            if blocks:
                answer[~past] = later[i, own[~past] - end]
            found.append(answer)
        return found

    def wrap(self, answers, columns=None):
        """Bring answers, from :meth:`collect`, into the form that the series came in."""
        found = self.panel.wrap(answers, self.positions, index=self.index, columns=columns)
        return found if self.order is None else found.iloc[self.order]


def read_steps(forecaster, X, history):
    """The steps that `predict` is asked.

    Parameters
    ----------
    forecaster : Forecaster
        Fitted.
    X : None, int, date, Index, DataFrame or array
        What to forecast: the next steps, those up to a date, or one for each row.
    history : series of any form, or None
        What to forecast from; None for what has been observed.

    Returns
    -------
    steps : ForecastSteps
    """
    if history is None:
        return _read_steps(forecaster, X, Panel.of(forecaster.observed_), fresh=False)
    return _read_steps(forecaster, X, _read_history(forecaster, history), fresh=True)


def _read_history(forecaster, history):
    """Fresh observations, of which there must be enough."""
    options = {"missing": forecaster.missing, "season_length": forecaster.season_length_}
    time = forecaster.observed_.time
    panel = read_panel(history, like=time, rows_are_series=True, what="history")
    panel, least = fill_panel(panel, **options, what="history"), forecaster._least_history
    for name, values in zip(panel.names, panel.values, strict=True):
        if len(values) < least:
            raise ValueError(
                f"history has {len(values)} steps of {name!r}, but lookback_={least}: pass at "
                "least as many."
            )
    if forecaster.n_features_in_ == 0:
        return panel
    # Features are asked for the last steps alone.
    values = [values[-forecaster.lookback_ :] for values in panel.values]
    return replace(panel, values=values, starts=panel.ends - list(map(len, values)))


def _read_steps(forecaster, X, panel, fresh):
    unknown = fresh and forecaster.n_features_in_ > 0
    if X is None or is_date(X) or _is_count(X):
        if unknown:
            raise ValueError(
                "history comes without features: pass X with an index, and rows for the last "
                f"{forecaster.lookback_} steps of history and the steps to forecast."
            )
        asked = _following(X, panel, forecaster.horizon_)
        return replace(build(forecaster, panel, asked), fresh=fresh)
    table, index = rows_of(forecaster, X, panel)
    rows = Rows.place(table, index, panel, panel.origins)
    asked, wanted = rows.steps, rows.rows
    if unknown:
        if index is None:
            raise ValueError(
                "history needs features, which X has to have rows for: give history and X an "
                "index."
            )
        panel = replace(panel, features=rows.features(panel, forecaster.missing))
    if fresh:
        # Rows up to the end of the history are only read for their features.
        later = [own >= end for own, end in zip(asked, panel.ends, strict=True)]
        asked, wanted = (
            [own[after] for own, after in zip(part, later, strict=True)]
            for part in (asked, wanted)
        )
        if not any(len(own) for own in asked):
            index, asked = None, _following(None, panel, forecaster.horizon_)
    steps = replace(build(forecaster, panel, asked, rows), fresh=fresh)
    if isinstance(index, pd.MultiIndex) and panel.form != "dict":
        placed = np.concatenate(wanted)
        return replace(steps, index=index[placed], order=np.argsort(placed))
    if index is None or panel.form in (*LONG, "dict"):
        return steps
    return replace(steps, index=index[wanted[0]])


def _is_count(X):
    return isinstance(X, numbers.Integral) and not isinstance(X, bool)


def _following(X, panel, horizon):
    """Steps of each series from its end on: a number of them, or those up to a date."""
    if not is_date(X):
        n_steps = horizon if X is None else check_positive("X", X, integer=True)
        return [origin + np.arange(n_steps) for origin in panel.origins]
    end = steps_until(panel.time, X)
    asked = [np.arange(origin, end) for origin in panel.origins]
    if not any(len(steps) for steps in asked):
        last = panel.time.name_steps([min(panel.origins) - 1])
        raise ValueError(
            f"X={X!r} is not after the end of the series, {last}: pass a later date, or an "
            "index of the steps."
        )
    return asked


def rows_of(forecaster, X, panel):
    """Features (n_rows, n_features) of the rows of X, and their index.

    The index is None where rows follow one another.
    """
    if isinstance(X, dict) or np.ndim(X) == 0:
        raise ValueError(
            f"X={X!r} is not valid: pass None, the number of steps, a date, an index, or "
            "features."
        )
    if panel.form == "tidy" and is_tidy(X):
        # What is to be forecast, or was not known then, is not read.
        lacks = "y" not in getattr(forecaster, "feature_names_in_", ())
        X = features_of(X.drop(columns="y", errors="ignore") if lacks else X)
    if isinstance(X, pd.Series) and not forecaster.n_features_in_:
        X = X.index
    table, index = split_index(X)
    n_columns, name = (*np.shape(table), 1)[1], type(forecaster).__name__
    if n_columns and forecaster.n_features_in_ == 0:
        if index is None:
            raise ValueError(
                f"X={X!r} has no index, and {name} was fitted without features: pass the "
                "number of steps as an int, or an index."
            )
        raise ValueError(
            f"X has {n_columns} features, but {name} was fitted without: pass their index "
            "alone."
        )
    if index is not None and panel.time.kind == "position" and not isinstance(X, pd.Index):
        index = None  # what was fitted has no steps that these could be
    if np.shape(table)[0] == 0:
        raise ValueError("X has 0 rows: pass one for each step to forecast.")
    if n_columns == 0 and index is None:
        table = pd.DataFrame(index=range(len(table)))
    return read_table(forecaster, table, reset=False, may_lack=forecaster.past_names_), index


def build(forecaster, panel, asked, rows=None):
    """The steps for some positions of each series, with features that X has rows for."""
    horizon, known, missing = forecaster.horizon_, forecaster.known_columns_, forecaster.missing
    ahead = [
        max(0, int(steps.max()) + 1 - end) if len(steps) else 0
        for steps, end in zip(asked, panel.ends, strict=True)
    ]
    n_blocks = -(-max(ahead) // horizon)
    if panel.features is not None and len(known):
        if rows is None:
            nothing = [np.empty(0, dtype=np.int64)] * len(panel)
            rows = Rows(np.empty((0, forecaster.n_features_in_)), nothing, nothing)
        features = []
        for i, own in enumerate(panel.features):
            own = rows.replaced(i, own, known, panel, missing)
            if ahead[i]:
                later = rows.later(i, known, n_blocks * horizon, panel, missing)
                own = np.concatenate([own, np.repeat(own[-1:], len(later), axis=0)])
                own[-len(later) :, known] = later
            features.append(own)
        panel = replace(panel, features=features)
    return ForecastSteps(panel, asked, n_blocks)
