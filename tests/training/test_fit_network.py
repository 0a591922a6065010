"""Networks of estimators: their parameters, and the fitted network as plain arrays."""

import copy
import dataclasses
import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from sklearn.base import clone

from sklearn_attention import (
    Architecture,
    Training,
    TransformerClassifier,
    TransformerForecaster,
    TransformerLanguageModel,
    TransformerRegressor,
)
from sklearn_attention.training import History
from sklearn_attention.training._fit_network import NetworkSettings


@pytest.mark.parametrize("kind", [TransformerForecaster, TransformerRegressor])
class TestConstructors:
    def test_nested_parameters_can_be_set_where_there_are_none(self, kind):
        model = kind()
        model.set_params(training__weight_decay=0.5, architecture__norm="post")
        assert model.training.weight_decay == 0.5
        assert model.architecture.norm == "post"
        other = clone(model).set_params(training__weight_decay=0.1)
        assert (model.training.weight_decay, other.training.weight_decay) == (0.5, 0.1)
        assert kind().training is None

    def test_other_objects_are_refused(self, kind):
        for name in ("architecture", "training"):
            with pytest.raises(ValueError, match=f"{name}=3 is not valid: pass {name.title()}"):
                NetworkSettings.of(kind(**{name: 3}))


CLASSIFIER = TransformerClassifier("steps")
SERIES = [np.arange(5.0), np.arange(4.0)] * 3, [0, 1] * 3


@pytest.mark.parametrize(
    ("model", "data", "options", "message"),
    [
        (
            CLASSIFIER,
            SERIES,
            {"d_model": 6, "n_heads": 4},
            "n_heads=4 does not divide d_model=6",
        ),
        (CLASSIFIER, SERIES, {"d_model": 3, "n_heads": 1}, "d_model=3 is odd"),
        (
            CLASSIFIER,
            SERIES,
            {"d_model": 4, "n_heads": 1, "architecture__d_position": 3},
            "architecture.d_position=3 is odd",
        ),
        (
            CLASSIFIER,
            SERIES,
            {"architecture__positions": "rotary", "architecture__d_position": 4},
            "positions='rotary' are not appended",
        ),
        (
            TransformerLanguageModel(),
            (["abc"],),
            {"architecture__patch_length": 4},
            r"architecture\.patch_length=4 has no meaning for",
        ),
        (
            TransformerForecaster(),
            (np.arange(40.0),),
            {"training__patience": 2},
            r"training\.patience=2 has no meaning for",
        ),
    ],
)
def test_messages_blame_what_was_passed(model, data, options, message):
    with pytest.raises(ValueError, match=message):
        clone(model).set_params(**options).fit(*data)


# Values that no parameter takes.
_INVALID = ["bad", -1, float("nan"), [1, 2, 3], np.arange(3), object()]


@pytest.mark.parametrize("name", ["learning_rate", "batch_size", "max_epochs"])
class TestPace:
    def test_a_value_that_is_not_valid_is_named(self, name):
        for value in _INVALID:
            with pytest.raises((ValueError, TypeError), match=name):
                TransformerForecaster(**{name: value}).fit(np.arange(40.0))

    def test_belongs_to_the_estimator(self, name):
        with pytest.raises(ValueError, match=f"Invalid parameter '{name}' for .* Training"):
            TransformerForecaster().set_params(**{f"training__{name}": 1})


@pytest.mark.parametrize("kind", [Training, Architecture])
def test_every_parameter_that_is_not_valid_is_named(kind):
    names = kind().get_params(deep=False).keys() - {"checkpoint"}
    for name, value in itertools.product(names, _INVALID):
        part = kind(**{name: value})  # stores it
        model = TransformerForecaster(**{kind.__name__.lower(): part})
        with pytest.raises((ValueError, TypeError), match=name):
            model.fit(np.arange(40.0))


X = np.random.default_rng(0).normal(size=(60, 3))
SMALL = {
    "d_model": 4, "n_heads": 1, "n_layers": 1, "max_epochs": 2, "baseline": False,
    "training": Training(validation_fraction=None),
}  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return TransformerRegressor(**SMALL, device="cpu").fit(X, X[:, 0])


class TestFittedNetwork:
    def test_makes_the_module_of_its_weights(self, model):
        network = model.network_
        module = network.module("cpu")
        assert not module.training
        assert module is network.module("cpu") is model.module_
        for name, value in module.state_dict().items():
            np.testing.assert_array_equal(value, network.weights[name])
        # Copies have no module until it is needed.
        for other in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
            assert not other._built
            for name, value in other.module("cpu").state_dict().items():
                np.testing.assert_array_equal(value, network.weights[name])

    def test_many_threads_may_be_the_first_to_need_a_module(self, model):
        for _ in range(3):
            network = copy.deepcopy(model.network_)
            with ThreadPoolExecutor(8) as pool:
                modules = [*pool.map(network.module, ["cpu", "cpu:0"] * 4)]
            assert all(isinstance(module, torch.nn.Module) for module in modules)

    @pytest.mark.parametrize("kind", ["builtins.dict", ""])
    def test_other_kinds_are_refused(self, model, kind):
        foreign = dataclasses.replace(model.network_, kind=kind)
        with pytest.raises(ValueError, match="a network of this package"):
            foreign.module("cpu")


@pytest.mark.parametrize("stopped", ["interrupted", "max_epochs"])
def test_the_end_of_a_training_is_told_where_it_was_started(stopped, monkeypatch):
    history = History(
        loss=[1.0, 0.5], validation_loss=[1.0, 0.5], best_epoch=1, n_steps=2, stopped=stopped
    )
    monkeypatch.setattr("sklearn_attention.training._train.train", lambda *_, **__: history)
    with pytest.warns(UserWarning, match="interrupted|still falling") as caught:
        TransformerRegressor(**SMALL).fit(X, X[:, 0])
    assert [warning.filename for warning in caught] == [__file__]


def test_weights_of_another_shape_are_not_gone_on_from(model):
    more = copy.deepcopy(model).set_params(warm_start=True, learning_rate=1e-12)
    more.fit(X, X[:, 0])
    for name, value in model.network_.weights.items():
        np.testing.assert_allclose(more.network_.weights[name], value, atol=1e-9)
    with pytest.raises(ValueError, match="whose d_model was 4, not 8"):
        more.set_params(d_model=8).fit(X, X[:, 0])
