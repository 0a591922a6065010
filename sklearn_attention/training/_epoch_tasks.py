"""Epochs as tasks of scikit-learn's callbacks, and steps for a line of progress."""


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
    progress : Progress, default=None
        Is told of every step.
    **data
        ``X``, ``y`` and ``metadata``, for callbacks that want them.
    """

    def __init__(self, context, estimator, *, fitted=None, progress=None, **data):
        self._context, self._estimator, self._fitted = context, estimator, fitted
        self._progress, self._data = progress, data

    def begin(self):
        """Announce an epoch."""
        self._epoch = self._context.subcontext(task_name="epoch")
        self._epoch.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def step(self, history, n_steps):
        """Say how far the training is.

        Parameters
        ----------
        history : History
            Of the whole epochs.
        n_steps : int
            Made so far.
        """
        if self._progress is not None:
            self._progress.update(history, n_steps)

    def end(self, history):
        """Close the epoch.

        Parameters
        ----------
        history : History
            With this epoch.

        Returns
        -------
        stop : bool
            Whether a callback wants no more epochs.
        """
        self.step(history, history.n_steps)
        return self._epoch.call_on_fit_task_end(
            estimator=self._estimator, **self._data, reconstruction_attributes=self._fitted
        )
