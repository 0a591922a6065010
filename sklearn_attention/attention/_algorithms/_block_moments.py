"""Moments of all keys about every query, for blocks of queries that lie close together."""

import functools
from dataclasses import replace

import torch

from .._own_key import own_share, own_terms
from .._polynomial import Basis, Moments, local_unit
from .._threads import map_blocks, threads_for
from ._compact_blocks import compact_blocks, in_order, median_blocks
from ._dense import dense_part
from ._near_sums import by_near_keys
from ._tiles import fallback_averages, is_parallel, kernel_table, shifted_weights

# Pairs of a block: few enough for temporaries to stay in cache; and its fewest rows.
_BLOCK_PAIRS, _FEWEST_ROWS = 2**17, 16
# Moments are taken about the middle of a block of queries this many bandwidths wide at
# most: seen from further away, their digits would cancel.
RADIUS = 4.0
# Numbers that the sums of a block of queries may hold, about.
_BLOCK_NUMBERS = 2**20
# For bandwidths of any size the data are cut into so many blocks.
_N_BLOCKS = 16


class Coordinates:
    """The numeric columns, in which the polynomials of a problem are.

    Parameters
    ----------
    problem : Problem
        Of tensors.
    degree : {0, 1, 2}
    n_points : int, default=None
        At how many keys at least the columns are looked at together; None for all.

    Attributes
    ----------
    queries, keys : torch.Tensor of shape (n_queries, d) and (n_keys, d)
        Those columns.
    basis : Basis
    """

    def __init__(self, problem, degree, n_points=None):
        self._problem = problem
        columns = problem.kernel.numeric_columns(problem.keys.shape[1])
        self.queries, self.keys = problem.queries[:, columns], problem.keys[:, columns]
        n_points = len(self.keys) if n_points is None else n_points
        self.basis = Basis(degree, len(columns), n_points)

    def columns(self, terms, keys=slice(None)):
        """Columns to average: the terms' products, and the terms times the keys' values."""
        return self.basis.columns(terms, self._problem.values[keys])

    def moments(self, averages, offset, scale):
        """Moments about queries from averages about the middle of a block.

        Parameters
        ----------
        averages : torch.Tensor of shape (n, n_columns)
        offset : torch.Tensor of shape (n, d)
            From the middle to the queries.
        scale : torch.Tensor of shape (n,) or None
            Multiples of the bandwidth.

        Returns
        -------
        gram, cross, unit : torch.Tensor
            As in :class:`Moments`.
        shift : torch.Tensor of shape (n, P, P)
            Turns terms about the middle into those about the queries.
        """
        gram, cross = self.basis.moments(averages)
        spread = self._problem.kernel.spread
        spread = spread if scale is None else spread * scale[:, None]
        unit = local_unit(spread, self.keys, self._problem.weights).expand(offset.shape)
        shift = self.basis.shift(offset, unit)
        if self.basis.degree:
            gram, cross = shift @ gram @ shift.transpose(1, 2), shift @ cross
        return gram, cross, unit, shift


class BlockMoments:
    """Moments by a positive kernel of any kind; every query meets every key, or those near.

    Parameters
    ----------
    problem : Problem
        Of tensors.
    degree : {0, 1, 2}
        Degree of the local polynomials.
    empty : {"nearest", "mean", "nan"}
        What answers for queries without weights.
    near : NearKeys, default=None
        Groups of queries, each with all keys that count for it: of the same problem, with
        the nearest keys if these are to answer. None for all keys.
    any_scale : bool, default=False
        Whether blocks are to suit bandwidths of any size, or that of the problem alone.
    """

    def __init__(self, problem, degree, empty, *, near=None, any_scale=False):
        self._problem, self._empty, self._near = problem, empty, near
        self._local = Coordinates(problem, degree, None if near is None else 1)
        self._own = None if problem.own_key is None else own_terms(problem)
        if any_scale:
            self._blocks = self._for_any_scale()
        elif near is None:
            size = max(_BLOCK_NUMBERS // self._local.basis.size**2, _FEWEST_ROWS)
            boxes = compact_blocks(self._local.queries, RADIUS)
            self._blocks = [rows for box in boxes for rows in box.split(size)]

    def _for_any_scale(self):
        """Blocks of few rows, which lie close together where moments are to be shifted."""
        x, n_keys = self._local.queries, len(self._local.keys)
        size = max(_BLOCK_PAIRS // n_keys, _FEWEST_ROWS)
        if self._local.basis.degree == 0:
            return list(torch.arange(len(x), device=x.device).split(size))
        groups = median_blocks(x, min(size, max(len(x) // _N_BLOCKS, _FEWEST_ROWS)))
        # Moments about a middle that is far from most rows, for the sake of one, lose digits.
        extents = [x[rows].amax(dim=0) - x[rows].amin(dim=0) for rows in groups]
        radius = 2 * torch.stack([extent.amax() for extent in extents]).median()
        if radius == 0:
            return groups
        return [rows[box] for rows in groups for box in compact_blocks(x[rows], radius)]

    @torch.no_grad()
    def reduce(self, finish, scales=None):
        """Reduce the moments at several bandwidths, block by block.

        Parameters
        ----------
        finish : callable
            ``finish(moments, rows)`` returns a tuple of tensors for some of the queries.
        scales : ndarray of shape (n_scales,) or (n_scales, n_queries), default=None
            Multiples of the bandwidth, for kernels of the distance; None for one pass at the
            problem's own.

        Returns
        -------
        found : list of tuple of torch.Tensor
            For each scale what `finish` returned, for all queries.
        """
        problem = self._problem
        if self._near is not None:
            return [self._by_near_keys(finish)]
        if scales is None:
            found = [self._block(rows, None, finish) for rows in self._blocks]
            return [in_order(*zip(*found, strict=True), self._blocks)]
        scales = torch.as_tensor(scales, device=problem.keys.device)
        scales = scales.reshape(len(scales), -1).expand(-1, len(problem.queries))
        with threads_for(len(problem.queries) * len(problem.keys)):
            found = map_blocks(
                lambda rows: self._block(rows, scales, finish),
                self._blocks,
                parallel=is_parallel(problem),
            )
        return [in_order(of_scale, self._blocks) for of_scale in zip(*found, strict=True)]

    def _by_near_keys(self, finish):
        """Reduced moments of all queries at the problem's own bandwidth."""
        return by_near_keys(
            lambda queries, keys: self._block(queries, None, finish, keys)[0],
            self._near,
            lambda queries: compact_blocks(self._local.queries[queries], RADIUS),
        )

    def _block(self, rows, scales, finish, keys=None):
        """Reduced moments of some neighbouring queries, for each scale."""
        problem, x = self._problem.take(rows, keys), self._local.queries[rows]
        keys = slice(None) if keys is None else keys
        middle = x.mean(dim=0)
        terms = self._local.basis.terms(self._local.keys[keys] - middle)
        columns = self._local.columns(terms, keys)
        answers = functools.cache(lambda: fallback_averages(problem, columns, self._empty))

        def finished(sums, shift, scale):
            places = rows.repeat(len(shift) // len(rows))
            total = sums[:, 0]
            averages = sums / torch.where(total > 0, total, 1)[:, None]
            alone = (total == 0).nonzero()[:, 0]
            if len(alone):
                shift[alone] = -torch.inf
                averages[alone] = answers()[alone % len(rows)]
            offset = self._local.queries[places] - middle
            gram, cross, unit, _ = self._local.moments(averages, offset, scale)
            share = None
            if self._own is not None:
                share = own_share([field[places] for field in self._own], shift, total)
            return finish(Moments(shift, total, gram, cross, unit, share), places)

        if scales is None:
            part = dense_part(replace(problem, values=columns, single=False))
            with threads_for(len(rows) * len(problem.keys)):
                return [finished(part.numerator, part.shift, problem.query_scale)]
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
