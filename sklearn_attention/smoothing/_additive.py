r"""The additive stage of a smoother: a ridge regression on functions of single features.

The keys are the training rows, the values y their targets. :class:`AdditiveTerms` have a column
Z for each function: for every number a line and some curves, and for every level of a category
an indicator. With the weights W of the keys and the penalties P, the coefficients of the
columns are :math:`(Z'WZ + P)^{-1} Z'Wy`.

The ridge keeps r directions, linear combinations of the columns: a matrix T of shape
(n_columns, r) with :math:`TT' = (Z'WZ + P)^{-1}` along them. With :math:`Q = ZT`, the values of
these combinations at the keys, the hat matrix of the stage is :math:`A = QQ'W`.
"""

import dataclasses
from functools import cached_property, reduce
from typing import Any

import numpy as np
from scipy.linalg import eigh

from .._blocks import IN_MEMORY, blocks_of_queries
from .._column_stats import column_stats, mean_squares, positive_std, std_above_rounding
from .._partitions import weights_or_ones
from .._spline_ridge import N_NODES, NormalEquations, SplineColumns, reml_penalties

# Maximum number of curves of one numeric feature, and of columns of all numeric features
# together. The levels of categories may have as many columns in addition.
_MAX_FUNCTIONS, _MAX_COLUMNS = 20, 240
# A feature has a node for as many rows as this, up to a maximum number of nodes. With 5000 rows
# of correlated normal features, whose tails are wide, the error was 0.65 times that with 40
# nodes, on three other sums 1.03 times, and on seven tables 1.003 times.
_ROWS_PER_NODE, _MAX_NODES = 25, 400
# The additive stage alone serves one number with at most so many distinct values, places, and
# at least so many rows for each place on average. On ten curves at 5 to 20 places, with 5 to
# 250 rows for each, its error was 0.81 to 1.00 times that of local polynomials; at 30 places it
# was up to 1.06 times, and with 2 or 3 rows for each place up to 1.05 times.
_MAX_PLACES, _MIN_ROWS_PER_PLACE = 16, 5
# A direction is rounding if its eigenvalue, the fraction of it that the ridge keeps, is
# smaller.
_MIN_RETAINED = 1e-13


@dataclasses.dataclass(frozen=True)
class AdditiveTerms:
    """Columns whose weighted sums are sums of functions of single features, and penalties.

    The columns are a constant, the `SplineColumns` of every number that varies, and an
    indicator of every level of the categories. For example, a row with the number 0.3 and the
    level 1 of the levels 0 and 1 has the columns 1, the line and the curves at 0.3, and the
    indicators 0 and 1.
    """

    numeric: Any  # positions of the features that are numbers and vary
    splines: list  # SplineColumns of each of these features
    levels: Any  # position of the feature, and code, of each level, (n_levels, 2)
    penalties: Any  # penalty of each column, 0 for the constant, (n_columns,)
    n_features: int  # of the rows, with those that do not vary
    # Mean weight of the rows, by which weights are divided: the penalties do not depend on the
    # unit of the weights.
    weight_unit: float

    @property
    def feature(self):
        """Position of the feature of each column but the constant, (n_columns - 1,)."""
        sizes = [spline.values.shape[1] for spline in self.splines]
        numeric = np.repeat(np.asarray(self.numeric, dtype=np.intp), sizes)
        return np.concatenate([numeric, self.levels[:, 0].astype(np.intp)])

    @property
    def group(self):
        """Group of each column but the constant, from 0; a group has one penalty.

        A number has a group for its line and one for its curves, and a category has a group for
        its levels.
        """
        is_curve = [np.arange(spline.values.shape[1]) > 0 for spline in self.splines]
        is_curve = np.concatenate([*is_curve, np.zeros(len(self.levels), dtype=bool)])
        return np.unique(2 * self.feature + is_curve, return_inverse=True)[1]

    def encode(self, X):
        """Return the columns of rows X, (n, n_columns)."""
        constant = np.ones((len(X), 1))
        splines = [spline.interpolate(x, spline.values) for spline, x in self._numbers(X)]
        has_level = X[:, self.levels[:, 0].astype(np.intp)] == self.levels[:, 1]
        return np.hstack([constant, *splines, has_level])

    def slopes(self, X, coefficients):
        """Return derivatives of the sum of the columns at rows X, (n, n_outputs, n_features).

        `coefficients` (n_columns, n_outputs) multiply the columns in the sum. Derivatives along
        categories are 0.
        """
        slopes = np.zeros((len(X), coefficients.shape[1], self.n_features))
        for j, (spline, x) in zip(self.numeric, self._numbers(X), strict=True):
            functions = spline.values @ coefficients[1:][self.feature == j]
            slopes[:, :, j] = spline.slopes(x, functions)
        return slopes

    def without(self, feature):
        """Return the terms without the columns of the feature at a position."""
        is_other = np.asarray(self.numeric) != feature
        pairs = zip(self.splines, is_other, strict=True)
        return dataclasses.replace(
            self,
            numeric=self.numeric[is_other],
            splines=[spline for spline, is_other_feature in pairs if is_other_feature],
            levels=self.levels[self.levels[:, 0] != feature],
            penalties=self.penalties[np.append(True, self.feature != feature)],
        )

    def _numbers(self, X):
        """Pair the spline of each numeric feature with its values (n,) in the rows X."""
        return zip(self.splines, X[:, self.numeric].T.astype(np.float64), strict=True)


def learn_terms(keys, values, columns, weights):
    """Learn additive terms from rows, and the penalties of their ridge regression by REML.

    REML is restricted maximum likelihood. Returns None if nothing varies, or if there would be
    too many columns.

    Parameters
    ----------
    keys : ndarray of shape (n_rows, n_features)
        The rows.
    values : ndarray of shape (n_rows, n_outputs)
        Their targets.
    columns : Columns
        Which features are numbers, and which are categories.
    weights : ndarray of shape (n_rows,)
        Weights of the rows; rows of weight 0 are ignored.
    """
    present = weights > 0
    weight_unit = float(weights[present].mean())
    X, y, weights = keys[present], values[present], weights[present] / weight_unit
    feature_varies = X.min(axis=0) < X.max(axis=0)
    numeric = [j for j in columns.numeric if feature_varies[j]]
    categorical = [j for j in columns.categorical if feature_varies[j]]
    levels = [(j, code) for j in categorical for code in np.unique(X[:, j])]
    # Numeric features share the curves. All curves together are at most half as many as rows.
    n_curves = min(_MAX_COLUMNS, len(X) // 2) // max(1, len(numeric))
    n_curves = int(np.clip(n_curves, 2, _MAX_FUNCTIONS))
    n_columns = len(numeric) * (1 + n_curves) + len(levels)
    output_stats = column_stats(y, weights)
    output_varies = std_above_rounding(output_stats) > 0
    fits_in_memory = n_columns < 2 * _MAX_COLUMNS and len(X) * n_columns < IN_MEMORY
    if not (fits_in_memory and n_columns and output_varies.any()):
        return None
    n_nodes = int(np.clip(len(X) // _ROWS_PER_NODE, N_NODES, _MAX_NODES))
    numbers = X[:, numeric].T.astype(np.float64)
    splines = [SplineColumns.learn(x, n_curves, n_nodes) for x in numbers]
    terms = AdditiveTerms(
        numeric=np.array(numeric, dtype=np.intp),
        splines=splines,
        levels=np.array(levels).reshape(-1, 2),
        penalties=None,
        n_features=keys.shape[1],
        weight_unit=weight_unit,
    )
    # The penalties do not depend on the units of the outputs, which are standardised.
    std = positive_std(output_stats)
    standardized = (y / std - output_stats.mean / std)[:, output_varies]
    equations = _normal_equations(terms, X, standardized, weights)
    return dataclasses.replace(terms, penalties=reml_penalties(equations, terms.group))


def has_few_places(rows):
    """Return True if the only number in `Rows` has few distinct values, with many rows each."""
    (feature,) = rows.columns.numeric
    x = rows.X[weights_or_ones(rows.X, rows.sample_weight) > 0, feature]
    n_places = len(np.unique(x))
    return n_places <= _MAX_PLACES and len(x) >= _MIN_ROWS_PER_PLACE * n_places


def _normal_equations(terms, X, y, weights):
    """Return the `NormalEquations` of the columns of rows X for targets y (n, n_outputs).

    The columns are encoded in blocks of rows, which fit in memory.
    """
    equations_of_blocks = (
        NormalEquations.from_rows(terms.encode(X[rows]), y[rows], weights[rows])
        for rows in blocks_of_queries(len(X), len(terms.feature) + 1)
    )
    return reduce(NormalEquations.plus, equations_of_blocks)


class AdditiveStage:
    """Ridge regression of values of the rows on the columns of `AdditiveTerms`.

    Parameters
    ----------
    terms : AdditiveTerms
        The columns and their penalties.
    keys : ndarray of shape (n_rows, n_features)
        The rows.
    weights : ndarray of shape (n_rows,)
        Weights of the rows, divided by the unit of weights in the terms.
    """

    def __init__(self, terms, keys, weights):
        self.terms, self.keys, self.weights = terms, keys, weights

    @cached_property
    def _gram(self):
        """The Gram matrix Z'WZ of the columns."""
        no_values = np.empty((len(self.keys), 0))
        return _normal_equations(self.terms, self.keys, no_values, self.weights).gram

    @cached_property
    def _directions(self):
        """The directions T that the ridge keeps, (n_columns, r)."""
        # The eigenvalues are the fractions z'Gz / z'(G + P)z of the directions z that the ridge
        # keeps, with the Gram matrix G, and T'(G + P)T = I.
        retained, directions = eigh(self._gram, self._gram + np.diag(self.terms.penalties))
        return directions[:, retained > _MIN_RETAINED]

    @cached_property
    def projected_rows(self):
        """The matrix Q (n_rows, r): the combinations of columns in T, at the rows."""
        # Equal rows are projected once, so that they are equal to the last digit.
        points, positions = np.unique(self.keys, axis=0, return_inverse=True)
        return self.project(points)[positions.ravel()]

    @cached_property
    def weighted_rows(self):
        """The matrix W Q, (n_rows, r)."""
        return self.projected_rows * self.weights[:, None]

    def project(self, X):
        """Return the combinations of columns in T at queries, (n_queries, r)."""
        return predict_sums(self.terms, self._directions, X)

    def solve(self, values):
        """Fit values (n_rows, n_outputs) of the rows.

        Returns their means (n_outputs,), and the coefficients (r, n_outputs) of the directions
        for values less their means.
        """
        mean = np.average(values, axis=0, weights=self.weights)
        return mean, self.projected_rows.T @ (self.weights[:, None] * (values - mean))

    def coefficients(self, values):
        """Fit values of the rows; return the columns' coefficients, (n_columns, n_outputs)."""
        mean, direction_coefficients = self.solve(values)
        coefficients = self._directions @ direction_coefficients
        # The first column is the constant.
        coefficients[0] += mean
        return coefficients

    def residuals(self, values):
        """Return values (n_rows, n_outputs) of the rows less their predictions by the stage."""
        mean, direction_coefficients = self.solve(values)
        return values - mean - self.projected_rows @ direction_coefficients

    @cached_property
    def leverage(self):
        """Leverages of the rows, the diagonal of A, (n_rows,)."""
        return np.sum(np.square(self.projected_rows), axis=1) * self.weights

    def loo_residuals(self, values):
        """Return the leave-one-out residuals of values (n_rows, n_outputs) of the rows."""
        # The minimum avoids a division by 0 where a row alone determines its prediction.
        return self.residuals(values) / np.maximum(1 - self.leverage, 1e-9)[:, None]

    def noise_variance(self, values, key_weights):
        """Return the variance (n_outputs,) of values around the fit, for a row of mean weight.

        `key_weights` (n_rows,) weight the squared residuals; None for 1.
        """
        # The mean of squares is divided by the fraction of degrees of freedom that residuals
        # have, that of one row at least.
        n_rows = np.count_nonzero(self.weights)
        squares = mean_squares(self.residuals(values), key_weights)
        return squares / max(1 - np.sum(self.leverage) / n_rows, 1 / n_rows)

    def component(self, feature, X, coefficients):
        """Return the component of a feature at queries, and its variance.

        The component (n_queries, n_outputs) is the sum of the columns of the feature with their
        `coefficients` (n_columns, n_outputs), less its mean over the rows. The variance
        (n_queries,), in units of the variance of the noise, is Bayesian: that given the data,
        if each coefficient is normal with the variance of the noise divided by its penalty
        (Nychka 1988; Marra and Wood 2012).
        """
        is_of_feature = np.append(False, self.terms.feature == feature)
        means = self._gram[0] / self._gram[0, 0]
        columns = (self.terms.encode(X) - means)[:, is_of_feature]
        variances = np.sum(np.square(columns @ self._directions[is_of_feature]), axis=1)
        return columns @ coefficients[is_of_feature], variances

    def degrees_of_freedom(self):
        """Return the effective degrees of freedom of each feature, (n_features,)."""
        # Those of a column are its diagonal element of (G + P)^-1 G = T T' G.
        diagonal = np.sum(self._directions.T * (self._directions.T @ self._gram), axis=0)
        return np.bincount(self.terms.feature, diagonal[1:], self.terms.n_features)


def predict_sums(terms, coefficients, X):
    """Return sums of the columns at queries, each times its coefficient.

    `coefficients` (n_columns, n_outputs) are those of the columns of the `AdditiveTerms`. The
    result has the shape (n_queries, n_outputs).
    """
    blocks = blocks_of_queries(len(X), len(coefficients))
    return np.concatenate([terms.encode(X[rows]) @ coefficients for rows in blocks])
