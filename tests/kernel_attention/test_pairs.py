"""Gram matrices of the learned kernel, and their derivatives."""

import numpy as np
from slow_learned_kernel import PROFILES, every_kernel, make_kernel, make_rows, slow_kernel

from sklearn_attention.kernel_attention._pairs import Pairs


@every_kernel
def test_the_gram_matrix_equals_its_formula(formula, rough, linear):
    kernel, rows = make_kernel(formula, rough=rough, linear=linear), make_rows(9, seed=1)
    expected = slow_kernel(kernel, formula, rows, rows)
    np.testing.assert_allclose(Pairs(kernel, rows).matrix, expected, rtol=1e-12)


# What derivatives are is told by those of leave-one-out errors, and by slopes of predictions.
def test_derivatives_are_finite_where_rows_coincide():
    rows = [np.repeat(z, 2, axis=0) for z in make_rows(5)]
    for formula in PROFILES:
        pairs = Pairs(make_kernel(formula, linear=True), rows)
        assert np.isfinite(pairs.gradient(np.ones((10, 10)))).all()
        assert all(np.isfinite(part).all() for part in pairs.slopes(np.ones(10)))
