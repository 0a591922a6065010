"""The terms of local polynomials, and sums of them about other centres."""

import numpy as np
import pytest

from sklearn_attention.attention._solve import Basis

CASES = [(0, 3), (1, 1), (1, 4), (2, 1), (2, 2), (2, 3)]


@pytest.mark.parametrize(("degree", "d"), CASES)
def test_every_monomial_is_summed_once(degree, d):
    basis = Basis(degree, d)
    powers = list(map(tuple, basis.powers.tolist()))
    assert len(set(powers)) == len(powers)
    assert {sum(power) for power in powers} == set(range(2 * degree + 1))
    u = np.random.default_rng(0).normal(size=(7, d))
    columns = basis.columns(basis.terms(u), np.ones((7, 1)))
    for column, power in zip(columns.T, powers, strict=False):
        np.testing.assert_allclose(column, np.prod(u ** np.array(power), axis=1), rtol=1e-12)


@pytest.mark.parametrize(("degree", "d"), CASES)
def test_moments_about_another_centre(degree, d):
    rng = np.random.default_rng(0)
    basis, keys, values = Basis(degree, d), rng.normal(size=(20, d)), rng.normal(size=(20, 2))
    weights, center = rng.uniform(size=20), rng.normal(size=(1, d))
    unit = rng.uniform(0.5, 2, (1, d))
    sums = weights[None] @ basis.columns(basis.terms(keys), values)
    moments = basis.averages(basis.about(sums, center, unit), unit)
    terms = basis.terms((keys - center) / unit)
    share = weights / weights.sum()
    np.testing.assert_allclose(moments.gram[0], (terms.T * share) @ terms, rtol=1e-9)
    np.testing.assert_allclose(moments.cross[0], (terms.T * share) @ values, rtol=1e-9)
    # The same where powers come in another unit than that of the coordinates.
    found = basis.averages(basis.about(sums, center, np.ones((1, d))), unit, 1 / unit)
    np.testing.assert_allclose(found.gram, moments.gram, rtol=1e-9)
    np.testing.assert_allclose(found.cross, moments.cross, rtol=1e-9)
