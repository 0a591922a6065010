r"""Groups of neighbouring queries, and the keys near them, found by trees.

They are taken for stationary kernels of up to eight features that are compact or fall with the
distance, if the bandwidth is small relative to the data. `_dense.py` then compares each group
with the keys near it. Time is O((n + m) log(n + m)) for the trees of n queries and m keys, and
in proportion to the pairs that are compared; memory is O(n + m).

A key k is *near* a query q if its weight may matter:

* For a kernel with compact factors, k is within the support of every such factor.
* Otherwise :math:`\log K(q, k) > \log K(q, k_0) - L`, where :math:`k_0` is the key nearest to
  q. The *log margin* L is so large that all other keys together have less than 1e-12 of the
  weight.

A key is near a group if it is near one of its queries. All tests compare a group with a *box*,
an interval along each feature: a key, a leaf of the tree or a larger node. A *scale* (n,)
multiplies the bandwidth of each query.
"""

import functools
import itertools
import math

import numpy as np
from scipy.spatial import KDTree

from ..._blocks import IN_CACHE, blocks
from ...kernels._numerics import ROUNDED_UP
from ._keys import ranges
from ._nearest import FEATURES, nearest_kept

# Minimum number of queries in a group and of keys in a leaf; the maximum is twice as large.
_LEAF = 64
# Pairs below which trees are not grown, and the number of keys that take as long as the
# overhead of a group.
FEW_PAIRS, _KEYS_OF_A_GROUP = 2**20, 200
# Number of groups in which near keys are counted, to judge whether trees save time.
_SAMPLED_GROUPS = 8
# Share of a sum that may be left out, and the factor on this share for each degree of a
# polynomial, whose terms grow with the distance.
_NEGLIGIBLE, _FACTOR_PER_DEGREE = 1e-12, 1e-4


class NearKeys:
    """Groups of neighbouring queries, each with all keys that are near it.

    `factors` are pairs of a RadialKernel and its columns; a key beyond the support of one of
    them, or beyond the log margin of their product, is not near. `log_margin` is None for
    compact factors. What does not depend on the scale is computed once.
    """

    def __init__(self, problem, factors, log_margin):
        self._problem, self._log_margin = problem, log_margin
        self._is_compact = log_margin is None
        columns = sorted({j for _, factor_columns in factors for j in factor_columns})
        # Columns of the factors are renumbered among those that are compared.
        self._factors = [
            (kernel, [columns.index(j) for j in factor_columns])
            for kernel, factor_columns in factors
        ]
        # Coordinates are (d, n), since NumPy sums slowly along short rows.
        self._queries, self._keys = (
            np.ascontiguousarray(x[:, columns].T) for x in (problem.queries, problem.keys)
        )

    @classmethod
    def of(cls, problem, degree=0):
        """Return the near keys of a problem; None if trees cannot find them for the kernel."""
        kernel = problem.kernel
        if kernel.signed is not False or not kernel.stationary:
            return None
        factors, category_kernel = kernel.radial_factors(problem.keys.shape[1])
        # Where one factor is 0, so is the product: the compact factors alone suffice.
        compact_factors = [factor for factor in factors if math.isfinite(factor[0].support)]
        log_margin = None
        if not compact_factors:
            if not kernel.decreasing or (
                category_kernel is not None and category_kernel.scaled
            ):
                return None
            log_margin = degree * -math.log(_FACTOR_PER_DEGREE) - math.log(_NEGLIGIBLE)
            log_margin += _log_range(problem, category_kernel)
            # The nearest key may have the smallest weight, and the others nearly the total.
            log_margin += math.log(problem.weights.sum()) - math.log(problem.weights.min())
            if not math.isfinite(log_margin):
                return None
        factors = compact_factors or factors
        if len({j for _, columns in factors for j in columns}) not in FEATURES:
            return None
        return cls(problem, factors, log_margin)

    def groups(self, rows, scales):
        """Divide the queries at `rows` into groups of neighbours, each with its near keys.

        Returns a list with, for each group, the rows (n_group,) and a function without
        arguments that returns the positions of the near keys, which ascend. None if all pairs
        are as fast.
        """
        if not self.saves_time(rows, scales):
            return None
        # Groups are arrays of rows, in boxes from `low` to `high` (d, n_groups).
        if len(rows) == self._queries.shape[1]:
            low, high, groups = self._groups_of_all
        else:
            low, high, groups = self._groups(rows)
        # Keys whose log-kernel is not above `min_log_kernel` (n_groups,) are not near a group.
        max_scale = np.array([scales[group].max() for group in groups])
        min_log_kernel = np.full(len(groups), -np.inf)
        if not self._is_compact:
            squared, min_of_query = self._squared_to_nearest(rows), np.empty(len(scales))
            min_of_query[rows] = self._log_kernel(squared, scales[rows]) - self._log_margin
            min_log_kernel = np.array([min_of_query[group].min() for group in groups])

        def is_near(group, bottom, top):
            """Return True where keys in boxes may be near groups.

            Boxes from `bottom` to `top` (d, n_boxes) are compared with the groups numbered
            `group` (n_boxes,).
            """
            gap = np.maximum(bottom - high[:, group], low[:, group] - top).clip(0.0)
            log_kernel = self._log_kernel(_squared(gap) / ROUNDED_UP, max_scale[group])
            return log_kernel > min_log_kernel[group]

        return list(self._with_keys(groups, is_near))

    def saves_time(self, rows, scales):
        """Return True if trees save time, judged by a few groups of queries.

        The mean share of the keys that are near a group is estimated from keys at regular
        steps; the overhead of a group counts as further keys.
        """
        queries, scales = self._queries[:, rows], scales[rows]
        keys, near_shares = self._keys, []
        sampled_keys = keys[:, :: max(1, keys.shape[1] // len(rows))]
        for middle in np.linspace(0, len(rows) - 1, _SAMPLED_GROUPS).astype(int):
            squared = sum(_squared(queries - queries[:, middle, None]))
            group = np.argpartition(squared, min(_LEAF, len(rows) - 1))[: 1 + _LEAF]
            points, min_log_kernel = queries[:, group], -np.inf
            if not self._is_compact:
                # All queries of the group are compared with the key nearest to its middle.
                squared_to_keys = sum(_squared(keys - queries[:, middle, None]))
                if self._problem.left_out is not None:
                    squared_to_keys[slice(*self._problem.left_out[rows[middle]])] = np.inf
                squared_to_nearest = _squared(points - keys[:, squared_to_keys.argmin(), None])
                min_log_kernel = self._log_kernel(squared_to_nearest, scales[group]).min()
                min_log_kernel -= self._log_margin
            low, high = points.min(axis=1)[:, None], points.max(axis=1)[:, None]
            gap = np.maximum(np.maximum(sampled_keys - high, low - sampled_keys), 0.0)
            log_kernel = self._log_kernel(_squared(gap), scales[group].max())
            near_shares.append((log_kernel > min_log_kernel).mean())
        return np.mean(near_shares) + _KEYS_OF_A_GROUP / keys.shape[1] < 1

    def _with_keys(self, groups, is_near):
        """Yield each group, and a function that returns the positions of its near keys.

        `groups` are arrays of rows; for `is_near` see :meth:`groups`. Blocks of groups go down
        the tree of keys together. The keys in the leaves are only compared when the function is
        called.
        """
        tree = self._tree

        def near_keys(group, leaves):
            positions = ranges(tree.first[leaves], tree.last[leaves])
            points = self._keys_in_tree[:, positions]
            return np.sort(tree.order[positions[is_near([group], points, points)]])

        for block in blocks(len(groups), max(1, IN_CACHE // np.sum(tree.is_leaf))):
            numbers = np.arange(block.start, block.stop)
            group_of_leaf, leaves = tree.near_leaves(numbers, is_near)
            leaves = np.split(leaves, np.searchsorted(group_of_leaf, numbers[1:]))
            for number, group_leaves in zip(numbers, leaves, strict=True):
                yield groups[number], functools.partial(near_keys, number, group_leaves)

    @functools.cached_property
    def _tree(self):
        """The tree of the keys."""
        return _Tree(self._keys.T, _LEAF)

    @functools.cached_property
    def _keys_in_tree(self):
        """Coordinates (d, m) in the order of the tree, in which neighbours lie together."""
        return self._keys[:, self._tree.order]

    @functools.cached_property
    def _groups_of_all(self):
        """The result of `_groups` for all queries."""
        return self._groups(np.arange(self._queries.shape[1]))

    def _groups(self, rows):
        """Return the lower and upper ends (d, n_groups) of boxes around groups, and the groups.

        Groups are lists of rows: the leaves of a tree of the queries.
        """
        tree = _Tree(self._queries[:, rows].T, _LEAF)
        groups = np.split(rows[tree.order], tree.last[tree.is_leaf][:-1])
        return tree.low[:, tree.is_leaf], tree.high[:, tree.is_leaf], groups

    def _squared_to_nearest(self, rows):
        """Return squared differences (d, n_rows) of queries from the nearest key not left out.

        Those of every query are computed once.
        """
        new_rows = rows[np.isnan(self._known_squared[0, rows])]
        if len(new_rows):
            problem, queries = self._problem.take(new_rows), self._queries[:, new_rows]
            tree = KDTree(self._keys.T, balanced_tree=False)
            distance, nearest = nearest_kept(tree, queries.T, problem.left_out)
            squared = _squared(queries - self._keys[:, nearest])
            squared[:, np.isinf(distance)] = np.inf
            self._known_squared[:, new_rows] = squared
        return self._known_squared[:, rows]

    @functools.cached_property
    def _known_squared(self):
        """Results (d, n) of `_squared_to_nearest`; NaN until they are computed."""
        return np.full(self._queries.shape, np.nan)

    def _log_kernel(self, squared_differences, scale):
        """Return the logarithm of the product of the factors at squared differences (d, n).

        Compact factors count as 1 within their support. `scale` is a number or (n,).
        """
        total = 0.0
        for kernel, columns in self._factors:
            with np.errstate(over="ignore"):
                squared = sum(squared_differences[j] for j in columns) / scale**2
            if self._is_compact:
                total = total + np.where(squared <= kernel.support**2, 0.0, -np.inf)
            else:
                total = total + kernel.log_profile(squared)
        return total


class _Tree:
    """A k-d tree of points (n, d): boxes that contain smaller boxes, or in leaves points.

    Node i has the box from ``low[:, i]`` to ``high[:, i]``, and the points that are at the
    positions from ``first[i]`` to ``last[i] - 1`` of `order`.
    """

    def __init__(self, points, leaf_size):
        from sklearn import neighbors  # is slow to load, and not needed for few rows

        arrays = neighbors.KDTree(points, leaf_size=leaf_size).get_arrays()
        # The first array has the points, and `ends` (2, n_nodes, d) the ends of the boxes.
        _, self.order, nodes, ends = map(np.asarray, arrays)
        self.low, self.high = np.ascontiguousarray(ends.transpose(0, 2, 1))
        self.first, self.last = nodes["idx_start"], nodes["idx_end"]
        self.is_leaf = nodes["is_leaf"] == 1

    def near_leaves(self, groups, is_near):
        """Return all pairs of a group and a leaf that may be near it, sorted by group.

        ``is_near(group, low, high)`` returns True for boxes that may have points near a group.
        The result is two arrays (n_pairs,): the group and the leaf of each pair.
        """
        # All groups go down from the root together, one level of nodes at a time.
        group, node = groups, np.zeros(len(groups), dtype=int)
        while True:
            may_be_near = is_near(group, self.low[:, node], self.high[:, node])
            group, node = group[may_be_near], node[may_be_near]
            # All leaves have the same depth. The children of node i are 2 i + 1 and 2 i + 2.
            if not len(node) or self.is_leaf[node[0]]:
                return group, node
            group, node = np.repeat(group, 2), (2 * node[:, None] + [1, 2]).ravel()


def _log_range(problem, category_kernel):
    """Return the largest logarithm of a kernel of categories less the smallest one.

    They are those between any two combinations of levels. The result is 0 if the kernel is
    None, and inf if there are too many combinations to compare all of them.
    """
    if category_kernel is None:
        return 0.0
    n_features = problem.keys.shape[1]
    columns = category_kernel.categorical_columns(n_features)
    codes = [np.append(problem.queries[:, j], problem.keys[:, j]) for j in columns]
    levels = list(map(np.unique, codes))
    n_combinations = math.prod(map(len, levels))
    if n_combinations**2 > IN_CACHE:
        return math.inf
    combinations = np.zeros((n_combinations, n_features))
    combinations[:, columns] = list(itertools.product(*levels))
    log_kernel = category_kernel.log(combinations, combinations)
    return float(log_kernel.max()) - float(log_kernel.min())


def _squared(distances):
    """Return squares; they are infinite where they overflow."""
    with np.errstate(over="ignore"):
        return distances * distances
