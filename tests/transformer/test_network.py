"""The network of an encoder: its tokens, its outputs, and what it learns from."""

import numpy as np
import pytest
import torch

from sklearn_attention.transformer._forms import SequenceRows
from sklearn_attention.transformer._network import (
    FeatureTokens,
    HeldOutLoss,
    NumericTokens,
    OutputShares,
    RowEncoder,
    StepTokens,
    attention_maps,
    outputs_of,
    pinball,
    row_losses,
)
from sklearn_attention.transformer._task import Loss

SMALL = {
    "d_model": 8, "n_heads": 2, "n_layers": 2, "d_feedforward": 16, "pooling": "mean",
    "positions": "sinusoidal", "max_length": 9, "dropout": 0.0,
}  # fmt: skip

SQUARED_ERROR = row_losses(Loss("squared_error"))


def seeded(build):
    torch.manual_seed(0)
    module = build()
    # No parameter stays where it starts, at 0 for some.
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module.eval()


@pytest.fixture(autouse=True)
def keep_the_global_generator():
    with torch.random.fork_rng():
        yield


def test_tokens_of_numbers_are_linear_between_quantiles():
    tokens = seeded(lambda: NumericTokens(2, 3, 4))
    z = np.array([[0.3, -2.0], [1.0, np.nan]])
    u = np.array([[1.6, 0.0], [3.0, np.nan]])
    found = tokens(torch.tensor(z).float(), torch.tensor(u).float()).detach().numpy()
    bias, slope, pieces, missing = (
        getattr(tokens, name).detach().numpy()
        for name in ("bias", "slope", "pieces", "missing")
    )
    for row in range(2):
        for j in range(2):
            expected = bias[j].copy()
            if np.isnan(z[row, j]):
                expected += missing[j]
            else:
                expected += z[row, j] * slope[j]
                for k in range(3):
                    expected += min(max(u[row, j] - k, 0.0), 1.0) * pieces[j, k]
            np.testing.assert_allclose(found[row, j], expected, rtol=1e-5, atol=1e-6)


def test_order_of_tokens_is_that_of_the_features():
    tokens = seeded(lambda: FeatureTokens(4, n_levels=[3, None, 2, None], n_pieces=2))
    z = torch.tensor([[0.5, -0.5]])
    found = tokens(z, z, torch.tensor([[2, -1]]))[0]
    numbers = tokens.numeric(z, z)[0]
    torch.testing.assert_close(found[[1, 3]], numbers)
    # Rows of the table: unknown and three levels, unknown and two levels.
    torch.testing.assert_close(found[0], tokens.levels.weight[3])
    torch.testing.assert_close(found[2], tokens.levels.weight[4])


def test_steps_are_linear_and_missing_values_add_a_vector():
    tokens = seeded(lambda: StepTokens(4, n_channels=2))
    steps = torch.tensor([[[1.0, 2.0], [torch.nan, 2.0]]])
    found = tokens(steps)[0]
    weight, bias = tokens.linear.weight, tokens.linear.bias
    torch.testing.assert_close(found[0], weight[:, 0] + 2 * weight[:, 1] + bias)
    expected = 2 * weight[:, 1] + bias + tokens.missing.weight[:, 0]
    torch.testing.assert_close(found[1], expected)


def make_sequences(n=7, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 10, size=n)
    steps = rng.normal(size=(lengths.sum(), 2)).astype(np.float32)
    return SequenceRows(steps, lengths)


def make_network(n_outputs=3, **options):
    options = SMALL | options
    return seeded(lambda: RowEncoder("steps", {"n_channels": 2}, n_outputs, **options))


@pytest.mark.parametrize(
    ("pooling", "positions"), [("mean", "rotary"), ("last", "learned"), ("cls", None)]
)
def test_padding_has_no_influence(pooling, positions):
    network = make_network(pooling=pooling, positions=positions)
    rows = make_sequences()
    (steps,), is_token = rows.batch(np.arange(7))
    together = network(torch.from_numpy(steps), is_token=torch.from_numpy(is_token))
    polluted = np.where(is_token[..., None], steps, 1e3).astype(np.float32)
    noisy = network(torch.from_numpy(polluted), is_token=torch.from_numpy(is_token))
    for row in range(7):
        alone = network(torch.from_numpy(steps[row : row + 1, : rows.lengths[row]]))
        for part in (0, 1):
            torch.testing.assert_close(together[part][row], alone[part][0])
            torch.testing.assert_close(noisy[part][row], alone[part][0])


def test_each_pooling_takes_what_it_says():
    rows = make_sequences(1, seed=3)
    (steps,), _ = rows.batch(np.array([0]))
    steps = torch.from_numpy(steps)
    network = make_network()
    tokens = network.encoder(network.tokens(steps))[0]
    for pooling, expected in [("mean", tokens.mean(dim=1)), ("last", tokens[:, -1])]:
        network.pooling = pooling
        outputs, pooled, weights = network(steps)
        torch.testing.assert_close(pooled, expected)
        torch.testing.assert_close(outputs, network.head(expected))
        assert weights is None
    network = make_network(pooling="cls")
    rows = torch.cat([network.cls.weight[None], network.tokens(steps)], dim=1)
    torch.testing.assert_close(network(steps)[1], network.encoder(rows)[0][:, 0])


def test_outputs_of_blocks_come_back_in_order(monkeypatch):
    network, rows = make_network(), make_sequences(30)
    expected = outputs_of(network, rows)
    monkeypatch.setattr("sklearn_attention.transformer._network._MOST_TOKENS", 12)
    for found, whole in zip(outputs_of(network, rows), expected, strict=True):
        np.testing.assert_allclose(found, whole, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_attention_maps_are_those_of_each_row_alone(pooling):
    network, rows = make_network(pooling=pooling), make_sequences()
    maps = attention_maps(network, rows)
    first = pooling == "cls"
    longest = rows.lengths.max() + first
    assert maps.shape == (7, 2, 2, longest, longest)
    for row, length in enumerate(rows.lengths + first):
        alone = attention_maps(network, rows.take(np.array([row])))[0]
        np.testing.assert_allclose(maps[row, :, :, :length, :length], alone, atol=1e-5)
        np.testing.assert_allclose(alone.sum(axis=-1), 1, rtol=1e-5)
        assert not maps[row, :, :, length:].any()
        assert not maps[row, ..., length:].any()


class TestLosses:
    def make_epochs(self, n_outputs):
        """Networks of some epochs, rows held out with targets and weights, and all outputs."""
        networks, rows = [make_network(n_outputs) for _ in range(8)], make_sequences()
        for seed, network in enumerate(networks):
            own = torch.Generator().manual_seed(seed)
            torch.nn.init.normal_(network.head.weight, std=0.1, generator=own)
        rng = np.random.default_rng(1)
        targets = rng.normal(size=(7, n_outputs)).astype(np.float32)
        weights = rng.uniform(size=7).astype(np.float32)
        outputs = np.array([outputs_of(network, rows)[0] for network in networks])
        return networks, (rows, targets, weights), outputs

    def check_outputs(self, held_out, outputs, losses_of):
        """Outputs of a row are of the epoch that is best for the four other fifths."""
        chosen = set()
        for row in range(7):
            best = losses_of(np.arange(7) % 5 != row % 5).argmin()
            np.testing.assert_array_equal(held_out.outputs[row], outputs[best, row])
            chosen.add(best)
        assert len(chosen) > 1

    def test_rows_held_out_are_told_by_the_epoch_that_others_choose(self):
        networks, (rows, targets, weights), outputs = self.make_epochs(1)
        how = SQUARED_ERROR, OutputShares(1)
        held_out = HeldOutLoss(rows, targets, weights, *how)
        found = [held_out(network) for network in networks]
        losses = weights * ((outputs - targets) ** 2).mean(axis=2)  # (epochs, rows)
        np.testing.assert_allclose(found, losses.sum(axis=1) / weights.sum(), rtol=1e-5)
        self.check_outputs(held_out, outputs, lambda own: losses[:, own].sum(axis=1))

    def test_of_several_outputs_what_is_left_of_each_is_multiplied(self):
        networks, (rows, targets, weights), outputs = self.make_epochs(3)
        targets[:, 0] *= 9
        shares = OutputShares(3)
        held_out = HeldOutLoss(rows, targets, weights, SQUARED_ERROR, shares)
        errors = weights[:, None] * (outputs - targets) ** 2  # (epochs, rows, outputs)
        constant = weights[:, None] * targets**2

        def overall(own):
            left = errors[:, own].sum(axis=1) / constant[own].sum(axis=0)
            return np.exp(np.log(np.minimum(left, 1) + 0.01).mean(axis=1))

        found = [held_out(network) for network in networks]
        np.testing.assert_allclose(found, overall(slice(None)), rtol=1e-5)
        self.check_outputs(held_out, outputs, overall)


def test_pinball_weighs_what_is_above_and_below_a_quantile():
    missed, levels = torch.tensor([[-2.0], [0.0], [3.0]]), [0.1, 0.5, 0.8]
    found = pinball(missed, levels)
    for b, j in np.ndindex(3, 3):
        error = missed[b].item()
        expected = levels[j] * error if error > 0 else (levels[j] - 1) * error
        assert found[b, j].item() == pytest.approx(expected)


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
    # As soon as it is better than the constant it has its share again.
    shares.update(torch.full((4,), 0.9), torch.ones(4))
    assert shares.shares.tolist() == [1, 1, 1, 1]
