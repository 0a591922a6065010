"""Neighbouring queries, and the keys that are within their reach, found by trees."""

import math
from dataclasses import replace

import numpy as np

from .._problem import resolve_device

# Queries of a group and keys of a leaf, at least; twice as many at most.
_GROUP, _LEAF = 40, 20
# Features in which boxes of neighbours leave enough out.
_FEATURES = range(2, 9)
# Pairs below which nothing but all pairs pays.
_FEW_PAIRS = 2**22
# A group takes as long as so many pairs besides its own; and of the time of all pairs the
# trees are to take less than this share.
_PAIRS_OF_A_GROUP, _LARGEST_SHARE = 40_000, 0.8
# Groups that stand for all where pairs are counted, and groups searched at a time.
_COUNTED, _GROUPS_AT_ONCE = 64, 512
# What is left out of a sum, as a share of it; and for each degree of a polynomial, whose
# terms grow with the distance, by how much less.
_INVISIBLE, _LESS = 1e-12, 1e-4
# A little more than the reach, since boxes may round otherwise.
_MORE = 1 + 1e-12
# Steps in which the distance of what is left out is enclosed, and then narrowed down.
_DOUBLINGS, _HALVINGS = 60, 30


def near_keys(problem, device, degree=0, *, nearest=False):
    """Groups of neighbouring queries, each with all keys that count for it.

    Parameters
    ----------
    problem : Problem
    device : str
        Where all pairs would be compared; there are no trees but on "cpu".
    degree : int, default=0
        Of the polynomials that the sums are for.
    nearest : bool, default=False
        Whether each query's nearest keys count in any case.

    Returns
    -------
    found : NearKeys or None
        None where comparing all pairs is as fast, or there is no other way.
    """
    kernel = problem.kernel
    form = kernel.radial_form(problem.keys.shape[1])
    if form is None or kernel.signed is not False:
        return None
    if math.isinf(form.kernel.support) and not (form.rest is None and kernel.decreasing):
        return None
    return _if_few(problem, device, form.columns, form.kernel, degree, nearest)


def nearest_keys(problem, device="auto"):
    """Groups of neighbouring queries, each with all keys that may be the nearest.

    Parameters
    ----------
    problem : Problem
    device : str, default="auto"
        As for :func:`near_keys`.

    Returns
    -------
    found : NearKeys or None
        As of :func:`near_keys`.
    """
    return _if_few(problem, device, list(range(problem.keys.shape[1])))


def _if_few(problem, device, columns, *options):
    n_pairs = len(problem.queries) * len(problem.keys)
    if not problem.on_arrays or problem.gap or n_pairs < _FEW_PAIRS:
        return None
    if len(columns) not in _FEATURES or resolve_device(device).type != "cpu":
        return None
    found = NearKeys(problem, columns, *options)
    return found if found.n_pairs() < _LARGEST_SHARE * n_pairs else None


class NearKeys:
    """Groups of neighbouring queries, each with all keys that count for it.

    These are the keys within the kernel's support, or within a distance beyond which all
    keys together have next to no weight.

    Parameters
    ----------
    problem : Problem
        Of arrays.
    columns : list of int
        What distances are measured in.
    kernel : RadialKernel, default=None
        Of the distance; None where only the nearest keys count.
    degree : int, default=0
    nearest : bool, default=True
        As for :func:`near_keys`.

    Attributes
    ----------
    problem : Problem
        The same, with its keys in another order, in which neighbours lie together.
    """

    def __init__(self, problem, columns, kernel=None, degree=0, nearest=True):
        from sklearn.neighbors import KDTree  # takes a while to load, and few rows need none

        self._columns, self._kernel = columns, kernel
        self._support = 0.0 if kernel is None else float(kernel.support)
        self._with_nearest = nearest or math.isinf(self._support)
        weights = problem.weights
        self._fall = math.log(weights.sum()) - math.log(weights.min())
        self._fall -= math.log(_INVISIBLE) + degree * math.log(_LESS)
        self._queries = problem.queries[:, columns]
        self._tree = KDTree(problem.keys[:, columns], leaf_size=_LEAF)
        order, self._nodes, *self._boxes = _arrays(self._tree)
        own = problem.own_key
        if own is not None:
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            own = np.where(own >= 0, rank[own], -1)
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
        group, node = self._leaves(some, self._radius(some))
        sizes = self._nodes["idx_end"][node] - self._nodes["idx_start"][node]
        n_queries = np.array([len(self._groups[place]) for place in some])
        share = (sizes @ n_queries[group]) / n_queries.sum()
        return n_groups * _PAIRS_OF_A_GROUP + len(self._queries) * share

    def __iter__(self):
        """Lists of groups: positions of queries, and of keys in ascending order."""
        for start in range(0, len(self._groups), _GROUPS_AT_ONCE):
            some = np.arange(start, min(start + _GROUPS_AT_ONCE, len(self._groups)))
            radius = self._radius(some)
            group, node = self._leaves(some, radius)
            ends = np.searchsorted(group, np.arange(len(some)), side="right")
            leaves = np.split(node, ends[:-1])
            yield [
                (self._groups[place], self._within(place, own, reach))
                for place, own, reach in zip(some, leaves, radius, strict=True)
            ]

    def middle(self, rows):
        """Middle of some of the queries; 0 along columns of categories."""
        middle = np.zeros(self.problem.keys.shape[1])
        middle[self._columns] = np.median(self._queries[rows], axis=0)
        return middle

    def _radius(self, some):
        """Distance within which keys count for some of the groups."""
        rows = np.concatenate([self._groups[place] for place in some])
        starts = np.cumsum([0] + [len(self._groups[place]) for place in some[:-1]])
        scale = self.problem.query_scale
        scale = np.ones(len(rows)) if scale is None else scale[rows]
        nearest = self._nearest(rows) if self._with_nearest else 0.0
        if math.isinf(self._support):
            squared = _fallen(self._kernel, (nearest / scale) ** 2, self._fall)
            radius = scale * np.sqrt(squared)
        else:
            radius = np.maximum(self._support * scale, nearest)
        return np.maximum.reduceat(radius, starts) * _MORE

    def _nearest(self, rows):
        """Distance from some queries to the nearest key but their own."""
        if self._own is None:
            return self._tree.query(self._queries[rows])[0][:, 0]
        n_neighbors = min(2, len(self._keys))
        distance, found = self._tree.query(self._queries[rows], n_neighbors)
        return np.where(found[:, 0] == self._own[rows], distance[:, -1], distance[:, 0])

    def _leaves(self, some, radius):
        """Leaves within reach of some groups: pairs of positions, by group."""
        low, high = self._low[some], self._high[some]
        group, node = np.arange(len(some)), np.zeros(len(some), dtype=int)
        while True:
            bottom, top = (ends[node] for ends in self._boxes)
            near = _gap(bottom, top, low[group], high[group]) <= radius[group]
            group, node = group[near], node[near]
            if not len(node) or self._nodes["is_leaf"][node[0]]:
                return group, node
            group, node = np.repeat(group, 2), (2 * node[:, None] + [1, 2]).ravel()

    def _within(self, place, leaves, radius):
        """Keys of some leaves that are within reach of a group."""
        starts, ends = self._nodes["idx_start"][leaves], self._nodes["idx_end"][leaves]
        sizes = ends - starts
        skip = starts - (np.cumsum(sizes) - sizes)
        keys = np.arange(sizes.sum()) + np.repeat(skip, sizes)
        points = self._keys[keys]
        keys = keys[_gap(points, points, self._low[place], self._high[place]) <= radius]
        # Where no key is within reach, one without weight says so.
        return keys if len(keys) else np.zeros(1, dtype=int)


def _arrays(tree):
    """The order of a tree's points, its nodes, and the ends of their boxes."""
    _, order, nodes, (low, high) = map(np.asarray, tree.get_arrays())
    return order, nodes, low, high


def _gap(bottom, top, low, high):
    """Distance between boxes."""
    apart = np.maximum(np.maximum(bottom - high, low - top), 0.0)
    return np.sqrt(np.einsum("ij,ij->i", apart, apart))


def _fallen(kernel, squared, fall):
    """Squared distances at which the logarithm of a kernel is less than nearer by a number."""
    target = kernel.log_profile(squared) - fall
    near, far = squared, 2 * squared + 1
    for _ in range(_DOUBLINGS):
        far = np.where(kernel.log_profile(far) > target, 2 * far, far)
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        above = kernel.log_profile(middle) > target
        near, far = np.where(above, middle, near), np.where(above, far, middle)
    return far
