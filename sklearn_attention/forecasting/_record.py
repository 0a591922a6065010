"""Series of any form with their features, of which stretches of time can be taken."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.utils import check_array

from ._features import split_index
from ._missing import fill_missing
from ._mistakes import refuse_time
from ._observe import separate, steps_of_rows
from ._panel import Panel
from ._series import read_panel


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
        """Read series and features.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        record : Record
        """
        features, target, what = separate(X, y)
        refuse_time(target, what)
        table, index = split_index(features)
        panel = read_panel(target, missing=None, index=index, what=what)
        if table is None:
            return cls(panel, None, np.empty(0, dtype=np.int64))
        index = steps_of_rows(index, features, target, panel)
        if not isinstance(table, pd.DataFrame):
            checks = {"dtype": None, "ensure_all_finite": False, "input_name": "X"}
            table = pd.DataFrame(check_array(table, **checks))
        if index is None:
            index = panel.time.between(0, len(table))
        if isinstance(index, pd.MultiIndex):
            times = index.get_level_values(1)
            index = index.droplevel(list(range(2, index.nlevels)))
        else:
            times = index
        row, distinct = pd.factorize(times)
        return cls(panel, table.set_axis(index), panel.time.positions(distinct)[row])

    @property
    def names(self):
        """Names of the series, also of one that has none."""
        return ["y" if name is None else name for name in self.panel.names]

    def ends(self, ends, first, last):
        """Positions after the last observations of a stretch.

        Parameters
        ----------
        ends : ndarray of int of shape (n_series,)
            The same before; -1 for series without observations.
        first, last : int
            The stretch.

        Returns
        -------
        ends : ndarray of int of shape (n_series,)
        """
        stretches = [self._stretch(i, first, last) for i in range(len(self.panel))]
        return np.maximum(ends, [-1 if own is None else own[1] for own in stretches])

    def observed(self, ends, first, last, missing=None, season_length=1):
        """Observations up to a point in time, as they are passed to `fit` and `update`.

        Parameters
        ----------
        ends : ndarray of int of shape (n_series,)
            From where on in each series; -1 for all there is.
        first, last : int
            Only what lies between is looked at.
        missing, season_length
            What is done about missing values after those passed before; as for
            :func:`~sklearn_attention.forecasting._missing.fill_missing`.

        Returns
        -------
        data : list
            Series alone, or features and series.
        """
        panel, series, begins = self.panel, {}, []
        for i, name in enumerate(self.names):
            own = self._stretch(i, first, last)
            if own is None or own[1] <= ends[i]:
                continue
            start, stop = own
            values = panel.values[i][start - panel.starts[i] : stop - panel.starts[i]]
            options = {"missing": missing, "season_length": season_length, "what": "y"}
            values = fill_missing(values, start, panel.time, name, **options)
            begins.append(max(start, ends[i]))
            times = panel.time.between(begins[-1], stop)
            values = values[begins[-1] - start :].astype(panel.dtype)
            series[name] = pd.Series(values, times, name=name)
        if self.table is None:
            return [series]
        rows = (self.steps >= min(begins, default=0)) & (self.steps < last)
        if isinstance(self.table.index, pd.MultiIndex):
            known = [
                name for i, name in enumerate(self.names) if ends[i] >= 0 or name in series
            ]
            rows &= self.table.index.get_level_values(0).isin(known)
        return [self.table[rows], series]

    def happened(self, ends, start, stop):
        """Observations of a stretch, of series that have a past.

        Parameters
        ----------
        ends : ndarray of int of shape (n_series,)
            From :meth:`ends`.
        start, stop : int
            The stretch.

        Returns
        -------
        happened : dict
            For series, by their numbers, times and values.
        """
        panel, found = self.panel, {}
        for i in np.flatnonzero(ends >= 0):
            begin = max(start, panel.starts[i])
            values = panel.values[i][begin - panel.starts[i] :][: max(0, stop - begin)]
            there = ~np.isnan(values)
            if there.any():
                times = panel.time.between(begin, begin + len(values))
                found[i] = times[there], values[there]
        return found

    def asked(self, ends, start, stop):
        """What is passed to `predict` to forecast a stretch.

        Parameters
        ----------
        ends : ndarray of int of shape (n_series,)
            From :meth:`ends`.
        start, stop : int
            The stretch.

        Returns
        -------
        X : Index or DataFrame
        """
        if self.table is None:
            return self.panel.time.between(start, stop)
        # Rows between the past and the stretch are forecast too: their features are needed.
        rows = (self.steps >= ends[ends >= 0].min()) & (self.steps < stop)
        if isinstance(self.table.index, pd.MultiIndex):
            known = [name for name, end in zip(self.names, ends, strict=True) if end >= 0]
            rows &= self.table.index.get_level_values(0).isin(known)
        return self.table[rows]

    def _stretch(self, i, first, last):
        """First observation of a series in a stretch, and the step after its last; or None."""
        start = self.panel.starts[i]
        begin = max(first, start)
        values = self.panel.values[i][begin - start : max(0, last - start)]
        known = np.flatnonzero(~np.isnan(values))
        return None if len(known) == 0 else (int(begin + known[0]), int(begin + known[-1] + 1))
