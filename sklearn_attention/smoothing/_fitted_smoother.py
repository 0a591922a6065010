"""Rows, their values, and a kernel with its bandwidth: all that an estimator predicts with."""

import dataclasses
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from .. import attention
from .._partitions import is_partitioned
from ..bandwidth._neighbors import neighbor_distances


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
    given_weights: Any = None  # without `robustness`, by which the key weights are less
    robustness: Any = None

    @classmethod
    def of(cls, model):
        """The smoother of a fitted estimator."""
        check_is_fitted(model)
        given, robustness = model.key_weights_, getattr(model, "robustness_weights_", None)
        return cls(
            model.keys_, model.values_, weighed(given, robustness), model.kernel_,
            model.columns_, model.bandwidth_, getattr(model, "n_neighbors_", None),
            model.degree_, model.empty, model.algorithm, model.device, model._memo,
            given_weights=given, robustness=robustness,
        )  # fmt: skip

    def replace(self, **changes):
        """The smoother that differs in some fields."""
        return dataclasses.replace(self, memo={}, **changes)

    @property
    def counts(self):
        """Weights of the rows, 1 where none were given."""
        return counts_of(self.keys, self.key_weights)

    @property
    def given_counts(self):
        """The same without robustness: outliers are targets too."""
        return counts_of(self.keys, self.given_weights)

    @property
    def table(self):
        """The values as a table, also where there is one output."""
        return self.values.reshape(len(self.keys), -1)

    @property
    def divisors(self):
        """Divisor of each column."""
        return self.columns.divisors(self.factor * self.bandwidth)

    def predict(self, X, values=None):
        """Predictions, of the values or of others in their place."""
        values = self.values if values is None else values
        return self.local_fit(X, values).values if self.degree else self.average(X, values)

    def average(self, X, values):
        """Weighted averages of values of the rows, whatever the degree."""
        options = self._options(X) | {"algorithm": self.algorithm}
        return attention.attend(X, self.keys, values, self.kernel, **options)[0]

    def local_fit(self, X, values):
        """Local polynomials in values of the rows."""
        options = self._options(X) | {"algorithm": self.algorithm, "degree": self.degree}
        return attention.attend_local(X, self.keys, values, self.kernel, **options)

    def local_rows(self, X, more=0):
        """Effect of each row on each prediction, in windows of so many more neighbours."""
        options = self._options(X, more) | {"degree": self.degree}
        return attention.local_rows(X, self.keys, self.table, self.kernel, **options)

    def weights(self, X):
        """Weights of the rows in averages, (n, n_keys)."""
        return attention.attention_weights(X, self.keys, self.kernel, **self._options(X))

    def effects(self, X):
        """Weights of the rows in predictions, (n, n_keys)."""
        if self.degree:
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
            return self.local_fit(X, values).slopes
        if self.n_neighbors is not None:
            raise ValueError(
                f"n_neighbors={self.n_neighbors!r}: the bandwidth differs from place to "
                "place, and the derivative of such an average is not implemented: use a fixed "
                "bandwidth, or a local polynomial and its slope."
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
            "empty": self.empty,
            "device": self.device,
        }

    def _in_spreads(self, X):
        """Rows in units that distances to neighbours are measured in."""
        columns = self.columns.numeric
        return X[:, columns] / self.bandwidth[columns]


def weighed(weights, robustness):
    """Weights of rows, None for 1, times their robustness, None for 1."""
    if weights is None or robustness is None:
        return robustness if weights is None else weights
    return weights * robustness


def counts_of(keys, key_weights):
    """Weights of rows, 1 where none were given."""
    if key_weights is not None:
        return key_weights
    if is_partitioned(keys):
        return np.ones_like(keys[:, 0], dtype=np.float64)
    return np.ones(len(keys))
