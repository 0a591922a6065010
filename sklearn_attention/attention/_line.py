"""Problems along one feature, as the algorithms for sorted keys see them."""

import numpy as np

from ._algorithms import _line as algorithm
from ._polynomial import local_unit

# Numbers that the sums of a problem may hold at a time.
_MOST_NUMBERS = 2**26


class Line(algorithm.Line):
    """The keys of a problem whose kernel looks at one feature alone.

    Parameters
    ----------
    problem : Problem
    form : RadialForm
        The kernel and its column.
    degree : int
    """

    def __init__(self, problem, form, degree=0):
        self.column = form.columns[0]
        keys = problem.keys[:, self.column]
        super().__init__(keys, problem.weights, problem.values, form.kernel, degree)
        self._rank = np.empty_like(self.order)
        self._rank[self.order] = np.arange(len(self.order))
        self._extent = local_unit(np.inf, keys[:, None], problem.weights)[0]

    def places(self, problem):
        """Queries and positions of their own keys, in the order of the queries."""
        own = problem.own_key
        if own is not None:
            own = np.where(own >= 0, self._rank[own], -1)
        return problem.queries[:, self.column], own

    def solve_at(self, problem, scale=1.0):
        """Sums for the queries of a problem, in their order.

        Parameters
        ----------
        problem : Problem
        scale : float or ndarray of shape (n_queries,), default=1.0

        Returns
        -------
        found : LineSums
        """
        queries, own = self.places(problem)
        if problem.query_scale is not None:
            scale = scale * problem.query_scale
        if len(queries) == len(self.x) and own is not None and (own == self._rank).all():
            order, queries = self.order, self.x  # the keys themselves
        else:
            order = np.argsort(queries, kind="stable")
            queries = queries[order]
        own = None if own is None else own[order]
        found = self.sums(queries, scale[order] if np.ndim(scale) else scale, own)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return algorithm.LineSums(found.shift[back], found.sums[:, :, back])

    def answered(self, problem, found, scale, empty):
        """Sums in which queries without weights have those that answer for them.

        Parameters
        ----------
        problem : Problem
        found : LineSums
            Of its queries.
        scale : float or ndarray of shape (n_queries,)
        empty : {"nearest", "mean", "nan"}
            The policy.

        Returns
        -------
        found : LineSums
            The shift tells them still, by -inf.
        """
        rows = np.flatnonzero(~np.isfinite(found.shift))
        if not len(rows):
            return found
        queries, own = self.places(problem.take(rows))
        scale = np.broadcast_to(scale, len(found.shift))[rows]
        sums = found.sums.copy()
        if empty == "nan":
            sums[:, :, rows] = np.nan
        elif empty == "nearest":
            sums[:, :, rows] = self.nearest(queries, own)[1]
        else:
            sums[:, :, rows] = self.everything(queries, own, scale)[1]
        return algorithm.LineSums(found.shift, sums)

    def moments(self, sums, scale):
        """Averages of the terms' products, and of terms times values, about each query.

        Parameters
        ----------
        sums : ndarray of shape (2 * degree + 1, 1 + p, m)
        scale : float or ndarray of shape (m,)
            What their powers are in units of.

        Returns
        -------
        gram : ndarray of shape (m, P, P)
        cross : ndarray of shape (m, P, p)
        unit : ndarray of shape (m,)
            What local coordinates are measured in, in bandwidths.
        """
        scale = np.broadcast_to(scale, sums.shape[2:])
        unit = np.minimum(self.kernel.spread * scale, self._extent)
        ratio = scale / unit
        with np.errstate(invalid="ignore", divide="ignore"):
            averages = sums / sums[0, 0]
        for e in range(1, len(averages)):
            averages[e] *= ratio**e
        size = range(self.degree + 1)
        gram = np.stack([averages[i : i + len(size), 0].T for i in size], axis=1)
        return gram, averages[: len(size), 1:].transpose(2, 0, 1), unit


def has_linear_time(kernel, n_features):
    """Whether sums of a kernel take time that is linear in keys and queries.

    Parameters
    ----------
    kernel : Kernel
    n_features : int

    Returns
    -------
    linear : bool
        True for most kernels of a single feature.

    Examples
    --------
    >>> from sklearn_attention.attention import has_linear_time
    >>> from sklearn_attention.kernels import Gaussian
    >>> has_linear_time(Gaussian(), 1), has_linear_time(Gaussian(), 5)
    (True, False)
    """
    return _form(kernel, n_features) is not None


def line_of(problem, degree=0):
    """The line that a problem lies on, if there is an algorithm for it; else None.

    Parameters
    ----------
    problem : Problem
    degree : int, default=0

    Returns
    -------
    line : Line or None
    """
    form = _form(problem.kernel, problem.keys.shape[1]) if problem.on_arrays else None
    n_sums = (2 * degree + 1) * (1 + problem.values.shape[1])
    if form is None or n_sums * len(problem.queries) > _MOST_NUMBERS:
        return None
    return Line(problem, form, degree)


def _form(kernel, n_features):
    """The kernel of the one feature that matters, if sums of it are fast."""
    form = None if kernel.signed is not False else kernel.radial_form(n_features)
    if form is None or len(form.columns) != 1 or form.rest is not None:
        return None
    return form if algorithm.serves(form.kernel) else None
