"""Moments of the keys about queries, by whichever algorithm is the fastest."""

import functools
from dataclasses import replace

import numpy as np
from array_api_compat import array_namespace

from ._algorithms._near_keys import near_keys
from ._empty import fallback
from ._kernel_sums import kernel_sums
from ._linear_time import linear_time_sums
from ._own_key import own_share, own_terms
from ._partial import finish as divide
from ._polynomial import Moments

# Terms of polynomials are multiplied with each other.
_FURTHEST_KEY = 1e70


class LocalMoments:
    """Averages about each query, at one bandwidth after the other.

    What the bandwidths have in common is computed once: an order of the keys, distances.

    Parameters
    ----------
    problem : Problem
    degree : {0, 1, 2}, default=0
        Degree of the local polynomials; 0 for kernels that may be negative.
    empty : {"nearest", "mean", "nan"}, default="nearest"
        What answers for queries without weights.
    algorithm : {"auto", "dense"}, default="auto"
    device : str, default="auto"
        Where to compute what needs torch.

    Raises
    ------
    ValueError
        If the degree or the gap is not 0 and the kernel takes negative values.
    """

    def __init__(self, problem, degree=0, *, empty="nearest", algorithm="auto", device="auto"):
        if degree:
            refuse_signed(problem.kernel)
            _refuse_far(problem.keys)
        if problem.gap and problem.kernel.signed is not False:
            raise ValueError(
                f"gap={problem.gap} needs a kernel that is known to be positive, got kernel="
                f"{problem.kernel!r}: choose one such as 'gaussian', or gap=0."
            )
        self._problem, self._degree, self._empty, self._device = problem, degree, empty, device
        self._algorithm = algorithm
        self._linear = linear_time_sums(problem, degree) if algorithm == "auto" else None
        kernel, n_features = problem.kernel, problem.keys.shape[1]
        self._is_radial = kernel.signed is False and kernel.radial_form(n_features) is not None

    def reduce(self, finish, scales=None, *, single=False):
        """Reduce the moments at several bandwidths, some queries at a time.

        Parameters
        ----------
        finish : callable
            ``finish(moments, rows)`` returns a tuple of arrays for some of the queries, at
            the positions `rows`; the :class:`Moments` of all may be more than memory holds.
        scales : ndarray of shape (n_scales,) or (n_scales, n_queries), default=None
            Multiples of the bandwidth, in the second form one for each query; None for the
            problem's own.
        single : bool, default=False
            Whether single precision will do, which is faster where it is implemented.

        Returns
        -------
        found : iterable of tuple
            For each scale what `finish` returned, for all queries.

        Raises
        ------
        ValueError
            If each query has a scale and the kernel is not one of distance.
        """
        of_queries = np.ndim(scales) == 2
        if of_queries and not self._is_radial:
            raise ValueError(
                f"kernel={self._problem.kernel!r} does not depend on the distance alone, which "
                "a scale of each row divides: choose a radial kernel such as 'gaussian'."
            )
        # In the plane a scale for each query takes all pairs anyway.
        if self._linear is not None and not (of_queries and len(self._linear.columns) == 2):
            scales = np.ones(1) if scales is None else scales
            return self._in_linear_time(finish, scales)
        return self._by_pairs(finish, [None] if scales is None else scales, single)

    def _by_pairs(self, finish, scales, single):
        """At each scale by the keys that are near, if few are; else by all."""
        others = []
        for scale in scales:
            near = self._near(scale)
            if near is None:
                others.append(scale)
                continue
            yield from self._by_all_pairs(finish, others, single)
            others = []
            yield from self._blocks(near.problem, near=near).reduce(finish)
        yield from self._by_all_pairs(finish, others, single)

    def _near(self, scale):
        if self._algorithm == "dense" or self._empty == "mean":
            return None
        problem = self._problem if scale is None else self._problem.at(scale)
        return near_keys(problem, self._device, self._degree, nearest=self._empty == "nearest")

    def _by_all_pairs(self, finish, scales, single):
        if not len(scales):
            return ()
        if scales[0] is None:
            return self._blocks(self._problem).reduce(finish)
        of_queries = np.ndim(scales) == 2
        fused = self._is_dot_product and not (self._degree or of_queries or self._problem.gap)
        if self._is_radial and not fused:
            return self._blocks_for_any_scale.reduce(finish, np.asarray(scales))
        problems = map(self._problem.at, scales)
        if self._degree == 0 and not self._problem.gap:
            return (finish(self._by_sums(problem, single), slice(None)) for problem in problems)
        return (self._blocks(problem).reduce(finish)[0] for problem in problems)

    @functools.cached_property
    def _is_dot_product(self):
        x = self._problem.queries[:0]
        return self._problem.kernel.as_dot_product(x, x) is not None

    @functools.cached_property
    def _blocks_for_any_scale(self):
        return self._blocks(self._problem, any_scale=True)

    def _blocks(self, problem, **options):
        from ._algorithms._block_moments import BlockMoments  # torch takes a second to load

        return BlockMoments(problem.tensors(self._device), self._degree, self._empty, **options)

    def _in_linear_time(self, finish, scales):
        keys, problem, everything = self._linear, self._problem, slice(None)
        if scales.ndim == 2 or len(scales) == 1:
            for scale in scales:
                yield finish(
                    self._about(keys.sums(problem, scale), everything, scale), everything
                )
            return
        n_queries = len(problem.queries)
        for group in keys.groups(problem, scales):
            if len(group) == 1:
                yield from self._in_linear_time(finish, group)
                continue
            rows = np.tile(np.arange(n_queries), len(group))
            moments = self._about(
                keys.side_by_side(problem, group), rows, np.repeat(group, n_queries)
            )
            fields = finish(moments, rows)
            yield from zip(*(np.split(field, len(group)) for field in fields), strict=True)

    def _about(self, found, rows, scale):
        """Moments from sums for some of the queries."""
        keys, problem = self._linear, self._problem.take(rows)
        if problem.query_scale is not None:
            scale = scale * problem.query_scale
        sums = keys.answered(problem, found, scale, self._empty).sums
        share = None
        if problem.own_key is not None:
            share = own_share(
                [field[rows] for field in self._own], found.shift, found.sums[0, 0]
            )
        return Moments(found.shift, found.sums[0, 0], *keys.moments(sums, scale), share)

    @functools.cached_property
    def _own(self):
        return own_terms(self._problem)

    def _by_sums(self, problem, single):
        """Averages alone, of kernels of any kind."""
        problem = replace(problem, single=problem.single or single)
        part = kernel_sums(problem, "dense", self._device)
        part = part._replace(fallback=fallback(problem, part, self._empty))
        averages, _ = divide(part, self._empty)
        xp = array_namespace(averages)
        shift = xp.where(part.usable, part.shift, -xp.inf)
        ones = xp.ones_like(averages[:, :1, None])
        share = None
        if problem.own_key is not None:
            share = own_share(own_terms(problem), shift, part.denominator)
        return Moments(shift, part.denominator, ones, averages[:, None], None, share)


def _refuse_far(keys):
    if 0 not in keys.shape and float(abs(keys).max()) > _FURTHEST_KEY:
        raise ValueError(
            f"features divided by bandwidth reach {float(abs(keys).max()):g}, whose products "
            "overflow: pass a larger bandwidth, scale the features down, or use degree=0."
        )


def refuse_signed(kernel):
    """Raise ValueError if a kernel takes negative values."""
    if kernel.signed:
        raise ValueError(
            f"kernel={kernel!r} takes negative values, with which least squares has no "
            "minimum: choose a positive kernel such as 'gaussian', or degree=0."
        )
