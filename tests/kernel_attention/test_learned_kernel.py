"""The learned kernel against loops."""

import numpy as np
import pytest

from sklearn_attention.kernel_attention import _kernel
from sklearn_attention.kernel_attention._kernel import (
    KernelSum,
    LearnedKernel,
    Pairs,
    sums_of_mixed_rows,
)
from sklearn_attention.kernels._base import as_kernel

# Three features in the first encoding; in the second two have two columns each.
FEATURES = [np.array([0, 1, 2]), np.array([0, 0, 1, 1, 2])]
PROFILES = {
    "gaussian": lambda squared: np.exp(-squared / 2),
    "matern52": lambda squared: (
        (1 + np.sqrt(5 * squared) + 5 * squared / 3) * np.exp(-np.sqrt(5 * squared))
    ),
    "rational_quadratic": lambda squared: 1 / (1 + squared / 2),
}
GAUSSIAN = as_kernel("gaussian")
# Each part, and each formula, beside the others.
KERNELS = [
    ("gaussian", False, False),
    ("gaussian", True, True),
    ("matern52", True, False),
    ("rational_quadratic", False, True),
]
every_kernel = pytest.mark.parametrize(("formula", "rough", "linear"), KERNELS)


def make_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, len(feature))) for feature in FEATURES]


def make_kernel(formula="gaussian", *, rough=True, linear=False, constant=0.7):
    """A kernel in which no two parameters are equal."""
    rng = np.random.default_rng(3)
    kernel = LearnedKernel.start(
        FEATURES, [np.ones(len(f)) for f in FEATURES], 3, as_kernel(formula), rough=rough,
        linear=linear, constant=constant,
    )  # fmt: skip
    return kernel.with_values(kernel.values + 0.2 * rng.normal(size=len(kernel.values)))


def slow_kernel(kernel, formula, queries, keys):
    """The sum of its parts, pair by pair."""
    scale, deviation, amplitude, linear, rough, rate, _ = kernel.named().values()
    deviation = [deviation[:3], deviation[3:]]
    found = np.empty((len(queries[0]), len(keys[0])))
    for i in range(len(queries[0])):
        for j in range(len(keys[0])):
            total, squares = kernel.constant, []
            for e, feature in enumerate(FEATURES):
                squared = 0.0
                for column, own in enumerate(feature):
                    inverse = np.exp(scale[e, own] + deviation[e][column])
                    difference = queries[e][i, column] - keys[e][j, column]
                    squared += (inverse * difference) ** 2
                total += np.exp(2 * amplitude[e]) * PROFILES[formula](squared)
                squares.append(squared)
            far = np.sqrt(sum(squares) + _kernel._KINK)
            total += np.exp(2 * rough[0]) * np.exp(-np.exp(rate[0]) * far)
            total += np.exp(2 * linear[0]) * (queries[0][i] @ keys[0][j]) / 3
            found[i, j] = total
    return found


@every_kernel
def test_the_matrix_equals_its_formula(formula, rough, linear):
    kernel = make_kernel(formula, rough=rough, linear=linear)
    queries, keys = make_rows(6), make_rows(9, seed=1)
    expected = slow_kernel(kernel, formula, queries, keys)
    np.testing.assert_allclose(kernel.matrix(queries, keys), expected, rtol=1e-12)
    among_keys = slow_kernel(kernel, formula, keys, keys)
    np.testing.assert_allclose(Pairs(kernel, keys).matrix, among_keys, rtol=1e-12)


def test_parameters_start_with_all_features_alike():
    rows = [z * [1, 10, 100] for z in make_rows(4000)[:1]]
    kernel = LearnedKernel.start(FEATURES[:1], [rows[0].var(axis=0)], 3, GAUSSIAN)
    space = kernel.space(rows)
    # Two random rows differ by 1 in the mean square, to which all features add alike.
    np.testing.assert_allclose(2 * space.var(axis=0), np.full(3, 1 / 3), rtol=1e-9)


def test_columns_without_variance_have_no_large_scale():
    kernel = LearnedKernel.start(FEATURES[:1], [np.array([1.0, 0.0, 1e-9])], 3, GAUSSIAN)
    assert (kernel.column_scales[0] <= 10).all()


@pytest.mark.parametrize(("rough", "linear"), [(True, False), (False, True)])
def test_what_is_learned(rough, linear):
    kernel = make_kernel(rough=rough, linear=linear)
    free = kernel.named(kernel.is_learned)
    assert free["scale"].all()
    assert free["amplitude"].all()
    assert free["noise"].all()
    # Only columns that share a feature deviate from its scale.
    assert list(free["deviation"]) == [False] * 3 + [True] * 4 + [False]
    assert free["rough"][0] == free["rate"][0] == rough
    assert free["linear"][0] == linear


# What derivatives are is told by those of leave-one-out errors, and by slopes of predictions.
def test_derivatives_do_not_mind_rows_that_coincide():
    rows = [np.repeat(z, 2, axis=0) for z in make_rows(5)]
    for formula in PROFILES:
        pairs = Pairs(make_kernel(formula, linear=True), rows)
        assert np.isfinite(pairs.gradient(np.ones((10, 10)))).all()
        assert all(np.isfinite(part).all() for part in pairs.slopes(np.ones(10)))


@every_kernel
@pytest.mark.parametrize("tile", [256, 7])
def test_a_sum_over_keys_is_the_matrix_times_coefficients(
    monkeypatch, formula, rough, linear, tile
):
    monkeypatch.setattr(_kernel, "_TILE", tile)
    kernel = make_kernel(formula, rough=rough, linear=linear)
    queries, keys = make_rows(20), make_rows(30, seed=1)
    coefficients = np.random.default_rng(2).normal(size=(30, 2))
    found = KernelSum(kernel, keys, coefficients)(queries)
    expected = slow_kernel(kernel, formula, queries, keys) @ coefficients
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_large_coefficients_cancel_in_double_precision():
    kernel = make_kernel()
    queries, keys = ([z.astype(np.float32) for z in make_rows(n, n)] for n in (20, 300))
    coefficients = np.repeat([[1e6], [-1e6]], 150, axis=0)
    found = KernelSum(kernel, keys, coefficients)(queries)
    expected = kernel.matrix(queries, keys).astype(np.float64) @ coefficients
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(("rough", "linear"), [(False, False), (True, True)])
@pytest.mark.parametrize("numbers", [None, 40])
def test_sums_at_mixed_rows_are_those_of_each(rough, linear, numbers, monkeypatch):
    monkeypatch.setattr(_kernel, "_MIXED_TILE", 5)
    if numbers:
        monkeypatch.setattr(_kernel, "_MIXED_DISTANCES", numbers)
    kernel = make_kernel(rough=rough, linear=linear)
    keys, rows, others = make_rows(13), make_rows(4, seed=1), make_rows(3, seed=2)
    # A mixed row that equals a key is where the rough part has its kink.
    others = [np.vstack([z, k[:1]]) for z, k in zip(others, keys, strict=True)]
    coefficients = np.random.default_rng(0).normal(size=(13, 2))
    masks = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    found = sums_of_mixed_rows(kernel, keys, coefficients, rows, others, masks)
    assert found.shape == (4, 4, 4, 2)
    sums = KernelSum(kernel, keys, coefficients)
    for m, mask in enumerate(masks):
        for i in range(4):
            mixed = [
                np.where(mask[feature], row[i], other)
                for feature, row, other in zip(FEATURES, rows, others, strict=True)
            ]
            atol = 1e-4 if rough else 1e-12
            np.testing.assert_allclose(found[m, i], sums(mixed), atol=atol, rtol=0)
    means = sums_of_mixed_rows(kernel, keys, coefficients, rows, others, masks, mean=True)
    np.testing.assert_allclose(means, found.mean(axis=2, keepdims=True), atol=1e-10)


def test_sums_at_mixed_rows_in_single_precision():
    # With a small rate the squares of the first Gaussian are those of a number near 1.
    values = make_kernel().values.copy()
    kernel = make_kernel().with_values(values)
    kernel.named(values)["rate"][:] = np.log(0.03)
    keys, rows, others = make_rows(13), make_rows(4, seed=1), make_rows(3, seed=2)
    rows = [k[:4] + 0.01 * row for k, row in zip(keys, rows, strict=True)]
    others = [k[:3] + 0.01 * other for k, other in zip(keys, others, strict=True)]
    coefficients = np.random.default_rng(0).normal(size=(13, 2))
    masks = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    expected = sums_of_mixed_rows(kernel, keys, coefficients, rows, others, masks)
    single = [[z.astype(np.float32) for z in table] for table in (keys, rows, others)]
    found = sums_of_mixed_rows(kernel, single[0], coefficients, *single[1:], masks)
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_sums_at_mixed_rows_that_are_far_away_are_finite():
    kernel, keys = make_kernel(), [z.astype(np.float32) for z in make_rows(5)]
    far = [np.full((1, len(feature)), 1e20, np.float32) for feature in FEATURES]
    masks = np.array([[1, 0, 0], [0, 0, 0]], dtype=bool)
    sums = sums_of_mixed_rows(kernel, keys, np.ones((5, 1)), far, [z[:1] for z in keys], masks)
    assert np.isfinite(sums).all()


@pytest.mark.parametrize("rate", [0.01, 1.0, 30.0, 1e4])
def test_gaussians_sum_to_the_rough_part(rate):
    named = {"rough": np.log([2.0]), "rate": np.log([rate])}
    rates, sizes = _kernel._gaussians_of_rough(named)
    squared = np.concatenate([[0], np.geomspace(1e-6, 1e4, 200)])
    found = np.exp(-np.outer(squared, rates)) @ sizes
    expected = _kernel._rough(np.sqrt(squared + _kernel._KINK), named)
    np.testing.assert_allclose(found, expected, atol=4 * 4e-6)
    assert len(rates) < 40
