"""How much a transformer counts beside its baseline."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from sklearn_attention import TransformerRegressor
from sklearn_attention.transformer._fitted import choose_weights, choose_weights_of_targets
from sklearn_attention.transformer._task import Loss

TINY = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 1}


def test_weights_of_an_output_do_not_depend_on_the_others():
    rng = np.random.default_rng(0)
    targets, weights = rng.normal(size=(50, 2)), rng.uniform(1, 2, size=50)
    baseline, network = targets + rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    network[:, 1] = targets[:, 1]
    loss = Loss("squared_error")
    found = choose_weights_of_targets(loss, targets, weights, baseline, network)
    assert found.shape == (2, 2)
    for k in range(2):
        own = slice(k, k + 1)
        losses = loss.negative_log_likelihood(targets[:, own], weights, baseline[:, own])
        expected = choose_weights(baseline[:, own], network[:, own], losses)
        np.testing.assert_array_equal(found[:, k], expected)
    assert found[0, 0] > found[1, 0]
    assert found[1, 1] > 0.9


@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize(
    ("weight", "warns"),
    [(0.09, True), (np.array([0.0, 0.05]), True), (np.array([0, 0.5]), False)],
)
def test_little_weight_is_a_warning_of_what_is_of_the_transformer(weight, warns):
    X = np.arange(24.0).reshape(12, 2)
    model = TransformerRegressor(**TINY).fit(X, X[:, 0])
    model.encoder_ = replace(model.encoder_, transformer_weight=weight)
    shown = f"transformer_weight_ is {np.max(weight):.2g}: .* baseline=False"
    for ask in (model.transform, model.attention_maps):
        with pytest.warns(UserWarning, match=shown) if warns else nullcontext():
            assert len(ask(X)) == 12
