"""Rows, their values, and a kernel with its bandwidth: all that an estimator predicts with."""

import dataclasses
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from .. import attention
from .._partitions import is_partitioned
from ..attention._solve import Basis
from ..bandwidth._neighbors import neighbor_distances
from ._wide_windows import needed_weight, widen

# What is predicted where rows have little weight, or none: "widen" is for estimators.
EMPTY_POLICIES = ("widen", *attention.EMPTY_POLICIES)


@dataclasses.dataclass(frozen=True)
class FittedSmoother:
    """Averages of the values of some rows, or local polynomials in them, at any queries."""

    keys: Any
    values: Any
    key_weights: Any
    kernel: Any
    columns: Any
    bandwidth: Any
    n_neighbors: int | None  # that an adaptive bandwidth reaches to
    degree: int
    empty: str
    algorithm: str
    device: str
    memo: dict  # results that are needed again
    factor: float = 1.0  # on the bandwidth, adaptive or not

    @classmethod
    def of(cls, model):
        """The smoother of a fitted estimator."""
        check_is_fitted(model)
        return cls(
            model.keys_, model.values_, model.key_weights_, model.kernel_, model.columns_,
            model.bandwidth_, getattr(model, "n_neighbors_", None), model.degree_, model.empty,
            model.algorithm, model.device, model._memo,
        )  # fmt: skip

    def replace(self, **changes):
        """The smoother that differs in some fields."""
        return dataclasses.replace(self, memo={}, **changes)

    @property
    def counts(self):
        """Weights of the rows, 1 where none were given."""
        return counts_of(self.keys, self.key_weights)

    @property
    def table(self):
        """The values as a table, also where there is one output."""
        return self.values.reshape(len(self.keys), -1)

    @property
    def divisors(self):
        """Divisor of each column."""
        return self.columns.divisors(self.factor * self.bandwidth)

    @property
    def widens(self):
        """Whether windows in which rows have little weight are widened."""
        fixed = self.n_neighbors is None and self.kernel.decreasing and not self.kernel.signed
        return self.empty == "widen" and fixed and not is_partitioned(self.keys)

    @property
    def empty_in_windows(self):
        """What answers where no row has weight in a window as it is."""
        return empty_of_windows(self.empty)

    def doubled(self, times):
        """The smoother of windows that are doubled so often, and not widened any more."""
        return self.replace(factor=self.factor * 2.0**times, empty="nearest")

    @property
    def needed(self):
        """Weight that windows are to have."""
        if "needed" not in self.memo:
            size = Basis(self.degree, len(self.columns.numeric)).size
            self.memo["needed"] = needed_weight(self.keys, self.counts, size)
        return self.memo["needed"]

    def window_weights(self, X, own=False):
        """Weights of the rows in windows about queries, in those of a row at the query."""
        _, log_weights = attention.attend(
            X, self.keys, self.keys[:, :0], self.kernel, leave_one_out=own,
            **self._options(X), algorithm=self.algorithm,
        )  # fmt: skip
        return self._in_rows(log_weights)

    def reach(self, X):
        """Largest distance along a feature, of queries and rows, in bandwidths."""
        columns = self.columns.numeric
        if not columns or not len(X):
            return 0.0
        both = [x[:, columns] for x in (X, self.keys)]
        low = np.minimum(*(x.min(axis=0).astype(np.float64) for x in both))
        high = np.maximum(*(x.max(axis=0).astype(np.float64) for x in both))
        return float(((high - low) / (self.factor * self.bandwidth[columns])).max())

    def predict(self, X, values=None):
        """Predictions, of the values or of others in their place."""
        values = self.values if values is None else values
        return self.local_fit(X, values)[0] if self.degree else self.average(X, values)

    def average(self, X, values):
        """Weighted averages of values of the rows, whatever the degree."""

        def average(smoother, X):
            options = smoother._options(X) | {"algorithm": self.algorithm}
            averages, log_weights = attention.attend(
                X, self.keys, values, self.kernel, **options
            )
            return log_weights, averages

        (averages,) = self._in_windows(average, X)
        return averages

    def local_fit(self, X, values):
        """Local polynomials in values of the rows: values, slopes and ridges."""

        def fit(smoother, X):
            options = smoother._options(X) | {"algorithm": self.algorithm}
            found = attention.attend_local(
                X, self.keys, values, self.kernel, degree=self.degree, **options
            )
            return found.log_normalizers, found.values, found.slopes, found.ridge

        return self._in_windows(fit, X)

    def _in_windows(self, fit, X):
        """Fields of a fit at queries, in windows that are widened where that is wanted.

        ``fit(smoother, X)`` returns the logarithm of the weights, and the fields.
        """
        if not self.widens or is_partitioned(X):
            _, *fields = fit(self, X)
            return fields

        def evaluate(smoother, rows):
            log_weights, *fields = fit(smoother, X[rows])
            return self._in_rows(log_weights), *fields

        return widen(self, evaluate, self.needed.of_all, self.reach(X))

    def local_rows(self, X, more=0):
        """Effect of each row on each prediction, in windows of so many more neighbours."""
        options = self._options(X, more) | {"degree": self.degree}
        found = attention.local_rows(X, self.keys, self.table, self.kernel, **options)
        if not self.widens:
            return found
        plain = self.window_weights(X), found

        def weighed(smoother, rows):
            if smoother is self:
                return plain
            return smoother.window_weights(X[rows]), smoother.local_rows(X[rows])

        def whole(smoother, rows):
            weight, local = weighed(smoother, rows)
            return weight, *local[:-1]

        def left_out(smoother, rows):
            weight, local = weighed(smoother, rows)
            return weight[:, None] * (1 - local.weights), local.left_out

        # First those without each row, by the weights as they are.
        reach = self.reach(X)
        (without,) = widen(self, left_out, self.needed.without, reach)
        return attention.LocalRows(*widen(self, whole, self.needed.of_all, reach), without)

    def weights(self, X):
        """Weights of the rows in averages, (n, n_keys)."""
        return attention.attention_weights(X, self.keys, self.kernel, **self._options(X))

    def effects(self, X):
        """Weights of the rows in predictions, (n, n_keys)."""
        if self.degree or self.widens:
            return self.local_rows(X).smoother.astype(self.keys.dtype)
        return self.weights(X)

    def left_out(self, X):
        """Predictions of queries, and those without each row, (n, n_keys, n_outputs)."""
        local = self.local_rows(X)
        if self.n_neighbors is None:
            return local.values, local.left_out
        # Without one of its neighbours, a query reaches to the next.
        further = self.local_rows(X, more=1).left_out
        distances = cdist(self._in_spreads(X), self._in_spreads(self.keys))
        near = (distances <= self.scale(X)[:, None])[:, :, None]
        return local.values, np.where(near, further, local.left_out)

    def gradient(self, X, values):
        """Derivatives in queries, of the smoother of values of the rows."""
        if self.degree:
            return self.local_fit(X, values)[1]
        if self.n_neighbors is not None:
            raise ValueError(
                f"n_neighbors={self.n_neighbors!r}: the bandwidth differs from place to "
                "place, and the derivative of such an average is not implemented: use a fixed "
                "bandwidth, or a local polynomial and its slope."
            )
        if self.widens:
            raise ValueError(
                "empty='widen': the bandwidth differs from place to place, and the derivative "
                "of such an average is not implemented: use empty='nearest', or a local "
                "polynomial and its slope."
            )
        self.need_rows_in_memory("derivatives of averages")
        return attention.attend_gradient(
            X, self.keys, values, self.kernel, bandwidth=self.divisors,
            sample_weight=self.key_weights, device=self.device,
        )  # fmt: skip

    def scale(self, X, more=0):
        """Distance to the neighbour that an adaptive bandwidth reaches to, else None."""
        if self.n_neighbors is None:
            return None
        if is_partitioned(X):
            raise ValueError(
                f"n_neighbors={self.n_neighbors!r}: the bandwidth differs from place to place, "
                "which does not go with partitions of Dask: let X.map_blocks or "
                "X.map_partitions predict."
            )
        queries, keys = self._in_spreads(X), self._in_spreads(self.keys[self.counts > 0])
        n_neighbors = min(self.n_neighbors + more, len(keys))
        return neighbor_distances(queries, keys, n_neighbors)[:, -1]

    def need_rows_in_memory(self, what):
        """Raise ValueError if the rows are in partitions."""
        if is_partitioned(self.keys):
            raise ValueError(
                f"the training rows are in partitions of Dask, but {what} need them in memory: "
                "fit a sample of them, or what they compute to if that fits."
            )

    def need_positive_weights(self, what):
        """Raise ValueError if the kernel takes negative values."""
        if self.kernel.signed:
            raise ValueError(
                f"kernel={self.kernel!r} takes negative values, and {what} needs weights that "
                "are none: choose a positive kernel, such as 'gaussian'."
            )

    def _options(self, X, more=0):
        return {
            "bandwidth": self.divisors,
            "query_scale": self.scale(X, more),
            "sample_weight": self.key_weights,
            "empty": self.empty_in_windows,
            "device": self.device,
        }

    def _in_rows(self, log_weights):
        """Sums of weights in those of a row at the query itself."""
        first = self.keys[:1].astype(np.float64) / self.divisors
        return np.exp(np.float64(log_weights) - float(self.kernel.log(first, first)[0, 0]))

    def _in_spreads(self, X):
        """Rows in units that distances to neighbours are measured in."""
        columns = self.columns.numeric
        return X[:, columns] / self.bandwidth[columns]


def empty_of_windows(empty):
    """What answers where no row has weight, in windows that are not widened."""
    return "nearest" if empty == "widen" else empty


def counts_of(keys, key_weights):
    """Weights of rows, 1 where none were given."""
    if key_weights is not None:
        return key_weights
    if is_partitioned(keys):
        return np.ones_like(keys[:, 0], dtype=np.float64)
    return np.ones(len(keys))
