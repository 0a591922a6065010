"""Frequencies follow the spectral density of their kernel."""

import numpy as np
import pytest

from sklearn_attention.kernels import (
    Exponential,
    Gaussian,
    Laplacian,
    Matern32,
    Matern52,
    RationalQuadratic,
    ScaledDotProduct,
)
from sklearn_attention.kernels._frequencies import random_frequencies

KNOWN = [
    Gaussian(), Exponential(), Laplacian(), Matern32(), Matern52(), RationalQuadratic(0.7),
]  # fmt: skip


def draw(kernel, n_directions, n_features, seed=0, **options):
    random_state = np.random.RandomState(seed)
    return random_frequencies(
        kernel, n_directions, n_features, random_state=random_state, **options
    )


@pytest.mark.parametrize("kernel", KNOWN, ids=repr)
def test_mean_of_cosines_is_the_kernel(kernel):
    differences = np.array([[0.3, 0, 0], [0, -1.0, 0], [0.5, 0.5, -0.5], [2.0, 1.0, 0]])
    origin = np.zeros((1, 3))
    expected = kernel(differences, origin)[:, 0] / kernel(origin)[0, 0]
    n_directions = 4000
    cosines = np.cos(draw(kernel, n_directions, 3) @ differences.T)
    # Orthogonal directions depend on one another, but spread the more evenly.
    wide = 4 * cosines.std(axis=0) / n_directions**0.5
    assert (np.abs(cosines.mean(axis=0) - expected) < wide).all()
    assert wide.max() < 0.06


def test_frequencies_of_a_kernel_without_known_density():
    with pytest.raises(ValueError, match=r"ScaledDotProduct\(\) has no known spectral density"):
        draw(ScaledDotProduct(), 2, 3)
