"""Kernel attention of classes: their names and probabilities."""

import numpy as np
import pytest

from sklearn_attention import KernelAttentionClassifier


@pytest.mark.parametrize("readout", ["average", "solve"])
def test_names_of_classes_are_kept(readout):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    labels = np.array(["low", "mid", "top"])[np.digitize(y, [-0.5, 0.5])]
    # Averages start wider.
    n_steps = 5 if readout == "solve" else 40
    model = KernelAttentionClassifier(readout, max_steps=n_steps, n_folds=1).fit(X, labels)
    assert list(model.classes_) == ["low", "mid", "top"]
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[found.argmax(axis=1)])
    assert (model.predict(X) == labels).mean() > 0.8


@pytest.mark.parametrize("readout", ["average", "solve"])
def test_probabilities_are_about_right(readout):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    chance = 0.5 + 0.4 * np.sign(X[:, 0])
    labels = rng.uniform(size=300) < chance
    model = KernelAttentionClassifier(readout, max_steps=15, n_folds=1).fit(X, labels)
    queries = rng.uniform(-1, 1, (200, 2))
    queries = queries[np.abs(queries[:, 0]) > 0.3]
    found = model.predict_proba(queries)[:, 1]
    np.testing.assert_allclose(found.mean(), 0.5 + 0.4 * np.sign(queries[:, 0]).mean(),
                               atol=0.08)  # fmt: skip
    assert np.abs(found - 0.5 - 0.4 * np.sign(queries[:, 0])).mean() < 0.12


@pytest.mark.parametrize("n", [1000, 1001])
def test_many_rows_have_a_rough_part(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 1))
    model = KernelAttentionClassifier(max_steps=0, n_folds=1).fit(X, X[:, 0] > 0)
    found = [np.isfinite(member.kernel.named()["rough"][0]) for member in model.members_]
    assert found == [n > 1000]
