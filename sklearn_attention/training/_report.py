"""Reports of a training: epochs for callbacks of scikit-learn, and a line of progress."""

import contextlib

from .._progress import Progress, progress_delay


class Report:
    """Report a training to an estimator's callbacks, and to its user: the `task` of `train`."""

    # `context` is scikit-learn's, of the fit or of a task within it; its ``max_subtasks`` may
    # be ``len(batch_sizes(plan, n_samples))``. ``fitted(history)`` returns the attributes of
    # the estimator if the fit ended now, for callbacks that need an estimator which predicts;
    # None where there is none before the end. `data` are X, y and metadata for callbacks.

    def __init__(self, context, estimator, *, fitted=None, verbose=False, **data):
        self.context, self._estimator, self._fitted = context, estimator, fitted
        self._verbose, self._data, self._progress = verbose, data, None

    @property
    def in_search(self):
        """True if another estimator, such as a search, fits this one."""
        return hasattr(self._estimator, "_parent_callback_ctx")

    @contextlib.contextmanager
    def of_training(self, sizes, fitted):
        """Context of a training of batches of some sizes, (n_epochs, n_steps)."""
        self._fitted = fitted
        self._n_epochs = len(sizes)
        delay = progress_delay(self._verbose, self._estimator)
        name = type(self._estimator).__name__
        with Progress(name, sizes.n_steps, delay=delay) as self._progress:
            yield

    def begin(self):
        """Announce an epoch."""
        self._epoch = self.context.subcontext(task_name="epoch")
        self._epoch.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def step(self, history, n_steps, *, ended=False):
        """Show the progress: the history of whole epochs, and the number of steps so far."""
        if self._progress is not None:
            epoch = min(len(history.loss) + (not ended), self._n_epochs)
            losses = {"loss": history.loss, "validation": history.validation_loss}
            last = (f"{name} {values[-1]:.3g}" for name, values in losses.items() if values)
            state = ", ".join([f"epoch {epoch}/{self._n_epochs}", *last])
            self._progress.update(n_steps, state)

    def end(self, history):
        """Close the epoch; True if a callback stops the training."""
        self.step(history, history.n_steps, ended=True)
        fitted = self._fitted and (lambda: self._fitted(history))
        return self._epoch.call_on_fit_task_end(
            estimator=self._estimator, **self._data, reconstruction_attributes=fitted
        )


@contextlib.contextmanager
def reported(estimator, max_subtasks, verbose=False, **data):
    """Context of a fit of at most `max_subtasks` tasks, None if unknown; its Report."""
    context = estimator._init_callback_context(max_subtasks=max_subtasks)
    context.call_on_fit_task_begin(estimator=estimator, **data)
    yield Report(context, estimator, verbose=verbose, **data)
    context.call_on_fit_task_end(estimator=estimator, **data, reconstruction_attributes={})


@contextlib.contextmanager
def reported_task(estimator, context, name, n_subtasks=None, *, verbose=False, **data):
    """Context of a task within a fit, which may be a training; its Report."""
    task = context.subcontext(task_name=name, max_subtasks=n_subtasks)
    task.call_on_fit_task_begin(estimator=estimator, **data)
    yield Report(task, estimator, verbose=verbose, **data)
    task.call_on_fit_task_end(estimator=estimator, **data)
