"""Sums and products of kernels, and the constant kernel."""

import math

import numpy as np
import pytest
from kernel_contracts import (
    KernelContract,
    WithoutGradient,
    gradient_is_finite,
    in_libraries,
    to_library,
    weight_by_log,
)
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention.kernels import (
    AitchisonAitken,
    Boxcar,
    Constant,
    CosineSimilarity,
    Epanechnikov,
    FunctionKernel,
    Gaussian,
    Linear,
    LocallyPeriodic,
    Periodic,
    Polynomial,
    Product,
    ProductKernel,
    RationalQuadratic,
    ScaledDotProduct,
    Silverman,
    Sum,
    Triangular,
    WangVanRyzin,
    as_kernel,
)


def gaussian(q, k):
    return math.exp(-(math.dist(q, k) ** 2) / 2) / math.sqrt(2 * math.pi)


def epanechnikov(q, k):
    return max(0, 3 / 4 * (1 - math.dist(q, k) ** 2))


def triangular(q, k):
    return max(0, 1 - math.dist(q, k))


def periodic(q, k):
    return math.exp(-2 * math.sin(math.pi * math.dist(q, k) / 2) ** 2)


class TestSum(KernelContract):
    samples = (
        Gaussian() + Epanechnikov(),
        Epanechnikov() + Triangular(),
        "epanechnikov" + Triangular(),
        Gaussian() + 0.25,
        Triangular() + Gaussian() * Epanechnikov(),
    )
    # The printed formulas of the samples, in their order.
    formulas = (
        lambda q, k: gaussian(q, k) + epanechnikov(q, k),
        lambda q, k: epanechnikov(q, k) + triangular(q, k),
        lambda q, k: epanechnikov(q, k) + triangular(q, k),
        lambda q, k: gaussian(q, k) + 0.25,
        lambda q, k: triangular(q, k) + gaussian(q, k) * epanechnikov(q, k),
    )

    def formula(self, kernel, q, k):
        return self.formulas[self.samples.index(kernel)](q, k)

    def test_gradient_is_finite_where_all_terms_are_zero(self, kernel):
        queries, keys = [[0.0]], [[0.5], [1.0], [3.0]]
        assert gradient_is_finite(kernel, queries, keys)
        assert gradient_is_finite(weight_by_log(kernel), queries, keys)


class TestProduct(KernelContract):
    samples = (
        Gaussian() * Epanechnikov(),
        Epanechnikov() * Triangular(),
        Periodic(period=2.0) * "gaussian",
        3 * Gaussian(),
        Gaussian() * Epanechnikov() + 2 * Periodic(period=2.0),
    )
    formulas = (
        lambda q, k: gaussian(q, k) * epanechnikov(q, k),
        lambda q, k: epanechnikov(q, k) * triangular(q, k),
        lambda q, k: periodic(q, k) * gaussian(q, k),
        lambda q, k: 3 * gaussian(q, k),
        lambda q, k: gaussian(q, k) * epanechnikov(q, k) + 2 * periodic(q, k),
    )

    def formula(self, kernel, q, k):
        return self.formulas[self.samples.index(kernel)](q, k)


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

    @pytest.mark.parametrize("value", [math.nan, "1", None])
    def test_bad_value(self, value):
        with pytest.raises(ValueError, match=rf"value={value!r} is not valid: pass a number"):
            Constant(value)([[0.0]])


def test_operators_build_sums_and_products():
    left, right = Gaussian(), Periodic(period=2.0)
    assert left + right == Sum(left, right)
    assert left * right == Product(left, right)
    assert left + 2 == Sum(left, 2)
    assert 2 + left == Sum(2, left)
    assert 2 * left == Product(2, left)
    assert left * 0.5 == Product(left, 0.5)
    assert "boxcar" + left == Sum("boxcar", left)
    assert left + "boxcar" == Sum(left, "boxcar")
    assert "boxcar" * left == Product("boxcar", left)
    assert left * "boxcar" == Product(left, "boxcar")
    assert np.float64(2) * left == Product(2.0, left)
    assert np.float32(2) + left == Sum(2.0, left)
    assert left + 2 * right == Sum(left, Product(2, right))
    assert left + right != Sum(right, left)
    assert left + right != left * right


def test_python_sum_and_prod():
    parts, table = [Gaussian(), Boxcar(), Triangular()], np.array([[0.0], [0.5], [2.0]])
    values = [part(table) for part in parts]
    np.testing.assert_allclose(sum(parts)(table), np.sum(values, axis=0), rtol=1e-14)
    np.testing.assert_allclose(math.prod(parts)(table), np.prod(values, axis=0), rtol=1e-14)


def test_functions_are_kernels_in_sums():
    def twice(queries, keys):
        return 2 * (queries @ keys.T)

    kernel = Gaussian() + twice
    table = np.array([[0.0], [1.0]])
    np.testing.assert_allclose(kernel(table), Gaussian()(table) + 2 * table @ table.T)


def test_no_limit_to_nesting():
    # Comparing the parameters of the parameters again at each level would take 2^40 steps.
    kernel = sum([Gaussian()] * 40, Boxcar())
    assert kernel == clone(kernel)
    np.testing.assert_allclose(kernel([[0.0]]), 0.5 + 40 / math.sqrt(2 * math.pi))


@pytest.mark.parametrize(
    ("kernel", "signed", "stationary", "support", "scaled"),
    [
        (Gaussian() + Boxcar(), False, True, math.inf, True),
        (Triangular() + Boxcar(), False, True, 1.0, True),
        (Gaussian() * Boxcar(), False, True, 1.0, True),
        (Boxcar() + 0.1, False, True, math.inf, True),
        (0.1 * Boxcar(), False, True, 1.0, True),
        (Gaussian() + Linear(), True, False, math.inf, True),
        (Gaussian() * Silverman(), True, True, math.inf, True),
        (Gaussian() + Constant(-1), True, True, math.inf, True),
        (Gaussian() + FunctionKernel(len), None, False, math.inf, True),
        (Linear() + FunctionKernel(len), True, False, math.inf, True),
        (ScaledDotProduct() * Gaussian(), False, False, math.inf, True),
        (AitchisonAitken() + 1, False, True, math.inf, False),
        (WangVanRyzin() * AitchisonAitken(), False, True, math.inf, False),
    ],
    ids=repr,
)
def test_flags_of_compositions(kernel, signed, stationary, support, scaled):
    assert kernel.signed is signed
    assert kernel.stationary is stationary
    assert kernel.support == support
    assert kernel.scaled is scaled


def test_logarithm_of_signed_compositions_is_refused():
    for kernel in (Gaussian() + Linear(), CosineSimilarity() * Gaussian(), Gaussian() + (-1)):
        with pytest.raises(ValueError, match="takes negative values and so has no logarithm"):
            kernel.log([[0.0]])


def test_logarithm_of_a_sum_beyond_underflow():
    # Both terms underflow; log(e^a + e^b) has to be taken without them.
    kernel = 3 * Gaussian() + 2 * Gaussian()
    expected = math.log(5) - math.log(2 * math.pi) / 2 - 1e8 / 2
    np.testing.assert_allclose(kernel.log([[0.0]], [[1e4]]), expected, rtol=1e-15)
    assert kernel([[0.0]], [[1e4]]) == 0


def test_logarithm_of_a_product_beyond_underflow():
    kernel = ScaledDotProduct() * Gaussian()
    expected = 1e8 - math.log(2 * math.pi) / 2
    np.testing.assert_allclose(kernel.log([[1e4]], [[1e4]]), expected, rtol=1e-15)


def test_constants_go_with_categories():
    codes, kernel = np.array([[0, 1], [2, 1]]), 0.5 * WangVanRyzin() + 1
    np.testing.assert_array_equal(kernel.rescale(codes, 2.0), codes)
    np.testing.assert_allclose(kernel(codes), 0.5 * WangVanRyzin()(codes) + 1)


def test_zero_times_a_kernel():
    kernel = 0 * Gaussian()
    assert kernel([[0.0]], [[1.0]]) == 0
    assert kernel.log([[0.0]], [[1.0]]) == -math.inf


class _Smoother(BaseEstimator):
    """An estimator with a kernel, and no more."""

    def __init__(self, kernel="gaussian"):
        self.kernel = kernel

    def fit(self, X, y=None):
        self.kernel_ = clone(as_kernel(self.kernel))
        return self

    def transform(self, X):
        return self.kernel_(X)


def test_parameters_within_parameters():
    kernel = Periodic(period=2.0) * RationalQuadratic() + 0.5
    pipeline = make_pipeline(StandardScaler(), _Smoother(kernel))
    name = "_smoother__kernel__left__left__period"
    assert pipeline.get_params()[name] == 2.0
    twin = clone(pipeline)
    twin.set_params(**{name: 3.0, "_smoother__kernel__left__right__alpha": 5.0})
    assert twin[-1].kernel == Periodic(period=3.0) * RationalQuadratic(5.0) + 0.5
    assert kernel.left.left.period == 2.0
    twin.set_params(_smoother__kernel__left__left=Gaussian())
    assert twin[-1].kernel == Gaussian() * RationalQuadratic(5.0) + 0.5
    X = np.array([[0.0], [1.0], [5.0]])
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(twin.fit(X).transform(X), twin[-1].kernel(scaled))


def test_clone_is_deep():
    kernel = Periodic() + Gaussian() * LocallyPeriodic()
    twin = clone(kernel)
    twin.set_params(right__right__period=9.0)
    assert kernel.right.right.period == 1.0
    assert kernel != twin


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian() + AitchisonAitken(),
        WangVanRyzin() * Epanechnikov(),
        "gaussian" * AitchisonAitken(),
        1 + WangVanRyzin() * Epanechnikov(),
        Gaussian() + ProductKernel([("a", Gaussian(), [0]), ("b", WangVanRyzin(), [1])]),
        ProductKernel(AitchisonAitken()) * ProductKernel("gaussian"),
    ],
    ids=repr,
)
def test_the_same_columns_cannot_be_numbers_and_categories(kernel):
    message = r"both as numbers and as categories: use ProductKernel"
    table = np.ones((2, 2))
    with pytest.raises(ValueError, match=message):
        kernel(table)
    with pytest.raises(ValueError, match=message):
        kernel.log(table)
    with pytest.raises(ValueError, match=message):
        kernel.rescale(table, 2.0)


@pytest.mark.parametrize("operand", [None, [1, 2], 1j, np.ones(2)], ids=repr)
def test_operands_that_are_no_kernels(operand):
    with pytest.raises(TypeError, match=r"must be a name, a Kernel, a function"):
        (Gaussian() + operand)([[0.0]])


def test_even_powers_of_signed_kernels():
    # Not known to be positive, so treated as signed; their values are right all the same.
    kernel = Linear() * Linear()
    table = np.array([[1.0], [-2.0]])
    assert kernel.signed is True
    np.testing.assert_allclose(kernel(table), Polynomial(degree=2, coef0=0.0)(table))
