"""Methods that the regressor and the classifier have in common, and their parameters."""

import dataclasses
import math
import numbers
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats.mstats import mquantiles
from sklearn.base import MultiOutputMixin, TransformerMixin, clone, is_classifier
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from .._base import parameters
from .._blocks import IN_MEMORY, blocks, blocks_of_queries
from .._columns import ORDERED, Columns, MixedRows
from .._labels import targets_at
from .._levels import encode_levels
from .._shapley import FeatureEffectsMixin, mixed_rows
from .._spline_ridge import SplineColumns
from .._validation import check_bandwidth, check_choice, check_positive
from ..attention._tables import Explanation, explained, heaviest
from ..kernels import RadialKernel
from ..kernels._base import as_kernel
from ._additive import AdditiveColumns, AdditivePart
from ._averages import AverageMember
from ._distribution import ErrorDistribution
from ._encodings import ENCODINGS, Encoding, TrainingRows
from ._fitted import Fitted
from ._kernel import LearnedKernel
from ._ridge import Partition, RidgeMember

READOUTS = ("average", "solve")
# Values of a feature at which its partial dependence is computed, as many as scikit-learn has.
_MAX_VALUES = 100


@parameters
class KernelAttention(FeatureEffectsMixin, MultiOutputMixin, TransformerMixin, MixedRows):
    """Mixin of estimators that hold a Fitted: parameters, and views of what is learned."""

    _reads_missing = True
    _views = ("feature_relevance_",)
    _held = (
        Columns, Encoding, Fitted, LearnedKernel, Partition, RidgeMember, AverageMember,
        TrainingRows, ErrorDistribution, AdditivePart, AdditiveColumns, SplineColumns,
    )  # fmt: skip

    readout: str = "solve"
    _: KW_ONLY
    kernel: str | RadialKernel = "gaussian"
    encodings: Any = ENCODINGS
    n_folds: int | str = "auto"
    max_steps: int | str = "auto"
    bandwidth: str | ArrayLike = "learned"
    ridge: str | float = "learned"
    categorical_features: Any = "from_dtype"
    boosting: str | None = "auto"
    random_state: int | np.random.RandomState | None = 0

    def transform(self, X) -> np.ndarray:
        """Rows in the learned space, where near rows have similar targets.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_queries, n_columns)
            The columns of all encodings in learned length-scales, those of the first member:
            its kernel falls with the Euclidean distance between these rows.
        """
        X = self._read_rows(X)
        return self._fitted.space(X).astype(self.keys_.dtype, copy=False)

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features; if given, those of `fit`.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        columns = [
            name for encoding in self.encodings_ for name in encoding.column_names(names)
        ]
        return np.array(columns, dtype=object)

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

        Notes
        -----
        Weights are effective: a prediction is the sum of weights times targets, over all rows,
        which also share the mean of the targets, and the same for all outputs. With
        ``readout="solve"`` many are negative. A classifier's are those of the scores of its
        classes, before the link. Rows of weight 0 in `fit` do not count. The additive part has
        weights too, which are contained: a row that shares only one feature with the query can
        have a large one. Where boosted trees are stacked, the weights are those of all but the
        trees.
        """
        return explained(X, self._explain(X, k), self._row_labels)

    def _explain(self, X, k):
        X, fitted = self._read_rows(X), self._fitted
        indices, weights = heaviest(fitted.weights, X, len(self.keys_), k)
        return Explanation(fitted.positions[indices], weights, targets_at(self, indices))

    def local_slopes(self, X) -> np.ndarray:
        """Slopes of predictions along the features.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        slopes : ndarray of shape (n_queries, n_features) or (n_queries, n_outputs, n_features)
            In units of the target for one unit of the feature; 0 for categories and for missing
            cells. For "solve" the gradient of the prediction, which takes steps at the edges
            of bins; 0 for "average". The outputs of a classifier are its classes, before the
            link. Where boosted trees are stacked, they are the slopes of all but the trees.
        """
        X = self._read_rows(X)
        slopes = self._fitted.slopes(X).astype(self.keys_.dtype, copy=False)
        return slopes[:, 0] if self.values_.ndim == 1 else slopes

    def partial_dependence(self, X, feature, values: ArrayLike | None = None) -> Bunch:
        """Mean predictions over rows if one feature has each of some values.

        It returns what :func:`sklearn.inspection.partial_dependence` returns, which predicts
        all rows again for each value. If the kernel is Gaussian, one pass over the rows serves
        all values here, in about a twentieth of the time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to average over.
        feature : str or int
            Name or position of the feature.
        values : array-like of shape (n_values,), default=None
            Values of the feature, levels if it is a category. By default all levels, or up to
            100 values of a number between its 0.05 and 0.95 quantiles.

        Returns
        -------
        dependence : Bunch
            ``grid_values`` is a list with the array of values, ``average``
            (n_outputs, n_values) has the mean predictions, and ``individual``
            (n_outputs, n_samples, n_values) those of each row. Outputs are targets or classes;
            of two classes the second one.

        Raises
        ------
        ValueError
            If there is no such feature, or values are none, not one-dimensional, or infinite.

        Examples
        --------
        >>> from sklearn.datasets import make_friedman1
        >>> from sklearn.inspection import PartialDependenceDisplay
        >>> from sklearn_attention import KernelAttentionRegressor
        >>> X, y = make_friedman1(200, random_state=0)
        >>> model = KernelAttentionRegressor().fit(X, y)
        >>> dependence = model.partial_dependence(X, 3, values=[0.2, 0.8])
        >>> dependence["average"].round(0)  # a line of slope 10
        array([[11., 17.]])
        >>> dependence = model.partial_dependence(X, 3)
        >>> display = PartialDependenceDisplay(
        ...     [dependence], features=[(3,)], feature_names=list("abcdefghij"), target_idx=0,
        ...     deciles={},
        ... ).plot()
        """
        rows = self._read_rows(X)
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_)).tolist()
        is_valid = isinstance(feature, str | numbers.Integral) and not isinstance(feature, bool)
        if not is_valid or (feature not in names and feature not in range(len(names))):
            raise ValueError(f"feature={feature!r} is none of {names}: pass one of these.")
        j = names.index(feature) if feature in names else feature
        levels = self.columns_.categories[j]
        if values is None:
            values = _usual_values(rows[:, j]) if levels is None else levels
        raw_values = values
        try:
            values = np.array(values, dtype=float if levels is None else object)
            is_finite = levels is not None or not np.isinf(values).any()
        except (TypeError, ValueError, OverflowError):
            values, is_finite = np.zeros(0), False
        if values.ndim != 1 or not len(values) or not is_finite:
            raise ValueError(
                f"values={raw_values!r} of feature {names[j]!r} are not a list of one or more "
                "finite numbers or levels: pass values such as [0.1, 0.5], or rows X in which "
                "the feature is not always missing."
            )
        codes = values
        if levels is not None:
            import pandas as pd

            is_ordered = self.columns_.kinds[j] == ORDERED
            codes = encode_levels(pd.Series(values, name=names[j]), levels, is_ordered)
        of_values = np.repeat(rows[:1], len(codes), axis=0)
        of_values[:, j] = codes
        mask, parts = np.arange(rows.shape[1])[None] == j, []
        for block in blocks_of_queries(len(rows), len(codes) * self._fitted.n_outputs):
            of_members = self._fitted.predict_mixed(of_values, rows[block], mask)
            mixed = None
            if any(self.boosters_):  # which read the rows
                mixed = mixed_rows(of_values, rows[block], mask).reshape(-1, rows.shape[1])
            response = self._response(mixed, of_members.reshape(-1, of_members.shape[3]))
            parts.append(response.reshape(len(codes), -1, response.shape[1]))
        individual = np.concatenate(parts, axis=1).T.astype(self.keys_.dtype)
        return Bunch(
            grid_values=[values], average=individual.mean(axis=1), individual=individual
        )

    def _mean_scores(self, rows, background, masks):
        """Average scores of mixed rows over the background, see `FeatureEffectsMixin`."""
        # Predictions of numbers are linear in those of the members, which may be averaged
        # first. Log-odds are not.
        is_linear = not is_classifier(self)
        of_members = self._fitted.predict_mixed(rows, background, masks, mean=is_linear)
        if not any(self.boosters_):
            return self._average(None, of_members)
        # Trees read the mixed rows, those of some masks at a time.
        size, means = max(1, IN_MEMORY // (len(rows) * background.size)), []
        for block in blocks(len(masks), size):
            mixed = mixed_rows(rows, background, masks[block])
            shape = *mixed.shape[:3], of_members.shape[3]
            mixed = mixed.reshape(-1, rows.shape[1])
            means.append(self._average(mixed, np.broadcast_to(of_members[block], shape)))
        return np.concatenate(means)

    def _average(self, mixed, of_members):
        """Average scores over the third axis of predictions of members; trees read `mixed`."""
        predictions = self._predict_rows(mixed, of_members.reshape(-1, of_members.shape[3]))
        return self._scores_of(predictions).reshape(*of_members.shape[:3], -1).mean(axis=2)

    @property
    def feature_relevance_(self):
        """Share of each feature in the mean squared distance, a Series by its name."""
        import pandas as pd

        return pd.Series(self._fitted.relevance, _check_feature_names_in(self, None))

    @property
    def _n_features_out(self):
        return sum(map(len, self.encodings_))


def _usual_values(numbers):
    """Return the values at which scikit-learn computes partial dependence of numbers."""
    numbers = numbers[~np.isnan(numbers)]
    values = np.unique(numbers)
    if len(values) < _MAX_VALUES:
        return values
    return np.linspace(*mquantiles(numbers, [0.05, 0.95]), _MAX_VALUES)


@dataclasses.dataclass(frozen=True)
class Options:
    """Choices of the user; None where the number of rows or learning decides."""

    formula: RadialKernel
    readout: str = "solve"
    encodings: tuple = ENCODINGS
    n_folds: int | None = None
    max_steps: int | None = None
    bandwidth: np.ndarray | None = None  # (n_features,)
    ridge: float | None = None
    boosting: bool = False
    seed: int = 0

    @classmethod
    def of(cls, estimator):
        """Those of an estimator that has read its training rows."""
        given = estimator.get_params(deep=False)
        check_choice("readout", given["readout"], READOUTS)
        bandwidth, n_features = given["bandwidth"], estimator.n_features_in_
        learned = isinstance(bandwidth, str)
        if learned:
            check_choice("bandwidth", bandwidth, ("learned",))
        encodings = _encodings(given)
        if not learned:
            bandwidth = np.broadcast_to(check_bandwidth(bandwidth, n_features), n_features)
        n_folds = given["n_folds"]
        return cls(
            formula=_formula(given),
            readout=given["readout"],
            encodings=encodings,
            n_folds=None
            if n_folds == "auto"
            else check_positive("n_folds", n_folds, integer=True),
            max_steps=_max_steps(given["max_steps"]),
            bandwidth=None if learned else bandwidth,
            ridge=_ridge(given["ridge"]),
            boosting=_boosting(given["boosting"]) and learned,
            seed=check_random_state(given["random_state"]).randint(2**31 - 1),
        )

    @property
    def learns(self):
        """True if length-scales are learned."""
        return self.bandwidth is None

    def n_steps(self, usual):
        """Number of gradient steps."""
        return usual if self.max_steps is None else self.max_steps

    def fix(self, kernel, standard):
        """The kernel with the given parameters, and which of its parameters are learned.

        `standard` is the standard encoding, in whose units a given bandwidth is written.
        """
        free, values = kernel.is_learned, kernel.values.copy()
        if self.bandwidth is not None:
            free[:-1] = False
            scales = -np.log(self.bandwidth)
            scales[standard.numeric] += np.log(standard.scale)
            kernel.named(values)["scale"][:] = scales
        if self.ridge is not None:
            free[-1] = False
            with np.errstate(divide="ignore"):
                values[-1] = 0.5 * np.log(self.ridge)
        return kernel.with_values(values), free


def _max_steps(given):
    if isinstance(given, str) and given == "auto":
        return None
    whole = isinstance(given, numbers.Integral) and given >= 0
    if not whole or isinstance(given, bool):
        raise ValueError(
            f"max_steps={given!r} is not valid: pass 'auto', or an integer of 0 or more, where "
            "0 keeps the length-scales at their starting values."
        )
    return int(given)


def _ridge(given):
    if isinstance(given, str) and given == "learned":
        return None
    valid = isinstance(given, numbers.Real) and not isinstance(given, bool)
    if not valid or not 0 <= given < math.inf:
        raise ValueError(
            f"ridge={given!r} is not valid: pass 'learned', or a finite number that is not "
            "negative."
        )
    return float(given)


def _boosting(given):
    if given is not None and not (isinstance(given, str) and given == "auto"):
        raise ValueError(
            f"boosting={given!r} is unknown: pass None, or 'auto' to stack boosted trees where "
            "held-out rows are predicted better with them."
        )
    return given is not None


def _encodings(parameters):
    """Names of the encodings, in their own order."""
    given, bandwidth = parameters["encodings"], parameters["bandwidth"]
    try:
        names = (given,) if isinstance(given, str) else tuple(given)
    except TypeError:
        names = ()
    for name in names:
        check_choice("encodings", name, ENCODINGS)
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"encodings={given!r} is not valid: name at least one of {sorted(ENCODINGS)}, each "
            "once."
        )
    if not isinstance(bandwidth, str):
        check_bandwidth(bandwidth, np.size(bandwidth))
    if not isinstance(bandwidth, str) and names != ("standard",):
        raise ValueError(
            f"bandwidth={bandwidth!r} is in the features' own units, which is possible only "
            f"with encodings='standard', got encodings={given!r}: pass encodings='standard', "
            "or bandwidth='learned'."
        )
    return tuple(sorted(names, key=ENCODINGS.index))


def _formula(parameters):
    """The kernel as a formula of the distance."""
    given, readout = parameters["kernel"], parameters["readout"]
    kernel = as_kernel(clone(given, safe=False))
    if not isinstance(kernel, RadialKernel) or kernel.signed:
        raise ValueError(
            f"kernel={given!r} is not a positive kernel of the distance: choose a radial "
            "one, such as 'gaussian', 'matern52' or 'rational_quadratic'."
        )
    if readout == "solve" and not kernel.positive_definite:
        raise ValueError(
            f"kernel={given!r} is not positive definite, so that readout={readout!r} has no "
            "solution: choose 'gaussian', 'matern52' or 'rational_quadratic', or "
            "readout='average'. If your own kernel is positive definite, set "
            "positive_definite = True on its class."
        )
    return kernel
