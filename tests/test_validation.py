"""Checks of what users pass."""

import numpy as np
import pytest
import torch

from sklearn_attention import NadarayaWatsonRegressor
from sklearn_attention._validation import check_choice, check_positive

RULES = ("loo", "knn-loo", "scott")
SHOWN = "which shows which queries have no row near"


@pytest.mark.parametrize(
    ("value", "meant"),
    [("scot", "'scott'"), ("Scott", "'scott'"), ("knn_loo", "'knn-loo'"), ("cv", "'loo'")],
)
def test_errors_say_which_choice_is_meant(value, meant):
    with pytest.raises(ValueError, match=rf"rule='{value}' is unknown: did you mean {meant}\?"):
        check_choice("rule", value, RULES, {"loo": "cv jackknife"})


@pytest.mark.parametrize("value", ["median", 3])
def test_errors_do_not_guess_where_nothing_is_near(value):
    with pytest.raises(ValueError, match=rf"rule={value!r} is unknown: choose from \['knn-"):
        check_choice("rule", value, RULES)


@pytest.mark.parametrize(
    ("name", "value", "choices", "remedy"),
    [
        ("empty", "widen", ("nearest", "nan"), "'nearest'"),
        ("empty", "mean", ("nearest", "nan"), f"'nan', {SHOWN}"),
        ("empty", "raise", ("nearest", "nan"), f"'nan', {SHOWN}"),
        ("bandwidth", "plug-in", RULES, "'loo'"),
    ],
)
def test_values_that_are_gone_are_told_what_does_their_work(name, value, choices, remedy):
    message = rf"^{name}='{value}' is gone in 0\.2: use {remedy}\.$"
    with pytest.raises(ValueError, match=message):
        check_choice(name, value, choices)
    # But elsewhere they are unknown.
    for parameter, known in (("rule", choices), (name, ("scott",))):
        with pytest.raises(ValueError, match=f"{parameter}='{value}' is unknown: choose from"):
            check_choice(parameter, value, known)


def test_numbers_are_positive_and_integers_are_those_of_arrays():
    assert check_positive("n", 2**63 - 1, integer=True) == 2**63 - 1
    with pytest.raises(ValueError, match=r"n=9223372036854775808 .*: pass .* below 2\*\*63"):
        check_positive("n", 2**63, integer=True)
    with pytest.raises(ValueError, match="n=1 is not valid: pass an integer at least 2"):
        check_positive("n", 1, integer=True, minimum=2)
    with pytest.raises(ValueError, match="h=inf is not valid: pass a finite number greater"):
        check_positive("h", np.inf)


def test_thresholds_of_torch_that_learn_are_refused_by_name():
    X = np.arange(6.0)[:, None]
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, X[:, 0])
    with pytest.raises(TypeError, match=r"y is a tensor with requires_grad=True.*y.detach\(\)"):
        model.predict_cdf(X, torch.ones(6, requires_grad=True))
