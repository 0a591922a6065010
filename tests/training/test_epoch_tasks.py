"""Epochs as tasks of scikit-learn's callbacks."""

import pytest
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.callback import CallbackSupportMixin, ProgressBar, ScoringMonitor, with_callbacks
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention.training import EpochTasks, Plan, batch_sizes, torch_seed, train


class LinearRegressor(CallbackSupportMixin, RegressorMixin, BaseEstimator):
    """Linear regression by gradient descent."""

    def __init__(self, learning_rate=0.1, max_epochs=3):
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs

    @with_callbacks
    def fit(self, X, y):
        plan = Plan(learning_rate=self.learning_rate, max_epochs=self.max_epochs)
        context = self._init_callback_context(max_subtasks=len(batch_sizes(plan, len(X))))
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        inputs, targets = torch.as_tensor(X).float(), torch.as_tensor(y).float()
        with torch_seed(0):
            module = torch.nn.Linear(X.shape[1], 1)

        def batch_loss(module, rows):
            return (module(inputs[rows])[:, 0] - targets[rows]).square().mean()

        def fitted():
            return {"coef_": module.weight.detach().numpy()[0].copy()}

        tasks = EpochTasks(context, self, fitted=fitted, X=X, y=y)
        self.history_ = train(module, batch_loss, len(X), plan, random_state=0, task=tasks)
        self.coef_ = fitted()["coef_"]
        context.call_on_fit_task_end(estimator=self, X=X, y=y, reconstruction_attributes={})
        return self

    def predict(self, X):
        return X @ self.coef_


class Recorder:
    """A callback that writes down what it is told, and may stop the fit."""

    max_propagation_depth = None

    def __init__(self, stop_after=None):
        self.begun, self.ended, self.teardowns, self.stop_after = [], [], 0, stop_after

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.teardowns += 1

    def on_fit_task_begin(self, estimator, context):
        self.begun.append((context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.ended.append((context.task_name, fitted_estimator.predict(X)[0]))
        return len(self.ended) == self.stop_after


@pytest.fixture
def data(task):
    return task.x.numpy(), task.y.numpy()


def test_every_epoch_is_a_task_with_an_estimator_that_predicts(data):
    recorder = Recorder()
    LinearRegressor().set_callbacks(recorder).fit(*data)
    assert recorder.begun == [("fit", 0), ("epoch", 0), ("epoch", 1), ("epoch", 2)]
    assert [name for name, _ in recorder.ended] == ["epoch"] * 3 + ["fit"]
    predictions = [value for _, value in recorder.ended]
    assert len(set(predictions[:3])) == 3
    assert predictions[2] == predictions[3]
    assert recorder.teardowns == 1


@pytest.mark.parametrize("stop_after", [1, 2])
def test_a_callback_can_stop_the_fit(data, stop_after):
    model = LinearRegressor(max_epochs=5).set_callbacks(Recorder(stop_after)).fit(*data)
    assert model.history_.stopped == "callback"
    assert len(model.history_.loss) == stop_after


def test_callbacks_change_nothing(data):
    watched = LinearRegressor().set_callbacks(Recorder()).fit(*data)
    assert watched.coef_.tolist() == LinearRegressor().fit(*data).coef_.tolist()


def test_callbacks_that_want_no_estimator_cost_none(data, monkeypatch):
    class Idle(Recorder):
        def on_fit_task_end(self, estimator, context):
            self.ended.append(context.task_name)

    asked, init = [], EpochTasks.__init__

    def watched(self, *args, fitted, **options):
        init(self, *args, fitted=lambda: asked.append(1) or fitted(), **options)

    monkeypatch.setattr(EpochTasks, "__init__", watched)
    recorder = Idle()
    LinearRegressor().set_callbacks(recorder).fit(*data)
    assert (recorder.ended, asked) == (["epoch"] * 3 + ["fit"], [])
    LinearRegressor().set_callbacks(Recorder()).fit(*data)
    assert len(asked) == 3


def test_teardown_after_a_loss_that_is_not_finite(data):
    recorder = Recorder()
    X = data[0].copy()
    X[0, 0] = float("inf")
    with pytest.raises(FloatingPointError, match="epoch 0"):
        LinearRegressor().set_callbacks(recorder).fit(X, data[1])
    assert recorder.teardowns == 1


def test_scores_of_every_epoch(data):
    monitor = ScoringMonitor(scoring="r2")
    LinearRegressor().set_callbacks(monitor).fit(*data)
    log = monitor.get_logs(select="most_recent").data_as_pandas
    assert log["r2"].nunique() == 3


@pytest.mark.parametrize("where", ["estimator", "pipeline", "search"])
def test_progress(data, where, capfd):
    pytest.importorskip("rich")
    model = LinearRegressor()
    if where == "pipeline":
        model = make_pipeline(StandardScaler(), model)
    elif where == "search":
        model = GridSearchCV(model, {"learning_rate": [0.1, 0.2]}, cv=2)
    model.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(*data)
    shown = capfd.readouterr().out
    assert "LinearRegressor - fit" in shown
    assert "100%" in shown
