"""Encoders in searches and pipelines, and trainings that go on or are watched."""

import pickle

import numpy as np
import pytest
from recorder import Recorder
from sklearn.base import clone

from sklearn_attention import Training, TransformerClassifier, TransformerRegressor

pytestmark = pytest.mark.usefixtures("few_convolutions", "few_trees")

TINY = {"d_model": 8, "n_heads": 2, "n_layers": 1, "training": Training(max_steps=3)}


class TestWhatTrainingsGoOnFrom:
    X = np.random.default_rng(0).normal(size=(60, 3))
    TEXTS = ["to be", "or not to be", "that is"] * 4

    def make(self, path=None, **options):
        training = Training(max_steps=3, checkpoint=path)
        options = TINY | {"training": training, "baseline": False} | options
        return TransformerRegressor(**options)

    def test_a_checkpoint_knows_the_loss(self, tmp_path):
        y, path, other = self.X[:, 0], tmp_path / "state", {"loss": "quantile", "quantile": 0.9}
        self.make(path, **other | {"quantile": 0.5}).fit(self.X, y)
        found = self.make(path, **other).fit(self.X, y)
        expected = self.make(**other).fit(self.X, y)
        np.testing.assert_array_equal(found.predict(self.X), expected.predict(self.X))

    def test_a_checkpoint_goes_on_with_the_rows_held_out(self, tmp_path):
        class Impatient(Recorder):
            def on_fit_task_end(self, estimator, context, **_):
                if len(self.begun) == 3:  # the fit, and two epochs of four
                    raise KeyError("enough")

        y, path = self.X[:, 0], tmp_path / "state"
        whole = self.make(training=Training(), max_epochs=4).fit(self.X, y)
        stopped = clone(whole).set_params(training__checkpoint=path)
        with pytest.raises(KeyError, match="enough"):
            stopped.set_callbacks(Impatient()).fit(self.X, y)
        resumed = clone(whole).set_params(training__checkpoint=path).fit(self.X, y)
        np.testing.assert_array_equal(resumed.predict(self.X), whole.predict(self.X))
        seconds = resumed.training_history_["seconds"]
        assert clone(resumed).fit(self.X, y).training_history_["seconds"] == seconds

    @pytest.mark.parametrize(
        ("X", "before", "now"),
        [
            (TEXTS, {"tokenizer": "words"}, {"tokenizer": "characters"}),
            ([np.arange(5.0), np.arange(7.0)] * 6, {}, {"max_length": 4}),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*are longer than max_length")
    def test_a_warm_start_reads_as_before(self, X, before, now):
        model = self.make(warm_start=True, **before).fit(X, np.arange(12.0))
        ((name, value),) = now.items()
        with pytest.raises(ValueError, match=f"{name}={value!r} does not fit warm_start=True"):
            model.set_params(**now).fit(X, np.arange(12.0))

    def test_a_warm_start_has_as_many_outputs(self):
        first, second = np.ones((60, 2)), np.ones(60)
        model = self.make(warm_start=True).fit(self.X, first)
        with pytest.raises(ValueError, match="in the last fit: pass targets"):
            model.fit(self.X, second)
        assert model.predict(self.X).shape == first.shape


def test_users_may_call_a_class_dataclass():
    model = TransformerClassifier(**TINY, class_weight={"dataclass": 2.0, "b": 1.0})
    model.fit(np.eye(4), ["dataclass", "b"] * 2)
    again = pickle.loads(pickle.dumps(model))
    assert again.class_weight == model.class_weight
