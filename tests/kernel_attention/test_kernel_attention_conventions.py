"""scikit-learn's own checks, and the company kernel attention keeps."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_attention import KernelAttentionClassifier, KernelAttentionRegressor
from sklearn_attention.kernel_attention._members import KernelRidge

READOUTS = ["average", "local_linear", "solve"]
ESTIMATORS = [KernelAttentionRegressor, KernelAttentionClassifier]
QUICK = {"max_steps": 3, "n_folds": 1}
VARIANTS = [estimator(**QUICK) for estimator in ESTIMATORS]
# Averages start with wide kernels.
SLOW_VARIANTS = [
    estimator(readout, max_steps=40, n_folds=1)
    for estimator in ESTIMATORS
    for readout in ("average", "local_linear")
]
BATCHES = (
    "a kernel is learned from random batches of rows, judged by other random rows: a row of "
    "weight 2 is drawn once, its copies are two rows"
)


def expected_failures(estimator):
    return {"check_sample_weight_equivalence_on_dense_data": BATCHES}


@parametrize_with_checks(VARIANTS, expected_failed_checks=expected_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(SLOW_VARIANTS, expected_failed_checks=expected_failures)
def test_scikit_learn_conventions_of_other_readouts(estimator, check):
    check(estimator)


def make_data(estimator=KernelAttentionRegressor, n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)
    return X, (y > 0).astype(int) if estimator is KernelAttentionClassifier else y


def make_frame(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=n), "color": rng.choice(["r", "g"], n)})
    frame["age"] = np.where(rng.uniform(size=n) < 0.2, np.nan, rng.normal(size=n))
    return frame


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
class TestFiles:
    @pytest.mark.parametrize("store", ["pickle", "deepcopy", "skops"])
    def test_bring_it_back(self, estimator, readout, store):
        frame, y = make_frame(), make_data(estimator)[1]
        model = estimator(readout, **QUICK).fit(frame, y)
        model.predict(frame)
        model.explain(frame)
        assert model._memo
        if store == "pickle":
            loaded = pickle.loads(pickle.dumps(model))
        elif store == "deepcopy":
            loaded = copy.deepcopy(model)
        else:
            skops = pytest.importorskip("skops.io")
            binary = skops.dumps(model)
            types = skops.get_untrusted_types(data=binary)
            # The estimator, and its kernel's formula: nothing of how it was learned.
            assert sorted(name.rpartition(".")[2] for name in types) == sorted(
                [estimator.__name__, type(model.kernel_).__name__]
            )
            loaded = skops.loads(binary, trusted=types)
        assert loaded._memo == {}
        np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
        np.testing.assert_array_equal(loaded.transform(frame), model.transform(frame))
        for found, expected in zip(loaded.explain(frame), model.explain(frame), strict=True):
            np.testing.assert_array_equal(found, expected)
        if estimator is KernelAttentionRegressor:
            np.testing.assert_array_equal(
                loaded.predict_quantiles(frame), model.predict_quantiles(frame)
            )
        else:
            np.testing.assert_array_equal(
                loaded.predict_proba(frame), model.predict_proba(frame)
            )

    def test_asking_changes_no_public_attribute(self, estimator, readout):
        X, y = make_data(estimator)
        model = estimator(readout, **QUICK).fit(X, y)
        before = {name: value for name, value in vars(model).items() if name != "_memo"}
        stored = pickle.dumps(before)
        model.predict(X)
        model.explain(X)
        model.local_slopes(X)
        model.transform(X)
        if estimator is KernelAttentionRegressor:
            model.predict_interval(X)
        assert {name for name in vars(model) if name != "_memo"} == set(before)
        for name, value in before.items():
            assert vars(model)[name] is value
        assert pickle.dumps(before) == stored


@pytest.mark.parametrize("estimator", ESTIMATORS)
class TestCompany:
    def test_clone_is_unfitted_and_alike(self, estimator):
        model = estimator("solve", kernel="matern52", **QUICK).fit(*make_data(estimator))
        other = clone(model)
        assert other.get_params() == model.get_params()
        with pytest.raises(NotFittedError):
            other.predict(make_data()[0])

    def test_in_a_grid_search(self, estimator):
        X, y = make_data(estimator)
        grid = {"readout": ["average", "solve"], "kernel": ["gaussian", "matern32"]}
        search = GridSearchCV(estimator(**QUICK), grid, cv=2).fit(X, y)
        assert len(search.cv_results_["mean_test_score"]) == 4
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.score(X, y) > 0.5

    def test_in_cross_validation_and_pipelines(self, estimator):
        X, y = make_data(estimator)
        model = make_pipeline(StandardScaler(), estimator(**QUICK))
        assert cross_val_predict(model, X, y, cv=3).shape == y.shape
        assert cross_val_score(model, X, y, cv=3).mean() > 0.3

    def test_in_front_of_another_estimator(self, estimator):
        X, y = make_data(estimator)
        model = make_pipeline(estimator(**QUICK), KNeighborsRegressor()).fit(X, y)
        assert model.predict(X).shape == y.shape

    def test_frames_out_have_the_names_of_the_columns(self, estimator):
        frame, (_, y) = make_frame(), make_data(estimator)
        model = estimator(**QUICK).fit(frame, y)
        found = clone(model).set_output(transform="pandas").fit(frame, y).transform(frame)
        names = model.get_feature_names_out()
        assert list(found.columns) == list(names)
        assert len(set(names)) == len(names)
        np.testing.assert_array_equal(found.to_numpy(), model.transform(frame))
        assert list(found.index) == list(frame.index)
        # The names say what moves the columns.
        moved = frame.assign(color=frame["color"].map({"r": "g", "g": "r"}))
        changed = (model.transform(moved) != model.transform(frame)).any(axis=0)
        assert list(changed) == ["__color" in name for name in names]

    def test_metadata_routing(self, estimator):
        X, y = make_data(estimator)
        with config_context(enable_metadata_routing=True):
            model = estimator(**QUICK).set_fit_request(sample_weight=True)
            model.set_score_request(sample_weight=True)
            scores = cross_val_score(model, X, y, params={"sample_weight": np.ones(60)})
        assert len(scores) == 5

    def test_a_failing_fit_leaves_the_estimator_as_it_was(self, estimator):
        X, y = make_data(estimator)
        model = estimator(**QUICK).fit(X, y)
        before, expected = dict(vars(model)), model.predict(X)
        with pytest.raises(ValueError, match="n_folds=31"):
            model.set_params(n_folds=31).fit(-X[:, :2], y)
        model.set_params(n_folds=1)
        assert vars(model) == before
        np.testing.assert_array_equal(model.predict(X), expected)
        fresh = estimator(n_folds=31)
        with pytest.raises(ValueError, match="n_folds=31"):
            fresh.fit(X, y)
        assert vars(fresh) == vars(estimator(n_folds=31))

    def test_refitting_forgets(self, estimator):
        X, y = make_data(estimator)
        model = estimator(**QUICK).fit(make_frame(), y)
        model.predict(make_frame())
        fresh = estimator(**QUICK).fit(X[:40], y[:40])
        model.fit(X[:40], y[:40])
        np.testing.assert_array_equal(model.predict(X), fresh.predict(X))
        assert set(vars(model)) == set(vars(fresh))

    def test_unfitted(self, estimator):
        for method in ("predict", "transform", "explain", "local_slopes"):
            with pytest.raises(NotFittedError):
                getattr(estimator(), method)(make_data()[0])
        with pytest.raises(NotFittedError):
            estimator().get_feature_names_out()


class Recorder:
    """A callback that writes down what it is told."""

    max_propagation_depth = None

    def __init__(self):
        self.begun, self.ended, self.setups, self.teardowns = [], [], 0, 0

    def setup(self, estimator, context):
        self.setups += 1

    def teardown(self, estimator, context):
        self.teardowns += 1

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)


class PredictingRecorder(Recorder):
    """A callback that asks what the fitted estimator predicts, where there is one."""

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        if fitted_estimator is not None:
            self.ended.append((context.task_name, fitted_estimator.predict(X).shape))


@pytest.mark.parametrize("estimator", ESTIMATORS)
class TestCallbacks:
    @pytest.mark.parametrize("n_folds", [1, 2])
    def test_every_member_is_a_task(self, estimator, n_folds):
        recorder = Recorder()
        model = estimator(max_steps=3, n_folds=n_folds).set_callbacks(recorder)
        model.fit(*make_data(estimator))
        n_members = recorder.begun.count("member")
        assert len(model.members_) <= n_members <= 2 * n_folds
        assert recorder.begun == ["fit"] + ["member"] * n_members
        assert recorder.ended == ["member"] * n_members + ["fit"]
        assert recorder.setups == recorder.teardowns == 1

    def test_the_end_of_fit_has_a_fitted_estimator(self, estimator):
        recorder = PredictingRecorder()
        estimator(**QUICK).set_callbacks(recorder).fit(*make_data(estimator))
        assert recorder.ended == [("fit", (60,))]

    def test_teardown_also_after_a_failure(self, estimator, monkeypatch):
        learn, calls = KernelRidge.fit, []

        def failing(member, *args):
            calls.append(member)
            if len(calls) == 2:
                raise FloatingPointError("nobody knows why")
            return learn(member, *args)

        monkeypatch.setattr(KernelRidge, "fit", failing)
        recorder = Recorder()
        model = estimator(max_steps=3, n_folds=2).set_callbacks(recorder)
        with pytest.raises(FloatingPointError, match="nobody knows why"):
            model.fit(*make_data(estimator))
        assert recorder.begun == ["fit", "member"]
        assert recorder.setups == recorder.teardowns == 1

    def test_parameters_are_checked_before_callbacks_are_set_up(self, estimator):
        recorder = Recorder()
        model = estimator("wrong").set_callbacks(recorder)
        with pytest.raises(ValueError, match="readout='wrong'"):
            model.fit(*make_data(estimator))
        assert recorder.setups == recorder.teardowns == 0

    def test_progress_in_a_search(self, estimator, capfd):
        pytest.importorskip("rich")
        search = GridSearchCV(estimator(**QUICK), {"readout": ["average", "solve"]}, cv=2)
        search.set_callbacks(ProgressBar()).fit(*make_data(estimator))
        assert "GridSearchCV" in capfd.readouterr().out
        assert np.isfinite(search.predict(make_data()[0])).all()
