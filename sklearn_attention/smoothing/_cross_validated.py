"""Kernel, bandwidth and degree chosen together by leave-one-out.

A candidate is a kernel, a bandwidth and a degree. A criterion is smaller for a better
candidate, and a score is minus the criterion, as scikit-learn's searches have it.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.base import clone

from .._column_stats import feature_std
from .._partitions import weights_or_ones
from .._validation import check_bandwidth, check_choice
from ..attention._solve import is_degree
from ..bandwidth._criteria import SMOOTHER_CRITERIA, evaluate_criterion
from ..bandwidth._samples import Units
from ..bandwidth._search import Rows, canonical_ratio, search_range
from ..kernels._base import as_kernel
from ..kernels._product_kernel import mixed_kernel
from ._regression import SmootherRegressor

# Number of bandwidths that are tried with each kernel, unless the user lists them.
_N_BANDWIDTHS = 30


class _CrossValidated(SmootherRegressor):
    """Base class of the regressors that try a list of candidates."""

    # The base class reads these attributes, which are no parameters here.
    algorithm, random_state = "auto", 0
    _keeps_partitions = False

    def __init__(
        self,
        kernels: Any = ("gaussian", "epanechnikov", "tricube"),
        bandwidths: ArrayLike | None = None,
        *,
        criterion: str = "loo",
        empty: str = "nearest",
        bounds: Any = "auto",
    ) -> None:
        self.kernels = kernels
        self.bandwidths = bandwidths
        self.criterion = criterion
        self.empty = empty
        self.bounds = bounds

    def _choose(self):
        """Try every candidate on the training rows; set `smoother_` to the best one.

        Returns no warnings, where other estimators have some.
        """
        # 1. Read the rows and the candidates.
        self._keep(rule=check_choice("criterion", self.criterion, SMOOTHER_CRITERIA))
        rows = self._rows_to_predict()
        names = _candidates("kernels", self.kernels)
        kernels = [as_kernel(clone(kernel, safe=False)) for kernel in names]
        all_columns = Rows(X=rows.keys, columns=self.columns_, sample_weight=rows.key_weights)
        columns = all_columns.compared_by(*kernels).columns
        # Several outputs count in units of their standard deviations.
        units = Units.from_values(rows.values_2d, rows.key_weights, each_column=True)
        targets = units.standardize(rows.values_2d.astype(np.float64))
        tasks = list(product(zip(names, kernels, strict=True), self._degrees()))
        # 2. Evaluate the criterion of all bandwidths of a kernel and a degree together. The
        # lists have the parameters of each candidate, the fields of its smoother, and its
        # criterion.
        params, fields, criteria, report = [], [], [], self._report()
        report.begin(len(tasks))
        for (name, kernel), degree in tasks:
            bandwidths = self._bandwidths(rows, kernel)
            task_fields = {"kernel": mixed_kernel(kernel, columns, None), "columns": columns}
            task_fields |= degree
            smoother = rows.replace(**task_fields)
            task_criteria = _criteria_at(bandwidths, self.criterion, smoother, targets, units)
            for h in bandwidths:
                params.append({"kernel": name, "bandwidth": h} | degree)
                fields.append(task_fields | {"bandwidth": np.full(rows.keys.shape[1], h)})
            criteria.extend(task_criteria)
            best_of_task = fields[task_criteria.argmin() - len(task_criteria)]
            if report.done("bandwidth", smoother_=self.smoother_.replace(**best_of_task)):
                break
        # 3. Take the best candidate, of equally good ones that with the widest bandwidth.
        mean_widths = [np.mean(candidate["bandwidth"]) for candidate in fields]
        best = int(np.lexsort([np.negative(mean_widths), criteria])[0])
        if not np.isfinite(criteria[best]):
            raise ValueError(
                f"criterion={self.criterion!r}: no candidate predicts every row with empty="
                f"{self.empty!r}: pass empty='nearest' or larger bandwidths."
            )
        # Scores are in the units of the targets, in which they may be infinite. So the ranks
        # are those of the criteria.
        scores = -units.restore_criterion(np.array(criteria), self.criterion)
        self._set_results(params, scores, rankdata(criteria, method="min"), best)
        self.smoother_ = self.smoother_.replace(**fields[best])
        report.end()
        return ()

    def _rows_to_predict(self):
        """Return `smoother_` restricted to the rows on which candidates are compared.

        They are the rows of positive weight that have no outlier among their features, as
        float64, in which candidates are compared whatever the precision of X.
        """
        if self.columns_.categorical:
            raise ValueError(
                f"X has categorical columns, but {type(self).__name__} has no candidates for "
                "their bandwidths (lambdas): use NadarayaWatsonRegressor or "
                "LocalPolynomialRegressor, which choose them along with the bandwidth, or "
                "pass X as numbers."
            )
        rows = self.smoother_.take(self.smoother_.row_weights > 0)
        rows = rows.replace(keys=rows.keys.astype(np.float64))
        if len(rows.keys) < 2:
            raise ValueError(
                f"criterion={self.criterion!r} predicts each row from the others and needs "
                f"two rows of positive weight, got n_samples={len(rows.keys)}: pass more rows."
            )
        # `without_outliers` sets the weights of rows with an outlier to 0.
        weighted = Rows(X=rows.keys, columns=self.columns_, sample_weight=rows.key_weights)
        weighted = weighted.without_outliers()
        return rows.take(weights_or_ones(weighted.X, weighted.sample_weight) > 0)

    def _set_results(self, params, scores, ranks, best):
        """Set the attributes that describe all candidates, and the best one.

        `params` are dicts of the candidates' parameters, `scores` and `ranks` (n_candidates,)
        belong to them, and `best` is the position of the best candidate.
        """
        self.cv_results_ = {
            f"param_{name}": np.fromiter((row[name] for row in params), dtype=object)
            for name in params[0]
        } | {
            "params": params,
            "mean_test_score": scores,
            "rank_test_score": ranks.astype(np.int32),
        }
        self.best_index_, self.best_score_ = best, float(scores[best])
        self.best_params_, self.criterion_value_ = params[best], -self.best_score_

    def _bandwidths(self, rows, kernel):
        """Return the bandwidths to try with a kernel, numbers or arrays (n_features,)."""
        if self.bandwidths is not None:
            bandwidths = _candidates("bandwidths", self.bandwidths)
            return [check_bandwidth(h, rows.keys.shape[1]) for h in bandwidths]
        std = feature_std(rows.keys, rows.key_weights)
        smallest, largest = search_range(rows.keys / std, canonical_ratio(kernel))
        return list(np.geomspace(smallest, largest, _N_BANDWIDTHS)[:, None] * std)

    def _degrees(self):
        """Return the degrees to try, as dicts ``{"degree": degree}`` of a smoother's field.

        An empty dict leaves the degree of the smoother, which is 0.
        """
        return [{}]


class NadarayaWatsonCV(_CrossValidated):
    """Nadaraya-Watson regression with the kernel and the bandwidth chosen by leave-one-out.

    Take it to compare several kernels or given bandwidths; :class:`NadarayaWatsonRegressor`
    chooses the bandwidth of one kernel by itself.

    Every kernel is tried with every bandwidth. Leave-one-out has a closed form: the result is
    that of ``GridSearchCV(NadarayaWatsonRegressor(), grid, cv=LeaveOneOut(),
    scoring="neg_mean_squared_error")``, in a fraction of the time. Rows with an outlier in a
    feature, a hundred times as far from most rows as these extend, are left out of it.

    Parameters
    ----------
    kernels : list of (str, Kernel or callable), default=("gaussian", "epanechnikov", "tricube")
        The kernels to try.
    bandwidths : array-like of float, or list of arrays of shape (n_features,), default=None
        The bandwidths to try, in the features' own units. None tries for every kernel 30
        multiples of the features' standard deviations, from the distance between
        neighbours to the extent of the data.
    criterion : {"loo", "penalized-loo", "gcv", "aicc"}, default="loo"
        Criterion to minimise: the leave-one-out squared error, the same penalised for degrees
        of freedom, generalised cross-validation, or the corrected Akaike criterion.
    empty : {"nearest", "nan"}, default="nearest"
        As for :class:`NadarayaWatsonRegressor`.
    bounds : "auto", (float, float) or None, default="auto"
        As for :class:`NadarayaWatsonRegressor`.

    Attributes
    ----------
    cv_results_ : dict
        ``params``, ``param_kernel``, ``param_bandwidth``, ``mean_test_score`` (minus the
        criterion; several outputs count in units of their own deviations) and
        ``rank_test_score``, to be passed to :class:`pandas.DataFrame`.
    best_params_ : dict
        The best kernel and bandwidth.
    best_index_ : int
        Its position in `cv_results_`.
    best_score_ : float
        Minus the criterion there.
    kernel_, bandwidth_, keys_, values_, key_weights_
        As for :class:`NadarayaWatsonRegressor`, like all other fitted attributes.

    See Also
    --------
    NadarayaWatsonRegressor : With a kernel given, and a search rather than a list.
    LocalPolynomialCV : Tries degrees, too.
    sklearn.model_selection.GridSearchCV : Searches any parameters, with a fit for each fold.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_attention import NadarayaWatsonCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NadarayaWatsonCV(["gaussian", "tricube"], [0.02, 0.05, 0.1, 0.2]).fit(X, y)
    >>> model.best_params_
    {'kernel': 'gaussian', 'bandwidth': 0.05}
    """


class LocalPolynomialCV(_CrossValidated):
    """Local polynomial regression with kernel, bandwidth and degree chosen by leave-one-out.

    Take it to choose one kernel and one degree out of several.
    :class:`LocalPolynomialRegressor` has one given kernel, and averages polynomials of several
    degrees.

    Every kernel is tried with every bandwidth and every degree, as by
    :class:`NadarayaWatsonCV`.

    Parameters
    ----------
    kernels : list of (str, Kernel or callable), default=("gaussian", "epanechnikov", "tricube")
        The kernels to try.
    bandwidths : array-like of float, or list of arrays of shape (n_features,), default=None
        The bandwidths to try; see :class:`NadarayaWatsonCV`.
    degrees : list of {0, 1, 2, 3}, default=(0, 1, 2)
        The degrees to try.
    criterion : {"loo", "penalized-loo", "gcv", "aicc"}, default="loo"
        Criterion to minimise, as for :class:`NadarayaWatsonCV`.
    empty : {"nearest", "nan"}, default="nearest"
        As for :class:`LocalPolynomialRegressor`. Candidates are compared in the windows that
        they predict in.
    bounds : "auto", (float, float) or None, default="auto"
        As for :class:`NadarayaWatsonRegressor`.

    Attributes
    ----------
    cv_results_ : dict
        As for :class:`NadarayaWatsonCV`, with ``param_degree``.
    best_params_ : dict
        The best kernel, bandwidth and degree.
    best_index_, best_score_
        As for :class:`NadarayaWatsonCV`.
    degree_ : int
        The best degree.
    kernel_, bandwidth_, keys_, values_, key_weights_
        As for :class:`LocalPolynomialRegressor`, like all other fitted attributes.

    See Also
    --------
    LocalPolynomialRegressor : With a kernel and degree given.
    NadarayaWatsonCV : Local averages, whose predictions stay in the range of the targets.
    sklearn.model_selection.GridSearchCV : Searches any parameters, with a fit for each fold.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import LocalPolynomialCV
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> LocalPolynomialCV(["gaussian"], [0.1, 0.3, 1.0]).fit(X, y).best_params_
    {'kernel': 'gaussian', 'bandwidth': 0.3, 'degree': 2}
    """

    def __init__(
        self,
        kernels: Any = ("gaussian", "epanechnikov", "tricube"),
        bandwidths: ArrayLike | None = None,
        *,
        degrees: Sequence[Any] = (0, 1, 2),
        criterion: str = "loo",
        empty: str = "nearest",
        bounds: Any = "auto",
    ) -> None:
        super().__init__(kernels, bandwidths, criterion=criterion, empty=empty, bounds=bounds)
        self.degrees = degrees

    def _degrees(self):
        degrees = _candidates("degrees", self.degrees)
        if not all(map(is_degree, degrees)):
            raise ValueError(
                f"degrees={self.degrees!r} are not valid: pass some of 0, 1, 2 and 3."
            )
        return [{"degree": degree} for degree in degrees]


def _candidates(name, values):
    """Return the candidates of the parameter `name` as a list; raise ValueError without any."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__") or not len(values):
        raise ValueError(
            f"{name}={values!r} is not a list of candidates: pass a list of at least one."
        )
    return list(values)


def _criteria_at(bandwidths, criterion, smoother, targets, units):
    """Evaluate a criterion of leave-one-out predictions at bandwidths, (n_bandwidths,).

    Parameters
    ----------
    bandwidths : list of float or ndarray of shape (n_features,)
        The bandwidths to try.
    criterion : str
        Name of the criterion, the parameter of the estimator.
    smoother : FittedSmoother
        The rows, with a kernel and a degree.
    targets : ndarray of shape (n_rows, n_outputs)
        Targets of the rows, standardized by `units`.
    units : Units
        Units of the targets. Errors far below their `size`, that of the standardized targets,
        are rounding errors.
    """
    table = np.stack([np.full(smoother.keys.shape[1], h) for h in bandwidths])
    factors = table[:, :1] / table[0, :1]
    # A group is a bandwidth, and the factors on it at which the criterion is evaluated. If all
    # bandwidths are multiples of the first one, they form one group, which computes distances
    # of the rows once.
    are_multiples = np.allclose(table, factors * table[0], rtol=1e-12, atol=0.0)
    groups = [(table[0], factors[:, 0])] if are_multiples else [(h, [1.0]) for h in table]
    criteria = []
    for bandwidth, factors_of_group in groups:
        leave_one_out = smoother.replace(bandwidth=bandwidth).leave_one_out(targets)
        scores = leave_one_out.scores(factors_of_group)
        criteria.extend(evaluate_criterion(criterion, scores, smoother.n_rows, units.size))
    return np.array(criteria)
