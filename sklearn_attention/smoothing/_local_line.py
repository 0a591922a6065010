"""The local line through the targets on which a conditional density is centred."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import attention
from .._spread import feature_spread
from ..bandwidth import rule_bandwidth
from ..bandwidth._density_search import ConditionalSearch
from ..bandwidth._neighbors import neighbor_distances
from ..bandwidth._search import MAX_SEARCH_ROWS, Rows, Sample, draw
from ..kernels import mixed_kernel

# The nearest rows, one for each coefficient and three more, are within so many spreads of the
# kernel: where they are sparse, windows are wider.
_MORE_ROWS, _SPREADS = 4, 2.0
# Rows are moved to so many of these: the squares of their squares would overflow.
_FURTHEST = 1e60
# Multiples of a rule of thumb, and of bandwidths that were searched, at which lines are tried.
_OF_RULE, _OF_SEARCHED = np.geomspace(0.1, 20, 10), np.geomspace(0.75, 36, 6)
# How much each feature matters to the targets shows in a sample of half the rows, within these
# numbers. One that does not gets a bandwidth of so many times its spread.
_FEWEST, _MOST, _WIDEST = 60, 300, 10.0


@dataclass(frozen=True, eq=False)
class LocalLine:
    """Local lines in the targets of some rows, wider where these are sparse, and bounded."""

    keys: Any
    targets: Any
    key_weights: Any
    kernel: Any
    columns: Any
    bandwidth: Any
    empty: str
    device: str

    @classmethod
    def of(cls, model):
        """The line of a fitted estimator."""
        return cls(
            model.keys_, model.values_, model.key_weights_, model.line_kernel_, model.columns_,
            model.line_bandwidth_, model.empty, model.device,
        )  # fmt: skip

    def __call__(self, X):
        """Heights of the line at some rows, (n,)."""
        return self._heights(X, None)

    def residuals(self):
        """How far each target is from the line through all others, (n_keys,); of one row 0."""
        if self._kept.sum() < 2:
            return np.zeros(len(self.keys))
        return self.targets - self._heights(self.keys, np.arange(len(self.keys)))

    @property
    def _kept(self):
        n_keys = len(self.keys)
        return np.ones(n_keys, bool) if self.key_weights is None else self.key_weights > 0

    def _heights(self, X, own):
        scale, heights = self._scales(X, own is not None), np.empty(len(X))
        for some in (scale == 1, scale > 1):
            rows = slice(None) if some.all() else np.flatnonzero(some)
            if some.any():
                heights[rows] = attention.attend_local(
                    X[rows], self.keys, self.targets, self.kernel,
                    bandwidth=self.columns.divisors(self.bandwidth),
                    query_scale=scale[rows] if scale[rows][0] > 1 else None,
                    sample_weight=self.key_weights,
                    leave_one_out=False if own is None else own[rows],
                    empty="mean" if self.empty == "mean" else "nearest", device=self.device,
                ).values  # fmt: skip
        targets = self.targets[self._kept]
        margin = feature_spread(self.targets[:, None], self.key_weights)
        return np.clip(heights, targets.min() - margin, targets.max() + margin)

    def _scales(self, X, leave_one_out):
        """What the bandwidth is multiplied by at each row, (n,)."""
        numeric, kept = self.columns.numeric, self._kept
        if self.kernel.radial_form(X.shape[1]) is None:
            return np.ones(len(X))
        unit = _SPREADS * self.kernel.spread * self.bandwidth[numeric]
        n_neighbors = min(len(numeric) + _MORE_ROWS, kept.sum() - leave_one_out)
        with np.errstate(over="ignore"):
            queries, keys = (
                np.clip(rows[:, numeric] / unit, -_FURTHEST, _FURTHEST)
                for rows in (X, self.keys[kept])
            )
        nearest = neighbor_distances(queries, keys, n_neighbors + leave_one_out)
        return np.maximum(nearest[:, -1], 1.0)


def line_bandwidth(rows, kernel, target_kernel):
    """Bandwidths of each feature at which lines predict rows that are left out best.

    Those of several features are in proportion to the ones of the best conditional density
    of some rows.
    """
    sample, columns = Sample("likelihood", rows, MAX_SEARCH_ROWS), rows.columns
    sample.limit(MAX_SEARCH_ROWS)
    X, weights = sample.X, sample.sample_weight
    bandwidth = rule_bandwidth(X, kernel, sample_weight=weights, columns=columns)
    scales = _OF_RULE
    if len(columns.kinds) > 1:
        n_rows = min(max(len(X) // 2, _FEWEST), _MOST, len(X))
        some = draw(n_rows, sample.random_state, X, sample.values, weights)
        few = Rows(
            X=some[0], values=some[1], columns=columns, sample_weight=some[2],
            random_state=rows.random_state,
        )  # fmt: skip
        found = ConditionalSearch(target_kernel, n_best=0).choose(few, kernel).bandwidth[:-1]
        widest = np.where(columns.is_numeric, _WIDEST * sample.spread, 1.0)
        bandwidth, scales = np.minimum(found, widest), _OF_SEARCHED
    errors = attention.LeaveOneOut(
        X, sample.values, mixed_kernel(kernel, columns, bandwidth),
        bandwidth=columns.divisors(bandwidth), degree=1, sample_weight=weights,
        empty="mean" if rows.empty == "mean" else "nearest", device=rows.device,
    ).scores(scales).left_out  # fmt: skip
    best = scales[np.argmin(errors)]
    return sample.carry(np.where(columns.is_numeric, best * bandwidth, bandwidth), columns)
