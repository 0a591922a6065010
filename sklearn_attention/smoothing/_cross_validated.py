"""Kernel, bandwidth and degree chosen together, as RidgeCV chooses its penalty."""

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone

from .._validation import check_bandwidth, check_choice
from ..bandwidth import SMOOTHER_CRITERIA, criterion_of_candidates, default_bandwidths
from ..kernels import as_kernel
from ._memory import valid_degree
from ._regression import SmootherRegressor


class _CrossValidated(SmootherRegressor):
    """Base class of the regressors that try a list of candidates."""

    def __init__(self, kernels, bandwidths, degrees, criterion, empty, device):
        self.kernels = kernels
        self.bandwidths = bandwidths
        self.criterion = criterion
        self.empty = empty
        self.device = device

    # Parameters of the estimators that are given one kernel; nothing to choose from here.
    algorithm, random_state = "auto", 0

    def _choose(self):
        """Try every candidate on the rows remembered, and keep the best."""
        check_choice("criterion", self.criterion, SMOOTHER_CRITERIA)
        if self.columns_.categorical:
            raise ValueError(
                f"X has categorical columns, whose lambdas {type(self).__name__} has no "
                "candidates for: use NadarayaWatsonRegressor or LocalPolynomialRegressor, "
                "which choose them along with the bandwidth, or pass X as numbers."
            )
        keys, weights = self.keys_.astype(np.float64), self.key_weights_
        values = self.values_.reshape(len(keys), -1).astype(np.float64)
        if weights is not None:
            kept = weights > 0
            keys, values, weights = keys[kept], values[kept], weights[kept]
        if len(keys) < 2:
            raise ValueError(
                f"criterion={self.criterion!r} predicts each row from the others and needs "
                f"two rows of positive weight, got n_samples={len(keys)}."
            )
        results = {"param_kernel": [], "param_bandwidth": [], "param_degree": []}
        scores = []
        for given in _listed("kernels", self.kernels):
            kernel = as_kernel(clone(given, safe=False))
            bandwidths = self._bandwidths(keys, kernel, weights)
            for degree in self._degrees():
                found = criterion_of_candidates(
                    keys, values, kernel, bandwidths, self.criterion, degree=degree,
                    sample_weight=weights, empty=self.empty, device=self.device,
                )  # fmt: skip
                scores.extend(-found)
                results["param_kernel"] += [given] * len(bandwidths)
                results["param_bandwidth"] += bandwidths
                results["param_degree"] += [degree] * len(bandwidths)
        self._report(results, np.array(scores))

    def _report(self, results, scores):
        best = int(np.argmax(scores))
        if not np.isfinite(scores[best]):
            raise ValueError(
                f"criterion={self.criterion!r}: no candidate predicts every row with empty="
                f"{self.empty!r}: use empty='nearest' or larger bandwidths."
            )
        params = [
            dict(zip(("kernel", "bandwidth", "degree"), values, strict=True))
            for values in zip(*results.values(), strict=True)
        ]
        if not self._tries_degrees:
            results.pop("param_degree")
            params = [{k: v for k, v in p.items() if k != "degree"} for p in params]
        self.cv_results_ = {name: _objects(values) for name, values in results.items()}
        self.cv_results_ |= {
            "params": params,
            "mean_test_score": scores,
            "rank_test_score": rankdata(-scores, method="min").astype(np.int32),
        }
        self.best_index_, self.best_score_ = best, float(scores[best])
        self.criterion_value_ = -self.best_score_
        self.best_params_ = params[best]
        self.kernel_ = as_kernel(clone(params[best]["kernel"], safe=False))
        n_features = self.keys_.shape[1]
        bandwidth = check_bandwidth(params[best]["bandwidth"], n_features)
        self.bandwidth_ = np.broadcast_to(bandwidth, n_features).copy()
        if self._tries_degrees:
            self.degree_ = params[best]["degree"]

    def _bandwidths(self, keys, kernel, weights):
        if self.bandwidths is None:
            return default_bandwidths(keys, kernel, weights)
        listed = _listed("bandwidths", self.bandwidths)
        return [check_bandwidth(bandwidth, keys.shape[1]) for bandwidth in listed]


class NadarayaWatsonCV(_CrossValidated):
    """Nadaraya-Watson regression with kernel and bandwidth by leave-one-out.

    Every kernel is tried with every bandwidth. Leave-one-out has a closed form, and the
    distances are computed once for all bandwidths: the winner is that of
    ``GridSearchCV(NadarayaWatsonRegressor(), grid, cv=LeaveOneOut(),
    scoring="neg_mean_squared_error")``, in a fraction of the time.

    Parameters
    ----------
    kernels : list of (str, Kernel or callable), default=("gaussian", "epanechnikov", "tricube")
        The kernels to try.
    bandwidths : array-like of float, or list of arrays of shape (n_features,), default=None
        The bandwidths to try, in the features' own units. None tries for every kernel 30
        multiples of the features' standard deviations, from the distance between
        neighbours to the extent of the data.
    criterion : {"loo", "gcv", "aicc"}, default="loo"
        What is minimised: the leave-one-out squared error, generalised cross-validation,
        or the corrected Akaike criterion.
    empty : {"nearest", "nan", "mean", "raise"}, default="nearest"
        As for :class:`NadarayaWatsonRegressor`.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
    cv_results_ : dict
        ``params``, ``param_kernel``, ``param_bandwidth``, ``mean_test_score`` (minus the
        criterion) and ``rank_test_score``, to be passed to :class:`pandas.DataFrame`.
    best_params_ : dict
        The winner: kernel and bandwidth.
    best_index_ : int
        Its position in `cv_results_`.
    best_score_ : float
        Minus the criterion there.
    kernel_, bandwidth_, keys_, values_, key_weights_
        As for :class:`NadarayaWatsonRegressor`, like everything else that is known after
        fitting.

    See Also
    --------
    NadarayaWatsonRegressor : With a kernel given, and a search rather than a list.
    LocalPolynomialCV : Tries degrees, too.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_attention import NadarayaWatsonCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NadarayaWatsonCV(["gaussian", "tricube"], [0.02, 0.05, 0.1, 0.2]).fit(X, y)
    >>> model.best_params_
    {'kernel': 'gaussian', 'bandwidth': 0.05}
    """

    _tries_degrees = False

    def __init__(
        self,
        kernels=("gaussian", "epanechnikov", "tricube"),
        bandwidths=None,
        *,
        criterion="loo",
        empty="nearest",
        device="auto",
    ):
        super().__init__(kernels, bandwidths, None, criterion, empty, device)

    def _degrees(self):
        return [0]


class LocalPolynomialCV(_CrossValidated):
    """Local polynomial regression with kernel, bandwidth and degree by leave-one-out.

    Every kernel is tried with every bandwidth and every degree, as by
    :class:`NadarayaWatsonCV`.

    Parameters
    ----------
    kernels : list of (str, Kernel or callable), default=("gaussian", "epanechnikov", "tricube")
        The kernels to try.
    bandwidths : array-like of float, or list of arrays of shape (n_features,), default=None
        The bandwidths to try; see :class:`NadarayaWatsonCV`.
    degrees : list of {0, 1, 2}, default=(0, 1, 2)
        The degrees to try.
    criterion : {"loo", "gcv", "aicc"}, default="loo"
        What is minimised.
    empty : {"nearest", "nan", "mean", "raise"}, default="nearest"
        As for :class:`LocalPolynomialRegressor`.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
    cv_results_ : dict
        As for :class:`NadarayaWatsonCV`, with ``param_degree``.
    best_params_ : dict
        The winner: kernel, bandwidth and degree.
    best_index_, best_score_
        As for :class:`NadarayaWatsonCV`.
    degree_ : int
        The winner's degree.
    kernel_, bandwidth_, keys_, values_, key_weights_
        As for :class:`LocalPolynomialRegressor`, like everything else that is known after
        fitting.

    See Also
    --------
    LocalPolynomialRegressor : With a kernel and degree given.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import LocalPolynomialCV
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> LocalPolynomialCV(["gaussian"], [0.1, 0.3, 1.0]).fit(X, y).best_params_
    {'kernel': 'gaussian', 'bandwidth': 0.3, 'degree': 2}
    """

    _tries_degrees = True

    def __init__(
        self,
        kernels=("gaussian", "epanechnikov", "tricube"),
        bandwidths=None,
        *,
        degrees=(0, 1, 2),
        criterion="loo",
        empty="nearest",
        device="auto",
    ):
        super().__init__(kernels, bandwidths, None, criterion, empty, device)
        self.degrees = degrees

    def _degrees(self):
        degrees = _listed("degrees", self.degrees)
        if not all(valid_degree(degree) for degree in degrees):
            raise ValueError(
                f"degrees={self.degrees!r} are not valid: pass some of 0, 1 and 2."
            )
        return degrees


def _listed(name, values):
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__") or not len(values):
        raise ValueError(f"{name}={values!r} is no list of candidates: pass at least one.")
    return list(values)


def _objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
