r"""Growth of errors at queries over the noise, where rows are few and where none is near.

.. math:: \sqrt{u^2 + v}\, \sqrt{1 + t^2 \bigl[(1 - a)\, \beta_0 + a\, \beta_1\bigr]}

The first factor is the noise of a target, with :math:`u = 1` but for weights, and of the fit,
:math:`v`. The second is the error of the model off the rows: :math:`t` is how much further the
nearest row is than is usual among rows, and :math:`a`, from 0 to 1, whether rows are on one
side only. The rates :math:`\beta` are those at which errors grow in regions that are left out.
"""

import numpy as np
from scipy.spatial import KDTree

from .._blocks import blocks_of_queries
from .._spread import own_order
from ._inference import weighted_quantiles
from ._local_errors import above_rounding, left_out_average
from ._noise import variance_around
from ._remoteness import one_sided

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
        effects = smoother.local_rows(keys[places], more).smoother
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
    variances = variances + noise.of_sums(local.smoother, left)
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
