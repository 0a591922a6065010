"""Averages of local polynomials of several degrees: which, and with which weights."""

import dataclasses
from functools import cached_property

import numpy as np

from .. import attention
from .._blocks import evenly_spread
from .._partitions import is_partitioned
from ..attention._leave_one_out import Predictions
from ..attention._solve import Basis
from ..bandwidth._criteria import corrected_akaike, without_rounding
from ..bandwidth._search import MAX_PAIRS, MAX_SEARCH_ROWS, Units, draw, narrower
from ._fitted_smoother import FittedSmoother, Member

# The highest degree in one feature, and in up to so many; of lines in more. Cubics of two
# features and parabolas of many have more coefficients than windows have rows.
_HIGHEST, _HIGHEST_OF_SEVERAL, _SEVERAL = 3, 2, 4
# The best bandwidths of averages are at least 0.7 times that of lines, and those of parabolas
# and cubics at least 1.2 times, on curves of four kinds with 60 to 8000 rows and in two and
# three features. They may be wide where lines are not: a cubic may describe all rows.
MIN_RATIO_TO_LINES = 0.6
# Precision, as a logarithm, of the bandwidths of smoothers that are averaged. With 5e-4 for
# lines errors of 82 data sets are 0.9999 times as large, in 1.3 times the seconds; with 0.005
# for the other degrees errors of 352 data sets are the same.
AVERAGED_PRECISION = 0.05
# A degree of less weight is left out.
_LEAST_WEIGHT = 1e-3


@dataclasses.dataclass(frozen=True)
class AverageOfDegrees(FittedSmoother):
    """The average of some local polynomials in the same rows."""

    # Degree, bandwidth and weight of each. Those of the smoother itself are the heaviest's.
    shares: tuple = ()

    @property
    def members(self):
        """The polynomials that are averaged."""
        return [Member(*own) for own in self.shares]

    @property
    def local(self):
        """True: one of them is no average."""
        return True

    @cached_property
    def polynomials(self):
        """Weights of the members, and the smoother of each."""
        return [(own.weight, _alone(self, own)) for own in self.members]

    @property
    def line(self):
        """The member that goes on beyond the rows."""
        local = [own for _, own in self.polynomials if own.degree]
        return min(local, key=lambda own: own.degree)

    def at_edge(self, X):
        """The places among the rows next to queries, and which of these are elsewhere.

        None for the latter if queries are in partitions.
        """
        edge = X.clip(*self.ends).astype(X.dtype)
        beyond = None if is_partitioned(X) else np.flatnonzero((edge != X).any(axis=1))
        return edge, beyond

    def averaged(self, X, evaluate):
        """Averages of what members have at queries, a list of arrays (n, ...).

        Beyond the rows they are those at their edge, and from there what a line adds.
        In `evaluate(member, queries, moves)`, `moves` marks the coordinates that were not moved
        to the edge.
        """
        (edge, beyond), everywhere = self.at_edge(X), X == X
        moves = edge == X
        found = _weighted_sum(
            (weight, evaluate(member, edge, moves))
            for weight, member in self.polynomials
            if weight
        )
        if beyond is None:
            there, here = evaluate(self.line, X, everywhere), evaluate(self.line, edge, moves)
            return [x + a - b for x, a, b in zip(found, there, here, strict=True)]
        if len(beyond):
            there, here = (
                evaluate(self.line, Q[beyond], own[beyond])
                for Q, own in ((X, everywhere), (edge, moves))
            )
            for x, a, b in zip(found, there, here, strict=True):
                x[beyond] += a - b
        return found

    def predict(self, X, values=None):
        """Predictions, of the values or of others in their place."""
        values = self.values if values is None else values
        return self.averaged(X, lambda member, Q, _: [member.predict(Q, values)])[0]

    def of_rows(self, measured):
        """Predictions of the rows, in windows that another smoother measures."""
        pairs = zip(self.polynomials, measured.polynomials, strict=True)
        return Predictions(*_weighted_sum((w, own.of_rows(m)) for (w, own), (_, m) in pairs))

    def left_out_of(self, rows, factor=1.0):
        """Rows predicted without themselves and the gap, in windows wider by a factor."""
        parts = ((w, [own.left_out_of(rows, factor)]) for w, own in self.polynomials)
        return _weighted_sum(parts)[0]

    def local_rows(self, X, more=0, *, without_each=False):
        """Effect of each row on each prediction; predictions without each if `without_each`."""
        kept = ["values", "effects", "left_out"][: 2 + without_each]

        def evaluate(member, Q, _):
            local = member.local_rows(Q, more, without_each=without_each)
            return [getattr(local, name) for name in kept]

        found = dict(zip(kept, self.averaged(X, evaluate), strict=True))
        return attention.LocalRows(**dict.fromkeys(attention.LocalRows._fields) | found)

    def gradient(self, X, values):
        """Derivatives in queries, of the smoother of values of the rows."""

        def slopes(member, Q, moves):
            found = member.gradient(Q, values)
            return [found * (moves if found.ndim == 2 else moves[:, None])]

        return self.averaged(X, slopes)[0]

    def rescaled(self, change):
        """The smoother whose bandwidths are changed by a function."""
        changed = (own._replace(bandwidth=change(own.bandwidth)) for own in self.members)
        return average_of(self, changed)

    @property
    def less_biased(self):
        """The smoother that the band is around."""
        numeric = self.columns.is_numeric
        members = []
        for own, bandwidth, weight in self.members:
            degree, share = self._band(own)
            members.append(Member(degree, np.where(numeric, share, 1.0) * bandwidth, weight))
        return average_of(self, members)


def average_of(smoother, members):
    """The average of some polynomials in the rows of a smoother; of one, itself."""
    members = list(members)
    heaviest = _alone(smoother, max(members, key=lambda own: own.weight))
    if len(members) == 1:
        return heaviest
    shares = tuple(map(tuple, members))
    return AverageOfDegrees(**_fields_of(heaviest), shares=shares)


def _alone(smoother, member):
    """A polynomial in the rows of a smoother."""
    plain = FittedSmoother(**_fields_of(smoother))
    return plain.at(member.bandwidth, degree=member.degree)


def _fields_of(smoother):
    return {own.name: getattr(smoother, own.name) for own in dataclasses.fields(FittedSmoother)}


def _weighted_sum(parts):
    """Sum of fields, each of which has a weight."""
    found = None
    for weight, fields in parts:
        own = [weight * field for field in fields]
        found = own if found is None else [x + y for x, y in zip(found, own, strict=True)]
    return found


def degrees_to_average(rows, n_rows, rule, kernel):
    """The degrees that "auto" stands for, of so many rows of positive weight; 1 first."""
    n_features = len(rows.columns.numeric)
    if not n_features or kernel.signed:
        return [0]
    highest = _HIGHEST if n_features == 1 else _HIGHEST_OF_SEVERAL
    highest = 1 if n_features > _SEVERAL else highest
    # Of more coefficients there is no criterion.
    few = [k for k in range(highest + 1) if Basis(k, n_features).size + 2 < n_rows]
    return [1, *(k for k in few if k != 1)] if rule.serves_each_degree and 1 in few else [1]


def averaged(smoothers, rows):
    """Which of some smoothers of the same rows weighs most, and the average of all."""
    if len(smoothers) == 1:
        return 0, smoothers[0]
    criteria, n = _corrected_akaike(smoothers, rows)
    if np.isfinite(criteria).any():
        weights = np.exp(-n * (criteria - criteria.min()))
        weights /= weights.sum()
    else:
        weights = np.array([float(smoother.degree == 1) for smoother in smoothers])
    weights = np.where(weights > _LEAST_WEIGHT, weights, 0.0)
    weights /= weights.sum()
    best = int(weights.argmax())
    members = [
        Member(smoother.degree, smoother.bandwidth, float(weight))
        for smoother, weight in zip(smoothers, weights, strict=True)
        if weight or smoother.degree == 1  # which is all there is beyond the rows
    ]
    return best, average_of(smoothers[best], sorted(members, key=lambda own: own.degree))


def _corrected_akaike(smoothers, rows):
    """The criterion of smoothers, and of how many rows."""
    first, factor = smoothers[0], 1.0
    tables = rows.X, rows.values, rows.sample_weight
    if not first.whole:  # a sample, at bandwidths as wide as it needs
        random_state = np.random.RandomState(rows.random_state)
        n_all, tables = len(first.keys), draw(MAX_SEARCH_ROWS, random_state, *tables)
        factor = 1 / narrower(n_all / len(tables[0]), len(rows.columns.numeric))
    keys, table, weights = tables
    units = Units.of(table, weights, of_each=rows.standardize)
    table, criteria = units.reduce(table), []
    kept = np.arange(len(keys)) if weights is None else np.flatnonzero(weights)
    smoothers = [
        smoother.replace(keys=keys, values=table, key_weights=weights, factor=factor)
        for smoother in smoothers
    ]
    some = kept
    if any(smoother.fastest != "linear" for smoother in smoothers):
        most = max(MAX_SEARCH_ROWS, MAX_PAIRS // len(keys))
        some = evenly_spread(kept, most)
    for smoother in smoothers:
        scores = smoother.leave_one_out(rows=some).scores([1.0])
        scores = without_rounding(scores, units.size)
        scores = scores._replace(trace=scores.trace * len(kept) / len(some))
        criteria.append(corrected_akaike(scores, len(kept))[0])
    return np.array(criteria), len(some)
