"""Laws that hold for all inputs, on examples that hypothesis looks for."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sklearn_attention.kernels import (
    AitchisonAitken,
    Constant,
    CosineSimilarity,
    Gaussian,
    Linear,
    LiRacine,
    LocallyPeriodic,
    Periodic,
    Polynomial,
    ProductKernel,
    WangVanRyzin,
)
from sklearn_attention.kernels._base import KERNELS, as_kernel

modest = settings(max_examples=8, deadline=None)

NAMED = [as_kernel(name) for name in KERNELS]
NUMERIC = [
    *NAMED,
    Periodic(period=0.3, length_scale=2.0),
    LocallyPeriodic(period=7.0, length_scale=0.4),
    Linear(center=1.5),
    Polynomial(degree=3, coef0=-1.0),
    ProductKernel("tricube"),
    Gaussian() + 0.1 * Periodic(),
    Constant(0.3) * ProductKernel("cosine") + "boxcar",
]
CATEGORICAL = [AitchisonAitken(5, 0.3), LiRacine(0.6), WangVanRyzin(0.4)]
STATIONARY = [kernel for kernel in NUMERIC if kernel.stationary]
POSITIVE = [kernel for kernel in NUMERIC if not kernel.signed]
# Positive definite in every dimension.
COVARIANCES = [
    *(kernel for kernel in NAMED if kernel.positive_definite),
    Linear(), Polynomial(), CosineSimilarity(),
]  # fmt: skip
FALLING = [
    kernel
    for kernel in NAMED
    if kernel.stationary and not kernel.signed and not isinstance(kernel, Periodic)
]


def each(kernels):
    return pytest.mark.parametrize("kernel", kernels, ids=repr)


@st.composite
def tables(draw, elements=None, count=2, dimensions=(1, 2, 3, 5, 20)):
    """Tables with the same features, by default of entries that shifts do not round."""
    d = draw(st.sampled_from(dimensions))
    if elements is None:
        elements = st.integers(-(2**9), 2**9).map(lambda n: n / 64)
    shapes = [(draw(st.integers(1, 4)), d) for _ in range(count)]
    return [draw(arrays(np.float64, shape, elements=elements)) for shape in shapes]


def whole_codes():
    return tables(st.integers(0, 4).map(float))


@each(STATIONARY)
@modest
@given(rows=tables(count=1))
def test_reflections_and_permutations_change_nothing(kernel, rows):
    (X,) = rows
    np.testing.assert_allclose(kernel(-X), kernel(X), rtol=1e-14)
    np.testing.assert_allclose(kernel(X[:, ::-1]), kernel(X), rtol=1e-11, atol=1e-14)


@each([kernel for kernel in POSITIVE if kernel.stationary])
@pytest.mark.parametrize(("largest", "width"), [(1e300, 64), (2.0**120, 32)])
@modest
@given(data=st.data())
def test_any_numbers_whatsoever(kernel, largest, width, data):
    """Denormals, overflowing squares: no NaN, no warning, and no value above the peak."""
    rows = data.draw(tables(st.floats(-largest, largest, width=width)))
    peak = kernel(np.zeros((1, rows[0].shape[1])))[0, 0]
    rounding = 1e-12 if width == 64 else 1e-5
    rows = [X.astype(f"float{width}") for X in rows]
    for inputs in (rows, [torch.from_numpy(X) for X in rows]):
        values, logs = kernel(*inputs), kernel.log(*inputs)
        assert values.dtype == logs.dtype == inputs[0].dtype
        values, logs = np.asarray(values), np.asarray(logs)
        assert ((values >= 0) & (values <= peak * (1 + rounding))).all()
        assert (logs <= math.log(peak) + rounding).all()


@each(FALLING)
@modest
@given(distances=st.lists(st.floats(0, 1e6), min_size=2, max_size=6).map(sorted))
def test_farther_counts_no_more(kernel, distances):
    values = kernel([[0.0]], np.array(distances)[:, None])[0]
    assert (np.diff(values) <= 1e-15).all()


@each(COVARIANCES)
@modest
@given(rows=tables(count=1, elements=st.floats(-3, 3)))
def test_positive_definite(kernel, rows):
    (X,) = rows
    values = kernel(X)
    eigenvalues = np.linalg.eigvalsh((values + values.T) / 2)
    assert eigenvalues.min() >= -1e-12 * max(1, eigenvalues.max())


@modest
@given(points=arrays(np.float64, (6, 1), elements=st.floats(-5, 5)))
def test_periodic_kernels_are_positive_definite_on_one_feature(points):
    for kernel in (Periodic(), LocallyPeriodic(period=2.0)):
        assert np.linalg.eigvalsh(kernel(points)).min() >= -1e-12


# Scales


@each([Gaussian(), Linear(center=1.5), ProductKernel("tricube")])
@modest
@given(rows=tables(count=1), a=st.floats(0.01, 100), b=st.floats(0.01, 100))
def test_bandwidths_multiply(kernel, rows, a, b):
    (X,) = rows
    twice = kernel.rescale(kernel.rescale(X, a), b)
    np.testing.assert_allclose(twice, kernel.rescale(X, a * b), rtol=1e-14)
    each_its_own = kernel.rescale(X, np.full(X.shape[1], a))
    np.testing.assert_array_equal(each_its_own, kernel.rescale(X, a))


@modest
@given(rows=tables(), exponents=st.tuples(st.integers(-900, 900), st.integers(-900, 900)))
def test_cosine_similarity_does_not_see_lengths(rows, exponents):
    queries, keys = rows
    kernel = CosineSimilarity()
    scaled = [X * 2.0**exponent for X, exponent in zip(rows, exponents, strict=True)]
    values = kernel(queries, keys)
    np.testing.assert_allclose(kernel(*scaled), values, rtol=1e-12, atol=1e-15)
    assert (np.abs(values) <= 1 + 1e-14).all()


# Algebra


@each(CATEGORICAL)
@modest
@given(rows=whole_codes())
def test_categorical_kernels_multiply_over_columns(kernel, rows):
    product = math.prod(
        kernel(rows[0][:, [j]], rows[1][:, [j]]) for j in range(rows[0].shape[1])
    )
    np.testing.assert_allclose(kernel(*rows), product, rtol=1e-12)
    assert (product > 0).all()
    np.testing.assert_allclose(kernel.log(*rows), np.log(product), rtol=1e-12)
