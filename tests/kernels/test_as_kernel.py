"""What users may pass as a kernel: names, objects, functions, scikit-learn's kernels."""

import functools
import math
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from kernel_contracts import in_libraries, to_library, to_numpy
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.metrics.pairwise import laplacian_kernel

from sklearn_attention import kernels
from sklearn_attention.kernels import (
    KERNELS,
    FunctionKernel,
    Gaussian,
    Kernel,
    Laplacian,
    Periodic,
    as_kernel,
)
from sklearn_attention.kernels._base import _OTHER_NAMES

BASES = {
    "CompactKernel", "FeatureKernel", "Kernel", "RadialKernel", "SmoothingKernel",
}  # fmt: skip
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


@pytest.mark.parametrize(("name", "kind"), KERNELS.items())
def test_every_name_stands_for_its_kernel(name, kind):
    kernel = as_kernel(name)
    assert type(kernel) is kind
    assert kernel == kind()
    assert as_kernel(name) is not kernel, "a name must not share its kernel's parameters"


def test_every_kernel_keeps_a_contract():
    """Functions have none, and products over columns one of another name."""
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    kept = re.findall(r"^class Test(\w+)\(.*Contract\):\n    samples = ", tests, re.M)
    assert public_kernels().keys() - set(kept) == {"FunctionKernel", "ProductKernel"}


def test_everything_public_is_listed_and_exists():
    for name in kernels.__all__:
        assert hasattr(kernels, name)
    public = {
        name
        for name, thing in vars(kernels).items()
        if isinstance(thing, type) and issubclass(thing, Kernel) and not name.startswith("_")
    }
    assert public <= set(kernels.__all__)


def test_kernels_stay_as_they_are():
    kernel = Periodic(period=3.0)
    assert as_kernel(kernel) is kernel


@pytest.mark.parametrize(
    ("name", "suggested"),
    [("Gaussian", "gaussian"), ("epanechnikow", "epanechnikov"), ("matern-32", "matern32")],
)
def test_misspelt_names(name, suggested):
    with pytest.raises(ValueError, match=rf"kernel='{name}' is unknown: did you mean") as error:
        as_kernel(name)
    assert f"did you mean '{suggested}'?" in str(error.value)
    assert all(repr(known) in str(error.value) for known in KERNELS)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("rbf", "gaussian"), ("RBF", "gaussian"), ("normal", "gaussian"), ("gauss", "gaussian"),
        ("squared-exponential", "gaussian"),
        ("tophat", "boxcar"), ("uniform", "boxcar"), ("box", "boxcar"),
        ("rectangular", "boxcar"), ("quartic", "biweight"), ("bisquare", "biweight"),
        ("parabolic", "epanechnikov"), ("laplace", "laplacian"), ("matern12", "exponential"),
        ("dot_product", "scaled_dot_product"), ("Dot product", "scaled_dot_product"),
        ("softmax", "scaled_dot_product"), ("rq", "rational_quadratic"),
        ("exp_sine_squared", "periodic"), ("poly", "polynomial"),
    ],
)  # fmt: skip
def test_names_of_other_libraries(name, meant):
    with pytest.raises(ValueError, match=rf"did you mean '{meant}'\? choose from"):
        as_kernel(name)


def test_a_name_of_several_kernels():
    with pytest.raises(ValueError, match=r"did you mean 'matern32' or 'matern52'\? choose"):
        as_kernel("matern")


def test_names_of_other_libraries_are_none_of_ours():
    assert _OTHER_NAMES.keys() <= KERNELS.keys()
    others = " ".join(_OTHER_NAMES.values()).split()
    assert not set(others) & KERNELS.keys()
    twice = {name for name in others if others.count(name) > 1}
    assert twice == {"matern"}


@pytest.mark.parametrize("name", ["", "xyz", "kernel"])
def test_unknown_names(name):
    with pytest.raises(ValueError, match=rf"kernel={name!r} is unknown: choose from") as error:
        as_kernel(name)
    assert all(repr(known) in str(error.value) for known in KERNELS)


def test_a_class_is_not_a_kernel():
    for kind in (Gaussian, gaussian_process.RBF, dict):
        with pytest.raises(TypeError, match=rf"create it, as in {kind.__name__}\(\)"):
            as_kernel(kind)


@pytest.mark.parametrize("thing", [None, 1.5, ["gaussian"], np.ones((2, 2))], ids=repr)
def test_things_that_are_no_kernels(thing):
    with pytest.raises(TypeError, match=r"must be a name, a Kernel.*pass one of these"):
        as_kernel(thing)


# Functions


def dot(queries, keys):
    return queries @ keys.T


@in_libraries
@pytest.mark.parametrize(
    "function",
    [laplacian_kernel, functools.partial(laplacian_kernel, gamma=1.0)],
    ids=["function", "partial"],
)
def test_functions_are_kernels(library, function):
    rng = np.random.default_rng(0)
    kernel = as_kernel(function)
    assert kernel == FunctionKernel(function)
    X, Y = rng.normal(size=(4, 1)), rng.normal(size=(5, 1))
    for dtype in ("float64", "float32"):
        queries, keys = (to_library(table, library, dtype) for table in (X, Y))
        values = kernel(queries, keys)
        assert values.dtype == queries.dtype
        assert type(values) is type(queries)
        expected = Laplacian()(X, Y)
        rounding = 1e-12 if dtype == "float64" else 1e-5
        np.testing.assert_allclose(to_numpy(values), expected, rtol=rounding)
        logs = to_numpy(kernel.log(queries, keys))
        np.testing.assert_allclose(logs, np.log(expected), rtol=rounding, atol=rounding)


def test_functions_may_return_lists_and_whole_numbers():
    kernel = FunctionKernel(lambda queries, keys: [[1, 2]])
    values = kernel(np.ones((1, 1)), np.ones((2, 1)))
    assert values.dtype == np.float64
    assert values.tolist() == [[1, 2]]


def test_functions_get_arrays_of_floats():
    seen = []

    def spy(queries, keys):
        seen.extend([queries, keys])
        return np.ones((len(queries), len(keys)))

    FunctionKernel(spy)(torch.ones((2, 1)), torch.ones((3, 1)))
    FunctionKernel(spy)([[1], [2]])
    assert all(type(table) is np.ndarray for table in seen)
    assert [table.dtype.name for table in seen] == 2 * ["float32"] + 2 * ["float64"]


def test_flags_of_functions():
    kernel = FunctionKernel(dot)
    assert kernel.signed is None
    assert kernel.stationary is False
    assert kernel.support == math.inf


@pytest.mark.parametrize(
    "function",
    [
        lambda queries, keys: np.ones(len(queries)),
        lambda queries, keys: np.ones((len(keys), len(queries))),
        lambda queries, keys: 1.0,
        lambda queries, keys: None,
    ],
    ids=["one_axis", "transposed", "number", "nothing"],
)
def test_functions_that_return_another_shape(function):
    with pytest.raises(ValueError, match=r"returned shape .* must return one value.*\(2, 3\)"):
        FunctionKernel(function)(np.ones((2, 1)), np.ones((3, 1)))


@in_libraries
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_functions_that_return_no_number(library, value):
    kernel = FunctionKernel(lambda queries, keys: np.full((len(queries), len(keys)), value))
    with pytest.raises(ValueError, match=r"returned NaN or infinity: it must return a finite"):
        kernel(to_library([[1.0]], library))


@in_libraries
def test_functions_have_no_gradient(library):
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
    queries, keys = to_library([[1.0]], library), to_library([[2.0], [-1.0], [0.0]], library)
    assert kernel(queries, keys).tolist() == [[2, -1, 0]]
    with pytest.raises(ValueError, match=r"returned negative values and so has no logarithm"):
        kernel.log(queries, keys)
    logs = kernel.log(queries, keys[::2] if library == "numpy" else keys[[0, 2]])
    np.testing.assert_allclose(to_numpy(logs), [[math.log(2), -math.inf]])


def test_functions_are_cloned_pickled_and_compared():
    kernel = FunctionKernel(dot)
    assert clone(kernel) == kernel
    assert pickle.loads(pickle.dumps(FunctionKernel(laplacian_kernel))) == FunctionKernel(
        laplacian_kernel
    )
    assert kernel != FunctionKernel(laplacian_kernel)
    assert "dot" in repr(kernel)


# scikit-learn's own


@in_libraries
@pytest.mark.parametrize(
    "kernel",
    [
        gaussian_process.RBF(0.7),
        gaussian_process.RBF([0.7, 2.0]) + 0.5 * gaussian_process.Matern(nu=1.5),
        gaussian_process.Matern(length_scale=2.0, nu=0.8),
        gaussian_process.DotProduct() ** 2,
        gaussian_process.ExpSineSquared() * gaussian_process.RationalQuadratic(),
    ],
    ids=repr,
)
def test_kernels_of_gaussian_processes(library, kernel):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    values = as_kernel(kernel)(to_library(X, library), to_library(Y, library))
    np.testing.assert_array_equal(to_numpy(values), kernel(X, Y))
    assert clone(as_kernel(kernel)) == as_kernel(kernel)


def test_parameters_of_kernels_of_gaussian_processes():
    kernel = as_kernel(gaussian_process.RBF(0.7))
    assert kernel.get_params()["function__length_scale"] == 0.7
    twin = clone(kernel).set_params(function__length_scale=2.0)
    assert twin([[0.0]], [[2.0]])[0, 0] == pytest.approx(math.exp(-0.5))
    assert kernel.function.length_scale == 0.7
    assert twin != kernel


def test_kernels_of_gaussian_processes_within_ours():
    kernel = Gaussian() * gaussian_process.RBF()
    expected = math.exp(-1.0) / math.sqrt(2 * math.pi)
    assert kernel([[0.0]], [[1.0]])[0, 0] == pytest.approx(expected)
