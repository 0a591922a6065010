r"""The additive stage of a smoother: a ridge regression on functions of single features.

With the columns Z of :class:`AdditiveTerms` at the rows, their weights W and the penalties P,
the coefficients for values y are :math:`(Z'WZ + P)^{-1} Z'Wy`. The ridge keeps r directions of
the columns, a matrix T of shape (n_columns, r) with :math:`TT' = (Z'WZ + P)^{-1}` along them.
With :math:`Q = ZT`, the hat matrix of the stage is :math:`A = QQ'W`.
"""

import dataclasses
from functools import cached_property, reduce
from typing import Any

import numpy as np
from scipy.linalg import eigh

from .._blocks import IN_MEMORY, blocks_of_queries
from .._column_stats import column_stats, mean_squares, positive_std, std_above_rounding
from .._spline_ridge import NormalEquations, SplineColumns, reml_penalties

# Maximum number of curves of one number, and of columns of all numbers together. The levels of
# categories may have as many columns in addition.
_MAX_FUNCTIONS, _MAX_COLUMNS = 20, 240
# A direction of the columns is rounding if the ridge keeps a smaller fraction of it.
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
    weight_unit: float  # mean weight of the rows, by which weights are divided

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
        """Return derivatives of the columns' sum with coefficients (n_columns, n_outputs).

        Their shape is (n, n_outputs, n_features); they are 0 along categories.
        """
        slopes = np.zeros((len(X), coefficients.shape[1], self.n_features))
        for j, (spline, x) in zip(self.numeric, self._numbers(X), strict=True):
            functions = spline.values @ coefficients[1:][self.feature == j]
            slopes[:, :, j] = spline.slopes(x, functions)
        return slopes

    def without(self, feature):
        """Return the terms without those of the feature at a position."""
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
        """Pair the spline of each number with the numbers of the rows."""
        return zip(self.splines, X[:, self.numeric].T.astype(np.float64), strict=True)


def learn_terms(keys, table, columns, weights):
    """Learn additive terms from rows, and the penalties of their ridge regression by REML.

    Returns None if nothing varies, or if there would be too many columns.

    Parameters
    ----------
    keys : ndarray of shape (n_rows, n_features)
        The rows.
    table : ndarray of shape (n_rows, n_outputs)
        Their values.
    columns : Columns
        Which features are numbers, and which are categories.
    weights : ndarray of shape (n_rows,)
        Weights of the rows; rows of weight 0 are ignored.
    """
    present = weights > 0
    weight_unit = float(weights[present].mean())
    X, y, weights = keys[present], table[present], weights[present] / weight_unit
    feature_varies = X.min(axis=0) < X.max(axis=0)
    numeric = [j for j in columns.numeric if feature_varies[j]]
    categorical = [j for j in columns.categorical if feature_varies[j]]
    levels = [(j, code) for j in categorical for code in np.unique(X[:, j])]
    n_functions = min(_MAX_COLUMNS, len(X) // 2) // max(1, len(numeric))
    n_functions = int(np.clip(n_functions, 2, _MAX_FUNCTIONS))
    n_columns = len(numeric) * (1 + n_functions) + len(levels)
    output_stats = column_stats(y, weights)
    varies = std_above_rounding(output_stats) > 0
    fits_in_memory = n_columns < 2 * _MAX_COLUMNS and len(X) * n_columns < IN_MEMORY
    if not (fits_in_memory and n_columns and varies.any()):
        return None
    splines = [SplineColumns.learn(x, n_functions) for x in X[:, numeric].T.astype(np.float64)]
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
    y = (y / std - output_stats.mean / std)[:, varies]
    equations = _normal_equations(terms, X, y, weights)
    return dataclasses.replace(terms, penalties=reml_penalties(equations, terms.group))


def _normal_equations(terms, X, y, weights):
    """Return the normal equations of the columns of rows, which are encoded in blocks."""
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
        Weights of the rows, in the unit of the penalties.
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
        """The directions T of the columns that the ridge keeps, (n_columns, r)."""
        retained, directions = eigh(self._gram, self._gram + np.diag(self.terms.penalties))
        return directions[:, retained > _MIN_RETAINED]

    @cached_property
    def projected_rows(self):
        """The rows along the directions, Q, (n_rows, r); equal rows have equal numbers."""
        points, positions = np.unique(self.keys, axis=0, return_inverse=True)
        return self.project(points)[positions.ravel()]

    @cached_property
    def weighted_rows(self):
        """The rows along the directions times their weights, W Q."""
        return self.projected_rows * self.weights[:, None]

    def project(self, X):
        """Return queries along the directions, (n_queries, r)."""
        return predict_sums(self.terms, self._directions, X)

    def solve(self, table):
        """Return the means of a table of values (n_rows, n_outputs), and coefficients.

        The latter (r, n_outputs) are those of the directions, for values less their means.
        """
        mean = np.average(table, axis=0, weights=self.weights)
        return mean, self.projected_rows.T @ (self.weights[:, None] * (table - mean))

    def coefficients(self, table):
        """Return the coefficients of the columns, (n_columns, n_outputs)."""
        mean, of_directions = self.solve(table)
        coefficients = self._directions @ of_directions
        coefficients[0] += mean
        return coefficients

    def residuals(self, table):
        """Return values of the rows less what the stage predicts for them."""
        mean, of_directions = self.solve(table)
        return table - mean - self.projected_rows @ of_directions

    @cached_property
    def leverage(self):
        """Leverages of the rows, the diagonal of A, (n_rows,)."""
        return np.sum(np.square(self.projected_rows), axis=1) * self.weights

    def loo_residuals(self, table):
        """Return the leave-one-out residuals of values of the rows, (n_rows, n_outputs)."""
        return self.residuals(table) / np.maximum(1 - self.leverage, 1e-9)[:, None]

    def noise_variance(self, table, key_weights):
        """Return the variance of each output around the stage, for a row of mean weight."""
        n_rows = np.count_nonzero(self.weights)
        squares = mean_squares(self.residuals(table), key_weights)
        return squares / max(1 - np.sum(self.leverage) / n_rows, 1 / n_rows)

    def component(self, feature, X, coefficients):
        """Return the component of a feature at queries, and its variance.

        The component (n_queries, n_outputs) has mean 0 over the rows. The variance
        (n_queries,), relative to that of the noise, is that of the coefficients given the data,
        if each is normal with the variance of the noise divided by its penalty (Nychka 1988;
        Marra and Wood 2012).
        """
        is_of_feature = np.append(False, self.terms.feature == feature)
        means = self._gram[0] / self._gram[0, 0]
        columns = (self.terms.encode(X) - means)[:, is_of_feature]
        variances = np.sum(np.square(columns @ self._directions[is_of_feature]), axis=1)
        return columns @ coefficients[is_of_feature], variances

    def degrees_of_freedom(self):
        """Return the effective degrees of freedom of each feature, (n_features,)."""
        diagonal = np.sum(self._directions.T * (self._directions.T @ self._gram), axis=0)
        return np.bincount(self.terms.feature, diagonal[1:], self.terms.n_features)


def predict_sums(terms, coefficients, X):
    """Return sums of the columns of queries with coefficients, (n_queries, n_outputs)."""
    blocks = blocks_of_queries(len(X), len(coefficients))
    return np.concatenate([terms.encode(X[rows]) @ coefficients for rows in blocks])
