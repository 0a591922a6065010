"""Estimators on memory maps of more rows than are looked at together."""

import copy
import itertools
import pickle
import tracemalloc

import numpy as np
import pytest

from sklearn_attention import (
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
    _blocks,
)
from sklearn_attention.attention import _smoother
from sklearn_attention.smoothing import _estimator

N_ROWS = 60_000
MODELS = [
    NadarayaWatsonRegressor(bandwidth="scott"),
    LocalPolynomialRegressor(bandwidth="silverman"),
    NadarayaWatsonClassifier(bandwidth="scott"),
    ProductKernelDensity("epanechnikov", bandwidth=0.5),
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A feature, targets, classes and weights, all memory maps."""
    folder, rng = tmp_path_factory.mktemp("maps"), np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 1))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=N_ROWS)
    found = []
    for name, array in zip("xycw", (X, y, y > 0, rng.integers(0, 3, N_ROWS) / 2), strict=True):
        np.save(folder / f"{name}.npy", array)
        found.append(np.load(folder / f"{name}.npy", mmap_mode="r"))
    return found


def fitted(model, rows, weighted=False):
    X, y, classes, weights = rows
    if isinstance(model, ProductKernelDensity):
        y = None
    elif isinstance(model, NadarayaWatsonClassifier):
        y = classes
    return model.fit(X, y, sample_weight=weights if weighted else None)


def answers(model):
    queries = np.linspace(-3, 6, 40)[:, None]
    for name in ("score_samples", "predict_proba", "predict"):
        if hasattr(model, name):
            return getattr(model, name)(queries)


def in_small_blocks(monkeypatch):
    for module, name in (
        (_blocks, "ROWS_AT_ONCE"), (_smoother, "ROWS_AT_ONCE"), (_estimator, "_CHECKED_ROWS"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 2000)


# One after the other with weights and without them.
@pytest.mark.parametrize(("model", "weighted"), zip(MODELS, itertools.cycle([False, True])))
def test_rows_on_disk_are_neither_copied_nor_taken_at_once(model, weighted, rows, monkeypatch):
    expected = answers(fitted(model, [np.array(field) for field in rows], weighted))
    in_small_blocks(monkeypatch)
    tracemalloc.start()
    found = answers(fitted(model, rows, weighted))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert np.shares_memory(model.keys_, rows[0])
    # All rows at once are prepared in 12 to 25 columns of floats.
    assert peak < 8 * 4 * N_ROWS


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_are_appended_to_maps_are_in_maps(rows, weighted, monkeypatch):
    X, y, _, weights = rows
    weights = weights if weighted else None
    expected = NadarayaWatsonRegressor(bandwidth=0.1).fit(X, y, weights)
    queries, before = np.linspace(-3, 3, 20)[:, None], X[:20_000].copy()
    expected = expected.predict(queries)
    in_small_blocks(monkeypatch)
    model = NadarayaWatsonRegressor(bandwidth=0.1)
    tracemalloc.start()
    for some in (slice(20_000), slice(20_000, None)):
        model.partial_fit(X[some], y[some], None if weights is None else weights[some])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Of the weights nothing is mapped, since the estimator may have made them itself.
    assert peak < 8 * N_ROWS * (3 if weighted else 1)
    assert isinstance(model.keys_, np.memmap)
    assert isinstance(model.values_, np.memmap)
    for same in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(same.predict(queries), expected, rtol=1e-9)
    np.testing.assert_array_equal(X[:20_000], before)  # maps that were passed stay as they are
