"""What every kernel promises, tested once; tests of kernels inherit it.

A subclass states sample kernels and their printed formula, written out slowly for a single
pair of rows in pure Python; everything else follows.
"""

import copy
import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.integrate import quad
from sklearn.base import clone

from sklearn_attention import kernels
from sklearn_attention.kernels import Constant
from sklearn_attention.kernels._compact import CompactKernel

ROUNDING = {"float64": {"rtol": 1e-12, "atol": 1e-14}, "float32": {"rtol": 1e-5, "atol": 1e-6}}
# Distances are computed in one way up to 6 features, in another up to 16, and beyond.
DIMENSIONS = (1, 5, 20)
GRID = 2.0**-20  # rows on this grid are exact in float32, and stay exact when shifted

LIBRARIES = ("numpy", "torch")
in_libraries = pytest.mark.parametrize("library", LIBRARIES)
in_all_ways = pytest.mark.parametrize(
    ("d", "library", "dtype"),
    [
        (1, "numpy", "float32"),
        (5, "torch", "float64"),
        (20, "numpy", "float64"),
        (20, "torch", "float32"),
    ],
)


def to_library(X, library, dtype="float64"):
    """An array or a tensor with the values of X."""
    X = np.array(X, dtype=dtype)
    return torch.from_numpy(X) if library == "torch" else X


def to_numpy(X):
    return X.detach().numpy() if isinstance(X, torch.Tensor) else X


def assert_library(X, library, dtype):
    """Check that X is what :func:`to_library` makes."""
    assert isinstance(X, torch.Tensor if library == "torch" else np.ndarray)
    assert str(X.dtype).removeprefix("torch.") == dtype


def each_pair(function, queries, keys):
    """Table of ``function(query, key)``, called with lists of Python floats."""
    rows = [[function(q, k) for k in keys.tolist()] for q in queries.tolist()]
    return np.array(rows).reshape(len(queries), len(keys))


def gradient_is_finite(function, *inputs):
    """Whether the sum of what function returns has a finite gradient."""
    inputs = [torch.tensor(X, dtype=torch.float64, requires_grad=True) for X in inputs]
    gradients = torch.autograd.grad(function(*inputs).sum(), inputs)
    return all(torch.isfinite(gradient).all() for gradient in gradients)


def weight_by_log(kernel, key=0):
    """The weights of one key in averages, computed by way of the kernel's logarithm."""

    def weight(queries, keys):
        return torch.softmax(kernel.log(queries, keys), dim=1)[:, key]

    return weight


class KernelContract:
    """Every kernel."""

    samples = ()  # kernels to test
    shifts_matter = False  # whether moving queries and keys alike changes the values

    def formula(self, kernel, q, k):
        """The kernel as printed in its docstring, for two lists of floats."""
        raise NotImplementedError

    def rows(self, d):
        """Queries and keys; some equal, some close, some farther than 1."""
        rng = np.random.default_rng(d)
        queries, keys = (rng.normal(scale=0.6 / math.sqrt(d), size=(n, d)) for n in (12, 16))
        queries, keys = (np.round(X / GRID) * GRID for X in (queries, keys))
        keys[0] = queries[0]
        keys[1] = queries[1]
        keys[1, 0] += 2.0**-12
        keys[2, 0] += 3
        return queries, keys

    # Values

    @in_all_ways
    def test_values_follow_the_printed_formula(self, kernel, d, library, dtype):
        queries, keys = self.rows(d)
        tables = [to_library(X, library, dtype) for X in (queries, keys)]
        before = copy.deepcopy(tables)
        values = kernel(*tables)
        assert_library(values, library, dtype)
        expected = each_pair(lambda q, k: self.formula(kernel, q, k), queries, keys)
        np.testing.assert_allclose(to_numpy(values), expected, **ROUNDING[dtype])
        back = to_numpy(kernel(*tables[::-1])).T
        np.testing.assert_allclose(back, expected, **ROUNDING[dtype])
        alone, itself = kernel(tables[0]), kernel(tables[0], tables[0])
        np.testing.assert_array_equal(to_numpy(alone), to_numpy(itself))
        for now, then in zip(tables, before, strict=True):
            np.testing.assert_array_equal(to_numpy(now), to_numpy(then))

    @in_all_ways
    def test_log_is_the_logarithm_of_the_values(self, kernel, d, library, dtype):
        queries, keys = (to_library(X, library, dtype) for X in self.rows(d))
        if kernel.signed:
            with pytest.raises(ValueError, match=r"negative values.*choose a kernel"):
                kernel.log(queries, keys)
            return
        values, logs = to_numpy(kernel(queries, keys)), kernel.log(queries, keys)
        assert_library(logs, library, dtype)
        logs = to_numpy(logs)
        np.testing.assert_array_equal(logs == -math.inf, values == 0)
        positive = values > 0
        assert positive.any()
        rounding = {name: 10 * size for name, size in ROUNDING[dtype].items()}
        np.testing.assert_allclose(logs[positive], np.log(values[positive]), **rounding)

    @pytest.mark.parametrize(("d", "library"), [(1, "torch"), (5, "numpy"), (20, "torch")])
    def test_stationary_kernels_do_not_see_shifts(self, kernel, d, library):
        assert kernel.stationary or self.shifts_matter
        queries, keys = self.rows(d)
        # By so much that |x|^2 + |y|^2 - 2 x.y would leave no digit, but the rows keep theirs.
        shift = 2.0**25 if kernel.stationary else 1
        near, far = (
            to_numpy(kernel(*(to_library(X + by, library) for X in (queries, keys))))
            for by in (0, shift)
        )
        if kernel.stationary:
            np.testing.assert_allclose(far, near, rtol=1e-12, atol=1e-14)
        else:
            assert np.abs(far - near).max() > 1e-3

    def test_signed_says_whether_values_are_negative(self, kernel):
        for d in DIMENSIONS:
            queries, keys = self.rows(d)
            assert kernel.signed in (True, False)
            assert (kernel(8 * queries, keys).min() < 0) == kernel.signed

    # Inputs

    @in_libraries
    def test_tables_of_any_kind(self, kernel, library):
        """Whole numbers, truth values, lists, frames, any order in memory, two precisions."""
        table = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
        expected = kernel(table, table[:2])
        for kind in ("int64", "int8", "bool"):
            values = kernel(*(to_library(X, library, kind) for X in (table, table[:2])))
            assert_library(values, library, "float64")
            np.testing.assert_allclose(to_numpy(values), expected, rtol=1e-14)
        # The more precise of two types wins.
        values = kernel(to_library(table, library, "float32"), to_library(table[:2], library))
        assert_library(values, library, "float64")
        np.testing.assert_allclose(to_numpy(values), expected, rtol=1e-14)
        frame, fixed = pd.DataFrame(table, columns=["a", "b"]), np.asfortranarray(table)
        fixed.flags.writeable = False
        for queries in (table.tolist(), frame, fixed):
            np.testing.assert_array_equal(kernel(queries, table[1::-1])[:, ::-1], expected)

    def test_tables_without_rows(self, kernel):
        for d, library in ((1, "torch"), (5, "numpy"), (20, "torch")):
            for shape in ((0, 3), (3, 0), (0, 0)):
                queries, keys = (to_library(np.ones((n, d)), library) for n in shape)
                assert tuple(kernel(queries, keys).shape) == shape
                if not kernel.signed:
                    assert tuple(kernel.log(queries, keys).shape) == shape

    def test_tensors_stay_on_their_device(self, kernel):
        tensor = torch.ones((3, 2), device="meta")
        for made in (kernel(tensor), kernel.rescale(tensor, np.array([1.0, 2.0]))):
            assert made.device == tensor.device

    # Gradients

    def close_rows(self, d):
        """Few rows between which nothing jumps or bends; all within the support."""
        rng = np.random.default_rng(10 + d)
        sizes = (2, 3) if d < 20 else (1, 2)  # every entry is moved by itself
        return [rng.normal(scale=0.25 / math.sqrt(d), size=(n, d)) for n in sizes]

    @pytest.mark.parametrize("d", [1, 20])
    def test_gradient(self, kernel, d):
        tables = [torch.tensor(X, requires_grad=True) for X in self.close_rows(d)]
        fast = d > 1  # along random directions
        assert torch.autograd.gradcheck(kernel, tables, fast_mode=fast)
        if not kernel.signed:
            assert torch.autograd.gradcheck(kernel.log, tables, fast_mode=fast)

    @pytest.mark.parametrize("d", [1, 20])
    def test_gradient_is_finite_wherever_rows_lie(self, kernel, d):
        queries, keys = self.rows(d)
        queries[3], keys[3] = 0, 0  # equal rows elsewhere than at the origin: row 0
        keys[4] = queries[4] + np.eye(d)[0]  # exactly at the edge of a window
        assert gradient_is_finite(kernel, queries, keys)
        assert gradient_is_finite(lambda X: kernel(X), queries)
        if not kernel.signed:
            # Among the keys is every query, so that none is left without any weight.
            weight, own = weight_by_log(kernel), torch.from_numpy(queries)
            assert gradient_is_finite(
                lambda X, Y: weight(X, torch.cat([Y, own])), queries, keys
            )

    # Units

    @pytest.mark.parametrize(
        ("library", "dtype", "bandwidth"),
        [("numpy", "float64", 2), ("torch", "float32", [2.0, 4.0])],
    )
    def test_rescale_divides_by_the_bandwidth(self, kernel, library, dtype, bandwidth):
        X = to_library([[1, 2], [3, 4], [0, 1]], library, dtype)
        before = to_numpy(X).copy()
        if isinstance(bandwidth, list):
            bandwidth = np.array(bandwidth)
        scaled = kernel.rescale(X, bandwidth)
        assert_library(scaled, library, dtype)
        expected = before / bandwidth if kernel.scaled else before
        np.testing.assert_array_equal(to_numpy(scaled), expected)
        np.testing.assert_array_equal(to_numpy(X), before)

    # A scikit-learn object

    def test_copies_are_equal_and_others_are_not(self, kernel):
        twin, parameters = clone(kernel), kernel.get_params(deep=False)
        assert twin is not kernel
        assert hash(twin) == hash(kernel)
        copies = (
            twin, pickle.loads(pickle.dumps(kernel)), eval(repr(kernel), vars(kernels).copy()),
            type(kernel)(**parameters), clone(kernel).set_params(**parameters),
        )  # fmt: skip
        assert all(made == kernel for made in copies)
        for other in (Constant(0.123), repr(kernel), None):
            assert kernel != other
        for name, value in parameters.items():
            if isinstance(value, int | float):
                assert clone(kernel).set_params(**{name: value + 0.125}) != kernel

    def test_numpy_scalars_as_parameters_keep_the_dtype(self, kernel):
        scalars = {
            name: np.array(value)[()] if isinstance(value, int | float) else value
            for name, value in kernel.get_params(deep=False).items()
        }
        scalars = type(kernel)(**scalars)
        for library in LIBRARIES:
            tables = [to_library(X, library, "float32") for X in self.rows(2)]
            values = scalars(*tables)
            assert_library(values, library, "float32")
            np.testing.assert_array_equal(values, kernel(*tables))


class RadialContract(KernelContract):
    """Kernels of the distance."""

    # Distances whose squares vanish, are denormal, underflow the kernel, and overflow.
    extremes = (0, 5e-324, 1e-200, 1e-160, 1e-8, 1e8, 1e19, 1e30, 1e150, 1e154, 1e160, 1e300)
    reach = 5.0  # where a kernel without an end is still positive in single precision

    def profile(self, kernel, r):
        """The kernel as printed in its docstring, as a function of the distance."""
        raise NotImplementedError

    def formula(self, kernel, q, k):
        return self.profile(kernel, math.dist(q, k))

    def close_rows(self, d):
        queries, keys = super().close_rows(d)
        distances = each_pair(math.dist, queries, keys)
        assert distances.min() > 0.01
        assert distances.max() < 0.99
        return queries, keys

    def test_gradient_at_distance_zero_is_zero(self, kernel):
        for d in DIMENSIONS:
            # By symmetry, or by convention where the kernel has a corner.
            rows = torch.tensor(self.rows(d)[0][:1])
            queries = rows.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(kernel(queries, rows).sum(), queries)
            assert torch.equal(gradient, torch.zeros_like(rows))

    @in_all_ways
    def test_extreme_distances(self, kernel, d, library, dtype):
        largest = float(np.finfo(dtype).max)
        keys = np.zeros((len(self.extremes), d))
        keys[:, 0] = [min(distance, largest) for distance in self.extremes]
        keys = to_library(keys, library, dtype)
        peak = abs(self.profile(kernel, 0.0))
        for query in (0.0, -1.0):
            queries = keys[:1] + query
            values = to_numpy(kernel(queries, keys))
            assert (np.abs(values) <= peak * (1 + 1e-6)).all()  # so there is no NaN
            if not kernel.signed:
                logs = to_numpy(kernel.log(queries, keys))
                assert (logs <= math.log(peak) + 1e-6).all()
        near = to_numpy(kernel(keys[:1], keys[:4]))
        np.testing.assert_allclose(near, self.profile(kernel, 0.0), **ROUNDING[dtype])

    @pytest.mark.parametrize(("library", "dtype"), [("numpy", "float64"), ("torch", "float32")])
    def test_positive_within_the_support_and_zero_beyond(self, kernel, library, dtype):
        zero = to_library([[0.0]], library, dtype)
        edge = np.array(min(kernel.support, self.reach), dtype)
        inside = np.array([0, edge / 2, np.nextafter(edge, 0 * edge)])
        values = kernel(zero, to_library(inside[:, None], library, dtype))
        assert (to_numpy(values) > 0).all()
        if kernel.support < math.inf:
            outside = np.array([np.nextafter(edge, 2 * edge), 2, 1e30])
            outside = to_library(outside[:, None], library, dtype)
            assert (to_numpy(kernel(zero, outside)) == 0).all()
            assert (to_numpy(kernel.log(zero, outside)) == -math.inf).all()


class WithoutUnderflow:
    """Mixed into the contract of radial kernels that are positive everywhere."""

    def log_profile(self, kernel, r):
        """Logarithm of the profile, written so that it does not underflow."""
        raise NotImplementedError

    def profile(self, kernel, r):
        return math.exp(self.log_profile(kernel, r))

    def test_log_is_accurate_far_beyond_underflow(self, kernel):
        for d, r, library in itertools.product(DIMENSIONS, (30.0, 1e6, 1e100), LIBRARIES):
            keys = np.zeros((2, d))
            keys[0, 0] = r
            keys[1] = r / math.sqrt(d)
            logs = kernel.log(to_library(np.zeros((1, d)), library), to_library(keys, library))
            expected = self.log_profile(kernel, r)
            np.testing.assert_allclose(to_numpy(logs), expected, rtol=1e-12)


class WithoutGradient:
    """Mixed into the contract of kernels that are flat wherever they do not jump."""

    test_gradient_is_finite_wherever_rows_lie = None
    test_gradient_at_distance_zero_is_zero = None
    test_gradient_is_finite_on_a_grid_of_whole_bandwidths = None

    def test_gradient(self, kernel):
        tables = [torch.tensor(X, requires_grad=True) for X in self.close_rows(2)]
        assert not kernel(*tables).requires_grad


class SmoothingContract(RadialContract):
    """Smoothing kernels: densities with known constants."""

    tables = ()  # R(K), mu_2 and delta_0 of each sample as they are printed in books

    # Area of the unit sphere in d dimensions.

    def integral(self, kernel, function):
        """Integral of ``function(r, K(r))`` over the distances r."""
        edge = 100.0 if math.isinf(kernel.support) else 1.0
        zero = np.zeros((1, 1))
        value, error = quad(
            lambda r: function(r, kernel(zero, np.full((1, 1), r))[0, 0]),
            0, edge, epsabs=1e-13, epsrel=1e-12, limit=200, points=[edge / 100, edge / 10],
        )  # fmt: skip
        assert error < 1e-9 * max(1, abs(value))
        return value

    def test_constants_are_the_integrals(self, kernel):
        assert 2 * self.integral(kernel, lambda r, K: K) == pytest.approx(1, rel=1e-10)
        roughness = 2 * self.integral(kernel, lambda r, K: K**2)
        assert kernel.roughness == pytest.approx(roughness, rel=1e-10)
        second = 2 * self.integral(kernel, lambda r, K: r**2 * K)
        assert kernel.second_moment == pytest.approx(second, rel=1e-9, abs=1e-9)

    def test_constants_are_those_of_the_table(self, kernel):
        table = self.tables[self.samples.index(kernel)]
        roughness, second_moment, canonical_bandwidth = table
        assert kernel.roughness == pytest.approx(roughness, rel=1e-15)
        assert kernel.second_moment == pytest.approx(second_moment, rel=1e-15)
        if canonical_bandwidth is None:
            assert kernel.canonical_bandwidth is None
        else:
            assert round(kernel.canonical_bandwidth, 4) == canonical_bandwidth


class CompactContract(SmoothingContract):
    """Smoothing kernels that are 0 beyond one bandwidth."""

    @pytest.mark.parametrize("d", [1, 20])
    def test_gradient_is_finite_on_a_grid_of_whole_bandwidths(self, kernel, d):
        assert kernel.support == 1
        assert isinstance(kernel, CompactKernel)
        # Integers with bandwidth 1: most pairs lie at the corner in the middle, or at the edge.
        grid = np.zeros((5, d))
        grid[:, 0] = np.arange(-2, 3)
        assert gradient_is_finite(kernel, grid, grid)
        assert gradient_is_finite(weight_by_log(kernel), grid, grid)
