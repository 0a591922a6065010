"""Base class of the regressors and the classifier: training rows, and a bandwidth."""

import copy
import numbers

import numpy as np
from sklearn.base import MultiOutputMixin, clone
from sklearn.utils.validation import check_is_fitted

from .. import attention
from .._columns import MixedRows
from .._explanation import Explanation, heaviest
from .._memory import appended, own_copy
from .._partitions import in_memory, is_partitioned
from .._validation import check_choice, check_key_weights, check_positive
from ..bandwidth._neighbors import neighbor_distances
from ..bandwidth._rules import SMOOTHER_RULES
from ..bandwidth._search import Rows, bandwidth_rule
from ..kernels import ProductKernel, as_kernel, mixed_kernel

# Rows of which the first is predicted when there was no search for a bandwidth; and for which
# the fastest algorithm is asked.
_CHECKED_ROWS, _ASKED_ROWS = 2**12, 2**20


class KernelSmoother(MultiOutputMixin, MixedRows):
    """Base class of the estimators that average the targets of their training rows."""

    _dtypes = (np.float64, np.float32)
    _keeps_partitions = True
    # A parameter of those with local polynomials.
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
        gap=0,
        random_state=0,
        device="auto",
    ):
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.per_feature = per_feature
        self.categorical_features = categorical_features
        self.algorithm = algorithm
        self.empty = empty
        self.gap = gap
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
        self._need_rows_in_memory("explanations")
        k = min(check_positive("k", k, integer=True), len(self.keys_))
        X = self._read_rows(X, self._dtypes)
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
        self._need_rows_in_memory("effective weights")
        return self._smoother_rows(self._read_rows(X, self._dtypes))

    @property
    def algorithm_(self):
        """Algorithm that predicts as many queries as there are training rows, up to a million.

        "linear": in time linear in queries and rows; "near": each query with the rows near
        it; "dense": all pairs.
        """
        check_is_fitted(self)
        if self.algorithm == "dense":
            return "dense"
        if "algorithm" not in self._memo:
            (keys,) = in_memory(self.keys_[:_ASKED_ROWS])
            self._memo["algorithm"] = attention.fastest_algorithm(
                keys, keys, self.kernel_, bandwidth=self.columns_.divisors(self.bandwidth_),
                query_scale=self._query_scale(keys), degree=self.degree_, device=self.device,
            )  # fmt: skip
        return self._memo["algorithm"]

    def _store(self, X, values, sample_weight, *, append=False):
        """Store keys and values, and choose the bandwidth for them."""
        weights = check_key_weights(sample_weight, X)
        if append:
            if weights is not None or self.key_weights_ is not None:
                weights = np.ones(len(X)) if weights is None else weights
                weights = appended(self._counts, weights)
            X, values = appended(self.keys_, X), appended(self.values_, values)
        else:
            X, values = own_copy(X), own_copy(values)
        if not valid_degree(self.degree):
            raise ValueError(f"degree={self.degree!r} is not valid: pass 0, 1 or 2.")
        check_choice("empty", self.empty, attention.EMPTY_POLICIES)
        check_choice("algorithm", self.algorithm, attention.ALGORITHMS)
        self.degree_ = int(self.degree)
        self._memo = {}  # computed from the training rows when first needed
        self.keys_, self.values_, self.key_weights_ = X, values, weights
        for name in vars(self).keys() & _CHOSEN:
            delattr(self, name)
        self._choose()
        if not hasattr(self, "bandwidth_search_"):
            self._check_first_row()
        return self

    def _need_rows_in_memory(self, what):
        if is_partitioned(self.keys_):
            raise ValueError(
                f"the training rows are in partitions of Dask, but {what} need them in memory: "
                "fit a sample of them, or what they compute to if that fits."
            )

    def _check_first_row(self):
        """Refuse what cannot predict its own first row here, rather than in predict."""
        some, first = slice(_CHECKED_ROWS), copy.copy(self)
        tables = self.keys_, self.values_, self.key_weights_
        found = in_memory(*(None if x is None else x[some] for x in tables))
        if found[2] is not None and not found[2].any():
            found = tables
        first.keys_, first.values_, first.key_weights_ = found
        first._predictions(first.keys_[:1], empty="nan")

    def _read_more_rows(self, X, y, **checks):
        """Further training rows, which may have new levels of unordered categories."""
        self.columns_ = self.columns_.extend(X)
        return self._read_rows(X, self._dtypes, y=y, multi_output=True, **checks)

    def _choose(self):
        """Set the kernel and its bandwidth for the training rows."""
        kernel = self._check_kernel()
        rule = bandwidth_rule("bandwidth", self.bandwidth, SMOOTHER_RULES)
        rows = Rows(
            X=self.keys_, values=self._columns_of_values, columns=self.columns_,
            sample_weight=self.key_weights_, degree=self.degree_, empty=self.empty,
            algorithm=self.algorithm, device=self.device, per_feature=self.per_feature,
            gap=self.gap, standardize=self._standardizes_outputs,
            random_state=self.random_state,
        )  # fmt: skip
        data = self._task_data
        # How many bandwidths a search tries is not known beforehand.
        context = self._init_callback_context(max_subtasks=None if rule.searches else 0)
        context.call_on_fit_task_begin(estimator=self, **data)

        def kernel_at(bandwidth):
            categorical = self.columns_.categorical
            return mixed_kernel(kernel, self.columns_, bandwidth) if categorical else kernel

        def observe(value, bandwidth, **attributes):
            tried = {"bandwidth_": bandwidth, "kernel_": kernel_at(bandwidth)} | attributes
            return self._report_trial(context, data, tried)

        vars(self).update(rule.choose(rows, kernel, observe).attributes)
        self.kernel_ = kernel_at(self.bandwidth_)
        context.call_on_fit_task_end(estimator=self, **data, reconstruction_attributes={})

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

    @property
    def _task_data(self):
        """Rows, targets and weights for callbacks."""
        return {
            "X": self.keys_,
            "y": lambda: self._targets(slice(None)),
            "metadata": {"sample_weight": self.key_weights_},
        }

    @property
    def _counts(self):
        """Weights of the training rows, 1 where none were given."""
        if self.key_weights_ is not None:
            return self.key_weights_
        if is_partitioned(self.keys_):
            return np.ones_like(self.keys_[:, 0], dtype=np.float64)
        return np.ones(len(self.keys_))

    @property
    def _columns_of_values(self):
        """The values as a table, also where there is one output."""
        return self.values_.reshape(len(self.keys_), -1)

    def _predictions(self, X, values=None, **changes):
        """Predictions, of the targets or of other values of the training rows."""
        values = self.values_ if values is None else values
        if self.degree_:
            return self._local_fit(X, values, **changes).values
        return self._average(X, values, **changes)

    def _average(self, X, values, **changes):
        """Weighted averages of values of the training rows."""
        options = self._attention_options(X) | {"algorithm": self.algorithm} | changes
        return attention.attend(X, self.keys_, values, self.kernel_, **options)[0]

    def _local_fit(self, X, values, **changes):
        """Local polynomials in values of the training rows."""
        options = self._attention_options(X) | {"algorithm": self.algorithm} | changes
        return attention.attend_local(
            X, self.keys_, values, self.kernel_, degree=self.degree_, **options
        )

    def _local_rows(self, X, **changes):
        """Effect of each training row on the prediction of each query."""
        options = self._attention_options(X) | {"degree": self.degree_} | changes
        values = self._columns_of_values
        return attention.local_rows(X, self.keys_, values, self.kernel_, **options)

    def _smoother_rows(self, X):
        if self.degree_:
            return self._local_rows(X).smoother.astype(self.keys_.dtype)
        options = self._attention_options(X)
        return attention.attention_weights(X, self.keys_, self.kernel_, **options)

    def _attention_options(self, X):
        return {
            "bandwidth": self.columns_.divisors(self.bandwidth_),
            "query_scale": self._query_scale(X),
            "sample_weight": self.key_weights_,
            "empty": self.empty,
            "device": self.device,
        }

    def _query_scale(self, X, more=0):
        """Distance to the neighbour that an adaptive bandwidth reaches to, else None."""
        if not hasattr(self, "n_neighbors_"):
            return None
        if is_partitioned(X):
            raise ValueError(
                f"bandwidth={self.bandwidth!r} differs from place to place, which does not go "
                "with partitions of Dask: let X.map_blocks or X.map_partitions predict."
            )
        queries, keys = self._in_spreads(X), self._in_spreads(self.keys_[self._counts > 0])
        n_neighbors = min(self.n_neighbors_ + more, len(keys))
        return neighbor_distances(queries, keys, n_neighbors)[:, -1]

    def _in_spreads(self, X):
        """Rows in units that distances to neighbours are measured in."""
        columns = self.columns_.numeric
        return X[:, columns] / self.bandwidth_[columns]


# Attributes that depend on how the bandwidth is chosen, and go when it is chosen anew.
_CHOSEN = {"bandwidth_search_", "criterion_value_", "n_neighbors_", "relevance_"}


def valid_degree(degree):
    """Check that there are local polynomials of this degree.

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
