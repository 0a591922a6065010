"""Rows, their values, and a kernel with its bandwidth: all that an estimator predicts with."""

import dataclasses
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from .. import attention
from .._blocks import blocks
from .._partitions import is_partitioned
from ..attention._average import attend
from ..attention._local import attend_local
from ..attention._solve import Basis
from ..attention._sums import EMPTY_POLICIES
from ..bandwidth._neighbors import neighbor_distances
from ._wide_windows import weight_needed, weight_needed_without, widen

# Beyond so many ranges of the rows nothing changes any more.
_FURTHEST = 30.0
# Queries whose kernel with themselves is evaluated at a time.
_BLOCK_ROWS = 64
# What is predicted where rows have little weight, or none: "widen" is for estimators.
WITH_WIDENING = ("widen", *EMPTY_POLICIES)


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
    gap: int = 0  # rows before and after each whose noise is like its own
    # From the rows: windows of queries are wider by it, so that none has only a few rows.
    remoteness: Any = None
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
            gap=getattr(model, "gap", 0), given_weights=given, robustness=robustness,
        )  # fmt: skip

    def replace(self, **changes):
        """The smoother that differs in some fields."""
        return dataclasses.replace(self, memo={}, **changes)

    def take(self, rows):
        """The smoother of some of the rows."""
        names = "keys", "values", "key_weights", "given_weights", "robustness"
        fields = {name: getattr(self, name) for name in names}
        return self.replace(
            **{name: None if x is None else x[rows] for name, x in fields.items()}
        )

    @property
    def unweighted(self):
        """The smoother to which all rows of positive weight count alike."""
        if self.key_weights is None:
            return self
        return self.replace(key_weights=(self.key_weights > 0).astype(np.float64))

    @property
    def counts(self):
        """Weights of the rows, 1 where none were given."""
        return counts_of(self.keys, self.key_weights)

    @property
    def given_counts(self):
        """The same without robustness: outliers are targets too."""
        return counts_of(self.keys, self.weights_as_given)

    @property
    def weights_as_given(self):
        """Weights of the rows without robustness, None for 1."""
        return self.key_weights if self.robustness is None else self.given_weights

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
        """True if windows in which rows have little weight are widened."""
        fixed = self.n_neighbors is None and self.kernel.decreasing and not self.kernel.signed
        local = self.degree > 0 and len(self.columns.numeric) > 0
        return self.empty == "widen" and local and fixed and not is_partitioned(self.keys)

    @property
    def empty_in_windows(self):
        """Policy where no row has weight in a window that is not widened."""
        return empty_of_windows(self.empty)

    def doubled(self, times):
        """The smoother of windows that are doubled so often, and not widened any more."""
        return self.replace(factor=self.factor * 2.0**times, empty="nearest")

    def needed(self, without=False):
        """Weight that windows are to have: of all rows, or (n_samples,) of all but each."""
        memo = "weight without" if without else "weight"
        if memo not in self.memo:
            find = weight_needed_without if without else weight_needed
            size = Basis(self.degree, len(self.columns.numeric)).size
            self.memo[memo] = find(self.keys, self.counts, size)
        return self.memo[memo]

    def window_weights(self, X, own=False):
        """Weights of the rows in windows about queries, in those of a row at the query."""
        _, log_weights = attend(
            X, self.keys, self.keys[:, :0], self.kernel, leave_one_out=own,
            **self._options(X), algorithm=self.algorithm,
        )  # fmt: skip
        return self._in_rows(X, log_weights)

    @property
    def box(self):
        """Bounds to which queries are clipped, and its largest side in bandwidths."""
        if "box" not in self.memo:
            numeric, keys = self.columns.is_numeric, self.keys
            low, high = keys.min(axis=0).astype(np.float64), keys.max(axis=0).astype(np.float64)
            with np.errstate(over="ignore"):
                margin = np.where(numeric, _FURTHEST * (high - low), np.inf)
                reach = ((high - low + 2 * margin) / self.divisors)[numeric].max()
            self.memo["box"] = low - margin, high + margin, float(reach)
        return self.memo["box"]

    def predict(self, X, values=None):
        """Predictions, of the values or of others in their place."""
        values = self.values if values is None else values
        return self.local_fit(X, values)[0] if self.degree else self.average(X, values)

    def average(self, X, values):
        """Weighted averages of values of the rows, whatever the degree."""
        options = self._options(X) | {"algorithm": self.algorithm}
        return attend(X, self.keys, values, self.kernel, **options)[0]

    def local_fit(self, X, values):
        """Local polynomials in values of the rows: values, slopes and ridges."""

        def fit(smoother, rows):
            options = smoother._options(X[rows]) | {"algorithm": self.algorithm}
            found = attend_local(
                X[rows], self.keys, values, self.kernel, degree=self.degree, **options
            )
            return found.log_normalizers, found.values, found.slopes, found.ridge

        def weighed(smoother, rows):
            log_weights, *fields = fit(smoother, rows)
            return self._in_rows(X[rows], log_weights), *fields

        if not self.widens or is_partitioned(X):
            return fit(self, slice(None))[1:]
        *box, reach = self.box
        X = X.clip(*box).astype(X.dtype, copy=False)
        return widen(self, weighed, self.needed(), reach)

    def local_rows(self, X, more=0, *, without_each=False):
        """Effect of each row on each prediction, in windows of so many more neighbours.

        Predictions without each row only if `without_each`.
        """
        if self.widens:
            *box, reach = self.box
            X = X.clip(*box)
        options = self._options(X, more)
        options |= {"degree": self.degree, "without_each": without_each}
        found = attention.local_rows(X, self.keys, self.table, self.kernel, **options)
        if not self.widens:
            return found
        plain = self.window_weights(X), found

        def weighed(smoother, rows):
            if smoother is self:
                return plain
            local = smoother.local_rows(X[rows], without_each=without_each)
            return smoother.window_weights(X[rows]), local

        def whole(smoother, rows):
            weight, local = weighed(smoother, rows)
            return weight, *local[:-1]

        def left_out(smoother, rows):
            weight, local = weighed(smoother, rows)
            return weight[:, None] * (1 - local.weights), local.left_out

        without = None
        if without_each:  # by weights as they are, before the others are widened in place
            (without,) = widen(self, left_out, self.needed(without=True), reach)
        return attention.LocalRows(*widen(self, whole, self.needed(), reach), without)

    def weights(self, X):
        """Weights of the rows in averages, (n, n_keys)."""
        from ..attention._weights import attention_weights  # torch takes a second to load

        return attention_weights(X, self.keys, self.kernel, **self._options(X))

    def effects(self, X):
        """Weights of the rows in predictions, (n, n_keys)."""
        if self.degree:
            return self.local_rows(X).smoother.astype(self.keys.dtype)
        return self.weights(X)

    def left_out(self, X):
        """Predictions, effects (n, n_keys) and predictions without each row (.., n_outputs)."""
        local = self.local_rows(X, without_each=True)
        if self.n_neighbors is None:
            return local.values, local.smoother, local.left_out
        # Without one of its neighbours, a query reaches to the next.
        further = self.local_rows(X, more=1, without_each=True).left_out
        distances = cdist(self._in_spreads(X), self._in_spreads(self.keys))
        near = (distances <= self.scale(X)[:, None])[:, :, None]
        return local.values, local.smoother, np.where(near, further, local.left_out)

    def gradient(self, X, values):
        """Derivatives in queries, of the smoother of values of the rows."""
        if self.degree:
            return self.local_fit(X, values)[1]
        if self.n_neighbors is not None:
            raise ValueError(
                f"n_neighbors={self.n_neighbors!r}: the bandwidth differs from place to "
                "place, and the derivative of such an average is not implemented: pass a fixed "
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
            if self.remoteness is None or self._radial_form is None:
                return None
            return 1 + self.remoteness.beyond(self.places(X)) / self.factor
        if is_partitioned(X):
            raise ValueError(
                f"n_neighbors={self.n_neighbors!r}: the bandwidth differs from place to place, "
                "which does not go with partitions of Dask: let X.map_blocks or "
                "X.map_partitions predict."
            )
        queries, keys = self._in_spreads(X), self._in_spreads(self.keys[self.counts > 0])
        n_neighbors = min(self.n_neighbors + more, len(keys))
        return neighbor_distances(queries, keys, n_neighbors)[:, -1]

    def places(self, X):
        """Rows in units of the bandwidth, with the columns along which the kernel falls."""
        form = self._radial_form
        kernel = self.kernel if form is None else form.kernel
        columns = self.columns.numeric if form is None else form.columns
        columns = columns if kernel.decreasing else []
        return np.asarray(X[:, columns], dtype=np.float64) / self.bandwidth[columns]

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

    def _in_rows(self, X, log_weights):
        """Sums of weights in those of a row at the query itself."""
        log_own = np.empty(len(X) if self.columns.categorical else min(len(X), 1))
        X = X[: len(log_own)].astype(np.float64) / self.divisors
        for rows in blocks(len(X), _BLOCK_ROWS):
            # Levels that did not occur are as far from all that did.
            known = X[rows].clip(self._lowest)
            log_own[rows] = np.diagonal(self.kernel.log(X[rows], known))
        return np.exp(log_weights.astype(np.float64) - log_own)

    @property
    def _lowest(self):
        return np.where(self.columns.is_numeric, -np.inf, 0.0)

    @property
    def _radial_form(self):
        return self.kernel.radial_form(self.keys.shape[1])

    def _in_spreads(self, X):
        """Rows in units that distances to neighbours are measured in."""
        columns = self.columns.numeric
        return X[:, columns] / self.bandwidth[columns]


def empty_of_windows(empty):
    """Policy where no row has weight, in windows that are not widened."""
    return "nearest" if empty == "widen" else empty


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
