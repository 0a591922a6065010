"""How to train: values that are checked, learning rates, sizes of batches, budgets."""

import pytest
import torch
from plans import plan_for

from sklearn_attention import Training
from sklearn_attention.training._training import batch_sizes, pace, share_held_out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("optimizer", "sgd"),
        ("learning_rate", 1e300),
        ("warm_up", 1.0),
        ("batch_size", (8, 4)),
        ("batch_size", (1, True)),
        ("batch_size", None),
        ("max_epochs", None),
        ("max_steps", 2.0),
    ],
)
def test_a_bad_value_is_named(name, value):
    with pytest.raises(ValueError, match=name) as error:
        plan_for(10, **{name: value})
    one = value[1] if value == (1, True) else value
    assert repr(one) in str(error.value)
    assert any(remedy in str(error.value) for remedy in ("pass", "choose"))


def sizes_of(n_samples, **options):
    return batch_sizes(plan_for(n_samples, **options), n_samples)


def rates(n_steps, **options):
    plan = plan_for(10, learning_rate=0.5, **options)
    return [pace(plan, step, n_steps) for step in range(n_steps)]


@pytest.mark.parametrize(("n_steps", "warm_up"), [(25, 0.35), (200, 0.1)])
def test_one_cycle_is_that_of_torch(n_steps, warm_up):
    place = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.AdamW([place], lr=0.5)
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.5, total_steps=n_steps, pct_start=warm_up
    )
    for rate, momentum in rates(n_steps, warm_up=warm_up):
        group = optimizer.param_groups[0]
        assert rate == pytest.approx(group["lr"], rel=1e-9)
        assert momentum == pytest.approx(group["betas"][0], rel=1e-9)
        optimizer.step()
        if theirs.last_epoch < n_steps - 1:
            theirs.step()


def test_a_constant_rate_stays_and_leaves_the_momentum_alone():
    assert rates(5, schedule="constant") == [(0.5, None)] * 5


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"batch_size": 4, "max_epochs": 2}, [[4, 3, 3]] * 2),
        ({"batch_size": 64, "max_epochs": 1}, [[10]]),
        ({"batch_size": 4, "max_epochs": None, "max_steps": 5}, [[4, 3, 3], [4, 3]]),
        ({"batch_size": 4, "max_epochs": 1, "max_steps": 5}, [[4, 3, 3]]),
    ],
)
def test_sizes_of_batches(options, expected):
    found = sizes_of(10, **options)
    assert list(found) == expected
    assert found[-2:] == expected[-2:]
    assert found.n_steps == sum(map(len, expected))


def test_epochs_are_not_listed():
    found = sizes_of(10, batch_size=4, max_epochs=10**15, max_steps=10**15)
    assert (len(found), found.n_steps, found.largest) == (-(-(10**15) // 3), 10**15, 4)
    assert (found[10**9], found[-1]) == ([4, 3, 3], [4])


@pytest.mark.parametrize("n_samples", [1, 7, 64, 65, 1000])
@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_batches_are_few_and_of_almost_one_size(n_samples, batch_size):
    (sizes,) = sizes_of(n_samples, batch_size=batch_size, max_epochs=1)
    assert sum(sizes) == n_samples
    assert len(sizes) == -(-n_samples // batch_size)
    assert max(sizes) - min(sizes) <= 1


def test_batches_that_grow_are_refused():
    with pytest.raises(ValueError, match=r"batch_size=\(4, 5\)"):
        sizes_of(10, batch_size=(4, 5), max_epochs=1)


class TestBudget:
    def plan(self, n_samples, **options):
        return plan_for(n_samples, validates=True, fewest_epochs=10, **options)

    def test_about_1000_steps(self):
        plans = [self.plan(n_samples) for n_samples in (1, 384, 3200, 10**6)]
        found = [(plan.batch_size, plan.max_epochs) for plan in plans]
        assert found == [(8, 64), (32, 64), (64, 20), (64, 10)]

    def test_steps_that_are_passed_take_as_many_epochs_as_they_need(self):
        plan = self.plan(20, batch_size=10, max_steps=5000)
        assert (plan.max_epochs, plan.max_steps) == (None, 5000)
        assert self.plan(20, batch_size=10, max_steps=5, max_epochs=7).max_epochs == 7

    @pytest.mark.parametrize(("max_epochs", "patience"), [(4, 8), (64, 16), (None, 16)])
    def test_patience_is_a_quarter_where_something_validates(self, max_epochs, patience):
        options = {"max_epochs": max_epochs, "max_steps": 9}
        assert plan_for(20, validates=True, **options).patience == patience
        assert plan_for(20, validates=False, **options).patience is None

    @pytest.mark.parametrize(("n_samples", "share"), [(39, None), (40, 0.25), (900, 0.1)])
    def test_held_out_is_a_tenth_but_at_least_10(self, n_samples, share):
        assert share_held_out(Training(), n_samples) == share

    def test_patience_needs_something_held_out(self):
        with pytest.raises(ValueError, match=r"training\.patience=3 needs rows"):
            share_held_out(Training(patience=3), 20)
        with pytest.raises(ValueError, match=r"validation_fraction=1\.5"):
            share_held_out(Training(validation_fraction=1.5), 20)
