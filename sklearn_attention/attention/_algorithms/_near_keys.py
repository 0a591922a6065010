"""Groups of neighbouring queries, and the keys that count for them, found by trees.

They are for stationary kernels of up to eight features that are compact, or fall with the
distance, and for bandwidths that are small relative to the data. Each group meets the keys
that count for one of its queries, in tiles of `_dense.py`. Time is in proportion to these
pairs, after O((n + m) log(n + m)) for the trees; memory is O(n + m).
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
# Number of groups in which keys that count are counted.
_SAMPLED_GROUPS = 8
# Share of a sum that may be left out, and the factor on this share for each degree of a
# polynomial, whose terms grow with the distance.
_NEGLIGIBLE, _FACTOR_PER_DEGREE = 1e-12, 1e-4


class NearKeys:
    """Groups of neighbouring queries, each with all keys that count for it."""

    # The keys that count are those within the support of every compact factor of the kernel. If
    # no factor is compact, the others have together a negligible weight relative to a key
    # nearby. What does not depend on the bandwidth is computed once.

    # `factors` are pairs of a RadialKernel and its columns. `fall` is the difference of
    # logarithms of the kernel at a key nearby and at one that does not count; None for compact
    # kernels.

    def __init__(self, problem, factors, fall):
        self._problem, self._fall = problem, fall
        columns = sorted({j for _, of_factor in factors for j in of_factor})
        self._factors = [
            (kernel, [columns.index(j) for j in of_factor]) for kernel, of_factor in factors
        ]
        # Coordinates are (d, n), since sums along short rows are slow.
        self._queries, self._unordered = (
            np.ascontiguousarray(x[:, columns].T) for x in (problem.queries, problem.keys)
        )

    @classmethod
    def of(cls, problem, degree=0):
        """Return the keys near queries; None for a kernel of which no tree can tell them."""
        kernel = problem.kernel
        if kernel.signed is not False or not kernel.stationary:
            return None
        factors, of_categories = kernel.radial_factors(problem.keys.shape[1])
        compact, fall = [factor for factor in factors if math.isfinite(factor[0].support)], None
        if not compact:
            if not kernel.decreasing or (of_categories is not None and of_categories.scaled):
                return None
            fall = degree * -math.log(_FACTOR_PER_DEGREE) - math.log(_NEGLIGIBLE)
            fall += 0.0 if of_categories is None else _log_range(problem, of_categories)
            fall += math.log(problem.weights.sum()) - math.log(problem.weights.min())
            if not math.isfinite(fall):
                return None
        # Where a factor is 0, so is the product.
        factors = compact or factors
        if len({j for _, columns in factors for j in columns}) not in FEATURES:
            return None
        return cls(problem, factors, fall)

    def groups(self, rows, width):
        """Group the queries at `rows`; return groups, and functions for their keys' positions.

        Positions ascend. `width` (n,) multiplies the bandwidth. None if all pairs are as fast.
        """
        if not self.pay(rows, width):
            return None
        if len(rows) == self._queries.shape[1]:
            low, high, groups = self._groups_of_all
        else:
            low, high, groups = self._groups(rows)
        max_width = np.array([width[group].max() for group in groups])
        min_log_kernel = np.full(len(groups), -np.inf)
        if self._fall is not None:
            squared, limits = self._squared_to_nearest(rows), np.empty(len(width))
            limits[rows] = self._log_kernel(squared, width[rows]) - self._fall
            min_log_kernel = np.array([limits[group].min() for group in groups])

        def counts(group, bottom, top):
            """Return True where keys within boxes may count for groups."""
            gap = np.maximum(bottom - high[:, group], low[:, group] - top).clip(0.0)
            log_kernel = self._log_kernel(_squared(gap) / ROUNDED_UP, max_width[group])
            return log_kernel > min_log_kernel[group]

        return list(self._with_keys(groups, counts))

    def pay(self, rows, width):
        """Return True if trees save time, judged by a few groups of queries."""
        problem, x, width = self._problem, self._queries[:, rows], width[rows]
        shares, keys = [], self._unordered
        sample = keys[:, :: max(1, keys.shape[1] // len(rows))]
        for place in np.linspace(0, len(rows) - 1, _SAMPLED_GROUPS).astype(int):
            squared = sum(_squared(x - x[:, place, None]))
            group = np.argpartition(squared, min(_LEAF, len(rows) - 1))[: 1 + _LEAF]
            neighbors, min_log_kernel = x[:, group], -np.inf
            if self._fall is not None:
                to_keys = sum(_squared(keys - x[:, place, None]))
                if problem.left_out is not None:
                    to_keys[slice(*problem.left_out[rows[place]])] = np.inf
                nearest = _squared(neighbors - keys[:, to_keys.argmin(), None])
                min_log_kernel = self._log_kernel(nearest, width[group]).min() - self._fall
            low, high = neighbors.min(axis=1)[:, None], neighbors.max(axis=1)[:, None]
            gap = np.maximum(np.maximum(sample - high, low - sample), 0.0)
            log_kernel = self._log_kernel(_squared(gap), width[group].max())
            shares.append((log_kernel > min_log_kernel).mean())
        return np.mean(shares) + _KEYS_OF_A_GROUP / keys.shape[1] < 1

    def _with_keys(self, groups, counts):
        """Yield each group and a function for its keys; leaves are searched block by block."""
        tree = self._tree

        def keys_of(place, leaves):
            keys = ranges(tree.first[leaves], tree.last[leaves])
            points = self._keys[:, keys]
            return np.sort(tree.order[keys[counts([place], points, points)]])

        for block in blocks(len(groups), max(1, IN_CACHE // np.sum(tree.is_leaf))):
            places = np.arange(block.start, block.stop)
            group, leaf = tree.within(places, counts)
            leaves = np.split(leaf, np.searchsorted(group, places[1:]))
            for place, leaves_of_group in zip(places, leaves, strict=True):
                yield groups[place], functools.partial(keys_of, place, leaves_of_group)

    @functools.cached_property
    def _tree(self):
        return _Tree(self._unordered.T, _LEAF)

    @functools.cached_property
    def _keys(self):
        """Coordinates (d, n) in the order of the tree, in which neighbours lie together."""
        return self._unordered[:, self._tree.order]

    @functools.cached_property
    def _groups_of_all(self):
        return self._groups(np.arange(self._queries.shape[1]))

    def _groups(self, rows):
        """Return the ends of the boxes of neighbouring queries, and the groups of rows."""
        tree = _Tree(self._queries[:, rows].T, _LEAF)
        groups = np.split(rows[tree.order], tree.last[tree.is_leaf][:-1])
        return tree.low[:, tree.is_leaf], tree.high[:, tree.is_leaf], groups

    def _squared_to_nearest(self, rows):
        """Return squared differences (d, n) of queries from the nearest key not left out."""
        new = rows[np.isnan(self._known_squared[0, rows])]
        if len(new):
            problem, queries = self._problem.take(new), self._queries[:, new]
            tree = KDTree(self._unordered.T, balanced_tree=False)
            distance, nearest = nearest_kept(tree, queries.T, problem.left_out)
            squared = _squared(queries - self._unordered[:, nearest])
            squared[:, np.isinf(distance)] = np.inf
            self._known_squared[:, new] = squared
        return self._known_squared[:, rows]

    @functools.cached_property
    def _known_squared(self):
        """Differences of `_squared_to_nearest` for all bandwidths; NaN until they are known."""
        return np.full(self._queries.shape, np.nan)

    def _log_kernel(self, differences, scale):
        """Return the logarithm of the kernel, or of its support, at squared differences."""
        total = 0.0
        for kernel, columns in self._factors:
            with np.errstate(over="ignore"):
                squared = sum(differences[j] for j in columns) / scale**2
            if self._fall is not None:
                total = total + kernel.log_profile(squared)
            else:
                total = total + np.where(squared <= kernel.support**2, 0.0, -np.inf)
        return total


class _Tree:
    """Boxes of points within boxes."""

    def __init__(self, points, leaf):
        from sklearn import neighbors  # is slow to load, and not needed for few rows

        arrays = neighbors.KDTree(points, leaf_size=leaf).get_arrays()
        _, self.order, nodes, ends = map(np.asarray, arrays)
        self.low, self.high = np.ascontiguousarray(ends.transpose(0, 2, 1))
        self.first, self.last = nodes["idx_start"], nodes["idx_end"]
        self.is_leaf = nodes["is_leaf"] == 1

    def within(self, groups, counts):
        """Return pairs of a group and a leaf whose keys may count for it, sorted by group.

        ``counts(group, low, high)`` returns True for boxes whose points may count for a group.
        """
        group, node = groups, np.zeros(len(groups), dtype=int)
        while True:
            may_count = counts(group, self.low[:, node], self.high[:, node])
            group, node = group[may_count], node[may_count]
            # All leaves have the same depth. The children of node i are 2 i + 1 and 2 i + 2.
            if not len(node) or self.is_leaf[node[0]]:
                return group, node
            group, node = np.repeat(group, 2), (2 * node[:, None] + [1, 2]).ravel()


def _log_range(problem, kernel):
    """Return the range of the logarithm of a kernel of categories; inf for many levels."""
    n_features = problem.keys.shape[1]
    columns = kernel.categorical_columns(n_features)
    codes = [np.append(problem.queries[:, j], problem.keys[:, j]) for j in columns]
    levels = list(map(np.unique, codes))
    n_combinations = math.prod(map(len, levels))
    if n_combinations**2 > IN_CACHE:
        return math.inf
    combinations = np.zeros((n_combinations, n_features))
    combinations[:, columns] = list(itertools.product(*levels))
    log_kernel = kernel.log(combinations, combinations)
    return float(log_kernel.max()) - float(log_kernel.min())


def _squared(distances):
    """Return squares; they are infinite where they overflow."""
    with np.errstate(over="ignore"):
        return distances * distances
