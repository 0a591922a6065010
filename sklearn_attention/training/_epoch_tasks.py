"""Epochs as tasks of scikit-learn's callbacks."""


class EpochTasks:
    """Tell the callbacks of an estimator when an epoch begins and ends.

    What :func:`train` takes as `task`. It needs nothing of scikit-learn but the context that
    ``_init_callback_context`` returned, whose ``max_subtasks`` may be
    ``len(batch_sizes(plan, n_samples))``.

    Parameters
    ----------
    context : sklearn.callback.CallbackContext
        Of the fit, or of a task within it.
    estimator : estimator
        That is being fitted.
    fitted : callable, default=None
        ``fitted()`` returns a dict of the attributes the estimator would have if the fit
        ended now, from which callbacks get an estimator that predicts. It is called only if
        a callback asks. None where there is no such estimator before the end.
    **data
        ``X``, ``y`` and ``metadata``, for callbacks that want them.
    """

    def __init__(self, context, estimator, *, fitted=None, **data):
        self._context, self._estimator, self._fitted = context, estimator, fitted
        self._data = data

    def begin(self):
        """Announce an epoch."""
        self._epoch = self._context.subcontext(task_name="epoch")
        self._epoch.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end(self):
        """Close the epoch.

        Returns
        -------
        stop : bool
            Whether a callback wants no more epochs.
        """
        return self._epoch.call_on_fit_task_end(
            estimator=self._estimator, **self._data, reconstruction_attributes=self._fitted
        )
