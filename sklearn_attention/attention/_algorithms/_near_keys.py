"""Neighbouring queries, and the keys that are within their reach, found by trees."""

import itertools
import math
from dataclasses import replace

import numpy as np

from ._nearest import FEATURES, FEW_PAIRS, nearest_but_own

# Queries of a group and keys of a leaf, at least; twice as many at most.
_GROUP, _LEAF = 40, 20
# A group takes as long as so many pairs besides its own; and of the time of all pairs the
# trees are to take less than this share.
_PAIRS_OF_A_GROUP, _LARGEST_SHARE = 40_000, 0.8
# Groups that stand for all where pairs are counted, and groups searched at a time.
_COUNTED, _GROUPS_AT_ONCE = 64, 512
# What is left out of a sum, as a share of it; and for each degree of a polynomial, whose
# terms grow with the distance, by how much less.
_INVISIBLE, _LESS = 1e-12, 1e-4
# Combinations of levels of categories, at most.
_MOST_COMBINATIONS = 500
# Boxes are taken a little closer than they are, since pairs may round otherwise.
_CLOSER = 1 - 1e-12


def near_keys(problem, degree=0):
    """Groups of queries with all keys that count for them; None where that saves no time."""
    kernel = problem.kernel
    # Queries and keys are moved together, which must not change what is not radial.
    many = problem.n_pairs >= FEW_PAIRS and not problem.gap
    if kernel.signed is not False or not kernel.stationary or not many:
        return None
    factors, rest = kernel.radial_factors(problem.keys.shape[1])
    compact = [factor for factor in factors if math.isfinite(factor[0].support)]
    fall = degree * -math.log(_LESS) - math.log(_INVISIBLE)
    if not compact:
        if not kernel.decreasing or (rest is not None and rest.scaled):
            return None
        fall += 0.0 if rest is None else _log_range(problem, rest)
        if not math.isfinite(fall):
            return None
    # Where a kernel ends, so does its product with any others.
    factors = compact or factors
    columns = sorted({j for _, of in factors for j in of})
    if len(columns) not in FEATURES:
        return None
    factors = [(factor, [columns.index(j) for j in of]) for factor, of in factors]
    found = NearKeys(problem, columns, factors, fall)
    return found if found.n_pairs() < _LARGEST_SHARE * problem.n_pairs else None


class NearKeys:
    """Groups of neighbouring queries, each with all keys that count for it."""

    # These are the keys within the support of every factor of the kernel. Of kernels without an
    # end, the keys left out have together next to no weight relative to the nearest.

    # `factors` are pairs of a RadialKernel and its columns. `fall` is by how much the logarithm
    # of a kernel without an end has to be below that at the nearest key, per unit of weight.
    # `problem` has its keys in an order in which neighbours lie together.

    def __init__(self, problem, columns, factors, fall):
        from sklearn.neighbors import KDTree  # takes a while to load, and few rows need none

        self._columns, self._factors = columns, factors
        self._fades = any(math.isinf(kernel.support) for kernel, _ in factors)
        weights = problem.weights
        self._fall = fall + math.log(weights.sum()) - math.log(weights.min())
        self._queries = problem.queries[:, columns]
        self._tree = KDTree(problem.keys[:, columns], leaf_size=_LEAF)
        order, self._nodes, *self._boxes = _arrays(self._tree)
        self._rank = np.empty_like(order)
        self._rank[order] = np.arange(len(order))
        own = problem.own_key
        if own is not None:
            own = np.where(own >= 0, self._rank[own], -1)
        self._own = problem.own_key
        self.problem = replace(
            problem, keys=problem.keys[order], values=problem.values[order],
            weights=problem.weights[order], own_key=own,
        )  # fmt: skip
        self._keys = self.problem.keys[:, columns]
        rows, nodes, low, high = _arrays(KDTree(self._queries, leaf_size=_GROUP))
        leaves = nodes["is_leaf"] == 1
        ends = nodes["idx_end"][leaves]
        self._groups = np.split(rows, ends[:-1])
        self._low, self._high = low[leaves], high[leaves]

    def n_pairs(self):
        """Number of pairs that take as long as these groups, about."""
        n_groups = len(self._groups)
        some = np.unique(np.linspace(0, n_groups - 1, _COUNTED).astype(int))
        group, node = self._leaves(some, self._reach(some))
        sizes = self._nodes["idx_end"][node] - self._nodes["idx_start"][node]
        n_queries = np.array([len(self._groups[place]) for place in some])
        share = (sizes @ n_queries[group]) / n_queries.sum()
        return n_groups * _PAIRS_OF_A_GROUP + len(self._queries) * share

    def __iter__(self):
        """Lists of groups: positions of queries, and of keys in ascending order."""
        for start in range(0, len(self._groups), _GROUPS_AT_ONCE):
            some = np.arange(start, min(start + _GROUPS_AT_ONCE, len(self._groups)))
            reach = self._reach(some)
            group, node = self._leaves(some, reach)
            ends = np.searchsorted(group, np.arange(len(some)), side="right")
            leaves = np.split(node, ends[:-1])
            yield [
                (self._groups[place], self._within(place, own, of_group))
                for place, own, of_group in zip(some, leaves, reach.T, strict=True)
            ]

    def fold(self, function, parts_of=None):
        """Fields of ``function(queries, keys)``, computed group by group, for all queries."""
        # `function` takes tensors of positions and returns a tuple of tensors with one row per
        # query. `parts_of(queries)` may cut the queries of a group into smaller parts.
        import torch

        from .._threads import map_blocks
        from ._compact_blocks import in_order

        found, rows = [], []
        for groups in self:
            blocks = [tuple(map(torch.from_numpy, group)) for group in groups]
            if parts_of is not None:
                blocks = [(own[part], keys) for own, keys in blocks for part in parts_of(own)]
            found += map_blocks(lambda block: function(*block), blocks)
            rows += [queries for queries, _ in blocks]
        return in_order(found, rows)

    def middle(self, rows):
        """Middle of some of the queries; 0 along columns of categories."""
        middle = np.zeros(self.problem.keys.shape[1])
        middle[self._columns] = np.median(self._queries[rows], axis=0)
        return middle

    def _reach(self, some):
        """Divisor of distances, and least log-weight of keys that count: (2, n_groups)."""
        rows = np.concatenate([self._groups[place] for place in some])
        starts = np.cumsum([0] + [len(self._groups[place]) for place in some[:-1]])
        scale = self.problem.query_scale
        scale = np.ones(len(rows)) if scale is None else scale[rows]
        least = np.full(len(rows), -np.inf)
        if self._fades:
            apart = _squared(self._queries[rows] - self._keys[self._nearest(rows)])
            least = self._log_kernel(apart, scale) - self._fall
        return np.stack(
            [np.maximum.reduceat(scale, starts), np.minimum.reduceat(least, starts)]
        )

    def _nearest(self, rows):
        """The nearest key to some queries but their own."""
        own = None if self._own is None else self._own[rows]
        return self._rank[nearest_but_own(self._tree, self._queries[rows], own)[1]]

    def _log_kernel(self, apart, scale):
        """Logarithm of the kernel, or of its support, at squared distances along columns."""
        total = 0.0
        for kernel, of in self._factors:
            squared = apart[:, of].sum(axis=1) / scale**2
            if self._fades:
                total = total + kernel.log_profile(squared)
            else:
                total = total + np.where(squared <= kernel.support**2, 0.0, -np.inf)
        return total

    def _counts(self, boxes, others, reach):
        """True where keys within boxes may count for queries within others."""
        scale, least = reach
        (bottom, top), (low, high) = boxes, others
        gap = np.maximum(np.maximum(bottom - high, low - top), 0.0)
        return self._log_kernel(_squared(gap) * _CLOSER, scale) > least

    def _leaves(self, some, reach):
        """Leaves that may count for some groups: pairs of positions, by group."""
        low, high = self._low[some], self._high[some]
        group, node = np.arange(len(some)), np.zeros(len(some), dtype=int)
        while True:
            boxes, others = [ends[node] for ends in self._boxes], (low[group], high[group])
            near = self._counts(boxes, others, reach[:, group])
            group, node = group[near], node[near]
            if not len(node) or self._nodes["is_leaf"][node[0]]:
                return group, node
            group, node = np.repeat(group, 2), (2 * node[:, None] + [1, 2]).ravel()

    def _within(self, place, leaves, reach):
        """Keys of some leaves that may count for a group."""
        starts, ends = self._nodes["idx_start"][leaves], self._nodes["idx_end"][leaves]
        sizes = ends - starts
        skip = starts - (np.cumsum(sizes) - sizes)
        keys = np.arange(sizes.sum()) + np.repeat(skip, sizes)
        points = self._keys[keys]
        group = self._low[place], self._high[place]
        keys = keys[self._counts((points, points), group, reach)]
        # Where no key is within reach, one without weight stands for none.
        return keys if len(keys) else np.zeros(1, dtype=int)


def _log_range(problem, rest):
    """Range of the logarithm of a kernel of categories; inf where there are many."""
    n_features = problem.keys.shape[1]
    columns = rest.categorical_columns(n_features)
    both = [np.append(problem.queries[:, j], problem.keys[:, j]) for j in columns]
    levels = list(map(np.unique, both))
    n_combinations = math.prod(map(len, levels))
    if n_combinations > _MOST_COMBINATIONS:
        return math.inf
    combinations = np.zeros((n_combinations, n_features))
    combinations[:, columns] = list(itertools.product(*levels))
    found = rest.log(combinations, combinations)
    return float(found.max()) - float(found.min())


def _arrays(tree):
    """The order of a tree's points, its nodes, and the ends of their boxes."""
    _, order, nodes, (low, high) = map(np.asarray, tree.get_arrays())
    return order, nodes, low, high


def _squared(distances):
    """Squares, infinite where they overflow."""
    with np.errstate(over="ignore"):
        return distances * distances
