"""Windows: a stretch of the past, and what followed it."""

import copy
import warnings
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .._validation import check_positive

# "auto" looks back so many seasons, and at least over the horizon and so many steps, but over
# no more than this share of the longest series.
_SEASONS, _FEWEST_STEPS, _LARGEST_SHARE = 3, 10, 0.25
# Windows that there have to be to learn from.
_FEWEST_WINDOWS = 2


class WindowBatch(NamedTuple):
    """Some windows as arrays.

    Attributes
    ----------
    past : ndarray of shape (n_windows, lookback)
    past_features : ndarray of shape (n_windows, lookback, n_features) or None
        All features during the past.
    future_features : ndarray of shape (n_windows, horizon, n_known) or None
        Those that are known beforehand, during what followed.
    target : ndarray of shape (n_windows, horizon) or None
        What followed; None where it is not known yet.
    level, unit : ndarray of shape (n_windows,) or None
        Mean and standard deviation of the series that each window is of.
    """

    past: np.ndarray
    past_features: np.ndarray | None
    future_features: np.ndarray | None
    target: np.ndarray | None = None
    level: np.ndarray | None = None
    unit: np.ndarray | None = None


class Windows:
    """All windows of some series, copied only when a batch of them is taken.

    Parameters
    ----------
    panel : Panel
        The series. Those shorter than a window have none.
    features : list of ndarray of shape (n_steps, n_features) or None
        Features of each series.
    known : ndarray of int
        Columns of the features that are known beforehand.
    lookback, horizon : int
        Steps of the past, and of what followed.
    measures : Measures
        Of each series.

    Attributes
    ----------
    origins : ndarray of int of shape (n_windows,)
        Position of the first step that followed, on the index of the panel.
    series : ndarray of int of shape (n_windows,)
        Which series each window is of.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.forecasting import Panel, TimeIndex, Windows, measure
    >>> time, values = TimeIndex.of_positions(6), [np.arange(6.0)]
    >>> panel = Panel(time, values, np.array([0]), ["load"], "array", "float64", [])
    >>> windows = Windows(panel, None, np.arange(0), 3, 2, measure(values))
    >>> windows.batch().past
    array([[0., 1., 2.],
           [1., 2., 3.]])
    >>> windows.batch().target
    array([[3., 4.],
           [4., 5.]])
    """

    def __init__(self, panel, features, known, lookback, horizon, measures):
        counts = [max(0, len(values) - lookback - horizon + 1) for values in panel.values]
        lengths = np.array([len(values) for values in panel.values])
        steps = np.concatenate([np.arange(count) for count in counts])
        self.series = np.repeat(np.arange(len(panel)), counts)
        self.origins = panel.starts[self.series] + steps + lookback
        self._first = (np.cumsum(lengths) - lengths)[self.series] + steps
        self._values = np.concatenate(panel.values)
        self._features = None if features is None else np.concatenate(features)
        self._known = known
        self.lookback, self.horizon, self.measures = lookback, horizon, measures

    def __len__(self):
        return len(self.origins)

    def take(self, rows):
        """Some of the windows.

        Parameters
        ----------
        rows : slice, or array of int or bool

        Returns
        -------
        windows : Windows
        """
        part = copy.copy(self)
        for name in ("series", "origins", "_first"):
            setattr(part, name, getattr(self, name)[rows])
        return part

    def arrays(self):
        """All that batches are made of.

        Returns
        -------
        arrays : list of ndarray
        """
        features = [] if self._features is None else [self._features]
        return [self._first, self.series, self._values, *features, *self.measures]

    def batch(self, rows=slice(None)):
        """Some of the windows as arrays.

        Parameters
        ----------
        rows : slice or array, default=slice(None)
            Which; all of them by default.

        Returns
        -------
        batch : WindowBatch
        """
        length, first = self.lookback + self.horizon, self._first[rows]
        both = sliding_window_view(self._values, length)[first]  # (n, lookback + horizon)
        past, target = both[:, : self.lookback], both[:, self.lookback :]
        units = self.measures.level[self.series[rows]], self.measures.unit[self.series[rows]]
        if self._features is None:
            return WindowBatch(past, None, None, target, *units)
        features = sliding_window_view(self._features, length, axis=0)[first]
        features = features.swapaxes(1, 2)  # (n, lookback + horizon, n_features)
        future = features[:, self.lookback :, self._known] if len(self._known) else None
        return WindowBatch(past, features[:, : self.lookback], future, target, *units)

    def split(self, fraction):
        """Split in time, so that nothing that is left out has been learned from.

        Parameters
        ----------
        fraction : float
            About which share of the windows is held out.

        Returns
        -------
        train, holdout : Windows
            The targets of the first end before those of the second begin.
        """
        if len(self) == 0:
            return self, self
        position = min(len(self) - 1, int(np.ceil(len(self) * (1 - fraction))))
        cut = np.sort(self.origins)[position]
        train = self.origins + self.horizon <= cut
        return self.take(train), self.take(self.origins >= cut)


def evenly_spread(n, most):
    """At most so many of n positions, evenly spread.

    Parameters
    ----------
    n, most : int

    Returns
    -------
    rows : ndarray of int
        Ascending, from the first to the last.
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def choose_lookback(panel, lookback, horizon, season_length):
    """How many steps of the past a window has.

    Parameters
    ----------
    panel : Panel
        The series.
    lookback : int or "auto"
        What the user passed. "auto" is three seasons, at least the horizon and 10 steps, and at
        most a quarter of the longest series.
    horizon, season_length : int

    Returns
    -------
    lookback : int
        Less than asked for, with a warning, where the longest series has no room for it.

    Raises
    ------
    ValueError
        If no series has ``2 * horizon + 2`` steps.
    """
    length = max(len(values) for values in panel.values)
    # Two windows to learn from, and one after them to be judged by.
    longest = length - 2 * horizon - (_FEWEST_WINDOWS - 1)
    if longest < 1:
        raise ValueError(
            f"the longest series has {length} sample{'s' if length > 1 else ''}, but "
            f"horizon={horizon} needs at least {2 * horizon + _FEWEST_WINDOWS}: pass a longer "
            "series or a smaller horizon."
        )
    if isinstance(lookback, str) and lookback == "auto":
        wanted = max(_SEASONS * season_length, horizon, _FEWEST_STEPS)
        return max(1, min(wanted, int(_LARGEST_SHARE * length), longest))
    lookback = check_positive("lookback", lookback, integer=True)
    if lookback > longest:
        warnings.warn(
            f"lookback={lookback} leaves too few windows in a series of {length} steps with "
            f"horizon={horizon}: it shrinks to {longest}.",
            UserWarning,
            stacklevel=5,
        )
    return min(lookback, longest)
