"""The fitted smoother: the training rows, their values, a kernel and local polynomials.

All predictions of an estimator are computed from it. Its terms:

* The **keys** are the training rows, the **values** their targets. The **queries** X are the
  rows that are predicted.
* A **member** is a local polynomial: a degree and a bandwidth. Predictions are the average of
  all members, by their weights. In most fits there is one member.
* The **window** of a query is the weights of the keys around it. An adaptive bandwidth reaches
  to the neighbour number `n_neighbors` of the query; other windows are doubled if the keys in
  them do not determine the polynomial (`_polynomial`).
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
from ..attention._doubled_windows import MAX_RANGES, WindowAdequacy
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
# its standard error, and the band is no wider than necessary. In more than ten features,
# parabolas have too many coefficients for the rows of a window, so the curve consists of lines.
_BANDS = ((1, 0.8), (2, 1.0), (2, 0.6), (3, 0.6))
_BAND_OF_MANY_FEATURES, _MANY_FEATURES = (1, 0.5), 10


class Member(NamedTuple):
    """A local polynomial of a smoother, whose predictions are averages of its members."""

    degree: int
    bandwidth: Any  # (n_features,)
    weight: float  # in the average; the weights of all members sum to 1


def single_member(degree, bandwidth):
    """Return the field `member_fields` of a smoother that has one member."""
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
    empty: str  # prediction where no key has weight: by the "nearest" key, or "nan"
    algorithm: str  # "auto" or "dense"
    widening: bool = True  # False if windows must not be doubled; see `doubles_windows`
    factor: float = 1.0  # multiplies the bandwidth, adaptive or not
    error_settings: Any = dataclasses.field(default_factory=ErrorSettings)

    def __getstate__(self):
        # Only the fields are stored; cached properties are computed again.
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
        """Return the smoother of the same rows with other members, an iterable of `Member`."""
        changed = self.replace(member_fields=tuple(map(tuple, members)))
        if not self.columns.categorical:
            return changed
        # The kernel is a product, in which categories have the lambdas of the heaviest member.
        # Only the factor "numbers" is kept; without numbers there is none.
        kernels = {name: kernel for name, kernel, _ in self.kernel.kernels}
        kernel = mixed_kernel(kernels.get("numbers"), self.columns, changed.bandwidth)
        return changed.replace(kernel=kernel)

    def with_bandwidth(self, bandwidth, **changes):
        """Return the smoother with one member, of the same degree at another bandwidth.

        `changes` are other values of further fields.
        """
        return self.with_members([Member(self.degree, bandwidth, weight=1.0)]).replace(
            **changes
        )

    def rescaled(self, change):
        """Return the smoother in which each member has the bandwidth ``change(bandwidth)``."""
        return self.with_members(
            member._replace(bandwidth=change(member.bandwidth)) for member in self.members
        )

    @cached_property
    def weighted_smoothers(self):
        """Pairs of the weight of a member and the smoother that has only this member."""
        if len(self.members) == 1:
            return [(1.0, self)]
        return [
            (member.weight, self.with_members([member._replace(weight=1.0)]))
            for member in self.members
        ]

    @property
    def extrapolating_line(self):
        """The smoother of the local line, which extrapolates for all members."""
        # `_degrees` keeps a member of degree 1 in every average of several members.
        smoothers = [smoother for _, smoother in self.weighted_smoothers if smoother.degree]
        return min(smoothers, key=operator.attrgetter("degree"))

    def move_to_edge(self, X):
        """Return the queries moved to the edge, and the positions of those that were moved.

        No query is moved if there is one member, which extrapolates by itself. The positions
        are None if the queries are in partitions.
        """
        if len(self.members) == 1:
            return X, ()
        edge = X.clip(*self.key_limits).astype(X.dtype)
        return edge, None if is_partitioned(X) else np.flatnonzero((edge != X).any(axis=1))

    def _average_members(self, X, evaluate):
        """Average results of the members, such as predictions or rows of the hat matrix.

        A query beyond the edge gets the average at the edge, plus the change of the local line
        from there to the query.

        Parameters
        ----------
        X : array of shape (n, n_features)
            The queries.
        evaluate : callable
            ``evaluate(smoother, queries, is_inside)`` returns the results of the smoother of
            one member, a list of arrays (n, ...). The mask `is_inside` (n, n_features) is True
            for numbers that were not moved to the edge.

        Returns
        -------
        averages : list of arrays of shape (n, ...)
            The average of each of these results.
        """
        all_inside = np.broadcast_to(np.True_, X.shape)
        if len(self.members) == 1:
            return evaluate(self, X, all_inside)
        # 1. Average the members at the edge, to which queries beyond it are moved.
        edge, outside = self.move_to_edge(X)
        is_inside = edge == X
        averages = weighted_sum(
            (weight, evaluate(smoother, edge, is_inside))
            for weight, smoother in self.weighted_smoothers
            if weight
        )
        # 2. Add the change of the line from the edge to each query beyond it. If queries are in
        # partitions, it is not known which are beyond, and it is added to all; it is 0 inside.
        line = self.extrapolating_line
        if outside is None:
            line_at_query = evaluate(line, X, all_inside)
            line_at_edge = evaluate(line, edge, is_inside)
            triples = zip(averages, line_at_query, line_at_edge, strict=True)
            return [average + at_query - at_edge for average, at_query, at_edge in triples]
        if len(outside):
            line_at_query = evaluate(line, X[outside], all_inside[outside])
            line_at_edge = evaluate(line, edge[outside], is_inside[outside])
            triples = zip(averages, line_at_query, line_at_edge, strict=True)
            for average, at_query, at_edge in triples:
                average[outside] += at_query - at_edge
        return averages

    def take(self, rows):
        """Return the smoother of some of the keys: positions, a mask or a slice."""
        return self.replace(
            keys=self.keys[rows],
            values=self.values[rows],
            key_weights=None if self.key_weights is None else self.key_weights[rows],
            error_settings=self.error_settings.take(rows),
        )

    def first(self, n_rows):
        """Return the smoother of the first `n_rows` keys, which are read into memory."""
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
        """Weights of the keys, (n_keys,), as an array also if all are 1."""
        return weights_or_ones(self.keys, self.key_weights)

    @property
    def n_rows(self):
        """Number of keys of positive weight."""
        if self.key_weights is None:
            return len(self.keys)
        return int(reduce_rows(np.count_nonzero, operator.add, self.key_weights))

    @property
    def values_2d(self):
        """The values as a table (n_keys, n_outputs), also if there is one output."""
        return self.values.reshape(len(self.keys), -1)

    @property
    def divisors(self):
        """Numbers (n_features,) that columns are divided by before the kernel compares them."""
        return self.columns.divisors(self.factor * self.bandwidth)

    @property
    def doubles_windows(self):
        """True if windows in which rows do not determine the polynomial are doubled.

        Windows of rows in partitions of Dask are not doubled.
        """
        # With empty="nan", a window without rows has to stay empty, so that it gives NaN.
        is_asked = self.widening and self.empty == "nearest"
        is_polynomial = self.degree > 0 and len(self.columns.numeric) > 0
        # The windows of an adaptive bandwidth always have enough keys.
        is_fixed = self.n_neighbors is None
        # A window has more weight at twice the bandwidth if the kernel falls with the distance.
        falls = self.kernel.decreasing and not self.kernel.signed
        return is_asked and is_polynomial and is_fixed and falls and self.is_in_memory

    def doubled(self, n_doublings):
        """Return the smoother at ``2**n_doublings`` times the bandwidth.

        Its windows are not doubled any more.
        """
        if n_doublings not in self._doubled_smoothers:
            factor = self.factor * 2.0**n_doublings
            smoother = self.replace(factor=factor, widening=False)
            self._doubled_smoothers[n_doublings] = smoother
        return self._doubled_smoothers[n_doublings]

    @cached_property
    def _doubled_smoothers(self):
        """Smoothers by the number of doublings; they keep what they have computed."""
        return {}

    @cached_property
    def window_adequacy(self):
        """The `WindowAdequacy`, which tells whether a window determines the polynomial."""
        n_coefficients = Basis(self.degree, len(self.columns.numeric)).size
        return WindowAdequacy(self.keys, self.values_2d, self.row_weights, n_coefficients)

    @cached_property
    def at_design_points(self):
        """The smoother of the design points, the distinct keys; None if no key repeats another.

        Only leverages are computed from it, so the points have no values and equal weights.
        """
        if not self.window_adequacy.points.has_repeats:
            return None
        points = self.take(self.window_adequacy.points.first_rows)
        return points.replace(values=points.keys[:, :0], key_weights=None)

    @cached_property
    def key_limits(self):
        """Smallest and largest number of each column over the keys, (n_features,) each.

        They are infinite for categories, which are never moved to the edge.
        """
        low, high = map(np.float64, min_max_sum(self.keys, self.key_weights)[:2])
        numeric = self.columns.is_numeric
        return np.where(numeric, low, -np.inf), np.where(numeric, high, np.inf)

    @cached_property
    def query_limits(self):
        """Lower and upper limits of queries, (n_features,) each, and a distance.

        Local polynomials clip queries to these limits, which are many ranges of the keys away.
        The distance is the largest one between a query and a key, along a column, in
        bandwidths.
        """
        (low, high), numeric = self.key_limits, self.columns.is_numeric
        with np.errstate(over="ignore", invalid="ignore"):
            margin = np.where(numeric, MAX_RANGES * (high - low), 0.0)
            max_distance = ((high - low + 2 * margin) / self.divisors)[numeric].max()
        return low - margin, high + margin, float(max_distance)

    @cached_property
    def algorithm_name(self):
        """Name of the algorithm that predicts the keys themselves: "linear", "near" or "dense".

        More keys than `ROWS_AT_ONCE` are taken in parts of this size, so the name is that for
        the first part.
        """
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
        """Return the `Predictions` of the training rows, with and without themselves.

        The windows of an adaptive bandwidth reach to the neighbours among the keys of
        `window_source`. This is the smoother itself, or, if the smoother ignores a feature to
        test it, the smoother that does not, so that both have the same windows.
        """
        pairs = zip(self.weighted_smoothers, window_source.weighted_smoothers, strict=True)
        predictions = (
            (weight, _polynomial.predict_training_rows(smoother, window_source_of_member))
            for (weight, smoother), (_, window_source_of_member) in pairs
        )
        return Predictions(*weighted_sum(predictions))

    @cached_property
    def training_predictions(self):
        """`Predictions` of the training rows, with and without themselves."""
        if self.is_in_memory:
            return self.predict_training_rows(self)
        return _polynomial.predict_by_sums(self)

    # `Errors` of the rows predicted without themselves, and of predictions at queries.
    errors = cached_property(Errors)

    @cached_property
    def band_smoother(self):
        """The smoother that confidence bands are around, whose bias is smaller."""
        if len(self.members) == 1:
            degree, factor = self._band_degree_and_factor(self.degree)
            # Windows of averages are not widened, so those of the line around them are not.
            widening = self.widening and self.degree > 0
            return self.replace(degree=degree, factor=factor, widening=widening)
        return self.with_members(self.band_members)

    @property
    def band_members(self):
        """The members of the smoother that bands are around, if there are several."""
        is_numeric, members = self.columns.is_numeric, []
        for degree, bandwidth, weight in self.members:
            band_degree, factor = self._band_degree_and_factor(degree)
            band_bandwidth = np.where(is_numeric, factor, 1.0) * bandwidth
            members.append(Member(band_degree, band_bandwidth, weight))
        return members

    def without_terms_of(self, feature):
        """Return the smoother itself, which has no additive terms that could be left out."""
        return self

    def _band_degree_and_factor(self, degree):
        """Return the degree and the factor on the bandwidth of the curve that a band is around.

        `degree` is that of the predictions.
        """
        if degree == 1 and len(self.columns.numeric) > _MANY_FEATURES:
            return _BAND_OF_MANY_FEATURES
        return _BANDS[degree]

    def predict(self, X, values=None):
        """Predict queries, from other values (n_keys, ...) of the keys if they are passed.

        The result has the shape (n_queries, ...).
        """
        values = self.values if values is None else values

        def evaluate(smoother, queries, is_inside):
            return [_polynomial.predict(smoother, queries, values)]

        return self._average_members(X, evaluate)[0]

    def average(self, X, values, scale=None):
        """Average values (n_keys, ...) of the keys at queries, (n_queries, ...).

        These are averages (degree 0) whatever the degree of the smoother. `scale` (n_queries,)
        multiplies the bandwidth; by default it is that of the smoother.
        """
        averages, _ = self.smooth(degree=0, X=X, values=values, scale=scale)
        return averages

    def smooth(self, degree, X, values, scale=None):
        """Smooth values (n_keys, ...) at queries, in windows that are not doubled.

        Returns a tuple. For degree 0 it has averages (n_queries, ...) and logarithms of the
        sums of weights, (n_queries,); for a higher degree the fields of a `LocalFit`. `scale`
        is that of `average`.
        """
        scale = self.bandwidth_factors(X) if scale is None else scale
        is_fitted = values is self.values and degree == self.degree
        if is_fitted and not is_partitioned(X) and self._prepared_keys is not None:
            return smooth_prepared(self._prepared_keys, X, scale)
        return smooth(
            self.attention_smoother(degree), X, self.keys, values, self.key_weights, scale
        )

    @cached_property
    def _prepared_keys(self):
        """The keys and values as `smooth_prepared` reads them, which are kept for later calls.

        So a prediction of one query does not read all keys again. None if the keys are too many
        or in partitions.
        """
        return prepare(
            self.attention_smoother(self.degree), self.keys, self.values, self.key_weights
        )

    def attention_smoother(self, degree):
        """Return the settings (a `Smoother`) with which `attention` smooths at a degree."""
        return Smoother(self.kernel, self.divisors, degree, self.empty, self.algorithm)

    def leave_one_out(self, values=None, **changes):
        """Return the `LeaveOneOut`, which predicts keys without themselves.

        If there are several members, it has the degree and the bandwidth of the heaviest one.
        `values` (n_keys, n_values) are smoothed instead of the smoother's own if they are
        passed. `changes` are other arguments of `LeaveOneOut`.
        """
        options = {
            "bandwidth": self.divisors,  # the kernel has the lambdas of categories
            "degree": self.degree,
            "algorithm": self.algorithm,
            "sample_weight": self.key_weights,
            "empty": self.empty,
            "widen": self.doubles_windows,
        }
        values = self.values_2d if values is None else values
        return LeaveOneOut(self.keys, values, self.kernel, **options | changes)

    def predict_left_out(self, rows, factor=1.0, gap=0):
        """Predict training rows without themselves, (n_rows, n_outputs).

        `rows` are their positions. The `gap` rows before and after each, which have correlated
        noise, are left out as well. `factor` multiplies the bandwidth.
        """
        weighted = []
        for weight, smoother in self.weighted_smoothers:
            scale = factor
            if smoother.n_neighbors is not None:
                # A row that is left out is not its own neighbour, so the next one replaces it.
                scale = factor * smoother.bandwidth_factors(smoother.keys[rows], more=1)
            predictions = smoother.leave_one_out(rows=rows, gap=gap).predictions(scale)
            weighted.append((weight, [predictions.left_out]))
        return weighted_sum(weighted)[0]

    def local_rows(self, X, more=0, *, without_each=False):
        """Return the `LocalRows`: rows of the hat matrix at queries, and predictions.

        With an adaptive bandwidth, windows reach `more` neighbours further. If `without_each`,
        also compute the predictions of the queries without each of the keys.
        """
        if len(self.members) == 1:
            return _polynomial.local_rows(self, X, more, without_each=without_each)
        # An average of several members has these fields; the others are None.
        names = ["values", "effects"] + ["left_out"] * without_each

        def evaluate(smoother, queries, is_inside):
            rows = _polynomial.local_rows(smoother, queries, more, without_each=without_each)
            return [getattr(rows, name) for name in names]

        averages = dict(zip(names, self._average_members(X, evaluate), strict=True))
        return attention.LocalRows(**dict.fromkeys(attention.LocalRows._fields) | averages)

    def weights(self, X, scale=None):
        """Return the weights (n_queries, n_keys) of the keys in averages; rows sum to 1.

        `scale` is that of `average`.
        """
        options = self.attention_options(X)
        if scale is not None:
            options["query_scale"] = scale
        return attention_weights(X, self.keys, self.kernel, **options)

    def hat_matrix(self, X):
        """Return the rows (n_queries, n_keys) of the hat matrix at queries."""
        if self.is_polynomial:
            return self.local_rows(X).effects.astype(self.keys.dtype)
        return self.weights(X)

    def left_out(self, X):
        """Return predictions, rows of the hat matrix, and predictions without each key.

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
        """Return derivatives of predictions with respect to the queries.

        The predictions are from `values` of the keys, (n_keys,) or (n_keys, n_outputs); the
        derivatives are (n_queries, n_features) or (n_queries, n_outputs, n_features).
        """

        def evaluate(smoother, queries, is_inside):
            # A coordinate that is moved to the edge has no effect on what is predicted there.
            gradients = _polynomial.gradient(smoother, queries, values)
            return [gradients * (is_inside if gradients.ndim == 2 else is_inside[:, None])]

        return self._average_members(X, evaluate)[0]

    def bandwidth_factors(self, X, more=0):
        """Return the factors (n_queries,) on the bandwidth at queries; None for 1.

        With an adaptive bandwidth, a factor is the distance from the query to its neighbour
        number ``n_neighbors + more``, in bandwidths.
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
        """Return rows in units of the bandwidths, (n, n_columns).

        They have only the columns along which the kernel falls with the distance.
        """
        form = self.radial_form
        kernel = self.kernel if form is None else form.kernel
        columns = self.columns.numeric if form is None else form.columns
        columns = columns if kernel.decreasing else []
        return np.asarray(X[:, columns], dtype=np.float64) / self.bandwidth[columns]

    def need_positive_weights(self, what):
        """Raise ValueError if the kernel takes negative values; `what` needs the weights."""
        refuse_negative(self.kernel, self.kernel.signed, what)

    def attention_options(self, X, more=0):
        """Return keyword arguments for functions of `attention` that smooth at queries X.

        With an adaptive bandwidth, windows reach `more` neighbours further.
        """
        return {
            "bandwidth": self.divisors,
            "query_scale": self.bandwidth_factors(X, more),
            "sample_weight": self.key_weights,
            "empty": self.empty,
        }

    @property
    def radial_form(self):
        """The kernel as a function of the distance; None if it is no such function."""
        return self.kernel.radial_form(self.keys.shape[1])

    def _in_bandwidths(self, X):
        """Return the numeric columns in bandwidths, in which neighbours are nearest."""
        columns = self.columns.numeric
        return X[:, columns] / self.bandwidth[columns]


def stored_smoother(shares=None, degree=None, bandwidth=None, **fields):
    """Return the smoother of a stored file.

    Files of this version hold the `fields` of the smoother. Files of version 0.2.0 differ: a
    single member is stored as `degree` and `bandwidth`, and several members in `shares`, a
    tuple like `member_fields`. The fields of `ErrorSettings` are among those of the smoother.
    """
    fields.setdefault("member_fields", shares or single_member(degree, bandwidth))
    # The smoother has no field `remoteness` any more.
    fields.pop("remoteness", None)
    names = [field.name for field in dataclasses.fields(ErrorSettings) if field.name in fields]
    if names:
        settings = {name: fields.pop(name) for name in names}
        fields["error_settings"] = ErrorSettings(**settings)
    return FittedSmoother(**fields)


def weighted_sum(weighted_lists):
    """Return the sum of lists of arrays, each list times its weight, as a list of arrays.

    `weighted_lists` has a pair of a weight and a list for each list.
    """
    totals = None
    for weight, arrays in weighted_lists:
        weighted = [weight * array for array in arrays]
        totals = weighted if totals is None else list(map(operator.add, totals, weighted))
    return totals


def refuse_negative(kernel, negative, what):
    """Raise ValueError if a kernel is `negative` somewhere, which `what` does not allow."""
    if negative:
        raise ValueError(
            f"kernel={kernel!r} takes negative values, but {what} needs weights of 0 or more: "
            "choose a kernel that is positive everywhere, such as 'gaussian'."
        )


def weighed(weights, robustness):
    """Return the product of weights and robust weights of rows, (n_rows,) each; None for 1."""
    if weights is None or robustness is None:
        return robustness if weights is None else weights
    return weights * robustness
