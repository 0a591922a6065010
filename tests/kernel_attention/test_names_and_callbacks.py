"""Names of the columns of kernel attention, and its members as tasks of callbacks."""

import numpy as np
import pandas as pd
import pytest
from recorder import Recorder

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
def test_frames_out_have_the_names_of_the_columns(estimator):
    frame, (_, y) = make_frame(), make_data(estimator)
    model = estimator(**QUICK).set_output(transform="pandas").fit(frame, y)
    found, names = model.transform(frame), model.get_feature_names_out()
    assert list(found.columns) == list(names)
    assert len(set(names)) == len(names)
    assert list(found.index) == list(frame.index)
    # The names say what moves the columns.
    moved = frame.assign(color=frame["color"].map({"r": "g", "g": "r"}))
    changed = (model.transform(moved) != found).any(axis=0)
    assert list(changed) == ["__color" in name for name in names]


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
