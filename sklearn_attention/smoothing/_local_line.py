"""The local line through the targets on which a conditional density is centred."""

import numpy as np

from .._spread import standardized
from ..attention._leave_one_out import LeaveOneOut
from ..bandwidth import rule_bandwidth
from ..bandwidth._density_search import ConditionalSearch
from ..bandwidth._search import MAX_SEARCH_ROWS, Rows, Sample, draw
from ..kernels._product_kernel import mixed_kernel

# Multiples of a rule of thumb, and of bandwidths that were searched, at which lines are tried.
_OF_RULE, _OF_SEARCHED = np.geomspace(0.1, 20, 10), np.geomspace(0.75, 36, 6)
# How much each feature matters to the targets shows in a sample of half the rows, within these
# numbers. One that does not gets a bandwidth of so many times its spread.
_FEWEST, _MOST, _WIDEST = 60, 300, 10.0


def line_residuals(line):
    """Target less the line through all other rows, (n_keys,); of one row 0."""
    if np.count_nonzero(line.counts) < 2:
        return np.zeros(len(line.keys))
    return line.errors[:, 0]


def line_bandwidth(rows, kernel, target_kernel):
    """Bandwidths of each feature at which lines predict rows that are left out best.

    Those of several features keep the ratios of the best conditional density of some rows.
    """
    sample, columns = Sample("likelihood", rows, MAX_SEARCH_ROWS), rows.columns
    sample.limit(MAX_SEARCH_ROWS)
    X, weights = sample.X, sample.sample_weight
    # Weights in any unit: rows of mean weight count as one.
    relative = None if weights is None else weights / weights.mean()
    bandwidth = rule_bandwidth(X, kernel, sample_weight=relative, columns=columns)
    scales = _OF_RULE
    if len(columns.numeric) + len(columns.categorical) > 1:
        n_rows = min(max(len(X) // 2, _FEWEST), _MOST, len(X))
        # Drawn by what they are, not by where they stand.
        sizes = np.square(standardized(X[:, columns.numeric])).sum(axis=1)
        order = np.lexsort((sizes, sample.values[:, 0]))
        tables = (None if x is None else x[order] for x in (X, sample.values, weights))
        some = draw(n_rows, sample.random_state, *tables)
        few = Rows(
            X=some[0], values=some[1], columns=columns, sample_weight=some[2],
            random_state=rows.random_state,
        )  # fmt: skip
        found = ConditionalSearch(target_kernel, n_best=0).choose(few, kernel).bandwidth[:-1]
        widest = np.where(columns.is_numeric, _WIDEST * sample.spread, 1.0)
        bandwidth, scales = np.minimum(found, widest), _OF_SEARCHED
    errors = LeaveOneOut(
        X, sample.values, mixed_kernel(kernel, columns, bandwidth),
        bandwidth=columns.divisors(bandwidth), degree=1, sample_weight=weights,
        widen=True,
    ).scores(scales).left_out  # fmt: skip
    best = scales[np.argmin(errors)]
    return sample.carry(np.where(columns.is_numeric, best * bandwidth, bandwidth), columns)
