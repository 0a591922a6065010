"""Patches against slices of the padded series."""

import math

import numpy as np
import pytest
import torch
from torch_weights import tokens

from sklearn_attention.nn import Patches


@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("n_steps", [1, 6, 23])
@pytest.mark.parametrize(("length", "stride"), [(6, None), (6, 2), (1, 1)])
def test_patches_are_slices(length, stride, n_steps, n_channels):
    x, step = tokens(2, n_steps, n_channels), stride or length
    patches = Patches(length, stride)
    found = patches(x)
    n_patches = math.ceil(max(n_steps - length, 0) / step) + 1
    assert patches.n_patches(n_steps) == n_patches == found.shape[1]
    for b in range(2):
        series = x[b].numpy()
        for number in range(n_patches):
            # Counted from the right: the last patch ends at the last step.
            end = n_steps - (n_patches - 1 - number) * step
            rows = [series[max(t, 0)] for t in range(end - length, end)]
            np.testing.assert_array_equal(found[b, number], np.concatenate(rows))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Patches(0), "patch_length=0"),
        (lambda: Patches(4, 5), "stride=5 is larger than patch_length=4"),
        (lambda: Patches(4).n_patches(0), "n_steps=0"),
        (lambda: Patches(4)(torch.zeros(3, 5)), r"x must have shape \(B, T, n_channels\)"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
