"""Kernel attention of classes: their probabilities."""

import numpy as np
import pytest

from sklearn_attention import KernelAttentionClassifier


@pytest.mark.parametrize("readout", ["average", "solve"])
def test_probabilities_are_about_right(readout):
    rng = np.random.default_rng(0)
    X, queries = rng.uniform(-1, 1, (300, 2)), rng.uniform(-1, 1, (200, 2))
    labels = rng.uniform(size=300) < 0.5 + 0.4 * np.sign(X[:, 0])
    model = KernelAttentionClassifier(readout, max_steps=15, n_folds=1).fit(X, labels)
    queries = queries[np.abs(queries[:, 0]) > 0.3]
    errors = model.predict_proba(queries)[:, 1] - (0.5 + 0.4 * np.sign(queries[:, 0]))
    assert abs(errors.mean()) < 0.08
    assert np.abs(errors).mean() < 0.12


@pytest.mark.parametrize("n", [1000, 1001])
def test_many_rows_have_a_rough_part(n):
    X = np.random.default_rng(0).normal(size=(n, 1))
    model = KernelAttentionClassifier(max_steps=0, n_folds=1).fit(X, X[:, 0] > 0)
    found = [np.isfinite(member.kernel.named()["rough"][0]) for member in model.members_]
    assert found == [n > 1000]
