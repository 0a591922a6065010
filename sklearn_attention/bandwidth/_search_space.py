"""Points of a search for several bandwidths, and the bandwidths that they stand for.

A point is a vector: the logarithms of scales, then the logarithms of level weights. A scale is
the bandwidth of a numeric column divided by the standard deviation of the column; columns have
a scale each, or share one. The level weight w of a category is the kernel's value between
different levels (neighbouring ones of an ordered category), relative to that between equal
ones. It is lambda for an ordered category, and lambda / ((c - 1) (1 - lambda)) for an unordered
one with c levels.
"""

import math

import numpy as np

from ._search import MIN_LEVEL_WEIGHT, search_range

# At the points without a feature, the bandwidth of the feature is multiplied by this number, so
# that the feature hardly matters.
_WITHOUT_FEATURE = 30.0
# A feature does not matter if its bandwidth is this multiple of its extent.
_IRRELEVANT = 1e3
# Level weight of all categories at which descents start.
_FIRST_LEVEL_WEIGHT = 0.3


class SearchSpace:
    """Points of a search, their limits, and the bandwidths that they stand for.

    Attributes
    ----------
    per_feature : bool
        Whether each numeric column has its own scale.
    canonical_ratio : float
        The scale at which the kernel smooths as a Gaussian kernel does at scale 1.
    n_scales : int
        Number of scales; the other coordinates of a point belong to level weights.
    min_scale, max_scale : float
        Range of a common scale of all numeric columns.
    log_lowest, log_highest : ndarray of shape (n_coordinates,)
        Limits of points.
    log_max_visible : ndarray of shape (n_coordinates,)
        The point with the largest scales at which features still have some effect.
    """

    def __init__(self, sample, rows, canonical_ratio):
        self.canonical_ratio, self.per_feature = canonical_ratio, rows.is_per_feature
        self._columns = rows.columns
        self._numeric, self._categorical = rows.columns.numeric, rows.columns.categorical
        self._std = sample.std[self._numeric]
        self._is_constant = np.ptp(sample.X[:, self._numeric], axis=0) == 0
        # 1. Find the range of each scale. At its upper end, `max_visible`, a feature still has
        # some effect.
        Z, n_numeric = sample.X[:, self._numeric] / self._std, len(self._numeric)
        common_range = search_range(Z, canonical_ratio) if n_numeric else (1.0, 1.0)
        self.min_scale, self.max_scale = common_range
        # The entry [i, j] of the matrix `_has_scale` is 1 if numeric column i has scale j.
        if self.per_feature:
            self._has_scale = np.eye(n_numeric)
            ranges = [search_range(column[:, None], canonical_ratio) for column in Z.T]
        else:
            self._has_scale = np.ones((n_numeric, min(n_numeric, 1)))
            ranges = [common_range] * min(n_numeric, 1)
        self.n_scales = self._has_scale.shape[1]
        lowest, max_visible = np.reshape(ranges, (-1, 2)).T
        # 2. Let the bandwidth of a feature that does not matter grow far above its extent. If
        # rows with outliers in the feature were left out of the search, it must not grow so
        # far, since these rows would get weight in predictions.
        highest = max_visible
        if self.per_feature:
            has_outliers = np.broadcast_to(rows.has_outliers, len(rows.columns.kinds))
            factor = np.where(has_outliers[self._numeric], 1.0, _IRRELEVANT)
            highest = max_visible * factor
        # 3. Add the range of level weights.
        min_weights = np.full(len(self._categorical), MIN_LEVEL_WEIGHT)
        max_weights = np.ones_like(min_weights)
        self.log_lowest = np.log(np.append(lowest, min_weights))
        self.log_highest = np.log(np.append(highest, max_weights))
        self.log_max_visible = np.log(np.append(max_visible, max_weights))

    def common_point(self, scale):
        """Return the point at which all scales are `scale`.

        All level weights are `_FIRST_LEVEL_WEIGHT`.
        """
        level_weights = np.full(len(self._categorical), math.log(_FIRST_LEVEL_WEIGHT))
        return self.clip(np.append(np.full(self.n_scales, math.log(scale)), level_weights))

    def nearest_point(self, bandwidth):
        """Return the point nearest to a bandwidth (n_columns,), with lambdas of categories."""
        # The level weight of an unordered category is w = lambda / ((c - 1) (1 - lambda)).
        level_weights = bandwidth[self._categorical].copy()  # lambdas of ordered categories
        for k, j in enumerate(self._categorical):
            if self._columns.kinds[j] == "unordered":
                n_other_levels = max(self._columns.n_levels[j], 2) - 1
                divisor = n_other_levels * (1 - level_weights[k])
                level_weights[k] /= max(divisor, MIN_LEVEL_WEIGHT)
        # A common scale is the geometric mean of the scales of all numeric columns.
        log_scales = np.log(bandwidth[self._numeric] / self._std) @ self._has_scale
        log_scales = log_scales / self._has_scale.sum(axis=0)
        with np.errstate(divide="ignore"):
            return self.clip(np.append(log_scales, np.log(level_weights)))

    def multiply_scales(self, point, factor):
        """Return the point with all scales multiplied by a factor, within their limits."""
        point = point.copy()
        point[: self.n_scales] += math.log(factor)
        return self.clip(point)

    def points_without_feature(self, point):
        """Return a list of points; at each, one scale is so large that it hardly matters."""
        if self.n_scales < 2:
            return []
        moves = np.log(_WITHOUT_FEATURE) * np.eye(len(point))[: self.n_scales]
        return [self.clip(point + move) for move in moves]

    def clip(self, point):
        """Return the nearest point within the limits."""
        return np.clip(point, self.log_lowest, self.log_highest)

    def log_parameters(self, point):
        """Return the logarithms of the bandwidths (n_numeric,) and of the level weights."""
        log_scales, log_level_weights = point[: self.n_scales], point[self.n_scales :]
        # A bandwidth is the standard deviation of its column times the scale.
        return np.log(self._std) + self._has_scale @ log_scales, log_level_weights

    def log_parameters_vjp(self, gradient):
        """Turn derivatives along both results of `log_parameters` into those along the point.

        `gradient` has the derivatives of log-bandwidths, and then of the logarithms of level
        weights, in one array (n_numeric + n_categorical,).
        """
        n_numeric = len(self._numeric)
        return np.append(gradient[:n_numeric] @ self._has_scale, gradient[n_numeric:])

    def bandwidth(self, point):
        """Return the bandwidth (n_columns,) of a point, with lambdas of categories."""
        # Both results are logarithms; the first has the standard deviations as factors.
        log_bandwidth, log_level_weights = self.log_parameters(point)
        bandwidth = np.ones(len(self._columns.kinds))
        bandwidth[self._numeric] = np.exp(log_bandwidth)
        for j, level_weight in zip(self._categorical, np.exp(log_level_weights), strict=True):
            bandwidth[j] = level_weight
            if self._columns.kinds[j] == "unordered":
                # Solve w = lambda / ((c - 1) (1 - lambda)) for lambda.
                odds = level_weight * (max(self._columns.n_levels[j], 2) - 1)
                bandwidth[j] = odds / (1 + odds)
        return bandwidth

    def relevance(self, point):
        """Return the relevance (n_columns,) of each column, from 0 (it does not matter) to 1.

        It is 1 - exp(-std^2 / h^2) with the bandwidth h of a Gaussian kernel that smooths as
        much; 0 for a constant column; and 1 minus the level weight for a category.
        """
        log_bandwidth, log_level_weights = self.log_parameters(point)
        relevance = np.zeros(len(self._columns.kinds))
        # The scales h / std at which a Gaussian kernel smooths as much as this kernel.
        scales = np.exp(log_bandwidth) / (self.canonical_ratio * self._std)
        varying_relevance = -np.expm1(-(scales**-2.0))
        relevance[self._numeric] = np.where(self._is_constant, 0.0, varying_relevance)
        relevance[self._categorical] = 1 - np.exp(log_level_weights)
        return relevance
