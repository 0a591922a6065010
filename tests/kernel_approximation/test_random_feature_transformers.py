"""Products of random features against the kernels that they approximate."""

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_attention import PositiveRandomFeatures, RandomFourierFeatures
from sklearn_attention.kernels import (
    PositiveFeatures,
    RationalQuadratic,
)
from sklearn_attention.kernels._base import as_kernel

STATIONARY = [
    "gaussian", "laplacian", "exponential", "matern32", "matern52", "rational_quadratic",
    RationalQuadratic(alpha=0.5),
]  # fmt: skip
CASES = [
    *((RandomFourierFeatures, kernel) for kernel in STATIONARY),
    (PositiveRandomFeatures, "gaussian"),
    (PositiveRandomFeatures, "scaled_dot_product"),
]


def rows(n=12, d=4, seed=0, spread=0.6):
    return spread * np.random.default_rng(seed).normal(size=(n, d))


def exact(kernel, X, Y=None):
    """What products of features approximate: stationary kernels are 1 at no distance."""
    kernel = as_kernel(kernel)
    return kernel(X, Y) / (kernel([[0.0]]) if kernel.stationary else 1.0)


def squared_errors(kind, kernel, X, n_components, n_draws, bandwidth=1.0, **options):
    """Mean squared error of each product over independent draws, and the mean product."""
    expected = exact(kernel, X / bandwidth)
    products = []
    for seed in range(n_draws):
        features = kind(
            n_components, kernel=kernel, bandwidth=bandwidth, random_state=seed, **options
        ).fit_transform(X)
        products.append(features @ features.T)
    return np.mean((np.array(products) - expected) ** 2, axis=0), np.mean(products, axis=0)


@pytest.mark.parametrize(("kind", "kernel"), CASES, ids=repr)
# A direction, and a block of 4 with 3 more.
@pytest.mark.parametrize(("n_components", "orthogonal"), [(1, False), (7, True)])
def test_products_are_the_kernel_on_average(kind, kernel, n_components, orthogonal):
    X, bandwidth, n_draws = rows(8), np.array([0.8, 1.0, 1.5, 2.0]), 60
    errors, mean = squared_errors(
        kind, kernel, X, n_components, n_draws, bandwidth, orthogonal=orthogonal
    )
    standard = np.sqrt(errors / n_draws) + 1e-12
    assert (np.abs(mean - exact(kernel, X / bandwidth)) / standard).max() < 5.5


@pytest.mark.parametrize(
    ("kind", "kernel"),
    [(RandomFourierFeatures, "matern52"), (PositiveRandomFeatures, "gaussian")],
)
def test_orthogonal_directions_make_the_error_smaller(kind, kernel):
    X = rows(d=8, spread=0.2)
    errors = [
        squared_errors(kind, kernel, X, 16, 100, orthogonal=orthogonal)[0].mean()
        for orthogonal in (True, False)
    ]
    assert errors[0] < 0.8 * errors[1]


def test_features_follow_the_printed_formula():
    X = rows(3, 2)
    fourier = RandomFourierFeatures(4, kernel="matern32", random_state=0).fit(X)
    positive = PositiveRandomFeatures(4, kernel="scaled_dot_product", random_state=0).fit(X)
    for i, x in enumerate(X):
        angles = fourier.directions_ @ x
        expected = np.sqrt(2 / 4) * np.concatenate([np.sin(angles), np.cos(angles)])
        np.testing.assert_allclose(fourier.transform(X)[i], expected, rtol=1e-12)
        z, a = x / 2**0.25, X.mean(axis=0) / 2**0.25
        along, weights = positive.directions_ @ (z - a), np.tile(positive.log_weights_, 2)
        exponents = np.concatenate([along, -along]) + weights / 2
        expected = np.exp(exponents - (z - a) @ (z - a) / 2 + a @ (z - a / 2)) / 2
        np.testing.assert_allclose(positive.transform(X)[i], expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", ["gaussian", "scaled_dot_product"])
def test_directions_follow_the_rows(kernel):
    # Longer along the first feature, and off the origin: standard normal directions miss them.
    X = rows(200, spread=0.4) * [4, 1, 1, 1] + 0.8
    expected = as_kernel(kernel)(X)
    unit = expected / exact(kernel, X)
    for seed in range(3):
        features = PositiveRandomFeatures(512, kernel=kernel, random_state=seed).fit_transform(
            X
        )
        plain = PositiveFeatures(512, kernel=kernel, random_state=seed)(X)
        products = unit * (features @ features.T), plain
        errors = [np.abs(found / expected - 1).mean() for found in products]
        assert errors[0] < 0.3 * errors[1]


def test_positive_features_are_positive_and_do_not_see_where_the_gaussian_lies():
    X = rows()
    model = PositiveRandomFeatures(32, random_state=0)
    features = model.fit_transform(X)
    assert (features > 0).all()
    np.testing.assert_allclose(clone(model).fit_transform(X + 1000), features, rtol=1e-9)


def test_bandwidth_is_in_the_units_of_each_feature():
    X, bandwidth = rows(d=3), np.array([1.0, 10.0, 0.1])
    for kind in (RandomFourierFeatures, PositiveRandomFeatures):
        one = kind(16, random_state=0).fit_transform(X)
        scaled = kind(16, bandwidth=bandwidth, random_state=0).fit_transform(X * bandwidth)
        np.testing.assert_allclose(scaled, one, rtol=1e-9)


# A scikit-learn object


@pytest.mark.parametrize("kind", [RandomFourierFeatures, PositiveRandomFeatures])
class TestTransformer:
    def test_single_precision_stays(self, kind):
        X = rows()
        model = kind(16, random_state=0)
        double, single = model.fit_transform(X), model.fit_transform(X.astype(np.float32))
        assert (double.dtype, single.dtype) == (np.float64, np.float32)
        np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-6)
        vector = model.set_params(bandwidth=[1.0, 2.0, 1.0, 1.0])
        assert vector.fit_transform(X.astype(np.float32)).dtype == np.float32

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_components": 0}, "n_components=0 is not valid: pass an integer"),
            ({"bandwidth": -1.0}, r"bandwidth=-1\.0 is not valid"),
            ({"bandwidth": [1.0, 2.0]}, "but there are 4 features"),
            ({"orthogonal": "yes"}, "orthogonal='yes' is not valid: pass True or False"),
            ({"kernel": "gausian"}, "'gausian' is unknown"),
            ({"kernel": "epanechnikov"}, "unknown|no known spectral density: choose"),
            ({"random_state": "x"}, "cannot be used to seed"),
        ],
    )
    def test_bad_parameters(self, kind, options, message):
        with pytest.raises(ValueError, match=message):
            kind(4, random_state=0).set_params(**options).fit(rows())


def test_features_that_overflow():
    X = np.random.default_rng(0).normal(size=(5, 400)).astype(np.float32)
    model = PositiveRandomFeatures(2000, kernel="scaled_dot_product", random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"overflow at bandwidth=1\.0: pass a larger"):
        model.transform(model.directions_.astype(np.float32) * 400**0.25)


@pytest.mark.parametrize("kernel", ["gaussian", "scaled_dot_product"])
def test_positive_directions_have_the_variances_of_smallest_relative_error(kernel):
    """A grid is searched along each axis, by the exact second moment over pairs of rows."""
    X = rows(20, spread=0.7) * [2.0, 1.0, 0.5, 0.2]
    X -= X.mean(axis=0)
    unit = 1.0 if kernel == "gaussian" else 4**0.25
    model = PositiveRandomFeatures(20_000, kernel=kernel, random_state=0, orthogonal=False)
    covariance = np.cov(model.fit(X).directions_.T)
    axes = np.linalg.svd(X)[2]
    sums = ((X[:, None] + X[None]) / unit).reshape(-1, 4) @ axes.T
    variances = np.linspace(1, 8, 1401)
    for axis, along in zip(axes, sums.T, strict=True):
        inverse = 1 / variances
        second = np.square(along).mean() * inverse / (2 - inverse)
        risk = second - np.log(inverse * (2 - inverse)) / 2
        best = variances[np.argmin(risk)]
        assert axis @ covariance @ axis == pytest.approx(best, rel=0.04)
