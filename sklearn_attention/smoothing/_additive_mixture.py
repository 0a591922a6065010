r"""Mixture of an additive stage with joint smoothers.

A joint smoother is a local polynomial in all features. The additive stage has the hat matrix A.
One joint smoother, S, smooths the residuals of the stage, so that both stages together have the
hat matrix A + S (I - A). Another one, J, smooths the values. With the mixing weight v, the
predictions of values y are

.. math:: v\, (A + S (I - A))\, y + (1 - v)\, J y.
"""

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np

from .. import attention
from .._blocks import evenly_spread
from .._column_stats import column_stats, mean_squares, positive_std
from .._partitions import map_rows
from ..attention._leave_one_out import Predictions
from ..bandwidth._search import MAX_SEARCH_ROWS
from ._additive import AdditiveStage, predict_sums
from ._fitted_smoother import FittedSmoother, weighted_sum

# Rows whose leave-one-out residuals are above this many medians do not choose the mixing
# weight. On lognormal features the error was 0.118 with 5 medians, and 0.167 if all rows chose.
_MAX_MEDIANS = 5.0
# Factor on the penalties of the stage that confidence bands are around. Bands of 90 % held 0.90
# of the places on eight truths of 200 rows, and 0.89 with the penalties as they are (0.84 for
# joint smoothers).
_PENALTY_FACTOR_OF_BANDS = 0.3


@dataclasses.dataclass(frozen=True)
class AdditiveMixture(FittedSmoother):
    """Joint smoother of the values, mixed with an additive stage and one of its residuals.

    Its fields, members and windows are those of the joint smoother of the values, J.
    """

    terms: Any = None  # AdditiveTerms of the stage
    mixing_weight: float = 1.0  # the weight v of the stage and the smoother of its residuals
    # Fields of each `Member` of the smoother of residuals, S; empty if there is none.
    residual_fields: tuple = ()

    @classmethod
    def from_joint(cls, joint, terms):
        """Return the additive stage alone (v = 1), beside a joint smoother of the values."""
        return cls(**_fields_of_joint(joint), terms=terms)

    def with_second_stage(self, smoother):
        """Return the mixture whose smoother of residuals has the members of another one."""
        return self.replace(residual_fields=smoother.member_fields)

    def without_terms_of(self, feature):
        """Return the mixture whose additive stage does not depend on a feature."""
        return self.replace(terms=self.terms.without(feature))

    @property
    def is_polynomial(self):
        """True, since predictions are not averages of values."""
        return True

    @cached_property
    def joint(self):
        """The joint smoother of the values, J."""
        return FittedSmoother(**_fields_of_joint(self))

    @cached_property
    def stage(self):
        """The additive stage."""
        return AdditiveStage(self.terms, self.keys, self.row_weights / self.terms.weight_unit)

    @cached_property
    def second_stage(self):
        """The joint smoother of the residuals of the additive stage, S; None without one."""
        if not self.residual_fields:
            return None
        residuals = self.residuals(self.values)
        return self.joint.replace(values=residuals).with_members(self.residual_fields)

    @property
    def polynomials(self):
        """Weight of each member of the joint smoother of the values, and this member alone."""
        return self.joint.polynomials

    def move_to_edge(self, X):
        """Return the queries as they are: the additive stage extrapolates by itself."""
        return X, ()

    def rescaled(self, change):
        """Return the mixture with the bandwidth ``change(bandwidth)`` in each member."""
        changed, fields = super().rescaled(change), ()
        if self.second_stage is not None:
            fields = self.second_stage.rescaled(change).member_fields
        return changed.replace(residual_fields=fields)

    @cached_property
    def less_biased(self):
        """The mixture that confidence bands are around."""
        penalties = _PENALTY_FACTOR_OF_BANDS * self.terms.penalties
        terms, fields = dataclasses.replace(self.terms, penalties=penalties), ()
        if self.second_stage is not None:
            fields = tuple(map(tuple, self.second_stage.less_biased_members))
        less_biased = self.with_members(self.joint.less_biased_members)
        return less_biased.replace(terms=terms, residual_fields=fields)

    # Components

    def residuals(self, values):
        """Return values (n_keys, ...) of the rows less what the additive stage predicts."""
        residuals = self.stage.residuals(values.reshape(len(values), -1))
        return residuals.reshape(values.shape).astype(values.dtype)

    def component(self, feature, X):
        """Return the centred component of a feature, and its standard error.

        Both have the shape (n_queries, n_outputs).
        """
        component, variances = self.stage.component(feature, X, self._coefficients)
        return component, np.sqrt(variances[:, None] * self._noise_variance)

    def partial_residuals(self, feature):
        """Return a component at the rows plus the residuals of the stage, (n, n_outputs)."""
        return self.component(feature, self.keys)[0] + self.residuals(self.values_2d)

    def describe_components(self):
        """Return the degrees of freedom of each feature, and its component's deviations.

        The latter (n_features, n_outputs) are standard deviations over the rows.
        """
        components = [self.component(j, self.keys)[0] for j in range(self.terms.n_features)]
        stds = np.sqrt([mean_squares(values, self.key_weights) for values in components])
        return self.stage.degrees_of_freedom(), stds

    @cached_property
    def _noise_variance(self):
        return self.stage.noise_variance(self.values_2d, self.key_weights)

    @cached_property
    def _coefficients(self):
        """Coefficients of the stage's columns for the values, (n_columns, n_outputs)."""
        return self.stage.coefficients(self.values_2d)

    # Predictions of queries

    def predict(self, X, values=None):
        """Predict queries, from other values (n_keys, ...) of the rows if they are passed."""
        values = self.values if values is None else values
        return self._mix(FittedSmoother.predict, _predict, X, values, values.shape[1:])

    def gradient(self, X, values):
        """Return derivatives of predictions of values, with respect to the queries."""
        shape = (*values.shape[1:], X.shape[1])
        return self._mix(FittedSmoother.gradient, _slopes, X, values, shape)

    def _mix(self, from_joint, from_terms, X, values, shape):
        """Compute predictions, or derivatives, of the mixture from those of its parts.

        ``from_joint(smoother, X, values)`` computes them for a joint smoother, and
        ``from_terms(terms, coefficients, shape, dtype, X)`` for the additive stage. They have
        the shape (n_queries, *shape): `shape` is (n_outputs,), or (n_outputs, n_features) for
        derivatives, without the first number if values have one dimension.
        """
        is_fitted = values is self.values
        coefficients, dtype = self._coefficients, np.result_type(X.dtype, values.dtype)
        if not is_fitted:
            coefficients = self.stage.coefficients(values.reshape(len(values), -1))
        arguments = self.terms, coefficients, shape, dtype
        weighted = [(self.mixing_weight, map_rows(from_terms, X, [(shape, dtype)], *arguments))]
        if self.mixing_weight < 1:
            weighted.append((1 - self.mixing_weight, [from_joint(self.joint, X, values)]))
        if self.second_stage is not None:
            # The second stage recognises its own array of values, and then uses what it has
            # kept.
            residuals = self.second_stage.values if is_fitted else self.residuals(values)
            weighted.append((self.mixing_weight, [from_joint(self.second_stage, X, residuals)]))
        return weighted_sum(weighted)[0]

    def local_rows(self, X, more=0, *, without_each=False):
        """Return the `LocalRows`: rows of the hat matrix at queries, and predictions.

        Predictions without each row are computed only if `without_each`.
        """
        names, weighted = ["values", "effects", "left_out"][: 2 + without_each], []
        if self.mixing_weight < 1:
            rows = self.joint.local_rows(X, more, without_each=without_each)
            fields = [getattr(rows, name) for name in names]
            weighted.append((1 - self.mixing_weight, fields))
        mean, of_directions = self.stage.solve(self.values_2d)
        projected = self.stage.project(X)
        predictions = mean + projected @ of_directions
        values, second_hat, left_out = predictions, 0.0, 0.0
        if self.second_stage is not None:
            second = self.second_stage.local_rows(X, more, without_each=without_each)
            values = values + second.values
            second_hat, left_out = second.effects, second.left_out
            # The rows of A - S A at the queries are those of (Q - S Q) Q' W.
            projected = projected - second_hat @ self.stage.projected_rows
        first_hat = projected @ self.stage.weighted_rows.T
        fields = [values, second_hat + first_hat]
        if without_each:
            # Without row i, whose leave-one-out residual is a, predictions of the first stage
            # change by -A[:, i] a. That the second stage has no row i either is neglected here.
            change = first_hat[:, :, None] * self._loo_residuals
            fields.append(predictions[:, None] + left_out - change)
        weighted.append((self.mixing_weight, fields))
        averages = dict(zip(names, weighted_sum(weighted), strict=True))
        return attention.LocalRows(**dict.fromkeys(attention.LocalRows._fields) | averages)

    # Predictions of the training rows

    @cached_property
    def _loo_residuals(self):
        """Leave-one-out residuals of the additive stage, (n_keys, n_outputs)."""
        return self.stage.loo_residuals(self.values_2d.astype(np.float64))

    def predict_training_rows(self, window_source):
        """Return the `Predictions` of the rows, with and without themselves.

        Adaptive windows are those of `window_source`; see the base class.
        """
        # These are the predictions A y of the first stage, J y, and S (I - A) y.
        first_stage = Predictions(
            left_out=self.values_2d - self._loo_residuals,
            fitted=self.values_2d - self.residuals(self.values_2d.astype(np.float64)),
            leverage=self.stage.leverage,
        )
        weighted = [(self.mixing_weight, first_stage)]
        if self.mixing_weight < 1:
            joint = self.joint.predict_training_rows(window_source.joint)
            weighted.append((1 - self.mixing_weight, joint))
        if self.second_stage is not None:
            weighted.append((self.mixing_weight, self._second_stage_predictions))
        return Predictions(*weighted_sum(weighted))

    @cached_property
    def _second_stage_predictions(self):
        """`Predictions` that the second stage adds to those of the rows by the first stage."""
        smoother, n_outputs = self._smoother_of_residuals_and_rows, self.values_2d.shape[1]
        left_out, fitted, leverage = smoother.predict_training_rows(smoother)
        smoothed_rows = fitted[:, n_outputs:]
        leverage = leverage - np.sum(smoothed_rows * self.stage.weighted_rows, axis=1)
        left_out = self._second_left_out(left_out, slice(None))
        return Predictions(left_out, fitted[:, :n_outputs], leverage)

    @property
    def _smoother_of_residuals_and_rows(self):
        """The smoother S of the residuals, and of Q in further columns."""
        values = np.column_stack([self.second_stage.values_2d, self.stage.projected_rows])
        return self.second_stage.replace(values=values)

    def _second_left_out(self, left_out, rows):
        """Predict rows without themselves by the second stage.

        `left_out` (n_rows, n_outputs + r) are such predictions of the residuals r of the first
        stage and of Q.
        """
        # If row i is left out, the residuals of the first stage become r + A[:, i] a with its
        # leave-one-out residual a. The second stage is linear in r and in A = Q Q' W.
        n_outputs = self.values_2d.shape[1]
        weighted_rows = self.stage.weighted_rows[rows]
        second_of_hat = np.sum(left_out[:, n_outputs:] * weighted_rows, axis=1)
        return left_out[:, :n_outputs] + second_of_hat[:, None] * self._loo_residuals[rows]

    def predict_left_out(self, rows, factor=1.0, gap=0):
        """Predict rows without themselves, in windows of joint smoothers wider by a factor.

        The `gap` is 0, since fits with a gap have no additive stage.
        """
        weighted = [(self.mixing_weight, [self._stages_left_out(rows, factor)])]
        if self.mixing_weight < 1:
            joint = self.joint.predict_left_out(rows, factor)
            weighted.append((1 - self.mixing_weight, [joint]))
        return weighted_sum(weighted)[0]

    def _stages_left_out(self, rows, factor=1.0):
        """Predict rows without themselves by both stages."""
        left_out = self.values_2d[rows] - self._loo_residuals[rows]
        if self.second_stage is None:
            return left_out
        if factor == 1:
            both = self._smoother_of_residuals_and_rows.predict_left_out(rows)
            return left_out + self._second_left_out(both, rows)
        # In wide windows the change of the residuals without a row is taken to be 0.
        return left_out + self.second_stage.predict_left_out(rows, factor)

    def with_best_weight(self):
        """Return the mixture whose weight minimises the squared leave-one-out residuals."""
        present = np.flatnonzero(self.row_weights)
        rows = evenly_spread(present, MAX_SEARCH_ROWS)
        std = positive_std(column_stats(self.values_2d, self.key_weights))
        of_stages = (self.values_2d[rows] - self._stages_left_out(rows)) / std
        of_joint = (self.values_2d[rows] - self.joint.predict_left_out(rows)) / std
        weight = best_mixing_weight(of_stages, of_joint, self.row_weights[rows])
        return self.replace(mixing_weight=weight)


def best_mixing_weight(stages, joint, weights):
    """Return the weight of `stages` at which the mixture has the smallest squared residuals.

    Both are leave-one-out residuals (n_rows, n_outputs), in units of the standard deviation of
    each output. The squares are weighted by `weights` (n_rows,).
    """
    # With the difference d = joint - stages, the weight is joint'd / d'd, between 0 and 1.
    is_known = np.isfinite(stages).all(axis=1) & np.isfinite(joint).all(axis=1)
    if not is_known.any():
        return 0.0
    sizes = np.abs(np.stack([stages[is_known], joint[is_known]])).max(axis=2)
    limits = _MAX_MEDIANS * np.median(sizes, axis=1, keepdims=True)
    rows = np.flatnonzero(is_known)[(sizes <= limits).all(axis=0)]
    difference = joint[rows] - stages[rows]
    weighted = weights[rows, None] * difference
    squares = np.sum(weighted * difference)
    return float(np.clip(np.sum(weighted * joint[rows]) / squares, 0, 1)) if squares else 0.0


def _predict(terms, coefficients, shape, dtype, X):
    """Predict queries by a sum of columns, a list of one array (n_queries, *shape)."""
    predictions = predict_sums(terms, coefficients, X)
    return [predictions.reshape(len(X), *shape).astype(dtype)]


def _slopes(terms, coefficients, shape, dtype, X):
    """Compute derivatives of a sum of columns, a list of one array (n_queries, *shape)."""
    return [terms.slopes(X, coefficients).reshape(len(X), *shape).astype(dtype)]


def _fields_of_joint(smoother):
    """Return the fields of a smoother that a `FittedSmoother` has, by name."""
    fields = dataclasses.fields(FittedSmoother)
    return {field.name: getattr(smoother, field.name) for field in fields}
