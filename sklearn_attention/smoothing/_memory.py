"""What regressor and classifier share: a memory of rows, and a bandwidth to read it with."""

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .. import attention
from .._base import AttentionEstimator
from .._validation import check_bandwidth, check_choice, check_numeric, check_positive
from ..bandwidth import MAX_CANDIDATES, RULES, leave_one_out_bandwidth, rule_bandwidth
from ..kernels import as_kernel
from ._explanation import Explanation, heaviest

_DTYPES = (np.float64, np.float32)


class MemoryEstimator(AttentionEstimator):
    """Base class of the Nadaraya-Watson estimators: keys, values and a kernel."""

    def __init__(
        self,
        kernel="gaussian",
        *,
        bandwidth="loo",
        algorithm="auto",
        empty="nearest",
        random_state=0,
        device="auto",
    ):
        self.kernel = kernel
        self.bandwidth = bandwidth
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
        options = self._attention_options()
        options.pop("algorithm")
        indices, weights = heaviest(
            lambda rows: attention.attention_weights(
                X[rows], self.keys_, self.kernel_, **options
            ),
            len(X),
            len(self.keys_),
            k,
        )
        return Explanation(indices, weights, self._targets(indices))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _check_queries(self, X):
        with check_numeric("X"):
            return validate_data(self, X, reset=False, dtype=_DTYPES)

    def _check_rows(self, X, y, *, reset, **checks):
        with check_numeric("X"):
            return validate_data(self, X, y, reset=reset, dtype=_DTYPES, **checks)

    def _remember(self, X, values, sample_weight, *, append=False):
        """Store keys and values, and choose the bandwidth for them."""
        weights = _check_weights(sample_weight, X)
        if append:
            weights = _append_weights(self.key_weights_, len(self.keys_), weights, len(X))
            X = np.concatenate([self.keys_, X])
            values = np.concatenate([self.values_, values])
        self.kernel_ = self._check_kernel()
        self.keys_, self.values_, self.key_weights_ = X, values, weights
        check_choice("empty", self.empty, attention.EMPTY_POLICIES)
        check_choice("algorithm", self.algorithm, attention.ALGORITHMS)
        vars(self).pop("loo_score_", None)
        self._choose_bandwidth()
        # What cannot predict its own first row is refused here rather than in predict.
        options = self._attention_options() | {"empty": "nan"}
        attention.attend(X[:1], X, values, self.kernel_, **options)
        return self

    def _check_kernel(self):
        # A copy: changing the parameter later must not change a fitted estimator.
        return as_kernel(clone(self.kernel, safe=False))

    def _choose_bandwidth(self):
        rule = self.bandwidth
        searches = isinstance(rule, str) and rule == "loo"
        context = self._init_callback_context(max_subtasks=MAX_CANDIDATES if searches else 0)
        context.call_on_fit_task_begin(estimator=self, **self._task_data())
        if searches:
            self._search_bandwidth(context)
        elif isinstance(rule, str):
            check_choice("bandwidth", rule, ("loo", *RULES))
            self.bandwidth_ = rule_bandwidth(self.keys_, self.kernel_, rule, self.key_weights_)
        else:
            bandwidth = check_bandwidth(rule, self.keys_.shape[1])
            self.bandwidth_ = np.broadcast_to(bandwidth, self.keys_.shape[1]).copy()
        context.call_on_fit_task_end(
            estimator=self, **self._task_data(), reconstruction_attributes={}
        )

    def _search_bandwidth(self, context):
        data = self._task_data()

        def observe(evaluate, bandwidth):
            state = {"bandwidth_": bandwidth}
            task = context.subcontext(task_name="bandwidth")
            task.call_on_fit_task_begin(estimator=self, **data, reconstruction_attributes=state)
            error = evaluate(bandwidth)
            stop = task.call_on_fit_task_end(
                estimator=self, **data, reconstruction_attributes=state
            )
            return error, stop

        self.bandwidth_, self.loo_score_ = leave_one_out_bandwidth(
            self.keys_,
            self.values_.reshape(len(self.keys_), -1),
            self.kernel_,
            sample_weight=self.key_weights_,
            random_state=self.random_state,
            observe=observe,
            algorithm=self.algorithm,
            empty=self.empty,
            device=self.device,
        )

    def _task_data(self):
        """What callbacks are told about the training data."""
        return {
            "X": self.keys_,
            "y": lambda: self._targets(slice(None)),
            "metadata": {"sample_weight": self.key_weights_},
        }

    def _average(self, X):
        averages, _ = attention.attend(
            X, self.keys_, self.values_, self.kernel_, **self._attention_options()
        )
        return averages

    def _attention_options(self):
        return {
            "bandwidth": self.bandwidth_,
            "sample_weight": self.key_weights_,
            "algorithm": self.algorithm,
            "empty": self.empty,
            "device": self.device,
        }


def _check_weights(sample_weight, X):
    if sample_weight is None:
        return None
    if not np.asarray(sample_weight).any():
        raise ValueError("sample_weight is zero for every row: leave at least one above 0.")
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if weights.max() > np.finfo(np.float64).max / len(weights):
        raise ValueError("sample_weight sums to infinity: divide it by its largest value.")
    return weights


def _append_weights(old, n_old, new, n_new):
    if old is None and new is None:
        return None
    old = np.ones(n_old) if old is None else old
    new = np.ones(n_new) if new is None else new
    return np.concatenate([old, new])
