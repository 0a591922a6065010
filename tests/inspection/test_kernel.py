"""Kernels are drawn as they are, and as a smoother uses them."""

import numpy as np
from numpy.testing import assert_allclose

from sklearn_attention.inspection import KernelDisplay


def test_kernels_are_drawn_as_they_are():
    display = KernelDisplay.from_kernels(["gaussian", "boxcar"], bandwidth=2.0)
    assert_allclose(display.values["gaussian"], np.exp(-np.square(display.keys / 2) / 2))
    inside = np.abs(display.keys) < 2
    assert (display.values["boxcar"][inside] == 1).all()
    assert display.values["boxcar"][0] == 0


def test_a_smoothers_kernel_is_drawn_along_each_feature(averages):
    display = KernelDisplay.from_estimator(averages)
    assert [name.split(",")[0] for name in display.values] == ["size", "age", "noise"]
    width = np.std(averages.keys_[:, 0]) / averages.bandwidth_[0]
    found = next(iter(display.values.values()))
    assert_allclose(found, np.exp(-np.square(display.keys * width) / 2), atol=1e-12)
