"""Base class of the regressors and the classifier: training rows, and a bandwidth."""

import copy
import functools
from collections.abc import Callable
from dataclasses import replace
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
from .._partitions import is_partitioned, need_all_rows
from .._report import Report
from .._shapley import FeatureEffectsMixin
from .._spline_ridge import SplineColumns
from .._validation import (
    check_choice,
    check_flag,
    check_key_weights,
    clip_weightless_rows,
    is_one_of,
    zero_tiny_weights,
)
from ..attention._reduce import ALGORITHMS
from ..attention._solve import is_degree, refuse_signed
from ..attention._sums import EMPTY_POLICIES
from ..attention._tables import Explanation, explained, heaviest
from ..bandwidth._neighbors import AdaptiveBandwidth, NeighborSearch
from ..bandwidth._rules import SMOOTHER_RULES
from ..bandwidth._search import Rows, bandwidth_rule
from ..kernels import Kernel, ProductKernel
from ..kernels._base import as_kernel
from ..kernels._product_kernel import mixed_kernel
from ._additive import AdditiveMixture, AdditiveTerms, learn_terms
from ._degrees import AVERAGED_PRECISION, choose_members, degrees_to_average
from ._fitted_smoother import FittedSmoother, counts_of, stored_smoother, weighed
from ._robust import doubts_of_robustness, robustness, with_mean_weight_1

# Rows of which the first is predicted when there was no search for a bandwidth.
_CHECKED_ROWS = 2**12
# Attributes of a search, which are removed before another.
_CHOSEN = {"bandwidth_search_", "criterion_value_", "relevance_"}


def _field(field, *, may_be_none=False):
    """Return a property that is a field of the fitted smoother."""

    def get(self):
        value = getattr(self._smoother, field)
        if value is None and not may_be_none:
            raise AttributeError(
                f"this {type(self).__name__} was fitted without {field}: its documentation "
                "says which parameters make it."
            )
        return value

    return property(get)


class KernelSmoother(FeatureEffectsMixin, MultiOutputMixin, MixedRows):
    """Base class of the estimators that average the targets of their training rows."""

    _keeps_partitions = True
    _held = (
        *MixedRows._held, FittedSmoother, AdditiveMixture, AdditiveTerms, SplineColumns,
    )  # fmt: skip
    _builders = (("FittedSmoother", stored_smoother), ("AverageOfDegrees", stored_smoother))
    _views = (
        "keys_", "values_", "key_weights_", "kernel_", "bandwidth_", "degree_", "n_neighbors_",
        "robustness_weights_",
    )  # fmt: skip
    keys_, values_ = _field("keys"), _field("values")
    key_weights_ = _field("weights_as_given", may_be_none=True)
    kernel_, bandwidth_, degree_ = _field("kernel"), _field("bandwidth"), _field("degree")
    n_neighbors_, robustness_weights_ = _field("n_neighbors"), _field("robustness")
    # Parameters of those with local polynomials.
    degree, structure = 0, "joint"
    # Parameters of regressors with one kernel.
    robust, gap = False, 0
    # Whether a search lets several outputs count alike, whatever their units.
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
        smoother = self._smoother
        need_all_rows("explanations", smoother.keys)
        indices, weights = heaviest(smoother.effects, self._read_rows(X), len(self.keys_), k)
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
        return smoother.effects(self._read_rows(X))

    @property
    def algorithm_(self):
        """Algorithm that predicts as many queries as there are training rows, up to a million.

        "linear": in time linear in queries and rows; "near": each query with the rows near
        it; "dense": all pairs.
        """
        return self._smoother.fastest

    @property
    def _smoother(self):
        check_is_fitted(self)
        return self.smoother_

    def _store(self, X, values, sample_weight, *, append=False):
        """Store keys and values, and choose the bandwidth for them."""
        weights = check_key_weights(sample_weight, X)
        if append:
            if weights is not None or self.key_weights_ is not None:
                weights = np.ones(len(X)) if weights is None else weights
                weights = zero_tiny_weights(append_rows(self.smoother_.given_counts, weights))
            X, values = append_rows(self.keys_, X), append_rows(self.values_, values)
        else:
            X, values = own_copy(X), own_copy(values)
        X, values = clip_weightless_rows(X, weights), clip_weightless_rows(values, weights)
        if not (is_one_of(self.degree, "auto") or is_degree(self.degree)):
            raise ValueError(f"degree={self.degree!r} is not valid: pass 'auto', 0, 1, 2 or 3.")
        check_choice("empty", self.empty, EMPTY_POLICIES)
        check_choice("algorithm", self.algorithm, ALGORITHMS)
        check_choice("structure", self.structure, ("auto", "joint", "additive"))
        for name in vars(self).keys() & _CHOSEN:
            delattr(self, name)
        warn_user(*self._smooth(X, values, weights))
        if not hasattr(self, "bandwidth_search_"):
            check_first_row(self.smoother_)
        self._kept["parameters"] = copy.deepcopy(self.get_params(deep=False))
        return self

    def _smooth(self, keys, values, weights):
        """Set the smoother of rows, with all that is chosen for them; return warnings."""
        degree = 1 if self.degree == "auto" else int(self.degree)
        # This is a placeholder; `_choose` sets the kernel and the bandwidth.
        self.smoother_ = FittedSmoother(
            keys, values, weights, kernel=None, columns=self.columns_,
            member_fields=((degree, None, 1.0),), n_neighbors=None, empty=self.empty,
            algorithm=self.algorithm, gap=self.gap, given_weights=weights,
            random_state=self.random_state,
        )  # fmt: skip
        return self._choose()

    def _smoother_of(self, values):
        """Return the smoother that a fit chooses for other values of the training rows."""
        # By the parameters as they were; as they are in files of version 0.2.0.
        model = type(self)(**self._kept.get("parameters", self.get_params(deep=False)))
        model.columns_ = self.columns_
        model._smooth(self.keys_, values, self.key_weights_)
        return model.smoother_

    def _choose(self):
        """Set the kernel and its bandwidth for the training rows; return warnings."""
        kernel, smoother = self._check_kernel(), self.smoother_
        keys, weights = smoother.keys, smoother.key_weights
        rule = bandwidth_rule("bandwidth", self.bandwidth, SMOOTHER_RULES)
        name = self.bandwidth if isinstance(self.bandwidth, str) else "given"
        if self.structure == "additive" and rule.serves_each_degree and rule.searches:
            # Errors alone are averaged in windows, for which a rule of thumb suffices.
            name, rule = "scott", SMOOTHER_RULES["scott"]
        self._keep(rule=name)
        rows = Rows(
            X=keys, values=smoother.table, columns=self.columns_, sample_weight=weights,
            degree=smoother.degree, empty=self.empty,
            algorithm=self.algorithm, per_feature=self.per_feature,
            gap=self.gap, standardize=self._standardizes_outputs,
            random_state=self.random_state,
        ).compared_by(kernel)  # fmt: skip
        columns, robust, doubts = rows.columns, None, []
        if check_flag("robust", self.robust):
            need_all_rows("errors of robust=True", keys)
            doubts = doubts_of_robustness(rows)
            robust = robustness(rows, rule, kernel)
            weights = weighed(weights, robust)
            rows = replace(rows, sample_weight=weights)
        rows = rows.without_outliers() if smoother.is_in_memory else rows
        report = self._report()
        # The number of bandwidths that a search tries is not known beforehand.
        report.begin(None if rule.searches else 0)

        def smoother_at(degree, bandwidth, n_neighbors=None):
            """Return the smoother at a bandwidth."""
            return smoother.replace(
                kernel=mixed_kernel(kernel, columns, bandwidth), columns=columns,
                bandwidth=bandwidth, n_neighbors=n_neighbors, key_weights=weights,
                robustness=robust, degree=degree,
            )  # fmt: skip

        degrees = [smoother.degree]
        if self.degree == "auto":
            degrees = degrees_to_average(rows, smoother.n_rows, rule, kernel)
            # All degrees are searched on the same sample.
            seed = check_random_state(self.random_state).randint(2**31)
            precision = AVERAGED_PRECISION if len(degrees) > 1 else rows.precision
            rows = rows.with_options(random_state=seed, precision=precision)
        terms = self._additive_terms(rows, weights, rule, kernel, len(degrees) > 1)
        if self.structure == "additive":
            degrees, rows = degrees[:1], with_mean_weight_1(rows)
        search = functools.partial(choose_members, degrees, rule, kernel, smoother_at, report)
        choice, self.smoother_, ended = search(rows)
        vars(self).update(choice.attributes)
        if terms is not None and not ended:
            mixture = self.smoother_ = AdditiveMixture.from_joint(self.smoother_, terms)
            if self.structure == "auto":
                residuals = rows.with_options(values=mixture.residuals(mixture.table))
                _, second, _ = search(residuals, mixture.with_second_stage)
                self.smoother_ = mixture.with_second_stage(second).with_best_share()
        report.end()
        return [*choice.warnings, *doubts]

    def _additive_terms(self, rows, weights, rule, kernel, are_several):
        """Learn terms of an additive stage; None if predictions are to have none.

        They are learned from rows with outliers, too, by `weights`: without these, a line would
        be far from 0 at an outlier, which alone would determine its slope. `are_several` tells
        if several degrees are averaged.
        """
        if self.structure == "additive":
            need_all_rows("fits with structure='additive'", rows.X)
            unserved = {
                "gap=0": self.gap, "kernel='gaussian'": not kernel.decreasing,
                "bandwidth='scott'": isinstance(rule, AdaptiveBandwidth | NeighborSearch),
            }  # fmt: skip
            for remedy in (remedy for remedy, is_unserved in unserved.items() if is_unserved):
                name = remedy.partition("=")[0]
                raise ValueError(
                    f"structure='additive' does not serve {name}={getattr(self, name)!r}: pass "
                    f"{remedy}, or structure='joint'."
                )
        elif not (
            self.structure == "auto" and are_several and rule.searches and not self.gap
            and not is_partitioned(rows.X) and kernel.decreasing
            and len(rows.columns.numeric) + len(rows.columns.categorical) > 1
        ):  # fmt: skip
            return None
        terms = learn_terms(rows.X, rows.values, rows.columns, counts_of(rows.X, weights))
        if terms is None and self.structure == "additive":
            raise ValueError(
                f"structure='additive' found nothing to fit in X with n_samples="
                f"{len(rows.X)} and {rows.X.shape[1]} features: y and a feature have to vary, "
                "and there must not be hundreds of features or levels. Pass structure='joint'."
            )
        return terms

    def _check_kernel(self):
        # A copy: changing the parameter later must not change a fitted estimator.
        kernel = as_kernel(clone(self.kernel, safe=False))
        if self.degree not in ("auto", 0):
            refuse_signed(kernel, self.kernel)
        names = isinstance(kernel, ProductKernel) and isinstance(kernel.kernels, (list, tuple))
        if names and self.columns_.categorical:
            raise ValueError(
                f"kernel={self.kernel!r} names columns itself, but X has categorical columns: "
                "pass only the kernel of the numeric columns, or X as numbers."
            )
        return kernel

    def _report(self):
        y = functools.partial(targets_at, self, slice(None))
        return Report(self, X=self.keys_, y=y, metadata={"sample_weight": self.key_weights_})


def check_first_row(smoother):
    """Raise in fit the error that a prediction of the first row would raise."""
    first = smoother.first(_CHECKED_ROWS).replace(empty="nan")
    if first.key_weights is not None and not first.key_weights.any():
        first = first.replace(key_weights=None)
    first.predict(first.keys[:1])
