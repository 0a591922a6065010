"""Neighbouring queries, and the keys that are within their reach, found by trees."""

import functools
import itertools
import math

import numpy as np
from scipy.spatial import KDTree

from ..._blocks import IN_CACHE, blocks
from ...kernels._numerics import ROUNDED_UP
from ._keys import ranges
from ._nearest import FEATURES, nearest_kept

# Queries of a group and keys of a leaf, at least; twice as many at most.
_LEAF = 64
# Pairs below which trees are not grown; and keys that a group takes as long as, besides those
# that count.
FEW_PAIRS, _KEYS_OF_A_GROUP = 2**20, 200
# Groups that stand for all where pairs are counted.
_COUNTED = 8
# What is left out of a sum, as a share of it; and for each degree of a polynomial, whose
# terms grow with the distance, by how much less.
_INVISIBLE, _LESS_PER_DEGREE = 1e-12, 1e-4


class NearKeys:
    """Groups of neighbouring queries, each with all keys that count for it."""

    # These are the keys within the support of every factor of the kernel. Of kernels without an
    # end, the keys left out have together next to no weight relative to one nearby. What does
    # not depend on the bandwidth is found once.

    # `factors` are pairs of a RadialKernel and its columns. `fall` is by how much the logarithm
    # of a kernel without an end has to be below that at a key nearby; None for other kernels.

    def __init__(self, problem, factors, fall):
        self._given, self._fall = problem, fall
        self._columns = columns = sorted({j for _, of in factors for j in of})
        self._factors = [(kernel, [columns.index(j) for j in of]) for kernel, of in factors]
        # Coordinates (d, n), since what is added for each row is slow along short rows.
        self._queries, self._unordered = (
            np.ascontiguousarray(x[:, columns].T) for x in (problem.queries, problem.keys)
        )

    @classmethod
    def of(cls, problem, degree=0):
        """Return the keys near queries; None for a kernel of which no tree can tell them."""
        kernel = problem.kernel
        if kernel.signed is not False or not kernel.stationary:
            return None
        factors, rest = kernel.radial_factors(problem.keys.shape[1])
        ends, fall = [factor for factor in factors if math.isfinite(factor[0].support)], None
        if not ends:
            if not kernel.decreasing or (rest is not None and rest.scaled):
                return None
            fall = degree * -math.log(_LESS_PER_DEGREE) - math.log(_INVISIBLE)
            fall += 0.0 if rest is None else _log_range(problem, rest)
            fall += math.log(problem.weights.sum()) - math.log(problem.weights.min())
            if not math.isfinite(fall):
                return None
        # Where a kernel ends, so does its product with any others.
        factors = ends or factors
        if len({j for _, of in factors for j in of}) not in FEATURES:
            return None
        return cls(problem, factors, fall)

    def groups(self, rows, width):
        """Groups of the queries at `rows`, and functions for their keys' positions, in order.

        At multiples (n,) of the bandwidth. None where all pairs take no longer.
        """
        if not self.pay(rows, width):
            return None
        if len(rows) == self._queries.shape[1]:
            low, high, groups = self._groups_of_all
        else:
            low, high, groups = self._groups(rows)
        most = np.array([width[group].max() for group in groups])
        least = np.full(len(groups), -np.inf)
        if self._fall is not None:
            nearby = np.empty(len(width))
            nearby[rows] = self._log_kernel(self._apart(rows), width[rows]) - self._fall
            least = np.array([nearby[group].min() for group in groups])

        def counts(some, bottom, top):
            """True where keys within boxes may count for some groups."""
            gap = np.maximum(bottom - high[:, some], low[:, some] - top).clip(0.0)
            return self._log_kernel(_squared(gap) / ROUNDED_UP, most[some]) > least[some]

        return list(self._with_keys(groups, counts))

    def pay(self, rows, width):
        """True where trees save time, by the keys that count for a few groups of queries."""
        problem, x, width = self._given, self._queries[:, rows], width[rows]
        shares, keys = [], self._unordered
        some = keys[:, :: max(1, keys.shape[1] // len(rows))]
        for place in np.linspace(0, len(rows) - 1, _COUNTED).astype(int):
            apart = sum(_squared(x - x[:, place, None]))
            group = np.argpartition(apart, min(_LEAF, len(rows) - 1))[: 1 + _LEAF]
            near, least = x[:, group], -np.inf
            if self._fall is not None:
                to_keys = sum(_squared(keys - x[:, place, None]))
                if problem.left_out is not None:
                    to_keys[slice(*problem.left_out[rows[place]])] = np.inf
                nearest = _squared(near - keys[:, to_keys.argmin(), None])
                least = self._log_kernel(nearest, width[group]).min() - self._fall
            low, high = near.min(axis=1)[:, None], near.max(axis=1)[:, None]
            gap = np.maximum(np.maximum(some - high, low - some), 0.0)
            shares.append((self._log_kernel(_squared(gap), width[group].max()) > least).mean())
        return np.mean(shares) + _KEYS_OF_A_GROUP / keys.shape[1] < 1

    def _with_keys(self, groups, counts):
        """Each group and a function for its keys, some of which are searched at a time."""
        tree = self._tree

        def keys_of(place, leaves):
            keys = ranges(tree.first[leaves], tree.last[leaves])
            points = self._keys[:, keys]
            return np.sort(tree.order[keys[counts([place], points, points)]])

        for part in blocks(len(groups), max(1, IN_CACHE // np.sum(tree.is_leaf))):
            places = np.arange(part.start, part.stop)
            group, leaf = tree.within(places, counts)
            leaves = np.split(leaf, np.searchsorted(group, places[1:]))
            for place, own in zip(places, leaves, strict=True):
                yield groups[place], functools.partial(keys_of, place, own)

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
        """Ends of the boxes of neighbouring queries among `rows`, and their positions."""
        tree = _Tree(self._queries[:, rows].T, _LEAF)
        groups = np.split(rows[tree.order], tree.last[tree.is_leaf][:-1])
        return tree.low[:, tree.is_leaf], tree.high[:, tree.is_leaf], groups

    def _apart(self, rows):
        """Squared differences (d, n) of queries from the nearest key that is not left out."""
        new = rows[np.isnan(self._known_apart[0, rows])]
        if len(new):
            problem, queries = self._given.take(new), self._queries[:, new]
            tree = KDTree(self._unordered.T, balanced_tree=False)
            distance, nearest = nearest_kept(tree, queries.T, problem.left_out)
            apart = _squared(queries - self._unordered[:, nearest])
            apart[:, np.isinf(distance)] = np.inf
            self._known_apart[:, new] = apart
        return self._known_apart[:, rows]

    @functools.cached_property
    def _known_apart(self):
        """The differences that no bandwidth changes; NaN until they are asked for."""
        return np.full(self._queries.shape, np.nan)

    def _log_kernel(self, apart, scale):
        """Logarithm of the kernel, or of its support, at squared differences (d, n)."""
        total = 0.0
        for kernel, of in self._factors:
            with np.errstate(over="ignore"):
                squared = sum(apart[j] for j in of) / scale**2
            if self._fall is not None:
                total = total + kernel.log_profile(squared)
            else:
                total = total + np.where(squared <= kernel.support**2, 0.0, -np.inf)
        return total


class _Tree:
    """Boxes of points within boxes."""

    def __init__(self, points, leaf):
        from sklearn import neighbors  # takes a while to load, and few rows need none

        arrays = neighbors.KDTree(points, leaf_size=leaf).get_arrays()
        _, self.order, nodes, ends = map(np.asarray, arrays)
        self.low, self.high = np.ascontiguousarray(ends.transpose(0, 2, 1))
        self.first, self.last = nodes["idx_start"], nodes["idx_end"]
        self.is_leaf = nodes["is_leaf"] == 1

    def within(self, groups, counts):
        """Leaves that may count for some groups: pairs of positions, by group."""
        group, node = groups, np.zeros(len(groups), dtype=int)
        while True:
            near = counts(group, self.low[:, node], self.high[:, node])
            group, node = group[near], node[near]
            if not len(node) or self.is_leaf[node[0]]:
                return group, node
            group, node = np.repeat(group, 2), (2 * node[:, None] + [1, 2]).ravel()


def _log_range(problem, rest):
    """Range of the logarithm of a kernel of categories; inf where there are many."""
    n_features = problem.keys.shape[1]
    columns = rest.categorical_columns(n_features)
    both = [np.append(problem.queries[:, j], problem.keys[:, j]) for j in columns]
    levels = list(map(np.unique, both))
    n_combinations = math.prod(map(len, levels))
    if n_combinations**2 > IN_CACHE:
        return math.inf
    combinations = np.zeros((n_combinations, n_features))
    combinations[:, columns] = list(itertools.product(*levels))
    found = rest.log(combinations, combinations)
    return float(found.max()) - float(found.min())


def _squared(distances):
    """Squares, infinite where they overflow."""
    with np.errstate(over="ignore"):
        return distances * distances
