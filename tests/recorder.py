"""A callback for tests."""


class Recorder:
    """Writes down what it is told, and may stop a fit.

    Parameters
    ----------
    ask : callable, default=None
        What the fitted estimator of each task that has one is asked.
    stop_after : int, default=None
        Number of tasks.
    """

    max_propagation_depth = None

    def __init__(self, ask=None, stop_after=None):
        self._ask, self._stop_after = ask, stop_after
        self.begun, self.ended, self.answers = [], [], []
        self.setups = self.teardowns = 0

    def setup(self, estimator, context):
        self.setups += 1

    def teardown(self, estimator, context):
        self.teardowns += 1

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        self.ended.append(context.task_name)
        if self._ask and fitted_estimator is not None:
            self.answers.append(self._ask(fitted_estimator))
        return len(self.ended) == self._stop_after
