"""Moments in series that forecasts are made at."""

from dataclasses import dataclass, replace

import numpy as np

from ._measures import naive_scales


@dataclass(frozen=True, eq=False)
class Origins:
    """Moments in series to forecast from.

    Attributes
    ----------
    table : Table
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

    table: object
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

    def at(self, series, known, learned=None):
        """Other origins in the same series."""
        return Origins(self.table, series, known, self.horizon, learned)

    def joined(self, others):
        """These origins, and others of the same table after them."""
        both, learned = (self, others), None
        if any(own.learned is not None for own in both):
            parts = [own.known if own.learned is None else own.learned for own in both]
            learned = np.concatenate(parts)
        series, known = (
            np.concatenate([getattr(own, name) for own in both]) for name in ("series", "known")
        )
        return self.at(series, known, learned)

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
        flat, first = self.table.value, self.table.first
        steps = np.maximum(self.known[:, None] - length + np.arange(length), 0)
        return flat[first[self.series][:, None] + steps]

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
        flat, first = self.table.value, self.table.first
        steps = self.steps - lags
        found = flat[first[self.series][:, None] + np.maximum(steps, 0)]
        return np.where(steps >= 0, found, np.nan)

    def targets(self):
        """What followed, NaN beyond the end of a series; (n_origins, horizon)."""
        flat, first = self.table.value, self.table.first
        last = self.table.lengths[self.series][:, None] - 1
        found = flat[first[self.series][:, None] + np.minimum(self.steps, last)]
        return np.where(self.steps <= last, found, np.nan)

    def past_features(self, length):
        """Features of the last steps known; (n_origins, length, n_features), or None."""
        if self.table.n_features == 0:
            return None
        return self._features(self.known[:, None] - length + np.arange(length))

    def future_features(self):
        """Features of the steps to forecast; (n_origins, horizon, n_known), or None."""
        if self.table.n_features == 0 or len(self.table.known) == 0:
            return None
        return self._features(self.steps)[:, :, self.table.known]

    def _features(self, steps):
        return self.table.features[self.table.feature_rows(self.series[:, None], steps)]


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
