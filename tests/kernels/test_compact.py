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
PRINTED = {
    Epanechnikov: (lambda r: 3 / 4 * (1 - r**2), (3 / 5, 1 / 5, 1.7188)),
    Triangular: (lambda r: 1 - r, (2 / 3, 1 / 6, 1.8882)),
    Biweight: (lambda r: 15 / 16 * (1 - r**2) ** 2, (5 / 7, 1 / 7, 2.0362)),
    Triweight: (lambda r: 35 / 32 * (1 - r**2) ** 3, (350 / 429, 1 / 9, 2.3122)),
    Tricube: (lambda r: 70 / 81 * (1 - r**3) ** 3, (175 / 247, 35 / 243, 2.0262)),
    Cosine: (lambda r: pi / 4 * math.cos(pi / 2 * r), (pi**2 / 16, 1 - 8 / pi**2, 1.7663)),
}


class TestCompact(CompactContract):
    samples = tuple(kind() for kind in PRINTED)
    tables = tuple(table for _, table in PRINTED.values())

    def profile(self, kernel, r):
        return PRINTED[type(kernel)][0](r) if r <= 1 else 0


class TestBoxcar(WithoutGradient, CompactContract):
    samples = (Boxcar(),)
    tables = ((1 / 2, 1 / 3, 1.3510),)

    def profile(self, kernel, r):
        return 1 / 2 if r <= 1 else 0

    def test_the_edge_belongs_to_the_window(self, kernel):
        np.testing.assert_array_equal(kernel([[0.0]], [[-1.0], [1.0]]), 0.5)
