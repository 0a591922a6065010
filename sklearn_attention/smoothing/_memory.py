"""What regressors and classifiers share: a memory of rows, and a bandwidth to read it with."""

import numbers

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .. import attention
from .._explanation import Explanation, heaviest
from .._mixed_rows import MixedRows, check_key_weights
from .._validation import check_choice, check_positive
from ..bandwidth import neighbor_distances
from ..kernels import ProductKernel, as_kernel
from ._bandwidth_choice import choose_bandwidth

_DTYPES = (np.float64, np.float32)


class MemoryEstimator(MixedRows):
    """Base class of the estimators that remember keys and values: with a kernel.

    A subclass with local polynomials has a parameter `degree`.
    """

    degree = 0
    # Whether a search lets several outputs count alike, whatever their units.
    _standardizes_outputs = True

    def __init__(
        self,
        kernel="gaussian",
        *,
        bandwidth="penalized-loo",
        per_feature=False,
        categorical_features="from_dtype",
        algorithm="auto",
        empty="nearest",
        random_state=0,
        device="auto",
    ):
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.per_feature = per_feature
        self.categorical_features = categorical_features
        self.algorithm = algorithm
        self.empty = empty
        self.random_state = random_state
        self.device = device

    def explain(self, X, k=5):
        """Training rows that carry each prediction.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Where predictions are to be explained.
        k : int, default=5
            How many training rows; at most all of them.

        Returns
        -------
        explanation : Explanation
            Named tuple of ``indices``, ``weights`` and ``values``, the heaviest first.
        """
        check_is_fitted(self)
        k = min(check_positive("k", k, integer=True), len(self.keys_))
        X = self._check_queries(X)
        indices, weights = heaviest(
            lambda rows: self._smoother_rows(X[rows]), len(X), len(self.keys_), k
        )
        return Explanation(indices, weights, self._targets(indices))

    def smoother_matrix(self, X):
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
        check_is_fitted(self)
        return self._smoother_rows(self._check_queries(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _check_queries(self, X):
        return self._read_rows(X, _DTYPES)

    def _check_rows(self, X, y, *, reset, **checks):
        if reset:
            return self._learn_rows(X, _DTYPES, y=y, **checks)
        self.columns_ = self.columns_.extend(X)
        return self._read_rows(X, _DTYPES, y=y, **checks)

    def _remember(self, X, values, sample_weight, *, append=False):
        """Store keys and values, and choose the bandwidth for them."""
        weights = check_key_weights(sample_weight, X)
        if append:
            weights = _append_weights(self.key_weights_, len(self.keys_), weights, len(X))
            X = np.concatenate([self.keys_, X])
            values = np.concatenate([self.values_, values])
        if not valid_degree(self.degree):
            raise ValueError(f"degree={self.degree!r} is not valid: pass 0, 1 or 2.")
        check_choice("empty", self.empty, attention.EMPTY_POLICIES)
        check_choice("algorithm", self.algorithm, attention.ALGORITHMS)
        self.degree_ = int(self.degree)
        self._memo = {}  # what is computed from the memory, once somebody asks
        self.keys_, self.values_, self.key_weights_ = X, values, weights
        for name in [name for name in vars(self) if name in _CHOSEN]:
            delattr(self, name)
        self._choose()
        # What cannot predict its own first row is refused here rather than in predict.
        self._average(self.keys_[:1], empty="nan")
        return self

    def _choose(self):
        """Set the kernel and its bandwidth for the rows remembered."""
        choose_bandwidth(self, self._check_kernel())

    def _check_kernel(self):
        # A copy: changing the parameter later must not change a fitted estimator.
        kernel = as_kernel(clone(self.kernel, safe=False))
        if self.degree and kernel.signed:
            raise ValueError(
                f"kernel={self.kernel!r} takes negative values, with which least squares has "
                "no minimum: choose a positive kernel such as 'gaussian', or degree=0."
            )
        names = isinstance(kernel, ProductKernel) and isinstance(kernel.kernels, (list, tuple))
        if names and self.columns_.categorical:
            raise ValueError(
                f"kernel={self.kernel!r} names columns itself, but X has categorical columns: "
                "pass the kernel of the numeric columns alone, or X as numbers."
            )
        return kernel

    def _task_data(self):
        """What callbacks are told about the training data."""
        return {
            "X": self.keys_,
            "y": lambda: self._targets(slice(None)),
            "metadata": {"sample_weight": self.key_weights_},
        }

    def _average(self, X, values=None, **changes):
        """Predictions, of the targets or of other values of the training rows."""
        values = self.values_ if values is None else values
        options = self._attention_options(X) | changes
        if self.degree_ == 0:
            return attention.attend(X, self.keys_, values, self.kernel_, **options)[0]
        fit = attention.attend_local(
            X, self.keys_, values, self.kernel_, degree=self.degree_, **options
        )
        return fit.values

    def _local_rows(self, X, **changes):
        """What each training row does to the prediction of each query."""
        options = self._attention_options(X) | {"degree": self.degree_} | changes
        options.pop("algorithm")
        values = self.values_.reshape(len(self.keys_), -1)
        return attention.local_rows(X, self.keys_, values, self.kernel_, **options)

    def _smoother_rows(self, X):
        if self.degree_:
            return self._local_rows(X).smoother.astype(self.keys_.dtype)
        options = self._attention_options(X)
        options.pop("algorithm")
        return attention.attention_weights(X, self.keys_, self.kernel_, **options)

    def _attention_options(self, X):
        return {
            "bandwidth": self.columns_.divisors(self.bandwidth_),
            "query_scale": self._query_scale(X),
            "sample_weight": self.key_weights_,
            "algorithm": self.algorithm,
            "empty": self.empty,
            "device": self.device,
        }

    def _query_scale(self, X, more=0):
        """Distance to the neighbour that an adaptive bandwidth reaches to, else None."""
        if not hasattr(self, "n_neighbors_"):
            return None
        keys = self.keys_
        if self.key_weights_ is not None:
            keys = keys[self.key_weights_ > 0]
        queries, keys = self._in_spreads(X), self._in_spreads(keys)
        n_neighbors = min(self.n_neighbors_ + more, len(keys))
        return neighbor_distances(queries, keys, n_neighbors)[:, -1]

    def _in_spreads(self, X):
        """What an adaptive bandwidth measures distances between."""
        columns = self.columns_.numeric
        return X[:, columns] / self.bandwidth_[columns]


# Attributes that depend on how the bandwidth is chosen, and go when it is chosen anew.
_CHOSEN = ("bandwidth_search_", "criterion_value_", "n_neighbors_", "relevance_")


def valid_degree(degree):
    """Whether there are local polynomials of this degree.

    Parameters
    ----------
    degree : object
        What the user passed.

    Returns
    -------
    valid : bool
    """
    whole = isinstance(degree, numbers.Integral) and not isinstance(degree, bool)
    return whole and 0 <= degree <= 2


def _append_weights(old, n_old, new, n_new):
    if old is None and new is None:
        return None
    old = np.ones(n_old) if old is None else old
    new = np.ones(n_new) if new is None else new
    return np.concatenate([old, new])
