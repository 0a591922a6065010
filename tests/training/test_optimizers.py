"""Optimizers: what decays, and Muon for the matrices of blocks."""

import pytest
import torch
from plans import plan_for

from sklearn_attention import Training
from sklearn_attention.nn import Encoder, LearnedPositions
from sklearn_attention.nn._random import initialize
from sklearn_attention.training import train
from sklearn_attention.training._network import torch_seed
from sklearn_attention.training._optimizers import (
    Muon,
    computes_bfloat16,
    decay_groups,
    make_optimizers,
)


class Everything(torch.nn.Module):
    """One of each."""

    def __init__(self):
        super().__init__()
        self.tied = torch.nn.Parameter(torch.ones(5, 4))
        self.tokens = torch.nn.Embedding(5, 4)
        self.tokens.weight = self.tied
        self.places = LearnedPositions(7, 4)
        self.composition = Decomposition(4, 3, bias=False)
        self.linear = torch.nn.Linear(4, 3)
        self.norm = torch.nn.LayerNorm([2, 3])
        self.scales = torch.nn.Parameter(torch.ones(3))
        self.frozen = torch.nn.Parameter(torch.ones(2, 2), requires_grad=False)


class Decomposition(torch.nn.Linear):
    """A layer with "position" in its name."""


def test_matrices_decay_and_nothing_else():
    module = Everything()
    decaying, others = decay_groups(module, 0.3)
    assert decaying["weight_decay"] == 0.3
    assert others["weight_decay"] == 0.0
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    matrices = {"tied", "linear.weight", "composition.weight"}
    assert {names[id(p)] for p in decaying["params"]} == matrices
    assert {names[id(p)] for p in others["params"]} == {
        "places.table.weight", "linear.bias", "norm.weight", "norm.bias",
        "scales",
    }  # fmt: skip
    assert len(decaying["params"]) == 3
    # Empty groups are left out.
    assert len(decay_groups(torch.nn.Linear(2, 2, bias=False), 0.1)) == 1
    with pytest.raises(ValueError, match="module=ReLU has no parameter"):
        train(torch.nn.ReLU(), None, 3, Training(), random_state=0)


class Network(torch.nn.Module):
    """An encoder between other layers."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Linear(2, 8)
        self.encoder = Encoder(2, 8, 2, 16)
        self.head = torch.nn.Linear(8, 1)


@pytest.fixture
def network():
    with torch_seed(0):
        return initialize(Network())


def inner(name):
    """Whether Muon changes a parameter of the network."""
    return name.startswith("encoder.blocks") and name.endswith("weight") and "norm" not in name


@pytest.mark.usefixtures("autocast")
def test_steps_are_those_of_torch():
    options = {"weight_decay": 0.3, "momentum": 0.85}
    generator = torch.Generator().manual_seed(0)
    shapes = [(8, 8), (24, 8), (8, 8), (8, 24), (5, 3)]
    start = [torch.randn(shape, generator=generator) for shape in shapes]
    ours, theirs = ([torch.nn.Parameter(w.clone()) for w in start] for _ in range(2))
    rate = 0.05
    mine = Muon(ours, lr=rate, **options)
    reference = torch.optim.Muon(theirs, lr=rate, adjust_lr_fn="match_rms_adamw", **options)
    for _ in range(5):
        for ours_one, theirs_one in zip(ours, theirs, strict=True):
            ours_one.grad = torch.randn(ours_one.shape, generator=generator)
            theirs_one.grad = ours_one.grad.clone()
        ours[-1].grad = theirs[-1].grad = None
        mine.step()
        reference.step()
    for before, found, expected in zip(start, ours, theirs, strict=True):
        moved = (expected - before).norm()
        # They round to bfloat16 in another order.
        assert (found - expected).norm() <= 0.02 * moved
    assert torch.equal(ours[-1], start[-1])


def test_each_parameter_has_the_optimizer_it_needs(network):
    network.encoder.blocks[0].attention.query.weight.requires_grad_(False)
    muon, adamw = make_optimizers(
        plan_for(50, optimizer="muon", learning_rate=0.02, weight_decay=0.3), network
    )
    (group,) = muon.param_groups
    names = {id(p): name for name, p in network.named_parameters()}
    found = {names[id(p)] for p in group["params"]}
    assert found == {name for name in names.values() if inner(name)} - {
        "encoder.blocks.0.attention.query.weight"
    }
    assert len(found) == 11
    assert (group["weight_decay"], group["lr"]) == (0.3, 0.02)
    decaying, others = adamw.param_groups
    assert {names[id(p)] for p in decaying["params"]} == {"embed.weight", "head.weight"}
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.3, 0.0)
    n_trained = sum(p.requires_grad for p in network.parameters())
    assert len(found) + len(decaying["params"]) + len(others["params"]) == n_trained


def test_without_blocks_there_is_nothing_for_it(task):
    with pytest.raises(ValueError, match=r"optimizer='muon'.*module=Sequential.*pass 'adamw'"):
        task.fit(optimizer="muon")


@pytest.mark.parametrize("has", [False, True])
def test_processors_and_devices_tell_whether_they_compute_in_half_precision(monkeypatch, has):
    for name in ("amx_bf16", "avx512_bf16", "bf16"):  # of Intel, AMD and Arm
        able = {"avx2": True, name: has, "architecture": "x86_64"}
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda able=able: able)
        assert computes_bfloat16(torch.device("cpu")) == has
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation: including_emulation or has
    )
    assert computes_bfloat16(torch.device("cuda")) == has
    assert computes_bfloat16(torch.device("mps"))
