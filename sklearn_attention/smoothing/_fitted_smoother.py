"""Rows with values, a kernel and local polynomials: all that an estimator predicts with."""

import dataclasses
import operator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from .. import attention
from .._blocks import ROWS_AT_ONCE
from .._column_stats import min_max_sum
from .._partitions import is_partitioned, need_all_rows, reduce_rows, to_memory
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
from ._errors import Errors

# Degree and share of the bandwidth of the curve a band is around, for predictions of degree 0
# to 3: measured, so that the bias is small relative to the standard error and the band no
# wider than that takes. Parabolas of many features have too many coefficients.
_BANDS = ((1, 0.8), (2, 1.0), (2, 0.6), (3, 0.6))
_BAND_OF_MANY, _MANY_FEATURES = (1, 0.5), 10


class Member(NamedTuple):
    """A local polynomial; predictions may be averages of several."""

    degree: int
    bandwidth: Any  # (n_features,)
    weight: float  # weights sum to 1


@dataclasses.dataclass(frozen=True)
class FittedSmoother:
    """Rows with values, a kernel, and the local polynomials whose average it predicts.

    What depends on the rows alone is computed when it is first asked for.
    """

    keys: Any
    values: Any
    key_weights: Any  # (n_keys,) times `robustness`; None for 1
    kernel: Any  # with the lambdas of the heaviest member for categories
    columns: Any
    member_fields: tuple  # degree, bandwidth and weight of each member, which files may hold
    n_neighbors: int | None  # that an adaptive bandwidth reaches to
    empty: str
    algorithm: str
    widening: bool = True  # whether windows of little weight may be widened
    factor: float = 1.0  # on the bandwidth, adaptive or not
    gap: int = 0  # rows before and after each whose noise is like its own
    # Distances of queries from the rows, by which windows are wider, so that none has few rows.
    remoteness: Any = None
    given_weights: Any = None  # (n_keys,) without `robustness`; None for 1
    robustness: Any = None  # (n_keys,) in [0, 1]; None for 1
    random_state: Any = 0

    def __getstate__(self):
        # What depends on the rows alone is computed again.
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @cached_property
    def members(self):
        """The polynomials that predictions are averages of."""
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
    def local(self):
        """True if predictions are no averages of values, but of polynomials in them."""
        return any(member.degree for member in self.members)

    def replace(self, **changes):
        """Return the smoother that differs in some fields.

        With a `degree` or a `bandwidth` it has a single member.
        """
        if changes.keys() & {"degree", "bandwidth"}:
            names = "degree", "bandwidth"
            member = (changes.pop(name, getattr(self, name)) for name in names)
            changes["member_fields"] = ((*member, 1.0),)
        return dataclasses.replace(self, **changes)

    def with_members(self, members):
        """Return the average of other polynomials in the same rows."""
        changed = self.replace(member_fields=tuple(map(tuple, members)))
        if not self.columns.categorical:
            return changed
        of_numbers = [factor for name, factor, _ in self.kernel.kernels if name == "numbers"]
        kernel = mixed_kernel(*of_numbers or [None], self.columns, changed.bandwidth)
        return changed.replace(kernel=kernel)

    def with_bandwidth(self, bandwidth, **changes):
        """Return the smoother of one polynomial at another bandwidth."""
        return self.with_members([Member(self.degree, bandwidth, 1.0)]).replace(**changes)

    def rescaled(self, change):
        """Return the smoother whose bandwidths are changed by a function."""
        return self.with_members(
            member._replace(bandwidth=change(member.bandwidth)) for member in self.members
        )

    @cached_property
    def polynomials(self):
        """Weight of each member, and the smoother of this member alone."""
        if len(self.members) == 1:
            return [(1.0, self)]
        return [
            (member.weight, self.with_members([member._replace(weight=1.0)]))
            for member in self.members
        ]

    @property
    def line(self):
        """The member that goes on beyond the rows."""
        local = [alone for _, alone in self.polynomials if alone.degree]
        return min(local, key=operator.attrgetter("degree"))

    def at_edge(self, X):
        """Return the places among the rows next to queries, and which queries are elsewhere.

        Only averages of several members go on beyond the rows otherwise than among them. The
        latter is None if queries are in partitions.
        """
        if len(self.members) == 1:
            return X, ()
        edge = X.clip(*self.ends).astype(X.dtype)
        return edge, None if is_partitioned(X) else np.flatnonzero((edge != X).any(axis=1))

    def _averaged(self, X, evaluate):
        """Average what members have at queries: a list of arrays (n, ...).

        Beyond the rows the averages are those at their edge, and from there what a line adds.
        In ``evaluate(member, queries, moves)``, `moves` (n, n_features) marks the coordinates
        that were not moved to the edge.
        """
        everywhere = np.broadcast_to(True, X.shape)
        if len(self.members) == 1:
            return evaluate(self, X, everywhere)
        edge, outside = self.at_edge(X)
        moves = edge == X
        averages = weighted_sum(
            (weight, evaluate(member, edge, moves))
            for weight, member in self.polynomials
            if weight
        )
        if outside is None:
            at_query = evaluate(self.line, X, everywhere)
            at_edge = evaluate(self.line, edge, moves)
            return [x + a - b for x, a, b in zip(averages, at_query, at_edge, strict=True)]
        if len(outside):
            at_query = evaluate(self.line, X[outside], everywhere[outside])
            at_edge = evaluate(self.line, edge[outside], moves[outside])
            for x, a, b in zip(averages, at_query, at_edge, strict=True):
                x[outside] += a - b
        return averages

    def take(self, rows):
        """Return the smoother of some of the rows."""
        names = "keys", "values", "key_weights", "given_weights", "robustness"
        fields = ((name, getattr(self, name)) for name in names)
        return self.replace(**{name: None if x is None else x[rows] for name, x in fields})

    def first(self, n_rows):
        """Return the smoother of the first rows, in memory."""
        first = self.take(slice(n_rows))
        keys, values, weights = to_memory(first.keys, first.values, first.key_weights)
        return first.replace(keys=keys, values=values, key_weights=weights)

    @property
    def is_in_memory(self):
        """True if all rows are in memory or in maps."""
        return not is_partitioned(self.keys)

    @property
    def unweighted(self):
        """The smoother for which all rows of positive weight count alike."""
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
        return int(reduce_rows(np.count_nonzero, operator.add, self.key_weights))

    @property
    def given_counts(self):
        """Weights of the rows without robustness, since outliers are targets too."""
        return counts_of(self.keys, self.weights_as_given)

    @property
    def weights_as_given(self):
        """Weights of the rows without robustness; None for 1."""
        return self.key_weights if self.robustness is None else self.given_weights

    @property
    def table(self):
        """The values (n_keys, n_outputs), also if there is one output."""
        return self.values.reshape(len(self.keys), -1)

    @property
    def divisors(self):
        """Divisor of each column."""
        return self.columns.divisors(self.factor * self.bandwidth)

    @property
    def widens(self):
        """True if windows in which rows have little weight are widened."""
        is_fixed = (
            self.n_neighbors is None and self.kernel.decreasing and not self.kernel.signed
        )
        is_asked = self.widening and self.empty == "nearest"
        is_local = self.degree > 0 and len(self.columns.numeric) > 0
        return is_asked and is_local and is_fixed and self.is_in_memory

    def doubled(self, times):
        """Return the smoother of windows that were doubled `times` times, and widen no more."""
        if times not in self._doubled:
            factor = self.factor * 2.0**times
            self._doubled[times] = self.replace(factor=factor, widening=False)
        return self._doubled[times]

    @cached_property
    def _doubled(self):
        """Smoothers of doubled windows, which keep their rows as well."""
        return {}

    @cached_property
    def windows(self):
        """Windows of the rows; if rows repeat others, a smoother of the design points."""
        size = Basis(self.degree, len(self.columns.numeric)).size
        windows, points = Windows(self.keys, self.table, self.counts, size), None
        if windows.has_repeats:
            points = self.take(windows.first_rows)
            points = points.replace(values=points.keys[:, :0], key_weights=None)
        return windows, points

    @cached_property
    def ends(self):
        """Smallest and largest number of each column, infinite for categories."""
        low, high = map(np.float64, min_max_sum(self.keys, self.key_weights)[:2])
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

    def of_rows(self, measured):
        """Predict the rows, in windows that another smoother measures."""
        pairs = zip(self.polynomials, measured.polynomials, strict=True)
        predictions = (
            (weight, _polynomial.predict_rows(alone, measured_alone))
            for (weight, alone), (_, measured_alone) in pairs
        )
        return Predictions(*weighted_sum(predictions))

    @cached_property
    def training(self):
        """Predictions of the rows, with and without themselves."""
        return self.of_rows(self) if self.is_in_memory else _polynomial.predict_by_sums(self)

    # Errors of the rows predicted without themselves, and of predictions elsewhere.
    errors = cached_property(Errors)

    @cached_property
    def less_biased(self):
        """The smoother that the band is around."""
        if len(self.members) == 1:
            degree, share = self._band(self.degree)
            # The line around averages is of windows as they are, like these.
            widening = self.widening and self.degree > 0
            return self.replace(degree=degree, factor=share, widening=widening)
        return self.with_members(self.less_biased_members)

    @property
    def less_biased_members(self):
        """The members of an average that the band is around."""
        numeric, members = self.columns.is_numeric, []
        for degree, bandwidth, weight in self.members:
            degree, share = self._band(degree)
            members.append(Member(degree, np.where(numeric, share, 1.0) * bandwidth, weight))
        return members

    def without(self, feature):
        """Return the smoother without what it adds for a single feature, which is nothing."""
        return self

    def _band(self, degree):
        """Return degree and share of the bandwidth of the curve that a band is around."""
        if degree == 1 and len(self.columns.numeric) > _MANY_FEATURES:
            return _BAND_OF_MANY
        return _BANDS[degree]

    def predict(self, X, values=None):
        """Predict the values, or others in their place."""
        values = self.values if values is None else values

        def evaluate(alone, Q, _):
            return [_polynomial.predict(alone, Q, values)]

        return self._averaged(X, evaluate)[0]

    def average(self, X, values):
        """Average values of the rows, whatever the degree."""
        return self.smooth(0, X, values)[0]

    def smooth(self, degree, X, values):
        """Return the fields of averages at queries (degree 0), or those of a `LocalFit`."""
        scale, is_own = self.scale(X), values is self.values and degree == self.degree
        if is_own and not is_partitioned(X) and self._prepared is not None:
            return smooth_prepared(self._prepared, X, scale)
        return smooth(self.configured(degree), X, self.keys, values, self.key_weights, scale)

    @cached_property
    def _prepared(self):
        """The rows as predictions read them, so that one query does not read all rows again."""
        return prepare(self.configured(self.degree), self.keys, self.values, self.key_weights)

    def configured(self, degree):
        """Return what `smooth` computes: averages or polynomials of a degree."""
        return Smoother(self.kernel, self.divisors, degree, self.empty, self.algorithm)

    def leave_one_out(self, values=None, **changes):
        """Return leave-one-out predictions of values of the rows, by the heaviest member."""
        options = {
            "bandwidth": self.divisors, "degree": self.degree, "algorithm": self.algorithm,
            "sample_weight": self.key_weights, "empty": self.empty, "widen": self.widens,
        }  # fmt: skip
        values = self.table if values is None else values
        return LeaveOneOut(self.keys, values, self.kernel, **options | changes)

    def left_out_of(self, rows, factor=1.0):
        """Predict rows without themselves and the gap, in windows wider by a factor."""

        def left_out(alone):
            scale = factor
            if alone.n_neighbors is not None:
                scale = factor * alone.scale(alone.keys[rows], more=1)
            return alone.leave_one_out(rows=rows, gap=alone.gap).predictions(scale).left_out

        return weighted_sum((w, [left_out(alone)]) for w, alone in self.polynomials)[0]

    def local_rows(self, X, more=0, *, without_each=False):
        """Return the rows of the hat matrix at queries, in windows of `more` neighbours more.

        Predictions without each row only if `without_each`.
        """
        if len(self.members) == 1:
            return _polynomial.hat_rows(self, X, more, without_each=without_each)
        names = ["values", "effects", "left_out"][: 2 + without_each]

        def evaluate(alone, Q, _):
            rows = _polynomial.hat_rows(alone, Q, more, without_each=without_each)
            return [getattr(rows, name) for name in names]

        averages = dict(zip(names, self._averaged(X, evaluate), strict=True))
        return attention.LocalRows(**dict.fromkeys(attention.LocalRows._fields) | averages)

    def weights(self, X):
        """Return the weights (n_queries, n_keys) of the rows in averages."""
        return attention_weights(X, self.keys, self.kernel, **self.options(X))

    def effects(self, X):
        """Return the weights (n_queries, n_keys) of the rows in predictions."""
        if self.local:
            return self.local_rows(X).effects.astype(self.keys.dtype)
        return self.weights(X)

    def left_out(self, X):
        """Return predictions, hat-matrix rows, and predictions without each row.

        Their shapes are (n_queries, n_outputs), (n_queries, n_keys) and
        (n_queries, n_keys, n_outputs).
        """
        hat = self.local_rows(X, without_each=True)
        if self.n_neighbors is None:
            return hat.values, hat.effects, hat.left_out
        # If a neighbour is left out, the next nearest one replaces it.
        wider = self.local_rows(X, more=1, without_each=True).left_out
        distances = cdist(self._in_bandwidths(X), self._in_bandwidths(self.keys))
        is_neighbor = (distances <= self.scale(X)[:, None])[:, :, None]
        return hat.values, hat.effects, np.where(is_neighbor, wider, hat.left_out)

    def gradient(self, X, values):
        """Return derivatives in queries, of the smoother of values of the rows."""

        def slopes(alone, Q, moves):
            gradients = _polynomial.gradient(alone, Q, values)
            return [gradients * (moves if gradients.ndim == 2 else moves[:, None])]

        return self._averaged(X, slopes)[0]

    def scale(self, X, more=0):
        """Return the factor (n_queries,) of the bandwidth at queries; None for 1.

        For an adaptive bandwidth it is the distance to a neighbour, or to one `more` further.
        """
        if self.n_neighbors is None:
            if self.remoteness is None or self.radial_form is None:
                return None
            return 1 + self.remoteness.excess(self.places(X)) / self.factor
        need_all_rows(
            f"bandwidths that differ from place to place (n_neighbors={self.n_neighbors!r})", X,
            remedy="let X.map_blocks or X.map_partitions predict",
        )  # fmt: skip
        queries, keys = (
            self._in_bandwidths(table) for table in (X, self.keys[self.counts > 0])
        )
        n_neighbors = min(self.n_neighbors + more, len(keys))
        return neighbor_distances(queries, keys, n_neighbors)[:, -1]

    def places(self, X):
        """Return rows in bandwidths, with the columns along which the kernel falls."""
        form = self.radial_form
        kernel = self.kernel if form is None else form.kernel
        columns = self.columns.numeric if form is None else form.columns
        columns = columns if kernel.decreasing else []
        return np.asarray(X[:, columns], dtype=np.float64) / self.bandwidth[columns]

    def need_positive_weights(self, what):
        """Raise ValueError if the kernel takes negative values."""
        refuse_negative(self.kernel, self.kernel.signed, what)

    def options(self, X, more=0):
        """Return the keyword arguments of functions of `attention` for queries."""
        return {
            "bandwidth": self.divisors,
            "query_scale": self.scale(X, more),
            "sample_weight": self.key_weights,
            "empty": self.empty,
        }

    @property
    def radial_form(self):
        """The kernel as a function of the distance; None for other kernels."""
        return self.kernel.radial_form(self.keys.shape[1])

    def _in_bandwidths(self, X):
        """Return numbers in bandwidths, in which distances to neighbours are measured."""
        columns = self.columns.numeric
        return X[:, columns] / self.bandwidth[columns]


def stored_smoother(shares=None, degree=None, bandwidth=None, **fields):
    """Return the smoother of a file; version 0.2.0 stored the heaviest member, and shares."""
    fields.setdefault("member_fields", shares or ((degree, bandwidth, 1.0),))
    return FittedSmoother(**fields)


def weighted_sum(weighted_fields):
    """Sum lists of arrays, each of which has a weight."""
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
    """Multiply weights of rows by their robustness; both may be None for 1."""
    if weights is None or robustness is None:
        return robustness if weights is None else weights
    return weights * robustness


def counts_of(keys, key_weights):
    """Return weights of rows, 1 if none were given."""
    if key_weights is not None:
        return key_weights
    if is_partitioned(keys):
        return np.ones_like(keys[:, 0], dtype=np.float64)
    return np.broadcast_to(1.0, len(keys))  # takes no memory
