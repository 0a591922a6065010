"""The scale on which the kernels of a density compare rows.

Columns with a bound may be logarithms on it. A kernel of one width on the scale is narrow
beside the bound, and wide far from it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scale:
    """The scale on which kernels compare rows; some columns become logarithms.

    A number x beside a lower bound a becomes z = log(x - a + o), with an offset o > 0 and the
    sign 1. Beside an upper bound b it becomes z = -log(b - x + o), with the sign -1.
    """

    bounds: Any = None  # (n_features, 2), or None if no column has any
    offsets: Any = None  # o, (n_features,), NaN for columns that stay as they are; or None

    @property
    def log_columns(self):
        """For each log-transformed column: index, sign as in the formula, bound and offset."""
        if self.offsets is None:
            return []
        is_lower = np.isfinite(self.bounds[:, 0])
        signs, bounds = np.where(is_lower, 1, -1), np.where(is_lower, *self.bounds.T)
        indices = np.flatnonzero(~np.isnan(self.offsets)).tolist()
        return [(j, signs[j], bounds[j], self.offsets[j]) for j in indices]

    @property
    def scaled_bounds(self):
        """The bounds of the columns on the scale, (n_features, 2); None without any."""
        if not self.log_columns:
            return self.bounds
        bounds = self.bounds.copy()
        for j, sign, _, offset in self.log_columns:
            bounds[j, 0 if sign > 0 else 1] = sign * np.log(offset)
        return bounds

    def clip(self, rows):
        """Move rows into the bounds.

        Returns the rows, and a mask (n,), True for rows that were inside; it is the single
        value True if there are no bounds.
        """
        if self.bounds is None:
            return rows, True
        low, high = self.bounds.T
        return rows.clip(low, high), ((low <= rows) & (rows <= high)).all(axis=1)

    def apply(self, rows):
        """Map rows from their units to the scale."""
        columns = list(rows.T)
        for j, sign, bound, offset in self.log_columns:
            columns[j] = sign * np.log(sign * (rows[:, j] - bound) + offset)
        # `np.stack` takes columns of Dask, too.
        return np.stack(columns, axis=1) if self.log_columns else rows

    def invert(self, Z):
        """Map points from the scale back to the units of the rows."""
        columns = list(Z.T)
        for j, sign, bound, offset in self.log_columns:
            # z = sign * log(distance + offset), where the distance is that from the bound.
            with np.errstate(over="ignore"):
                distance = np.exp(sign * Z[:, j]) - offset
            # Rounding must not move a row beyond its bound, or to infinity.
            columns[j] = bound + sign * distance.clip(0, np.finfo(np.float64).max)
        return np.stack(columns, axis=1) if self.log_columns else Z

    def log_slopes(self, rows):
        """Compute log |dz / dx| at rows, (n,), summed over the columns.

        A log-density on the scale plus this number is the log-density in the units of the rows.
        """
        # With the distance from the bound, dz / dx = 1 / (distance + offset).
        log_slopes = 0.0 * rows[:, 0]
        for j, sign, bound, offset in self.log_columns:
            log_slopes = log_slopes - np.log(sign * (rows[:, j] - bound) + offset)
        return log_slopes
