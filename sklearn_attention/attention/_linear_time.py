"""Problems of one or two features, as the algorithms of linear time see them."""

import functools
import itertools
import operator

import numpy as np

from ._algorithms._keys import Sums
from ._algorithms._line import Line, serves
from ._algorithms._plane import Plane, serves_plane
from ._polynomial import local_unit

# Numbers that the sums of a problem may hold at a time.
_MOST_NUMBERS = 2**26
# Numbers of the copies of rows whose sums at several bandwidths are made in one go; and how
# many bandwidths from the first the last may lie, where positions have lost a few digits.
_NUMBERS_AT_ONCE, _FURTHEST_COPY = 2**16, 2.0**28
# Bandwidths of different sizes have different fastest algorithms.
_ALIKE = 10.0
# Queries further from all keys than this many bandwidths are asked from here, where their
# squares are still numbers.
_FURTHEST = 1e150


class LinearTimeSums:
    """The keys of a problem whose kernel looks at one or two features alone.

    Parameters
    ----------
    problem : Problem
    form : RadialForm
        The kernel and its columns.
    degree : int

    Attributes
    ----------
    columns : list of int
        The features.
    peak : float
        The kernel at no distance.
    extent : ndarray of shape (n_columns,)
        Deviation of the keys, or of those to which they belong; inf where there is none.
    """

    def __init__(self, problem, form, degree=0):
        self.columns, self.kernel = form.columns, form.kernel
        keys = problem.keys[:, self.columns]
        given = problem.weights, problem.values, form.kernel, degree
        one = len(self.columns) == 1
        self._keys = Line(keys[:, 0], *given) if one else Plane(keys, *given)
        self._rank = np.empty_like(self._keys.order)
        self._rank[self._keys.order] = np.arange(len(keys))
        self.peak = self._keys.peak
        self._furthest = np.abs(keys).max() + _FURTHEST
        self.extent = local_unit(np.inf, keys, problem.weights)

    def _places(self, problem):
        """Queries, and positions of their own keys among those of the algorithm."""
        queries, own = problem.queries[:, self.columns], problem.own_key
        queries = queries.clip(-self._furthest, self._furthest)
        return queries, None if own is None else np.where(own >= 0, self._rank[own], -1)

    def sums(self, problem, scale=1.0):
        """Sums for the queries of a problem, in their order.

        Parameters
        ----------
        problem : Problem
        scale : float or ndarray of shape (n_queries,), default=1.0
            Multiplies the bandwidth.

        Returns
        -------
        found : Sums
            Powers of distances are in units of the scale.
        """
        keys, (queries, own), seen = self._keys, self._places(problem), problem.seen
        if problem.query_scale is not None:
            scale = scale * problem.query_scale
        if own is not None and np.array_equal(own, self._rank):
            order, queries = keys.order, keys.points  # the keys themselves
        elif len(self.columns) == 1:
            order = np.argsort(queries[:, 0])
            queries = queries[order]
        else:
            order = np.arange(len(queries))
        own, seen = (None if field is None else field[order] for field in (own, seen))
        found = keys.sums(queries, scale[order] if np.ndim(scale) else scale, own, seen)
        return _in_order(found, order)

    def groups(self, problem, scales):
        """Bandwidths whose sums are to be made in one go.

        Parameters
        ----------
        problem : Problem
        scales : ndarray of shape (n_scales,)

        Returns
        -------
        groups : list of ndarray
            The scales, in their order.
        """
        keys, n = self._keys, len(problem.keys)
        own, polynomial = problem.own_key, self.kernel.polynomial
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

    def side_by_side(self, problem, scales):
        """Sums for the keys themselves, each left out of its own, at several bandwidths.

        Small samples take longer to call algorithms for than to sum. So copies of the keys,
        each in units of its own bandwidth, are laid out one behind the other: too far apart
        for any key to see another copy, even where its own neighbours are far.

        Parameters
        ----------
        problem : Problem
        scales : ndarray of shape (n_scales,)
            A group of :meth:`groups`.

        Returns
        -------
        found : Sums
            For all queries at the first bandwidth, then at the next.
        """
        keys, n_scales = self._keys, len(scales)
        places = (keys.x - keys.x[0]) / scales[:, None]
        lengths = places[:, -1] + self._gap / scales.min() + 2 * keys.reach
        places += (np.cumsum(lengths) - lengths)[:, None]
        order = np.tile(keys.order, n_scales)
        copy = np.repeat(np.arange(n_scales) * len(keys.x), len(keys.x))
        line = Line(
            places.ravel(), problem.weights[order], problem.values[order], self.kernel,
            keys.degree,
        )  # fmt: skip
        found = line.sums(line.points, 1.0, np.arange(len(line.x)))
        return _in_order(found, copy + order)

    def nearest(self, problem):
        """Distance to the nearest keys, and sums of the columns over these alone."""
        distance, sums = self._keys.nearest(*self._places(problem))
        return distance, sums[0]

    def answered(self, problem, found, scale, empty):
        """Sums in which queries without weights have those that answer for them.

        Parameters
        ----------
        problem : Problem
        found : Sums
            Of its queries.
        scale : float or ndarray of shape (n_queries,)
        empty : {"nearest", "mean", "nan"}
            The policy.

        Returns
        -------
        found : Sums
            The shift tells them still, by -inf.
        """
        rows = np.flatnonzero(~np.isfinite(found.shift))
        if not len(rows):
            return found
        scale = np.broadcast_to(scale, len(found.shift))[rows]
        sums = found.sums.copy()
        sums[:, :, rows] = self.instead(problem.take(rows), scale, empty)[1]
        return Sums(found.shift, sums)

    def instead(self, problem, scale, empty):
        """Sums that answer for queries without weights, by a policy.

        Parameters
        ----------
        problem : Problem
            Of these queries.
        scale : ndarray of shape (n_queries,)
        empty : {"nearest", "mean", "nan"}
            The policy.

        Returns
        -------
        distance : ndarray of shape (n_queries,)
            Of the keys that answer; of several such sums those of the least are to be added.
        sums : ndarray of shape (n_powers, 1 + p, n_queries)
        """
        queries, own = self._places(problem)
        if empty == "nearest":
            return self._keys.nearest(queries, own)
        distance, sums = self._keys.everything(queries, own, scale)
        return distance, sums * (np.nan if empty == "nan" else 1.0)

    def moments(self, sums, scale):
        """Averages of the terms' products, and of terms times values, about each query.

        Parameters
        ----------
        sums : ndarray of shape (n_powers, 1 + p, m)
        scale : float or ndarray of shape (m,)
            What their powers are in units of.

        Returns
        -------
        gram : ndarray of shape (m, P, P)
        cross : ndarray of shape (m, P, p)
        unit : ndarray of shape (m, d)
            What local coordinates are measured in, in bandwidths.
        """
        powers, n_queries = self._keys.powers, sums.shape[2]
        unit = np.minimum(np.reshape(self.kernel.spread * scale, (-1, 1)), self.extent)
        unit = np.broadcast_to(unit, (n_queries, len(self.columns)))
        with np.errstate(invalid="ignore", divide="ignore"):
            averages = sums / sums[0, 0]
        if len(powers) > 1:
            ratio = np.reshape(scale, (-1, 1)) / unit
            for average, power in zip(averages, powers, strict=True):
                average *= np.prod(ratio**power, axis=1)
        terms = [power for power in powers if sum(power) <= self._keys.degree]
        gram = np.empty((n_queries, len(terms), len(terms)))
        for i, j in itertools.product(range(len(terms)), repeat=2):
            product = tuple(map(operator.add, terms[i], terms[j]))
            gram[:, i, j] = averages[powers.index(product), 0]
        return gram, averages[: len(terms), 1:].transpose(2, 0, 1), unit


def _in_order(found, order):
    """Sums of queries that were put in an order, in the order that they came in."""
    shift, sums = np.empty_like(found.shift), np.empty_like(found.sums)
    shift[order] = found.shift
    # Sum by sum: NumPy is ten times slower where it writes to many rows at once.
    for e, c in np.ndindex(sums.shape[:2]):
        sums[e, c][order] = found.sums[e, c]
    return Sums(shift, sums)


def has_linear_time(kernel, n_features, degree=0):
    """Whether sums of a kernel take time that is linear in keys and queries.

    Parameters
    ----------
    kernel : Kernel
    n_features : int
    degree : {0, 1, 2}, default=0
        Of the local polynomials that they are for.

    Returns
    -------
    linear : bool
        True for most kernels of a single feature, and for the Gaussian of two below degree 2.

    Examples
    --------
    >>> from sklearn_attention.attention import has_linear_time
    >>> from sklearn_attention.kernels import Gaussian
    >>> has_linear_time(Gaussian(), 1), has_linear_time(Gaussian(), 5)
    (True, False)
    """
    return _form(kernel, n_features, degree) is not None


def linear_time_sums(problem, degree=0):
    """The keys of a problem ready for sums in linear time; None where there are none.

    Parameters
    ----------
    problem : Problem
    degree : int, default=0

    Returns
    -------
    found : LinearTimeSums or None
    """
    fits = problem.on_arrays and not problem.gap
    form = _form(problem.kernel, problem.keys.shape[1], degree) if fits else None
    if form is None:
        return None
    in_plane = len(form.columns) == 2
    if in_plane and problem.query_scale is not None:
        return None
    n_sums = (6 if in_plane and degree else 2 * degree + 1) * (1 + problem.values.shape[1])
    if n_sums * max(len(problem.queries), 1) > _MOST_NUMBERS:
        return None
    return LinearTimeSums(problem, form, degree)


def _form(kernel, n_features, degree):
    """The kernel of the features that matter, if sums of it are fast."""
    form = None if kernel.signed is not False else kernel.radial_form(n_features)
    if form is None or form.rest is not None or len(form.columns) * degree > 2:
        return None
    fast = {1: serves, 2: serves_plane}.get(len(form.columns))
    return form if fast is not None and fast(form.kernel) else None
