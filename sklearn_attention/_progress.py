"""A line on stderr that shows how far a long job is."""

import math
import multiprocessing
import shutil
import sys
import threading
import time


class Progress:
    """Context manager that reports the progress of a job on stderr.

    On a terminal it rewrites one line. If it has shown anything, it also reports the end.

    Parameters
    ----------
    name : str
        Name of the job.
    n_steps : int
        Number of its steps.
    delay : float
        Seconds until the first report.
    """

    def __init__(self, name, n_steps, *, delay):
        self._name, self._n_steps, self._start = name, n_steps, time.monotonic()
        self._due, self._shown = self._start + delay, False
        self._state = self._first_update = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._shown:
            spent = time.monotonic() - self._start
            self._show(f"{_duration(spent)} in all", end="\n")

    def update(self, n_steps, state):
        """Store a text about the state after some steps, and show it if a report is due."""
        now, self._state = time.monotonic(), state
        if self._first_update is None:
            # The pace is measured from the first call on, since the first step is slow, and
            # steps before a checkpoint were not made by this job.
            self._first_update = now, n_steps
            return
        start, n_before = self._first_update
        if now >= self._due and n_before < n_steps < self._n_steps:
            pace = (now - start) / (n_steps - n_before)
            self._show(f"{_duration(pace * (self._n_steps - n_steps))} left")
            self._due = now + (0.2 if sys.stderr.isatty() else 10.0)

    def _show(self, duration, end=""):
        """Write the name, the state and a text about the duration."""
        line = f"{self._name}: {self._state}, {duration}"
        if sys.stderr.isatty():
            # A line as wide as the terminal would continue in the next line, and remain there.
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{line[:width]:{width}}", end=end, file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)
        self._shown = True


def progress_delay(verbose, estimator):
    """Return the seconds before an estimator reports its progress; inf if it never does.

    `verbose` is the estimator's parameter. With "auto" there are no reports within
    meta-estimators, and none if the user has set callbacks.
    """
    # Several workers would overwrite each other's lines.
    is_worker = (
        multiprocessing.parent_process() is not None
        or threading.current_thread() is not threading.main_thread()
    )
    if is_worker or sys.stderr is None or verbose is False:
        return math.inf
    if verbose is True:
        return 0.0
    callback_attributes = "_parent_callback_ctx", "_skl_callbacks"
    has_callbacks = any(hasattr(estimator, name) for name in callback_attributes)
    return math.inf if has_callbacks else 5.0


def _duration(seconds):
    """Return a duration as a text in seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
