"""Kernel attention of classes."""

import numpy as np
import pytest

from sklearn_attention import KernelAttentionClassifier


@pytest.mark.parametrize("n", [1000, 1001])
def test_many_rows_have_a_rough_part(n):
    X = np.random.default_rng(0).normal(size=(n, 1))
    model = KernelAttentionClassifier(max_steps=0, n_folds=1).fit(X, X[:, 0] > 0)
    found = [np.isfinite(member.kernel.named()["rough"][0]) for member in model.members_]
    assert found == [n > 1000]
