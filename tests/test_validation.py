"""Checks of what users pass."""

import pytest

from sklearn_attention._validation import check_choice

RULES = ("loo", "plug-in", "scott")


@pytest.mark.parametrize(
    ("value", "meant"),
    [("scot", "'scott'"), ("Scott", "'scott'"), ("plug_in", "'plug-in'"), ("cv", "'loo'")],
)
def test_errors_say_which_choice_is_meant(value, meant):
    with pytest.raises(ValueError, match=rf"rule='{value}' is unknown: did you mean {meant}\?"):
        check_choice("rule", value, RULES, {"loo": "cv jackknife"})


@pytest.mark.parametrize("value", ["median", "", 3, None])
def test_errors_do_not_guess_where_nothing_is_near(value):
    with pytest.raises(ValueError, match=rf"rule={value!r} is unknown: choose from \['loo'"):
        check_choice("rule", value, RULES)


def test_a_choice_is_returned_as_it_is():
    assert check_choice("rule", "scott", RULES) == "scott"
