"""Series as forecasters see them, and the moments that forecasts are made at."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ._measures import naive_scales


@dataclass(frozen=True, eq=False)
class Observations:
    """Series with their features.

    Attributes
    ----------
    values : list of ndarray of float64 of shape (n_steps,)
        The series.
    starts : ndarray of int of shape (n_series,)
        Position of the first step of each series on an index common to all, which seasons are
        counted from.
    identity : ndarray of int of shape (n_series,)
        Which training series each of them is; -1 for others.
    features : list of ndarray of shape (n_later, n_features), default=None
        Features of each step, also of steps after the end, as far as they are known; None if
        there are none. Beyond, the last row is repeated.
    known : ndarray of int, default=()
        Columns of the features that are known beforehand.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.forecasting import Observations
    >>> observations = Observations.of([np.arange(5.0), np.arange(3.0)])
    >>> observations.at_ends(horizon=2).past(4)
    array([[1., 2., 3., 4.],
           [0., 0., 1., 2.]])
    """

    values: list
    starts: np.ndarray
    identity: np.ndarray
    features: list | None = None
    known: np.ndarray = ()

    @classmethod
    def of(cls, values, starts=None, identity=None, features=None, known=()):
        """Training series, all beginning at one step unless said otherwise."""
        starts = np.zeros(len(values), dtype=np.int64) if starts is None else starts
        identity = np.arange(len(values)) if identity is None else identity
        return cls(values, starts, identity, features, known)

    @cached_property
    def lengths(self):
        """Steps of each series; (n_series,)."""
        return np.array([len(own) for own in self.values], dtype=np.int64)

    @cached_property
    def flat(self):
        """All values, one series after the other, and where each begins."""
        return np.concatenate(self.values), np.cumsum(self.lengths) - self.lengths

    @cached_property
    def flat_features(self):
        """All features, where those of each series begin, and how many rows there are."""
        lengths = np.array([len(own) for own in self.features], dtype=np.int64)
        return np.concatenate(self.features), np.cumsum(lengths) - lengths, lengths

    def feature_rows(self, series, steps):
        """Which of all features are those of some steps, which are broadcast with series."""
        _, starts, lengths = self.flat_features
        return starts[series] + np.clip(steps, 0, lengths[series] - 1)

    def units(self, learned):
        """Units of all series: as learned from training series, of others of their own.

        Parameters
        ----------
        learned : ndarray of shape (n_training_series,)

        Returns
        -------
        units : ndarray of shape (n_series,)
        """
        units = learned[self.identity]
        if (self.identity < 0).any():
            units = np.where(self.identity < 0, naive_scales(self.values), units)
        return units

    def with_values(self, values):
        """The same with other values."""
        return replace(self, values=values)

    def extended(self, forecasts):
        """The series with forecasts (n_series, n_steps) after their ends."""
        pairs = zip(self.values, forecasts, strict=True)
        return self.with_values([np.concatenate(pair) for pair in pairs])

    def at_ends(self, horizon):
        """The end of each series as an origin."""
        return Origins(self, np.arange(len(self.values)), self.lengths, horizon)

    def origins(self, horizon, lookback=1, ahead=None):
        """All origins with enough steps before and after them.

        Parameters
        ----------
        horizon : int
        lookback : int, default=1
            Steps there must be before.
        ahead : int, default=None
            Steps there must be after; None for the horizon.

        Returns
        -------
        origins : Origins
            Series by series, ascending.
        """
        after = horizon if ahead is None else ahead
        counts = np.maximum(self.lengths - lookback - after + 1, 0)
        return Origins(self, *positions(lookback, counts), horizon)


@dataclass(frozen=True, eq=False)
class Origins:
    """Moments in series to forecast from.

    Attributes
    ----------
    observations : Observations
        Steps from an origin on are targets, never inputs.
    series : ndarray of int of shape (n_origins,)
        Which series each origin lies in.
    known : ndarray of int of shape (n_origins,)
        How many steps of it are known; also the position of the first step to forecast. At 0
        the first step stands for what is known.
    horizon : int
        How many steps are forecast.
    learned : ndarray of int of shape (n_origins,), default=None
        How many steps of its series seasonal patterns are learned from at each origin, at most
        those known; None for all of these.
    """

    table: Observations
    series: np.ndarray
    known: np.ndarray
    horizon: int
    learned: np.ndarray | None = None

    def __len__(self):
        return len(self.series)

    def take(self, rows):
        """Some of the origins."""
        learned = None if self.learned is None else self.learned[rows]
        return replace(self, series=self.series[rows], known=self.known[rows], learned=learned)

    def learning_until(self, ends):
        """The same origins, where patterns are learned before some steps, (n_series,)."""
        return replace(self, learned=np.minimum(self.known, ends[self.series]))

    def at(self, series, known):
        """Other origins in the same series."""
        return Origins(self.table, series, known, self.horizon)

    @property
    def identity(self):
        """Which training series each origin lies in, -1 for others; (n_origins,)."""
        return self.table.identity[self.series]

    def units(self, learned, measure=naive_scales):
        """Units as learned from training series, of others the naive error so far.

        `learned` is of shape (n_training_series,), what is found of shape (n_origins,).
        `measure` is of values of series in the place of their naive errors.
        """
        own = self.identity
        units, other = learned[own], np.flatnonzero(own < 0)
        if len(other):
            pairs = np.column_stack([self.series, self.known])[other]
            pairs, place = np.unique(pairs, axis=0, return_inverse=True)
            past = [self.table.values[i][: max(n, 1)] for i, n in pairs]
            units[other] = measure(past)[place]
        return units

    @property
    def steps(self):
        """Positions of the steps to forecast; (n_origins, horizon)."""
        return self.known[:, None] + np.arange(self.horizon)

    def past(self, length):
        """The last steps known; before its beginning the first step of a series is repeated.

        Parameters
        ----------
        length : int

        Returns
        -------
        past : ndarray of shape (n_origins, length)
        """
        flat, starts = self.table.flat
        steps = np.maximum(self.known[:, None] - length + np.arange(length), 0)
        return flat[starts[self.series][:, None] + steps]

    def before(self, lags):
        """Steps known that lie so far before each of the steps to forecast.

        Parameters
        ----------
        lags : ndarray of int of shape (horizon,)
            At least as far as the origin.

        Returns
        -------
        values : ndarray of shape (n_origins, horizon)
            NaN before the beginning of a series.
        """
        flat, starts = self.table.flat
        steps = self.steps - lags
        found = flat[starts[self.series][:, None] + np.maximum(steps, 0)]
        return np.where(steps >= 0, found, np.nan)

    def targets(self):
        """What followed, NaN beyond the end of a series; (n_origins, horizon)."""
        flat, starts = self.table.flat
        last = self.table.lengths[self.series][:, None] - 1
        found = flat[starts[self.series][:, None] + np.minimum(self.steps, last)]
        return np.where(self.steps <= last, found, np.nan)

    def past_features(self, length):
        """Features of the last steps known; (n_origins, length, n_features), or None."""
        if self.table.features is None:
            return None
        return self._features(self.known[:, None] - length + np.arange(length))

    def future_features(self):
        """Features of the steps to forecast; (n_origins, horizon, n_known), or None."""
        if self.table.features is None or len(self.table.known) == 0:
            return None
        return self._features(self.steps)[:, :, self.table.known]

    def _features(self, steps):
        rows = self.table.feature_rows(self.series[:, None], steps)
        return self.table.flat_features[0][rows]


def positions(first, counts):
    """So many consecutive positions in each series.

    Parameters
    ----------
    first : int or ndarray of int of shape (n_series,)
    counts : ndarray of int of shape (n_series,)

    Returns
    -------
    series, steps : ndarray of int of shape (n_positions,)
        Series by series, ascending.
    """
    series = np.repeat(np.arange(len(counts)), counts)
    return series, np.arange(len(series)) + (first + counts - np.cumsum(counts))[series]


def chunks(rows, most, cost=1):
    """Arrays in about equal parts.

    Parameters
    ----------
    rows : ndarray
    most : int
        What a part costs at most.
    cost : int, default=1
        Of a row.

    Returns
    -------
    parts : list of ndarray
        At least one.
    """
    return np.array_split(rows, -(-len(rows) * cost // most) or 1)


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


def split_at_ends(origins, fraction):
    """Hold out the last origins of each series.

    Parameters
    ----------
    origins : Origins
        Series by series, ascending.
    fraction : float
        About which share of them is held out; at least one of each series.

    Returns
    -------
    train, holdout : Origins
        What follows the first ends before what follows the second begins. Of series too short
        for both all is held out where others are long enough to learn from.
    """
    counts = np.bincount(origins.series, minlength=len(origins.table.values))
    held_out = np.maximum(1, np.floor(counts * fraction).astype(np.int64))
    last = np.zeros_like(counts)
    np.maximum.at(last, origins.series, origins.known)
    first = (last + 1 - held_out)[origins.series]
    return origins.take(origins.known + origins.horizon <= first), origins.take(
        origins.known >= first
    )
