"""Sums over all keys of a problem: by fast algorithms, exact ones, or fallbacks."""

import functools
from dataclasses import replace

import numpy as np
from array_api_compat import array_namespace, is_torch_array

from .._blocks import IN_MEMORY, blocks
from ._algorithms._line import Line, serves
from ._algorithms._near_keys import near_keys
from ._algorithms._nearest import by_distance, nearest_sums
from ._algorithms._plane import Plane, serves_plane
from ._solve import Basis, extent_of, local_unit, refuse_far, refuse_signed
from ._sums import Sums

# "dense" compares every query with every key.
ALGORITHMS = ("auto", "dense")
# Numbers that the sums of some queries may hold at a time.
_MOST_NUMBERS = 2 * IN_MEMORY


def form_along(kernel, n_features, degree=0):
    """The kernel of the one or two features that matter, if sums of it take linear time."""
    form = None if kernel.signed is not False else kernel.radial_form(n_features)
    if form is None or form.rest is not None or len(form.columns) * degree > 2:
        return None
    fast = {1: serves, 2: serves_plane}.get(len(form.columns))
    return form if fast is not None and fast(form.kernel) else None


class Reduction:
    """Sums over the keys of a problem, at one bandwidth after the other."""

    # Each query goes down a chain until its sum is accurate: an algorithm of linear time, pairs
    # near it, and the nearest keys, or nothing where `empty` is "nan". What
    # bandwidths have in common, such as an order of the keys or distances, is computed once.

    def __init__(self, problem, degree=0, *, empty="nearest", algorithm="auto"):
        if degree:
            refuse_signed(problem.kernel)
            refuse_far(problem.keys)
        if problem.gap and problem.kernel.signed is not False:
            raise ValueError(
                f"gap={problem.gap} needs a kernel that is known to be positive, got kernel="
                f"{problem.kernel!r}: choose one such as 'gaussian', or gap=0."
            )
        self.problem, self._degree, self._empty = problem, degree, empty
        self._algorithm = algorithm
        kernel, n_features = problem.kernel, problem.keys.shape[1]
        self._columns = kernel.numeric_columns(n_features) if degree else []
        self.is_radial = kernel.signed is False and kernel.radial_form(n_features) is not None
        form = None
        if algorithm == "auto" and not problem.gap:
            form = form_along(kernel, n_features, degree)
        in_plane = form is not None and len(form.columns) == 2
        if form is None or (in_plane and problem.query_scale is not None):
            self._linear = None
        else:
            self._linear = (Plane if in_plane else Line).of(problem, form, degree)
        self._nearest = None

    @functools.cached_property
    def basis(self):
        return self._linear.basis if self._linear else Basis(self._degree, len(self._columns))

    def together(self, scales):
        """A number for each of some scales, of queries, equal where one pass takes all."""
        if isinstance(self._linear, Line):
            return np.zeros(len(scales))
        return np.floor(np.log2(scales)) if self.is_radial else scales

    @property
    def name(self):
        """Way in which sums are computed: "linear", "near" or "dense"."""
        if self._linear is not None:
            return "linear"
        return "dense" if self._near(None) is None else "near"

    def sums(self, **options):
        """Sums about every query, of powers in bandwidths; options are those of `Keys.sums`."""
        problem = self.problem
        if self._linear is not None:
            return self._linear.sums_of(**options)
        from ._algorithms._all_pairs import all_pairs, near_pairs  # torch: a second to load

        near = self._near(None)
        if self._degree:
            queries = self._blocks(
                problem if near is None else near.problem, None, near=near, in_bandwidths=True
            )
            ((shift, sums, least),) = queries.fold(
                lambda sums, unit, rows: (sums.shift, sums.sums.movedim(-1, 0), sums.least)
            )
            found = Sums(shift, sums.movedim(0, -1), least)
        else:
            found = all_pairs(problem.tensors()) if near is None else near_pairs(near)
        found = Sums(*(field.numpy() for field in found[:3]))
        return found._replace(shift=found.shift.astype(np.float64))

    def total(self, *, all_keys=True, answers=False):
        """The sums, with fallbacks for queries without weights."""
        # Without `all_keys`, for any query that may have no weight among all of them. With
        # `answers`, also if there are no such queries.
        found = self.sums()
        needed = ~found.usable
        if not all_keys and self.problem.kernel.signed is not False:
            needed = np.ones_like(needed)
        rows = np.flatnonzero(needed)
        if self._empty == "nan" or not (len(rows) or answers):
            return found
        answer = self.answers(rows)
        shape = found.shift.shape
        fields = np.full(shape, -np.inf), np.zeros(found.sums.shape), np.zeros(shape)
        for field, some in zip(fields, answer, strict=False):
            field[..., rows] = some
        return found._replace(answer=Sums(*fields))

    def answers(self, rows):
        """Sums over the nearest keys of some queries."""
        if self._nearest is None:
            n_queries, n_columns = len(self.problem.queries), 1 + self.problem.values.shape[1]
            self._nearest = np.full(n_queries, -1.0), np.zeros((n_columns, n_queries))
        distance, of_columns = self._nearest
        new = rows[distance[rows] < 0]
        if len(new):
            distance[new], of_columns[:, new] = self._over_nearest(new)
        sums = np.zeros((self.basis.n_powers, len(of_columns), len(rows)))
        # Without powers of distances, so that a polynomial is the average.
        sums[0] = of_columns[:, rows]
        return Sums(by_distance(distance[rows]), sums, np.zeros_like(distance[rows]))

    def _over_nearest(self, rows):
        """Distances to the nearest keys, and sums of columns over these."""
        if self._linear is not None:
            return self._linear.nearest_of(rows)
        some = self.problem.take(rows)
        if not some.gap:
            return nearest_sums(some.keys, _columns(some), some.queries, some.own_key)
        # From all pairs, since several keys are left out for each query.
        from ._algorithms._tiles import fallback_weights

        near = fallback_weights(some.tensors()).numpy().T
        sums = np.concatenate([near.sum(axis=0)[None], some.values.T @ near])
        return 0 * sums[0], sums

    def fold(self, finish, scales=None, *, single=False):
        """Results of ``finish(sums, moments, rows)`` per bandwidth, some queries at a time."""
        # `finish` returns a tuple of arrays for the queries at `rows`; the sums of all may
        # exceed memory. Scales (n_scales,) or (n_scales, n_queries) multiply the bandwidth;
        # None is the problem's own. With `single`, single precision is allowed, which is faster
        # where implemented.
        if np.ndim(scales) == 2 and not self.is_radial:
            raise ValueError(
                f"kernel={self.problem.kernel!r} does not depend only on the distance, which "
                "a scale of each row divides: choose a radial kernel such as 'gaussian'."
            )

        def finished(sums, unit, rows, ratio=None):
            usable, xp = sums.usable, array_namespace(sums.shift)
            moments = self.basis.averages(sums.answered("nan").sums, unit, ratio)
            sums = sums._replace(shift=xp.where(usable, sums.shift, -xp.inf))
            return *finish(sums, moments, rows), usable

        if self._linear is not None:
            scales = np.ones(1) if scales is None else scales
            found = self._along(finished, scales)
        else:
            scales = [None] if scales is None else scales
            found = self._by_pairs(finished, scales, single)
        for scale, (*fields, usable) in zip(scales, found, strict=True):
            yield self._answered(finish, fields, usable, scale)

    def _answered(self, finish, fields, usable, scale):
        """The fields, with those of queries without weights from their fallback keys."""
        if usable.all() or self._empty == "nan":
            return fields
        in_tensors = is_torch_array(usable)
        rows = np.flatnonzero(~(usable.numpy() if in_tensors else usable))
        unit = self._unit(self._scale(scale, rows), len(rows))
        found = self.answers(rows)
        found = found._replace(shift=np.full_like(found.shift, -np.inf))
        if not in_tensors:
            return self._put(finish, fields, found, unit, rows)
        import torch

        from ._threads import threads_for

        unit = None if unit is None else torch.as_tensor(unit.copy())  # of its own memory
        sums, rows = Sums(*map(torch.as_tensor, found[:3])), torch.as_tensor(rows)
        with threads_for(self.problem.n_pairs):
            return self._put(finish, fields, sums, unit, rows)

    def _put(self, finish, fields, sums, unit, rows):
        """The fields, with those of some queries finished from other sums."""
        moments = self.basis.averages(sums.sums, unit)
        for field, some in zip(fields, finish(sums, moments, rows), strict=True):
            field[rows] = array_namespace(field).astype(some, field.dtype)
        return fields

    @functools.cached_property
    def _extent(self):
        """Deviation of the keys along each numeric column."""
        if self._linear is not None:
            return self._linear.extent
        return extent_of(self.problem.keys[:, self._columns], self.problem.weights)

    def _scale(self, scale, rows):
        """Multiple of the bandwidth for some queries: a number, or one for each."""
        scale = 1.0 if scale is None else scale[rows] if np.ndim(scale) else scale
        own = self.problem.query_scale
        return scale if own is None else scale * own[rows]

    def _unit(self, scale, n_queries):
        """Unit of local coordinates at some scale, (n_queries, d); None for averages."""
        if not self._degree:
            return None
        kernel = self._linear.kernel if self._linear else self.problem.kernel
        width = kernel.spread * scale
        unit = local_unit(width[:, None] if np.ndim(width) else width, self._extent)
        return np.broadcast_to(unit, (n_queries, len(self._extent)))

    def _along(self, finish, scales):
        """In linear time: for each scale what is finished."""
        linear, n_queries = self._linear, len(self.problem.queries)
        if np.ndim(scales) == 2 or len(scales) == 1:
            groups = [scales[k : k + 1] for k in range(len(scales))]
        else:
            groups = linear.groups(scales)
        for group in groups:
            if len(group) == 1:
                yield self._by_rows(finish, group[0])
                continue
            rows = np.tile(np.arange(n_queries), len(group))
            scale = np.repeat(group, n_queries)
            fields = self._scaled(finish, linear.side_by_side(group), scale, rows)
            yield from zip(*(np.split(field, len(group)) for field in fields), strict=True)

    def _by_rows(self, finish, scale):
        """Results at one scale, some queries at a time where their sums are many."""
        n_sums = self.basis.n_powers * (1 + self.problem.values.shape[1])
        found = []
        for rows in blocks(len(self.problem.queries), max(1, _MOST_NUMBERS // n_sums)):
            own = self._scale(scale, rows)
            found.append(self._scaled(finish, self._linear.sums_of(rows, own), own, rows))
        if len(found) == 1:
            return found[0]
        return tuple(map(np.concatenate, zip(*found, strict=True)))

    def _scaled(self, finish, sums, scale, rows):
        """Results of `finish` from sums whose powers are in units of the scale."""
        unit = self._unit(scale, len(sums.shift))
        ratio = None if unit is None else np.reshape(scale, (-1, 1)) / unit
        return finish(sums, unit, rows, ratio)

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
            if self._degree:
                yield from self._blocks(near.problem, scale, near=near).fold(finish)
            else:
                from ._algorithms._all_pairs import near_pairs

                yield finish(near_pairs(near), None, slice(None))
        yield from self._by_all_pairs(finish, others, single)

    def _near(self, scale):
        if self._algorithm == "dense":
            return None
        problem = self.problem if scale is None else self.problem.at(scale)
        return near_keys(problem, self._degree)

    def _by_all_pairs(self, finish, scales, single):
        if not len(scales):
            return ()
        problem = self.problem
        only = scales[0] is None
        fused = self._is_dot_product and not (np.ndim(scales) == 2 or problem.gap)
        averages = not (self._degree or problem.gap)
        if not only and self.is_radial and not (fused and averages):
            return self._blocks_for_any_scale.fold(finish, np.asarray(scales))
        problems = [problem] if only else map(problem.at, scales)
        if averages:
            from ._algorithms._all_pairs import all_pairs

            tensors = (one.tensors() for one in problems)
            tensors = (replace(one, single=one.single or single) for one in tensors)
            return (finish(all_pairs(one), None, slice(None)) for one in tensors)
        pairs = zip(problems, scales, strict=True)
        return (self._blocks(one, scale).fold(finish)[0] for one, scale in pairs)

    @functools.cached_property
    def _is_dot_product(self):
        x = self.problem.queries[:0]
        return self.problem.kernel.as_dot_product(x, x) is not None

    @functools.cached_property
    def _blocks_for_any_scale(self):
        return self._blocks(self.problem, None, any_scale=True)

    def _blocks(self, problem, scale, *, in_bandwidths=False, **options):
        """The queries of a problem, which is this one at some scale, in blocks."""
        from ._algorithms._blocks_of_queries import BlocksOfQueries

        problem, extent = problem.tensors(), None
        if self._degree and not in_bandwidths:
            import torch

            extent = torch.as_tensor(self._extent)
            extent = extent if scale is None or np.ndim(scale) else extent / scale
        return BlocksOfQueries(problem, self._degree, extent, **options)


def _columns(problem):
    """The weights, and these times the values, (1 + p, m)."""
    weights = problem.weights
    return np.concatenate([weights[None], (problem.values * weights[:, None]).T])
