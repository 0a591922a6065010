"""The parameters that all networks share: architecture and training."""

import inspect
import itertools

import numpy as np
import pytest
from sklearn.base import clone

import sklearn_attention
from sklearn_attention import Architecture, Training, TransformerClassifier
from sklearn_attention.training._settings import NetworkDefaults

NETWORKS = [
    getattr(sklearn_attention, name)
    for name in (
        "TransformerClassifier", "TransformerForecaster", "TransformerLanguageModel",
        "TransformerRegressor", "TransformerSeq2Seq",
    )
]  # fmt: skip
SHARED = {
    "d_model", "n_heads", "n_layers", "dropout", "learning_rate", "batch_size", "max_epochs",
    "architecture", "training", "warm_start", "random_state", "device",
}  # fmt: skip


@pytest.mark.parametrize("kind", NETWORKS)
class TestConstructors:
    def test_have_few_parameters(self, kind):
        parameters = inspect.signature(kind).parameters
        assert len(parameters) <= 21
        assert parameters.keys() >= SHARED

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
                NetworkDefaults().settings(kind(**{name: 3}))


class TestArchitecture:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"d_model": 6, "n_heads": 4}, "n_heads=4 does not divide d_model=6"),
            (
                {"d_model": 6, "n_heads": 4, "architecture": Architecture(d_position=4)},
                "n_heads=4 does not divide the tokens' width 10",
            ),
            ({"d_model": 3, "n_heads": 1}, "d_model=3 is odd"),
            (
                {"d_model": 4, "n_heads": 1, "architecture": Architecture(d_position=3)},
                "architecture.d_position=3 is odd",
            ),
            (
                {"d_model": 6, "n_heads": 2, "architecture": Architecture(positions="rotary")},
                "n_heads=2 makes heads of odd width 3",
            ),
            (
                {"architecture": Architecture(positions="rotary", d_position=4)},
                "positions='rotary' are not appended",
            ),
        ],
    )
    def test_messages_blame_what_was_passed(self, options, message):
        X = [np.arange(5.0), np.arange(4.0)] * 3
        with pytest.raises(ValueError, match=message):
            TransformerClassifier("steps", **options).fit(X, [0, 1] * 3)

    def test_what_is_for_others_is_refused(self):
        model = sklearn_attention.TransformerLanguageModel()
        with pytest.raises(
            ValueError, match=r"architecture\.patch_length=4 has no meaning for"
        ):
            model.set_params(architecture__patch_length=4).fit(["abc"])
        model = sklearn_attention.TransformerForecaster(training=Training(patience=2))
        with pytest.raises(ValueError, match=r"training\.patience=2 has no meaning for"):
            model.fit(np.arange(40.0))


# Values that no parameter takes.
_INVALID = ["bad", -1, float("nan"), [1, 2, 3], {}, b"x", np.arange(3), np.array([]), object()]


@pytest.mark.parametrize("kind", [Training, Architecture])
def test_every_parameter_that_is_not_valid_is_named(kind):
    names = kind().get_params(deep=False).keys() - {"checkpoint"}
    for name, value in itertools.product(names, _INVALID):
        part = kind(**{name: value})  # stores it
        model = sklearn_attention.TransformerForecaster(**{kind.__name__.lower(): part})
        with pytest.raises((ValueError, TypeError), match=name):
            model.fit(np.arange(40.0))


@pytest.mark.parametrize("name", ["max_epochs", "batch_size", "learning_rate", "d_model"])
@pytest.mark.parametrize(
    "value",
    ["bad", [1, 2, 3], np.arange(3), np.nan, 10**400],
    ids=["text", "list", "array", "NaN", "beyond floats"],
)
def test_sizes_and_pace_that_are_not_valid_are_named(name, value):
    model = sklearn_attention.TransformerRegressor(**{name: value})
    with pytest.raises(ValueError, match=f"{name}=.* is not valid: pass "):
        model.fit(np.zeros((4, 1)), np.zeros(4))


class TestBudget:
    def plan(self, n_samples, **options):
        options = {"batch_size": "auto", "max_epochs": "auto"} | options
        return Training().plan(
            n_samples, learning_rate=0.1, optimizer="adamw", largest_batch=64,
            fewest_epochs=10, **options,
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("n_samples", "batch_size", "max_epochs"),
        [
            (1, 8, 64),
            (100, 8, 64),
            (384, 32, 64),
            (1000, 64, 64),
            (3200, 64, 20),
            (10**6, 64, 10),
        ],
    )
    def test_about_1000_steps(self, n_samples, batch_size, max_epochs):
        plan = self.plan(n_samples)
        assert (plan.batch_size, plan.max_epochs) == (batch_size, max_epochs)

    def test_steps_that_are_passed_take_as_many_epochs_as_they_need(self):
        options = {"learning_rate": 0.1, "batch_size": 10, "optimizer": "adamw"}
        options |= {"largest_batch": 64, "fewest_epochs": 10}
        plan = Training(max_steps=5000).plan(20, max_epochs="auto", **options)
        assert (plan.max_epochs, plan.max_steps) == (None, 5000)
        assert Training(max_steps=5).plan(20, max_epochs=7, **options).max_epochs == 7

    def test_what_is_passed_counts(self):
        plan = self.plan(1000, batch_size=(10, 100), max_epochs=3)
        assert (plan.batch_size, plan.max_epochs) == ((10, 100), 3)
        assert self.plan(1000, batch_size=(10, 100)).max_epochs == 64

    @pytest.mark.parametrize(
        ("n_samples", "share"), [(39, None), (40, 0.25), (100, 0.1), (900, 0.1)]
    )
    def test_held_out_is_a_tenth_but_at_least_10(self, n_samples, share):
        assert Training().share_held_out(n_samples) == share

    def test_patience_needs_something_held_out(self):
        with pytest.raises(ValueError, match=r"training\.patience=3 needs something held out"):
            Training(patience=3).share_held_out(20)
        with pytest.raises(ValueError, match=r"validation_fraction=1\.5"):
            Training(validation_fraction=1.5).share_held_out(20)
