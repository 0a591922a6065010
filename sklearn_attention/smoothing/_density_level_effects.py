"""Effects of new levels on the target of a conditional density.

New levels are those of categories that did not occur in training. A density is too narrow
there: it states the variance of the target at levels that it has seen. What the effect of a
new level adds to this variance is estimated from rows that are predicted without their level.
"""

import numpy as np

from .._column_stats import replace_zeros
from .._new_levels import LevelEffects, with_new_levels


class DensityLevelEffects(LevelEffects):
    """Effects of new levels, in addition to the variance that a conditional density states.

    New levels are those of categories that did not occur in training.
    """

    def __init__(self, density):
        # `density` is a fitted ConditionalKernelDensity: its kernels are around the values that
        # `_averages` averages, moved by the line `_line` if the degree is 1.
        self._averages, self._values = density._averages, density.values_
        self._line = density._line if density.degree_ else None
        self._kernel_std = density.target_bandwidth_ * density.target_kernel_.spread
        weighted = np.flatnonzero(self._averages.row_weights)
        super().__init__(density.keys_, weighted, weighted, density.columns_, 1)

    def _errors(self, category, rows, groups):
        """Return errors of rows whose level is left out, and standard deviations, (n, 1) each.

        `category` is the column whose levels are left out. Each of `groups` is a pair: the
        positions of rows that are predicted, and a mask of the rows that are left out for this.
        `rows` are the positions of all groups, one after the other. An error is the target
        minus the mean of a density that is fitted without the rows of the level.
        """
        errors = []
        for group, is_left_out in groups:
            remaining, queries = ~is_left_out, with_new_levels(self._keys[group], category)
            line = self._line.take(remaining).predict(queries) if self._line else 0.0
            mean = self._averages.take(remaining).predict(queries)
            errors.append(self._values[group] - line - mean)
        # A density has no leave-one-out residuals. Its standard deviations take their place:
        # their squares are the variance of the targets around a query, plus that of the kernel.
        # The unit keeps squares from overflowing.
        queries = with_new_levels(self._keys[rows], category)
        unit = replace_zeros(np.abs(self._averages.values).max())
        values = self._averages.values / unit
        mean, squares = self._averages.predict(queries, np.stack([values, values**2], axis=1)).T
        stds = np.hypot(unit * np.sqrt((squares - mean**2).clip(0)), self._kernel_std)
        return np.concatenate(errors)[:, None], stds[:, None]

    def _weights_near(self, category, X, rows):
        """Return the weights (n_queries, n_rows) of the rows at queries, which are all 1."""
        # Weights that differ would make a mixture for each query, with its own bandwidth.
        return np.ones((len(X), len(rows)))
