"""Which parameters decay."""

import pytest
import torch

from sklearn_attention.training import Plan, train
from sklearn_attention.training._optimizer import decay_groups


class Everything(torch.nn.Module):
    """One of each."""

    def __init__(self):
        super().__init__()
        self.tied = torch.nn.Parameter(torch.ones(5, 4))
        self.tokens = torch.nn.Embedding(5, 4)
        self.tokens.weight = self.tied
        self.position_embedding = torch.nn.Parameter(torch.ones(7, 4))
        self.places = Positions()
        self.linear = torch.nn.Linear(4, 3)
        self.norm = torch.nn.LayerNorm([2, 3])
        self.scales = torch.nn.Parameter(torch.ones(3))
        self.frozen = torch.nn.Parameter(torch.ones(2, 2), requires_grad=False)


class Positions(torch.nn.Module):
    """Known by its name."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.ones(7, 4))


def test_matrices_decay_and_nothing_else():
    module = Everything()
    decaying, others = decay_groups(module, 0.3)
    assert decaying["weight_decay"] == 0.3
    assert others["weight_decay"] == 0.0
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    assert {names[id(p)] for p in decaying["params"]} == {"tied", "linear.weight"}
    assert {names[id(p)] for p in others["params"]} == {
        "position_embedding", "places.table", "linear.bias", "norm.weight", "norm.bias",
        "scales",
    }  # fmt: skip
    assert len(decaying["params"]) == 2


def test_empty_groups_are_left_out():
    assert len(decay_groups(torch.nn.Linear(2, 2, bias=False), 0.1)) == 1
    assert decay_groups(torch.nn.ReLU(), 0.1) == []


@pytest.mark.parametrize("optimizer", ["adamw", "adam"])
def test_a_step_is_that_of_torch(optimizer):
    module, theirs = (torch.nn.Linear(3, 2, dtype=torch.float64) for _ in range(2))
    theirs.load_state_dict(module.state_dict())
    x = torch.linspace(-1, 2, 12, dtype=torch.float64).reshape(4, 3)
    kind = torch.optim.AdamW if optimizer == "adamw" else torch.optim.Adam
    reference = kind(
        [
            {"params": [theirs.weight], "weight_decay": 0.5},
            {"params": [theirs.bias], "weight_decay": 0.0},
        ],
        lr=0.05,
    )
    for _ in range(3):
        reference.zero_grad()
        (theirs(x).square().mean()).backward()
        reference.step()
    plan = Plan(
        optimizer, 0.05, "constant", weight_decay=0.5, clip_norm=None, batch_size=4,
        max_epochs=3,
    )  # fmt: skip
    train(module, lambda m, rows: m(x[rows]).square().mean(), 4, plan, random_state=0)
    torch.testing.assert_close(module.state_dict(), theirs.state_dict())


def test_lbfgs_reaches_the_ridge_solution():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(30, 3, generator=generator, dtype=torch.float64)
    y = torch.randn(30, generator=generator, dtype=torch.float64)
    module = torch.nn.Linear(3, 1, bias=False, dtype=torch.float64)
    plan = Plan("lbfgs", weight_decay=0.4, max_epochs=5)
    history = train(
        module, lambda m, rows: 0.5 * (m(x[rows])[:, 0] - y[rows]).square().sum(), 30, plan,
        random_state=0,
    )  # fmt: skip
    solution = torch.linalg.solve(x.T @ x + 0.4 * torch.eye(3), x.T @ y)
    torch.testing.assert_close(module.weight[0], solution, atol=1e-5, rtol=0)
    # The history is of the loss alone.
    assert history.loss[-1] == pytest.approx(float(0.5 * (x @ solution - y).square().sum()))
    assert history.learning_rate == [1.0] * 5
    assert history.n_steps == 5


def test_a_module_without_parameters_is_an_error():
    with pytest.raises(ValueError, match="module=ReLU has no parameter"):
        train(torch.nn.ReLU(), None, 3, Plan(), random_state=0)
