"""The series against their formulas, one step at a time."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_attention.datasets import make_periodic_series

REFERENCES = {
    "sine": math.sin,
    "growing_sine": lambda x: math.sin(x) * math.exp(x / 100),
    # The half period x lies in; even ones are up.
    "square": lambda x: 1.0 if math.floor(x / math.pi) % 2 == 0 else -1.0,
}


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("step", [0.1, 1.7])
def test_values(name, step):
    series = make_periodic_series(name, 500, step=step)
    assert_allclose(series, [REFERENCES[name](i * step) for i in range(500)], atol=1e-12)
    assert series.dtype == np.float64


def test_default_is_1000_steps_to_learn_from_and_200_to_forecast():
    series = make_periodic_series("sine")
    assert series.shape == (1200,)
    assert_array_equal(series[:1000], make_periodic_series("sine", 1000))


def test_one_misplaced_edge_step_costs_what_the_docstring_says():
    future = make_periodic_series("square")[1000:]
    edge = np.flatnonzero(np.diff(future))[0]
    forecast = future.copy()
    forecast[edge + 1] = future[edge]
    assert np.mean((forecast - future) ** 2) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "cosine"}, r"name='cosine' is unknown: did you mean 'sine'"),
        ({"n_steps": -1}, "n_steps=-1 is not valid: pass an integer greater than 0"),
        ({"n_steps": 1e3}, r"n_steps=1000\.0 is not valid: pass an integer"),
        ({"step": 0.0}, r"step=0\.0 is not valid: pass a finite number greater than 0"),
        ({"step": "0.1"}, "step='0.1' is not valid"),
    ],
)
def test_errors_name_parameter_value_and_remedy(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_periodic_series(**{"name": "sine", **arguments})
