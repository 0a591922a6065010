"""An additive stage beside local polynomials: a sum of functions of single features.

The stage is a ridge regression of the columns of :class:`AdditiveTerms`. A joint smoother, that
is a local polynomial in all features, then smooths the residuals of the stage. Predictions are
averages of both stages together and of a joint smoother of the targets.
"""

import dataclasses
from functools import cached_property, reduce
from typing import Any

import numpy as np
from scipy.linalg import eigh

from .. import attention
from .._blocks import IN_MEMORY, blocks_of_queries, evenly_spread
from .._column_stats import column_stats, mean_squares, positive_std, std_above_rounding
from .._partitions import map_rows
from .._spline_ridge import NormalEquations, SplineColumns, reml_penalties
from ..attention._leave_one_out import Predictions
from ..bandwidth._search import MAX_SEARCH_ROWS
from ._fitted_smoother import FittedSmoother, weighted_sum

# Curves of one number, and columns of all numbers together; levels may have as many more.
_MAX_FUNCTIONS, _MAX_COLUMNS = 20, 240
# If the ridge keeps a smaller share of a direction of the columns, the direction is rounding.
_MIN_SHARE = 1e-13
# Rows whose leave-one-out errors are above this many medians do not choose the mixing weight.
# On lognormal features the error was 0.118 with 5 medians, and 0.167 if all rows chose.
_MAX_MEDIANS = 5.0
# Share of the penalties in the stage that confidence bands are around. Bands of 90 % held 0.90
# of the places on eight truths of 200 rows, 0.89 with all of the penalties (joint: 0.84).
_PENALTY_OF_BANDS = 0.3


@dataclasses.dataclass(frozen=True)
class AdditiveTerms:
    """Columns whose weighted sums are sums of functions of single features, and penalties.

    A constant, the SplineColumns of every number that varies, and an indicator of every level
    of categories. A row with the number 0.3 and the level 1 of (0, 1) has 1, the line and the
    curves at 0.3, and the indicators 0 and 1.
    """

    numeric: Any  # positions of the numbers that vary
    splines: list  # SplineColumns of each of them
    levels: Any  # feature and code of each level, (n_levels, 2)
    penalties: Any  # of each column, 0 for the constant
    n_features: int
    weight_unit: float  # by which weights of rows are divided

    @property
    def feature(self):
        """Feature of each column but the constant."""
        sizes = [spline.values.shape[1] for spline in self.splines]
        of_numbers = np.repeat(np.asarray(self.numeric, dtype=np.intp), sizes)
        return np.concatenate([of_numbers, self.levels[:, 0].astype(np.intp)])

    @property
    def group(self):
        """Group of each column but the constant, from 0: columns of a group share a penalty.

        A number has a group for its line and one for its curves, a category one for its levels.
        """
        is_curve = [np.arange(spline.values.shape[1]) > 0 for spline in self.splines]
        is_curve = np.concatenate([*is_curve, np.zeros(len(self.levels), dtype=bool)])
        return np.unique(2 * self.feature + is_curve, return_inverse=True)[1]

    def encode(self, X):
        """Return rows in these columns, (n, n_columns)."""
        constant = np.ones((len(X), 1))
        splines = [spline.interpolate(x, spline.values) for spline, x in self._numbers(X)]
        is_level = X[:, self.levels[:, 0].astype(np.intp)] == self.levels[:, 1]
        return np.hstack([constant, *splines, is_level])

    def slopes(self, X, coefficients):
        """Return derivatives of a sum of columns, (n, n_outputs, n_features)."""
        slopes = np.zeros((len(X), coefficients.shape[1], self.n_features))
        for j, (spline, x) in zip(self.numeric, self._numbers(X), strict=True):
            functions = spline.values @ coefficients[1:][self.feature == j]
            slopes[:, :, j] = spline.slopes(x, functions)
        return slopes

    def without(self, feature):
        """Return the columns that do not depend on a feature."""
        is_other = np.asarray(self.numeric) != feature
        is_column = np.append(True, self.feature != feature)
        return dataclasses.replace(
            self,
            numeric=self.numeric[is_other],
            splines=[s for s, keep in zip(self.splines, is_other, strict=True) if keep],
            levels=self.levels[self.levels[:, 0] != feature],
            penalties=self.penalties[is_column],
        )

    def _numbers(self, X):
        return zip(self.splines, X[:, self.numeric].T.astype(np.float64), strict=True)


def learn_terms(keys, table, columns, weights):
    """Learn additive terms, and their penalties by REML, from rows of positive weight.

    Returns None if nothing varies, or if there would be too many columns.
    """
    present = weights > 0
    weight_unit = float(weights[present].mean())
    X, y, weights = keys[present], table[present], weights[present] / weight_unit
    varies = X.min(axis=0) < X.max(axis=0)
    numeric = [j for j in columns.numeric if varies[j]]
    levels = [
        (j, code) for j in columns.categorical if varies[j] for code in np.unique(X[:, j])
    ]
    n_functions = min(_MAX_COLUMNS, len(X) // 2) // max(1, len(numeric))
    n_functions = int(np.clip(n_functions, 2, _MAX_FUNCTIONS))
    n_columns = len(numeric) * (1 + n_functions) + len(levels)
    spread = column_stats(y, weights)
    is_varying = std_above_rounding(spread) > 0
    is_small = n_columns < 2 * _MAX_COLUMNS and len(X) * n_columns < IN_MEMORY
    if not (is_small and n_columns and is_varying.any()):
        return None
    splines = [SplineColumns.learn(x, n_functions) for x in X[:, numeric].T.astype(np.float64)]
    terms = AdditiveTerms(
        np.array(numeric, dtype=np.intp), splines, np.array(levels).reshape(-1, 2), None,
        keys.shape[1], weight_unit,
    )  # fmt: skip
    # In units of their standard deviations, outputs have the same penalties in all units.
    std = positive_std(spread)
    y = (y / std - spread.mean / std)[:, is_varying]
    equations = _normal_equations(terms, X, y, weights)
    return dataclasses.replace(terms, penalties=reml_penalties(equations, terms.group))


def _normal_equations(terms, X, y, weights):
    """Return the normal equations of rows, block by block."""
    of_blocks = (
        NormalEquations.from_rows(terms.encode(X[rows]), y[rows], weights[rows])
        for rows in blocks_of_queries(len(X), len(terms.feature) + 1)
    )
    return reduce(NormalEquations.plus, of_blocks)


def mixing_weight(stages, joint, weights):
    """Return the weight of `stages` at which the mixture has the smallest squared error.

    Both are leave-one-out errors (n, n_outputs) in units of each output's standard deviation.
    """
    # With the difference d of both errors, the weight is joint'd / d'd, between 0 and 1.
    known = np.isfinite(stages).all(axis=1) & np.isfinite(joint).all(axis=1)
    if not known.any():
        return 0.0
    sizes = np.abs(np.stack([stages[known], joint[known]])).max(axis=2)
    limits = _MAX_MEDIANS * np.median(sizes, axis=1, keepdims=True)
    rows = np.flatnonzero(known)[(sizes <= limits).all(axis=0)]
    change = joint[rows] - stages[rows]
    weighted = weights[rows, None] * change
    squares = np.sum(weighted * change)
    return float(np.clip(np.sum(weighted * joint[rows]) / squares, 0, 1)) if squares else 0.0


@dataclasses.dataclass(frozen=True)
class AdditiveMixture(FittedSmoother):
    r"""A joint smoother of the values, mixed with an additive stage and one of its residuals.

    With the hat matrix A of the stage, and those of the joint smoothers of the values, J, and
    of the residuals, S, the predictions of values y are v (A + S (I - A)) y + (1 - v) J y. All
    that only needs windows is inherited from the joint smoother of the values: averages,
    distances and weights.
    """

    terms: Any = None  # AdditiveTerms
    share: float = 1.0  # weight v of both stages
    # Degree, bandwidth and weight of each member of the smoother of residuals; may be empty.
    residual_fields: tuple = ()

    @classmethod
    def from_joint(cls, joint, terms):
        """Return the additive stage alone, with a joint smoother of the values beside it."""
        return cls(**_fields_of_joint(joint), terms=terms)

    def with_second_stage(self, smoother):
        """Return both stages together, the second with the members of a joint smoother."""
        return self.replace(residual_fields=smoother.member_fields)

    def without(self, feature):
        """Return the mixture whose additive stage does not depend on a feature."""
        return self.replace(terms=self.terms.without(feature))

    @property
    def local(self):
        """True, since predictions are no averages of values."""
        return True

    @cached_property
    def joint(self):
        """The joint smoother of the values."""
        return FittedSmoother(**_fields_of_joint(self))

    @cached_property
    def of_residuals(self):
        """The joint smoother of the residuals of the additive stage; None if there is none."""
        if not self.residual_fields:
            return None
        residuals = self.residuals(self.values)
        return self.joint.replace(values=residuals).with_members(self.residual_fields)

    @property
    def polynomials(self):
        """Weight of each member of the joint smoother of the values, and this member alone."""
        return self.joint.polynomials

    def at_edge(self, X):
        """Return the queries: the additive stage goes on beyond the rows as it is."""
        return X, ()

    def rescaled(self, change):
        """Return the mixture whose bandwidths are changed by a function."""
        changed, fields = super().rescaled(change), ()
        if self.residual_fields:
            fields = self.of_residuals.rescaled(change).member_fields
        return changed.replace(residual_fields=fields)

    @cached_property
    def less_biased(self):
        """The mixture that the band is around."""
        penalties = _PENALTY_OF_BANDS * self.terms.penalties
        terms, fields = dataclasses.replace(self.terms, penalties=penalties), ()
        if self.residual_fields:
            fields = self.of_residuals.less_biased_members
        less_biased = self.with_members(self.joint.less_biased_members)
        return less_biased.replace(terms=terms, residual_fields=tuple(map(tuple, fields)))

    # The ridge keeps some directions of the columns Z, given by T (n_columns, n_directions).
    # Its hat matrix is Q Q' W with Q = Z T, since T T' is (Z'WZ + penalties)^-1 along these.

    @cached_property
    def _weights(self):
        """Weights of the rows, in the unit of the penalties."""
        return self.counts / self.terms.weight_unit

    @cached_property
    def _gram(self):
        no_values = np.empty((len(self.keys), 0))
        return _normal_equations(self.terms, self.keys, no_values, self._weights).gram

    @cached_property
    def _directions(self):
        shares, directions = eigh(self._gram, self._gram + np.diag(self.terms.penalties))
        return directions[:, shares > _MIN_SHARE]

    @cached_property
    def _projected_rows(self):
        """The rows along the directions, Q; rows that are equal have equal numbers."""
        points, rows = np.unique(self.keys, axis=0, return_inverse=True)
        return self._project(points)[rows.ravel()]

    @cached_property
    def _weighted_rows(self):
        """The rows along the directions times their weights, W Q."""
        return self._projected_rows * self._weights[:, None]

    def _project(self, X):
        """Return queries along the directions, (n_queries, n_directions)."""
        directions = self._directions
        return _predict(self.terms, directions, directions.shape[1:], np.float64, X)[0]

    def _ridge(self, values):
        """Return the means of values (n, n_outputs), and coefficients of the directions."""
        mean = np.average(values, axis=0, weights=self._weights)
        return mean, self._projected_rows.T @ (self._weights[:, None] * (values - mean))

    def _coefficients(self, values):
        """Return the coefficients of the columns, (n_columns, n_outputs)."""
        return self._own_coefficients if values is self.values else self._solve(values)

    @cached_property
    def _own_coefficients(self):
        """Coefficients for the values of the rows, which are computed once."""
        return self._solve(self.values)

    def _solve(self, values):
        mean, b = self._ridge(values.reshape(len(values), -1))
        coefficients = self._directions @ b
        coefficients[0] += mean
        return coefficients

    def residuals(self, values):
        """Return values of the rows less what the additive stage predicts for them."""
        table = values.reshape(len(values), -1)
        mean, b = self._ridge(table)
        return (
            (table - mean - self._projected_rows @ b).reshape(values.shape).astype(values.dtype)
        )

    @cached_property
    def _leverage(self):
        """Leverages of the rows in the additive stage, (n,)."""
        return np.sum(np.square(self._projected_rows), axis=1) * self._weights

    @cached_property
    def _loo_residuals(self):
        """Leave-one-out residuals of the additive stage, (n, n_outputs)."""
        residuals = self.residuals(self.table.astype(np.float64))
        return residuals / np.maximum(1 - self._leverage, 1e-9)[:, None]

    def component(self, feature, X):
        """Return the centred component of a feature, and its standard error, (n, n_outputs).

        The variance is that of the coefficients given the data, if each is normal with the
        variance of the noise divided by its penalty (Nychka 1988; Marra and Wood 2012).
        """
        is_own = np.append(False, self.terms.feature == feature)
        means = self._gram[0] / self._gram[0, 0]
        columns = (self.terms.encode(X) - means)[:, is_own]
        squares = np.sum(np.square(columns @ self._directions[is_own]), axis=1)
        variances = squares[:, None] * self._noise_variance
        return columns @ self._coefficients(self.values)[is_own], np.sqrt(variances)

    def partial_residuals(self, feature):
        """Return a component at the rows plus the residuals of the stage, (n, n_outputs)."""
        return self.component(feature, self.keys)[0] + self.residuals(self.table)

    @cached_property
    def _noise_variance(self):
        """Variance of each output about the additive stage, for a row of mean weight."""
        squares = mean_squares(self.residuals(self.table), self.key_weights)
        return squares / max(1 - np.sum(self._leverage) / self.n_rows, 1 / self.n_rows)

    def describe_components(self):
        """Return degrees of freedom, and standard deviations over the rows (n, n_outputs)."""
        features, n_features = self.terms.feature, self.terms.n_features
        of_columns = np.sum(self._directions.T * (self._directions.T @ self._gram), axis=0)
        freedoms = np.bincount(features, of_columns[1:], n_features)
        components = [self.component(j, self.keys)[0] for j in range(n_features)]
        return freedoms, np.sqrt([mean_squares(c, self.key_weights) for c in components])

    def predict(self, X, values=None):
        """Predict the values, or others in their place."""
        values = self.values if values is None else values
        return self._mix(FittedSmoother.predict, _predict, X, values, values.shape[1:])

    def gradient(self, X, values):
        """Return derivatives in queries, of the smoother of values of the rows."""
        shape = (*values.shape[1:], X.shape[1])
        return self._mix(FittedSmoother.gradient, _slopes, X, values, shape)

    def _mix(self, of_joint, of_terms, X, values, shape):
        """Mix what ``of_joint(smoother, X, values)`` and `of_terms` have at queries."""
        dtype = np.result_type(X.dtype, values.dtype)
        arguments = self.terms, self._coefficients(values), shape, dtype
        weighted = [(self.share, map_rows(of_terms, X, [(shape, dtype)], *arguments))]
        if self.share < 1:
            weighted.append((1 - self.share, [of_joint(self.joint, X, values)]))
        if self.of_residuals is not None:
            # These values themselves tell the smoother that it has read them already.
            is_training = values is self.values
            residuals = self.of_residuals.values if is_training else self.residuals(values)
            weighted.append((self.share, [of_joint(self.of_residuals, X, residuals)]))
        return weighted_sum(weighted)[0]

    def local_rows(self, X, more=0, *, without_each=False):
        """Return the rows of the hat matrix at queries, and predictions without each row."""
        names, weighted = ["values", "effects", "left_out"][: 2 + without_each], []
        if self.share < 1:
            rows = self.joint.local_rows(X, more, without_each=without_each)
            weighted.append((1 - self.share, [getattr(rows, name) for name in names]))
        mean, b = self._ridge(self.table)
        queries = self._project(X)
        values, effects, left_out = mean + queries @ b, 0.0, 0.0
        of_stage = values[:, None]
        if self.of_residuals is not None:
            second = self.of_residuals.local_rows(X, more, without_each=without_each)
            values, effects, left_out = values + second.values, second.effects, second.left_out
            queries = queries - effects @ self._projected_rows
        stage = queries @ self._weighted_rows.T
        fields = [values, effects + stage]
        if without_each:
            # Without row i, whose leave-one-out residual is a, predictions of the first stage
            # change by -A[:, i] a. That the second stage has no row i either is neglected here.
            fields.append(of_stage + left_out - stage[:, :, None] * self._loo_residuals)
        weighted.append((self.share, fields))
        averages = dict(zip(names, weighted_sum(weighted), strict=True))
        return attention.LocalRows(**dict.fromkeys(attention.LocalRows._fields) | averages)

    def of_rows(self, measured):
        """Predict the rows, in windows that another smoother measures."""
        left_out = self.table - self._loo_residuals
        fitted = self.table - self.residuals(self.table.astype(np.float64))
        weighted = [(self.share, Predictions(left_out, fitted, self._leverage))]
        if self.share < 1:
            weighted.append((1 - self.share, self.joint.of_rows(measured.joint)))
        if self.of_residuals is not None:
            weighted.append((self.share, self._second_of_rows))
        return Predictions(*weighted_sum(weighted))

    @cached_property
    def _second_of_rows(self):
        """What the second stage adds to predictions of the rows by the first stage."""
        smoother, n_outputs = self._of_residuals_and_rows, self.table.shape[1]
        left_out, fitted, leverage = smoother.of_rows(smoother)
        leverage = leverage - np.sum(fitted[:, n_outputs:] * self._weighted_rows, axis=1)
        left_out = self._second_left_out(left_out, slice(None))
        return Predictions(left_out, fitted[:, :n_outputs], leverage)

    @property
    def _of_residuals_and_rows(self):
        """The joint smoother of the residuals, and of the rows along the directions."""
        values = np.column_stack([self.of_residuals.table, self._projected_rows])
        return self.of_residuals.replace(values=values)

    def _second_left_out(self, left_out, rows):
        """Predict rows without themselves by the second stage; `left_out` is that of both."""
        # If row i is left out, the residuals of the first stage become r + A[:, i] a with its
        # leave-one-out residual a. The second stage is linear in r and in A = Q Q' W.
        n_outputs = self.table.shape[1]
        second_of_hat = np.sum(left_out[:, n_outputs:] * self._weighted_rows[rows], axis=1)
        return left_out[:, :n_outputs] + second_of_hat[:, None] * self._loo_residuals[rows]

    def left_out_of(self, rows, factor=1.0, gap=0):
        """Predict rows without themselves, in windows of joint smoothers wider by a factor.

        The `gap` is 0, since fits with a gap have no additive stage.
        """
        weighted = [(self.share, [self._stages_left_out(rows, factor)])]
        if self.share < 1:
            weighted.append((1 - self.share, [self.joint.left_out_of(rows, factor)]))
        return weighted_sum(weighted)[0]

    def _stages_left_out(self, rows, factor=1.0):
        """Predict rows without themselves by both stages."""
        left_out = self.table[rows] - self._loo_residuals[rows]
        if self.of_residuals is None:
            return left_out
        if factor == 1:
            both = self._of_residuals_and_rows.left_out_of(rows)
            return left_out + self._second_left_out(both, rows)
        # In wide windows the change of the residuals without a row is taken to be 0.
        return left_out + self.of_residuals.left_out_of(rows, factor)

    def with_best_share(self):
        """Return the mixture with the smallest leave-one-out squared error."""
        present = np.flatnonzero(self.counts)
        rows = evenly_spread(present, MAX_SEARCH_ROWS)
        std = positive_std(column_stats(self.table, self.key_weights))
        predictions = self._stages_left_out(rows), self.joint.left_out_of(rows)
        errors = ((self.table[rows] - left_out) / std for left_out in predictions)
        return self.replace(share=mixing_weight(*errors, self.counts[rows]))


def _predict(terms, coefficients, shape, dtype, X):
    """Predict queries by a sum of columns, (n_queries, *shape)."""
    blocks = blocks_of_queries(len(X), len(coefficients))
    predictions = np.concatenate([terms.encode(X[rows]) @ coefficients for rows in blocks])
    return [predictions.reshape(len(X), *shape).astype(dtype)]


def _slopes(terms, coefficients, shape, dtype, X):
    """Compute derivatives of a sum of columns, (n_queries, *shape)."""
    return [terms.slopes(X, coefficients).reshape(len(X), *shape).astype(dtype)]


def _fields_of_joint(smoother):
    """Return the fields of a smoother that a `FittedSmoother` has, by name."""
    fields = dataclasses.fields(FittedSmoother)
    return {field.name: getattr(smoother, field.name) for field in fields}
