"""The dot-product kernels."""

import math

import numpy as np
import pytest
import torch
from kernel_contracts import KernelContract, gradient_is_finite, weight_by_log

from sklearn_attention.kernels import (
    CosineSimilarity,
    Gaussian,
    Linear,
    Polynomial,
    ProductKernel,
    ScaledDotProduct,
)


def dot(q, k):
    return math.fsum(a * b for a, b in zip(q, k, strict=True))


class TestScaledDotProduct(KernelContract):
    samples = (ScaledDotProduct(),)
    shifts_matter = True

    def formula(self, kernel, q, k):
        return math.exp(dot(q, k) / math.sqrt(len(q)))

    def test_log_is_accurate_where_the_kernel_overflows(self, kernel):
        logs = kernel.log([[1e3, 0.0]], [[1e3, 5.0], [-1e3, 5.0]])
        np.testing.assert_allclose(logs, [[1e6 / math.sqrt(2), -1e6 / math.sqrt(2)]])


class TestLinear(KernelContract):
    samples = (Linear(), Linear(center=0.5), Linear(center=-2))
    shifts_matter = True

    def formula(self, kernel, q, k):
        c = kernel.center
        return dot([a - c for a in q], [b - c for b in k])

    def test_signed_says_whether_values_are_negative(self, kernel):
        assert kernel.signed
        assert kernel([[10.0]], [[-10.0]]) < 0

    @pytest.mark.parametrize("center", [[1.0, -2.0], np.array([1.0, -2.0])], ids=repr)
    def test_center_for_each_feature(self, center):
        queries, keys = np.array([[3.0, 4.0]]), np.array([[1.0, 1.0], [2.0, 5.0]])
        for tables in ((queries, keys), (torch.tensor(queries).float(), torch.tensor(keys))):
            assert Linear(center)(*tables).tolist() == [[18, 44]]
        elsewhere = torch.ones((3, 2), device="meta")
        assert Linear(center)(elsewhere).device == elsewhere.device

    @pytest.mark.parametrize(
        # Three would broadcast over the rows of one feature.
        ("center", "d"),
        [([1.0], 2), ([[1.0, 2.0]], 2), ([1.0, 2.0, 3.0], 1)],
    )
    def test_center_that_does_not_fit(self, center, d):
        with pytest.raises(ValueError, match=rf"center=.* does not fit {d} features: pass"):
            Linear(center)(np.ones((3, d)))


class TestPolynomial(KernelContract):
    samples = (Polynomial(), Polynomial(degree=3, coef0=0.5), Polynomial(degree=4, coef0=-0.25))
    shifts_matter = True

    def formula(self, kernel, q, k):
        return (dot(q, k) + kernel.coef0) ** kernel.degree

    def test_signed_says_whether_values_are_negative(self, kernel):
        assert kernel.signed is (kernel.degree % 2 == 1)
        values = kernel([[10.0]], [[-10.0], [10.0]])
        assert (values.min() < 0) == kernel.signed

    def test_log_is_accurate_where_the_kernel_overflows(self):
        kernel = Polynomial(degree=4, coef0=1.0)
        logs = kernel.log([[1e60]], [[1e60], [-1e60], [1e-200]])
        expected = 4 * 120 * math.log(10)
        np.testing.assert_allclose(logs[0], [expected, expected, 0], rtol=1e-14)

    def test_gradient_is_finite_where_the_kernel_is_zero(self):
        kernel = Polynomial(degree=2, coef0=1.0)
        queries, keys = [[1.0]], [[-1.0], [2.0]]
        assert kernel(queries, keys)[0, 0] == 0
        assert gradient_is_finite(weight_by_log(kernel, key=1), queries, keys)

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"degree": 2.0}, r"degree=2\.0 is not valid: pass an integer greater than 0"),
            ({"coef0": math.nan}, "coef0=nan is not valid: pass a number"),
        ],
    )
    def test_bad_parameters(self, options, match):
        with pytest.raises(ValueError, match=match):
            Polynomial(**options)([[0.0]])


class TestCosineSimilarity(KernelContract):
    samples = (CosineSimilarity(),)
    shifts_matter = True

    def formula(self, kernel, q, k):
        norms = math.hypot(*q) * math.hypot(*k)
        return dot(q, k) / norms if norms > 0 else 0

    def close_rows(self, d):
        # In one dimension the angle is constant, and gradcheck would compare zeros.
        return [X + 0.5 for X in super().close_rows(d)]

    def test_stationary_kernels_do_not_see_shifts(self, kernel):
        assert not kernel.stationary
        near, far = kernel([[1.0, 0.0]], [[0.0, 1.0]]), kernel([[2.0, 1.0]], [[1.0, 2.0]])
        assert near == pytest.approx(0)
        assert far == pytest.approx(0.8)

    def test_rows_of_zeros_are_similar_to_nothing(self, kernel):
        table = np.array([[0.0, 0.0], [1.0, 2.0]])
        assert kernel(table).tolist() == [[0, 0], [0, pytest.approx(1)]]
        assert gradient_is_finite(kernel, table, table)

    @pytest.mark.parametrize("scale", [1e-310, 1e-160, 1e160, 1e307])
    def test_length_does_not_matter_however_extreme(self, kernel, scale):
        queries, keys = scale * np.array([[3.0, 4.0]]), np.array([[4.0, 3.0]]) / 7
        np.testing.assert_allclose(kernel(queries, keys), 0.96, rtol=1e-12)
        tensors = torch.from_numpy(queries), torch.from_numpy(keys)
        np.testing.assert_allclose(kernel(*tensors), 0.96, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 5])
@pytest.mark.parametrize(
    "kernel",
    [Gaussian(), ScaledDotProduct(), ProductKernel([("last", "gaussian", [-1])])],
    ids=repr,
)
def test_dot_product_form_is_the_logarithm(kernel, d):
    rng = np.random.default_rng(d)
    queries, keys = rng.normal(size=(4, d)), rng.normal(size=(6, d))
    for tables in ((queries, keys), (torch.from_numpy(queries), torch.from_numpy(keys))):
        form = kernel.as_dot_product(*tables)
        assert all(type(part) is type(tables[0]) for part in form)
        assert form.key_bias.shape == (6,)
        assert form.query_bias.shape == (4,)
        scores = form.queries @ form.keys.T + form.key_bias + form.query_bias[:, None]
        np.testing.assert_allclose(scores, kernel.log(*tables), rtol=1e-12, atol=1e-13)
