"""Rows, their values, and a kernel with its bandwidth: all that an estimator predicts with."""

import dataclasses
import operator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from .. import attention
from .._blocks import ROWS_AT_ONCE
from .._partitions import in_memory, is_partitioned, mapped, need_all_rows, over
from .._spread import dividing, ends, whole_spread
from ..attention._average import attend, attend_local
from ..attention._doubled_windows import MAX_RANGES, Windows, double_windows
from ..attention._leave_one_out import LeaveOneOut, at_rows
from ..attention._smoother import fastest_algorithm
from ..attention._solve import Basis
from ..attention._tables import attention_weights
from ..bandwidth._neighbors import neighbor_distances
from ..kernels import Boxcar
from ..kernels._product_kernel import mixed_kernel
from ._errors import Errors
from ._training_rows import predict_by_sums, predict_rows

# Degree and share of the bandwidth of the curve a band is around, for predictions of degree 0
# to 3: measured, so that the bias is small relative to the standard error and the band no
# wider than that takes. Parabolas of many features have too many coefficients.
_BANDS = ((1, 0.8), (2, 1.0), (2, 0.6), (3, 0.6))
_BAND_OF_MANY, _MANY_FEATURES = (1, 0.5), 10
# Step of differences in bandwidths, whose square and the rounding divided by it are far below
# 1e-6, and its least size in units of the last digit of a query.
_STEP, _ULPS = 1e-4, 2.0**8


class Member(NamedTuple):
    """A local polynomial; predictions may be averages of several."""

    degree: int
    bandwidth: Any  # (n_features,)
    weight: float  # weights sum to 1


@dataclasses.dataclass(frozen=True)
class FittedSmoother:
    """Averages of the values of some rows, or local polynomials in them, at any queries."""

    # What is known of the rows themselves is computed when it is first asked for.

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
    widening: bool = True  # whether windows of little weight may be widened
    factor: float = 1.0  # on the bandwidth, adaptive or not
    gap: int = 0  # rows before and after each whose noise is like its own
    # From the rows: windows of queries are wider by it, so that none has only a few rows.
    remoteness: Any = None
    given_weights: Any = None  # without `robustness`, by which the key weights are less
    robustness: Any = None
    random_state: Any = 0

    def replace(self, **changes):
        """The smoother that differs in some fields."""
        return dataclasses.replace(self, **changes)

    def at(self, bandwidth, **changes):
        """The smoother at another bandwidth."""
        kernel = self.kernel
        if self.columns.categorical:
            of_numbers = [part for name, part, _ in kernel.kernels if name == "numbers"]
            kernel = mixed_kernel(*of_numbers or [None], self.columns, bandwidth)
        return self.replace(bandwidth=bandwidth, kernel=kernel, **changes)

    @property
    def members(self):
        """The polynomials that predictions are averages of."""
        return [Member(self.degree, self.bandwidth, 1.0)]

    @property
    def local(self):
        """True if predictions are no averages of values, but of polynomials in them."""
        return self.degree > 0

    def rescaled(self, change):
        """The smoother whose bandwidths are changed by a function."""
        return self.at(change(self.bandwidth))

    def at_edge(self, X):
        """Return the queries themselves, of which none is extrapolated."""
        return X, ()

    def take(self, rows):
        """The smoother of some of the rows."""
        names = "keys", "values", "key_weights", "given_weights", "robustness"
        fields = ((name, getattr(self, name)) for name in names)
        return self.replace(**{name: None if x is None else x[rows] for name, x in fields})

    def first(self, n):
        """The smoother of so many of the first rows, in memory."""
        some = self.take(slice(n))
        keys, values, weights = in_memory(some.keys, some.values, some.key_weights)
        return some.replace(keys=keys, values=values, key_weights=weights)

    @property
    def whole(self):
        """True if all rows are in memory or in maps."""
        return not is_partitioned(self.keys)

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
    def n_rows(self):
        """Number of rows of positive weight."""
        if self.key_weights is None:
            return len(self.keys)
        return int(over(np.count_nonzero, operator.add, self.key_weights))

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
        may = self.widening and self.empty == "nearest"
        local = self.degree > 0 and len(self.columns.numeric) > 0
        return may and local and fixed and self.whole

    def doubled(self, times):
        """The smoother of windows that are doubled so often, and not widened any more."""
        return self.replace(factor=self.factor * 2.0**times, widening=False)

    @cached_property
    def windows(self):
        """Windows of the rows; if rows repeat others, a smoother of the design points."""
        size = Basis(self.degree, len(self.columns.numeric)).size
        windows, points = Windows(self.keys, self.table, self.counts, size), None
        if windows.repeat:
            points = self.take(windows.first)
            points = points.replace(values=points.keys[:, :0], key_weights=None)
        return windows, points

    @cached_property
    def ends(self):
        """Smallest and largest number of each column, infinite for categories."""
        low, high = map(np.float64, ends(self.keys, self.key_weights)[:2])
        numeric = self.columns.is_numeric
        return np.where(numeric, low, -np.inf), np.where(numeric, high, np.inf)

    @cached_property
    def box(self):
        """Bounds to which queries are clipped, and its largest side in bandwidths."""
        (low, high), numeric = self.ends, self.columns.is_numeric
        with np.errstate(over="ignore", invalid="ignore"):
            margin = np.where(numeric, MAX_RANGES * (high - low), 0.0)
            reach = ((high - low + 2 * margin) / self.divisors)[numeric].max()
        return low - margin, high + margin, float(reach)

    @cached_property
    def fastest(self):
        """Name of the algorithm that predicts as many queries as there are rows."""
        if self.algorithm == "dense":
            return "dense"
        keys = self.first(ROWS_AT_ONCE).keys
        return fastest_algorithm(
            keys, keys, self.kernel, bandwidth=self.divisors, query_scale=self.scale(keys),
            degree=self.degree,
        )  # fmt: skip

    # Predictions of the rows, in windows that another smoother measures.
    of_rows = predict_rows

    @cached_property
    def training(self):
        """Predictions of the rows, with and without themselves."""
        return self.of_rows(self) if self.whole else predict_by_sums(self)

    # Errors of the rows predicted without themselves, and of predictions elsewhere.
    errors = cached_property(Errors)

    @cached_property
    def less_biased(self):
        """The smoother that the band is around."""
        degree, share = self._band(self.degree)
        # The line around averages is of windows as they are, like these.
        widening = self.widening and self.degree > 0
        return self.replace(degree=degree, factor=share, widening=widening)

    def _band(self, degree):
        """Degree and share of the bandwidth of the curve that a band is around."""
        many = degree == 1 and len(self.columns.numeric) > _MANY_FEATURES
        return _BAND_OF_MANY if many else _BANDS[degree]

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
        if not self.widens:
            found = self._polynomials(X, values)
            return found.values, found.slopes, found.ridge
        shape, dtype = values.shape[1:], np.result_type(X.dtype, values.dtype)
        fields = [(shape, dtype), ((*shape, X.shape[1]), dtype), ((), dtype)]
        return mapped(_in_wide_windows, X, fields, self, values)

    def in_wide_windows(self, X, values):
        """The same in windows that are widened, of rows and queries in memory."""
        windows, (*box, max_distance) = self.windows[0], self.box
        X = X.clip(*box).astype(X.dtype, copy=False)

        def evaluate(times, rows):
            fit, *measures = self._window(times, X[rows], values)
            return [(windows.adequacy(*measures), fit.values, fit.slopes, fit.ridge)]

        return double_windows(evaluate, max_distance)[0]

    def _polynomials(self, X, values):
        """Local polynomials in windows that are not widened."""
        options = self._options(X) | {"algorithm": self.algorithm}
        return attend_local(X, self.keys, values, self.kernel, degree=self.degree, **options)

    def _window(self, times, X, values=None):
        """Polynomials in windows that are doubled so often, and what makes these adequate.

        The latter are the weight of the rows in each window, in that of a row at the query, and
        the inverse leverage of a row at the query in a fit to the design points.
        """
        smoother, (_, points) = self.doubled(times), self.windows
        fit = smoother._polynomials(X, self.keys[:, :0] if values is None else values)
        weight, inverse_leverage = smoother._in_rows(X, fit.log_normalizers), np.zeros(len(X))
        if points is not None:
            at_points, of_points, _ = points._window(times, X)
            inverse_leverage = of_points / (1 + at_points.squared_distance)
        return fit, weight, inverse_leverage

    def leave_one_out(self, values=None, **options):
        """Rows predicted without themselves: their values, or others."""
        own = {
            "bandwidth": self.divisors, "degree": self.degree, "algorithm": self.algorithm,
            "sample_weight": self.key_weights,
            "empty": self.empty, "widen": self.widens,
        }  # fmt: skip
        values = self.table if values is None else values
        return LeaveOneOut(self.keys, values, self.kernel, **own | options)

    def left_out_of(self, rows, factor=1.0):
        """Rows predicted without themselves and the gap, in windows wider by a factor."""
        if self.n_neighbors is not None:
            factor = factor * self.scale(self.keys[rows], more=1)
        return self.leave_one_out(rows=rows, gap=self.gap).predictions(factor).left_out

    def local_rows(self, X, more=0, *, without_each=False):
        """Effect of each row on each prediction, in windows of so many more neighbours.

        Predictions without each row only if `without_each`.
        """
        if not self.widens:
            options = self._options(X, more)
            options |= {"degree": self.degree, "without_each": without_each}
            return attention.local_rows(X, self.keys, self.table, self.kernel, **options)
        windows, points = self.windows
        *box, max_distance = self.box
        X = X.clip(*box)

        def evaluate(times, rows):
            queries = X[rows]
            local = self.doubled(times).local_rows(queries, without_each=without_each)
            _, weight, inverse_leverage = self._window(times, queries)
            groups = [(windows.adequacy(weight, inverse_leverage), *local[:-2])]
            if not without_each:
                return groups
            without_point = np.zeros((1, 1))
            if points is not None:
                _, of_points, _ = points._window(times, queries)
                at_points = points.doubled(times).local_rows(queries, without_each=True)
                without_point = of_points[:, None] * (1 - at_points.weights)
                without_point = without_point / (1 + at_points.left_out_distance)
                without_point = without_point[:, windows.point_of_rows]
            weight = weight[:, None] * (1 - local.weights)
            limits = weight, inverse_leverage[:, None], without_point
            return [
                *groups,
                (windows.adequacy_without(slice(None), *limits), local.left_out),
            ]

        matrices, *left_out = double_windows(evaluate, max_distance)
        return attention.LocalRows(*matrices, left_out[0][0] if left_out else None, None)

    def weights(self, X):
        """Weights of the rows in averages, (n, n_keys)."""
        return attention_weights(X, self.keys, self.kernel, **self._options(X))

    def effects(self, X):
        """Weights of the rows in predictions, (n, n_keys)."""
        if self.local:
            return self.local_rows(X).effects.astype(self.keys.dtype)
        return self.weights(X)

    def left_out(self, X):
        """Predictions, effects (n, n_keys) and predictions without each row (.., n_outputs)."""
        local = self.local_rows(X, without_each=True)
        if self.n_neighbors is None:
            return local.values, local.effects, local.left_out
        # Without one of its neighbours, a query reaches to the next.
        further = self.local_rows(X, more=1, without_each=True).left_out
        distances = cdist(self._in_spreads(X), self._in_spreads(self.keys))
        near = (distances <= self.scale(X)[:, None])[:, :, None]
        return local.values, local.effects, np.where(near, further, local.left_out)

    def gradient(self, X, values):
        """Return derivatives in queries, of the smoother of values of the rows."""
        form = self._radial_form
        # Of a boxcar, whose weights are steps, the local slope is the derivative.
        if self.degree == 2 and not (form and isinstance(form.kernel, Boxcar)):
            return self._differences(X, values)
        if self.degree:
            return self.local_fit(X, values)[1]
        if self.n_neighbors is not None:
            raise ValueError(
                f"n_neighbors={self.n_neighbors!r} makes the bandwidth differ from place to "
                "place, for which the derivative of an average is not implemented: pass a "
                "fixed bandwidth, or take the slope of a LocalPolynomialRegressor."
            )
        need_all_rows("derivatives of averages", self.keys)
        return attention.attend_gradient(
            X, self.keys, values, self.kernel, bandwidth=self.divisors,
            sample_weight=self.key_weights,
        )  # fmt: skip

    def _differences(self, X, values):
        """Return slopes of predictions by central differences; 0 along categories."""
        (low, high), scale, slopes = self.ends, self.scale(X), []
        widths = self.divisors * (1.0 if scale is None else scale[:, None])
        steps, places = _STEP * np.minimum(widths, dividing(high - low)), X.astype(np.float64)
        # Neither a large number in X nor one common to all values leaves only rounding.
        steps = np.maximum(steps, _ULPS * np.spacing(np.abs(places)))
        dtype, values = np.result_type(X, values), values - whole_spread(values).mean
        for moves in np.diag(self.columns.is_numeric.astype(np.float64)):
            before, after = places - moves * steps, places + moves * steps
            rise = self.predict(after, values) - self.predict(before, values)
            # What is left of the step when it is added to large numbers.
            run = (after - before) @ moves
            slopes.append((rise.T / dividing(run)).T)
        return np.stack(slopes, axis=-1).astype(dtype)

    def scale(self, X, more=0):
        """Distance to the neighbour that an adaptive bandwidth reaches to, else None."""
        if self.n_neighbors is None:
            if self.remoteness is None or self._radial_form is None:
                return None
            return 1 + self.remoteness.beyond(self.places(X)) / self.factor
        need_all_rows(
            f"bandwidths that differ from place to place (n_neighbors={self.n_neighbors!r})", X,
            remedy="let X.map_blocks or X.map_partitions predict",
        )  # fmt: skip
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

    def need_positive_weights(self, what):
        """Raise ValueError if the kernel takes negative values."""
        refuse_negative(self.kernel, self.kernel.signed, what)

    def _options(self, X, more=0):
        return {
            "bandwidth": self.divisors,
            "query_scale": self.scale(X, more),
            "sample_weight": self.key_weights,
            "empty": self.empty,
        }

    def _in_rows(self, X, log_weights):
        """Sums of weights in those of a row at the query itself."""
        X = X if self.columns.categorical else X[:1]
        X = X.astype(np.float64) / self.divisors
        # Levels that did not occur are as far from all that did.
        known = X.clip(np.where(self.columns.is_numeric, -np.inf, 0.0))
        log_own = at_rows(self.kernel.log, X, known).clip(np.finfo(np.float64).min)
        return np.exp(log_weights.astype(np.float64) - log_own)

    @property
    def _radial_form(self):
        return self.kernel.radial_form(self.keys.shape[1])

    def _in_spreads(self, X):
        """Rows in units that distances to neighbours are measured in."""
        columns = self.columns.numeric
        return X[:, columns] / self.bandwidth[columns]


def _in_wide_windows(smoother, values, X):
    return tuple(smoother.in_wide_windows(X, values))


def refuse_negative(kernel, negative, what):
    """Raise ValueError if a kernel is known to be negative somewhere."""
    if negative:
        raise ValueError(
            f"kernel={kernel!r} takes negative values, but {what} needs weights of 0 or more: "
            "choose a kernel that is positive everywhere, such as 'gaussian'."
        )


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
    return np.broadcast_to(1.0, len(keys))  # takes no memory
