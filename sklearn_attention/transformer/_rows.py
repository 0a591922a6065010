"""Rows as a network takes them, in memory and in batches, and what is learned of them."""

from typing import NamedTuple

import numpy as np


class Examples(NamedTuple):
    """Rows with targets (n_rows, n_outputs), numbers or numbers of classes, and weights."""

    rows: object
    targets: np.ndarray
    weights: np.ndarray

    def take(self, chosen):
        """The same of only some rows; `chosen` is an ndarray of int."""
        return Examples(self.rows.take(chosen), self.targets[chosen], self.weights[chosen])

    def of_mean_weight_1(self):
        """The same with weights that leave losses as large as without any."""
        return self._replace(weights=(self.weights / self.weights.mean()).astype(np.float32))

    def arrays(self):
        """All arrays, which identify a data set."""
        return *self.rows.arrays(), self.targets, self.weights


class TableRows:
    """Rows that all have the same tokens, one for every feature."""

    # Numbers (n_rows, n_numeric) are kept as passed, NaN where missing, and in units of their
    # spread, with places among their quantiles; codes of categories are -1 where missing.

    def __init__(self, numbers, standardised, places, codes):
        self._numbers, self._columns = numbers, (standardised, places, codes)
        self.n_numeric = numbers.shape[1]
        self.lengths = np.full(len(codes), self.n_numeric + codes.shape[1])

    def __len__(self):
        return len(self.lengths)

    def take(self, rows):
        """The same of only some rows; `rows` is an ndarray of int."""
        return TableRows(*(part[rows] for part in (self._numbers, *self._columns)))

    def cells(self):
        """Numbers, and behind them codes, with NaN for what is missing."""
        codes = self._columns[-1]
        return np.column_stack([self._numbers, np.where(codes < 0, np.nan, codes)])

    def arrays(self):
        """All inputs of a network, which identify a data set."""
        return self._columns

    def batch(self, rows):
        """Inputs of the network for some rows, (B, ...), and None: nothing is padding."""
        return tuple(part[rows] for part in self._columns), None


class SequenceRows:
    """Rows that are sequences of one step at least, end to end in one array (n_steps, ...)."""

    def __init__(self, steps, lengths):
        self.steps, self.lengths = steps, lengths
        self.starts = np.cumsum(lengths) - lengths

    def __len__(self):
        return len(self.lengths)

    def take(self, rows):
        """The same of only some rows; `rows` is an ndarray of int."""
        (steps,), real = self.batch(rows)
        steps = steps.reshape(-1, *steps.shape[2:]) if real is None else steps[real]
        return SequenceRows(steps, self.lengths[rows])

    def cut(self, length):
        """The same without what follows the first so many steps of each."""
        places = np.arange(len(self.steps)) - np.repeat(self.starts, self.lengths)
        return SequenceRows(self.steps[places < length], np.minimum(self.lengths, length))

    def arrays(self):
        """All arrays, which identify a data set."""
        return self.steps, self.lengths

    def batch(self, rows):
        """Inputs of the network for some rows, ((B, T, ...),), and which are real, (B, T).

        Padded to the longest of the batch; None where there is no padding.
        """
        lengths = self.lengths[rows]
        places = np.arange(lengths.max(initial=0))
        real = places < lengths[:, None]  # (B, T)
        # Padding repeats the first step of its row, which no result depends on.
        steps = self.steps[self.starts[rows][:, None] + np.where(real, places, 0)]
        return (steps,), None if real.all() else real
