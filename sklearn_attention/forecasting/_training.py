"""What candidates learn from, and the origins that they are validated at."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ._origins import Origins


@dataclass(frozen=True, eq=False)
class Training:
    """Series to learn from, with validation origins in contiguous blocks.

    Attributes
    ----------
    origins : Origins
        All origins with a whole horizon after them, and a step before.
    validation : Origins
        Origins that candidates are compared at.
    block : ndarray of int of shape (n_validation,)
        Which block of time each of these is in.
    scale : ndarray of shape (n_series,)
        Unit of each series.
    """

    origins: Origins
    validation: Origins
    block: np.ndarray
    scale: np.ndarray

    @property
    def n_blocks(self):
        """How many blocks there are."""
        return int(self.block.max()) + 1 if len(self.block) else 0

    def earliest(self, rows=slice(None)):
        """First validation origin of each series, the end of those without; (n_series,).

        Parameters
        ----------
        rows : ndarray of int, default=slice(None)
            Which validation origins there are; all unless said otherwise.
        """
        first = self.validation.table.lengths.copy()
        np.minimum.at(first, self.validation.series[rows], self.validation.known[rows])
        return first

    @cached_property
    def _spans(self):
        """First and last validation origin of each series in each block; inf, -inf if none."""
        shape = len(self.origins.table.values), self.n_blocks
        first, last = np.full(shape, np.inf), np.full(shape, -np.inf)
        at = self.validation.series, self.block
        np.minimum.at(first, at, self.validation.known)
        np.maximum.at(last, at, self.validation.known)
        return first, last

    def overlapping(self, series, known, block):
        """Whether what follows origins overlaps with what is forecast in a block.

        Parameters
        ----------
        series, known : ndarray of int of shape (n_origins,)
        block : int

        Returns
        -------
        overlaps : ndarray of bool of shape (n_origins,)
        """
        first, last = (spans[series, block] for spans in self._spans)
        horizon = self.origins.horizon
        return (known > first - horizon) & (known < last + horizon)

    def within(self, series, steps):
        """Whether steps of a series are forecast in the blocks; (n_steps, n_blocks).

        Parameters
        ----------
        series : int
        steps : ndarray of int of shape (n_steps,)
        """
        first, last = (spans[series] for spans in self._spans)
        return (steps[:, None] >= first) & (steps[:, None] < last + self.origins.horizon)
