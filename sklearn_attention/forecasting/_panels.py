"""Panels of any number of series, in partitions of Dask.

A panel is divided into groups of a few hundred whole series, and a forecaster is fitted to
each group where its rows are. A hash of its id assigns a series to a group, so that groups are
alike, and the same series are learned from together however rows are divided into partitions.

Terms of this module:

* A *fit result* is what the fit of a group returns: its forecaster, None if the group has no
  series, or a list of messages if some of its series cannot be read.
* A *task* is a call that Dask makes later (``dask.delayed``).
* The *sample* is a few hundred series. A forecaster is fitted to them first, and decides what
  has to be the same in all groups: the frequency, the season length, and logarithms.
"""

import copy
import functools
import inspect
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from .._frames import to_pandas
from .._partitions import is_frame, is_partitioned, reduce_columns, to_memory
from ._checks import refuse_leakage, refuse_too_small
from ._feature_rows import column_of_each_feature
from ._forms import SERIES, TARGET
from ._inputs import make_training_table, read_training_data

# A group has about 500 series, and the sample 300. On the monthly series of M3 errors are those
# of one forecaster for all series, both in groups of 300 and of 500.
_SERIES_PER_GROUP, _SERIES_IN_SAMPLE = 500, 300
# A message describes up to 20 errors, and counts the others.
_MAX_DESCRIBED = 20


def over_groups(method):
    """Decorate a method of forecasters, so that it is called for each group of a panel.

    There are three cases:

    1. `fit` or `backtest` gets a panel in partitions: each group is fitted.
    2. The forecaster was fitted to such a panel, so that it has the attribute `panel_`: the
       method is called for the forecaster of each group, and the results are joined.
    3. Otherwise Dask collections come into memory, and the method is called as it is.
    """
    method_name, signature = method.__name__, inspect.signature(method)

    @functools.wraps(method)
    def call(forecaster, *args, **kwargs):
        arguments = dict(signature.bind(forecaster, *args, **kwargs).arguments)
        del arguments["self"]
        if method_name in ("fit", "backtest"):
            if _has_ids(arguments.get("X")) or _has_ids(arguments.get("y")):
                of_panel = _fit if method_name == "fit" else _backtest
                return of_panel(forecaster, **arguments)
            if method_name == "fit":  # A fit in memory replaces that of a panel.
                vars(forecaster).pop("panel_", None)
        elif hasattr(forecaster, "panel_"):
            if method_name in _METHODS_WITHOUT_FRAME:
                return _METHODS_WITHOUT_FRAME[method_name](forecaster, **arguments)
            return _call_groups(forecaster, method_name, **arguments)
        in_memory = to_memory(*arguments.values())
        return method(forecaster, **dict(zip(arguments, in_memory, strict=True)))

    return call


class Panel:
    """Fit results of all groups of a panel.

    The forecasters stay where they were fitted, on the workers of a cluster or in memory. If a
    worker dies, its groups are fitted again. A pickle contains the forecasters themselves.

    Attributes
    ----------
    groups : list of Delayed
        Fit result of each group, without lists of messages. In a panel that was loaded from a
        pickle they are in memory.
    divisions : tuple or None
        Dask's divisions of the frame that was fitted, if its index is the id: each partition
        then has whole series, and is a group. None if series are assigned to groups by a hash.
    """

    def __init__(self, groups, divisions):
        self.groups, self.divisions = groups, divisions

    def __getstate__(self):
        import dask

        return {"parts": list(dask.compute(*self.groups)), "divisions": self.divisions}

    def __setstate__(self, state):
        # The key of 0.2.0 is kept, so that its pickles can be loaded.
        self.__init__(state["parts"], state["divisions"])

    def tasks(self, function, frame_names=(), **arguments):
        """Make a task ``function(fit_result, **arguments)`` for each group.

        Parameters
        ----------
        function : callable
        frame_names : iterable of str, default=()
            Names of the arguments that are frames. Each task gets only the rows of its group.
        **arguments
            Arguments of the function.
        """
        import dask

        values_of_groups = {}
        for name, value in arguments.items():
            values = [value] * len(self.groups)
            if name in frame_names:
                # Rows are computed once, even if the result is computed several times.
                values = dask.persist(*_groups(name, value, len(self.groups), self.divisions))
            values_of_groups[name] = values
        return [
            _task(function, group, **{name: x[k] for name, x in values_of_groups.items()})
            for k, group in enumerate(self.groups)
        ]


def _fit(forecaster, X, y=None):
    """Fit a forecaster to each group of series, and keep them in a Panel as `panel_`."""
    prepared = _prepare(forecaster, X, y)
    sample = prepared.sample
    options = {
        "reference": prepared.reference,
        "freq": sample.observed_.time.freq,
        "may_drop_log": getattr(forecaster, "log", None) == "auto",
    }
    fit_results = _persist_fit_results(
        _task(_fit_group, prepared.model, rows, **options) for rows in prepared.groups
    )
    for name in [name for name in vars(forecaster) if name.endswith("_")]:
        delattr(forecaster, name)
    for name in ("n_features_in_", "feature_names_in_", "horizon_", "season_length_"):
        if hasattr(sample, name):
            setattr(forecaster, name, getattr(sample, name))
    forecaster.panel_ = Panel(fit_results, prepared.divisions)
    return forecaster


def _backtest(forecaster, X, y=None, **options):
    """Return the backtests of all groups as one frame, computed later."""
    prepared = _prepare(forecaster, X, y)
    missing = [name for name in getattr(forecaster, "feature_names_in_", ()) if name not in X]
    if missing:
        raise ValueError(
            f"X has no columns {missing}, but {type(forecaster).__name__} was fitted with "
            "these features: pass them in X."
        )
    return _join_frames(
        _task(_call_group, prepared.model, "backtest", X=rows, **options)
        for rows in prepared.groups
    )


def _call_groups(forecaster, method, **arguments):
    """Call a method of the forecasters of all groups, and join the frames that it returns."""
    X, frame_names = arguments.get("X"), {"history"}
    # The X of `predict` may also be a number of steps, a date, or an index of time, which are
    # the same for all groups.
    if np.ndim(X) and not (isinstance(X, pd.Index) and X.nlevels == 1):
        frame_names.add("X")
    frame_names = {name for name in frame_names if arguments.get(name) is not None}
    return _join_frames(
        forecaster.panel_.tasks(_call_group, frame_names, method=method, **arguments)
    )


def _update(forecaster, X, y=None):
    """Append the observations X to the series of each group."""
    _refuse_y(y)
    panel = forecaster.panel_
    fit_results = _persist_fit_results(panel.tasks(_update_group, ["X"], X=X))
    forecaster.panel_ = Panel(fit_results, panel.divisions)
    return forecaster


def _score(forecaster, X, y=None):
    """Average the scores of all groups, weighted by their numbers of series."""
    import dask

    _refuse_y(y)
    tasks = forecaster.panel_.tasks(_score_group, ["X"], X=X)
    scores, n_series = np.transpose(dask.compute(*tasks))
    if not n_series.any():
        raise ValueError("X has no values of the series that were fitted: pass some.")
    return float(np.average(scores, weights=n_series))


# All other methods of fitted forecasters return frames.
_METHODS_WITHOUT_FRAME = {"update": _update, "score": _score}


class _Preparation(NamedTuple):
    """A panel in groups, and what was decided for all of them.

    Attributes
    ----------
    groups : list of Delayed
        Rows of each group.
    divisions : tuple or None
        Divisions of the index, as in :class:`Panel`.
    model : Forecaster
        Forecaster that is not fitted yet, with the parameters for every group.
    sample : Forecaster
        Forecaster that is fitted to the sample of series.
    reference : DataFrame
        Rows of the longest series of the sample.
    """

    groups: list
    divisions: tuple | None
    model: BaseEstimator
    sample: BaseEstimator
    reference: pd.DataFrame


def _prepare(forecaster, X, y):
    """Divide a panel into groups, and decide what is the same for all of them."""
    forecaster._check_every_parameter()
    _refuse_y(y)
    divisions = X.divisions if _has_whole_series(X) else None
    n_series, sample_rows = _draw_sample(_with_ids(X))
    sample, sample_rows = _fit_sample(forecaster, sample_rows)
    # All groups have the season length of the sample, if there is one, and take logarithms
    # if the sample does. A TransformerForecaster may have several seasons in `seasons_`.
    model, seasons = clone(forecaster), getattr(sample, "seasons_", [sample.season_length_])
    if model.season_length == "auto" and len(seasons) == 1:
        model.season_length = seasons[0]
    if getattr(model, "log", None) == "auto":
        model.log = sample.transform_.log
    n_groups = max(1, round(n_series / _SERIES_PER_GROUP))
    ids = sample_rows[SERIES]
    reference = sample_rows[ids == ids.value_counts().idxmax()]
    return _Preparation(
        _groups("X", X, n_groups, divisions), divisions, model, sample, reference
    )


def _draw_sample(rows):
    """Draw the series with the smallest hashes of their ids.

    Returns the number of all series, and the rows of the sample as a DataFrame.
    """
    hashes = reduce_columns(lambda frame: np.unique(_hashes(frame)), np.union1d, rows, [SERIES])
    if not len(hashes):
        raise ValueError("X has no rows: pass at least one series.")
    largest = hashes[:_SERIES_IN_SAMPLE][-1]
    sample_rows = rows.map_partitions(
        lambda frame: frame[_hashes(frame) <= largest], meta=rows._meta
    )
    return len(hashes), sample_rows.compute()


def _fit_sample(forecaster, sample_rows):
    """Fit a forecaster to the sample; return it, and the rows it was fitted to.

    Series that cannot be read are left out here. The fit of their groups raises an error that
    lists them all.
    """
    try:
        return clone(forecaster).fit(sample_rows), sample_rows
    except ValueError:
        errors = _errors_of_series(forecaster, sample_rows, reference=sample_rows[:0])
        readable_rows = sample_rows[~sample_rows[SERIES].isin(list(errors))]
        if not errors or readable_rows.empty:
            raise
        return clone(forecaster).fit(readable_rows), readable_rows


def _groups(argument, rows, n_groups, divisions):
    """Divide rows into groups; a list of tasks that return them.

    Parameters
    ----------
    argument : str
        Name of the argument that the rows were passed as, for error messages.
    rows : frame
        Frame of Dask, pandas or polars.
    n_groups : int
        Number of groups. If there are divisions, it is ignored: each partition is a group.
    divisions : tuple or None
        Divisions of the index, as in :class:`Panel`.
    """
    import dask.dataframe

    passed_type = type(rows).__name__
    if not is_partitioned(rows):
        rows = to_pandas(rows)
    if isinstance(rows, pd.DataFrame) and rows.index.nlevels == 1:
        rows = dask.dataframe.from_pandas(rows, npartitions=1)
    if not _has_ids(rows):
        raise ValueError(
            f"{argument} of type {passed_type} is not a frame with the column {SERIES!r}: "
            "pass a frame of Dask, pandas or polars that has it."
        )
    if "_partitions" in rows:  # Dask would take it for the number of a partition
        raise ValueError(
            f"{argument} has the column '_partitions', which Dask uses: rename it."
        )
    if divisions is None:
        return _with_ids(rows).shuffle(SERIES, npartitions=n_groups).to_delayed()
    if not _has_whole_series(rows):
        raise ValueError(
            f"{argument} does not have the index {SERIES!r} with known divisions, as the frame "
            f"passed to fit had: pass {argument}.set_index({SERIES!r})."
        )
    try:
        return _with_ids(rows.repartition(divisions=divisions, force=True)).to_delayed()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{argument} has ids of another type than the frame of the fit, or outside of its "
            f"divisions ({error}): fit again with all series."
        ) from error


def _fit_group(model, rows, reference, freq, may_drop_log):
    """Fit a forecaster to the rows of a group; return a fit result.

    Parameters
    ----------
    model : Forecaster
    rows : DataFrame
        Rows of the series of the group.
    reference : DataFrame
        Rows of a series that can be read.
    freq : str or None
        Frequency of the sample, which that of the group has to equal.
    may_drop_log : bool
        Whether no logarithms are taken in a group with a negative value, or without any
        positive one.
    """
    if rows.empty:
        return None
    model = clone(model)
    if may_drop_log and model.log:
        values = pd.to_numeric(rows[TARGET], errors="coerce")
        model.log = bool(values.min() >= 0 and values.max() > 0)
    try:
        model.fit(rows)
    except ValueError:
        errors = _errors_of_series(model, rows, reference)
        if not errors:
            raise
        return [f"{series_id!r}: {error}" for series_id, error in errors.items()]
    if (group_freq := model.observed_.time.freq) != freq:
        return [
            f"{rows[SERIES].iloc[0]!r} has frequency {group_freq!r}, but a sample of series "
            f"{freq!r}: pass series of one frequency."
        ]
    return model


def _update_group(fit_result, X):
    """Append observations to a copy of a forecaster; return it, or a list with the error."""
    try:
        return fit_result if X.empty else copy.deepcopy(_fitted(fit_result, X)).update(X)
    except ValueError as error:
        return [str(error)]


def _score_group(fit_result, X):
    """Score a group; return its score, and its number of series with values in X."""
    has_value = X[TARGET].notna() if TARGET in X else np.ones(len(X), dtype=bool)
    n_series = X[SERIES][has_value].nunique()
    return (_fitted(fit_result, X).score(X), n_series) if n_series else (0.0, 0)


def _call_group(fit_result, method, **arguments):
    """Call a method of a forecaster that returns a frame; None for a group without rows."""
    frames = [value for value in arguments.values() if isinstance(value, pd.DataFrame)]
    if all(frame.empty for frame in frames) and (frames or fit_result is None):
        return None
    return getattr(_fitted(fit_result, *frames), method)(**arguments)


def _fitted(fit_result, *frames):
    """Return the forecaster of a group, or raise if its group had no series in the fit.

    The message names the series of the `frames` that were passed.
    """
    if fit_result is None:
        unknown = [series_id for frame in frames for series_id in frame[SERIES].unique()]
        raise ValueError(
            f"X has the series {unknown}, whose group has none in the fit: fit anew."
        )
    return fit_result


def _errors_of_series(forecaster, rows, reference):
    """Find the series that cannot be learned from; return {id: message}.

    Each series is read together with the `reference`, the rows of a series that can be read,
    so that its frequency can be inferred even if it is short.
    """
    errors = {}
    for series_id, series_rows in rows.groupby(SERIES, observed=True):
        both = pd.concat([reference[reference[SERIES] != series_id], series_rows])
        reader = clone(forecaster)
        try:
            table = make_training_table(reader, *read_training_data(reader, both, None))
            refuse_leakage(table, column_of_each_feature(reader))
            refuse_too_small(table)
        except ValueError as error:
            errors[series_id] = str(error)
    return errors


def _persist_fit_results(tasks):
    """Compute fit results where their rows are; raise if some of them are lists of messages."""
    import dask

    fit_results = dask.persist(*tasks)
    messages_of_groups = dask.compute(
        *[
            _task(lambda fit_result: fit_result if isinstance(fit_result, list) else [], group)
            for group in fit_results
        ]
    )
    errors = sorted({error for messages in messages_of_groups for error in messages})
    if errors:
        n_more = max(0, len(errors) - _MAX_DESCRIBED)
        described = errors[:_MAX_DESCRIBED] + [f"and {n_more} more"] * (n_more > 0)
        raise ValueError(
            f"Series cannot be read, with {len(errors)} errors. Correct or remove "
            "them:\n" + "\n".join(described)
        )
    return list(fit_results)


def _join_frames(tasks):
    """Join the frames that tasks return, None for a group without rows, into a Dask frame."""
    import dask.dataframe

    # Dask has to know the columns in advance. They are those of the first group with rows.
    # What is computed to find it is kept.
    tasks = list(tasks)
    for k, task in enumerate(tasks):
        (tasks[k],) = dask.persist(task)
        first_frame = tasks[k].compute()
        if first_frame is not None:
            break
    else:
        raise ValueError("X has no rows of the series that were fitted: pass some.")
    empty = first_frame[:0]
    frames = [_task(lambda frame: empty if frame is None else frame, task) for task in tasks]
    return dask.dataframe.from_delayed(frames, meta=empty, verify_meta=False)


def _task(function, *args, **kwargs):
    """Make a task that calls a function."""
    import dask

    return dask.delayed(function, pure=False)(*args, **kwargs)


def _refuse_y(y):
    """Raise if values are passed beside the frame."""
    if y is not None:
        raise ValueError(
            f"y of type {type(y).__name__} is not valid beside a Dask frame with the column "
            f"{SERIES!r}: pass the values as its column {TARGET!r}."
        )


def _has_ids(rows):
    """Return True for a Dask frame with the ids of series, as a column or as its index."""
    return rows is not None and is_frame(rows) and SERIES in (*rows.columns, rows.index.name)


def _has_whole_series(rows):
    """Return True for a Dask frame whose index is the id and has known divisions."""
    return rows.index.name == SERIES and rows.known_divisions


def _with_ids(rows):
    """Move the id from the index into a column, if it is there."""
    return rows.reset_index(drop=SERIES in rows) if rows.index.name == SERIES else rows


def _hashes(rows):
    """Compute the hash of the id of each row."""
    return pd.util.hash_pandas_object(rows[SERIES], index=False).to_numpy()
