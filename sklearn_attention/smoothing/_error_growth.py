r"""Growth of errors at queries over the noise, where rows are few and where none is near.

.. math:: \sqrt{u^2 + v}\, \sqrt{1 + t^2 \bigl[(1 - a)\, \beta_0 + a\, \beta_1\bigr]}

The first factor is the noise of a target, with :math:`u = 1` but for weights, and of the fit,
:math:`v`. The second is the error of the model off the rows: :math:`t` is how much further the
nearest row is than is usual among rows, and :math:`a`, from 0 to 1, whether rows are on one
side only. The rates :math:`\beta` are those at which errors grow in regions that are left out.
"""

import dataclasses
from typing import Any

import numpy as np
from scipy.linalg import matmul_toeplitz
from scipy.signal import lfilter
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from .._blocks import blocks_of_queries
from .._spread import own_order
from ._inference import weighted_quantiles
from ._local_errors import above_rounding, left_out_average

# Regions are taken from so many rows, and so many rows of each are predicted.
_MOST_ROWS, _ROWS_OF_A_REGION = 2000, 40
# Shares of the rows in regions, where the middles of round ones are along a direction, and how
# many rows have to be left.
_SHARES, _MIDDLES, _FEWEST_LEFT = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5), (0.15, 0.4, 0.6, 0.85), 8
# Share of the errors in regions that are at most as large as by the rates.
_SHARE = 0.9
# Pairs by which variances of rows' predictions are known.
_MOST_PAIRS = 2 * 10**7
# A row with nearly all the weight of its own prediction cannot be predicted without itself.
_SMALLEST_REST = 1e-7
# Rows after which the effect of a shock on an autoregression is 0.
_MEMORY = 1000
# Distances from the nearest row are usual up to so many times their median, for one feature: of
# rows spread evenly 19 in 20 are no larger.
_USUAL = 4.0
# So many rows stand for all where the question is on which side they are.
_MOST_DIRECTIONS = 500


class ErrorGrowth:
    """Growth of a smoother's errors; `at_rows` (n, outputs) has that of rows left out."""

    def __init__(self, smoother):
        self._smoother, self._noise = smoother, smoother.noise
        kept = np.flatnonzero(smoother.counts)
        self._remoteness = smoother.remoteness_of_rows
        self._rates = _rates(smoother, kept, self._remoteness.usual)
        growth = np.sqrt(smoother.variances_left_out * self._of_model(*self._remoteness.of()))
        self.at_rows = np.ones((len(smoother.keys), growth.shape[1]))
        self.at_rows[kept] = growth

    def at(self, X, effects):
        """Growth at queries at which rows have these effects, (n, outputs)."""
        noise, fit, model = self.parts(X, effects)
        return np.sqrt((noise + fit) * model)

    def parts(self, X, effects):
        """Variances of a target's noise and of the fit; by what the model multiplies both."""
        noise = variance_around(self._smoother, X, self._noise.variances)
        model = self._of_model(*self._remoteness.of(self._smoother.places(X)))
        return noise, self._noise.of_sums(effects), model

    def _of_model(self, beyond, one_sided):
        rates = np.stack([1 - one_sided, one_sided], axis=1) @ self._rates
        return 1 + beyond[:, None] ** 2 * rates


def variances_left_out(smoother):
    """Variances of errors of rows of positive weight that are left out."""
    noise, keys, rows = smoother.noise, smoother.keys, np.flatnonzero(smoother.counts)
    # Of most of very many rows the variance of the fit is the median.
    some = np.linspace(0, len(rows) - 1, min(len(rows), max(100, _MOST_PAIRS // len(rows))))
    some = np.unique(some.astype(int))
    more, found = 0 if smoother.n_neighbors is None else 1, []
    for part in blocks_of_queries(len(some), len(keys)):
        places = rows[some[part]]
        effects = smoother.local_rows(keys[places], more).effects
        own = effects[np.arange(len(places)), places]
        effects[np.arange(len(places)), places] = 0.0
        some_left = (1 - own > _SMALLEST_REST)[:, None]
        rest = np.where(some_left, 1 - own[:, None], 1.0)
        # Else a single other row predicts.
        found.append(np.where(some_left, noise.of_sums(effects) / rest**2, 1.0))
    found = np.concatenate(found)
    of_fits = np.tile(np.median(found, axis=0), (len(rows), 1))
    of_fits[some] = found
    # Of targets it is as rows around them have it.
    return left_out_average(smoother, noise.variances[:, None])[rows] + of_fits


def _rates(smoother, rows, usual):
    """Rates of growth where rows are on all sides and on one side, (2, outputs)."""
    if len(rows) > _MOST_ROWS:
        # Errors that ordered rows have in common with their neighbours stay.
        some = np.linspace(0, len(rows) - 1, _MOST_ROWS).astype(int)
        rows = rows[-_MOST_ROWS:] if smoother.gap else rows[some]
    if len(rows) < len(smoother.keys):
        smoother = smoother.take(rows)
    if smoother.empty == "nan":  # every row of a region is predicted, in windows as they are
        smoother = smoother.replace(empty="nearest", widening=False)
    found = [
        _in_region(smoother, region, usual)
        for region in regions(smoother.places(smoother.keys), smoother.table)
    ]
    if not any((beyond > 0).any() for beyond, *_ in found):
        return np.zeros((2, smoother.table.shape[1]))
    beyond, sided, squares = (np.concatenate(field) for field in zip(*found, strict=True))
    far = beyond > 0
    beyond, sided, squares = beyond[far], sided[far], squares[far]
    # Beside rows that are as far away as numbers go, growth may be beyond all numbers.
    with np.errstate(over="ignore"):
        growth = (squares - 1) / beyond[:, None] ** 2
    rates = [
        [weighted_quantiles(own, weights[None], [_SHARE])[0, 0] for own in growth.T]
        for weights in (1 - sided, sided)
    ]
    # Nothing was tried further away than this.
    return np.maximum(rates, [[0.0], [1 / beyond.max() ** 2]])


def _in_region(smoother, region, usual):
    """Remoteness of rows of a region left out, and squared errors relative to usual ones."""
    noise, places = smoother.noise, smoother.places(smoother.keys)
    errors, spreads = smoother.errors_and_spreads
    some = np.linspace(0, len(region) - 1, min(len(region), _ROWS_OF_A_REGION)).astype(int)
    rows, left = region[some], np.ones(len(places), dtype=bool)
    left[region] = False
    part, X = smoother.take(left), smoother.keys[rows]
    local = part.local_rows(X)
    variances = variance_around(part, X, noise.variances[left])
    variances = variances + noise.of_sums(local.effects, left)
    sizes = errors / spreads
    size = np.quantile(sizes, _SHARE, axis=0)
    # Where most errors are 0 their mean is usual; where all are, none is known to grow.
    size = np.where(size > 0, size, sizes.mean(axis=0))
    largest = np.where(size > 0, size, np.inf) * spreads[rows]
    squares = (smoother.table[rows] - local.values) ** 2 / variances / largest**2
    distances = KDTree(places[left]).query(places[rows])[0]
    return np.maximum(distances - usual, 0.0), one_sided(places[rows], places[left]), squares


def errors_and_spreads(smoother):
    """Sizes of the rows' errors in units of their growth, and how large they are around."""
    errors = np.abs(smoother.errors) / np.sqrt(smoother.variances_left_out)
    around = smoother.for_spreads.average(smoother.keys, errors**2)
    return errors, above_rounding(np.sqrt(around), errors)


def regions(places, values):
    """Rows of regions at the ends of some directions, and of round ones, by their distance."""
    n, n_features = places.shape
    places = places[:, own_order(places, values)] if n_features else places
    directions = np.random.default_rng(0).normal(size=(len(_SHARES), n_features))
    for share, direction in zip(_SHARES, directions, strict=True):
        size = round(share * n)
        if not n_features or not size or n - size < _FEWEST_LEFT:
            continue
        along = places @ direction
        order = np.argsort(along, kind="stable")
        middles = places[order[[int(middle * n) for middle in _MIDDLES]]]
        round_ones = [np.linalg.norm(places - middle, axis=1) for middle in middles]
        for distance in (along, -along, *round_ones):
            yield np.argsort(distance, kind="stable")[:size]


class Remoteness:
    """Distances of places from rows beyond what is usual, and how one-sided the rows are."""

    def __init__(self, places):
        self._places, self._tree, self.usual = places, None, 0.0
        self._some = places[:: -(-len(places) // _MOST_DIRECTIONS)]
        if places.shape[1] and len(places) > 1:
            self._tree = KDTree(places)
            distances = self._tree.query(places, k=[2])[0]
            self.usual = np.median(distances) * _USUAL ** (1 / places.shape[1])

    def beyond(self, places, neighbor=1):
        """Distances to the nearest row, or the next, beyond the usual, (n,)."""
        if self._tree is None:
            return np.zeros(len(places))
        distances = self._tree.query(places, k=[neighbor])[0][:, 0]
        return np.maximum(distances - self.usual, 0.0)

    def of(self, places=None):
        """Distances beyond the usual (n,), and from 0 to 1 how much rows are on one side.

        Of places, or of the rows, each from the others.
        """
        places, neighbor = (self._places, 2) if places is None else (places, 1)
        if self._tree is None:
            return np.zeros(len(places)), np.zeros(len(places))
        sides = [
            one_sided(places[part], self._some)
            for part in blocks_of_queries(len(places), len(self._some))
        ]
        return self.beyond(places, neighbor), np.concatenate(sides)


def one_sided(places, rows):
    r"""Length of the mean direction to rows, with weights :math:`d^{-p - 1}` of p features."""
    distances = cdist(places, rows)
    distances = np.where(distances > 0, distances, np.inf)
    nearest = distances.min(axis=1, keepdims=True)
    nearest = np.where(np.isfinite(nearest), nearest, 1.0)
    weights = (nearest / distances) ** (places.shape[1] + 1)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    weights /= distances
    mean = weights @ rows - weights.sum(axis=1, keepdims=True) * places
    return np.minimum(np.linalg.norm(mean, axis=1), 1.0)


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
