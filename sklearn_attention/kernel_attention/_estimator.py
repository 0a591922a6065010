"""Methods and parameters that the regressor and the classifier of kernel attention share.

Both hold a `Fitted`, an ensemble of members that predict outputs in their own units (see
`_fitted`). Arguments named `member_predictions` are such predictions (n, n_outputs).
"""

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
from .._rows_in_partitions import RowsInPartitions
from .._shapley import mixed_rows
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
from ._partition import Partition
from ._ridge import RidgeMember

READOUTS = ("average", "solve")
# Maximum number of values of a feature at which its partial dependence is computed, as in
# scikit-learn.
_MAX_VALUES = 100


@parameters
class KernelAttention(RowsInPartitions, MultiOutputMixin, TransformerMixin, MixedRows):
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
        """Map rows to the learned space, where near rows have similar targets.

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
        """Return names of the columns of :meth:`transform`.

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
        """Return the training rows of largest weight in each prediction.

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
        """Return an Explanation, whose indices are positions among the rows passed to `fit`."""
        X, fitted = self._read_rows(X), self._fitted
        indices, weights = heaviest(fitted.weights, X, len(self.keys_), k)
        return Explanation(fitted.positions[indices], weights, targets_at(self, indices))

    def local_slopes(self, X) -> np.ndarray:
        """Compute slopes of predictions along the features.

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
        """Average predictions over rows if one feature has each of several values.

        The result is that of :func:`sklearn.inspection.partial_dependence`, which predicts all
        rows again for each value. If the kernel is Gaussian, one pass over the rows serves
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
            If there is no such feature, or if `values` are empty, not one-dimensional, or
            infinite.

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
        if values is None:
            levels = self.columns_.categories[j]
            values = _usual_values(rows[:, j]) if levels is None else levels
        values, codes = self._check_values(values, j, names[j])
        # Mixed rows have feature j from one row for each value, and all others from `rows`.
        rows_with_values = np.repeat(rows[:1], len(codes), axis=0)
        rows_with_values[:, j] = codes
        mask, responses = np.arange(rows.shape[1])[None] == j, []
        for block in blocks_of_queries(len(rows), len(codes) * self._fitted.n_outputs):
            predictions = self._fitted.predict_mixed(rows_with_values, rows[block], mask)
            mixed = None
            if any(self.boosters_):
                # Trees need the mixed rows themselves.
                mixed = mixed_rows(rows_with_values, rows[block], mask)
                mixed = mixed.reshape(-1, rows.shape[1])
            response = self._response(mixed, predictions.reshape(-1, predictions.shape[3]))
            responses.append(response.reshape(len(codes), -1, response.shape[1]))
        individual = np.concatenate(responses, axis=1).T.astype(self.keys_.dtype)
        return Bunch(
            grid_values=[values], average=individual.mean(axis=1), individual=individual
        )

    def _check_values(self, raw_values, j, name):
        """Return values of feature j as an array, and their codes, which are equal for numbers.

        Raises ValueError, with the feature's `name`, if `raw_values` are not valid.
        """
        levels = self.columns_.categories[j]
        try:
            values = np.array(raw_values, dtype=float if levels is None else object)
            is_finite = levels is not None or not np.isinf(values).any()
        except (TypeError, ValueError, OverflowError):
            values, is_finite = np.zeros(0), False
        if values.ndim != 1 or not len(values) or not is_finite:
            raise ValueError(
                f"values={raw_values!r} of feature {name!r} are not a list of one or more "
                "finite numbers or levels: pass values such as [0.1, 0.5], or rows X in which "
                "the feature is not always missing."
            )
        if levels is None:
            return values, values
        import pandas as pd

        is_ordered = self.columns_.kinds[j] == ORDERED
        return values, encode_levels(pd.Series(values, name=name), levels, is_ordered)

    def _mean_scores(self, rows, background, masks):
        """Average the scores of mixed rows over the background, (n_masks, n_rows, n_scores).

        A mixed row has the features of a mask from one of `rows`, and all others from a row of
        the table `background`; see `FeatureEffectsMixin`.
        """
        # Predictions (n_masks, n_rows, n_background, n_outputs) are linear in those of the
        # members if targets are numbers, so that the mean over the background may be taken
        # first, and their third axis has length 1. Log-odds of classes are not linear.
        is_linear = not is_classifier(self)
        predictions = self._fitted.predict_mixed(rows, background, masks, mean=is_linear)
        if not any(self.boosters_):
            return self._average_scores(mixed=None, member_predictions=predictions)
        # Trees need the mixed rows themselves, which are made for a block of masks at a time.
        n_masks, means = max(1, IN_MEMORY // (len(rows) * background.size)), []
        for block in blocks(len(masks), n_masks):
            mixed = mixed_rows(rows, background, masks[block])
            shape = *mixed.shape[:3], predictions.shape[3]
            mixed = mixed.reshape(-1, rows.shape[1])
            block_predictions = np.broadcast_to(predictions[block], shape)
            means.append(self._average_scores(mixed, block_predictions))
        return np.concatenate(means)

    def _average_scores(self, mixed, member_predictions):
        """Average scores of mixed rows over the background, (n_masks, n_rows, n_scores).

        `member_predictions` are (n_masks, n_rows, n_background, n_outputs). `mixed` are the
        same rows one below the other, which trees need; None if there are no trees.
        """
        shape, n_outputs = member_predictions.shape[:3], member_predictions.shape[3]
        predictions = self._predict_rows(mixed, member_predictions.reshape(-1, n_outputs))
        return self._scores_of(predictions).reshape(*shape, -1).mean(axis=2)

    @property
    def feature_relevance_(self):
        """Fraction of the mean squared distance that is in each feature, a Series by name."""
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
    """Validated parameters; None is what the number of rows or learning decides."""

    formula: RadialKernel  # the parameter `kernel`, cloned
    readout: str = "solve"
    encodings: tuple = ENCODINGS
    n_folds: int | None = None
    max_steps: int | None = None
    bandwidth: np.ndarray | None = None  # length-scales (n_features,), None if learned
    ridge: float | None = None  # noise variance, None if learned
    boosting: bool = False
    seed: int = 0

    @classmethod
    def from_estimator(cls, estimator):
        """Validate the parameters of an estimator that has read its training rows."""
        readout, bandwidth = estimator.readout, estimator.bandwidth
        check_choice("readout", readout, READOUTS)
        is_learned = isinstance(bandwidth, str)
        if is_learned:
            check_choice("bandwidth", bandwidth, ("learned",))
        encodings = _check_encodings(estimator.encodings, bandwidth)
        if not is_learned:
            n_features = estimator.n_features_in_
            bandwidth = np.broadcast_to(check_bandwidth(bandwidth, n_features), n_features)
        formula, n_folds = _check_kernel(estimator.kernel, readout), estimator.n_folds
        n_folds = (
            None if n_folds == "auto" else check_positive("n_folds", n_folds, integer=True)
        )
        return cls(
            formula=formula,
            readout=readout,
            encodings=encodings,
            n_folds=n_folds,
            max_steps=_check_max_steps(estimator.max_steps),
            bandwidth=None if is_learned else bandwidth,
            ridge=_check_ridge(estimator.ridge),
            boosting=_check_boosting(estimator.boosting) and is_learned,
            seed=check_random_state(estimator.random_state).randint(2**31 - 1),
        )

    @property
    def learns(self):
        """True if length-scales are learned."""
        return self.bandwidth is None

    def n_steps(self, default):
        """Return the number of gradient steps, `default` unless the user has chosen."""
        return default if self.max_steps is None else self.max_steps

    def fix(self, kernel, first_encoding):
        """Set the parameters of a kernel that the user has chosen.

        Returns the kernel, and a mask of its parameters that are to be learned. A bandwidth is
        in the features' units, and then the first encoding is the standard one, whose columns
        are in standard deviations.
        """
        is_learned, values = kernel.is_learned, kernel.values.copy()
        if self.bandwidth is not None:
            is_learned[:-1] = False
            log_scales = -np.log(self.bandwidth)
            log_scales[first_encoding.numeric] += np.log(first_encoding.scale)
            kernel.named(values)["scale"][:] = log_scales
        if self.ridge is not None:
            is_learned[-1] = False
            with np.errstate(divide="ignore"):
                values[-1] = 0.5 * np.log(self.ridge)
        return kernel.with_values(values), is_learned


def _check_max_steps(max_steps):
    """Return a number of steps, None for "auto"; raise ValueError for another value."""
    if isinstance(max_steps, str) and max_steps == "auto":
        return None
    is_count = isinstance(max_steps, numbers.Integral) and max_steps >= 0
    if not is_count or isinstance(max_steps, bool):
        raise ValueError(
            f"max_steps={max_steps!r} is not valid: pass 'auto', or an integer of 0 or more, "
            "where 0 keeps the length-scales at their starting values."
        )
    return int(max_steps)


def _check_ridge(ridge):
    """Return a noise variance, None for "learned"; raise ValueError for another value."""
    if isinstance(ridge, str) and ridge == "learned":
        return None
    is_number = isinstance(ridge, numbers.Real) and not isinstance(ridge, bool)
    if not is_number or not 0 <= ridge < math.inf:
        raise ValueError(
            f"ridge={ridge!r} is not valid: pass 'learned', or a finite number that is not "
            "negative."
        )
    return float(ridge)


def _check_boosting(boosting):
    """Return whether to try boosted trees; raise ValueError unless "auto" or None."""
    if boosting is not None and not (isinstance(boosting, str) and boosting == "auto"):
        raise ValueError(
            f"boosting={boosting!r} is unknown: pass None, or 'auto' to stack boosted trees "
            "where held-out rows are predicted better with them."
        )
    return boosting is not None


def _check_encodings(encodings, bandwidth):
    """Return names of encodings as a tuple in the order of ENCODINGS, or raise ValueError."""
    try:
        names = (encodings,) if isinstance(encodings, str) else tuple(encodings)
    except TypeError:
        names = ()
    for name in names:
        check_choice("encodings", name, ENCODINGS)
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"encodings={encodings!r} is not valid: name at least one of {sorted(ENCODINGS)}, "
            "each once."
        )
    if not isinstance(bandwidth, str):
        check_bandwidth(bandwidth, np.size(bandwidth))
    if not isinstance(bandwidth, str) and names != ("standard",):
        raise ValueError(
            f"bandwidth={bandwidth!r} is in the features' own units, which is possible only "
            f"with encodings='standard', got encodings={encodings!r}: pass "
            "encodings='standard', or bandwidth='learned'."
        )
    return tuple(sorted(names, key=ENCODINGS.index))


def _check_kernel(kernel, readout):
    """Return a clone of a radial kernel that suits the readout, or raise ValueError."""
    formula = as_kernel(clone(kernel, safe=False))
    if not isinstance(formula, RadialKernel) or formula.signed:
        raise ValueError(
            f"kernel={kernel!r} is not a positive kernel of the distance: choose a radial "
            "one, such as 'gaussian', 'matern52' or 'rational_quadratic'."
        )
    if readout == "solve" and not formula.positive_definite:
        raise ValueError(
            f"kernel={kernel!r} is not positive definite, so that readout={readout!r} has no "
            "solution: choose 'gaussian', 'matern52' or 'rational_quadratic', or "
            "readout='average'. If your own kernel is positive definite, set "
            "positive_definite = True on its class."
        )
    return formula
