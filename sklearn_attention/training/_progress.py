"""A line that says how far a training is."""

import multiprocessing
import shutil
import sys
import threading
import time

# "auto": seconds before the first line.
_PATIENCE = 5.0
# Seconds between two lines, on a terminal and elsewhere.
_PAUSES = {True: 0.2, False: 10.0}


class Progress:
    """A line on stderr about a training, rewritten in place on a terminal.

    A context manager: once there was a line, another one says at the end how it went.

    Parameters
    ----------
    name : str
        Of the estimator.
    n_epochs, n_steps : int
        Of the whole training.
    delay : float
        Seconds before the first line.
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
        """Show the state, if it is time to.

        Parameters
        ----------
        history : History
            Of the whole epochs.
        n_steps : int
            Made so far.
        """
        now, self._history = time.monotonic(), history
        if self._first is None:
            # The first step is slow, and those before a checkpoint took none of this time.
            self._first = now, n_steps
        elif now >= self._due and self._first[1] < n_steps < self._n_steps:
            pace = (now - self._first[0]) / (n_steps - self._first[1])
            epoch = min(len(history.loss) + 1, self._n_epochs)
            self._show(epoch, f"{_duration(pace * (self._n_steps - n_steps))} left")
            self._due = now + _PAUSES[sys.stderr.isatty()]

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
    """Seconds before an estimator says how far its training is; None if it never does.

    Parameters
    ----------
    verbose : bool or "auto"
        "auto" leaves the word to meta-estimators and to callbacks of the user.
    estimator : estimator

    Returns
    -------
    delay : float or None
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
    told = hasattr(estimator, "_parent_callback_ctx") or hasattr(estimator, "_skl_callbacks")
    return None if told else _PATIENCE


def _duration(seconds):
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
