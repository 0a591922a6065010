"""Smoothing kernels that end, their formulas and their constants."""

import math

import numpy as np
from kernel_contracts import CompactContract, WithoutGradient

from sklearn_attention.kernels import (
    Biweight,
    Boxcar,
    Cosine,
    Epanechnikov,
    Triangular,
    Tricube,
    Triweight,
)

pi = math.pi


class TestEpanechnikov(CompactContract):
    samples = (Epanechnikov(),)
    table = (3 / 5, 1 / 5, 1.7188)

    def profile(self, kernel, r):
        return 3 / 4 * (1 - r**2) if r <= 1 else 0


class TestBoxcar(WithoutGradient, CompactContract):
    samples = (Boxcar(),)
    table = (1 / 2, 1 / 3, 1.3510)

    def profile(self, kernel, r):
        return 1 / 2 if r <= 1 else 0

    def test_the_edge_belongs_to_the_window(self, kernel):
        np.testing.assert_array_equal(kernel([[0.0]], [[-1.0], [1.0]]), 0.5)


class TestTriangular(CompactContract):
    samples = (Triangular(),)
    table = (2 / 3, 1 / 6, 1.8882)

    def profile(self, kernel, r):
        return 1 - r if r <= 1 else 0


class TestBiweight(CompactContract):
    samples = (Biweight(),)
    table = (5 / 7, 1 / 7, 2.0362)

    def profile(self, kernel, r):
        return 15 / 16 * (1 - r**2) ** 2 if r <= 1 else 0


class TestTriweight(CompactContract):
    samples = (Triweight(),)
    table = (350 / 429, 1 / 9, 2.3122)

    def profile(self, kernel, r):
        return 35 / 32 * (1 - r**2) ** 3 if r <= 1 else 0


class TestTricube(CompactContract):
    samples = (Tricube(),)
    table = (175 / 247, 35 / 243, 2.0262)

    def profile(self, kernel, r):
        return 70 / 81 * (1 - r**3) ** 3 if r <= 1 else 0


class TestCosine(CompactContract):
    samples = (Cosine(),)
    table = (pi**2 / 16, 1 - 8 / pi**2, 1.7663)

    def profile(self, kernel, r):
        return pi / 4 * math.cos(pi / 2 * r) if r <= 1 else 0
