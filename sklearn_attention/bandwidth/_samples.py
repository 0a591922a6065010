"""Samples of the rows that a search for a bandwidth evaluates, and the units of their values.

A search evaluates a sample if there are many rows. The best bandwidth of n rows with d numeric
columns is in proportion to n^(-1 / (d + 4)), and the best lambda of a category to the square of
this rate (Li and Racine 2003). So the bandwidths of a sample are multiplied by a factor that
turns them into those of all rows.

A *point mass* is a number that many rows share, at which a density would be infinite. A column
is *integrated* if the density integrates to 1 over it.
"""

from copy import copy
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from .._column_stats import checked_std, column_stats, feature_std, std_above_rounding
from .._partitions import is_partitioned, partitions, run_on_partitions, to_memory
from ..attention._doubled_windows import DISTINCT

# If there are more rows than this, the sample is drawn at once, and only the standard
# deviations of the columns are computed from all rows.
MANY_ROWS = 10_000_000
# Copies of rows are searched for only if there are at least this many different rows.
_MIN_ROWS_WITH_COPIES = 10
# A number is a point mass if at least _MIN_COPIES rows share it, and _TIMES_NEIGHBORS times as
# many as share the next smaller or the next larger number. A search leaves these rows out if at
# least _MIN_REMAINING other rows remain.
_MIN_COPIES, _TIMES_NEIGHBORS, _MIN_REMAINING = 10, 5, 10


def optimal_rate_factor(n_ratio, n_features, *, decreasing=True):
    """Return the factor on the best bandwidth if there are `n_ratio` times as many rows.

    It is n_ratio^(-1 / (d + 4)) for d = `n_features` numeric columns. `decreasing` is True if
    the kernel decreases with the distance. Otherwise its bandwidth is not the size of a
    neighbourhood, and the factor is 1.
    """
    return n_ratio ** (-1 / (n_features + 4)) if decreasing else 1.0


class Sample:
    """Rows that a search evaluates: those of positive weight, or a random sample of them.

    Attributes
    ----------
    X, values, sample_weight
        Those of the Rows; `values` and `sample_weight` may be None.
    std : ndarray of shape (n_columns,)
        Standard deviations of the columns of X, which do not change if fewer rows are drawn.
    random_state : numpy.random.RandomState
        It draws samples.
    """

    def __init__(self, name, rows, max_rows, min_rows=2):
        # `max_rows` limits only samples that are drawn at once; `limit` limits all others. A
        # search with the criterion `name` needs at least `min_rows` rows.
        self.random_state, self._columns = check_random_state(rows.random_state), rows.columns
        self.X, self.values, self.sample_weight = rows.X, rows.values, rows.sample_weight
        self._n_ratio = 1.0  # number of all rows divided by the number of rows of the sample
        # With a gap, a row is left out with its neighbours in the order of the rows.
        self._keeps_order = rows.gap > 0
        std = None  # computed from all rows if rows are drawn at once, else from the sample
        if are_sampled(self.X):
            if len(self) > max_rows:
                std = checked_std(rows.stats)
                self._draw(max_rows)
            else:
                # Rows are loaded, so that all results, also of later random draws, equal those
                # for rows that were passed in memory.
                tables = self.X, self.values, self.sample_weight
                self.X, self.values, self.sample_weight = to_memory(*tables)
        if self.sample_weight is not None:
            self.take(self.sample_weight > 0)
        if len(self) < min_rows:
            number = {2: "two", 3: "three"}[min_rows]
            raise ValueError(
                f"bandwidth={name!r} predicts each row from the others and needs {number} rows "
                f"of positive weight, got n_samples={len(self)}: pass more rows, or a number "
                "as bandwidth."
            )
        self.std = feature_std(self.X, self.sample_weight) if std is None else std

    def __len__(self):
        return len(self.X)

    def limit(self, max_rows):
        """Keep `max_rows` rows at random if there are more."""
        if len(self) > max_rows:
            self._draw(max_rows)

    def positions(self, max_rows):
        """Draw `max_rows` rows; return their positions, ascending, or None for all rows."""
        if max_rows >= len(self):
            return None
        return draw_rows(len(self), max_rows, self.random_state)

    def rescale_to_all_rows(self, bandwidth, *, decreasing=True):
        """Turn bandwidths and lambdas (n_columns,) of this sample into those of all rows.

        `decreasing` is True if the kernel decreases with the distance. Otherwise the bandwidths
        of numeric columns do not change.
        """
        n_features = len(self._columns.numeric)
        factor = optimal_rate_factor(self._n_ratio, n_features, decreasing=decreasing)
        lambda_factor = optimal_rate_factor(self._n_ratio, n_features) ** 2
        return bandwidth * np.where(self._columns.is_numeric, factor, lambda_factor)

    def take(self, rows):
        """Keep only the rows at positions `rows`, or those for which a mask `rows` is True."""
        tables = self.X, self.values, self.sample_weight
        self.X, self.values, self.sample_weight = (
            None if x is None else x[rows] for x in tables
        )

    def _draw(self, n_rows):
        """Keep `n_rows` random rows, or consecutive ones if the order of the rows matters."""
        n_all, tables = len(self), (self.X, self.values, self.sample_weight)
        self._n_ratio *= n_all / n_rows
        if self._keeps_order:
            first = self.random_state.randint(n_all - n_rows + 1)
            rows = slice(first, first + n_rows)
            tables = to_memory(*(None if x is None else x[rows] for x in tables))
        else:
            tables = draw(n_rows, self.random_state, *tables)
        self.X, self.values, self.sample_weight = tables


class Units(NamedTuple):
    """Center and scale of each column of targets; standardized targets have a size of about 1.

    A column y becomes y / scale - center / scale.
    """

    center: np.ndarray  # mean of each column, (n_values,)
    scale: np.ndarray  # divisor of each column, (n_values,)
    unit: float  # the scale of all columns that vary, a power of two; 1 if each has its own
    # Largest absolute value of a scaled column, before the center is subtracted; the smallest
    # one of all columns. Errors far below its square are rounding errors.
    size: float

    @classmethod
    def from_values(cls, values, sample_weight, *, each_column):
        """Compute the units of targets (n_samples, n_values).

        If `each_column` is True and there are several columns, the scale of a column is its
        standard deviation. Otherwise all columns share the power of two above the largest
        standard deviation, so that scaled values keep all digits.
        """
        stats = column_stats(values, sample_weight)
        std = std_above_rounding(stats)
        each_column = each_column and len(std) > 1
        unit = 1.0 if each_column else float(np.ldexp(1.0, np.frexp(std.max())[1]))
        # The rounding errors of a constant column are in proportion to the constant.
        constant = np.where(stats.largest > 0, stats.largest, 1.0)
        scale = np.where(std > 0, std if each_column else unit, constant)
        return cls(stats.mean, scale, unit, float((stats.largest / scale).min()))

    def standardize(self, values):
        """Subtract the center from values, and divide them by the scale."""
        # The division comes first, so that no difference overflows.
        return values / self.scale - self.center / self.scale

    def restore_criterion(self, value, criterion):
        """Turn a criterion of standardized values into one of values in their own unit.

        `criterion` is its name.
        """
        if criterion == "aicc":  # the logarithm of an error
            return value + 2 * np.log(self.unit)
        with np.errstate(over="ignore", under="ignore"):
            return value * np.square(np.float64(self.unit))


class ValueSample(Sample):
    """A sample with targets: copies of rows are joined, and `values` are standardized.

    Attributes
    ----------
    units : Units
        The center and scale with which `values` are standardized.
    """

    def __init__(self, name, rows, max_rows, min_rows=2):
        if not rows.values.shape[1]:
            raise ValueError(
                f"values has shape {rows.values.shape}, without any column to predict: pass at "
                "least one."
            )
        super().__init__(name, rows, max_rows, min_rows)
        if not self._keeps_order:
            self._join_copies()
        self.limit(max_rows)
        # With `standardize`, each column of targets gets a scale of its own.
        self.units = Units.from_values(
            self.values, self.sample_weight, each_column=rows.standardize
        )
        self.values = self.units.standardize(self.values)

    def restore_criterion(self, value, criterion):
        """Turn a criterion of standardized values into one of the values as passed, a float.

        `criterion` is its name.
        """
        return float(self.units.restore_criterion(value, criterion))

    def subset(self, n_rows):
        """Return a sample of `n_rows` rows, those at `representative_positions`."""
        subset = copy(self)
        subset.take(self.representative_positions(n_rows))
        return subset

    def representative_positions(self, n_rows):
        """Return positions of `n_rows` rows whose targets are distributed as those of all rows.

        Rows are sorted by their targets and taken at regular steps, so that the result does not
        depend on the order of the rows.
        """
        # The last target is the first key of the order, and X decides between equal targets.
        order = np.lexsort([(self.X / self.std).sum(axis=1), *self.values.T])
        return order[np.linspace(0, len(order) - 1, n_rows).astype(int)]

    def _join_copies(self):
        """Join rows that are equal in all columns and targets to one, with their total weight.

        If most of the different rows have different targets, equal rows are copies, which would
        predict each other exactly. If many rows share a target, for example a class, equal rows
        may be equal by chance, and are not joined.
        """
        X, values, n_features = self.X, self.values, self.X.shape[1]
        if len(np.unique(X[:, 0])) == len(X):  # no rows are equal
            return
        # The different rows, the position of each row among these, and the number of copies.
        rows, position, counts = np.unique(
            np.column_stack([X, values]), axis=0, return_inverse=True, return_counts=True
        )
        if len(rows) == len(X) or len(rows) < _MIN_ROWS_WITH_COPIES:
            return
        if len(np.unique(values, axis=0)) < DISTINCT * len(rows):  # many share their targets
            return
        if self.sample_weight is not None:
            counts = np.bincount(position.ravel(), self.sample_weight)
        self.X, self.values = rows[:, :n_features], rows[:, n_features:]
        self.sample_weight = counts.astype(np.float64)


def are_sampled(X):
    """Return True for rows of Dask or very many rows, from which a sample is drawn at once."""
    return is_partitioned(X) or len(X) > MANY_ROWS


def draw(n_rows, random_state, *tables):
    """Draw rows at random, the same from all tables; return a tuple of tables in memory.

    All rows are returned if there are fewer than `n_rows`. The tables may be in memory or in
    Dask partitions. A table may be None, and stays None.
    """
    n_samples = len(tables[0])
    rows = draw_rows(n_samples, min(n_rows, n_samples), random_state)
    if not is_partitioned(*tables):
        return tuple(None if x is None else x[rows] for x in tables)
    import dask

    # Only the number of rows from each partition is drawn here. The partitions draw their rows
    # themselves, so that no positions have to be sent to them.
    sizes = next(x for x in tables if is_partitioned(x)).chunks[0]  # rows of each partition
    counts = np.diff(np.searchsorted(rows, np.cumsum((0, *sizes))))
    seeds = random_state.randint(2**31, size=len(counts))
    arguments = [
        (count, seed, *partition)
        for count, seed, partition in zip(counts, seeds, partitions(*tables), strict=True)
    ]
    # Each partition returns a list of its rows of each table.
    drawn = dask.compute(*run_on_partitions(_draw_from_partition, arguments))
    blocks_of_tables = zip(*drawn, strict=True)
    return tuple(None if x[0] is None else np.concatenate(x) for x in blocks_of_tables)


def _draw_from_partition(n_rows, seed, *tables):
    """Draw `n_rows` rows of a partition, the same from all tables, which may be None."""
    random_state = np.random.RandomState(seed)
    n_samples = next(len(x) for x in tables if x is not None)
    rows = draw_rows(n_samples, n_rows, random_state)
    return [None if x is None else x[rows] for x in tables]


def draw_rows(n_samples, n_rows, random_state):
    """Draw `n_rows` of `n_samples` rows; return their positions, ascending.

    Memory is needed only for these positions.
    """
    rows = sample_without_replacement(n_samples, n_rows, random_state=random_state)
    return np.sort(rows)


def point_masses(X, columns, is_integrated=None):
    """Find numbers that many rows share, in integrated columns.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
    columns : Columns
    is_integrated : ndarray of bool of shape (n_columns,), default=None
        True for integrated columns; None if all of them are.

    Returns
    -------
    is_regular : ndarray of bool of shape (n_samples,)
        True for rows without such a number; True for all rows if fewer than `_MIN_REMAINING`
        rows are without.
    masses : list of (int, float, float)
        For each such number: its column, the number itself, and the fraction of the rows that
        share it.
    """
    # In leave-one-out the copies of a number predict each other, so that a point mass makes the
    # best bandwidth 0. Rounded values and counts, which have about as many copies as the next
    # smaller and larger numbers, are no point masses.
    is_shared, masses = np.zeros(len(X), dtype=bool), []
    for j in columns.numeric:
        if is_integrated is not None and not is_integrated[j]:
            continue
        values, position, counts = np.unique(X[:, j], return_inverse=True, return_counts=True)
        padded = np.pad(counts, 1, constant_values=1)
        # The larger of the counts of the next smaller and the next larger number.
        neighbors = np.maximum(padded[:-2], padded[2:])
        is_mass = counts >= np.maximum(_TIMES_NEIGHBORS * neighbors, _MIN_COPIES)
        is_mass &= len(values) > 1  # a constant column has no point mass
        is_shared |= is_mass[position]
        masses += [(j, values[k], counts[k] / len(X)) for k in np.flatnonzero(is_mass)]
    has_enough = (~is_shared).sum() >= _MIN_REMAINING
    return ~is_shared if has_enough else np.ones_like(is_shared), masses


def mass_warning(masses, describe, is_without_masses):
    """Return the warning about the point mass that has the largest number of rows.

    Parameters
    ----------
    masses : list of (int, float, float)
        The point masses as `point_masses` returns them.
    describe : callable
        Returns name and value of a number, in the user's units, from its column and value.
    is_without_masses : bool
        Whether the bandwidth was chosen without the rows that share these numbers.
    """
    column, value, share = max(masses, key=lambda mass: mass[2])
    column, value = describe(column, value)
    more = f" or one of {len(masses) - 1} other shared values" if len(masses) > 1 else ""
    chosen = "was chosen without" if is_without_masses else "has too few rows besides"
    return (
        f"bandwidth='likelihood' {chosen} those that have the value {value:g} of {column}, "
        f"which {share:.0%} of the rows share{more}. A density spreads such a point mass: "
        "keep its share apart, and fit the other rows alone."
    )
