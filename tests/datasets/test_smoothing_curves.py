"""The curves against their published formulas, one point at a time."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad

from sklearn_attention.datasets import make_smoothing_curve

NAMES = ("blocks", "bumps", "doppler", "heavisine")

# Typed anew from Table 1 of Donoho and Johnstone (1994), as (place, block step, bump
# height, bump width).
TABLE_1 = (
    (0.10, +4.0, 4.0, 0.005),
    (0.13, -5.0, 5.0, 0.005),
    (0.15, +3.0, 3.0, 0.006),
    (0.23, -4.0, 4.0, 0.010),
    (0.25, +5.0, 5.0, 0.010),
    (0.40, -4.2, 4.2, 0.030),
    (0.44, +2.1, 2.1, 0.010),
    (0.65, +4.3, 4.3, 0.010),
    (0.76, -3.1, 3.1, 0.005),
    (0.78, +2.1, 5.1, 0.008),
    (0.81, -4.2, 4.2, 0.005),
)

# Factors that bring the curves to a standard deviation of 7, as tabulated in the R package
# CVST (on a grid, hence the tolerance where they are used).
SCALE_TO_7 = {
    "blocks": 3.656993,
    "bumps": 10.52884,
    "doppler": 24.22172,
    "heavisine": 2.356934,
}


def scalar_curve(name, t):
    """The published formula at one place, with nothing but floats."""
    if name == "blocks":
        level = 0.0
        for place, step, _, _ in TABLE_1:
            if t > place:
                level += step
            elif t == place:
                level += step / 2
        return level
    if name == "bumps":
        total = 0.0
        for place, _, height, width in TABLE_1:
            total += height / (1 + abs((t - place) / width)) ** 4
        return total
    if name == "doppler":
        return math.sqrt(t * (1 - t)) * math.sin(2 * math.pi * (1 + 0.05) / (t + 0.05))
    signs = int(t > 0.3) - int(t < 0.3) + int(t < 0.72) - int(t > 0.72)
    return 4 * math.sin(4 * math.pi * t) - signs


@pytest.mark.parametrize("name", NAMES)
# A grid of 100 meets every jump exactly, where the sign is 0.
@pytest.mark.parametrize(("n", "design"), [(100, "grid"), (1009, "uniform")])
def test_truth_is_the_published_formula(name, n, design):
    X, _, truth = make_smoothing_curve(
        name, n, design=design, random_state=0, return_truth=True
    )
    expected = [SCALE_TO_7[name] * scalar_curve(name, t) for t in X[:, 0].tolist()]
    assert_allclose(truth, expected, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_scale_is_the_standard_deviation_over_the_interval(name):
    X, _, truth = make_smoothing_curve(name, 997, signal_to_noise=1.0, return_truth=True)
    largest = np.argmax(np.abs(truth))
    scale = truth[largest] / scalar_curve(name, X[largest, 0])
    # Between the jumps, peaks and zeros every piece is smooth.
    zeros = [2 * 1.05 / k - 0.05 for k in range(3, 43)]
    breaks = sorted({0, 1, 0.3, 0.72, *(row[0] for row in TABLE_1), *zeros} - {2.05})
    breaks = [b for b in breaks if 0 <= b <= 1]

    def integral(power):
        pieces = itertools.pairwise(breaks)
        return sum(
            quad(lambda t: scalar_curve(name, t) ** power, a, b, epsabs=1e-13)[0]
            for a, b in pieces
        )

    assert_allclose(1 / scale, math.sqrt(integral(2) - integral(1) ** 2), rtol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_signal_to_noise(name):
    _, y, truth = make_smoothing_curve(
        name, 20_000, signal_to_noise=3, random_state=0, return_truth=True
    )
    noise = y - truth
    assert truth.std() == pytest.approx(3, rel=1e-3)
    assert noise.std() == pytest.approx(1, rel=0.02)
    assert noise.mean() == pytest.approx(0, abs=0.03)
    # White: neighbours are uncorrelated.
    assert np.corrcoef(noise[1:], noise[:-1])[0, 1] == pytest.approx(0, abs=0.03)


def test_grid_is_the_papers():
    X, y = make_smoothing_curve("doppler", 8)
    assert X.shape == (8, 1)
    assert y.shape == (8,)
    assert_array_equal(X[:, 0], [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0])


def test_uniform_design_is_sorted_random_and_uniform():
    X, _ = make_smoothing_curve("blocks", 5000, design="uniform", random_state=0)
    places = X[:, 0]
    assert np.all(np.diff(places) > 0)
    assert places[0] >= 0
    assert places[-1] <= 1
    assert_allclose(places, (np.arange(5000) + 0.5) / 5000, atol=0.03)


@pytest.mark.parametrize("design", ["grid", "uniform"])
def test_random_state(design):
    def draw(random_state):
        return make_smoothing_curve("doppler", 64, design=design, random_state=random_state)

    first, again, other = draw(3), draw(np.random.RandomState(3)), draw(4)
    for a, b in zip(first, again, strict=True):
        assert_array_equal(a, b)
    assert not np.array_equal(first[1], other[1])


def test_one_sample():
    X, y, truth = make_smoothing_curve("doppler", 1, random_state=0, return_truth=True)
    assert X.shape == (1, 1)
    assert y.shape == truth.shape == (1,)
    assert np.isfinite(y).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "dopler"}, r"name='dopler' is unknown: did you mean 'doppler'"),
        ({"n_samples": 0}, "n_samples=0 is not valid: pass an integer greater than 0"),
        ({"n_samples": 10.5}, r"n_samples=10\.5 is not valid: pass an integer"),
        ({"signal_to_noise": 0}, "signal_to_noise=0 is not valid: pass a finite number"),
        ({"signal_to_noise": math.nan}, "signal_to_noise=nan is not valid"),
        ({"design": "random"}, r"design='random' is unknown: choose from \['grid', 'uniform'"),
    ],
)
def test_errors_name_parameter_value_and_remedy(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_smoothing_curve(**{"name": "doppler", **arguments})
