r"""Growth of errors at queries over the noise, where rows are few and where none is near.

.. math:: \sqrt{u^2 + v}\, \sqrt{1 + b^2},\quad
          b^2 = e(r / r_0)^2 \Bigl(\sum_i |l_i|\Bigr)^2
                + s^2\, \Bigl\|\sum_i l_i (x_i - x)\Bigr\|^2

The first factor is the noise of a target, with :math:`u = 1` but for weights, and of the fit,
:math:`v`. The second is the error of the model in units of the noise. The rows that a
prediction rests on, with effects :math:`l_i`, are at a distance of
:math:`r^2 = \sum |l_i| \|x_i - x\|^2 / \sum |l_i|`, about :math:`r_0` at most rows. Where it is
larger, errors are those of windows that are wider by as much: :math:`e^2` is the growth of
squared leave-one-out errors in these. Averages of rows on one side are wrong by a slope,
:math:`s`, besides.
"""

import dataclasses
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import matmul_toeplitz
from scipy.signal import lfilter
from scipy.spatial import KDTree

from .._blocks import blocks_of_queries, evenly_spread
from .._spread import own_order
from ..kernels._numerics import LARGEST
from ._local_errors import WIDENINGS, above_rounding, left_out_average

# Errors in wider windows are of so many rows.
_MOST_ROWS = 1000
# Half of the growth is the mean over rows, half that of the part where it is largest: rows are
# halved so often, along the longest axis.
_HALVED = 2
# Pairs by which variances of rows' predictions are known.
_MOST_PAIRS = 2 * 10**7
# A row with nearly all the weight of its own prediction cannot be predicted without itself.
_SMALLEST_REST = 1e-7
# Rows after which the effect of a shock on an autoregression is 0.
_MEMORY = 1000
# Distances from the nearest row are usual up to so many times their median, for one feature: of
# rows spread evenly 19 in 20 are no larger.
_USUAL = 4.0


class ErrorGrowth:
    """Growth of a smoother's errors; `at_rows` (n, outputs) has that of rows left out."""

    def __init__(self, smoother):
        self._smoother, self._bias = smoother, _Bias(smoother)
        variances, reach = smoother.variances_left_out
        growth = np.sqrt(variances * (1 + self._bias.squares(reach)))
        self.at_rows = np.ones((len(smoother.keys), growth.shape[1]))
        self.at_rows[smoother.counts > 0] = growth

    @cached_property
    def _of_line(self):
        """Of how far the line goes on beyond the rows."""
        return _Bias(self._smoother.line)

    def at(self, X, effects):
        """Growth at queries at which rows have these effects, (n, outputs)."""
        noise, fit, model = self.parts(X, effects)
        return np.sqrt((noise + fit) * model)

    def parts(self, X, effects):
        """Variances of a target's noise and of the fit; by what the model multiplies both."""
        smoother = self._smoother
        noise = variance_around(smoother, X, smoother.noise.variances)
        bias = self._biases(X, effects)
        return noise, smoother.noise.of_sums(effects), 1 + bias**2

    def _biases(self, X, effects):
        """Sizes of the model's errors in units of the noise, (n, outputs)."""
        smoother = self._smoother
        edge, beyond = smoother.at_edge(X) if smoother.members else (X, [])
        if not len(beyond):
            return self._bias.sizes(X, effects)
        # That of the average at the edge, and by what that of the line grows from there.
        line, ends = smoother.line, (X[beyond], edge[beyond])
        there, here = (line.local_rows(part).effects for part in ends)
        effects = effects.copy()
        effects[beyond] -= there - here
        found = self._bias.sizes(edge, effects)
        of_line = self._of_line
        grown = of_line.sizes(X[beyond], there) - of_line.sizes(edge[beyond], here)
        found[beyond] += grown.clip(0)
        return found


class Reach(NamedTuple):
    """How far the rows are that predictions rest on, each (n,)."""

    distance: Any
    total: Any  # of the absolute effects
    moment: Any  # distance of the rows' mean, weighted by effects


class _Bias:
    """Squared errors of a smoother's model in units of the noise."""

    def __init__(self, smoother):
        self._smoother, self._places = smoother, smoother.places(smoother.keys)
        _, reach = smoother.variances_left_out
        self._usual = np.median(reach.distance)
        places = self._places[smoother.counts > 0]
        self._variance = ((places - places.mean(axis=0)) ** 2).sum(axis=1).mean()
        self._factors, self._growth = self._in_wider_windows(places)

    def sizes(self, X, effects):
        """Sizes of errors (n, outputs) at queries at which rows have these effects."""
        reach = reach_of(self._smoother.places(X), self._places, effects)
        return np.sqrt(self.squares(reach))

    def squares(self, reach):
        """Squared errors (n, outputs) of predictions that reach so far."""
        if not (self._usual > 0 and self._variance > 0):
            return np.zeros((len(reach.distance), self._growth.shape[1]))
        wider = np.log2(np.maximum(reach.distance / self._usual, 1.0))
        grown = [np.interp(wider, self._factors, own) for own in self._growth.T]
        # As if errors grew by sqrt(2) over half of the rows' extent, at least.
        least = (reach.distance - self._usual).clip(0) ** 2 / (3 * self._variance)
        found = np.maximum(grown, least).T * reach.total[:, None] ** 2
        # What is explained at all is a slope over the rows' extent.
        slope = self._growth[-1] / self._variance
        return found + slope * reach.moment[:, None] ** 2

    def _in_wider_windows(self, places):
        """Logarithms of factors on the bandwidth, and by what squared errors grow, relative."""
        smoother, kept = self._smoother, np.flatnonzero(self._smoother.counts)
        some = evenly_spread(np.arange(len(kept)), _MOST_ROWS)
        rows, places = kept[some], places[some]
        table, weights = smoother.table[rows], np.ones(len(rows))
        if smoother.robustness is not None and smoother.robustness[rows].any():
            weights = smoother.robustness[rows]
        unit = smoother.noise.variances[rows][:, None]
        own = np.nan_to_num(smoother.errors[rows] ** 2 / unit)
        base, parts = np.average(own, axis=0, weights=weights), _parts_of(places, table)
        parts = [part for part in parts if weights[part].any()]
        factors, found = [0.0], [0 * base]
        furthest = 2 * np.linalg.norm(np.ptp(places, axis=0))
        for factor in WIDENINGS[1:][WIDENINGS[1:] * self._usual < furthest]:
            errors = smoother.left_out_of(rows, factor) - table
            rise = np.nan_to_num(errors**2 / unit - own)
            means = [np.average(rise[p], axis=0, weights=weights[p]) for p in parts]
            mean = np.average(rise, axis=0, weights=weights)
            growth = (mean + np.max(means, axis=0)) / 2
            growth = np.divide(growth, base, where=base > 0, out=0 * base)
            factors.append(np.log2(factor))
            found.append(np.maximum(growth, found[-1]))
        return np.array(factors), np.array(found)


def reach_of(queries, places, effects):
    """How far the rows at some places are from queries at which they have effects."""
    sizes, center = np.abs(effects), places.mean(axis=0)
    total = sizes.sum(axis=1)
    # From their middle, so that squares neither cancel nor overflow.
    places, queries = places - center, (queries - center).clip(-LARGEST, LARGEST)
    squared = sizes @ (places**2).sum(axis=1) + total * (queries**2).sum(axis=1)
    squared -= 2 * ((sizes @ places) * queries).sum(axis=1)
    moment = effects @ places - effects.sum(axis=1)[:, None] * queries
    distance = np.sqrt(squared.clip(0) / np.where(total > 0, total, 1.0))
    return Reach(distance, total, np.linalg.norm(moment, axis=1))


def _parts_of(places, values):
    """Rows in parts next to each other, the same in any order of rows and columns."""
    places = places[:, own_order(places, values)] if places.shape[1] else places
    parts = [np.arange(len(places))]
    for _ in range(_HALVED if places.shape[1] else 0):
        halves = []
        for part in parts:
            along = places[part, np.ptp(places[part], axis=0).argmax()]
            order = np.lexsort([*values[part].T, *places[part].T, along])
            halves += np.array_split(part[order], 2)
        parts = [half for half in halves if len(half)]
    return parts


def variances_left_out(smoother):
    """Variances of errors of rows of positive weight that are left out, and their reach."""
    noise, keys, rows = smoother.noise, smoother.keys, np.flatnonzero(smoother.counts)
    # Of most of very many rows the variance of the fit, and the reach, are the median.
    some = evenly_spread(np.arange(len(rows)), max(100, _MOST_PAIRS // len(rows)))
    more, found, places = 0 if smoother.n_neighbors is None else 1, [], smoother.places(keys)
    for part in blocks_of_queries(len(some), len(keys)):
        own_rows = rows[some[part]]
        effects = smoother.local_rows(keys[own_rows], more).effects
        own = effects[np.arange(len(own_rows)), own_rows]
        effects[np.arange(len(own_rows)), own_rows] = 0.0
        some_left = 1 - own > _SMALLEST_REST
        effects /= np.where(some_left, 1 - own, 1.0)[:, None]
        # Else a single other row predicts.
        variances = np.where(some_left[:, None], noise.of_sums(effects), 1.0)
        reach = reach_of(places[own_rows], places, effects)
        found.append(np.column_stack([*reach, variances]))
    found = np.concatenate(found)
    everywhere = np.tile(np.median(found, axis=0), (len(rows), 1))
    everywhere[some] = found
    # Of targets it is as rows around them have it.
    of_targets = left_out_average(smoother, noise.variances[:, None])[rows]
    return of_targets + everywhere[:, 3:], Reach(*everywhere[:, :3].T)


class Remoteness:
    """Distances of places from rows beyond what is usual."""

    def __init__(self, places):
        self._tree, self.usual = None, 0.0
        if places.shape[1] and len(places) > 1:
            self._tree = KDTree(places)
            distances = self._tree.query(places, k=[2])[0]
            self.usual = np.median(distances) * _USUAL ** (1 / places.shape[1])

    def beyond(self, places):
        """Distances to the nearest row beyond the usual, (n,)."""
        if self._tree is None:
            return np.zeros(len(places))
        return np.maximum(self._tree.query(places)[0] - self.usual, 0.0)


@dataclasses.dataclass(frozen=True)
class Noise:
    """Noise of rows, in units of the noise of a row of mean weight."""

    variances: Any  # (n,), one over relative weights; 1 for rows without weight
    autoregressions: tuple = (None,)  # coefficients for each output; None for independent rows

    def of_sums(self, effects, rows=slice(None)):
        """Variance of sums with effects (m, n) of all or some rows, (m, outputs)."""
        if self.autoregressions[0] is None:
            return (effects**2 @ self.variances[rows])[:, None]
        whole = np.zeros((len(effects), len(self.variances)))
        whole[:, rows] = effects
        whole *= np.sqrt(self.variances)
        found = []
        for coefficients in self.autoregressions:
            correlations = autocorrelation(coefficients, whole.shape[1])
            found.append(np.sum(whole * matmul_toeplitz(correlations, whole.T).T, axis=1))
        return np.maximum(np.stack(found, axis=1), 0.0)

    def draws(self, n_draws, random_state):
        """Normal noise of all rows, drawn so many times, (outputs, n, n_draws)."""
        n, found = len(self.variances), []
        for coefficients in self.autoregressions:
            if coefficients is None:
                drawn = random_state.standard_normal((n, n_draws))
            else:
                shocks = random_state.standard_normal((_MEMORY + n, n_draws))
                drawn = lfilter([1.0], np.append(1.0, -coefficients), shocks, axis=0)[_MEMORY:]
                drawn /= np.linalg.norm(_response(coefficients))
            found.append(drawn * np.sqrt(self.variances)[:, None])
        return np.stack(found)


def noise_of(smoother):
    """Noise of the rows; autocorrelated if the smoother has a gap, from errors across it."""
    counts = smoother.given_counts
    present = counts > 0
    variances = np.where(present, counts[present].mean() / np.where(present, counts, 1), 1)
    if not smoother.gap:
        return Noise(variances)
    errors = np.where(present, smoother.errors.T / np.sqrt(variances), 0).T
    spreads = smoother.for_spreads.average(smoother.keys, errors**2)
    series = errors / above_rounding(np.sqrt(spreads), errors)
    return Noise(variances, tuple(autoregression(own, smoother.gap) for own in series.T))


def variance_around(smoother, X, variances):
    """Variance of the noise of new targets, as rows around them have, (n, 1)."""
    if smoother.weights_as_given is None:
        return np.ones((len(X), 1))
    return smoother.replace(empty="nearest").average(X, variances[:, None])


def autoregression(series, most):
    """Coefficients of the autoregression of least AICc, with up to so many lags."""
    n = len(series)
    covariances = np.array([series[: n - k] @ series[k:] for k in range(most + 1)]) / n
    coefficients, variance = np.zeros(0), covariances[0]
    best, lowest = coefficients, np.inf
    if not variance:
        return best
    for order in range(min(most, n - 3) + 1):
        if order:  # one step of Levinson's recursion
            last = covariances[order] - coefficients @ covariances[order - 1 : 0 : -1]
            last /= variance
            coefficients = np.append(coefficients - last * coefficients[::-1], last)
            variance *= 1 - last**2
        criterion = n * np.log(variance) + 2 * (order + 1) * n / (n - order - 2)
        if criterion < lowest:
            best, lowest = coefficients, criterion
    return best


def autocorrelation(coefficients, n):
    """Autocorrelations at lags 0 to n - 1 of an autoregression."""
    response = _response(coefficients)
    found = np.correlate(response, response, "full")[_MEMORY - 1 :][:n]
    return np.pad(found / found[0], (0, n - len(found)))


def _response(coefficients):
    """Effects of a shock on the rows after it, (_MEMORY,)."""
    return lfilter([1.0], np.append(1.0, -coefficients), np.eye(1, _MEMORY)[0])
