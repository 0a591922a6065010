"""The steps that a forecaster is asked for, and what is known at the time."""

import numbers
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from .._validation import check_positive
from ._dates import is_date, steps_until
from ._features import (
    filled,
    later_features,
    place_rows,
    read_table,
    split_index,
    training_features,
)
from ._index import TimeIndex
from ._observations import Observations
from ._panel import LONG, Panel
from ._series import read_panel
from ._tidy import features_of, is_tidy


@dataclass(frozen=True, eq=False)
class ForecastSteps:
    """Steps to forecast, and what is known at the time.

    Attributes
    ----------
    panel : Panel
        Series to forecast from.
    features : list of ndarray of shape (n_steps, n_features) or None
        Their features.
    known : ndarray of int
        Columns of the features that are known beforehand.
    later : ndarray of shape (n_series, n_blocks * horizon, n_known) or None
        Known features after the end of each series.
    positions : list of ndarray of int
        Steps that are asked for, of each series.
    horizon, n_blocks : int
        Steps that are forecast at once, and how often one such block follows another.
    index : Index, default=None
        Index of the answer; None continues that of the series.
    order : ndarray of int, default=None
        How rows of the answer, one series after the other, are to be sorted.
    fresh : bool, default=False
        Whether the series are others than those observed so far.
    """

    panel: Panel
    features: list | None
    known: np.ndarray
    later: np.ndarray | None
    positions: list
    horizon: int
    n_blocks: int
    index: pd.Index | None = None
    order: np.ndarray | None = None
    fresh: bool = False

    def observations(self, identity, encode):
        """The series with their features, as far as these are known.

        Parameters
        ----------
        identity : ndarray of int of shape (n_series,)
            Which training series each is; -1 for others.
        encode : callable
            Brings values into the units that are computed in.

        Returns
        -------
        observations : Observations
        """
        features = self.features
        if features is not None:
            n_later = self.n_blocks * self.horizon
            features = [
                np.concatenate([own, np.repeat(own[-1:], n_later, 0)]) for own in features
            ]
            if self.later is not None:
                for own, later in zip(features, self.later, strict=True):
                    own[len(own) - n_later :, self.known] = later
        values = list(map(encode, self.panel.values))
        return Observations(values, self.panel.starts, identity, features, self.known)

    def forecast(self, observations, forecast, describe):
        """Forecast the steps, block after block, each from the forecasts of those before.

        Parameters
        ----------
        observations : Observations
            From :meth:`observations`.
        forecast : callable
            ``forecast(origins)`` returns forecasts (n_origins, horizon).
        describe : callable
            ``describe(origins, forecasts, block)`` returns what is wanted of each step,
            (n_origins, horizon) or (n_origins, horizon, n_columns), where origins follow
            `block` blocks of forecasts.

        Returns
        -------
        found : list of ndarray of shape (n_steps,) or (n_steps, n_columns)
            For each series, in the order of `positions`.
        """
        horizon, blocks, later = self.horizon, [], observations
        for block in range(self.n_blocks):
            origins = later.ends(horizon)
            forecasts = forecast(origins)
            blocks.append(describe(origins, forecasts, block))
            later = later.extended(forecasts)
        if blocks:
            table = np.concatenate(blocks, axis=1)  # (n_series, n_blocks * horizon, ...)
        steps = [own - end for own, end in zip(self.positions, self.panel.ends, strict=True)]
        within = [own[own < 0] + n for own, n in zip(steps, observations.lengths, strict=True)]
        counts = [len(own) for own in within]
        if any(counts):
            series = np.repeat(np.arange(len(counts)), counts)
            # Nothing is known before the first step, which stands for itself.
            origins = observations.ends(horizon).at(
                series, np.maximum(np.concatenate(within), 0)
            )
            inside = describe(origins, forecast(origins), 0)[:, 0]
            inside = np.split(inside, np.cumsum(counts)[:-1])
        found = []
        for i, own in enumerate(steps):
            parts = [inside[i]] if any(counts) else []
            parts += [table[i, own[own >= 0]]] if blocks else []
            both = np.concatenate(parts)
            ordered = np.empty_like(both)
            ordered[np.argsort(own >= 0, kind="stable")] = both
            found.append(ordered)
        return found

    def wrap(self, answers, columns=None):
        """Bring answers into the form that the series came in.

        Parameters
        ----------
        answers : list of ndarray
            From :meth:`forecast`.
        columns : list, default=None
            What several numbers for each step are called.

        Returns
        -------
        answer : ndarray, Series, DataFrame or dict
        """
        found = self.panel.wrap(answers, self.positions, index=self.index, columns=columns)
        return found if self.order is None else found.iloc[self.order]


def remembered(forecaster):
    """The series that a forecaster has observed, and their features.

    Parameters
    ----------
    forecaster : Forecaster
        Fitted.

    Returns
    -------
    panel : Panel
    features : list of ndarray of shape (n_steps, n_features) or None
    """
    state = dict(forecaster.observed_)
    features = state.pop("features")
    panel = Panel.from_state(state)
    if features is not None:
        features = np.split(features, np.cumsum(state["lengths"])[:-1])
    return panel, features


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
        return _read_steps(forecaster, X, *remembered(forecaster), fresh=False)
    panel = _fresh(forecaster, history)
    if forecaster.n_features_in_:
        # Features are asked for the last steps alone.
        lookback = forecaster.lookback_
        values = [values[-lookback:] for values in panel.values]
        panel = replace(panel, values=values, starts=panel.ends - lookback)
    return replace(_read_steps(forecaster, X, panel, None, fresh=True), fresh=True)


def _read_steps(forecaster, X, panel, features, fresh):
    if X is None or is_date(X) or _is_count(X):
        if fresh and forecaster.n_features_in_:
            raise ValueError(
                "history comes without features: pass X with an index, and rows for the last "
                f"{forecaster.lookback_} steps of history and the steps to forecast."
            )
        return build(forecaster, panel, features, _following(forecaster, X, panel))
    table, index, n_rows = rows_of(forecaster, X, panel)
    placed = place_rows(index, n_rows, panel, panel.origins)
    asked, wanted = placed
    if fresh:
        if forecaster.n_features_in_:
            if index is None:
                raise ValueError(
                    "history needs features, which X has to have rows for: give history and X "
                    "an index."
                )
            features = training_features(table, *placed, panel, forecaster.missing)
        # Rows up to the end of the history are only read for their features.
        later = [own >= end for own, end in zip(asked, panel.ends, strict=True)]
        asked, wanted = (
            [own[after] for own, after in zip(part, later, strict=True)] for part in placed
        )
        if not any(len(own) for own in asked):
            index = None
            asked = [origin + np.arange(forecaster.horizon_) for origin in panel.origins]
    steps = build(forecaster, panel, features, asked, (*placed, table))
    if index is None or panel.form == "dict":
        return steps
    if isinstance(index, pd.MultiIndex):
        rows = np.concatenate(wanted)
        return replace(steps, index=index[rows], order=np.argsort(rows))
    return steps if panel.form in LONG else replace(steps, index=index[wanted[0]])


def _is_count(X):
    return isinstance(X, numbers.Integral) and not isinstance(X, bool)


def _following(forecaster, X, panel):
    """Steps of each series from its end on: a number of them, or those up to a date."""
    if not is_date(X):
        n_steps = forecaster.horizon_ if X is None else check_positive("X", X, integer=True)
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
    """Features of the rows of X, their index and number.

    Parameters
    ----------
    forecaster : Forecaster
        Fitted.
    X : Index, DataFrame, Series or array
    panel : Panel

    Returns
    -------
    table : ndarray of shape (n_rows, n_features)
    index : Index or None
        None where rows follow one another.
    n_rows : int
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
    if forecaster.n_features_in_ == 0:
        n_columns = 0 if table is None else (*np.shape(table), 1)[1]
        if n_columns and index is None:
            raise ValueError(
                f"X={X!r} has no index, and {type(forecaster).__name__} was fitted without "
                "features: pass the number of steps as an int, or an index."
            )
        if n_columns:
            raise ValueError(
                f"X has {n_columns} features, but {type(forecaster).__name__} was fitted "
                "without: pass their index alone."
            )
        table = None if n_columns == 0 else table
    if index is not None and panel.time.kind == "position" and not isinstance(X, pd.Index):
        index = None  # what was fitted has no steps that these could be
    n_rows = len(X)
    if n_rows == 0:
        raise ValueError("X has 0 rows: pass one for each step to forecast.")
    may_lack = forecaster.past_names_
    table = read_table(forecaster, table, n_rows, reset=False, may_lack=may_lack)
    return table, index, n_rows


def build(forecaster, panel, features, asked, placed=None):
    """The steps for some steps.

    Parameters
    ----------
    forecaster : Forecaster
        Fitted.
    panel : Panel
    features : list of ndarray or None
    asked : list of ndarray of int
        Steps of each series.
    placed : tuple of (list, list, ndarray), default=None
        Steps and rows of X of each series, and the features in these rows.

    Returns
    -------
    steps : ForecastSteps
    """
    horizon, known = forecaster.horizon_, forecaster.known_columns_
    positions, rows, table = placed or ([np.empty(0, dtype=int)] * len(panel),) * 2 + (None,)
    if table is None:
        table = np.empty((0, forecaster.n_features_in_))
    ahead = [
        max(0, int(steps.max()) + 1 - end) if len(steps) else 0
        for steps, end in zip(asked, panel.ends, strict=True)
    ]
    n_blocks = -(-max(ahead) // horizon)
    later = None
    if len(known):
        features, parts = list(features), []
        for i, end in enumerate(panel.ends):
            features[i] = _overridden(forecaster, features[i], panel, i, placed)
            part = np.repeat(features[i][-1:, known], n_blocks * horizon, axis=0)
            if ahead[i]:
                part = later_features(
                    table[:, known], positions[i], rows[i], end, len(part), panel.time
                )
                part = filled(part, end, panel.time, forecaster.missing)
            parts.append(part)
        later = np.stack(parts)
    sizes = horizon, n_blocks
    return ForecastSteps(panel, features, known, later, asked, *sizes)


def _overridden(forecaster, features, panel, i, placed):
    """Features of a series, those that X has for its steps in the place of those observed."""
    if placed is None:
        return features
    positions, rows, table = placed
    known = forecaster.known_columns_
    within = (positions[i] >= panel.starts[i]) & (positions[i] < panel.ends[i])
    if not within.any():
        return features
    features, steps = features.copy(), positions[i][within] - panel.starts[i]
    features[steps[:, None], known] = table[rows[i][within]][:, known]
    return filled(features, panel.starts[i], panel.time, forecaster.missing)


def _fresh(forecaster, history):
    """Fresh observations, of which there must be enough."""
    time = TimeIndex(**forecaster.observed_["time"])
    panel = read_panel(
        history, missing=forecaster.missing, season_length=forecaster.season_length_,
        like=time, rows_are_series=True, what="history",
    )  # fmt: skip
    for name, values in zip(panel.names, panel.values, strict=True):
        if len(values) < forecaster._least_history:
            raise ValueError(
                f"history has {len(values)} steps of {name!r}, but "
                f"lookback_={forecaster._least_history}: pass at least as many."
            )
    return panel
