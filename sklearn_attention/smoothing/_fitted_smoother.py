"""The fitted smoother: the training rows, their values, a kernel and local polynomials.

All predictions of an estimator are computed from it. Its terms:

* The **keys** are the training rows, the **values** their targets. The **queries** X are the
  rows that are predicted.
* A **member** is a local polynomial: a degree and a bandwidth. Predictions are the average of
  all members, by their weights. In most fits there is one member.
* The **hat matrix** has a row for each query; its product with the values is the prediction.
* A row is **at the edge** of the training rows if one of its numbers is their smallest or
  largest. A query beyond the edge is moved to it, number by number.
"""

import dataclasses
import operator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from .. import attention
from .._blocks import ROWS_AT_ONCE
from .._column_stats import min_max_sum
from .._partitions import (
    is_partitioned,
    need_all_rows,
    reduce_rows,
    to_memory,
    weights_or_ones,
)
from ..attention._doubled_windows import MAX_RANGES, Windows
from ..attention._leave_one_out import LeaveOneOut, Predictions
from ..attention._smoother import (
    Smoother,
    fastest_algorithm,
    prepare,
    smooth,
    smooth_prepared,
)
from ..attention._solve import Basis
from ..attention._tables import attention_weights
from ..bandwidth._neighbors import neighbor_distances
from ..kernels._product_kernel import mixed_kernel
from . import _polynomial
from ._errors import Errors, ErrorSettings

# Degree of the curve that a confidence band is around, and the factor on the bandwidth, for
# predictions of degree 0 to 3. They were measured: the bias of the curve is small relative to
# its standard error, and the band is not wider than this takes. In more than ten features
# parabolas have too many coefficients, so that the curve is of lines.
_BANDS = ((1, 0.8), (2, 1.0), (2, 0.6), (3, 0.6))
_BAND_OF_MANY_FEATURES, _MANY_FEATURES = (1, 0.5), 10


class Member(NamedTuple):
    """A local polynomial of a smoother, whose predictions are averages of its members."""

    degree: int
    bandwidth: Any  # (n_features,)
    weight: float  # in the average; the weights of all members sum to 1


def single_member(degree, bandwidth):
    """Return the `member_fields` of a smoother with one member."""
    return (tuple(Member(degree, bandwidth, weight=1.0)),)


@dataclasses.dataclass(frozen=True)
class FittedSmoother:
    """Training rows with values, a kernel, and the members whose average it predicts.

    What depends on the training rows alone is computed when it is first asked for, and kept.
    """

    keys: Any  # (n_keys, n_features)
    values: Any  # (n_keys,) or (n_keys, n_outputs)
    key_weights: Any  # (n_keys,); None for 1
    kernel: Any  # with the lambdas of the heaviest member for categories
    columns: Any  # Columns: which features are numbers, and which categories
    member_fields: tuple  # fields of each `Member`, as tuples, which stored files may hold
    n_neighbors: int | None  # the neighbour that an adaptive bandwidth reaches to
    empty: str  # "nearest" or "nan"
    algorithm: str  # "auto" or "dense"
    widening: bool = True  # whether windows in which rows have little weight may be doubled
    factor: float = 1.0  # on the bandwidth, adaptive or not
    error_settings: Any = dataclasses.field(default_factory=ErrorSettings)

    def __getstate__(self):
        # What depends on the rows alone is computed again.
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @cached_property
    def members(self):
        """The members, as a list of `Member`."""
        return [Member(*fields) for fields in self.member_fields]

    @property
    def heaviest(self):
        """The member of largest weight."""
        return max(self.members, key=operator.attrgetter("weight"))

    @property
    def degree(self):
        """Degree of the heaviest member."""
        return self.heaviest.degree

    @property
    def bandwidth(self):
        """Bandwidth (n_features,) of the heaviest member."""
        return self.heaviest.bandwidth

    @property
    def is_polynomial(self):
        """True if a member is a polynomial of degree 1 or more, not an average of values."""
        return any(member.degree for member in self.members)

    def replace(self, **changes):
        """Return a copy with other values of the fields that are passed.

        If a `degree` or a `bandwidth` is passed, the copy has a single member with it.
        """
        if changes.keys() & {"degree", "bandwidth"}:
            degree = changes.pop("degree", self.degree)
            bandwidth = changes.pop("bandwidth", self.bandwidth)
            changes["member_fields"] = single_member(degree, bandwidth)
        return dataclasses.replace(self, **changes)

    def with_members(self, members):
        """Return the smoother of the same rows with other members."""
        changed = self.replace(member_fields=tuple(map(tuple, members)))
        if not self.columns.categorical:
            return changed
        of_numbers = [factor for name, factor, _ in self.kernel.kernels if name == "numbers"]
        kernel = mixed_kernel(*of_numbers or [None], self.columns, changed.bandwidth)
        return changed.replace(kernel=kernel)

    def with_bandwidth(self, bandwidth, **changes):
        """Return the smoother with one member, of the same degree at another bandwidth."""
        return self.with_members([Member(self.degree, bandwidth, 1.0)]).replace(**changes)

    def rescaled(self, change):
        """Return the smoother with the bandwidth ``change(bandwidth)`` in each member."""
        return self.with_members(
            member._replace(bandwidth=change(member.bandwidth)) for member in self.members
        )

    @cached_property
    def polynomials(self):
        """Pairs of the weight of a member and the smoother of this member alone."""
        if len(self.members) == 1:
            return [(1.0, self)]
        return [
            (member.weight, self.with_members([member._replace(weight=1.0)]))
            for member in self.members
        ]

    @property
    def extrapolating_line(self):
        """The smoother of the local line, which extrapolates for all members."""
        local = [alone for _, alone in self.polynomials if alone.degree]
        return min(local, key=operator.attrgetter("degree"))

    def move_to_edge(self, X):
        """Return the queries moved to the edge, and the positions of those that were moved.

        No query is moved if there is one member, which extrapolates by itself. The positions
        are None if the queries are in partitions.
        """
        if len(self.members) == 1:
            return X, ()
        edge = X.clip(*self.key_limits).astype(X.dtype)
        return edge, None if is_partitioned(X) else np.flatnonzero((edge != X).any(axis=1))

    def _averaged(self, X, evaluate):
        """Average over the members what they have at queries, a list of arrays (n, ...).

        A query beyond the edge gets the average at the edge, plus the change of the local line
        from there to the query. ``evaluate(smoother, queries, is_inside)`` computes the arrays
        of one member; `is_inside` (n, n_features) is True for coordinates that are not moved.
        """
        all_inside = np.broadcast_to(np.True_, X.shape)
        if len(self.members) == 1:
            return evaluate(self, X, all_inside)
        edge, outside = self.move_to_edge(X)
        is_inside = edge == X
        averages = weighted_sum(
            (weight, evaluate(alone, edge, is_inside))
            for weight, alone in self.polynomials
            if weight
        )
        if outside is None:
            at_query = evaluate(self.extrapolating_line, X, all_inside)
            at_edge = evaluate(self.extrapolating_line, edge, is_inside)
            return [x + a - b for x, a, b in zip(averages, at_query, at_edge, strict=True)]
        if len(outside):
            at_query = evaluate(self.extrapolating_line, X[outside], all_inside[outside])
            at_edge = evaluate(self.extrapolating_line, edge[outside], is_inside[outside])
            for x, a, b in zip(averages, at_query, at_edge, strict=True):
                x[outside] += a - b
        return averages

    def take(self, rows):
        """Return the smoother of a selection of the rows."""
        return self.replace(
            keys=self.keys[rows],
            values=self.values[rows],
            key_weights=None if self.key_weights is None else self.key_weights[rows],
            error_settings=self.error_settings.take(rows),
        )

    def first(self, n_rows):
        """Return the smoother of the first `n_rows` rows, which are read into memory."""
        first = self.take(slice(n_rows))
        keys, values, weights = to_memory(first.keys, first.values, first.key_weights)
        return first.replace(keys=keys, values=values, key_weights=weights)

    @property
    def is_in_memory(self):
        """True if all rows are in memory or in memory maps, not in partitions of Dask."""
        return not is_partitioned(self.keys)

    @property
    def unweighted(self):
        """The smoother in which all rows of positive weight have weight 1."""
        if self.key_weights is None:
            return self
        return self.replace(key_weights=(self.key_weights > 0).astype(np.float64))

    @property
    def row_weights(self):
        """Weights of the rows; 1 if there are none."""
        return weights_or_ones(self.keys, self.key_weights)

    @property
    def n_rows(self):
        """Number of rows of positive weight."""
        if self.key_weights is None:
            return len(self.keys)
        return int(reduce_rows(np.count_nonzero, operator.add, self.key_weights))

    @property
    def values_2d(self):
        """The values as a table (n_keys, n_outputs), also if there is one output."""
        return self.values.reshape(len(self.keys), -1)

    @property
    def divisors(self):
        """The number by which each column is divided before the kernel compares rows."""
        return self.columns.divisors(self.factor * self.bandwidth)

    @property
    def widens(self):
        """True if windows in which rows have little weight are doubled."""
        is_fixed = (
            self.n_neighbors is None and self.kernel.decreasing and not self.kernel.signed
        )
        is_asked = self.widening and self.empty == "nearest"
        is_local = self.degree > 0 and len(self.columns.numeric) > 0
        return is_asked and is_local and is_fixed and self.is_in_memory

    def doubled(self, times):
        """Return the smoother whose windows are doubled `times` times, and are not widened."""
        if times not in self._doubled:
            factor = self.factor * 2.0**times
            self._doubled[times] = self.replace(factor=factor, widening=False)
        return self._doubled[times]

    @cached_property
    def _doubled(self):
        """Smoothers of doubled windows by the number of times; they keep what they computed."""
        return {}

    @cached_property
    def windows(self):
        """The `Windows` of the rows, and a smoother of the design points (the distinct rows).

        The latter is None if all rows are distinct.
        """
        size = Basis(self.degree, len(self.columns.numeric)).size
        windows, points = Windows(self.keys, self.values_2d, self.row_weights, size), None
        if windows.has_repeats:
            points = self.take(windows.first_rows)
            points = points.replace(values=points.keys[:, :0], key_weights=None)
        return windows, points

    @cached_property
    def key_limits(self):
        """Smallest and largest number of each column, (n_features,) each.

        They are infinite for categories, which are never moved to the edge.
        """
        low, high = map(np.float64, min_max_sum(self.keys, self.key_weights)[:2])
        numeric = self.columns.is_numeric
        return np.where(numeric, low, -np.inf), np.where(numeric, high, np.inf)

    @cached_property
    def box(self):
        """Lower and upper bounds to which queries are clipped, and their largest distance.

        The distance is that along a column, in bandwidths.
        """
        (low, high), numeric = self.key_limits, self.columns.is_numeric
        with np.errstate(over="ignore", invalid="ignore"):
            margin = np.where(numeric, MAX_RANGES * (high - low), 0.0)
            max_distance = ((high - low + 2 * margin) / self.divisors)[numeric].max()
        return low - margin, high + margin, float(max_distance)

    @cached_property
    def algorithm_name(self):
        """Name of the algorithm that predicts as many queries as there are rows."""
        if self.algorithm == "dense":
            return "dense"
        keys = self.first(ROWS_AT_ONCE).keys
        return fastest_algorithm(
            keys,
            keys,
            self.kernel,
            bandwidth=self.divisors,
            query_scale=self.bandwidth_factors(keys),
            degree=self.degree,
        )

    def predict_training_rows(self, window_source):
        """Return the `Predictions` of the rows, with and without themselves.

        Adaptive windows reach to the neighbours in `window_source`. This is the smoother
        itself, or, in tests of a feature, the one whose keys have not lost the feature.
        """
        pairs = zip(self.polynomials, window_source.polynomials, strict=True)
        predictions = (
            (weight, _polynomial.predict_training_rows(member, source_of_member))
            for (weight, member), (_, source_of_member) in pairs
        )
        return Predictions(*weighted_sum(predictions))

    @cached_property
    def training_predictions(self):
        """`Predictions` of the rows, with and without themselves."""
        if self.is_in_memory:
            return self.predict_training_rows(self)
        return _polynomial.predict_by_sums(self)

    # `Errors` of the rows predicted without themselves, and of predictions at queries.
    errors = cached_property(Errors)

    @cached_property
    def less_biased(self):
        """The smoother that confidence bands are around."""
        if len(self.members) == 1:
            degree, factor = self._band(self.degree)
            # Windows of averages are not widened, so those of the line around them are not.
            widening = self.widening and self.degree > 0
            return self.replace(degree=degree, factor=factor, widening=widening)
        return self.with_members(self.less_biased_members)

    @property
    def less_biased_members(self):
        """The members of the smoother that bands are around, if there are several."""
        numeric, members = self.columns.is_numeric, []
        for degree, bandwidth, weight in self.members:
            band_degree, factor = self._band(degree)
            bandwidth = np.where(numeric, factor, 1.0) * bandwidth
            members.append(Member(band_degree, bandwidth, weight))
        return members

    def without_terms_of(self, feature):
        """Return the smoother without an additive term of a feature, of which it has none."""
        return self

    def _band(self, degree):
        """Return the degree of the curve that a band is around, and its bandwidth's factor."""
        if degree == 1 and len(self.columns.numeric) > _MANY_FEATURES:
            return _BAND_OF_MANY_FEATURES
        return _BANDS[degree]

    def predict(self, X, values=None):
        """Predict queries, from other values (n_keys, ...) of the rows if they are passed."""
        values = self.values if values is None else values

        def evaluate(alone, Q, _):
            return [_polynomial.predict(alone, Q, values)]

        return self._averaged(X, evaluate)[0]

    def average(self, X, values, scale=None):
        """Average values (n_keys, ...) of the rows at queries, whatever the degree.

        `scale` (n_queries,) multiplies the bandwidth; by default it is that of the smoother.
        """
        return self.smooth(0, X, values, scale)[0]

    def smooth(self, degree, X, values, scale=None):
        """Return the fields of averages at queries (degree 0), or those of a `LocalFit`."""
        scale = self.bandwidth_factors(X) if scale is None else scale
        is_fitted = values is self.values and degree == self.degree
        if is_fitted and not is_partitioned(X) and self._prepared is not None:
            return smooth_prepared(self._prepared, X, scale)
        return smooth(
            self.attention_smoother(degree), X, self.keys, values, self.key_weights, scale
        )

    @cached_property
    def _prepared(self):
        """The rows as predictions read them; None if they are many or in partitions.

        They are kept, so that a prediction of one query does not read all rows again.
        """
        return prepare(
            self.attention_smoother(self.degree), self.keys, self.values, self.key_weights
        )

    def attention_smoother(self, degree):
        """Return the `Smoother` of averages (degree 0) or local polynomials of a degree."""
        return Smoother(self.kernel, self.divisors, degree, self.empty, self.algorithm)

    def leave_one_out(self, values=None, **changes):
        """Return the `LeaveOneOut` of values of the rows, by the heaviest member.

        `changes` are other arguments of `LeaveOneOut`.
        """
        options = {
            "bandwidth": self.divisors,
            "degree": self.degree,
            "algorithm": self.algorithm,
            "sample_weight": self.key_weights,
            "empty": self.empty,
            "widen": self.widens,
        }
        values = self.values_2d if values is None else values
        return LeaveOneOut(self.keys, values, self.kernel, **options | changes)

    def predict_left_out(self, rows, factor=1.0, gap=0):
        """Predict rows without themselves, in windows wider by a factor.

        The `gap` rows before and after each, which have correlated noise, are left out as well.
        """

        def left_out(alone):
            scale = factor
            if alone.n_neighbors is not None:
                scale = factor * alone.bandwidth_factors(alone.keys[rows], more=1)
            return alone.leave_one_out(rows=rows, gap=gap).predictions(scale).left_out

        return weighted_sum((w, [left_out(alone)]) for w, alone in self.polynomials)[0]

    def local_rows(self, X, more=0, *, without_each=False):
        """Return the `LocalRows`: rows of the hat matrix at queries, and predictions.

        With an adaptive bandwidth, windows reach `more` neighbours further. Predictions without
        each row are computed only if `without_each`.
        """
        if len(self.members) == 1:
            return _polynomial.local_rows(self, X, more, without_each=without_each)
        names = ["values", "effects", "left_out"][: 2 + without_each]

        def evaluate(alone, Q, _):
            rows = _polynomial.local_rows(alone, Q, more, without_each=without_each)
            return [getattr(rows, name) for name in names]

        averages = dict(zip(names, self._averaged(X, evaluate), strict=True))
        return attention.LocalRows(**dict.fromkeys(attention.LocalRows._fields) | averages)

    def weights(self, X, scale=None):
        """Return the weights (n_queries, n_keys) of the rows in averages, as in `average`."""
        options = self.options(X)
        if scale is not None:
            options["query_scale"] = scale
        return attention_weights(X, self.keys, self.kernel, **options)

    def hat_matrix(self, X):
        """Return the rows (n_queries, n_keys) of the hat matrix at queries."""
        if self.is_polynomial:
            return self.local_rows(X).effects.astype(self.keys.dtype)
        return self.weights(X)

    def left_out(self, X):
        """Return predictions, rows of the hat matrix, and predictions without each row.

        Their shapes are (n_queries, n_outputs), (n_queries, n_keys) and
        (n_queries, n_keys, n_outputs).
        """
        hat = self.local_rows(X, without_each=True)
        if self.n_neighbors is None:
            return hat.values, hat.effects, hat.left_out
        # If a neighbour is left out, the next nearest one replaces it.
        wider = self.local_rows(X, more=1, without_each=True).left_out
        distances = cdist(self._in_bandwidths(X), self._in_bandwidths(self.keys))
        is_neighbor = (distances <= self.bandwidth_factors(X)[:, None])[:, :, None]
        return hat.values, hat.effects, np.where(is_neighbor, wider, hat.left_out)

    def gradient(self, X, values):
        """Return derivatives of predictions of values, with respect to the queries.

        Their shape is (n_queries, n_features) or (n_queries, n_outputs, n_features).
        """

        def slopes(alone, Q, is_inside):
            # A coordinate that is moved to the edge has no effect on what is predicted there.
            gradients = _polynomial.gradient(alone, Q, values)
            return [gradients * (is_inside if gradients.ndim == 2 else is_inside[:, None])]

        return self._averaged(X, slopes)[0]

    def bandwidth_factors(self, X, more=0):
        """Return the factor (n_queries,) on the bandwidth at queries; None for 1.

        With an adaptive bandwidth, it is the distance to the neighbour number
        ``n_neighbors + more``.
        """
        if self.n_neighbors is None:
            return None
        need_all_rows(
            f"bandwidths that differ from place to place (n_neighbors={self.n_neighbors!r})",
            X,
            remedy="let X.map_blocks or X.map_partitions predict",
        )
        queries, keys = (
            self._in_bandwidths(table) for table in (X, self.keys[self.row_weights > 0])
        )
        n_neighbors = min(self.n_neighbors + more, len(keys))
        return neighbor_distances(queries, keys, n_neighbors)[:, -1]

    def scaled_rows(self, X):
        """Return rows in bandwidths, in the columns along which the kernel decreases."""
        form = self.radial_form
        kernel = self.kernel if form is None else form.kernel
        columns = self.columns.numeric if form is None else form.columns
        columns = columns if kernel.decreasing else []
        return np.asarray(X[:, columns], dtype=np.float64) / self.bandwidth[columns]

    def need_positive_weights(self, what):
        """Raise ValueError if the kernel takes negative values."""
        refuse_negative(self.kernel, self.kernel.signed, what)

    def options(self, X, more=0):
        """Return the keyword arguments that functions of `attention` share, for queries."""
        return {
            "bandwidth": self.divisors,
            "query_scale": self.bandwidth_factors(X, more),
            "sample_weight": self.key_weights,
            "empty": self.empty,
        }

    @property
    def radial_form(self):
        """The kernel as a function of the distance; None for other kernels."""
        return self.kernel.radial_form(self.keys.shape[1])

    def _in_bandwidths(self, X):
        """Return the numeric columns in bandwidths; neighbours are nearest in these."""
        columns = self.columns.numeric
        return X[:, columns] / self.bandwidth[columns]


def stored_smoother(shares=None, degree=None, bandwidth=None, **fields):
    """Return the smoother of a stored file.

    Version 0.2.0 stored degree and bandwidth of the heaviest member, `shares` with the fields
    of all members if there are several, and the error settings as fields of the smoother.
    """
    fields.setdefault("member_fields", shares or single_member(degree, bandwidth))
    fields.pop("remoteness", None)
    names = [field.name for field in dataclasses.fields(ErrorSettings) if field.name in fields]
    if names:
        settings = {name: fields.pop(name) for name in names}
        fields["error_settings"] = ErrorSettings(**settings)
    return FittedSmoother(**fields)


def weighted_sum(weighted_fields):
    """Sum lists of arrays, each times its weight, array by array."""
    total = None
    for weight, fields in weighted_fields:
        weighted = [weight * field for field in fields]
        total = weighted if total is None else list(map(operator.add, total, weighted))
    return total


def refuse_negative(kernel, negative, what):
    """Raise ValueError if a kernel is known to be negative somewhere."""
    if negative:
        raise ValueError(
            f"kernel={kernel!r} takes negative values, but {what} needs weights of 0 or more: "
            "choose a kernel that is positive everywhere, such as 'gaussian'."
        )


def weighed(weights, robustness):
    """Return the product of weights and robustness of rows; each is None for 1."""
    if weights is None or robustness is None:
        return robustness if weights is None else weights
    return weights * robustness
