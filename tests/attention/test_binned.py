"""Errors from counts in bins, against the exact ones."""

import numpy as np
import pytest

from sklearn_attention.attention import LeaveOneOut, binned_scores
from sklearn_attention.kernels import Boxcar, Epanechnikov, Exponential, Gaussian, Triweight


@pytest.mark.parametrize(
    "kernel", [Gaussian(), Epanechnikov(), Triweight(), Exponential()], ids=repr
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("unit", "offset"), [(1.0, 0.0), (1e-9, 0.0), (1e6, -3e8)])
def test_close_to_the_exact_scores(kernel, weighted, unit, offset):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 700)
    values = np.column_stack([np.sin(12 * x), x]) + 0.3 * rng.normal(size=(700, 2)) + 5
    weight = rng.uniform(0.3, 3, 700) if weighted else None
    scales = unit * np.geomspace(1e-3, 10, 25)
    x = x * unit + offset
    found = binned_scores(x, values, kernel, scales, weight)
    expected = LeaveOneOut(x[:, None], values, kernel, sample_weight=weight).scores(scales)
    finite = np.isfinite(found.left_out)
    assert finite[scales > 0.03 * unit].all()
    wide = finite & (scales > 0.01 * unit)
    for field, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(field[wide], reference[wide], rtol=2e-2)
        np.testing.assert_allclose(field[finite], reference[finite], rtol=0.2)


def test_narrow_kernels_and_lonely_rows_are_infinite():
    x = np.append(np.linspace(0, 1, 500), 50.0)
    values = np.sin(x)[:, None]
    found = binned_scores(x, values, Epanechnikov(), np.array([1e-6, 1.0, 60.0]))
    assert np.isinf(found.left_out).tolist() == [True, True, False]


def test_places_of_many_rows():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 20, 600).astype(float)
    values = x[:, None] ** 2 + rng.normal(size=(600, 1))
    scales = np.array([0.5, 2.2, 10.3])  # no edge at a place
    for kernel in (Gaussian(), Boxcar()):
        found = binned_scores(x, values, kernel, scales)
        expected = LeaveOneOut(x[:, None], values, kernel).scores(scales)
        for field, reference in zip(found, expected, strict=True):
            np.testing.assert_allclose(field, reference, rtol=0.03)


def test_a_single_place():
    values = np.arange(500.0)[:, None]
    found = binned_scores(np.ones(500), values, Gaussian(), np.array([3.0]))
    assert found.trace[0] == pytest.approx(1, rel=1e-6)
    assert found.fitted[0] == pytest.approx(values.var(), rel=1e-6)
