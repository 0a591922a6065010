r"""Errors of predictions: of rows left out, and how large they are at queries.

They grow over the noise where rows are few and where none is near:

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

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree

from .._blocks import blocks_of_queries, evenly_spread
from .._column_stats import order_columns
from .._new_levels import LevelEffects, with_new_levels
from .._partitions import need_all_rows
from ..bandwidth import select_bandwidth
from ..kernels._numerics import LARGEST
from ._noise import Noise, autoregression

# Spreads and distributions are of so many errors that a row's own error, which has left its
# mark on its neighbours' errors, hardly matters: the bandwidth is widened until the rows' own
# shares are one in so many.
_ROWS_OF_SPREADS, _ROWS_OF_QUANTILES = 20, 40
_WIDENINGS = 2.0 ** np.arange(0, 10, 0.5)
# Then lambdas of categories move by these shares to where rows of all levels count alike.
_TO_ALL_LEVELS = 1 - 2.0 ** -np.arange(1, 12)
# The factor is found on a sample of so many rows.
_SAMPLED_ROWS = 2000
# A spread below this share of the mean spread is rounding.
_SMALLEST_SPREAD = 1e-3
# Errors in wider windows are of so many rows.
_MOST_ROWS = 1000
# Half of the growth is the mean over rows, half that of the part where it is largest: rows are
# halved so often, along the longest axis.
_HALVED = 2
# Pairs by which variances of rows' predictions are known.
_MOST_PAIRS = 2 * 10**7
# A row with nearly all the weight of its own prediction cannot be predicted without itself.
_SMALLEST_REST = 1e-7
# Distances from the nearest row are usual up to so many times their median, for one feature: of
# rows spread evenly 19 in 20 are no larger.
_USUAL = 4.0
# Least mean slope of the loss in `noise_variance`; 0.85 in normal noise.
_LEAST_SLOPE = 0.25
_AVERAGES = {"degree": 0, "empty": "nearest"}


class _SmootherLevelEffects(LevelEffects):
    """Effects of new levels on the predictions of a smoother."""

    def __init__(self, errors):
        self._smoother, self._residuals = errors.smoother, errors.left_out
        present = np.flatnonzero(errors.smoother.counts)
        rows = errors.smoother.keys, present, present
        super().__init__(*rows, errors.smoother.columns, errors.left_out.shape[1])

    def _errors(self, category, rows, groups):
        smoother, predicted = self._smoother, []
        for group, is_left_out in groups:
            queries = with_new_levels(smoother.keys[group], category)
            predicted.append(smoother.take(~is_left_out).predict(queries))
        predicted = np.concatenate(predicted).reshape(len(rows), -1)
        return smoother.table[rows] - predicted, self._residuals[rows]

    def _weights_near(self, category, X, rows):
        return self._smoother.take(rows).replace(empty="nearest").weights(X)


class Errors:
    """Errors of a smoother's predictions; what is known of its rows is computed when asked."""

    def __init__(self, smoother):
        self.smoother = smoother

    # Effects of levels that no row of positive weight has.
    level_effects = cached_property(_SmootherLevelEffects)

    @cached_property
    def left_out(self):
        """Errors of rows predicted without themselves and the gap, (n, outputs)."""
        smoother = self.smoother
        need_all_rows("intervals, bands, quantiles and tests", smoother.keys)
        left_out = smoother.training.left_out
        if smoother.gap:
            rows, left_out = np.flatnonzero(smoother.counts), left_out.copy()
            left_out[rows] = smoother.left_out_of(rows)
        return smoother.table - left_out

    def need_all(self, what):
        """Raise ValueError if a row has no prediction without itself, and thus no error."""
        n_unknown = int(np.isnan(self.left_out).any(axis=1).sum())
        if n_unknown:
            raise ValueError(
                f"{what} needs every leave-one-out error, but {n_unknown} of "
                f"{len(self.left_out)} training rows cannot be predicted from the other rows: "
                "fit with more rows, a larger bandwidth or empty='nearest' (got "
                f"{self.smoother.empty!r})."
            )

    @cached_property
    def noise(self):
        """Noise of the rows; autocorrelated if the smoother has a gap."""
        counts = self.smoother.given_counts
        present = counts > 0
        variances = np.where(present, counts[present].mean() / np.where(present, counts, 1), 1)
        if not self.smoother.gap:
            return Noise(variances)
        errors = np.where(present, self.left_out.T / np.sqrt(variances), 0).T
        spreads = self.for_spreads.average(self.smoother.keys, errors**2)
        series = (errors / above_rounding(np.sqrt(spreads), errors)).T
        gap = self.smoother.gap
        return Noise(variances, tuple(autoregression(output, gap) for output in series))

    @cached_property
    def relative(self):
        """The errors divided by their expected size, (n, n_outputs); 0 for rows of weight 0."""
        present, relative = self.smoother.counts > 0, np.zeros_like(self.left_out)
        variances, reach = self.variances_left_out
        growth = np.sqrt(variances * (1 + self.bias.squares(reach)))
        relative[present] = self.left_out[present] / growth
        return relative

    def growth(self, X, effects):
        """Return the expected size of errors at queries, by the effects of rows there."""
        noise, fit, model = self.variance_terms(X, effects)
        return np.sqrt((noise + fit) * model)

    def variance_terms(self, X, effects):
        """Return the noise variance, the variance of the fit, and the bias factor of both."""
        return (
            self.variance_around(X), self.noise.of_sums(effects),
            1 + self._biases(X, effects) ** 2,
        )  # fmt: skip

    def variance_around(self, X):
        """Return the variance of the noise of new targets, that of rows around them, (n, 1)."""
        if self.smoother.weights_as_given is None:
            return np.ones((len(X), 1))
        nearest = self.smoother.replace(empty="nearest")
        return nearest.average(X, self.noise.variances[:, None])

    def _biases(self, X, effects):
        """Return the sizes of the model's errors in units of the noise, (n, n_outputs)."""
        edge, outside = self.smoother.at_edge(X)
        if not len(outside):
            return self.bias.sizes(X, effects)
        # Beyond the rows this is the size at the edge, and by what that of the line grows.
        line = self.smoother.line
        at_query, at_edge = (line.local_rows(Q[outside]).effects for Q in (X, edge))
        effects = effects.copy()
        effects[outside] -= at_query - at_edge
        sizes, of_line = self.bias.sizes(edge, effects), line.errors.bias
        growth = of_line.sizes(X[outside], at_query) - of_line.sizes(edge[outside], at_edge)
        sizes[outside] += growth.clip(0)
        return sizes

    @cached_property
    def bias(self):
        """How the model's errors grow."""
        return _Bias(self)

    @cached_property
    def variances_left_out(self):
        """Variances of errors of rows of positive weight that are left out, and their reach."""
        smoother, noise = self.smoother, self.noise
        keys, rows = smoother.keys, np.flatnonzero(smoother.counts)
        # If there are very many rows, those that are not sampled get the median of the sample.
        sample = evenly_spread(np.arange(len(rows)), max(100, _MOST_PAIRS // len(rows)))
        more, of_blocks = 0 if smoother.n_neighbors is None else 1, []
        places = smoother.places(keys)
        for block in blocks_of_queries(len(sample), len(keys)):
            own_rows = rows[sample[block]]
            effects = smoother.local_rows(keys[own_rows], more).effects
            leverage = effects[np.arange(len(own_rows)), own_rows]
            effects[np.arange(len(own_rows)), own_rows] = 0.0
            is_predicted = 1 - leverage > _SMALLEST_REST
            effects /= np.where(is_predicted, 1 - leverage, 1.0)[:, None]
            # If a row alone determines its prediction, the effects of the others are rounding
            # errors. The nearest row then predicts it.
            for position in np.flatnonzero(~is_predicted) if len(rows) > 1 else ():
                other_rows = rows[rows != own_rows[position]]
                squared = ((places[other_rows] - places[own_rows[position]]) ** 2).sum(axis=1)
                effects[position] = 0.0
                effects[position, other_rows[squared.argmin()]] = 1.0
            variances = np.where(is_predicted[:, None], noise.of_sums(effects), 1.0)
            reach = reach_of(places[own_rows], places, effects)
            of_blocks.append(np.column_stack([*reach, variances]))
        of_sample = np.concatenate(of_blocks)
        everywhere = np.tile(np.median(of_sample, axis=0), (len(rows), 1))
        everywhere[sample] = of_sample
        # The variance of the target is that of rows around it.
        of_targets = _left_out_average(smoother, noise.variances[:, None])[rows]
        return of_targets + everywhere[:, 3:], Reach(*everywhere[:, :3].T)

    @cached_property
    def for_spreads(self):
        """Averages over enough rows for the size of their errors."""
        return self._everywhere(_ROWS_OF_SPREADS)

    @cached_property
    def for_quantiles(self):
        """Averages over enough rows for the distribution of their errors."""
        return self._everywhere(_ROWS_OF_QUANTILES)

    def _everywhere(self, n_rows):
        wide = widened(self.smoother, n_rows)
        return wide.replace(remoteness=self._remoteness)

    @cached_property
    def _remoteness(self):
        return Remoteness.of(self.smoother)

    @cached_property
    def sizes(self):
        """Smoother of the relative errors' sizes, and its leave-one-out predictions."""
        self.need_all("heteroscedastic=True")
        sizes, smoother = np.abs(self.relative), self.smoother.unweighted
        bandwidth, *_ = select_bandwidth(
            smoother.keys, sizes, smoother.kernel, sample_weight=smoother.key_weights,
            random_state=smoother.random_state, empty="nearest", algorithm=smoother.algorithm,
        )  # fmt: skip
        # Categories keep their lambdas, which the kernel has.
        bandwidth = np.where(smoother.columns.is_numeric, bandwidth, smoother.bandwidth)
        around = smoother.replace(values=sizes, bandwidth=bandwidth, n_neighbors=None)
        around = widened(around, _ROWS_OF_SPREADS)
        left_out = above_rounding(_left_out_average(around, sizes), sizes)
        return around.replace(remoteness=Remoteness.of(around)), left_out

    @cached_property
    def of_band(self):
        """Errors of the fit of less bias that the band is around, in the same noise."""
        errors = Errors(self.smoother.less_biased)
        errors.noise = self.noise  # about the curve that predicts best
        return errors


def widened(smoother, n_rows):
    """Return the smoother with averages over `n_rows` rows at least, which count alike."""
    smoother = smoother.unweighted
    rows = evenly_spread(np.flatnonzero(smoother.counts), _SAMPLED_ROWS)
    scale = smoother.scale(smoother.keys[rows])

    def has_enough_rows(leave_one_out, factor):
        # The mean weight of a row in its own average is one over the number of rows in it.
        scales = [factor] if scale is None else [factor * scale]
        return leave_one_out.scores(scales).trace[0] <= len(rows) / n_rows

    leave_one_out = smoother.leave_one_out(rows=rows, **_AVERAGES)
    for factor in _WIDENINGS:
        if has_enough_rows(leave_one_out, factor):
            return smoother.replace(factor=factor, empty="nearest")
    # A level has fewer rows than that: rows of other levels count as well.
    wide, columns = smoother, smoother.columns
    for share in _TO_ALL_LEVELS if columns.categorical else ():
        lambdas = (1 - share) * smoother.bandwidth + share * columns.highest_lam
        wide = smoother.with_bandwidth(
            np.where(columns.is_numeric, smoother.bandwidth, lambdas)
        )
        if has_enough_rows(wide.leave_one_out(rows=rows, **_AVERAGES), factor):
            break
    return wide.replace(factor=factor, empty="nearest")


def above_rounding(spreads, errors):
    """Spreads that may be divided by, of errors (n, outputs) that may all be 0."""
    sizes = np.abs(errors).mean(axis=0)
    return np.maximum(spreads, _SMALLEST_SPREAD * sizes + np.finfo(np.float64).tiny)


def noise_variance(smoother, X, errors):
    """Return the variance (n, n_outputs) of the noise that enters those of predictions."""
    # With errors r_i and robustness b_i = b(r_i), it is the local average of psi(r_i)^2 =
    # (b_i r_i)^2, divided by the square of that of psi'(r_i) = b_i (5 - 4 / sqrt(b_i)) (Huber
    # 1973, Annals of Statistics 1, 799-821). For the smoother all rows count alike.
    if smoother.robustness is None:
        return smoother.average(X, errors**2)
    weights = smoother.robustness[:, None]
    slopes = 5 * weights - 4 * np.sqrt(weights)
    tables = np.hstack([(weights * errors) ** 2, weights**2, slopes, weights])
    *squares, squared_weight, slope, total = smoother.average(X, tables).T
    slope = np.maximum(slope / total, _LEAST_SLOPE)
    return (squares / (squared_weight * slope**2)).T


def _left_out_average(smoother, values):
    """Average values around each row without its own; rows of weight 0 get the mean."""
    leave_one_out = smoother.leave_one_out(values, **_AVERAGES)
    averages = np.broadcast_to(values.mean(axis=0), values.shape).copy()
    averages[leave_one_out.rows] = leave_one_out.predictions().left_out
    return averages


class Reach(NamedTuple):
    """How far the rows are that predictions rest on, each (n,)."""

    distance: Any
    total: Any  # of the absolute effects
    moment: Any  # distance of the rows' mean, weighted by effects


class _Bias:
    """Squared errors of a smoother's model in units of the noise."""

    def __init__(self, errors):
        self._errors, self._smoother = errors, errors.smoother
        self._places = self._smoother.places(self._smoother.keys)
        _, reach = errors.variances_left_out
        self._usual = np.median(reach.distance)
        places = self._places[self._smoother.counts > 0]
        self._variance = ((places - places.mean(axis=0)) ** 2).sum(axis=1).mean()
        self._factors, self._growth = self._in_wider_windows(places)

    def sizes(self, X, effects):
        """Return sizes of errors (n, n_outputs) at queries, by the effects of rows there."""
        reach = reach_of(self._smoother.places(X), self._places, effects)
        return np.sqrt(self.squares(reach))

    def squares(self, reach):
        """Return squared errors (n, n_outputs) of predictions, by their reach."""
        if not (self._usual > 0 and self._variance > 0):
            return np.zeros((len(reach.distance), self._growth.shape[1]))
        wider = np.log2(np.maximum(reach.distance / self._usual, 1.0))
        growth = [np.interp(wider, self._factors, output) for output in self._growth.T]
        # Errors grow at least by sqrt(2) over half of the rows' extent.
        min_growth = (reach.distance - self._usual).clip(0) ** 2 / (3 * self._variance)
        squares = np.maximum(growth, min_growth).T * reach.total[:, None] ** 2
        # All that the rows explain is taken for a slope over their extent.
        slope = self._growth[-1] / self._variance
        return squares + slope * reach.moment[:, None] ** 2

    def _in_wider_windows(self, places):
        """Return logarithms of factors on the bandwidth, and the relative growth of errors.

        The growth (n_factors, n_outputs) is that of squared leave-one-out errors.
        """
        smoother, present = self._smoother, np.flatnonzero(self._smoother.counts)
        sample = evenly_spread(np.arange(len(present)), _MOST_ROWS)
        rows, places = present[sample], places[sample]
        table, weights = smoother.table[rows], np.ones(len(rows))
        if smoother.robustness is not None and smoother.robustness[rows].any():
            weights = smoother.robustness[rows]
        unit = self._errors.noise.variances[rows][:, None]
        squares = np.nan_to_num(self._errors.left_out[rows] ** 2 / unit)
        base = np.average(squares, axis=0, weights=weights)
        cells = [cell for cell in _cells_of(places, table) if weights[cell].any()]
        log_factors, growths = [0.0], [0 * base]
        max_distance = 2 * np.linalg.norm(np.ptp(places, axis=0))
        for factor in _WIDENINGS[1:][_WIDENINGS[1:] * self._usual < max_distance]:
            errors = smoother.left_out_of(rows, factor) - table
            rise = np.nan_to_num(errors**2 / unit - squares)
            means = [np.average(rise[cell], axis=0, weights=weights[cell]) for cell in cells]
            mean = np.average(rise, axis=0, weights=weights)
            growth = (mean + np.max(means, axis=0)) / 2
            growth = np.divide(growth, base, where=base > 0, out=0 * base)
            log_factors.append(np.log2(factor))
            growths.append(np.maximum(growth, growths[-1]))
        return np.array(log_factors), np.array(growths)


def reach_of(queries, places, effects):
    """Return how far rows at places are from queries at which they have effects."""
    sizes, center = np.abs(effects), places.mean(axis=0)
    total = sizes.sum(axis=1)
    # The middle is subtracted, so that squares neither cancel nor overflow.
    places, queries = places - center, (queries - center).clip(-LARGEST, LARGEST)
    squared = sizes @ (places**2).sum(axis=1) + total * (queries**2).sum(axis=1)
    squared -= 2 * ((sizes @ places) * queries).sum(axis=1)
    moment = effects @ places - effects.sum(axis=1)[:, None] * queries
    distance = np.sqrt(squared.clip(0) / np.where(total > 0, total, 1.0))
    return Reach(distance, total, np.linalg.norm(moment, axis=1))


def _cells_of(places, values):
    """Split rows into k-d tree cells, the same in any order of rows and columns."""
    places = places[:, order_columns(places, values)] if places.shape[1] else places
    cells = [np.arange(len(places))]
    for _ in range(_HALVED if places.shape[1] else 0):
        halves = []
        for cell in cells:
            along_axis = places[cell, np.ptp(places[cell], axis=0).argmax()]
            order = np.lexsort([*values[cell].T, *places[cell].T, along_axis])
            halves += np.array_split(cell[order], 2)
        cells = [half for half in halves if len(half)]
    return cells


class Remoteness:
    """Distances of places from rows beyond what is usual."""

    def __init__(self, places):
        self._tree, self.usual = None, 0.0
        if places.shape[1] and len(places) > 1:
            self._tree = KDTree(places)
            distances = self._tree.query(places, k=[2])[0]
            self.usual = np.median(distances) * _USUAL ** (1 / places.shape[1])

    @classmethod
    def of(cls, smoother):
        """Return distances from the rows of positive weight of a smoother."""
        return cls(smoother.places(smoother.keys[smoother.counts > 0]))

    def excess(self, places):
        """Return by how much distances to the nearest row exceed the usual ones, (n,)."""
        if self._tree is None:
            return np.zeros(len(places))
        return np.maximum(self._tree.query(places)[0] - self.usual, 0.0)
