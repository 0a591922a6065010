"""How a training ends: early, by an interrupt, by a number that is not finite."""

import copy

import pytest
import torch

PLAN = {"learning_rate": 0.01, "batch_size": 16, "max_epochs": 8}


def weights(module):
    return copy.deepcopy(module.state_dict())


class Validation:
    """Returns what is prescribed, and keeps the parameters of each epoch."""

    def __init__(self, *values):
        self.values, self.states = iter(values), []

    def __call__(self, module):
        assert not module.training
        assert not torch.is_grad_enabled()
        self.states.append(weights(module))
        return torch.tensor(next(self.values))


def test_patience_ends_it_with_the_best_parameters(task):
    validation = Validation(3.0, 2.0, 1.0, 1.5, 1.0, 0.5)
    module, history = task.fit(patience=2, max_epochs=8, validation_loss=validation)
    assert history.stopped == "patience"
    assert history.validation_loss == [3.0, 2.0, 1.0, 1.5, 1.0]
    assert history.best_epoch == 2
    torch.testing.assert_close(weights(module), validation.states[2], rtol=0, atol=0)


@pytest.mark.parametrize("sign", [1, -1])
def test_less_than_a_hundredth_is_no_gain(task, sign):
    losses = [100.0, 90.0, 89.95, 89.9, 88.0, 87.5, 87.4, 87.3]
    validation = Validation(*(sign * loss + (sign < 0) * -200 for loss in losses[::sign]))
    _, history = task.fit(patience=3, max_epochs=20, validation_loss=validation)
    assert history.stopped == "patience"
    assert len(history.loss) == (8 if sign > 0 else 4)


def interrupting(task, at):
    """A loss that raises in its call number `at`, and the states before each call."""
    states = []

    def batch_loss(module, rows):
        states.append(weights(module))
        if len(states) - 1 == at:
            raise KeyboardInterrupt
        return task.loss(module, rows)

    return batch_loss, states


class TestInterrupt:
    @pytest.mark.parametrize("at", [0, 9])
    def test_without_validation_the_last_parameters_stay(self, task, at):
        batch_loss, states = interrupting(task, at)
        module, history = task.fit(**PLAN, batch_loss=batch_loss)
        assert history.stopped == "interrupted"
        assert len(history.loss) == len(history.seconds) == at // 4
        torch.testing.assert_close(weights(module), states[-1], rtol=0, atol=0)
        assert not module.training

    def test_with_validation_the_best_come_back(self, task):
        batch_loss, _ = interrupting(task, 13)
        validation = Validation(3.0, 1.0, 2.0)
        module, history = task.fit(**PLAN, batch_loss=batch_loss, validation_loss=validation)
        assert (history.stopped, history.best_epoch) == ("interrupted", 1)
        torch.testing.assert_close(weights(module), validation.states[1], rtol=0, atol=0)

    def test_a_second_one_is_raised(self, task, monkeypatch):
        batch_loss, _ = interrupting(task, 6)
        module = task.module()

        def load_state_dict(state):
            raise KeyboardInterrupt

        monkeypatch.setattr(module, "load_state_dict", load_state_dict)
        with pytest.raises(KeyboardInterrupt):
            task.fit(
                module, **PLAN, batch_loss=batch_loss, validation_loss=Validation(1.0, 2.0)
            )


class TestNotFinite:
    def fails(self, task, match, **options):
        module = task.module()
        with pytest.raises(FloatingPointError, match=match):
            task.fit(module, **PLAN | options)
        assert all(p.isfinite().all() for p in module.parameters())
        return module

    def test_input(self, task):
        x = task.x.clone()
        x[3, 0] = torch.inf

        def batch_loss(module, rows):
            return (module(x[rows])[:, 0] - task.y[rows]).square().mean()

        match = r"in epoch 0, step \d is (nan|inf): .*inputs or targets that are not finite"
        start = task.module()
        module = self.fails(task, match, batch_loss=batch_loss)
        torch.testing.assert_close(weights(module), weights(start), rtol=0, atol=0)

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"learning_rate": 1e25, "clip_norm": None, "batch_size": 16},
             r"(loss|gradient) in epoch 0, step \d is .*learning_rate=1e\+25 too large"),
            # A step that leaves what floats can hold.
            ({"learning_rate": 1e38, "batch_size": 50, "max_epochs": 1},
             "length of all parameters in epoch 0.*learning_rate=1e[+]38"),
        ],
    )  # fmt: skip
    def test_a_learning_rate_that_is_too_large(self, task, options, match):
        module = self.fails(task, match, schedule="constant", **options)
        torch.testing.assert_close(weights(module), weights(task.module()), rtol=0, atol=0)

    def test_later_the_parameters_before_the_epoch_come_back(self, task):
        states = []

        def batch_loss(module, rows):
            states.append(weights(module))
            return task.loss(module, rows) * (torch.nan if len(states) == 11 else 1.0)

        module = self.fails(task, "loss in epoch 2, step 2 is nan", batch_loss=batch_loss)
        torch.testing.assert_close(weights(module), states[8], rtol=0, atol=0)

    def test_parameters(self, task):
        module = task.module()
        with torch.no_grad():
            module[0].bias[2] = torch.nan
        with pytest.raises(FloatingPointError, match=r"'0\.bias' was not finite before"):
            task.fit(module, **PLAN)

    def test_validation_loss(self, task):
        validation = Validation(1.0, torch.nan, torch.nan)
        match = "validation loss in epoch 1, step 3 is nan: so it is for the parameters"
        module = self.fails(task, match, validation_loss=validation)
        torch.testing.assert_close(weights(module), validation.states[0], rtol=0, atol=0)
