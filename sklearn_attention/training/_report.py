"""Reports of a training: epochs for callbacks of scikit-learn, and a line of progress."""

import contextlib
import multiprocessing
import shutil
import sys
import threading
import time


class Report:
    """Report a training to an estimator's callbacks, and to its user: the `task` of `train`."""

    # `context` is scikit-learn's, of the fit or of a task within it; its ``max_subtasks`` may
    # be ``len(batch_sizes(plan, n_samples))``. ``fitted(history)`` returns the attributes of
    # the estimator if the fit ended now, for callbacks that need an estimator which predicts;
    # None where there is none before the end. `data` are X, y and metadata for callbacks.

    def __init__(self, context, estimator, *, fitted=None, verbose=False, **data):
        self._context, self._estimator, self._fitted = context, estimator, fitted
        self._verbose, self._data, self._progress = verbose, data, None

    @property
    def in_search(self):
        """True if another estimator, such as a search, fits this one."""
        return hasattr(self._estimator, "_parent_callback_ctx")

    @contextlib.contextmanager
    def of_training(self, sizes, fitted):
        """Context of a training of batches of some sizes, (n_epochs, n_steps)."""
        self._fitted = fitted
        delay = progress_delay(self._verbose, self._estimator)
        if delay is None:
            yield
            return
        name = type(self._estimator).__name__
        with Progress(name, len(sizes), sizes.n_steps, delay=delay) as self._progress:
            yield

    def begin(self):
        """Announce an epoch."""
        self._epoch = self._context.subcontext(task_name="epoch")
        self._epoch.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def step(self, history, n_steps):
        """Show the progress: the history of whole epochs, and the number of steps so far."""
        if self._progress is not None:
            self._progress.update(history, n_steps)

    def end(self, history):
        """Close the epoch; True if a callback stops the training."""
        self.step(history, history.n_steps)
        fitted = self._fitted and (lambda: self._fitted(history))
        return self._epoch.call_on_fit_task_end(
            estimator=self._estimator, **self._data, reconstruction_attributes=fitted
        )


@contextlib.contextmanager
def reported(estimator, settings, n_rows, **data):
    """Context of a fit that is a training on so many rows; its Report."""
    context = estimator._init_callback_context(max_subtasks=settings.n_epochs(n_rows))
    context.call_on_fit_task_begin(estimator=estimator, **data)
    yield Report(context, estimator, verbose=settings.training.verbose, **data)
    context.call_on_fit_task_end(estimator=estimator, **data, reconstruction_attributes={})


@contextlib.contextmanager
def reported_task(estimator, context, name, n_subtasks=None, *, verbose=False, **data):
    """Context of a task within a fit, which may be a training; its Report."""
    task = context.subcontext(task_name=name, max_subtasks=n_subtasks)
    task.call_on_fit_task_begin(estimator=estimator, **data)
    yield Report(task, estimator, verbose=verbose, **data)
    task.call_on_fit_task_end(estimator=estimator, **data)


class Progress:
    """A line on stderr about a training, rewritten in place on a terminal.

    A context manager: once there was a line, another one reports the end.
    """

    def __init__(self, name, n_epochs, n_steps, *, delay):
        self._name, self._n_epochs, self._n_steps = name, n_epochs, n_steps
        self._start = time.monotonic()
        self._due, self._shown = self._start + delay, False
        self._history = self._first = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._shown:
            spent = time.monotonic() - self._start
            self._show(len(self._history.loss), f"{_duration(spent)} in all", end="\n")

    def update(self, history, n_steps):
        """Show the state, if it is time to."""
        now, self._history = time.monotonic(), history
        if self._first is None:
            # The first step is slow, and those before a checkpoint took none of this time.
            self._first = now, n_steps
        elif now >= self._due and self._first[1] < n_steps < self._n_steps:
            pace = (now - self._first[0]) / (n_steps - self._first[1])
            epoch = min(len(history.loss) + 1, self._n_epochs)
            self._show(epoch, f"{_duration(pace * (self._n_steps - n_steps))} left")
            self._due = now + (0.2 if sys.stderr.isatty() else 10.0)

    def _show(self, epoch, duration, end=""):
        parts = [f"{self._name}: epoch {epoch}/{self._n_epochs}"]
        for name, values in (
            ("loss", self._history.loss), ("validation", self._history.validation_loss)
        ):  # fmt: skip
            parts += [f"{name} {values[-1]:.3g}"] if values else []
        line = ", ".join([*parts, duration])
        if sys.stderr.isatty():
            # A line that fills the terminal would go on in the next, and stay there.
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{line[:width]:{width}}", end=end, file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)
        self._shown = True


def progress_delay(verbose, estimator):
    """Seconds before an estimator reports its progress; None if it never does.

    With "auto", it does not within meta-estimators, nor with callbacks of the user.
    """
    # Lines of workers would be written over one another.
    worker = (
        multiprocessing.parent_process() is not None
        or threading.current_thread() is not threading.main_thread()
    )
    if worker or sys.stderr is None or verbose is False:
        return None
    if verbose is True:
        return 0.0
    others = "_parent_callback_ctx", "_skl_callbacks"
    return None if any(hasattr(estimator, name) for name in others) else 5.0


def _duration(seconds):
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
