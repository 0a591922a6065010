"""Reports of a fit: its tasks and epochs for scikit-learn's callbacks, and a progress line."""

import contextlib

from ._progress import Progress, progress_delay


class Report:
    """Reports of a fit, or of a task within it, to the callbacks of an estimator.

    `data` are X, y and the metadata that callbacks receive.
    """

    def __init__(self, estimator, **data):
        self._estimator, self._hooks = estimator, {"estimator": estimator, **data}
        self._context = None

    @property
    def in_search(self):
        """True if another estimator, such as a search, fits this one."""
        return hasattr(self._estimator, "_parent_callback_ctx")

    def begin(self, n_tasks):
        """Announce the fit, and its largest number of tasks, None if that is unknown."""
        self._context = self._estimator._init_callback_context(max_subtasks=n_tasks)
        self._context.call_on_fit_task_begin(**self._hooks)

    def end(self):
        """Announce that the estimator is fitted."""
        self._context.call_on_fit_task_end(**self._hooks, reconstruction_attributes={})

    def done(self, name, **fitted):
        """Announce that a task is done; return True if a callback asks to stop.

        `fitted` are the attributes with which the estimator can predict already, if it can.
        """
        hooks = self._hooks | ({"reconstruction_attributes": fitted} if fitted else {})
        task = self._context.subcontext(task_name=name)
        task.call_on_fit_task_begin(**hooks)
        return task.call_on_fit_task_end(**hooks)

    @contextlib.contextmanager
    def task(self, name, n_tasks=None):
        """Announce a task that has `n_tasks` tasks itself, and yield the Report of these."""
        report = Report(**self._hooks)
        report._context = self._context.subcontext(task_name=name, max_subtasks=n_tasks)
        report._context.call_on_fit_task_begin(**self._hooks)
        yield report
        report._context.call_on_fit_task_end(**self._hooks)

    @contextlib.contextmanager
    def training(self, sizes, fitted, *, verbose):
        """Report the training of a network: yield the object that `train` takes as `task`.

        `sizes` are the sizes of its batches, as in the TrainingPlan, and ``fitted(history)``
        returns the attributes with which the estimator can predict.
        """
        delay = progress_delay(verbose, self._estimator)
        name = type(self._estimator).__name__
        with Progress(name, sizes.n_steps, delay=delay) as progress:
            yield _EpochReport(self._context, self._hooks, len(sizes), fitted, progress)


class _EpochReport:
    """Reports of epochs to callbacks, and of steps to the user."""

    def __init__(self, context, hooks, n_epochs, fitted, progress):
        self._context, self._hooks, self._n_epochs = context, hooks, n_epochs
        self._fitted, self._progress = fitted, progress

    def begin(self):
        """Announce an epoch."""
        self._epoch = self._context.subcontext(task_name="epoch")
        self._epoch.call_on_fit_task_begin(**self._hooks)

    def step(self, history, n_steps, *, ended=False):
        """Show the progress: the losses of complete epochs, and the number of steps so far.

        `ended` is True after the last step of an epoch.
        """
        epoch = min(len(history.loss) + (not ended), self._n_epochs)
        losses = {"loss": history.loss, "validation": history.validation_loss}
        last = (f"{name} {values[-1]:.3g}" for name, values in losses.items() if values)
        self._progress.update(n_steps, ", ".join([f"epoch {epoch}/{self._n_epochs}", *last]))

    def end(self, history):
        """Close the epoch; return True if a callback stops the training."""
        self.step(history, history.n_steps, ended=True)
        return self._epoch.call_on_fit_task_end(
            **self._hooks, reconstruction_attributes=lambda: self._fitted(history)
        )
