"""Checks of the tables that users pass, and the scaled arrays that sums are computed from.

Keys and values are checked once and become a `KeyTable`; with queries it becomes a `Problem`.
Both hold coordinates in bandwidths, less a *center*: the median of the keys, if the kernel
compares differences only. So coordinates are small, and their differences lose few digits.

* Shapes: n queries, m keys, d features, p columns of values.
* *Weights* are the sample weights of keys in a *unit*, so that no sum overflows. Keys of weight
  0 are dropped: `positions` says which of the keys that were passed remain.
* A query *leaves out* a range of keys, for predictions of a row without itself.
* *Precision* is the spacing of floating-point numbers at 1 (the machine epsilon) in the type
  that was passed. It bounds the rounding of distances, and so decides which keys are tied.
"""

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from .._sample_weight import weight_unit
from .._validation import check_bandwidth
from ..kernels import Kernel
from ..kernels._base import as_kernel
from ..kernels._numerics import LARGEST
from ._arrays import in_precision, precision_of, result_dtype, to_array

# Distances are tied if they differ by at most this many spacings of floating-point numbers. On
# 3000 grids of steps such as 0.1 and 1/3 equal distances differ by up to 2.6 spacings; more
# would join distances that float32 tells apart, such as 1 and 1.25 days from 19 000.
_MAX_SPACINGS_OF_TIES = 4


@dataclass(frozen=True)
class Problem:
    """Queries, keys and values of weighted sums; coordinates are in bandwidths, in float64."""

    kernel: Kernel
    queries: Any  # (n, d)
    keys: Any  # (m, d), all of positive weight
    values: Any  # (m, p)
    weights: Any  # (m,) in a unit
    log_weight_unit: float  # logarithm of the unit of the weights
    left_out: Any  # (n, 2) first key that a query leaves out, and one past the last; None
    query_scale: Any  # (n,) what else divides a query's distances; None for 1
    dtype: Any  # type of the results
    center: Any  # (d,) what has been subtracted from queries and keys, in bandwidths
    precision: float
    value_center: Any = 0.0  # (p,) what has been subtracted from the values

    @property
    def n_pairs(self):
        """Number of pairs of a query and a key."""
        return len(self.queries) * len(self.keys)

    @property
    def columns(self):
        """Columns that the kernel compares, in which distances are measured."""
        n_features = self.keys.shape[1]
        numeric = self.kernel.numeric_columns(n_features)
        return sorted({*numeric, *self.kernel.categorical_columns(n_features)})

    @functools.cached_property
    def rounding(self):
        """Differences (n,) of distances from each query that may be rounding errors."""
        # Rounding is relative to the numbers before the center was subtracted.
        passed = ((x + self.center)[:, self.columns] for x in (self.queries, self.keys))
        return rounding_of_distances(*passed, self.precision)

    def take(self, rows):
        """Return the same problem for the queries at `rows`."""
        left_out, scale = (
            None if field is None else field[rows]
            for field in (self.left_out, self.query_scale)
        )
        return replace(self, queries=self.queries[rows], left_out=left_out, query_scale=scale)

    def rescaled(self, scale):
        """Return the same problem at a multiple of the bandwidth, without query scales."""
        tables = self.queries, self.keys, self.center[None]
        queries, keys, (center,) = (self.kernel.rescale(x, scale) for x in tables)
        return replace(self, queries=queries, keys=keys, center=center, query_scale=None)

    def result(self, x):
        """Return an array in the type of the results."""
        return in_precision(x, self.dtype)


@dataclass(frozen=True)
class KeyTable:
    """Keys and values that were checked; coordinates are in bandwidths, in float64."""

    kernel: Kernel
    bandwidth: Any  # a number or (d,)
    keys: Any  # (m, d), all of positive weight
    values: Any  # (m, p)
    weights: Any  # (m,) in a unit
    log_weight_unit: float  # logarithm of the unit of the weights
    positions: Any  # (m,) of these keys among those that were passed; None for all
    n_passed: int  # number of keys that were passed, including those of weight 0
    dtype: Any  # type of keys and values
    center: Any  # (d,) what has been subtracted from the keys, in their own units
    precision: float
    value_center: Any = 0.0  # (p,) what has been subtracted from the values

    def centred(self, center=None):
        """Return a table with a center subtracted from its values; None for their mean."""
        if center is None:
            center = self.weights @ self.values / self.weights.sum()
        return replace(self, values=self.values - center, value_center=center)

    def problem(self, queries, leave_one_out=False, query_scale=None):
        """Check and scale queries; return them with these keys as a `Problem`.

        `leave_one_out` and `query_scale` are as for :func:`attend`.
        """
        queries = check_table(to_array("queries", queries), "queries")
        if queries.shape[1] != self.keys.shape[1]:
            raise ValueError(
                f"queries have {queries.shape[1]} features but keys have "
                f"{self.keys.shape[1]}: pass both with the same columns."
            )
        own_key = check_own_keys(leave_one_out, queries, self.n_passed)
        left_out = None if own_key is None else key_ranges(own_key)  # (n, 2)
        if left_out is not None and self.positions is not None:
            # Ranges of keys as passed become ranges of the keys that remain.
            left_out = np.searchsorted(self.positions, left_out)
        scale = _check_query_scale(query_scale, queries, self.kernel)
        dtype = result_dtype([queries, self.dtype])
        precision = max(precision_of(queries), self.precision)
        # Results are in bandwidths: the queries less the center, and the center itself, from
        # which `Problem` knows the size of the numbers that were passed.
        with np.errstate(over="ignore"):
            queries, center = (
                self.kernel.rescale(x, self.bandwidth)
                for x in (queries.astype(np.float64) - self.center, self.center[None])
            )
        if not np.isfinite(queries).all():
            raise _overflow(self.bandwidth)
        return Problem(
            self.kernel,
            queries,
            self.keys,
            self.values,
            self.weights,
            self.log_weight_unit,
            left_out=left_out,
            query_scale=scale,
            dtype=dtype,
            center=center[0],
            precision=precision,
            value_center=self.value_center,
        )


def read_keys(keys, values, kernel, *, bandwidth, sample_weight=None):
    """Check keys and values; return those of positive weight as a :class:`KeyTable`.

    Values may be None, for weights alone.
    """
    kernel, arrays = as_kernel(kernel), [to_array("keys", keys)]
    if values is not None:
        arrays.append(to_array("values", values))
    keys = check_table(arrays[0], "keys")
    n_keys, n_features = keys.shape
    if n_keys == 0:
        raise ValueError("keys has 0 rows: pass at least one.")
    values = arrays[1] if len(arrays) == 2 else keys[:, :0]
    values = _check_values(values, n_keys).astype(np.float64)
    weights, log_weight_unit, positions = check_weights(sample_weight, keys)
    dtype, precision = np.result_type(*arrays), precision_of(keys)
    bandwidth = check_bandwidth(bandwidth, n_features)
    keys, center = keys.astype(np.float64), np.zeros(n_features)
    if kernel.stationary:
        # Queries and keys are shifted alike, which changes nothing but the rounding. The median
        # is a value of the data, so codes of categories remain whole numbers.
        center = _median(keys)
        keys = keys - center
    if positions is not None:
        keys, values, weights = (x[positions] for x in (keys, values, weights))
    with np.errstate(over="ignore"):
        keys = kernel.rescale(keys, bandwidth)
    if not (np.abs(keys) <= LARGEST).all():
        raise _overflow(bandwidth)
    fields = keys, values, weights, log_weight_unit, positions
    return KeyTable(kernel, bandwidth, *fields, n_keys, dtype, center, precision)


def read(
    queries,
    keys,
    values,
    kernel,
    *,
    bandwidth,
    sample_weight=None,
    leave_one_out=False,
    query_scale=None,
    centred=False,
):
    """Check all arguments; return a :class:`Problem`, and positions of the keys with weight.

    The positions are None if all keys have weight. If `centred`, the mean of the values is
    subtracted from them.
    """
    table = read_keys(keys, values, kernel, bandwidth=bandwidth, sample_weight=sample_weight)
    table = table.centred() if centred else table
    return table.problem(queries, leave_one_out, query_scale), table.positions


def check_table(x, name):
    """Return a table as it is, or raise ValueError unless it has finite rows of features."""
    if x.ndim == 2 and x.shape[1] == 0:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}, without any feature: pass at least one column."
        )
    if x.ndim != 2:
        rows = "samples" if name == "X" else name
        raise ValueError(
            f"{name} must have shape (n_{rows}, n_features), got {tuple(x.shape)}: use "
            "reshape(-1, 1) for a single feature."
        )
    return _check_finite(x, name)


def _check_values(values, n_keys):
    """Return values as a table (n_keys, p)."""
    if values.ndim not in (1, 2) or len(values) != n_keys:
        raise ValueError(
            f"values must have shape ({n_keys},) or ({n_keys}, n_values), one row for each "
            f"key, got {tuple(values.shape)}."
        )
    return _check_finite(values.reshape(n_keys, -1), "values")


def check_weights(sample_weight, keys):
    """Return weights (m,) in a unit, the unit's logarithm, and positions of keys with weight.

    The positions are None if all keys have weight. The unit is that of `weight_unit`.
    """
    if sample_weight is None:
        return np.ones(len(keys)), 0.0, None
    weights = to_array("sample_weight", sample_weight).astype(np.float64, copy=False)
    if weights.shape != (len(keys),):
        raise ValueError(
            f"sample_weight must have shape ({len(keys)},), one weight for each key, got "
            f"{tuple(weights.shape)}."
        )
    _check_finite(weights, "sample_weight")
    if (weights < 0).any():
        raise ValueError(
            f"sample_weight has a negative value, {float(weights.min()):g}: pass weights "
            "that are 0 or greater."
        )
    if not weights.any():
        raise ValueError("sample_weight is 0 for every key: leave at least one above 0.")
    unit = weight_unit(weights)
    weights = weights / unit
    positions = np.flatnonzero(weights)
    return weights, math.log(unit), None if len(positions) == len(weights) else positions


def check_own_keys(leave_one_out, queries, n_keys):
    """Return the position (n,) of the key that each query leaves out, -1 for no key.

    The result is None if `leave_one_out` is False.
    """
    if isinstance(leave_one_out, (bool, np.bool_)):
        if not leave_one_out:
            return None
        if len(queries) != n_keys:
            raise ValueError(
                "leave_one_out=True needs the keys themselves as queries, but there are "
                f"{len(queries)} queries and {n_keys} keys: pass the keys as queries, or as "
                "leave_one_out the position of each query's own key."
            )
        return np.arange(n_keys)
    try:
        is_tensor = is_torch_array(leave_one_out)
        own_key = np.asarray(leave_one_out.cpu() if is_tensor else leave_one_out)
    except (TypeError, ValueError):
        own_key = np.empty(0, dtype=bool)
    valid = own_key.shape == (len(queries),) and own_key.dtype.kind in "iu"
    if not valid or (len(own_key) and not (-1 <= own_key.min() and own_key.max() < n_keys)):
        raise ValueError(
            f"leave_one_out={leave_one_out!r} is not valid: pass True, False, or for each of "
            f"the {len(queries)} queries the position of the key to leave out, from 0 to "
            f"{n_keys - 1}, or -1 to leave out none."
        )
    return own_key.astype(np.int64)


def rounding_of_distances(queries, keys, precision):
    """Return differences (n,) of distances from each query that may be rounding errors.

    Queries and keys are those that were passed, without a center subtracted, in bandwidths.
    """
    # Decimals such as 0.1, and what users compute from them, are rounded to a few spacings of
    # numbers of their size; differences have the rounding errors of both numbers. The size of
    # the keys is their median, since one huge key says nothing about the others. A column that
    # is constant over the keys adds the same to all distances.
    size = np.abs(queries) + np.median(np.abs(keys), axis=0)
    size[:, np.ptp(keys, axis=0) == 0] = 0.0
    return _MAX_SPACINGS_OF_TIES * precision * size.sum(axis=1)


def key_ranges(own_key, gap=0):
    """Return the range (n, 2) of keys that each query leaves out: first, and one past the last.

    It has the key at the position `own_key` (n,), and `gap` keys on either side; it is empty if
    the position is -1.
    """
    ranges = np.column_stack([own_key - gap, own_key + gap + 1]).clip(0)
    return np.where(own_key[:, None] < 0, 0, ranges)


def _check_query_scale(query_scale, queries, kernel):
    """Return query scales as an array (n,), or None."""
    if query_scale is None:
        return None
    scale = to_array("query_scale", query_scale).astype(np.float64)
    if scale.shape != (len(queries),):
        raise ValueError(
            f"query_scale must have shape ({len(queries)},), one scale for each query, got "
            f"{tuple(scale.shape)}."
        )
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        raise ValueError("query_scale is not valid: pass finite numbers greater than 0.")
    if kernel.radial_form(queries.shape[1]) is None:
        raise ValueError(
            f"kernel={kernel!r} does not depend only on the distance, but query_scale divides "
            "the distances of each query: choose a radial kernel such as 'gaussian', or leave "
            "out query_scale."
        )
    return scale


def _check_finite(x, name):
    """Return an array as it is, or raise ValueError if it has NaN or infinity."""
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        kind = "NaN" if np.isnan(x).any() else "infinity"
        raise ValueError(f"{name} contains {kind}: impute or drop those rows first.")
    return x


def _median(keys):
    """Return the lower median of each column."""
    middle = (len(keys) - 1) // 2
    return np.partition(np.ascontiguousarray(keys.T), middle, axis=1)[:, middle]


def _overflow(bandwidth):
    """Return the error for rows that are too far from the others."""
    return ValueError(
        f"features divided by bandwidth={bandwidth!r} overflow: leave out rows that "
        "are so far from the others, or pass a larger bandwidth."
    )
