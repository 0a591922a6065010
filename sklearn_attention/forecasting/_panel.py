"""The one form that series of all kinds are brought into, and forecasts brought back from."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ._table import Form, Table
from ._tidy import tidy_answer
from ._time import TimeIndex

# Forms in which all series share their rows, so that forecasts begin where the rows end.
ALIGNED = ("array", "series", "table", "frame")
# Forms that have all series one below the other.
LONG = ("long", "long_frame", "tidy")


@dataclass(frozen=True, eq=False)
class Panel:
    """Series on one regular index, each of its own length.

    Attributes
    ----------
    time : TimeIndex
        The steps, from the first of any series to the last of any.
    values : list of ndarray of float64
        Observations of each series.
    starts : ndarray of int of shape (n_series,)
        Position of each series' first observation.
    names : list
        Name of each series.
    form : str
        How the series came: "array" (one), "table" (a 2-D array, a column each), "windows"
        (a 2-D array, a row each), "series", "frame" (a column each), "arrays" and
        "dict" (by name), "long" and "long_frame" (one below the other), "tidy" (a row for
        each observation, with columns of series and time).
    dtype : str
        Precision in which forecasts go back.
    labels : list
        Names of the levels of a frame's columns, or names of the two levels of a long index
        and of the column.
    features : list of ndarray of shape (n_steps, n_features), default=None
        Features of each observation of each series; None if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.forecasting import Panel, TimeIndex
    >>> time, values = TimeIndex.of_positions(5), [np.ones(5), np.ones(3)]
    >>> panel = Panel(time, values, np.zeros(2, int), ["a", "b"], "arrays", "float64", [])
    >>> panel.origins
    array([5, 3])
    """

    time: TimeIndex
    values: list
    starts: np.ndarray
    names: list
    form: str
    dtype: str
    labels: list
    features: list | None = None

    def __len__(self):
        return len(self.values)

    @property
    def ends(self):
        """Position after each series' last observation; (n_series,)."""
        lengths = np.array([len(values) for values in self.values], dtype=np.int64)
        return self.starts + lengths

    @property
    def origins(self):
        """Position that forecasts of each series begin at; (n_series,)."""
        if self.form in ALIGNED:
            return np.full(len(self), len(self.time))
        return self.ends

    def table(self, identity=None, known=()):
        """The same as a table."""
        table = Table.of(self.values, self.starts, identity, self.features, known)
        form = Form(self.form, self.dtype, self.labels)
        return replace(table, time=self.time, names=self.names, form=form)

    @classmethod
    def of(cls, table):
        """The panel of a table without later rows."""
        form, cuts = table.form, table.first[1:]
        features = np.split(table.features, cuts) if table.n_features else None
        return cls(
            table.time, table.values, table.starts, table.names, form.kind, form.dtype,
            form.labels, features,
        )  # fmt: skip

    def wrap(self, answers, positions, *, index=None, columns=None):
        """Bring answers into the form that the series came in.

        Parameters
        ----------
        answers : list of ndarray of shape (n_steps,) or (n_steps, n_columns)
            For each series, one row for each position.
        positions : list of ndarray of int of shape (n_steps,)
            Steps of each series, increasing by one where `index` is None.
        index : Index, default=None
            Index of the answer; None continues that of the series.
        columns : list, default=None
            What several numbers for each step are called.

        Returns
        -------
        answer : ndarray, Series, DataFrame or dict
        """
        answers = [answer.astype(self.dtype) for answer in answers]
        if self.form == "array":
            return answers[0]
        if self.form in ("table", "windows"):
            return np.stack(answers, axis=-1 if self.form == "table" else 0)
        if self.form == "arrays":
            return dict(zip(self.names, answers, strict=True))
        if self.form in ("series", "frame"):
            index = self._steps(positions[0]) if index is None else index
            if self.form == "frame":
                return self._wide(answers, index, columns)
            return _labelled(answers[0], index, self.names[0], columns)
        if self.form == "dict":
            series = zip(answers, map(self._steps, positions), self.names, strict=True)
            return {name: _labelled(own, steps, name, columns) for own, steps, name in series}
        return self._long(answers, positions, index, columns)

    def _steps(self, positions):
        if len(positions) == 0:
            return self.time.between(0, 0)
        start, stop = int(positions.min()), int(positions.max()) + 1
        index = self.time.between(start, stop)
        following = len(positions) == stop - start and (np.diff(positions) == 1).all()
        return index if following else index[positions - start]

    def _wide(self, answers, steps, columns):
        levels = len(self.labels)
        names = [name if levels > 1 else (name,) for name in self.names]
        if columns is not None:
            names = [(*name, column) for name in names for column in columns]
        if levels == 1 and columns is None:
            header = pd.Index(self.names, name=self.labels[0], tupleize_cols=False)
        else:
            labels = self.labels if columns is None else [*self.labels, None]
            header = pd.MultiIndex.from_tuples(names, names=labels)
        return pd.DataFrame(np.column_stack(answers), index=steps, columns=header)

    def _long(self, answers, positions, index, columns):
        if index is None:
            names = np.repeat(np.arange(len(self)), [len(answer) for answer in answers])
            names = pd.Index(self.names, tupleize_cols=False).take(names)
            first, *others = map(self._steps, positions)
            steps = first.append(others)
            index = pd.MultiIndex.from_arrays([names, steps], names=self.labels[:2])
        values = np.concatenate(answers)
        if self.form == "tidy":
            return tidy_answer(values, index, columns)
        if self.form == "long":
            return _labelled(values, index, self.labels[2], columns)
        names = [self.labels[2]] if columns is None else columns
        return pd.DataFrame(values.reshape(len(index), -1), index=index, columns=names)


def _labelled(values, index, name, columns):
    if columns is None:
        return pd.Series(values, index=index, name=name)
    return pd.DataFrame(values, index=index, columns=columns)
