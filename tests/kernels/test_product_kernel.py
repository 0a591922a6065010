"""Kernels for some of the columns."""

import math

import numpy as np
import pytest
import torch
from kernel_contracts import KernelContract, in_libraries, to_library, to_numpy
from sklearn.base import clone

from sklearn_attention import Columns
from sklearn_attention.kernels import (
    AitchisonAitken,
    Boxcar,
    Epanechnikov,
    Gaussian,
    LiRacine,
    Periodic,
    ProductKernel,
    WangVanRyzin,
)
from sklearn_attention.kernels._product_kernel import mixed_kernel


class TestOneKernelForEachColumn(KernelContract):
    samples = (ProductKernel("triangular"), ProductKernel(Gaussian()))

    def formula(self, kernel, q, k):
        def one_column(u):
            if kernel.kernels == "triangular":
                return max(0, 1 - abs(u))
            return math.exp(-u * u / 2) / math.sqrt(2 * math.pi)

        return math.prod(one_column(a - b) for a, b in zip(q, k, strict=True))


def mixed(age="epanechnikov", level=None, city=None):
    return ProductKernel([
        ("age", age, [0, -1]),
        ("level", level or WangVanRyzin(lam=0.3), 1),
        ("city", city or AitchisonAitken(n_levels=4), slice(2, 4)),
    ])  # fmt: skip


MIXED = np.array([
    [0.0, 0, 0, 0, 0.0],
    [0.5, 0, 0, 0, 0.25],
    [0.5, 2, 0, 1, 0.25],
    [-0.25, 3, 2, 3, 0.5],
    [9.0, 1, 0, 0, 0.0],
])  # fmt: skip


@in_libraries
def test_groups_of_columns(library):
    table = to_library(MIXED, library)
    expected = (
        Epanechnikov()(table[:, [0, 4]])
        * WangVanRyzin(lam=0.3)(table[:, [1]])
        * AitchisonAitken(n_levels=4)(table[:, [2, 3]])
    )
    np.testing.assert_allclose(mixed()(table), expected, rtol=1e-14)
    with np.errstate(divide="ignore"):
        logs = np.log(to_numpy(expected))
    np.testing.assert_allclose(mixed().log(table), logs, rtol=1e-13)
    # By hand, for one pair of rows.
    by_hand = 0.75 * (1 - 0.3125) * (0.5 * 0.7 * 0.3**2) * (0.8 * 0.2 / 3)
    assert float(mixed()(table)[0, 2]) == pytest.approx(by_hand, rel=1e-14)


@pytest.mark.parametrize("columns", [np.array([1, 2]), slice(-2, None), [-2, -1], range(1, 3)])
def test_ways_to_name_columns(columns):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    kernel = ProductKernel([("x", Gaussian(), columns)])
    np.testing.assert_array_equal(kernel(X, Y), Gaussian()(X[:, 1:], Y[:, 1:]))
    assert clone(kernel) == kernel


@pytest.mark.parametrize("columns", [3, [0, -4], [], slice(3, 5), [0.5], "age", [np.True_]])
def test_columns_that_do_not_fit(columns):
    kernel = ProductKernel([("x", Gaussian(), columns)])
    message = r"columns=.* of kernel 'x' do not fit 3 features: pass positions from 0 to 2"
    for call in (kernel, lambda X: kernel.rescale(X, 1.0)):
        with pytest.raises(ValueError, match=message):
            call(np.ones((2, 3)))


@pytest.mark.parametrize(
    "kernels",
    [
        [],
        [Gaussian(), Boxcar()],
        [("x", Gaussian(), 0), ("x", Boxcar(), 1)],
        [("kernels", Gaussian(), 0)],
        [("a__b", Gaussian(), 0)],
    ],
    ids=repr,
)
def test_lists_that_are_not_valid(kernels):
    kernel = ProductKernel(kernels)
    for call in (lambda: kernel(np.ones((2, 2))), kernel.get_params):
        with pytest.raises(ValueError, match=r"kernels=.* is not valid: pass one kernel, or"):
            call()


def test_parameters_by_name():
    kernel = mixed(age=Periodic())
    parameters = kernel.get_params()
    assert parameters["age__period"] == 1.0
    assert parameters["city"] is kernel.kernels[2][1]
    assert kernel.get_params(deep=False) == {"kernels": kernel.kernels}

    twin = clone(kernel)
    assert twin.set_params(city__lam=0.6, age__period=5.0) is twin
    assert twin == mixed(age=Periodic(5.0), city=AitchisonAitken(4, 0.6))
    assert kernel == mixed(age=Periodic()), "the clone shares its kernels"

    twin.set_params(age="boxcar", level__lam=0.1)
    assert twin.kernels[0] == ("age", "boxcar", [0, -1])
    np.testing.assert_array_equal(
        twin(MIXED), mixed("boxcar", WangVanRyzin(0.1), AitchisonAitken(4, 0.6))(MIXED)
    )
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        kernel.set_params(nonsense=1)


# Kernels that see columns 1, 2 and 3 of MIXED as categories.
UNSCALED = [
    2 * mixed() * mixed(age="gaussian") + 1,
    ProductKernel([("turned", mixed(), [4, 1, 2, 3, 0])]),
]


@in_libraries
@pytest.mark.parametrize("kernel", UNSCALED, ids=repr)
@pytest.mark.parametrize("bandwidth", [2.0, [2.0, 10.0, 20.0, 30.0, 4.0]], ids=repr)
def test_rescale_leaves_categories_alone(library, kernel, bandwidth):
    table = to_library(MIXED, library)
    divisor = np.array(bandwidth) if isinstance(bandwidth, list) else bandwidth
    scaled = kernel.rescale(table, divisor)
    expected = MIXED / divisor
    expected[:, 1:4] = MIXED[:, 1:4]
    np.testing.assert_array_equal(to_numpy(scaled), expected)
    np.testing.assert_array_equal(to_numpy(table), MIXED)
    if library == "torch":
        scaled = kernel.rescale(table, torch.tensor(bandwidth, dtype=torch.float64))
        np.testing.assert_array_equal(to_numpy(scaled), expected)


# Taken apart into one of the distance and a rest


@pytest.mark.parametrize(
    ("kernel", "bandwidth"), [(Gaussian(), 0.3), (Periodic(period=3.0), 5.0)], ids=repr
)
def test_mixed_kernels_divide_the_distance_alone(kernel, bandwidth):
    rng = np.random.default_rng(0)
    kinds = ("ordered", "numeric", "unordered", "numeric")
    X = rng.normal(size=(12, 4))
    X[:, 0], X[:, 2] = rng.integers(0, 4, 12), rng.integers(0, 3, 12)
    columns = Columns(kinds, (range(4), None, range(3), None))
    whole = mixed_kernel(kernel, columns, [0.4, 0, 0.2, 0])
    form = whole.radial_form(4)
    assert form.kernel == kernel
    assert form.columns == [1, 3] == whole.numeric_columns(4)
    scaled = whole.rescale(X, bandwidth)
    squared = form.squared(X, X) / bandwidth**2
    np.testing.assert_allclose(form.values(squared, X, X), whole(scaled), rtol=1e-12)
    by_hand = 0.4 ** abs(X[:, None, 0] - X[:, 0])
    by_hand = by_hand * np.where(X[:, None, 2] == X[:, 2], 0.8, 0.1)
    np.testing.assert_allclose(form.categorical(X, X), by_hand, rtol=1e-12)
    np.testing.assert_allclose(form.log_values(squared, X, X), whole.log(scaled), rtol=1e-10)
    assert whole.spread == kernel.spread
    assert whole.as_dot_product(X, X) is None


@pytest.mark.parametrize(
    "kernel",
    [
        ProductKernel([("a", "gaussian", [2]), ("b", "gaussian", [0, 1])]),
        ProductKernel(
            [("c", LiRacine(lam=0.5), [1]), ("a", ProductKernel("gaussian"), [2, 0])]
        ),
    ],
    ids=repr,
)
def test_a_product_of_gaussians_is_a_gaussian_of_the_distance(kernel):
    X = np.array([[0.0, 0.0, 0.5], [3.0, 1.0, -1.0], [0.2, 2.0, 0.1]])
    form = kernel.radial_form(3)
    assert form.columns == kernel.numeric_columns(3)
    squared = form.squared(X, X)
    np.testing.assert_allclose(form.values(squared, X, X), kernel(X), rtol=1e-13)
    np.testing.assert_allclose(form.log_values(squared, X, X), kernel.log(X), rtol=1e-13)
