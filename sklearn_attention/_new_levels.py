r"""Effects of levels that no training row has, such as a new shop, on errors of predictions.

A new level has a random effect, from the same distribution as the effects of known levels. The
variance of this distribution is estimated by leaving levels out: a row is predicted as if its
level were new, by rows of other levels. Its error :math:`e_i` is larger than its leave-one-out
error :math:`r_i`, which the other rows of its level reduce. At a query x the variance is

.. math:: \tau(x)^2 = \max\Bigl(0,\; \frac{1}{m} \sum_{g=1}^m \Bigl[\sum_{i \in g} v_i(x)\,
          (e_i^2 - r_i^2) + \overline{r_g^2}\Bigr] - \overline{r^2}\Bigr)

over m levels that are left out. The rows of a level share its weight by how near the query they
are: the :math:`v_i(x)` of a level sum to 1. The mean :math:`\overline{r_g^2}` of a level
differs from that of all rows, :math:`\overline{r^2}`, where small levels have larger errors:
most errors at known levels are of rows in large levels, but a new one may well be small.

An effect is :math:`\tau(x)` times Student's t with m - 1 degrees of freedom, at least 2. Errors
at known levels and effects are independent, so squares of half-widths add up. So do variances
of several categories with new levels, with the degrees of freedom of the largest. A new town
has new shops, so the shops do not count beside it.

A missing cell, where no training row has one, stands for one of the M known levels. A level
differs from the mean of all M by (M - 1) / M of its difference from the mean of the others, so
the standard deviation is smaller by this factor, and the effect is normal.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from ._blocks import blocks_of_queries, evenly_spread
from ._column_stats import replace_zeros
from ._columns import UNORDERED
from ._levels import MISSING, UNSEEN

# Maximum number of levels that are left out. If all of 100 are left out, intervals are 0.96 to
# 0.99 times as wide in the benchmark of new levels.
_MAX_LEVELS = 40
# Maximum number of groups in which levels are left out. One by one, the first interval of
# averages takes 0.46 of a fit in that benchmark, in ten groups at most 0.27.
_MAX_GROUPS = 10
# Maximum number of rows that are predicted without their level.
MAX_ROWS = 800


class EffectDistribution(NamedTuple):
    """Distribution of effects of new levels at queries: a scale times Student's t."""

    std: np.ndarray  # scale in units of the targets, (n_queries, n_outputs); 0 for known levels
    dof: np.ndarray  # degrees of freedom, (n_queries, n_outputs)

    @property
    def normal_std(self):
        """Standard deviations of normal effects with the same 0.95 quantile."""
        return self.std * stdtrit(self.dof, 0.95) / ndtri(0.95)

    def inflate(self, quantiles, centers, probabilities):
        """Return quantiles (n_queries, n_quantiles, n_outputs) of errors and effects together.

        `probabilities` are those of the quantiles, which move away from the centers (n_queries,
        n_outputs), their medians or predictions.
        """
        probabilities = np.reshape(probabilities, (-1, 1))
        effects = self.std[:, None] * stdtrit(self.dof[:, None], probabilities)
        half_widths = np.abs(quantiles - centers[:, None])
        # This is hypot(a, b) - a, for half-widths a and effects b, without differences of
        # infinite numbers.
        growth = effects * (
            effects / replace_zeros(np.hypot(half_widths, effects) + half_widths)
        )
        inflated = quantiles + np.sign(probabilities - 0.5) * growth
        return np.where(self.std[:, None] > 0, inflated, quantiles)


class LevelEffects:
    """Effects of new levels on the predictions of a fitted estimator.

    A subclass predicts for the estimator. Its ``_errors(category, rows, groups)`` returns the
    :math:`e_i` and the :math:`r_i` of rows, each (n_rows, n_outputs). The category is the
    position of a column. The rows are those of all groups, in this order. A group is a pair:
    positions of its rows, and a mask (n_keys,), True for training rows of the same levels. Its
    ``_weights_near(category, X, rows)`` returns weights (n_queries, n_rows) of training rows
    at queries, in any unit.
    """

    def __init__(self, keys, present, with_errors, columns, n_outputs):
        # `keys` (n_keys, n_columns) are training rows as numbers and codes. `present` and
        # `with_errors` are the positions of those that have positive weight, and errors.
        self._keys, self._present, self._with_errors = keys, present, with_errors
        self._n_outputs, self._left_out = n_outputs, {}
        categories = np.flatnonzero(np.equal(columns.kinds, UNORDERED)).tolist()
        self._levels = {j: np.unique(keys[present, j]) for j in categories}

    def is_new(self, X):
        """Return a mask of the shape of X, True for levels that no training row has."""
        mask = np.zeros(X.shape, dtype=bool)
        for j, levels in self._levels.items():
            mask[:, j] = ~np.isin(X[:, j], levels)
        return mask

    def distribution(self, X):
        """Compute the EffectDistribution at queries X of numbers and codes."""
        std, dof = np.zeros((len(X), self._n_outputs)), np.ones((len(X), self._n_outputs))
        for category, queries in self._queries_by_category(X):
            for block in blocks_of_queries(len(queries), MAX_ROWS):
                rows = queries[block]
                category_std, category_dof = self._category_effect(category, X[rows])
                dof[rows] = np.where(category_std >= std[rows], category_dof, dof[rows])
                std[rows] = np.hypot(std[rows], category_std)
        return EffectDistribution(std, dof)

    def _queries_by_category(self, X):
        """Yield each category, and the positions of queries with a new level that counts.

        A new level does not count if a category of which it is a part has a new level, too.
        """
        is_new = self.is_new(X)
        varying = [j for j, levels in self._levels.items() if len(levels) > 1]
        for j in varying:
            counts = is_new[:, j].copy()
            for k in varying:
                if (counts & is_new[:, k]).any() and self._is_nested(j, k):
                    counts &= ~is_new[:, k]
            yield j, np.flatnonzero(counts)

    def _is_nested(self, j, k):
        """Return True if each level of j occurs with one level of k only, or j copies k."""
        n_levels, codes_of_k = len(self._levels[j]), self._keys[self._present, k]
        pairs = self._keys[self._present, j] * (codes_of_k.max() + 1) + codes_of_k
        is_finer = (n_levels, j) > (len(self._levels[k]), k)
        return is_finer and len(np.unique(pairs)) == n_levels

    def _category_effect(self, category, X):
        """Compute scale and degrees of freedom of the effects of new levels of one category.

        Both are those at queries X, (n_queries, n_outputs) or broadcast to this shape.
        """
        if category not in self._left_out:
            self._left_out[category] = self._leave_levels_out(category)
        if self._left_out[category] is None:
            return np.zeros((len(X), self._n_outputs)), 1.0
        rows, level, unit, excess = self._left_out[category]
        n_left_out, n_levels = level.max() + 1, len(self._levels[category])
        # Rows of a level share its weight. If none of them is near the query, they share it
        # equally.
        weights = self._weights_near(category, X, rows) + np.finfo(np.float64).tiny
        weights /= (weights @ (level[:, None] == np.arange(n_left_out)))[:, level]
        std = unit * np.sqrt((weights @ excess / n_left_out).clip(0))
        is_missing = X[:, [category]] == MISSING
        dof = np.where(is_missing, np.inf, max(n_left_out - 1, 2))
        return std * np.where(is_missing, 1 - 1 / n_levels, 1), dof

    def _leave_levels_out(self, category):
        """Predict rows of some levels of a category as if their level were new.

        Returns
        -------
        rows : ndarray of shape (n_rows,)
            Positions of the rows.
        level : ndarray of shape (n_rows,)
            The number of the level of each row, from 0.
        unit : ndarray of shape (n_outputs,)
            Unit in which squares of errors do not overflow.
        excess : ndarray of shape (n_rows, n_outputs)
            Squares, in this unit, whose mean over levels is the variance of an effect.

        The result is None if fewer than two levels have rows with errors.
        """
        codes = self._keys[self._with_errors, category]
        levels, first_rows, sizes = np.unique(codes, return_index=True, return_counts=True)
        # 1. Choose levels, in the order of their first rows, so that their names do not matter.
        left_out = levels[evenly_spread(np.argsort(first_rows), _MAX_LEVELS)]
        if len(left_out) < 2:
            return None
        # 2. Divide them into groups, whose levels are left out together.
        groups, n_rows = [], MAX_ROWS // len(left_out)
        for group in (left_out[k::_MAX_GROUPS] for k in range(min(_MAX_GROUPS, len(left_out)))):
            rows = [evenly_spread(self._with_errors[codes == level], n_rows) for level in group]
            groups.append((np.concatenate(rows), np.isin(self._keys[:, category], group)))
        rows = np.concatenate([rows for rows, _ in groups])
        # 3. Predict the rows without their level. If a row has no prediction then, since only
        # rows of its level are near it, it tells nothing about effects, and its excess is 0.
        errors = np.stack(self._errors(category, rows, groups))
        errors[0] = np.where(np.isfinite(errors[0]), errors[0], errors[1])
        unit = replace_zeros(np.abs(errors).max(axis=(0, 1)))
        without_level, without_row = np.square(errors / unit)
        # 4. Compute the mean squared error of each level, and how much their mean exceeds that
        # of all rows.
        level = np.unique(self._keys[rows, category], return_inverse=True)[1]
        means = np.stack([without_row[level == k].mean(axis=0) for k in range(len(left_out))])
        sizes = sizes[np.isin(levels, left_out)]
        imbalance = means.mean(axis=0) - np.average(means, axis=0, weights=sizes)
        return rows, level, unit, without_level - without_row + imbalance


def with_new_levels(rows, category):
    """Return a copy of rows of numbers and codes, with a new level of a category."""
    rows = rows.copy()
    rows[:, category] = UNSEEN
    return rows
