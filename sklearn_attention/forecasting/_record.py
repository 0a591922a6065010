"""Series of any form with their features, of which stretches of time can be taken."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.utils import check_array

from ._missing import fill_series, named
from ._observe import read_given
from ._panel import Panel


@dataclass(frozen=True, eq=False)
class Record:
    """What happened to series, to be told to a forecaster bit by bit, as dicts of Series.

    Attributes
    ----------
    panel : Panel
        The series, missing values among them.
    table : DataFrame or None
        Features, with an index of time, or of series and time.
    steps : ndarray of int of shape (n_rows,)
        Positions of the rows of `table`.
    """

    panel: Panel
    table: pd.DataFrame | None
    steps: np.ndarray

    @classmethod
    def read(cls, X, y):
        """Read series and features, which are passed as to `fit`."""
        panel, _, table, index = read_given(X, y)
        if table is None:
            return cls(panel, None, np.empty(0, dtype=np.int64))
        if not isinstance(table, pd.DataFrame):
            checks = {"dtype": None, "ensure_all_finite": False, "input_name": "X"}
            table = pd.DataFrame(check_array(table, **checks))
        if index is None:
            index = panel.time.between(0, len(table))
        times = index
        if isinstance(index, pd.MultiIndex):
            times = index.get_level_values(1)
            index = index.droplevel(list(range(2, index.nlevels)))
        row, distinct = pd.factorize(times)
        return cls(panel, table.set_axis(index), panel.time.positions(distinct)[row])

    @property
    def names(self):
        """Names of the series, also of one that has none."""
        return ["y" if name is None else name for name in self.panel.names]

    def past(self, first, last):
        """Position of the first observation of each series in a stretch, and its values.

        A dict by the number of the series; those without any are left out.
        """
        found = {}
        for i, (values, start) in enumerate(
            zip(self.panel.values, self.panel.starts, strict=True)
        ):
            values = values[max(0, first - start) : max(0, last - start)]
            known = np.flatnonzero(~np.isnan(values))
            if len(known):
                begin = max(first, start) + known[0]
                found[i] = int(begin), values[known[0] : known[-1] + 1]
        return found

    def told(self, past, ends, last, fill=None):
        """A past as it is passed to `fit` and `update`: series alone, or features and series.

        `ends` are the ends of what was passed before, by the number of the series, and `fill`
        says what is done about missing values; None leaves them.
        """
        time, series, begins = self.panel.time, {}, []
        for i, (start, values) in past.items():
            name, begin, stop = self.names[i], max(start, ends.get(i, 0)), start + len(values)
            if begin == stop:
                continue
            if fill is not None:
                where = named(self.panel, name)
                values = fill_series(values, start, time, where, **fill, what="y")
            values = values[begin - start :].astype(self.panel.dtype)
            series[name] = pd.Series(values, time.between(begin, stop), name=name)
            begins.append(begin)
        if self.table is None:
            return [series]
        return [self._rows(past, min(begins, default=0), last), series]

    def happened(self, which, start, stop):
        """Times and values of the observations of some series in a stretch, if any."""
        found = {}
        for i, (begin, values) in self.past(start, stop).items():
            if i in which:
                there = ~np.isnan(values)
                times = self.panel.time.between(begin, begin + len(values))
                found[i] = times[there], values[there]
        return found

    def asked(self, ends, start, stop):
        """What is passed to `predict` to forecast a stretch, of series that end before."""
        if self.table is None:
            return self.panel.time.between(start, stop)
        # Rows between the past and the stretch are forecast too: their features are needed.
        return self._rows(ends, min(ends.values()), stop)

    def _rows(self, which, start, stop):
        """Rows of features of some series in a stretch."""
        rows = (self.steps >= start) & (self.steps < stop)
        if isinstance(self.table.index, pd.MultiIndex):
            names = [self.names[i] for i in which]
            rows &= self.table.index.get_level_values(0).isin(names)
        return self.table[rows]
