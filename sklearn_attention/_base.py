"""Base class of the estimators, and fits that change nothing when they fail."""

import functools

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin


class AttentionEstimator(CallbackSupportMixin, BaseEstimator):
    """Base class of the estimators: callbacks, and a link to the docs in their HTML."""

    _doc_link_module = "sklearn_attention"
    _doc_link_template = (
        "https://sklearn-attention.readthedocs.io/en/stable/api/generated/"
        "sklearn_attention.{estimator_name}.html"
    )
    # Names and types of fitted attributes that are dataclasses. Pickles and files have their
    # fields in a dict, so that there is no type to be trusted.
    _held = ()

    def __getstate__(self):
        state = super().__getstate__()
        held = {name: dict(vars(state[name])) for name, _ in self._held if name in state}
        # What was computed from the rest of the state, and kept, is computed again.
        return state | held | ({"_memo": {}} if "_memo" in state else {})

    def __setstate__(self, state):
        held = {name: kind(**state[name]) for name, kind in self._held if name in state}
        super().__setstate__(state | held)

    def _doc_link_url_param_generator(self):
        return {"estimator_name": type(self).__name__}

    def _report_trial(self, context, data, tried):
        """Report a bandwidth on trial to the callbacks, as a task; tell whether to stop."""
        hooks = {"estimator": self, "reconstruction_attributes": tried} | data
        task = context.subcontext(task_name="bandwidth")
        task.call_on_fit_task_begin(**hooks)
        return task.call_on_fit_task_end(**hooks)


def keeps_state_on_failure(method):
    """Decorate a method that fits: if it raises, the estimator is as it was before.

    Parameters
    ----------
    method : callable
        ``fit`` or ``partial_fit``; it assigns attributes and mutates none in place.

    Returns
    -------
    method : callable
    """

    @functools.wraps(method)
    def fit_or_nothing(estimator, *args, **kwargs):
        before = vars(estimator).copy()
        try:
            return method(estimator, *args, **kwargs)
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise

    return fit_or_nothing
