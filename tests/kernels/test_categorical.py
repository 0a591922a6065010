"""The kernels for categories."""

import math

import numpy as np
import pytest
import torch
from kernel_contracts import KernelContract, WithoutGradient, in_libraries, to_library

from sklearn_attention.kernels import AitchisonAitken, LiRacine, WangVanRyzin
from sklearn_attention.kernels._categorical import level_table


class CategoricalContract(WithoutGradient, KernelContract):
    """Kernels for categories: codes instead of measurements, and no bandwidth."""

    def rows(self, d):
        rng = np.random.default_rng(d)
        queries, keys = (rng.integers(0, 3, size=(n, d)).astype(float) for n in (12, 16))
        keys[0] = queries[0]
        return queries, keys

    @in_libraries
    def test_rescale_leaves_codes_alone(self, kernel, library):
        codes = to_library([[0, 1], [2, 1]], library)
        for bandwidth in (0.5, np.array([2.0, 4.0])):
            np.testing.assert_array_equal(kernel.rescale(codes, bandwidth), codes)

    def test_gradient(self, kernel):
        """A code that is tracked beside learned columns gives no NaN."""
        codes = torch.tensor([[0.0], [1.0]], requires_grad=True)
        weights = torch.tensor([2.0], requires_grad=True)
        (kernel(codes, codes.detach()) * weights).sum().backward()
        assert torch.isfinite(weights.grad).all()
        assert codes.grad is None or torch.isfinite(codes.grad).all()

    def test_log_of_many_columns_does_not_underflow(self, kernel):
        zeros, ones = np.zeros((1, 800)), np.ones((1, 800))
        one_column = kernel([[0.0]], [[1.0]])[0, 0]
        log = kernel.log(zeros, ones)[0, 0]
        assert log == pytest.approx(800 * np.log(one_column) if one_column else -math.inf)
        assert kernel(zeros, ones) < 1e-200


class TestAitchisonAitken(CategoricalContract):
    samples = (
        AitchisonAitken(n_levels=3),
        AitchisonAitken(n_levels=3, lam=0),
        AitchisonAitken(n_levels=7, lam=0.5),
    )

    def formula(self, kernel, q, k):
        c, lam = kernel.n_levels, kernel.lam
        return math.prod(
            1 - lam if a == b else lam / (c - 1) for a, b in zip(q, k, strict=True)
        )

    @pytest.mark.parametrize("n_levels", [2, 49])
    def test_the_largest_lam_tells_no_categories_apart(self, n_levels):
        for lam in ((n_levels - 1) / n_levels, 1 - 1 / n_levels):  # these can differ
            values = AitchisonAitken(n_levels, lam)(np.arange(n_levels)[:, None])
            np.testing.assert_allclose(values, 1 / n_levels, rtol=1e-14)


class TestWangVanRyzin(CategoricalContract):
    samples = (WangVanRyzin(), WangVanRyzin(lam=0), WangVanRyzin(lam=0.5))

    def formula(self, kernel, q, k):
        lam = kernel.lam
        return math.prod(
            1 - lam if a == b else 0.5 * (1 - lam) * lam ** abs(a - b)
            for a, b in zip(q, k, strict=True)
        )


class TestLiRacine(CategoricalContract):
    samples = (LiRacine(), LiRacine(lam=0), LiRacine(lam=0.5))

    def formula(self, kernel, q, k):
        return math.prod(kernel.lam ** abs(a - b) for a, b in zip(q, k, strict=True))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (AitchisonAitken(3, lam=0.7), r"lam=0\.7 .*: pass a number in \[0, 0.666667\]"),
        (AitchisonAitken(2.0), r"n_levels=2\.0 is not valid: pass an integer at least 2"),
        (WangVanRyzin(1), r"lam=1 is not valid: pass a number in \[0, 1\)"),
        (LiRacine(-0.1), r"lam=-0\.1 is not valid: pass a number in \[0, 1\]"),
    ],
    ids=repr,
)
def test_bad_parameters(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel([[0]])


class TestLevelTable:
    @pytest.mark.parametrize("kind", ["unordered", "ordered"])
    @pytest.mark.parametrize("normalized", [True, False])
    def test_slope(self, kind, normalized):
        down, here, up = (
            level_table(kind, 4, lam, normalized=normalized) for lam in (0.399, 0.4, 0.401)
        )
        np.testing.assert_allclose(here[1], (up[0] - down[0]) / 0.002, atol=1e-5)

    def test_values_are_those_of_the_kernels(self):
        levels = np.arange(4)[:, None]
        unordered, _ = level_table("unordered", 4, 0.3)
        ordered, _ = level_table("ordered", 4, 0.3, normalized=False)
        np.testing.assert_allclose(unordered, AitchisonAitken(4, 0.3)(levels), rtol=1e-15)
        np.testing.assert_allclose(ordered, LiRacine(0.3)(levels), rtol=1e-15)
