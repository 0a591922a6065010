"""Rows in partitions of Dask, for estimators that learn from rows in memory.

* `fit` draws at most `max_rows` rows, by a hash of all cells of a row, of its target and of its
  weight. So the sample depends neither on how rows are divided into partitions, nor on their
  order.
* Methods that predict return Dask collections: a partition is predicted when it is computed.
"""

import copy
import functools
import math
from dataclasses import KW_ONLY

import numpy as np
from sklearn.utils import _safe_indexing

from . import _partitions
from ._base import parameters, warn_user
from ._partitions import as_array, is_partitioned, partitions, run_on_partitions, to_memory
from ._shapley import FeatureEffectsMixin
from ._validation import check_positive

# Methods of queries whose results for a row do not depend on the other rows.
_LAZY = "predict", "predict_interval", "predict_log_proba", "predict_proba", "predict_quantiles"


def _lazy(method):
    """Decorate a method: it is called for each partition of X when this is computed."""

    @functools.wraps(method)
    def predict(estimator, X, *args, **options):
        rows, sizes = _divide(X) if is_partitioned(X) else ([], [])
        if not any(sizes):
            return method(estimator, X, *args, **options)
        import dask

        options = dict(zip(options, to_memory(*options.values()), strict=True))
        # A row is predicted now, which shows the form of the result, and raises errors about
        # columns and arguments.
        first = *rows[np.flatnonzero(sizes)[0]], [0]
        (row,) = dask.compute(*run_on_partitions(_safe_indexing, [first]))
        empty = _without_rows(method(estimator, row, *args, **options))
        call = functools.partial(_call_on_partition, method.__name__, args, options, empty)
        # The copy keeps what was learned if the estimator is fitted again.
        model = dask.delayed(copy.copy(estimator), traverse=False)
        return _concatenate(run_on_partitions(call, rows, model), sizes, empty)

    return predict


@parameters
class RowsInPartitions(FeatureEffectsMixin):
    """Mixin of estimators that draw rows from partitions, and predict partitions lazily."""

    _: KW_ONLY
    # Kernel attention draws and learns from 100 000 of 10⁶ rows in 14 to 27 s. With 10 000, its
    # errors on three sets are 1.00, 1.09 and 1.16 times as large; see benchmarks/many_rows.py.
    max_rows: int = 100_000

    explain_features = _lazy(FeatureEffectsMixin.explain_features)

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for name in vars(cls).keys() & _LAZY:
            setattr(cls, name, _lazy(vars(cls)[name]))

    def _draw_rows(self, X, y, sample_weight):
        """Load rows, targets and weights into memory; draw `max_rows` if there are more.

        All rows together keep their order. Those of a sample are in the order of their hashes.
        """
        max_rows = check_positive("max_rows", self.max_rows, integer=True)
        rows, sizes = _divide(X) if is_partitioned(X) else ([], [])
        if sum(sizes) <= max_rows or y is None:
            return to_memory(X, y, sample_weight)
        tables = {"X": X, "y": y, "sample_weight": sample_weight}
        # A weight may be a number or None, which is no table.
        others = [name for name in ("y", "sample_weight") if np.ndim(tables[name])]
        columns = partitions(*(as_array(tables[name], name, sizes) for name in others))
        rows = [x + other for x, other in zip(rows, columns, strict=True)]
        drawn = zip(["X", *others], _draw(max_rows, rows, sizes), strict=True)
        warn_user(
            f"max_rows={max_rows}: {type(self).__name__} learns from {max_rows} of the "
            f"{sum(sizes)} rows in partitions of Dask. If more rows fit into memory, pass a "
            "larger max_rows."
        )
        return (tables | dict(drawn)).values()


def _divide(X):
    """Return a tuple with the Delayed object of each partition, and numbers of rows."""
    if not _partitions.is_frame(X):
        X = as_array(X, "X")
        return partitions(X), X.chunks[0]
    import dask

    rows = [(frame,) for frame in _partitions.with_type_checks("X", X).to_delayed()]
    return rows, dask.compute(*run_on_partitions(len, rows))


def _draw(max_rows, rows, sizes):
    """Draw `max_rows` rows from partitions of the given sizes.

    `rows` has a tuple of tables, as Delayed objects, for each partition. Returns these tables
    in memory.
    """
    import dask

    # Rows are sorted by their hashes, and taken at equal steps, so that as many copies of a row
    # are drawn as are in proportion. Which of the copies are drawn does not matter.
    hashes = np.concatenate(dask.compute(*run_on_partitions(_hash_rows, rows)))
    chosen = hashes.argsort()[np.arange(max_rows) * len(hashes) // max_rows]
    # Each partition returns its rows, in their order, which is that of `positions`.
    positions, starts = np.sort(chosen), np.cumsum([0, *sizes[:-1]])
    split = np.split(positions, np.searchsorted(positions, starts[1:]))
    arguments = [
        (k - start, *tables) for k, start, tables in zip(split, starts, rows, strict=True)
    ]
    drawn = zip(*dask.compute(*run_on_partitions(_take_rows, arguments)), strict=True)
    order = np.searchsorted(positions, chosen)
    return [_safe_indexing(_stack(tables), order) for tables in drawn]


def _take_rows(positions, *tables):
    """Return the rows of all tables at the given positions."""
    return [_safe_indexing(x, positions) for x in tables]


def _stack(tables):
    """Stack arrays or frames; the levels of a category are those of all frames."""
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    from dask.dataframe.dispatch import concat

    return concat(list(tables))


def _hash_rows(*tables):
    """Return a hash (n_rows,) of the cells of each row; a number has the same in any type."""
    import pandas as pd

    arrays = (x.reshape(len(x), math.prod(x.shape[1:])) if x.ndim > 2 else x for x in tables)
    frames = [pd.DataFrame(x).reset_index(drop=True) for x in arrays]
    cells = pd.concat(frames, axis=1, ignore_index=True)
    numbers = cells.select_dtypes(["number", "bool", "boolean"]).columns
    cells = cells.astype(dict.fromkeys(numbers, np.float64))
    return pd.util.hash_pandas_object(cells, index=False).to_numpy()


def _without_rows(result):
    """Remove the rows of an array or a frame, or of each one in a list or a tuple."""
    if isinstance(result, list | tuple):
        return type(result)(map(_without_rows, result))
    return result.head(0) if hasattr(result, "columns") else result[:0]


def _call_on_partition(name, args, options, empty, estimator, rows):
    """Call a method of an estimator on rows; return `empty` if there are none."""
    return getattr(estimator, name)(rows, *args, **options) if len(rows) else empty


def _concatenate(results, sizes, empty):
    """Concatenate results of partitions of the given sizes to Dask collections.

    `empty` is the result for no rows: an array, a frame, or a list or a tuple of those.
    """
    if isinstance(empty, list | tuple):
        items = [[result[k] for result in results] for k in range(len(empty))]
        return type(empty)(map(_concatenate, items, [sizes] * len(empty), empty))
    if hasattr(empty, "columns"):
        import dask.dataframe

        return dask.dataframe.from_delayed(results, meta=empty, verify_meta=False)
    blocks, field = [(result,) for result in results], (empty.shape[1:], empty.dtype)
    return _partitions.concatenate_blocks(blocks, sizes, [field])[0]
