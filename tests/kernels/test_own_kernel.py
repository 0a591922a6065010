"""Kernels that users write: errors say what is missing, or whose derivative is not finite."""

import numpy as np
import pytest
import torch
from array_api_compat import array_namespace

from sklearn_attention import (
    Architecture,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
    TransformerRegressor,
)
from sklearn_attention.kernels import Kernel, RadialKernel, SmoothingKernel

X = np.random.default_rng(0).normal(size=(30, 2))


class Student(RadialKernel):
    """A formula, as the base class shows it."""

    def profile(self, squared):
        return 1 / (1 + squared)


class Flat(RadialKernel):
    """Flat up to distance 1: the derivative of the branch that is not taken is not finite."""

    def log_profile(self, squared):
        xp = array_namespace(squared)
        return xp.where(squared > 1, -xp.sqrt(squared - 1), 0 * squared)


def test_one_formula_gives_the_kernel_its_logarithm_and_its_slope():
    squared = ((X[:, None] - X) ** 2).sum(axis=-1)
    np.testing.assert_allclose(Student()(X), 1 / (1 + squared))
    np.testing.assert_allclose(Student().log(X), -np.log1p(squared))
    for table in (squared, torch.from_numpy(squared)):
        np.testing.assert_allclose(Student().log_slope(table), -1 / (1 + squared))
    model = NadarayaWatsonRegressor(Student(), bandwidth=2.0).fit(X, X[:, 0])
    weights = Student()(X / 2)
    np.testing.assert_allclose(model.predict(X), weights @ X[:, 0] / weights.sum(axis=1))


class Bell(SmoothingKernel):
    """The Gaussian, of which nothing but the formula is known."""

    def profile(self, squared):
        return np.exp(-squared / 2) / np.sqrt(2 * np.pi)


class Parabola(SmoothingKernel):
    """Epanechnikov's kernel with its support."""

    support = 1.0

    def profile(self, squared):
        return 0.75 * np.maximum(1 - squared, 0)


@pytest.mark.parametrize(
    ("own", "kernel"), [(Bell(), "gaussian"), (Parabola(), "epanechnikov")]
)
def test_a_smoothing_kernel_needs_nothing_but_its_profile(own, kernel):
    for estimator in (NadarayaWatsonRegressor, LocalPolynomialRegressor):
        mine = estimator(own, bandwidth="loo").fit(X[:, :1], X[:, 1])
        built_in = estimator(kernel, bandwidth="loo", algorithm="dense").fit(X[:, :1], X[:, 1])
        np.testing.assert_allclose(mine.bandwidth_, built_in.bandwidth_, rtol=1e-3)
        np.testing.assert_allclose(
            mine.predict(X[:, :1]), built_in.predict(X[:, :1]), rtol=0.01
        )
    rule = ProductKernelDensity(own, bandwidth="scott").fit(X)
    built_in = ProductKernelDensity(kernel, bandwidth="scott").fit(X)
    np.testing.assert_allclose(rule.score_samples(X), built_in.score_samples(X), rtol=1e-8)


@pytest.mark.parametrize("base", [Kernel, RadialKernel])
def test_a_kernel_without_a_formula_is_told_which_method_to_write(base):
    own = type("Mine", (base,), {})
    for call in own(), own().log:
        with pytest.raises(
            NotImplementedError,
            match=r"Mine does not define log_profile.*: make it a subclass of RadialKernel",
        ):
            call(X)


def test_a_training_names_the_kernel_whose_derivatives_are_not_finite():
    architecture = Architecture(attention_kernel=Flat())
    options = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 1, "baseline": False}
    model = TransformerRegressor(architecture=architecture, **options)
    with pytest.raises(FloatingPointError, match=r"or derivatives of kernel=Flat\(\)\?"):
        model.fit(X, X[:, 0])


class FourthOrder(SmoothingKernel):
    """Its second moment is 0, of which quadrature leaves rounding errors."""

    signed = True

    def profile(self, squared):
        return (3 - squared) / 2 * np.exp(-squared / 2) / np.sqrt(2 * np.pi)


class Cauchy(SmoothingKernel):
    """Its second moment is infinite."""

    def profile(self, squared):
        return 1 / (np.pi * (1 + squared))


def test_moments_that_vanish_or_diverge():
    assert FourthOrder().second_moment == 0
    assert Cauchy().second_moment == np.inf
    for kernel in (FourthOrder(), Cauchy()):
        assert kernel.canonical_bandwidth is None
        assert kernel.spread == 1
        model = NadarayaWatsonRegressor(kernel).fit(X[:, :1], np.sin(3 * X[:, 0]))
        assert 0.01 < model.bandwidth_[0] < 1


def test_a_formula_that_takes_no_tensors_has_no_derivative():
    message = r"kernel=Parabola\(\) has no derivative.*array_namespace.*or define log_slope"
    with pytest.raises(ValueError, match=message):
        ProductKernelDensity(Parabola()).fit(X)
