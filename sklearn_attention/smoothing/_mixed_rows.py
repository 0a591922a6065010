"""What the density estimators share: rows of numbers and categories, and their kernels."""

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._base import AttentionEstimator
from .._columns import encode_categories, learn_categories
from .._validation import check_bandwidth, check_in_interval, check_numeric
from ..kernels import SmoothingKernel, as_kernel, highest_lam


class MixedRowsEstimator(AttentionEstimator):
    """Base class of the density estimators: it reads rows, categories among them."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    def _learn_rows(self, X, dtype=np.float64, **targets):
        """Training rows as numbers and codes, and targets if there are any."""
        categories, kinds = learn_categories(X)
        X = encode_categories(X, categories, kinds)
        with check_numeric("X"):
            checked = validate_data(self, X, **targets, dtype=dtype)
        n_features = self.n_features_in_
        self.categories_ = categories
        self.kinds_ = ["numeric"] * n_features if kinds is None else kinds
        return checked

    def _read_rows(self, X, dtype=np.float64, **targets):
        """Queries as numbers and codes, and targets if there are any."""
        check_is_fitted(self)
        if self.categories_ is None and learn_categories(X)[0] is not None:
            raise ValueError(
                "X has categorical columns, but was numeric when fitted: convert them to "
                "numbers, or fit with categories."
            )
        if self.categories_ is not None and hasattr(X, "columns"):
            # Before levels are looked up: columns in another order are the better news.
            validate_data(self, X, reset=False, skip_check_array=True)
        X = encode_categories(X, self.categories_, self.kinds_)
        with check_numeric("X"):
            return validate_data(self, X, **targets, reset=False, dtype=dtype)

    @property
    def _n_levels(self):
        if self.categories_ is None:
            return [0] * self.n_features_in_
        return [0 if levels is None else len(levels) for levels in self.categories_]

    @property
    def _numeric(self):
        return [j for j, kind in enumerate(self.kinds_) if kind == "numeric"]

    def _columns(self):
        """What the criteria need to know of the columns."""
        return {"kinds": self.kinds_, "n_levels": self._n_levels}

    def _given_bandwidth(self, by_rule):
        """The parameter `bandwidth`, where it is one number or one for each feature."""
        given = self.bandwidth
        numeric = self._numeric
        if np.ndim(given) == 0:
            number = check_bandwidth(given, len(self.kinds_))
            by_rule[numeric] = number
            return by_rule
        checked = np.array(given, dtype=object)
        if checked.ndim > 1:
            check_bandwidth(given, len(self.kinds_))
        if len(checked) == len(self.kinds_):
            for j, kind in enumerate(self.kinds_):
                if kind != "numeric":
                    highest = highest_lam(kind, self._n_levels[j])
                    by_rule[j] = check_in_interval(f"bandwidth[{j}]", checked[j], 0, highest)
                    checked[j] = 1.0
        numbers = check_bandwidth(checked.tolist(), len(self.kinds_))
        by_rule[numeric] = numbers[numeric]
        return by_rule

    def _observer(self, context, data, state_at):
        """Makes every evaluation of a criterion a task that callbacks hear of."""

        def observe(evaluate, bandwidth):
            state = state_at(bandwidth)
            task = context.subcontext(task_name="bandwidth")
            task.call_on_fit_task_begin(estimator=self, **data, reconstruction_attributes=state)
            value = evaluate(bandwidth)
            stop = task.call_on_fit_task_end(
                estimator=self, **data, reconstruction_attributes=state
            )
            return value, stop

        return observe


def check_density_kernel(name, kernel):
    """A positive smoothing kernel for what the user passed, else an error.

    Parameters
    ----------
    name : str
        Name of the parameter, for the message.
    kernel : str or SmoothingKernel
        What the user passed.

    Returns
    -------
    kernel : SmoothingKernel
        A copy: changing the parameter later must not change a fitted estimator.
    """
    resolved = as_kernel(clone(kernel, safe=False))
    if not isinstance(resolved, SmoothingKernel) or resolved.signed:
        why = "takes negative values" if resolved.signed else "is no smoothing kernel"
        raise ValueError(
            f"{name}={kernel!r} {why} and so no density: choose a positive smoothing kernel, "
            "such as 'gaussian' or 'epanechnikov'."
        )
    return resolved


def check_key_weights(sample_weight, X):
    """Weights of the training rows as an array, or None.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,) or None
        What the user passed.
    X : ndarray of shape (n_samples, n_features)

    Returns
    -------
    weights : ndarray of shape (n_samples,) or None
    """
    if sample_weight is None:
        return None
    if not np.asarray(sample_weight).any():
        raise ValueError("sample_weight is zero for every row: leave at least one above 0.")
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if weights.max() > np.finfo(np.float64).max / len(weights):
        raise ValueError("sample_weight sums to infinity: divide it by its largest value.")
    return weights
