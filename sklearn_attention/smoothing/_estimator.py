"""Base class of the regressors and the classifier: training rows, and a bandwidth.

A fitted estimator has a smoother, from which all predictions are computed: the training rows
(its keys), their targets (its values), a kernel, and one or several local polynomials
(`_fitted_smoother`). A fit of the regressors may mix them with an additive stage, a sum of
functions of single features (`_additive_mixture`).
"""

import copy
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import warn_user
from .._blocks import append_rows, own_copy
from .._columns import MixedRows
from .._labels import targets_at
from .._partitions import need_all_rows, weights_or_ones
from .._report import Report
from .._sample_weight import check_key_weights, clip_weightless_rows, zero_tiny_weights
from .._shapley import FeatureEffectsMixin
from .._spline_ridge import SplineColumns
from .._validation import check_choice, check_flag, is_one_of
from ..attention._reduce import ALGORITHMS
from ..attention._solve import is_degree, refuse_signed
from ..attention._sums import EMPTY_POLICIES
from ..attention._tables import Explanation, explained, heaviest
from ..bandwidth._neighbors import AdaptiveBandwidth
from ..bandwidth._rules import SMOOTHER_RULES
from ..bandwidth._search import Rows, bandwidth_rule
from ..kernels import Kernel, ProductKernel
from ..kernels._base import as_kernel
from ..kernels._product_kernel import mixed_kernel
from ._additive import AdditiveTerms, learn_terms
from ._additive_mixture import AdditiveMixture, resolve_structure
from ._degrees import AVERAGED_PRECISION, choose_members, degrees_to_average
from ._errors import ErrorSettings
from ._fitted_smoother import FittedSmoother, single_member, stored_smoother
from ._robust import weight_robustly, with_mean_weight_1

# If no bandwidth was searched, the first row is predicted from at most this many rows, so that
# a kernel or a bandwidth that fails does so in `fit`.
_CHECKED_ROWS = 2**12
# Attributes that a search sets, which are removed before the next search.
_CHOSEN = {"bandwidth_search_", "criterion_value_", "relevance_"}


def _field(field, *, may_be_none=False):
    """Return a property of an estimator that is a field of its smoother.

    `field` is the name; dots name the field of a field. A field that is None has no attribute,
    unless `may_be_none`.
    """

    def get(self):
        value = operator.attrgetter(field)(self._smoother)
        if value is None and not may_be_none:
            name = field.rpartition(".")[2]
            raise AttributeError(
                f"this {type(self).__name__} was fitted without {name}: its documentation "
                "says which parameters make it."
            )
        return value

    return property(get)


class KernelSmoother(FeatureEffectsMixin, MultiOutputMixin, MixedRows):
    """Base class of the estimators that average the targets of their training rows."""

    _keeps_partitions = True
    _held = (
        *MixedRows._held,
        FittedSmoother,
        ErrorSettings,
        AdditiveMixture,
        AdditiveTerms,
        SplineColumns,
    )
    _builders = (("FittedSmoother", stored_smoother), ("AverageOfDegrees", stored_smoother))
    _views = (
        "keys_",
        "values_",
        "key_weights_",
        "kernel_",
        "bandwidth_",
        "degree_",
        "n_neighbors_",
        "robustness_weights_",
    )
    keys_, values_ = _field("keys"), _field("values")
    key_weights_ = _field("errors.given_weights", may_be_none=True)
    kernel_, bandwidth_, degree_ = _field("kernel"), _field("bandwidth"), _field("degree")
    n_neighbors_ = _field("n_neighbors")
    robustness_weights_ = _field("error_settings.robustness")
    # Values of the parameters that only estimators with local polynomials have.
    degree, structure = 0, "joint"
    # Values of the parameters that only regressors with one kernel have.
    robust, gap = False, 0
    # Whether several outputs count alike in a search, whatever their units.
    _standardizes_outputs = True

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "gaussian",
        *,
        bandwidth: str | ArrayLike | AdaptiveBandwidth = "penalized-loo",
        per_feature: bool | str = "auto",
        categorical_features: Any = "from_dtype",
        algorithm: str = "auto",
        empty: str = "nearest",
        gap: int = 0,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.per_feature = per_feature
        self.categorical_features = categorical_features
        self.algorithm = algorithm
        self.empty = empty
        self.gap = gap
        self.random_state = random_state

    def explain(self, X, k: int = 5) -> Any:
        """Training rows of largest weight in each prediction.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries whose predictions are explained.
        k : int, default=5
            Number of training rows; at most all of them.

        Returns
        -------
        explanation : Explanation or data frame
            Named tuple of ``indices``, ``weights`` and ``values``, the heaviest first. If `X`
            is a data frame, a frame of its library with k rows for each query, in columns
            "query", "row", "weight" and "value" ("value_0", "value_1" ... of several outputs).
            Queries and rows are named by the index of `X` and of the frame in `fit`, by their
            positions where there is none.
        """
        return explained(X, self._explain(X, k), self._row_labels)

    def _explain(self, X, k):
        """Return the `Explanation` of `explain`, a named tuple of arrays."""
        smoother = self._smoother
        need_all_rows("explanations", smoother.keys)
        indices, weights = heaviest(smoother.hat_matrix, self._read_rows(X), len(self.keys_), k)
        return Explanation(indices, weights, targets_at(self, indices))

    def smoother_matrix(self, X) -> np.ndarray:
        r"""Effective weight of every training row in every prediction.

        .. math:: \hat m(x) = \sum_i S_i(x)\, y_i

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        S : ndarray of shape (n_queries, n_samples)
            ``S @ y`` are the predictions. Rows sum to 1; local polynomials have negative
            entries.
        """
        smoother = self._smoother
        need_all_rows("effective weights", smoother.keys)
        return smoother.hat_matrix(self._read_rows(X))

    @property
    def algorithm_(self):
        """Algorithm that predicts as many queries as there are training rows, up to a million.

        "linear": in time linear in queries and rows; "near": each query with the rows near
        it; "dense": all pairs.
        """
        return self._smoother.algorithm_name

    @property
    def _smoother(self):
        """The smoother; raises NotFittedError before `fit`."""
        check_is_fitted(self)
        return self.smoother_

    def _store(self, X, values, sample_weight, *, append=False):
        """Store rows and values, and choose the bandwidth for them; return `self`.

        Parameters
        ----------
        X : array of shape (n, n_features)
            The rows as numbers, and as codes of levels.
        values : array of shape (n,) or (n, n_outputs)
            Their targets, or indicators of their classes.
        sample_weight : array-like of shape (n,) or None
            Their weights; None for 1.
        append : bool, default=False
            Whether the rows are added to those that are stored.
        """
        # 1. Read the weights, and append rows, values and weights to those that are stored.
        weights = check_key_weights(sample_weight, X)
        if append:
            if weights is not None or self.key_weights_ is not None:
                weights = np.ones(len(X)) if weights is None else weights
                given_row_weights = self.smoother_.errors.given_row_weights
                weights = zero_tiny_weights(append_rows(given_row_weights, weights))
            X, values = append_rows(self.keys_, X), append_rows(self.values_, values)
        else:
            X, values = own_copy(X), own_copy(values)
        X, values = clip_weightless_rows(X, weights), clip_weightless_rows(values, weights)
        # 2. Check the parameters.
        if not (is_one_of(self.degree, "auto") or is_degree(self.degree)):
            raise ValueError(f"degree={self.degree!r} is not valid: pass 'auto', 0, 1, 2 or 3.")
        check_choice("empty", self.empty, EMPTY_POLICIES)
        check_choice("algorithm", self.algorithm, ALGORITHMS)
        check_choice("structure", self.structure, ("auto", "joint", "additive"))
        self._learn_bounds(values, weights)
        # 3. Set the smoother. A search has predicted rows already; otherwise one is predicted.
        for name in vars(self).keys() & _CHOSEN:
            delattr(self, name)
        warn_user(*self._set_smoother(X, values, weights))
        if not hasattr(self, "bandwidth_search_"):
            check_first_row(self.smoother_)
        self._kept["parameters"] = copy.deepcopy(self.get_params(deep=False))
        return self

    def _learn_bounds(self, values, weights):
        """Set the bounds of targets; only regressors have any."""

    def _set_smoother(self, keys, values, weights):
        """Set `smoother_` for rows: choose kernel, bandwidth and weights.

        Returns warnings, which the caller issues. `weights` (n_rows,) are those that were
        passed to `fit`; None for 1.
        """
        degree = 1 if self.degree == "auto" else int(self.degree)
        # This is a placeholder; `_choose` sets the kernel and the bandwidth.
        self.smoother_ = FittedSmoother(
            keys,
            values,
            weights,
            kernel=None,
            columns=self.columns_,
            member_fields=single_member(degree, bandwidth=None),
            n_neighbors=None,
            empty=self.empty,
            algorithm=self.algorithm,
            error_settings=ErrorSettings(
                gap=self.gap, given_weights=weights, random_state=self.random_state
            ),
        )
        return self._choose()

    def _smoother_of(self, values):
        """Return the smoother that a fit chooses for other values of the training rows.

        `values` have the shape (n_rows,) or (n_rows, n_outputs).
        """
        # The parameters are those of the fit. Files of version 0.2.0 have not kept them; the
        # current parameters then take their place.
        parameters = self._kept.get("parameters", self.get_params(deep=False))
        model = type(self)(**parameters)
        model.columns_ = self.columns_
        model._set_smoother(self.keys_, values, self.key_weights_)
        return model.smoother_

    def _choose(self):
        """Set the kernel, bandwidths and weights of `smoother_`; return warnings.

        Before, `smoother_` has the training rows and a placeholder for the kernel.
        """
        # 1. The rows get robust weights.
        kernel, rule = self._check_kernel(), self._bandwidth_rule()
        rows, doubts = self._rows().compared_by(kernel), []
        smoother = self.smoother_.replace(columns=rows.columns)
        if check_flag("robust", self.robust):
            rows, smoother, doubts = weight_robustly(rows, smoother, rule, kernel)

        def smoother_at(degree, bandwidth, n_neighbors=None):
            """Return the smoother of one degree at a bandwidth, adaptive with `n_neighbors`."""
            return smoother.replace(
                kernel=mixed_kernel(kernel, rows.columns, bandwidth),
                bandwidth=bandwidth,
                n_neighbors=n_neighbors,
                degree=degree,
            )

        # 2. The degrees are given, or those that "auto" averages.
        report = self._report()
        # The number of bandwidths that a search tries is not known beforehand.
        report.begin(None if rule.searches else 0)
        # A bandwidth is searched on rows without outliers among the features.
        searched = rows.without_outliers() if smoother.is_in_memory else rows
        degrees = [smoother.degree]
        if self.degree == "auto":
            degrees = degrees_to_average(searched, self.smoother_.n_rows, rule, kernel)
            # All degrees are searched on the same sample.
            seed = check_random_state(self.random_state).randint(2**31)
            precision = AVERAGED_PRECISION if len(degrees) > 1 else rows.precision
            searched = searched.with_options(random_state=seed, precision=precision)
        structure = resolve_structure(self, rows, rule, kernel, len(degrees))
        terms = None if structure == "joint" else self._learn_terms(rows)
        if self.structure == "additive":
            # A rule of thumb takes the sum of the weights for the number of rows.
            degrees, searched = degrees[:1], with_mean_weight_1(searched)
        # 3. Bandwidths are chosen for each degree.
        search = functools.partial(choose_members, degrees, rule, kernel, smoother_at, report)
        choice, self.smoother_, ended = search(searched)
        vars(self).update(choice.attributes)
        # 4. The joint smoother is mixed with an additive stage and a smoother of its residuals.
        if terms is not None and not ended:
            mixture = self.smoother_ = AdditiveMixture.from_joint(self.smoother_, terms)
            if structure == "mixture":
                residuals = searched.with_options(values=mixture.residuals(mixture.values_2d))
                _, second, _ = search(residuals, predictor=mixture.with_second_stage)
                self.smoother_ = mixture.with_second_stage(second).with_best_weight()
        report.end()
        # Warnings of a search are about the joint smoother, which "additive" does not use.
        is_used = terms is None or structure == "mixture"
        return [*(choice.warnings if is_used else ()), *doubts]

    def _rows(self):
        """Return the training rows as `Rows`, which searches for bandwidths take.

        Their options are parameters: `empty` says what is predicted where no row has weight,
        and leave-one-out also leaves out the `gap` rows before and after each.
        """
        smoother = self.smoother_
        return Rows(
            X=smoother.keys,
            values=smoother.values_2d,
            columns=smoother.columns,
            sample_weight=smoother.key_weights,
            degree=smoother.degree,
            empty=self.empty,
            algorithm=self.algorithm,
            per_feature=self.per_feature,
            gap=self.gap,
            standardize=self._standardizes_outputs,
            random_state=self.random_state,
        )

    def _bandwidth_rule(self):
        """Return the rule that chooses bandwidths; keep its name for the summary."""
        rule = bandwidth_rule("bandwidth", self.bandwidth, SMOOTHER_RULES)
        name = self.bandwidth if isinstance(self.bandwidth, str) else "given"
        if self.structure == "additive" and rule.serves_each_degree and rule.searches:
            # Only errors are averaged in windows, for which a rule of thumb suffices.
            name, rule = "scott", SMOOTHER_RULES["scott"]
        self._keep(rule=name)
        return rule

    def _learn_terms(self, rows):
        """Learn the `AdditiveTerms` of the additive stage; return None if nothing varies.

        `rows` (a `Rows`) has outliers among the features with their weights. Columns that are
        learned without an outlier would be far from 0 there, and the outlier alone would
        determine their coefficients.
        """
        weights = weights_or_ones(rows.X, rows.sample_weight)
        terms = learn_terms(rows.X, rows.values, rows.columns, weights)
        if terms is None and self.structure == "additive":
            raise ValueError(
                f"structure='additive' found nothing to fit in X with n_samples="
                f"{len(rows.X)} and {rows.X.shape[1]} features: y and a feature have to vary, "
                "and there must not be hundreds of features or levels. Pass structure='joint'."
            )
        return terms

    def _check_kernel(self):
        """Return a copy of the kernel; raise ValueError if the fit cannot use it."""
        # It is a copy, since changing the parameter later must not change a fitted estimator.
        kernel = as_kernel(clone(self.kernel, safe=False))
        if self.degree not in ("auto", 0):
            refuse_signed(kernel, self.kernel)
        is_product = isinstance(kernel, ProductKernel)
        names_columns = is_product and isinstance(kernel.kernels, (list, tuple))
        if names_columns and self.columns_.categorical:
            raise ValueError(
                f"kernel={self.kernel!r} names columns itself, but X has categorical columns: "
                "pass only the kernel of the numeric columns, or X as numbers."
            )
        return kernel

    def _report(self):
        """Return the `Report`, which tells callbacks of each bandwidth that is tried."""
        y = functools.partial(targets_at, self, slice(None))
        return Report(self, X=self.keys_, y=y, metadata={"sample_weight": self.key_weights_})


def check_first_row(smoother):
    """Predict the first row by a smoother of few rows, so that `fit` raises errors of it."""
    # Rows without any weight would be an error of their own.
    first = smoother.first(_CHECKED_ROWS).replace(empty="nan")
    if first.key_weights is not None and not first.key_weights.any():
        first = first.replace(key_weights=None)
    first.predict(first.keys[:1])
