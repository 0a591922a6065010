"""Keys on their sphere after layer normalisation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_attention.inspection import LayerNormDisplay, layer_norm_decomposition


@pytest.mark.parametrize(("d", "radius"), [(3, np.sqrt(3)), (4, 2.0)])
def test_keys_are_drawn_on_their_sphere(d, radius):
    keys = np.random.default_rng(0).normal(size=(12, d))
    display = LayerNormDisplay.from_vectors(keys)
    assert_allclose(np.linalg.norm(display.scaled, axis=1), radius)
    before, after = display.unselectable
    assert before.any()
    assert not after.any()
    left, right = display.ax_.flat
    assert f"\n{before.sum()} cannot win" in left.get_title(loc="left") + left.get_title()
    assert "\n0 cannot win" in right.get_title(loc="left") + right.get_title()
    # Distances within the hyperplane are those of the projected keys.
    projected = layer_norm_decomposition(keys).projected
    assert_allclose(display.projected @ display.projected.T, projected @ projected.T)


def test_what_cannot_be_seen_is_refused():
    with pytest.raises(ValueError, match=r"keys has shape \(3, 5\)"):
        LayerNormDisplay.from_vectors(np.eye(5)[:3])


def test_rows_of_an_estimator_are_keys(averages, table):
    display = LayerNormDisplay.from_estimator(averages)
    assert_allclose(display.keys, table[0])
    display = LayerNormDisplay.from_estimator(averages, table[0][:7], table[1][:7])
    assert_allclose(display.keys, table[0][:7])
