"""The training loop: what it computes, and what it leaves alone."""

import copy
from contextlib import nullcontext

import pytest
import torch
from plans import plan_for

from sklearn_attention import Training
from sklearn_attention.training import train
from sklearn_attention.training._training import batch_sizes, pace

PLAN = {"learning_rate": 0.01, "batch_size": 8, "max_epochs": 6}


@pytest.mark.parametrize(
    ("optimizer", "clip_norm"), [("adamw", 0.05), ("adamw", 100.0), ("adam", None)]
)
def test_is_the_loop_written_out(task, optimizer, clip_norm):
    options = {
        "optimizer": optimizer, "learning_rate": 0.02, "batch_size": 8, "max_epochs": 4,
        "weight_decay": 0.1, "clip_norm": clip_norm,
    }  # fmt: skip
    seen, theirs = [], task.module(dropout=0.0)

    def recording(module, rows):
        assert module.training
        seen.append(rows)
        return task.loss(module, rows)

    ours, _ = task.fit(copy.deepcopy(theirs), batch_loss=recording, **options)
    # Every row is seen once an epoch, each time in another order.
    orders = torch.cat(seen).split(50)
    assert all(sorted(order.tolist()) == list(range(50)) for order in orders)
    assert len({tuple(order.tolist()) for order in orders}) == 4
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[optimizer]
    decaying = {"params": [p for p in theirs.parameters() if p.ndim > 1], "weight_decay": 0.1}
    others = {"params": [p for p in theirs.parameters() if p.ndim < 2], "weight_decay": 0.0}
    reference = kind([decaying, others])
    plan = plan_for(50, **options)
    sizes = [size for epoch in batch_sizes(plan, 50) for size in epoch]
    assert [len(rows) for rows in seen] == sizes
    for step, rows in enumerate(seen):
        rate, momentum = pace(plan, step, len(sizes))
        for group in reference.param_groups:
            group["lr"], group["betas"] = rate, (momentum, 0.999)
        reference.zero_grad()
        task.loss(theirs, rows).backward()
        if clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(theirs.parameters(), clip_norm)
        reference.step()
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), atol=1e-6, rtol=1e-4)
    assert not ours.training
    assert all(p.grad is None and p.requires_grad for p in ours.parameters())


def test_history(task):
    _, history = task.fit(task.module(dropout=0.0), **PLAN)
    assert len(history.loss) == len(history.seconds) == len(history.learning_rate) == 6
    assert history.loss[-1] < 0.7 * history.loss[0]
    assert (history.validation_loss, history.best_epoch) == ([], None)
    assert history.stopped == "max_epochs"
    plan = plan_for(50, **PLAN)
    n_steps = sum(map(len, batch_sizes(plan, 50)))
    assert history.n_steps == n_steps
    assert history.learning_rate[-1] == pace(plan, n_steps - 1, n_steps)[0]
    assert all(type(value) is float for value in history.loss + history.seconds)


@pytest.mark.parametrize("options", [{"max_epochs": 1}, {"max_epochs": None, "max_steps": 3}])
def test_the_loss_of_an_epoch_is_the_mean_over_its_rows(task, options):
    """Also of an epoch that a number of steps cuts short."""
    seen = []

    def recording(module, rows):
        seen.append(rows)
        return task.loss(module, rows)

    # Nothing moves, so the loss of the epoch is that of all its rows, whatever the batches.
    options = options | {"learning_rate": 1e-30, "batch_size": 16, "batch_loss": recording}
    module, history = task.fit(task.module(dropout=0.0), **options)
    rows = torch.cat(seen)
    assert len(rows) == (38 if "max_steps" in options else 50)
    expected = task.loss(module, rows).item()
    assert history.loss == pytest.approx([expected], rel=1e-5)


def test_autocast_is_for_training_alone(task, autocast):
    types = set()

    def batch_loss(module, rows):
        output = module(task.x[rows])
        types.add(("training", output.dtype))
        return (output[:, 0].float() - task.y[rows]).square().mean()

    def validation_loss(module):
        output = module(task.x)
        types.add(("validation", output.dtype))
        return output.square().mean()

    module = task.module(dropout=0.0)
    losses = {"batch_loss": batch_loss, "validation_loss": validation_loss}
    with autocast():
        _, history = task.fit(module, **PLAN | {"max_epochs": 8}, autocast=True, **losses)
    assert types == {("training", torch.bfloat16), ("validation", torch.float32)}
    assert history.loss[-1] < 0.7 * history.loss[0]
    assert {p.dtype for p in module.parameters()} == {torch.float32}


@pytest.mark.parametrize("enabled", [True, False])
def test_autocast_of_the_caller_changes_nothing(task, autocast, enabled):
    """Not even that torch keeps rounded weights until the caller's context ends."""

    def losses(context):
        with autocast() if enabled else nullcontext(), context:
            _, history = task.fit(
                task.module(dropout=0.0),
                **PLAN | {"max_epochs": 3},
                autocast=enabled,
                batch_loss=lambda m, rows: task.loss(m, rows).float(),
                validation_loss=lambda m: m(task.x).square().mean(),
            )
        return history.loss, history.validation_loss

    assert losses(torch.autocast("cpu", torch.bfloat16)) == losses(nullcontext())


@pytest.mark.parametrize(
    ("plan", "options", "message"),
    [
        (Training(), {"random_state": -1}, "random_state=-1"),
        ({"patience": 3}, {}, r"plan=.* is not valid: pass Training\(...\)"),
        (Training(patience=3), {}, "patience=3 needs a validation loss"),
    ],
)
def test_bad_input_is_named(task, plan, options, message):
    with pytest.raises(ValueError, match=message):
        train(task.module(), task.loss, 50, plan, **{"random_state": 0} | options)


@pytest.mark.gpu
def test_on_a_cuda_device(task):
    x, y = task.x.cuda(), task.y.cuda()
    found = []
    for _ in range(2):
        module = task.module().cuda()
        before = torch.cuda.get_rng_state()
        history = train(
            module, lambda m, rows: (m(x[rows])[:, 0] - y[rows]).square().mean(), 50,
            Training(), **PLAN, random_state=0,
            validation_loss=lambda m: m(x).square().mean(),
        )  # fmt: skip
        assert torch.equal(torch.cuda.get_rng_state(), before)
        found.append(history.loss)
    assert found[0] == found[1]
    assert found[0][-1] < found[0][0]
