"""Networks that are learned and held as plain arrays."""

import copy
import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from sklearn_attention import Training, TransformerRegressor
from sklearn_attention.training import History
from sklearn_attention.training._fit_network import FittedNetwork

X = np.random.default_rng(0).normal(size=(60, 3))
SMALL = {
    "d_model": 4,
    "n_heads": 1,
    "n_layers": 1,
    "max_epochs": 2,
    "baseline": False,
    "training": Training(validation_fraction=None),
}


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

    @pytest.mark.parametrize(
        "copied", [copy.deepcopy, lambda network: pickle.loads(pickle.dumps(network))]
    )
    def test_copies_have_no_module_until_it_is_needed(self, model, copied):
        model.network_.module("cpu")
        other = copied(model.network_)
        assert not other._built
        inputs = torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(2, 0, dtype=torch.int64)
        both = (network.module("cpu")(*inputs)[0] for network in (model.network_, other))
        torch.testing.assert_close(*both, rtol=0, atol=0)

    def test_many_threads_may_be_the_first_to_need_a_module(self, model):
        for _ in range(5):
            network = copy.deepcopy(model.network_)
            with ThreadPoolExecutor(8) as pool:
                modules = [*pool.map(network.module, ["cpu", "cpu:0"] * 8)]
            assert len(modules) == 16
            assert all(isinstance(module, torch.nn.Module) for module in modules)

    @pytest.mark.parametrize("kind", ["builtins.dict", "torch.nn.Linear", "Linear", ""])
    def test_other_kinds_are_refused(self, model, kind):
        foreign = dataclasses.replace(model.network_, kind=kind)
        with pytest.raises(ValueError, match="is no network of this package"):
            foreign.module("cpu")

    def test_functions_of_the_package_are_refused(self, model):
        kind = "sklearn_attention.training._network.digest"
        with pytest.raises(ValueError, match="is no network of this package"):
            FittedNetwork(kind, {}, {}, 8, {}).module("cpu")


@pytest.mark.parametrize("stopped", ["interrupted", "max_epochs"])
def test_the_end_of_a_training_is_told_where_it_was_started(stopped, monkeypatch):
    history = History(
        loss=[1.0, 0.5], validation_loss=[1.0, 0.5], best_epoch=1, n_steps=2, stopped=stopped
    )
    monkeypatch.setattr("sklearn_attention.training._train.train", lambda *_, **__: history)
    with pytest.warns(UserWarning, match="interrupted|still falling") as caught:
        TransformerRegressor(**SMALL).fit(X, X[:, 0])
    assert [warning.filename for warning in caught] == [__file__]


class TestStart:
    def test_is_that_of_the_last_fit(self, model):
        more = copy.deepcopy(model).set_params(warm_start=True, learning_rate=1e-12)
        more.fit(X, X[:, 0])
        for name, value in model.network_.weights.items():
            np.testing.assert_allclose(more.network_.weights[name], value, atol=1e-9)

    def test_of_another_shape_is_refused(self, model):
        wider = copy.deepcopy(model).set_params(warm_start=True, d_model=8)
        with pytest.raises(ValueError, match="whose d_model was 4, not 8"):
            wider.fit(X, X[:, 0])
        assert wider.network_ is not None
        np.testing.assert_array_equal(wider.predict(X[:3]), model.predict(X[:3]))
