"""What the density estimators share: rows of numbers and categories, and their kernels."""

import numpy as np
from sklearn.base import clone

from .._mixed_rows import MixedRows
from .._validation import check_bandwidth, check_in_interval
from ..kernels import SmoothingKernel, as_kernel, highest_lam


class MixedRowsEstimator(MixedRows):
    """Base class of the density estimators: with a bandwidth for every column."""

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
