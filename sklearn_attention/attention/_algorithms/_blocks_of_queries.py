"""Sums over all keys, or those near, for blocks of queries that lie close together."""

import torch

from ..._blocks import IN_CACHE, IN_MEMORY
from .._solve import Basis, local_unit
from .._sums import Sums
from .._threads import map_blocks, threads_for
from ._all_pairs import all_pairs
from ._compact_blocks import compact_blocks, in_order, median_blocks
from ._tiles import is_parallel, kernel_table, shifted_weights

# Pairs of a block: few enough for temporaries to stay in cache; and its fewest rows.
_BLOCK_PAIRS, _FEWEST_ROWS = IN_CACHE, 16
# Sums are made about the middle of a block of queries this many bandwidths wide at
# most: about a point further away, their digits would cancel.
RADIUS = 4.0
# Numbers that the sums of a block of queries may hold, about.
_BLOCK_NUMBERS = IN_MEMORY // 32
# For bandwidths of any size the data are cut into so many blocks.
_N_BLOCKS = 16


class BlocksOfQueries:
    """Sums of polynomials by a positive kernel of any kind, a block of queries at a time."""

    # `extent` is that of the keys along the numeric columns; without it, powers of distances
    # are in bandwidths. `near` is the NearKeys of the same problem. `any_scale` makes blocks
    # that suit bandwidths of any size.

    def __init__(self, problem, degree, extent=None, *, near=None, any_scale=False):
        self._problem, self._near, self._extent = problem, near, extent
        columns = problem.kernel.numeric_columns(problem.keys.shape[1])
        self._queries, self._keys = problem.queries[:, columns], problem.keys[:, columns]
        n_points = len(self._keys) if near is None and degree else None
        self.basis = Basis(degree, len(columns), n_points)
        if any_scale:
            self._blocks = self._for_any_scale()
        elif near is None:
            size = max(_BLOCK_NUMBERS // self.basis.size**2, _FEWEST_ROWS)
            boxes = compact_blocks(self._queries, RADIUS)
            self._blocks = [rows for box in boxes for rows in box.split(size)]

    def _for_any_scale(self):
        """Blocks of few rows, which lie close together where sums are to be shifted."""
        x, n_keys = self._queries, len(self._keys)
        size = max(_BLOCK_PAIRS // n_keys, _FEWEST_ROWS)
        if self.basis.degree == 0:
            return list(torch.arange(len(x)).split(size))
        groups = median_blocks(x, min(size, max(len(x) // _N_BLOCKS, _FEWEST_ROWS)))
        # Sums about a middle that is far from most rows, for the sake of one, lose digits.
        extents = [x[rows].amax(dim=0) - x[rows].amin(dim=0) for rows in groups]
        radius = 2 * torch.stack([extent.amax() for extent in extents]).median()
        if radius == 0:
            return groups
        return [rows[box] for rows in groups for box in compact_blocks(x[rows], radius)]

    @torch.no_grad()
    def fold(self, finish, scales=None):
        """Results of ``finish(sums, unit, rows)`` for all queries, one per scale."""
        # Scales (n_scales,) or (n_scales, n_queries) multiply the bandwidth, for kernels of the
        # distance; None is one pass at the problem's own.
        if self._near is not None:
            fields = self._near.fold(
                lambda queries, keys: self._block(queries, None, finish, keys)[0],
                lambda queries: compact_blocks(self._queries[queries], RADIUS),
            )
            return [fields]
        problem = self._problem
        if scales is None:
            found = [self._block(rows, None, finish) for rows in self._blocks]
            return [in_order(*zip(*found, strict=True), self._blocks)]
        scales = torch.as_tensor(scales)
        scales = scales.reshape(len(scales), -1).expand(-1, len(problem.queries))
        with threads_for(problem.n_pairs):
            found = map_blocks(
                lambda rows: self._block(rows, scales, finish),
                self._blocks,
                parallel=is_parallel(problem),
            )
        return [in_order(of_scale, self._blocks) for of_scale in zip(*found, strict=True)]

    def _unit(self, scale, rows):
        """Unit of the powers for some queries, (n, d)."""
        if self._extent is None:
            return torch.ones_like(self._queries[rows])
        spread = self._problem.kernel.spread
        spread = spread if scale is None else spread * scale[:, None]
        return local_unit(spread, self._extent).expand(len(rows), -1)

    def _block(self, rows, scales, finish, keys=None):
        """Results of `finish` on the sums of a block of neighbouring queries, one per scale."""
        problem, x = self._problem.take(rows, keys), self._queries[rows]
        keys = slice(None) if keys is None else keys
        middle = x.mean(dim=0)
        terms = self.basis.terms(self._keys[keys] - middle)
        columns = self.basis.columns(terms, problem.values)

        def finished(sums, shift, scale):
            places = rows.repeat(len(shift) // len(rows))
            shift = torch.where(sums[:, 0] == 0, -torch.inf, shift)
            unit = self._unit(scale, places)
            sums = self.basis.about(sums, self._queries[places] - middle, unit)
            return finish(Sums(shift, sums, torch.zeros_like(shift)), unit, places)

        if scales is None:
            # The column of ones is the first of the products.
            found = all_pairs(problem.with_values(columns[:, 1:]))
            with threads_for(len(rows) * len(problem.keys)):
                return [finished(found.sums[0].T, found.shift, problem.query_scale)]
        table, found = kernel_table(problem), []
        # Several bandwidths at a time: what follows the sums is many small operations.
        at_once = max(1, _BLOCK_NUMBERS // (len(rows) * columns.shape[1]))
        for some in scales[:, rows].split(at_once):
            sums, shifts = [], []
            for scale in some:
                weights, shift = shifted_weights(problem, table(scale))
                sums.append(weights @ columns)
                shifts.append(shift)
            fields = finished(torch.cat(sums), torch.cat(shifts), some.flatten())
            found += zip(*(field.split(len(rows)) for field in fields), strict=True)
        return found
