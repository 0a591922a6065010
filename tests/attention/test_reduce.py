"""Sums that are made a little at a time."""

import numpy as np
import pytest

from sklearn_attention.attention import LeaveOneOut, _reduce
from sklearn_attention.kernels._base import as_kernel


@pytest.mark.parametrize("degree", [0, 1])
def test_many_sums_are_made_some_queries_at_a_time(degree, monkeypatch):
    rng = np.random.default_rng(0)
    keys, values = rng.normal(size=(90, 1)), rng.normal(size=(90, 3))
    smoother = LeaveOneOut(keys, values, as_kernel("gaussian"), degree=degree)
    expected = smoother.predictions(0.3)
    monkeypatch.setattr(_reduce, "IN_MEMORY", 100)
    for ours, theirs in zip(smoother.predictions(0.3), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
