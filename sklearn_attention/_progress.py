"""A line on stderr that shows how far a long job is."""

import math
import multiprocessing
import shutil
import sys
import threading
import time


class Progress:
    """A line on stderr about a job of some steps, rewritten in place on a terminal.

    A context manager: once there was a line, another one reports the end.
    """

    def __init__(self, name, n_steps, *, delay):
        self._name, self._n_steps, self._start = name, n_steps, time.monotonic()
        self._due, self._shown = self._start + delay, False
        self._state = self._first = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._shown:
            spent = time.monotonic() - self._start
            self._show(f"{_duration(spent)} in all", end="\n")

    def update(self, n_steps, state):
        """Note a text about the state after some steps, and show it if it is time to."""
        now, self._state = time.monotonic(), state
        if self._first is None:
            # The first step is slow, and those before a checkpoint took none of this time.
            self._first = now, n_steps
        elif now >= self._due and self._first[1] < n_steps < self._n_steps:
            pace = (now - self._first[0]) / (n_steps - self._first[1])
            self._show(f"{_duration(pace * (self._n_steps - n_steps))} left")
            self._due = now + (0.2 if sys.stderr.isatty() else 10.0)

    def _show(self, duration, end=""):
        line = f"{self._name}: {self._state}, {duration}"
        if sys.stderr.isatty():
            # A line that fills the terminal would go on in the next, and stay there.
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{line[:width]:{width}}", end=end, file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)
        self._shown = True


def progress_delay(verbose, estimator):
    """Seconds before an estimator reports its progress; infinite if it never does.

    With "auto", it does not within meta-estimators, nor with callbacks of the user.
    """
    # Lines of workers would be written over one another.
    worker = (
        multiprocessing.parent_process() is not None
        or threading.current_thread() is not threading.main_thread()
    )
    if worker or sys.stderr is None or verbose is False:
        return math.inf
    if verbose is True:
        return 0.0
    others = "_parent_callback_ctx", "_skl_callbacks"
    return math.inf if any(hasattr(estimator, name) for name in others) else 5.0


def _duration(seconds):
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
