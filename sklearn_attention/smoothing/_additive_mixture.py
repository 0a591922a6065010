r"""Mixture of an additive stage with joint smoothers.

The keys are the training rows, the values y their targets. A joint smoother is a local
polynomial in all features. The first, additive stage has the hat matrix A. The second stage, a
joint smoother S, smooths its residuals, so that both have the hat matrix A + S (I - A). Another
joint smoother, J, smooths the values. With the mixing weight v, predictions are

.. math:: v\, (A + S (I - A))\, y + (1 - v)\, J y.

The additive stage is a regression on r orthogonal functions, Q (n_keys, r) at the keys, so that
A = Q Q' W with the weights W of the keys (`_additive`).
"""

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np

from .. import attention
from .._blocks import evenly_spread
from .._column_stats import column_stats, mean_squares, positive_std
from .._partitions import is_partitioned, map_rows, need_all_rows
from ..attention._leave_one_out import Predictions
from ..bandwidth._neighbors import AdaptiveBandwidth, NeighborSearch
from ..bandwidth._search import MAX_SEARCH_ROWS
from ._additive import AdditiveStage, has_few_places, predict_sums
from ._fitted_smoother import FittedSmoother, weighted_sum

# The mixing weight is chosen without the rows whose leave-one-out residuals are above this many
# medians. On lognormal features the error was 0.118 with 5 medians, and 0.167 with all rows.
_MAX_MEDIANS = 5.0
# Factor on the penalties of the stage that confidence bands are around: smaller penalties have
# less bias. On eight known curves with 200 rows, bands of 90 % held the curve at 0.90 of the
# places, and at 0.89 with the penalties as they are (0.84 for joint smoothers).
_PENALTY_FACTOR_OF_BANDS = 0.3


def resolve_structure(estimator, rows, rule, kernel, n_degrees):
    """Return the structure of predictions: "joint", "additive", or "mixture" of both.

    Raises ValueError if structure="additive" does not serve another parameter.

    Parameters
    ----------
    estimator : estimator
        The smoother with its parameters `structure` and `gap`.
    rows : Rows
        The training rows, with the columns that the kernel compares.
    rule : BandwidthRule
        The rule that chooses bandwidths.
    kernel : Kernel
        The kernel of the numeric columns.
    n_degrees : int
        Number of degrees that are averaged; above 1 only if `degree` is "auto".
    """
    if estimator.structure != "additive":
        is_chosen = estimator.structure == "auto" and n_degrees > 1 and rule.searches
        is_served = not estimator.gap and kernel.decreasing and not is_partitioned(rows.X)
        if not (is_chosen and is_served):
            return "joint"
        if len(rows.columns.numeric) + len(rows.columns.categorical) > 1:
            return "mixture"
        return "additive" if has_few_places(rows) else "joint"
    need_all_rows("fits with structure='additive'", rows.X)
    is_adaptive = isinstance(rule, AdaptiveBandwidth | NeighborSearch)
    unserved = (
        ("gap", estimator.gap, "gap=0"),
        ("kernel", not kernel.decreasing, "kernel='gaussian'"),
        ("bandwidth", is_adaptive, "bandwidth='scott'"),
    )
    for name, is_unserved, remedy in unserved:
        if is_unserved:
            value = getattr(estimator, name)
            raise ValueError(
                f"structure='additive' does not serve {name}={value!r}: pass {remedy}, or "
                "structure='joint'."
            )
    return "additive"


@dataclasses.dataclass(frozen=True)
class AdditiveMixture(FittedSmoother):
    """An additive stage and a joint smoother S of its residuals, mixed with a joint smoother J.

    The fields, members and windows that it inherits are those of J, which smooths the values.
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
        """Return the mixture whose second stage S has the members of another smoother."""
        return self.replace(residual_fields=smoother.member_fields)

    def without_terms_of(self, feature):
        """Return the mixture without the additive terms of the feature at a position."""
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
        """The additive stage, fitted with the weights of the keys."""
        return AdditiveStage(self.terms, self.keys, self.row_weights / self.terms.weight_unit)

    @cached_property
    def second_stage(self):
        """The joint smoother of the residuals of the additive stage, S; None without one."""
        if not self.residual_fields:
            return None
        residuals = self.residuals(self.values)
        return self.joint.replace(values=residuals).with_members(self.residual_fields)

    @property
    def weighted_smoothers(self):
        """Pairs of the weight of a member of J and the smoother that has only this member."""
        return self.joint.weighted_smoothers

    def move_to_edge(self, X):
        """Return the queries as they are, and no positions of queries that were moved.

        The additive stage extrapolates by itself.
        """
        return X, ()

    def rescaled(self, change):
        """Return the mixture in which each member has the bandwidth ``change(bandwidth)``."""
        changed, fields = super().rescaled(change), ()
        if self.second_stage is not None:
            fields = self.second_stage.rescaled(change).member_fields
        return changed.replace(residual_fields=fields)

    @cached_property
    def band_smoother(self):
        """The mixture that confidence bands are around, whose bias is smaller."""
        penalties = _PENALTY_FACTOR_OF_BANDS * self.terms.penalties
        terms, fields = dataclasses.replace(self.terms, penalties=penalties), ()
        if self.second_stage is not None:
            fields = tuple(map(tuple, self.second_stage.band_members))
        band_smoother = self.with_members(self.joint.band_members)
        return band_smoother.replace(terms=terms, residual_fields=fields)

    # Components

    def residuals(self, values):
        """Return the residuals of the additive stage for values (n_keys, ...) of the keys."""
        residuals = self.stage.residuals(values.reshape(len(values), -1))
        return residuals.reshape(values.shape).astype(values.dtype)

    def component(self, feature, X):
        """Return the centred component of a feature at queries, and its standard error.

        Both have the shape (n_queries, n_outputs). The component is the sum of the additive
        terms of the feature at this position, less its mean over the keys.
        """
        component, variances = self.stage.component(feature, X, self._coefficients)
        return component, np.sqrt(variances[:, None] * self._noise_variance)

    def partial_residuals(self, feature):
        """Return the component of a feature at the keys plus the residuals of the stage.

        The shape is (n_keys, n_outputs).
        """
        component, _ = self.component(feature, self.keys)
        return component + self.residuals(self.values_2d)

    def describe_components(self):
        """Return degrees of freedom and standard deviations of the component of each feature.

        The shapes are (n_features,) and (n_features, n_outputs). Standard deviations are those
        over the keys.
        """
        components = [self.component(j, self.keys)[0] for j in range(self.terms.n_features)]
        stds = np.sqrt([mean_squares(values, self.key_weights) for values in components])
        return self.stage.degrees_of_freedom(), stds

    @cached_property
    def _noise_variance(self):
        """Variance (n_outputs,) of the values around the additive stage."""
        return self.stage.noise_variance(self.values_2d, self.key_weights)

    @cached_property
    def _solution(self):
        """Means of the values, and coefficients of the directions, as from `stage.solve`."""
        return self.stage.solve(self.values_2d)

    @cached_property
    def _coefficients(self):
        """Coefficients of the stage's columns for the values, (n_columns, n_outputs)."""
        return self.stage.coefficients(self.values_2d)

    # Predictions of queries

    def predict(self, X, values=None):
        """Predict queries, from other values (n_keys, ...) of the keys if they are passed.

        The result has the shape (n_queries, ...).
        """
        values = self.values if values is None else values
        return self._mix(FittedSmoother.predict, _predict, X, values, values.shape[1:])

    def gradient(self, X, values):
        """Return derivatives of predictions from values (n_keys, ...) along the features.

        The result has the shape (n_queries, ..., n_features).
        """
        shape = (*values.shape[1:], X.shape[1])
        return self._mix(FittedSmoother.gradient, _slopes, X, values, shape)

    def _mix(self, from_joint, from_terms, X, values, shape):
        """Compute predictions, or derivatives, of the mixture from those of its parts.

        Parameters
        ----------
        from_joint : callable
            ``from_joint(smoother, X, values)`` returns them for a joint smoother.
        from_terms : callable
            ``from_terms(terms, coefficients, shape, dtype, X)`` returns them for the additive
            stage, as a list of one array: `_predict` or `_slopes`.
        X : array of shape (n_queries, n_features)
            The queries, which may be in partitions.
        values : ndarray of shape (n_keys,) or (n_keys, n_outputs)
            Values of the keys.
        shape : tuple
            The shape of the result for one query: () or (n_outputs,) for predictions, and
            (n_features,) or (n_outputs, n_features) for derivatives.
        """
        is_fitted = values is self.values
        if is_fitted:
            coefficients = self._coefficients
        else:
            coefficients = self.stage.coefficients(values.reshape(len(values), -1))
        dtype = np.result_type(X.dtype, values.dtype)
        arguments = self.terms, coefficients, shape, dtype
        from_stage = map_rows(from_terms, X, [(shape, dtype)], *arguments)
        weighted = [(self.mixing_weight, from_stage)]
        if self.mixing_weight < 1:
            weighted.append((1 - self.mixing_weight, [from_joint(self.joint, X, values)]))
        if self.second_stage is not None:
            # If the second stage gets its own array of values, it need not read all keys again.
            residuals = self.second_stage.values if is_fitted else self.residuals(values)
            weighted.append((self.mixing_weight, [from_joint(self.second_stage, X, residuals)]))
        return weighted_sum(weighted)[0]

    def local_rows(self, X, more=0, *, without_each=False):
        """Return the `LocalRows`: rows of the hat matrix at queries, and predictions.

        Adaptive windows of joint smoothers reach `more` neighbours further. If `without_each`,
        also compute the predictions of the queries without each of the keys.
        """
        # A mixture has these fields of `LocalRows`; the others are None.
        names, weighted = ["values", "effects"] + ["left_out"] * without_each, []
        # 1. The joint smoother J.
        if self.mixing_weight < 1:
            rows = self.joint.local_rows(X, more, without_each=without_each)
            fields = [getattr(rows, name) for name in names]
            weighted.append((1 - self.mixing_weight, fields))
        # 2. Both stages, which predict A y + S (I - A) y with the hat matrix (A - S A) + S.
        mean, direction_coefficients = self._solution
        projected = self.stage.project(X)  # Q at the queries
        first_values = mean + projected @ direction_coefficients  # A y
        unsmoothed, both_values, second_hat, second_left_out = projected, first_values, 0.0, 0.0
        if self.second_stage is not None:
            second = self.second_stage.local_rows(X, more, without_each=without_each)
            both_values = first_values + second.values
            second_hat, second_left_out = second.effects, second.left_out  # S, and S (I - A) y
            unsmoothed = projected - second_hat @ self.stage.projected_rows  # Q - S Q
        # The rows of A - S A at the queries are those of (Q - S Q) Q' W.
        first_hat = unsmoothed @ self.stage.weighted_rows.T
        fields = [both_values, second_hat + first_hat]
        if without_each:
            # Without key i, whose leave-one-out residual is a_i, predictions of the first stage
            # change by -A[:, i] a_i, and the residuals that S smooths by A[:, i] a_i, so that
            # both stages change by -(A - S A)[:, i] a_i. Here S is the smoother with key i.
            change = first_hat[:, :, None] * self._loo_residuals
            fields.append(first_values[:, None] + second_left_out - change)
        weighted.append((self.mixing_weight, fields))
        averages = dict(zip(names, weighted_sum(weighted), strict=True))
        return attention.LocalRows(**dict.fromkeys(attention.LocalRows._fields) | averages)

    # Predictions of the training rows

    @cached_property
    def _loo_residuals(self):
        """Leave-one-out residuals of the additive stage, (n_keys, n_outputs)."""
        return self.stage.loo_residuals(self.values_2d.astype(np.float64))

    def predict_training_rows(self, window_source):
        """Return the `Predictions` of the training rows, with and without themselves.

        The windows of an adaptive bandwidth of J reach to the neighbours among the keys of
        `window_source`, as for a `FittedSmoother`.
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
        """`Predictions` that the second stage adds to those of the first stage."""
        smoother, n_outputs = self._smoother_of_residuals_and_functions, self.values_2d.shape[1]
        left_out, fitted, leverage = smoother.predict_training_rows(smoother)
        # The leverages are the diagonal of S - S A = S - (S Q) Q' W.
        smoothed_functions = fitted[:, n_outputs:]
        leverage = leverage - np.sum(smoothed_functions * self.stage.weighted_rows, axis=1)
        left_out = self._second_left_out(left_out, slice(None))
        return Predictions(left_out, fitted[:, :n_outputs], leverage)

    @property
    def _smoother_of_residuals_and_functions(self):
        """The second stage S, smoothing also the functions Q as further columns of values."""
        values = np.column_stack([self.second_stage.values_2d, self.stage.projected_rows])
        return self.second_stage.replace(values=values)

    def _second_left_out(self, left_out, rows):
        """Predict training rows without themselves by the second stage, (n_rows, n_outputs).

        `rows` are their positions. `left_out` (n_rows, n_outputs + r) are leave-one-out
        predictions by S of the residuals of the first stage and of the functions Q.
        """
        # Without row i, the residuals e of the first stage change to e + A[:, i] a_i, where a_i
        # is the leave-one-out residual of row i. Since S is linear and A = Q Q' W, it predicts
        # S_i e + (S_i Q) (Q' W)[:, i] a_i, in which S_i has no row i.
        n_outputs = self.values_2d.shape[1]
        weighted_rows = self.stage.weighted_rows[rows]
        smoothed_hat = np.sum(left_out[:, n_outputs:] * weighted_rows, axis=1)
        return left_out[:, :n_outputs] + smoothed_hat[:, None] * self._loo_residuals[rows]

    def predict_left_out(self, rows, factor=1.0, gap=0):
        """Predict training rows without themselves, (n_rows, n_outputs).

        `rows` are their positions. `factor` multiplies the bandwidths of the joint smoothers.
        The `gap` is 0, since fits with a gap have no additive stage.
        """
        weighted = [(self.mixing_weight, [self._stages_left_out(rows, factor)])]
        if self.mixing_weight < 1:
            joint = self.joint.predict_left_out(rows, factor)
            weighted.append((1 - self.mixing_weight, [joint]))
        return weighted_sum(weighted)[0]

    def _stages_left_out(self, rows, factor=1.0):
        """Predict training rows without themselves by both stages, (n_rows, n_outputs).

        Arguments are those of `predict_left_out`.
        """
        left_out = self.values_2d[rows] - self._loo_residuals[rows]
        if self.second_stage is None:
            return left_out
        if factor == 1:
            smoother = self._smoother_of_residuals_and_functions
            return left_out + self._second_left_out(smoother.predict_left_out(rows), rows)
        # In wider windows, the change of the first stage without a row is neglected.
        return left_out + self.second_stage.predict_left_out(rows, factor)

    def with_best_weight(self):
        """Return the mixture whose weight v minimises the squared leave-one-out residuals."""
        present = np.flatnonzero(self.row_weights)
        rows = evenly_spread(present, MAX_SEARCH_ROWS)
        std = positive_std(column_stats(self.values_2d, self.key_weights))
        values = self.values_2d[rows]
        stage_residuals = (values - self._stages_left_out(rows)) / std
        joint_residuals = (values - self.joint.predict_left_out(rows)) / std
        weight = best_mixing_weight(stage_residuals, joint_residuals, self.row_weights[rows])
        return self.replace(mixing_weight=weight)


def best_mixing_weight(stage_residuals, joint_residuals, weights):
    """Return the weight v of the stages in the mixture with the smallest squared residuals.

    Rows with outlying residuals are ignored. The weight is 0 if the squared residuals do not
    depend on it.

    Parameters
    ----------
    stage_residuals, joint_residuals : ndarray of shape (n_rows, n_outputs)
        Leave-one-out residuals of both stages together and of the joint smoother, in units of
        the standard deviation of each output. They may be NaN.
    weights : ndarray of shape (n_rows,)
        Weights of the rows.
    """
    residuals = np.stack([stage_residuals, joint_residuals])
    is_known = np.isfinite(residuals).all(axis=(0, 2))
    if not is_known.any():
        return 0.0
    # A row counts only if neither residual is above `_MAX_MEDIANS` medians, since a few huge
    # residuals would decide alone.
    sizes = np.abs(residuals[:, is_known]).max(axis=2)
    limits = _MAX_MEDIANS * np.median(sizes, axis=1, keepdims=True)
    rows = np.flatnonzero(is_known)[(sizes <= limits).all(axis=0)]
    # The residuals of the mixture are joint - v d with d = joint - stages. The sum of their
    # squares is smallest at v = joint'd / d'd.
    joint = joint_residuals[rows]
    difference = joint - stage_residuals[rows]
    weighted = weights[rows, None] * difference
    squares = np.sum(weighted * difference)
    return float(np.clip(np.sum(weighted * joint) / squares, 0, 1)) if squares else 0.0


def _predict(terms, coefficients, shape, dtype, X):
    """Predict queries by additive terms; return a list of one array (n_queries, *shape).

    `coefficients` (n_columns, n_outputs) are those of the columns of the `AdditiveTerms`.
    """
    predictions = predict_sums(terms, coefficients, X)
    return [predictions.reshape(len(X), *shape).astype(dtype)]


def _slopes(terms, coefficients, shape, dtype, X):
    """Compute derivatives of the predictions of `_predict`, in a list of one array."""
    return [terms.slopes(X, coefficients).reshape(len(X), *shape).astype(dtype)]


def _fields_of_joint(smoother):
    """Return the fields that a mixture has in common with `FittedSmoother`, by name."""
    fields = dataclasses.fields(FittedSmoother)
    return {field.name: getattr(smoother, field.name) for field in fields}
