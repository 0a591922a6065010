"""What users may pass as a kernel, and what sums and products of them are."""

import functools
import importlib.util
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from kernel_contracts import (
    KernelContract,
    WithoutGradient,
    assert_library,
    gradient_is_finite,
    in_libraries,
    to_library,
    to_numpy,
    weight_by_log,
)
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import NadarayaWatsonRegressor, kernels
from sklearn_attention.kernels import (
    AitchisonAitken,
    Boxcar,
    Constant,
    Epanechnikov,
    FunctionKernel,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Periodic,
    Product,
    ProductKernel,
    RationalQuadratic,
    ScaledDotProduct,
    Sum,
    Triangular,
    WangVanRyzin,
)
from sklearn_attention.kernels._base import KERNELS, as_kernel

BASES = {"Kernel", "RadialKernel", "SmoothingKernel"}
# Those of other kernels, and those of categories.
NAMELESS = {
    "AitchisonAitken", "Constant", "FunctionKernel", "LiRacine", "Product", "ProductKernel",
    "Sum", "WangVanRyzin",
}  # fmt: skip


def public_kernels():
    """Classes by name."""
    public = {name: getattr(kernels, name) for name in kernels.__all__}
    return {
        name: thing
        for name, thing in public.items()
        if isinstance(thing, type) and issubclass(thing, Kernel) and name not in BASES
    }


def test_kernels_go_by_the_names_of_their_classes():
    named = {name: kind for name, kind in public_kernels().items() if name not in NAMELESS}
    assert KERNELS == {
        re.sub(r"(?<=.)(?=[A-Z])", "_", name).lower(): kind for name, kind in named.items()
    }
    for name, kind in KERNELS.items():
        assert as_kernel(name) == kind()
        assert as_kernel(name) is not as_kernel(name), "a name must not share its parameters"


def contracts(kind=KernelContract):
    yield kind
    for further in kind.__subclasses__():
        yield from contracts(further)


def test_every_kernel_keeps_a_contract():
    """Functions have none."""
    modules = []  # without which their classes would be gone
    for path in Path(__file__).parent.glob("test_*.py"):
        spec = importlib.util.spec_from_file_location(f"again_{path.stem}", path)
        modules.append(importlib.util.module_from_spec(spec))
        spec.loader.exec_module(modules[-1])
    kept = {type(sample).__name__ for contract in contracts() for sample in contract.samples}
    assert public_kernels().keys() - kept == {"FunctionKernel"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Gaussian", "gaussian"), ("epanechnikow", "epanechnikov"), ("matern-32", "matern32"),
        # Names of other libraries.
        ("RBF", "gaussian"), ("squared-exponential", "gaussian"), ("matern12", "exponential"),
        ("Dot product", "scaled_dot_product"), ("matern", "matern32' or 'matern52"),
    ],
)  # fmt: skip
def test_misspelt_names_and_those_of_other_libraries(name, meant):
    match = rf"kernel='{name}' is unknown: did you mean '{meant}'\? choose from"
    with pytest.raises(ValueError, match=match) as error:
        as_kernel(name)
    assert all(repr(known) in str(error.value) for known in KERNELS)


def test_a_class_is_not_a_kernel():
    for kind in (Gaussian, gaussian_process.RBF, dict):
        with pytest.raises(TypeError, match=rf"create it, as in {kind.__name__}\(\)"):
            as_kernel(kind)


@pytest.mark.parametrize(
    "kernel", [*map(as_kernel, KERNELS), Gaussian() + 1, ProductKernel("gaussian")], ids=repr
)
def test_tables_that_do_not_fit(kernel):
    table = np.ones((3, 1))
    for wrong in (np.ones(3), np.ones((3, 1, 1)), np.float64(1), np.ones((3, 0))):
        with pytest.raises(ValueError, match=r"queries must have shape .*reshape"):
            kernel(wrong, table)
        with pytest.raises(ValueError, match=r"keys must have shape .*reshape"):
            kernel(table, wrong)
    with pytest.raises(ValueError, match=r"2 features but keys have 3: pass"):
        kernel(np.ones((4, 2)), np.ones((4, 3)))
    with pytest.raises(TypeError, match="Multiple namespaces"):
        kernel(table, torch.ones((2, 1)))


# Functions


def dot(queries, keys):
    return queries @ keys.T


@in_libraries
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_are_kernels(library, dtype):
    function = functools.partial(laplacian_kernel, gamma=1.0)
    kernel = as_kernel(function)
    assert kernel == FunctionKernel(function)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(4, 1)), rng.normal(size=(5, 1))
    queries, keys = (to_library(table, library, dtype) for table in (X, Y))
    values = kernel(queries, keys)
    assert_library(values, library, dtype)
    expected = Laplacian()(X, Y)
    rounding = 1e-12 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(to_numpy(values), expected, rtol=rounding)
    logs = to_numpy(kernel.log(queries, keys))
    np.testing.assert_allclose(logs, np.log(expected), rtol=rounding, atol=rounding)


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda X, Y: np.ones(len(X)), r"returned shape .* must return one value.*\(2, 3\)"),
        (lambda X, Y: None, r"returned shape .* must return one value"),
        (lambda X, Y: np.full((len(X), len(Y)), -math.inf), r"NaN or infinity: it must return"),
    ],
    ids=["one_axis", "nothing", "inf"],
)
def test_functions_that_return_something_else(function, match):
    for library in ("numpy", "torch"):
        queries, keys = (to_library(np.ones((n, 1)), library) for n in (2, 3))
        with pytest.raises(ValueError, match=match):
            FunctionKernel(function)(queries, keys)


def test_functions_have_no_gradient():
    table = torch.ones((2, 1))
    tracked = torch.ones((2, 1), requires_grad=True)
    for queries, keys in ((table, tracked), (tracked, table)):
        with pytest.raises(TypeError, match=r"has no gradient: use one of the kernels"):
            FunctionKernel(dot)(queries, keys)
        with pytest.raises(TypeError, match=r"has no gradient"):
            (Gaussian() * FunctionKernel(dot))(queries, keys)


@in_libraries
def test_logarithm_of_a_function_that_turns_out_negative(library):
    kernel = FunctionKernel(dot)
    queries, keys = to_library([[1.0]], library), to_library([[2.0], [0.0], [-1.0]], library)
    assert kernel(queries, keys).tolist() == [[2, 0, -1]]
    with pytest.raises(ValueError, match=r"returned negative values and so has no logarithm"):
        kernel.log(queries, keys)
    logs = to_numpy(kernel.log(queries, keys[:2]))
    np.testing.assert_allclose(logs, [[math.log(2), -math.inf]])


@in_libraries
def test_kernels_of_gaussian_processes(library):
    kernel = gaussian_process.RBF([0.7, 2.0]) + 0.5 * gaussian_process.Matern(nu=1.5)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    values = as_kernel(kernel)(to_library(X, library), to_library(Y, library))
    np.testing.assert_array_equal(to_numpy(values), kernel(X, Y))
    assert clone(as_kernel(kernel)) == as_kernel(kernel)


# Sums and products, and the constant kernel


def value_of(operand, q, k):
    """A kernel, or a number, at one pair of rows."""
    return as_kernel(operand)([q], [k])[0, 0] if isinstance(operand, Kernel) else operand


class TestSum(KernelContract):
    samples = (Epanechnikov() + Triangular(), Gaussian() + 0.25)

    def formula(self, kernel, q, k):
        return value_of(kernel.left, q, k) + value_of(kernel.right, q, k)

    def test_gradient_is_finite_where_all_terms_are_zero(self, kernel):
        queries, keys = [[0.0]], [[0.5], [1.0], [3.0]]
        assert gradient_is_finite(kernel, queries, keys)
        assert gradient_is_finite(weight_by_log(kernel), queries, keys)


class TestProduct(KernelContract):
    samples = (Epanechnikov() * Triangular(), 2 * Gaussian() * Periodic(period=2.0))

    def formula(self, kernel, q, k):
        return value_of(kernel.left, q, k) * value_of(kernel.right, q, k)


class TestConstant(WithoutGradient, KernelContract):
    samples = (Constant(), Constant(0.25), Constant(-2))

    def formula(self, kernel, q, k):
        return kernel.value

    @in_libraries
    def test_does_not_look_at_the_rows(self, kernel, library):
        far = to_library([[1e200], [-1e200]], library)
        assert kernel(far).tolist() == 2 * [2 * [kernel.value]]

    def test_rescale_divides_by_the_bandwidth(self, kernel):
        """Whatever it divides: nothing depends on it."""
        scaled = kernel.rescale(np.ones((2, 1)), 2.0)
        np.testing.assert_array_equal(kernel(scaled), kernel(np.ones((2, 1))))

    def test_bad_value(self, kernel):
        for value in (math.nan, "1"):
            with pytest.raises(ValueError, match=rf"value={value!r} is not valid: pass a num"):
                Constant(value)([[0.0]])


def test_operators_build_sums_and_products():
    left, right = Gaussian(), Periodic(period=2.0)
    for part in (2, 0.5, "boxcar", np.float64(2)):
        assert left + part == Sum(left, part)
        assert part + left == Sum(part, left)
        assert left * part == Product(left, part)
        assert part * left == Product(part, left)
    assert left + 2 * right == Sum(left, Product(2, right))
    assert left + right != Sum(right, left)
    assert left + right != left * right


def test_no_limit_to_nesting():
    # Comparing the parameters of the parameters again at each level would take 2^40 steps.
    kernel = sum([Gaussian()] * 40, Boxcar())
    assert kernel == clone(kernel)
    np.testing.assert_allclose(kernel([[0.0]]), 0.5 + 40 / math.sqrt(2 * math.pi))


@pytest.mark.parametrize(
    ("kernel", "signed", "stationary", "support", "scaled"),
    [
        (Gaussian() * Boxcar(), False, True, 1.0, True),
        (Boxcar() + 0.1, False, True, math.inf, True),
        (Gaussian() + Linear(), True, False, math.inf, True),
        (Gaussian() + FunctionKernel(len), None, False, math.inf, True),
        (ScaledDotProduct() * Gaussian(), False, False, math.inf, True),
        (WangVanRyzin() * AitchisonAitken(), False, True, math.inf, False),
    ],
    ids=repr,
)
def test_flags_of_compositions(kernel, signed, stationary, support, scaled):
    assert kernel.signed is signed
    assert kernel.stationary is stationary
    assert kernel.support == support
    assert kernel.scaled is scaled


def test_logarithm_of_a_sum_beyond_underflow():
    # Both terms underflow; log(e^a + e^b) has to be taken without them.
    kernel = 3 * Gaussian() + 2 * Gaussian()
    expected = math.log(5) - math.log(2 * math.pi) / 2 - 1e8 / 2
    np.testing.assert_allclose(kernel.log([[0.0]], [[1e4]]), expected, rtol=1e-15)
    assert kernel([[0.0]], [[1e4]]) == 0


def test_parameters_within_parameters():
    kernel = Periodic(period=2.0) * RationalQuadratic() + 0.5
    pipeline = make_pipeline(StandardScaler(), NadarayaWatsonRegressor(kernel, bandwidth=1.0))
    of_kernel = "nadarayawatsonregressor__kernel__left__"
    assert pipeline.get_params()[of_kernel + "left__period"] == 2.0
    twin = clone(pipeline)
    twin.set_params(**{of_kernel + "left__period": 3.0, of_kernel + "right__alpha": 5.0})
    assert twin[-1].kernel == Periodic(period=3.0) * RationalQuadratic(5.0) + 0.5
    assert kernel.left.left.period == 2.0
    twin.set_params(**{of_kernel + "left": Gaussian()})
    assert twin[-1].kernel == Gaussian() * RationalQuadratic(5.0) + 0.5
    X = np.array([[0.0], [1.0], [5.0]])
    assert twin.fit(X, X[:, 0])[-1].kernel_ == twin[-1].kernel


@pytest.mark.parametrize(
    "kernel",
    [
        "gaussian" * AitchisonAitken(),
        Gaussian() + ProductKernel([("a", Gaussian(), [0]), ("b", WangVanRyzin(), [1])]),
        ProductKernel([("number", Gaussian(), 0), ("category", WangVanRyzin(), [-2])]),
    ],
    ids=repr,
)
def test_the_same_columns_cannot_be_numbers_and_categories(kernel):
    table = np.ones((2, 2))
    for call in (kernel, kernel.log, lambda X: kernel.rescale(X, 2.0)):
        with pytest.raises(ValueError, match=r"both as numbers and as categories: pass a Prod"):
            call(table)


@pytest.mark.parametrize("operand", [None, [1, 2], 1j], ids=repr)
def test_operands_that_are_no_kernels(operand):
    with pytest.raises(TypeError, match=r"must be a name, a Kernel, a function"):
        (Gaussian() + operand)([[0.0]])
