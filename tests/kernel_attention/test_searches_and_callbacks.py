"""Kernel attention in searches and pipelines, and its members as tasks of callbacks."""

import numpy as np
import pandas as pd
import pytest
from recorder import Recorder
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import KernelAttentionClassifier, KernelAttentionRegressor
from sklearn_attention.kernel_attention._members import KernelRidge

ESTIMATORS = [KernelAttentionRegressor, KernelAttentionClassifier]
QUICK = {"max_steps": 3, "n_folds": 1}


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


@pytest.mark.parametrize("estimator", ESTIMATORS)
class TestCompany:
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
