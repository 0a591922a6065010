"""Kernels of random features: their formula, and directions that suit their rows."""

import math

import numpy as np
import pytest
import torch
from kernel_contracts import KernelContract

from sklearn_attention.kernels import PositiveFeatures, TrigonometricFeatures
from sklearn_attention.kernels._frequencies import adapt_directions


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


# Directions that suit queries and keys


def skewed(n, seed, d=4):
    rng = np.random.default_rng(seed)
    return 0.6 + 0.7 * rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / d**0.5


@pytest.mark.parametrize("approximated", ["gaussian", "scaled_dot_product"])
class TestAdapted:
    def test_features_are_the_printed_ones(self, approximated):
        queries, keys = skewed(20, 0), skewed(30, 1)
        kernel = PositiveFeatures(6, kernel=approximated).adapt(queries, keys)
        center, covariance = (queries.mean(0) + keys.mean(0)) / 2, np.cov(queries.T, ddof=0)
        covariance = covariance + np.cov(keys.T, ddof=0)
        dot_product = approximated == "scaled_dot_product"
        if dot_product:
            center, covariance = center / 4**0.25, covariance / 2
        directions, log_weights = adapt_directions(kernel.directions(4), covariance)
        form = kernel.feature_form(queries[:3])
        found = np.exp(form.exponents + form.offsets)
        for i, x in enumerate(queries[:3]):
            x = np.array(scaled(kernel, x))
            moved = x - center
            factor = math.exp(
                dot(center, x - center / 2) if dot_product else -dot(moved, moved) / 2
            )
            factor *= 1 if dot_product else (2 * math.pi) ** -0.25
            factor *= math.exp(-dot(moved, moved) / 2) / math.sqrt(6)
            expected = [
                factor * math.exp(weight / 2 + sign * dot(w, moved))
                for sign in (1, -1)
                for w, weight in zip(directions, log_weights, strict=True)
            ]
            np.testing.assert_allclose(found[i], expected, rtol=1e-11)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_each_head_by_itself(self, approximated, dtype):
        heads = torch.from_numpy(np.stack([skewed(40, seed) for seed in range(8)]))
        queries, keys = heads.view(2, 2, 2, 40, 4).to(dtype)
        kernel = PositiveFeatures(8, kernel=approximated)
        together = kernel.adapt(queries.requires_grad_(True), keys)
        form = together.feature_form(queries)
        assert form.exponents.dtype == form.offsets.dtype == dtype
        for h in (0, 1):
            alone = kernel.adapt(*(x[:, h].flatten(0, 1) for x in (queries, keys)))
            expected = alone.feature_form(queries[:, h])
            torch.testing.assert_close(form.exponents[:, h], expected.exponents)
            torch.testing.assert_close(form.offsets[:, h], expected.offsets)

    def test_other_shapes(self, approximated):
        kernel = PositiveFeatures(8, kernel=approximated)
        with pytest.raises(ValueError, match=r"of heads and the same last dimension\."):
            kernel.adapt(skewed(5, 0), skewed(5, 0, d=3))
        with pytest.raises(ValueError, match=r"must have shape \(n_keys, d\) or \(B"):
            kernel.adapt(skewed(5, 0), np.empty((0, 4)))
        with pytest.raises(ValueError, match=r"center of shape \(4,\) does not fit rows"):
            kernel.adapt(skewed(5, 0), skewed(5, 1))(skewed(5, 0, d=3))
        of_heads = kernel.adapt(*(np.stack([skewed(5, r)] * 2)[None] for r in (0, 1)))
        for rows in (skewed(5, 0), np.zeros((1, 3, 5, 4))):
            with pytest.raises(ValueError, match=r"center of shape \(2, 4\) does not fit rows"):
                of_heads.feature_form(rows)


# The directions


def test_directions_are_orthogonal_in_blocks_and_normal():
    directions = PositiveFeatures(6000).directions(5)
    assert directions.shape == (3000, 5)
    blocks = directions.reshape(600, 5, 5)
    products = blocks @ blocks.transpose(0, 2, 1)
    off_diagonal = products[:, ~np.eye(5, dtype=bool)]
    assert np.abs(off_diagonal).max() < 1e-12
    independent = PositiveFeatures(4, orthogonal=False).directions(4)
    assert abs(independent[0] @ independent[1]) > 1e-3
    assert np.cov(directions.T) == pytest.approx(np.eye(5), abs=0.1)
    assert (np.square(directions).sum(axis=1) ** 2).mean() == pytest.approx(35, rel=0.1)


# Bad input


@pytest.mark.parametrize("kind", [PositiveFeatures, TrigonometricFeatures])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 7}, "n_features=7 is not valid: pass an even integer"),
        ({"kernel": "matern32"}, "kernel='matern32' is unknown: choose from"),
        ({"random_state": None}, "random_state=None is not valid: pass an integer from 0"),
        ({"orthogonal": "yes"}, "orthogonal='yes' is not valid: pass True or False"),
    ],
)
def test_bad_parameters(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**options)(np.ones((2, 3)))
