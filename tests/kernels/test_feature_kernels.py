"""Kernels of random features: their formula, their error, and where it comes from."""

import math

import numpy as np
import pytest
import torch
from kernel_contracts import KernelContract

from sklearn_attention.kernels import (
    Gaussian,
    PositiveFeatures,
    ScaledDotProduct,
    TrigonometricFeatures,
    random_frequencies,
)

EXACT = {"gaussian": Gaussian(), "scaled_dot_product": ScaledDotProduct()}
each_kind = pytest.mark.parametrize("kind", [PositiveFeatures, TrigonometricFeatures])
each_approximated = pytest.mark.parametrize("approximated", EXACT)


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def scaled(kernel, x):
    """A row as the directions see it."""
    divisor = len(x) ** 0.25 if kernel.kernel == "scaled_dot_product" else 1.0
    return [entry / divisor for entry in x]


class FeatureContract(KernelContract):
    shifts_matter = True

    def features(self, kernel, x):
        """All features of one row, as printed."""
        raise NotImplementedError

    def formula(self, kernel, q, k):
        return dot(self.features(kernel, q), self.features(kernel, k))

    def test_the_matrix_has_no_negative_eigenvalues(self, kernel):
        queries, keys = self.rows(5)
        rows = np.concatenate([queries, keys])
        eigenvalues = np.linalg.eigvalsh(kernel(rows))
        assert kernel.positive_definite
        assert eigenvalues.min() > -1e-12 * eigenvalues.max()

    def test_form_holds_the_features(self, kernel):
        rows = torch.from_numpy(self.rows(5)[0]).view(3, 4, 5)
        form = kernel.feature_form(rows)
        features = torch.exp(form.exponents + form.offsets)
        if form.factors is not None:
            features = features * form.factors
        assert features.shape == (3, 4, kernel.n_features)
        expected = [self.features(kernel, x) for x in rows.view(12, 5).tolist()]
        np.testing.assert_allclose(features.view(12, -1), expected, rtol=1e-11, atol=1e-14)


class TestPositiveFeatures(FeatureContract):
    samples = (
        PositiveFeatures(16),
        PositiveFeatures(14, orthogonal=False, random_state=3),
        PositiveFeatures(12, kernel="gaussian"),
    )

    def features(self, kernel, x):
        x = scaled(kernel, x)
        squared, peak = dot(x, x) / 2, 1.0
        if kernel.kernel == "gaussian":
            squared, peak = 2 * squared, (2 * math.pi) ** -0.25
        along = [dot(w, x) for w in kernel.directions(len(x)).tolist()]
        size = peak / math.sqrt(kernel.n_features)
        return [size * math.exp(sign * p - squared) for sign in (1, -1) for p in along]

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_log_is_finite_for_rows_of_any_length(self, kernel, dtype):
        rows = np.array([[0.0, 0.0], [1e3, -1e3], [-1e6, 1.0], [1e-30, 0.0]], dtype)
        for tables in ((rows, rows), (torch.from_numpy(rows), torch.from_numpy(rows))):
            logs = np.asarray(kernel.log(*tables))
            assert not np.isnan(logs).any()
            assert (logs < math.inf).all()


class TestTrigonometricFeatures(FeatureContract):
    samples = (
        TrigonometricFeatures(16),
        TrigonometricFeatures(14, orthogonal=False, random_state=3),
        TrigonometricFeatures(12, kernel="gaussian"),
    )

    def features(self, kernel, x):
        x = scaled(kernel, x)
        size = math.sqrt(2 / kernel.n_features)
        if kernel.kernel == "gaussian":
            size *= (2 * math.pi) ** -0.25
        else:
            size *= math.exp(dot(x, x) / 2)
        along = [dot(w, x) for w in kernel.directions(len(x)).tolist()]
        return [size * wave(p) for wave in (math.sin, math.cos) for p in along]

    def test_stationary_kernels_do_not_see_shifts(self, kernel):
        assert kernel.stationary == (kernel.kernel == "gaussian")
        queries, keys = self.rows(5)
        moved = np.abs(kernel(queries + 8, keys + 8) - kernel(queries, keys)).max()
        assert moved < 1e-13 if kernel.stationary else moved > 1e-3

    def test_signed_says_whether_values_are_negative(self, kernel):
        assert kernel.signed
        assert kernel(*self.rows(5)).min() < 0 or kernel(8 * self.rows(5)[0]).min() < 0


# The error


def rows(n=10, d=6, spread=0.4):
    rng = np.random.default_rng(0)
    return spread * rng.normal(size=(n, d)), spread * rng.normal(size=(n + 2, d))


def errors(kind, approximated, n_features, n_draws, *, orthogonal=True):
    """Differences to the exact kernel in independent draws, (n_draws, n_queries, n_keys)."""
    tables = rows()
    exact = EXACT[approximated](*tables)
    draws = range(n_draws)
    options = {"kernel": approximated, "orthogonal": orthogonal}
    return np.array(
        [kind(n_features, random_state=r, **options)(*tables) - exact for r in draws]
    )


@each_kind
@each_approximated
@pytest.mark.parametrize("orthogonal", [True, False])
def test_unbiased(kind, approximated, orthogonal):
    found = errors(kind, approximated, 8, 1000, orthogonal=orthogonal)
    standard = found.std(axis=0) / math.sqrt(len(found))
    assert (np.abs(found.mean(axis=0)) < 5 * standard).all()


@each_kind
@each_approximated
def test_variance_is_the_one_of_the_notes(kind, approximated):
    found = errors(kind, approximated, 8, 3000, orthogonal=False)
    queries, keys = rows()
    if approximated == "scaled_dot_product":
        queries, keys = (x / x.shape[1] ** 0.25 for x in (queries, keys))
    sign = 1 if kind is PositiveFeatures else -1
    s = ((queries[:, None] + sign * keys[None]) ** 2).sum(axis=2)
    relative = (np.exp(s / 2) - np.exp(-s / 2)) ** 2 / 8
    expected = relative * EXACT[approximated](*rows()) ** 2
    # Of light tails, in which the variance can be measured.
    light = s < 1.5
    assert light.sum() > 20
    ratio = (found**2).mean(axis=0)[light] / expected[light]
    assert abs(np.median(ratio) - 1) < 0.05
    assert (np.abs(ratio - 1) < 0.6).all()


@each_kind
@each_approximated
def test_error_falls_with_the_root_of_the_number_of_features(kind, approximated):
    sizes = np.array([16, 64, 256, 1024])
    # The median, since a few large errors may come from the tail of an exponential.
    typical = [np.median(abs(errors(kind, approximated, int(n), 40))) for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log(typical), 1)[0]
    assert -0.65 < slope < -0.38


@each_kind
@each_approximated
def test_orthogonal_directions_make_the_variance_smaller(kind, approximated):
    orthogonal, independent = (
        (errors(kind, approximated, 12, 600, orthogonal=choice) ** 2).mean()
        for choice in (True, False)
    )
    assert orthogonal < 0.85 * independent


# The directions


def test_directions_are_orthogonal_in_blocks_and_normal():
    directions = PositiveFeatures(6000).directions(5)
    assert directions.shape == (3000, 5)
    blocks = directions.reshape(600, 5, 5)
    products = blocks @ blocks.transpose(0, 2, 1)
    off_diagonal = products[:, ~np.eye(5, dtype=bool)]
    assert np.abs(off_diagonal).max() < 1e-12
    assert np.cov(directions.T) == pytest.approx(np.eye(5), abs=0.1)
    assert (np.square(directions).sum(axis=1) ** 2).mean() == pytest.approx(35, rel=0.1)


def test_directions_are_the_same_in_every_call_and_depend_on_seed_and_dimension():
    kernel = PositiveFeatures(8)
    assert kernel.directions(3) is kernel.directions(3)
    np.testing.assert_array_equal(
        kernel.directions(3), TrigonometricFeatures(8, kernel="gaussian").directions(3)
    )
    other = PositiveFeatures(8, random_state=1).directions(3)
    assert not np.isclose(kernel.directions(3), other).any()
    assert not np.isclose(kernel.directions(4)[:, :3], kernel.directions(3)).any()
    with pytest.raises(ValueError, match="read-only"):
        kernel.directions(3)[0, 0] = 1.0


def test_independent_directions_are_not_orthogonal():
    directions = PositiveFeatures(4, orthogonal=False).directions(4)
    assert abs(directions[0] @ directions[1]) > 1e-3


def test_global_seed_is_left_alone():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    PositiveFeatures(6, random_state=77)(np.ones((2, 3)))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# Bad input


@each_kind
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features=0 is not valid: pass an integer greater than 0"),
        ({"n_features": 7}, "n_features=7 is not valid: pass an even integer"),
        ({"n_features": 8.0}, r"n_features=8\.0 is not valid"),
        ({"kernel": "matern32"}, "kernel='matern32' is unknown: choose from"),
        ({"random_state": None}, "random_state=None is not valid: pass an integer from 0"),
        ({"random_state": -1}, "random_state=-1 is not valid"),
        ({"random_state": True}, "random_state=True is not valid"),
        ({"orthogonal": "yes"}, "orthogonal='yes' is not valid: pass True or False"),
    ],
)
def test_bad_parameters(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**options)(np.ones((2, 3)))


def test_frequencies_of_a_kernel_without_known_density():
    with pytest.raises(ValueError, match=r"ScaledDotProduct\(\) has no known spectral density"):
        random_frequencies(ScaledDotProduct(), 2, 3, random_state=np.random.RandomState(0))
