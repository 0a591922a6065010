"""How much each of several outputs counts in training."""

import numpy as np
import pytest
import torch

from sklearn_attention import TransformerClassifier, TransformerRegressor
from sklearn_attention.transformer._output_shares import OutputShares, overall


def test_of_one_output_the_loss_is_the_weighted_mean():
    losses, weights = torch.rand(5, 1), torch.rand(5)
    shares = OutputShares(1)
    for held_out in (0.5, 3.0):
        shares.update(torch.tensor([held_out]), torch.tensor([1.0]))
        assert shares.mean(losses, weights) == (losses[:, 0] * weights).mean()


def test_what_is_worse_than_a_constant_loses_its_share():
    shares = OutputShares(4)
    weights = torch.tensor([1.0, 3.0])
    losses = torch.rand(2, 4)
    expected = (losses.mean(dim=1) * weights).mean()
    torch.testing.assert_close(shares.mean(losses, weights), expected)
    held_out = torch.tensor([0.3, 2.0, 1.05, 9.0])
    shares.update(held_out, torch.tensor([1.0, 2.0, 1.0, 3.0]))
    expected = np.array([1, 1, 0.5, 0.02])
    expected /= expected.mean()
    np.testing.assert_allclose(shares.shares, expected, rtol=1e-5)
    found = shares.mean(losses, weights).item()
    errors = (losses.numpy() * expected).mean(axis=1)
    assert found == pytest.approx((errors * weights.numpy()).mean())


def test_an_output_gets_its_share_back():
    shares = OutputShares(2)
    for held_out in (2.0, 0.9):
        shares.update(torch.tensor([0.5, held_out]), torch.ones(2))
    assert shares.shares.tolist() == [1, 1]


def test_more_than_the_loss_of_the_constant_counts_as_much():
    losses = torch.tensor([[0.1, 3.0], [0.1, 3.0]])
    found = overall(losses, torch.ones(2, 2))
    assert found.item() == pytest.approx(np.sqrt(0.11 * 1.01), rel=1e-6)
    assert overall(losses[:, :1], torch.ones(2, 1)).item() == pytest.approx(0.2)


def make_outputs(seed=0, n=300):
    """Rows, and targets of which the first can be learned."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], rng.normal(size=n)])


@pytest.mark.slow
def test_noise_costs_what_can_be_learned_little():
    X, y = make_outputs(seed=1, n=900)
    model = TransformerRegressor(baseline=False).fit(X[:400], y[:400])
    alone = TransformerRegressor(baseline=False).fit(X[:400], y[:400, 0])
    error = np.mean((model.predict(X[400:])[:, 0] - y[400:, 0]) ** 2)
    least = np.mean((alone.predict(X[400:]) - y[400:, 0]) ** 2)
    # Learned with equal shares it is 2.3 times as large.
    assert error < 1.8 * least


@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize("estimator", [TransformerRegressor, TransformerClassifier])
def test_each_output_has_weights_of_its_own(estimator):
    X, y = make_outputs(n=80)
    targets = y if estimator is TransformerRegressor else (y > 0).astype(int)
    model = estimator(d_model=8, n_layers=1, max_epochs=2, baseline=True).fit(X, targets)
    assert model.baseline_weight_.shape == model.transformer_weight_.shape == (2,)
    assert model.baseline_weight_[0] > 1.5 * model.baseline_weight_[1]
    rows, _ = model._read(X)
    times = 1 if estimator is TransformerRegressor else 2
    outputs = np.repeat(model.baseline_weight_, times) * model.baseline_.outputs(rows)
    outputs += np.repeat(model.transformer_weight_, times) * model._encode(rows)[0]
    if estimator is TransformerRegressor:
        found = (model.predict(X) - model.center_) / model.scale_
        np.testing.assert_allclose(found, outputs, rtol=1e-6)
    else:
        found = [part[:, 1] - part[:, 0] for part in model.predict_log_proba(X)]
        np.testing.assert_allclose(found, (outputs[:, 1::2] - outputs[:, ::2]).T, rtol=1e-6)
