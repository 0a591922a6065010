"""Panels of any number of series, in partitions of Dask.

A panel is divided into groups of a few hundred whole series, and a forecaster is fitted to
each group where its rows are. A hash of its id assigns a series to a group, so that groups are
alike, and the same series are learned from together however rows are divided into partitions.

In this module a fitted is what the fit of a group returns: its forecaster, None if the group
has no series, or a list of messages if its series cannot be read. A task is a call that Dask
makes later.
"""

import copy
import functools
import inspect

import numpy as np
import pandas as pd
from sklearn.base import clone

from .._frames import to_pandas
from .._partitions import is_frame, is_partitioned, reduce_columns
from ._checks import refuse_leakage, refuse_too_small
from ._feature_rows import column_of_each_feature
from ._forms import SERIES, TARGET
from ._inputs import make_training_table, read_training_data

# A group has about 500 series, and 300 are in the sample that decides what is the same for all
# groups. On the monthly series of M3 errors are those of one forecaster for all series, both in
# groups of 300 and of 500.
_GROUP, _SAMPLE = 500, 300
# A message describes up to 20 errors, and counts the others.
_MAX_DESCRIBED = 20


def over_groups(method):
    """Decorate a method of forecasters, so that it is called for each group of a panel.

    If there is no panel in partitions, Dask collections come into memory, and the method is
    called as it is.
    """
    name, signature = method.__name__, inspect.signature(method)

    @functools.wraps(method)
    def call(forecaster, *args, **kwargs):
        # A fit or backtest of a Dask frame with ids goes to all groups, and so does a call of a
        # forecaster that was fitted to one (`panel_`). Other calls compute in memory.
        arguments = dict(signature.bind(forecaster, *args, **kwargs).arguments)
        del arguments["self"]
        if name in ("fit", "backtest"):
            if any(_has_ids(arguments.get(rows)) for rows in ("X", "y")):
                return {"fit": _fit, "backtest": _backtest}[name](forecaster, **arguments)
            if name == "fit":
                vars(forecaster).pop("panel_", None)
        elif hasattr(forecaster, "panel_"):
            return _OF_FITTED.get(name, _frame)(forecaster, name, **arguments)
        in_memory = {
            key: value.compute() if is_partitioned(value) else value
            for key, value in arguments.items()
        }
        return method(forecaster, **in_memory)

    return call


class Panel:
    """Forecasters that are fitted to groups of series.

    They stay where they were fitted, on the workers of a cluster or in memory. Those of a
    worker that dies are fitted again. A pickle has the forecasters themselves.

    Attributes
    ----------
    groups : list of Delayed
        The forecaster of each group; None of a group without series. Of a stored panel they
        are in memory.
    divisions : tuple or None
        Of frames whose index is the id: each partition then has whole series, and is a group.
        If it is None, series are assigned to groups by a hash.
    """

    def __init__(self, groups, divisions):
        self.groups, self.divisions = groups, divisions

    def __getstate__(self):
        import dask

        return {"parts": list(dask.compute(*self.groups)), "divisions": self.divisions}

    def __setstate__(self, state):
        # The key of 0.2.0 is kept, so that its pickles can be loaded.
        self.__init__(state["parts"], state["divisions"])

    def tasks(self, function, names, **arguments):
        """Make a task ``function(fitted, **arguments)`` for each group.

        Of the arguments in `names`, which are frames, each task gets the rows of its group.
        """
        import dask

        calls = [{} for _ in self.groups]
        for name, value in arguments.items():
            values = [value] * len(calls)
            if name in names:
                # Rows are computed once, even if the result is computed several times.
                values = dask.persist(*_groups(name, value, len(calls), self.divisions))
            for call, value_of_group in zip(calls, values, strict=True):
                call[name] = value_of_group
        return [
            _later(function, fitted, **call)
            for fitted, call in zip(self.groups, calls, strict=True)
        ]


def _fit(forecaster, X, y=None):
    """Fit a forecaster to each group of series, and keep them in a Panel as `panel_`."""
    groups, divisions, model, sample, reference = _prepared(forecaster, X, y)
    freq = sample.observed_.time.freq
    options = reference, freq, getattr(forecaster, "log", None) == "auto"
    fitted_groups = _persisted([_later(_fit_group, model, rows, *options) for rows in groups])
    for name in [name for name in vars(forecaster) if name.endswith("_")]:
        delattr(forecaster, name)
    for name in ("n_features_in_", "feature_names_in_", "horizon_", "season_length_"):
        if hasattr(sample, name):
            setattr(forecaster, name, getattr(sample, name))
    forecaster.panel_ = Panel(fitted_groups, divisions)
    return forecaster


def _backtest(forecaster, X, y=None, **options):
    """Return the backtests of all groups as one frame, computed later."""
    groups, _, model, *_ = _prepared(forecaster, X, y)
    missing = [name for name in getattr(forecaster, "feature_names_in_", ()) if name not in X]
    if missing:
        raise ValueError(
            f"X has no columns {missing}, but {type(forecaster).__name__} was fitted with "
            "these features: pass them in X."
        )
    return _joined([_later(_called, model, "backtest", X=rows, **options) for rows in groups])


def _frame(forecaster, name, **arguments):
    """Call a method of all fitted groups, and join the frames that it returns."""
    X, names = arguments.get("X"), {"history"}
    # Steps to forecast may also be a number, a date, or an index of time.
    if np.ndim(X) and not (isinstance(X, pd.Index) and X.nlevels == 1):
        names.add("X")
    names = {argument for argument in names if arguments.get(argument) is not None}
    return _joined(forecaster.panel_.tasks(_called, names, method=name, **arguments))


def _update(forecaster, name, X, y=None):
    """Append observations to the series of each fitted."""
    _refuse_y(y)
    panel = forecaster.panel_
    fitted_groups = _persisted(panel.tasks(_updated, ["X"], X=X))
    forecaster.panel_ = Panel(fitted_groups, panel.divisions)
    return forecaster


def _score(forecaster, name, X, y=None):
    """Average the scores of all series."""
    import dask

    _refuse_y(y)
    tasks = forecaster.panel_.tasks(_scored, ["X"], X=X)
    scores, n_series = np.transpose(dask.compute(*tasks))
    if not n_series.any():
        raise ValueError("X has no values of the series that were fitted: pass some.")
    return float(np.average(scores, weights=n_series))


# Functions that stand in for methods of a fitted panel; `_frame` does for all others.
_OF_FITTED = {"update": _update, "score": _score}


def _prepared(forecaster, X, y):
    """Divide a panel into groups, and decide what is the same for all of them.

    Returns
    -------
    groups : list of Delayed
        Rows of each group.
    divisions : tuple or None
        Divisions of the index, as in :class:`Panel`.
    model : Forecaster
        Forecaster to be fitted to each group.
    sample : Forecaster
        Forecaster that is fitted to a sample of series.
    reference : DataFrame
        Rows of the longest series of the sample.
    """
    # 1. Draw a sample of series, those of the smallest hashes.
    forecaster._check_every_parameter()
    _refuse_y(y)
    rows, divisions = _with_ids(X), X.divisions if _has_whole_series(X) else None
    hashes = reduce_columns(lambda frame: np.unique(_hashes(frame)), np.union1d, rows, [SERIES])
    if not len(hashes):
        raise ValueError("X has no rows: pass at least one series.")
    largest = hashes[:_SAMPLE][-1]
    sample_rows = rows.map_partitions(
        lambda frame: frame[_hashes(frame) <= largest], meta=rows._meta
    ).compute()
    # 2. Fit a forecaster to it. If some series cannot be read, they are left out here;
    # an error lists them once all groups are fitted.
    try:
        sample = clone(forecaster).fit(sample_rows)
    except ValueError:
        errors = _errors_of_series(forecaster, sample_rows, sample_rows[:0])
        sample_rows = sample_rows[~sample_rows[SERIES].isin(list(errors))]
        if not errors or sample_rows.empty:
            raise
        sample = clone(forecaster).fit(sample_rows)
    # 3. Give the model of all groups the season length and `log` of the sample.
    model, seasons = clone(forecaster), getattr(sample, "seasons_", [sample.season_length_])
    if model.season_length == "auto" and len(seasons) == 1:
        model.season_length = seasons[0]
    if getattr(model, "log", None) == "auto":
        model.log = sample.transform_.log
    n_groups = max(1, round(len(hashes) / _GROUP))
    names = sample_rows[SERIES]
    reference = sample_rows[names == names.value_counts().idxmax()]
    return _groups("X", X, n_groups, divisions), divisions, model, sample, reference


def _groups(what, rows, n_groups, divisions):
    """Divide rows into groups; a list of tasks that return them.

    Parameters
    ----------
    what : str
        Name of the rows in messages.
    rows : frame
        Frame of Dask, pandas or polars.
    n_groups : int
        Number of groups; it is not used if there are divisions.
    divisions : tuple or None
        Divisions of the index, as in :class:`Panel`.
    """
    import dask.dataframe

    kind, rows = type(rows).__name__, rows if is_partitioned(rows) else to_pandas(rows)
    if isinstance(rows, pd.DataFrame) and rows.index.nlevels == 1:
        rows = dask.dataframe.from_pandas(rows, npartitions=1)
    if not _has_ids(rows):
        raise ValueError(
            f"{what} of type {kind} is not a frame with the column {SERIES!r}: "
            "pass a frame of Dask, pandas or polars that has it."
        )
    if "_partitions" in rows:  # Dask would take it for the number of a partition
        raise ValueError(f"{what} has the column '_partitions', which Dask uses: rename it.")
    if divisions is None:
        return _with_ids(rows).shuffle(SERIES, npartitions=n_groups).to_delayed()
    if not _has_whole_series(rows):
        raise ValueError(
            f"{what} does not have the index {SERIES!r} with known divisions, as the frame "
            f"passed to fit had: pass {what}.set_index({SERIES!r})."
        )
    try:
        return _with_ids(rows.repartition(divisions=divisions, force=True)).to_delayed()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{what} has ids of another type than the frame of the fit, or outside of its "
            f"divisions ({error}): fit again with all series."
        ) from error


def _fit_group(model, rows, reference, freq, may_change_scale):
    """Fit a forecaster to the rows of a group; return a fitted.

    `reference` are the rows of a good series, and `freq` is the frequency of the sample. If
    `may_change_scale`, groups without positive values, or with negative ones, have no
    logarithms.
    """
    if rows.empty:
        return None
    model = clone(model)
    if may_change_scale and model.log:
        values = pd.to_numeric(rows[TARGET], errors="coerce")
        model.log = bool(values.min() >= 0 and values.max() > 0)
    try:
        model.fit(rows)
    except ValueError:
        errors = _errors_of_series(model, rows, reference)
        if not errors:
            raise
        return [f"{name!r}: {error}" for name, error in errors.items()]
    if (group_freq := model.observed_.time.freq) != freq:
        wrong = f"has frequency {group_freq!r}, but a sample of series {freq!r}"
        return [f"{rows[SERIES].iloc[0]!r} {wrong}: pass series of one frequency."]
    return model


def _updated(fitted, X):
    """Append observations to a copy of a fitted group; return it, or a list of the error."""
    try:
        return fitted if X.empty else copy.deepcopy(_known(fitted, X)).update(X)
    except ValueError as error:
        return [str(error)]


def _scored(fitted, X):
    """Score a fitted group; return the score, and the number of series with values."""
    has_values = X[TARGET].notna() if TARGET in X else np.ones(len(X), dtype=bool)
    n_series = X[SERIES][has_values].nunique()
    return (_known(fitted, X).score(X), n_series) if n_series else (0.0, 0)


def _called(fitted, method, **arguments):
    """Call a method of a fitted group that returns a frame; None for a group without rows."""
    frames = [value for value in arguments.values() if isinstance(value, pd.DataFrame)]
    if all(frame.empty for frame in frames) and (frames or fitted is None):
        return None
    return getattr(_known(fitted, *frames), method)(**arguments)


def _known(fitted, *frames):
    """Return a fitted group, or raise if it is None, since the rows are of unknown series."""
    if fitted is None:
        unknown = [name for frame in frames for name in frame[SERIES].unique()]
        raise ValueError(
            f"X has the series {unknown}, whose group has none in the fit: fit anew."
        )
    return fitted


def _errors_of_series(forecaster, rows, reference):
    """Find the series that cannot be learned from; a dict of messages by their ids.

    Each is read together with the rows of a good series, the `reference`, from which its
    frequency can be inferred.
    """
    errors = {}
    for name, series in rows.groupby(SERIES, observed=True):
        both, reader = (
            pd.concat([reference[reference[SERIES] != name], series]),
            clone(forecaster),
        )
        try:
            table = make_training_table(reader, *read_training_data(reader, both, None))
            refuse_leakage(table, column_of_each_feature(reader))
            refuse_too_small(table)
        except ValueError as error:
            errors[name] = str(error)
    return errors


def _persisted(tasks):
    """Compute fitted groups where their data are, and raise if some of them are messages."""
    import dask

    groups = dask.persist(*tasks)
    messages = [
        _later(lambda fitted: fitted if isinstance(fitted, list) else [], fitted)
        for fitted in groups
    ]
    errors = sorted({error for group in dask.compute(*messages) for error in group})
    if errors:
        n_more = max(0, len(errors) - _MAX_DESCRIBED)
        described = errors[:_MAX_DESCRIBED] + [f"and {n_more} more"] * (n_more > 0)
        raise ValueError(
            f"Series cannot be read, with {len(errors)} errors. Correct or remove "
            "them:\n" + "\n".join(described)
        )
    return list(groups)


def _joined(tasks):
    """Join the frames that tasks return, None for a group without rows, into a Dask frame."""
    import dask
    import dask.dataframe

    # The first group with rows tells the columns. The frames that are computed to find it are
    # kept.
    tasks = list(tasks)
    for k, task in enumerate(tasks):
        (tasks[k],) = dask.persist(task)
        first = tasks[k].compute()
        if first is not None:
            break
    else:
        raise ValueError("X has no rows of the series that were fitted: pass some.")
    empty = first[:0]
    frames = [_later(lambda frame: empty if frame is None else frame, task) for task in tasks]
    return dask.dataframe.from_delayed(frames, meta=empty, verify_meta=False)


def _later(function, *args, **kwargs):
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
