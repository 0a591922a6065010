"""Logarithms, the way back, when they are chosen, and bounds."""

from contextlib import nullcontext

import numpy as np
import pytest

from sklearn_attention import TransformerForecaster
from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting import _transform as module
from sklearn_attention.forecasting._combination import fit_combined, new_candidates
from sklearn_attention.forecasting._transform import Transform, choose_shift, choose_transform

HORIZON = 3


def choose(values, log="auto", bounds=None, fit=None):
    table = Table.from_arrays(values)
    plain = Transform.without_log(bounds, values)

    def fitted(table):
        candidates = new_candidates(["ridge", "classical"], table, HORIZON, [12.0], 12)
        return fit_combined(table, HORIZON, candidates, 12)

    return choose_transform(table, log, plain, fit or fitted)[0]


def encoded(transform, values):
    return transform.encode(Table.from_arrays([values])).value


def decoded(transform, values):
    return transform.decode(values, Origins.at_ends(Table.from_arrays([np.ones(2)]), 1))


def growing(n=96, seed=0):
    """Growth, and a season that grows along."""
    steps = np.arange(n)
    noise = 0.03 * np.random.default_rng(seed).normal(size=n)
    return np.exp(4 + 0.02 * steps + 0.3 * np.sin(2 * np.pi * steps / 12) + noise)


def test_what_is_not_positive_is_a_tenth_of_the_least_so_far():
    transform = Transform(True, 0.0, 7.0)
    found = np.exp(encoded(transform, np.array([-1.0, 4.0, 0.0, 2.0, -5.0, 0.1, 0.001])))
    np.testing.assert_allclose(found, [0.7, 4.0, 0.4, 2.0, 0.2, 0.1, 0.001])


@pytest.mark.parametrize(
    ("values", "shift"),
    [([1.0, 2.0, 4.0], 0.0), ([0.0, 2.0, 4.0], 0.6), ([0.01, 2.0, 4.0], 0.4), ([0.0], 0.0)],
    ids=["clear of zero", "a zero", "close to zero", "nothing else"],
)
def test_a_shift_where_values_come_close_to_zero(values, shift):
    series = [np.array(values)]
    np.testing.assert_allclose(choose_shift(series), shift)
    # Of many series the small ones would be lost in a shift for all.
    if min(values) > 0:
        assert choose_shift(series * module.PANEL) == 0


def test_the_smaller_errors_decide():
    assert choose([growing()]).log
    steps = np.arange(96)
    noise = np.random.default_rng(0).normal(size=96)
    flat = 12 + 0.5 * steps + 8 * np.sin(2 * np.pi * steps / 12) + noise
    assert not choose([flat]).log


@pytest.mark.parametrize("log", [True, False])
def test_what_is_given_is_not_tried(log):
    transform = choose([growing()], log, (0, 9), fit=pytest.fail)
    assert (transform.log, transform.bounds) == (log, (0, 9))
    values = np.array([0.1, 0.5, 300.0])
    found = decoded(transform, np.log(values + transform.shift) if log else values)
    np.testing.assert_allclose(found, [0.1, 0.5, 9.0])


@pytest.mark.parametrize("values", [[-1.0, 2.0], [0.0, 0.0]])
def test_there_are_no_logarithms_of_negative_values_or_zeros_alone(values):
    series = [np.array(values), np.array([0.0, 0.0])]
    assert not choose(series, fit=pytest.fail).log
    with pytest.raises(ValueError, match=r"log=True is for .* least value is -?[01].0"):
        choose(series, True)


@pytest.mark.parametrize("unit", [1.0, 1e6])
@pytest.mark.parametrize("n", [1, 20])
def test_there_are_no_logarithms_of_series_that_never_change(n, unit):
    values = np.full(n, 100.0 * unit)
    assert not choose([values], fit=pytest.fail).log
    with pytest.warns(UserWarning, match="up to 1 steps") if n == 1 else nullcontext():
        lower, upper = TransformerForecaster(2).fit(values).predict_interval(coverage=0.9).T
    assert (lower >= 0).all()
    assert (upper <= 1000 * unit).all()


def test_there_are_no_logarithms_where_there_are_zeros():
    values = growing()
    values[::24] = 0
    with pytest.raises(ZeroDivisionError):  # few zeros: both are fitted
        choose([values], fit=lambda table: 1 / 0)
    values[::12] = 0
    assert not choose([values], fit=pytest.fail).log
    assert choose([values], True).log
