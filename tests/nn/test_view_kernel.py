"""The kernel of several views against loops over heads and pairs."""

import math

import numpy as np
import pytest
import torch

from sklearn_attention.kernels import Tricube, as_kernel
from sklearn_attention.nn import ViewKernel

# k(0) = 1: heads of a kernel differ in their amplitudes, not in the kernel's constant.
PROFILES = {
    "gaussian": lambda r: math.exp(-r * r / 2),
    "matern52": lambda r: (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r),
    "exponential": lambda r: math.exp(-r),
}
# The first head has features of one column, the second a feature of three.
FEATURES = [torch.tensor([0, 1]), torch.tensor([0, 2, 2, 2])]


def make_kernel(name="gaussian", constant=0.0, seed=0):
    rng = np.random.default_rng(seed)
    parameters = {
        "scale": rng.normal(scale=0.5, size=(2, 3)),
        "column": rng.normal(scale=0.5, size=6),
        "amplitude": rng.normal(scale=0.5, size=2),
        "noise": np.array(-1.0),
        "ridge": np.array(0.0),
    }
    tensors = {key: torch.as_tensor(value) for key, value in parameters.items()}
    return ViewKernel(FEATURES, as_kernel(name), tensors, constant), parameters


def make_rows(n, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, 2)), rng.normal(size=(n, 4))]


def slow_scaled(parameters, rows):
    scale, column = np.exp(parameters["scale"]), np.exp(parameters["column"])
    first = rows[0] * scale[0, [0, 1]]
    # Column 2 is the first of the second head, the only one of its feature.
    second = rows[1] * scale[1, [0, 2, 2, 2]] * [1, *column[3:]]
    return [first, second]


def slow_matrix(parameters, profile, queries, keys, constant):
    queries, keys = slow_scaled(parameters, queries), slow_scaled(parameters, keys)
    found = np.full((len(queries[0]), len(keys[0])), constant)
    for head in range(2):
        for i, query in enumerate(queries[head]):
            for j, key in enumerate(keys[head]):
                distance = math.sqrt(math.fsum((query - key) ** 2))
                worth = math.exp(2 * parameters["amplitude"][head])
                found[i, j] += worth * profile(distance)
    return found


def as_tensors(rows):
    return [torch.as_tensor(x) for x in rows]


@pytest.mark.parametrize("name", PROFILES)
class TestFormula:
    @pytest.mark.parametrize("constant", [0.0, 1.0])
    def test_matrix(self, name, constant):
        kernel, parameters = make_kernel(name, constant)
        queries, keys = make_rows(4), make_rows(7, seed=2)
        found = kernel.matrix(
            kernel.scaled(as_tensors(queries)), kernel.scaled(as_tensors(keys))
        )
        expected = slow_matrix(parameters, PROFILES[name], queries, keys, constant)
        np.testing.assert_allclose(found, expected, rtol=1e-7)

    @pytest.mark.parametrize("constant", [0.0, 1.0])
    def test_matrix_of_the_rows_themselves(self, name, constant):
        kernel, parameters = make_kernel(name, constant)
        rows = make_rows(6)
        found = kernel.matrix(kernel.scaled(as_tensors(rows)))
        expected = slow_matrix(parameters, PROFILES[name], rows, rows, constant)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        peak = constant + np.exp(2 * parameters["amplitude"]).sum()
        np.testing.assert_allclose(found.diagonal(), np.full(6, peak), rtol=1e-12)

    def test_log_matrix_differs_by_a_constant(self, name):
        kernel, parameters = make_kernel(name, constant=1.0)
        queries, keys = make_rows(4), make_rows(7, seed=2)
        found = kernel.log_matrix(
            kernel.scaled(as_tensors(queries)), kernel.scaled(as_tensors(keys))
        )
        expected = np.log(slow_matrix(parameters, PROFILES[name], queries, keys, 0.0))
        # Weights are the same whatever the kernel's own constant is.
        own = found.numpy() - expected
        np.testing.assert_allclose(own, np.full_like(own, own[0, 0]), atol=1e-7)

    def test_gradient_is_finite_where_rows_coincide(self, name):
        kernel, _ = make_kernel(name)
        rows = as_tensors([x[[0, 0, 1, 2, 1]] for x in make_rows(3)])
        for parameter in kernel.parameters.values():
            parameter.requires_grad_(True)
        scaled = kernel.scaled(rows)
        total = kernel.matrix(scaled).sum() + kernel.log_matrix(scaled, scaled).sum()
        total.backward()
        for key in ("scale", "column", "amplitude"):
            gradient = kernel.parameters[key].grad
            assert torch.isfinite(gradient).all(), key
            assert gradient.any(), key


def test_log_matrix_far_away_is_finite():
    kernel, _ = make_kernel()
    rows = kernel.scaled(as_tensors(make_rows(3)))
    far = [x + 1e3 for x in rows]
    assert (kernel.matrix(rows, far) == 0).all()
    assert torch.isfinite(kernel.log_matrix(rows, far)).all()


def test_a_compact_kernel_reaches_nobody_far_away():
    kernel, _ = make_kernel(Tricube())
    rows = kernel.scaled(as_tensors(make_rows(3)))
    assert torch.isneginf(kernel.log_matrix(rows, [x + 1e3 for x in rows])).all()
    np.testing.assert_allclose(
        kernel.matrix(rows).diagonal(), kernel.matrix(rows, rows).diagonal()
    )


def test_columns_of_a_feature_that_has_one_do_not_deviate():
    kernel, _ = make_kernel()
    rows = as_tensors(make_rows(5))
    before = kernel.scaled(rows)
    kernel.parameters["column"][:3] += 5.0
    for found, expected in zip(kernel.scaled(rows), before, strict=True):
        np.testing.assert_array_equal(found, expected)
    kernel.parameters["column"][3] += 5.0
    assert not torch.equal(kernel.scaled(rows)[1], before[1])


SHARED = [torch.tensor([0, 1, 1]), torch.tensor([0, 1])]


class TestStart:
    def start(self, jitter, seed=0):
        rng = np.random.default_rng(0)
        self.rows = as_tensors(
            [rng.normal(size=(200, 3)) * [1, 10, 3], rng.normal(size=(200, 2))]
        )
        return ViewKernel.start(
            SHARED, [x.var(dim=0, unbiased=False) for x in self.rows], 3,
            as_kernel("gaussian"), jitter=jitter,
            generator=torch.Generator().manual_seed(seed),
        )  # fmt: skip

    def test_mean_squared_distance_is_1_and_features_share_it(self):
        kernel = self.start(jitter=0.0)
        for x, feature in zip(kernel.scaled(self.rows), SHARED, strict=True):
            mean_square = 2 * x.var(dim=0, unbiased=False).numpy()
            assert mean_square.sum() == pytest.approx(1)
            shares = np.bincount(feature, mean_square)
            np.testing.assert_allclose(shares, [0.5, 0.5])
        # All heads together weigh 1, and so does the constant.
        assert kernel.matrix(self.rows)[0, 0] == pytest.approx(2.0)

    def test_a_feature_without_columns_is_finite(self):
        kernel = self.start(jitter=0.3)
        assert torch.isfinite(kernel.parameters["scale"]).all()
        assert kernel.parameters["scale"].shape == (2, 3)

    def test_a_column_that_hardly_varies_gets_no_scale_without_bound(self):
        spreads = [torch.tensor([1.0, 1e-14, 0.0]), torch.tensor([1.0, 1.0])]
        kernel = ViewKernel.start(
            SHARED, spreads, 3, as_kernel("gaussian"), jitter=0.0,
            generator=torch.Generator().manual_seed(0),
        )  # fmt: skip
        assert kernel.parameters["scale"].max() < 3

    def test_jitter_is_the_generators(self):
        first, again, other = self.start(0.3), self.start(0.3), self.start(0.3, seed=1)
        assert torch.equal(first.parameters["scale"], again.parameters["scale"])
        assert not torch.equal(first.parameters["scale"], other.parameters["scale"])


def test_to_another_precision():
    kernel, _ = make_kernel(constant=1.0)
    kernel.parameters["scale"].requires_grad_(True)
    single = kernel.to(torch.float32)
    rows = make_rows(4)
    found = single.matrix(single.scaled([torch.as_tensor(x).float() for x in rows]))
    assert found.dtype == torch.float32
    assert not found.requires_grad
    expected = kernel.matrix(kernel.scaled(as_tensors(rows))).detach()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert kernel.parameters["scale"].dtype == torch.float64
    assert (single.n_heads, single.n_features) == (2, 3)
