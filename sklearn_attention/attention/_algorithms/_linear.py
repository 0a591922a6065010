"""Sums of problems whose kernel looks at one or two features, in time linear in the rows."""

import functools

import numpy as np

from .._solve import extent_of
from .._sums import Sums
from ._line import Line, serves
from ._plane import Plane, serves_plane

# Numbers of the copies of rows whose sums at several bandwidths are made in one go; and how
# many bandwidths from the first the last may lie, where positions have lost a few digits.
_NUMBERS_AT_ONCE, _FURTHEST_COPY = 2**16, 2.0**28
# Bandwidths of different sizes have different fastest algorithms.
_ALIKE = 10.0
# Queries further from all keys than this many bandwidths are asked from here, where their
# squares are still numbers; those of polynomials, whose squares of squares are.
_FURTHEST, _FURTHEST_POLYNOMIAL = 1e150, 1e60


def form_along(kernel, n_features, degree=0):
    """The kernel of the one or two features that matter, if sums of it are fast; else None."""
    form = None if kernel.signed is not False else kernel.radial_form(n_features)
    if form is None or form.rest is not None or len(form.columns) * degree > 2:
        return None
    fast = {1: serves, 2: serves_plane}.get(len(form.columns))
    return form if fast is not None and fast(form.kernel) else None


class Linear:
    """The keys of a problem, of arrays, along the features that its kernel looks at."""

    def __init__(self, problem, form, degree=0):
        self.problem, self.columns, self.kernel = problem, form.columns, form.kernel
        keys = problem.keys[:, self.columns]
        given = problem.weights, problem.values, form.kernel, degree
        one = len(self.columns) == 1
        self._keys = Line(keys[:, 0], *given) if one else Plane(keys, *given)
        self._rank = np.empty_like(self._keys.order)
        self._rank[self._keys.order] = np.arange(len(keys))
        furthest = _FURTHEST_POLYNOMIAL if degree else np.abs(keys).max() + _FURTHEST
        self._queries = problem.queries[:, self.columns].clip(-furthest, furthest)
        self.basis, self.spread = self._keys.basis, form.kernel.spread

    @classmethod
    def of(cls, problem, degree=0):
        """The keys of a problem; None where sums of it do not take linear time."""
        fits = problem.on_arrays and not problem.gap
        form = form_along(problem.kernel, problem.keys.shape[1], degree) if fits else None
        if form is None or (len(form.columns) == 2 and problem.query_scale is not None):
            return None
        return cls(problem, form, degree)

    @functools.cached_property
    def extent(self):
        """Deviation of the keys along each axis."""
        return extent_of(self._keys.points, self._keys.columns[0])

    def serves(self, scales):
        """Whether it has sums at these: in the plane a scale for each query takes all pairs."""
        return scales is None or np.ndim(scales) < 2 or len(self.columns) == 1

    def sums(self, scale=None, rows=slice(None), **options):
        """Sums for some of the queries, in their order, as :meth:`Keys.sums`.

        Powers of distances are in units of the scale, a number or one for each of these
        queries; None is the problem's own.
        """
        keys, (queries, own) = self._keys, self._some(rows)
        if scale is None:
            scale = self.problem.query_scale
            scale = 1.0 if scale is None else scale[rows]
        if own is not None and np.array_equal(own, self._rank):
            order, queries = keys.order, keys.points  # the keys themselves
        elif len(self.columns) == 1:
            order = np.argsort(queries[:, 0])
            queries = queries[order]
        else:
            order = np.arange(len(queries))
        own = None if own is None else own[order]
        scale = scale[order] if np.ndim(scale) else scale
        return _in_order(keys.sums(queries, scale, own, **options), order)

    def nearest(self, rows):
        """Distances of some queries to the nearest keys, and sums (1 + p, n) over these."""
        queries, own = self._some(rows)
        return self._keys.nearest(queries, own)

    def _some(self, rows):
        """Some queries, and positions of their own keys among those in order."""
        own = self.problem.own_key
        if own is not None:
            own = own[rows]
            own = np.where(own >= 0, self._rank[own], -1)
        return self._queries[rows], own

    def groups(self, scales):
        """The scales, in their order, by bandwidths whose sums are made in one go."""
        keys, n = self._keys, len(self.problem.keys)
        own, polynomial = self.problem.own_key, self.kernel.polynomial
        # Where the kernel jumps, the last digit of a distance tells who is within reach.
        jumps = polynomial is not None and sum(polynomial) > 1e-9
        if len(self.columns) > 1 or jumps or not np.array_equal(own, np.arange(n)):
            return np.split(scales, len(scales))
        lengths = (np.ptp(keys.x) + self._gap) / scales + 2 * keys.reach
        starts, end = [0], lengths[0]
        for position in range(1, len(scales)):
            first = starts[-1]
            end += lengths[position]
            n_numbers = (position - first + 1) * keys.columns.size
            full = end > _FURTHEST_COPY or n_numbers > _NUMBERS_AT_ONCE
            if full or not 1 / _ALIKE < scales[position] / scales[first] < _ALIKE:
                starts.append(position)
                end = lengths[position]
        return np.split(scales, starts[1:])

    @functools.cached_property
    def _gap(self):
        return np.diff(self._keys.x).max(initial=0.0)

    def side_by_side(self, scales):
        """Sums for the keys themselves, each left out of its own, at a group of bandwidths.

        For all queries at the first bandwidth, then at the next. Small samples take longer to
        call algorithms for than to sum. So copies of the keys, each in units of its own
        bandwidth, are laid out one behind the other: too far apart for any key to reach
        another copy, even where its own neighbours are far.
        """
        keys, n_scales = self._keys, len(scales)
        places = (keys.x - keys.x[0]) / scales[:, None]
        lengths = places[:, -1] + self._gap / scales.min() + 2 * keys.reach
        places += (np.cumsum(lengths) - lengths)[:, None]
        order = np.tile(keys.order, n_scales)
        copy = np.repeat(np.arange(n_scales) * len(keys.x), len(keys.x))
        line = Line(
            places.ravel(), self.problem.weights[order], self.problem.values[order],
            self.kernel, keys.degree,
        )  # fmt: skip
        return _in_order(line.sums(line.points, 1.0, np.arange(len(line.x))), copy + order)


def _in_order(found, order):
    """Sums of queries that were put in an order, in the order that they came in."""
    shift, least = np.empty_like(found.shift), np.empty_like(found.least)
    shift[order], least[order] = found.shift, found.least
    sums = np.empty_like(found.sums)
    # Sum by sum: NumPy is ten times slower where it writes to many rows at once.
    for e, c in np.ndindex(sums.shape[:2]):
        sums[e, c][order] = found.sums[e, c]
    return Sums(shift, sums, least)
