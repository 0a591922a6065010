"""Layer normalisation: its geometry, and its picture."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.spatial import ConvexHull

from sklearn_attention.inspection import (
    LayerNormDisplay,
    layer_norm_decomposition,
    unselectable_keys,
)


@pytest.mark.parametrize(("n_vectors", "d", "offset"), [(1, 2, 0.0), (20, 50, 1e3)])
def test_both_steps_are_layer_norm(n_vectors, d, offset):
    x = np.random.default_rng(0).normal(size=(n_vectors, d)) + offset
    projected, scaled = layer_norm_decomposition(x)
    expected = torch.nn.functional.layer_norm(torch.from_numpy(x), (d,), eps=0).numpy()
    assert_allclose(scaled, expected, rtol=1e-8, atol=1e-8)
    assert_allclose(projected @ np.ones(d), 0, atol=1e-9)
    assert_allclose(np.linalg.norm(scaled, axis=1), np.sqrt(d))
    projection = np.eye(d) - np.ones((d, d)) / d
    assert_allclose(projected, x @ projection, atol=1e-9)


@pytest.mark.parametrize("d", [2, 4])
def test_keys_that_can_win_are_the_corners_of_the_hull(d):
    keys = np.random.default_rng(0).normal(size=(20, d))
    corners = np.isin(np.arange(20), ConvexHull(keys).vertices)
    assert (unselectable_keys(keys) == ~corners).all()
    assert (unselectable_keys(1e-8 * keys + 5.0) == ~corners).all()


def test_equal_keys_cannot_win_alone():
    found = unselectable_keys([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert found.tolist() == [True, True, False]
    assert unselectable_keys([[1.0, 2.0]]).tolist() == [False]


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


def test_rows_of_an_estimator_are_keys(averages, table):
    display = LayerNormDisplay.from_estimator(averages, table[0][:7])
    assert_allclose(display.keys, table[0][:7])
    with pytest.raises(ValueError, match=r"keys has shape \(3, 5\)"):
        LayerNormDisplay.from_vectors(np.eye(5)[:3])
