"""Learned kernels with all parts, and their formula by loops."""

import numpy as np
import pytest

from sklearn_attention.kernel_attention import _kernel
from sklearn_attention.kernel_attention._kernel import LearnedKernel
from sklearn_attention.kernels._base import as_kernel

# Three features in the first encoding; in the second two have two columns each.
FEATURES = [np.array([0, 1, 2]), np.array([0, 0, 1, 1, 2])]
PROFILES = {
    "gaussian": lambda squared: np.exp(-squared / 2),
    "matern52": lambda squared: (
        (1 + np.sqrt(5 * squared) + 5 * squared / 3) * np.exp(-np.sqrt(5 * squared))
    ),
    "rational_quadratic": lambda squared: 1 / (1 + squared / 2),
}
GAUSSIAN = as_kernel("gaussian")
# Each part, and each formula, beside the others.
KERNELS = [
    ("gaussian", False, False),
    ("gaussian", True, True),
    ("matern52", True, False),
    ("rational_quadratic", False, True),
]
every_kernel = pytest.mark.parametrize(("formula", "rough", "linear"), KERNELS)


def make_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, len(feature))) for feature in FEATURES]


def make_kernel(formula="gaussian", *, rough=True, linear=False, constant=0.7):
    """A kernel in which no two parameters are equal."""
    rng = np.random.default_rng(3)
    kernel = LearnedKernel.start(
        FEATURES, [np.ones(len(f)) for f in FEATURES], 3, as_kernel(formula), rough=rough,
        linear=linear, constant=constant,
    )  # fmt: skip
    return kernel.with_values(kernel.values + 0.2 * rng.normal(size=len(kernel.values)))


def slow_kernel(kernel, formula, queries, keys):
    """The sum of its parts, pair by pair."""
    scale, deviation, amplitude, linear, rough, rate, _ = kernel.named().values()
    deviation = [deviation[:3], deviation[3:]]
    found = np.empty((len(queries[0]), len(keys[0])))
    for i in range(len(queries[0])):
        for j in range(len(keys[0])):
            total, squares = kernel.constant, []
            for e, feature in enumerate(FEATURES):
                squared = 0.0
                for column, own in enumerate(feature):
                    inverse = np.exp(scale[e, own] + deviation[e][column])
                    difference = queries[e][i, column] - keys[e][j, column]
                    squared += (inverse * difference) ** 2
                total += np.exp(2 * amplitude[e]) * PROFILES[formula](squared)
                squares.append(squared)
            far = np.sqrt(sum(squares) + _kernel.KINK)
            total += np.exp(2 * rough[0]) * np.exp(-np.exp(rate[0]) * far)
            total += np.exp(2 * linear[0]) * (queries[0][i] @ keys[0][j]) / 3
            found[i, j] = total
    return found
