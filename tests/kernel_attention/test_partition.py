"""Overlapping blocks of rows: their weights, borders and slopes."""

import numpy as np
import pytest

from sklearn_attention.kernel_attention._partition import Partition


def make_points(n=500, n_columns=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n_columns)) * np.arange(1, n_columns + 1)


def learn(points, most=40, overlap=0.1):
    return Partition.learn(points, max_rows=most, overlap=overlap, rng=np.random.default_rng(0))


def table(partition, points):
    """Weights of all leaves, (n_points, n_leaves)."""
    found = np.zeros((len(points), len(partition.lower) + 1))
    for leaf, (rows, weights) in enumerate(partition.leaves(points)):
        found[rows, leaf] = weights
    return found


@pytest.fixture
def partition():
    return learn(make_points())


@pytest.mark.parametrize(("n", "overlap"), [(41, 0.1), (700, 0.03)])
def test_leaves_have_few_rows_and_all_rows_a_leaf(n, overlap):
    points = make_points(n)
    sizes = []
    seen = np.zeros(n)
    for rows, weights in learn(points, overlap=overlap).leaves(points):
        assert (weights > 0).all()
        assert (np.diff(rows) > 0).all()
        seen[rows] += weights
        sizes.append(len(rows))
    # Quantiles of ever fewer points: a leaf may have one row or two more.
    assert max(sizes) <= 40 * 1.1
    assert min(sizes) > 0
    np.testing.assert_allclose(seen, 1, rtol=1e-12)


def test_weights_are_continuous_across_borders(partition):
    rng = np.random.default_rng(3)
    for _ in range(2):
        start, end = 6 * rng.normal(size=(2, 3))
        path = start + np.linspace(0, 1, 20_001)[:, None] * (end - start)
        weights = table(partition, path)
        assert np.ptp(weights, axis=0).max() > 0.5
        assert np.abs(np.diff(weights, axis=0)).max() < 0.01


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda rng: np.full((100, 2), 0.3), id="one place"),
        pytest.param(lambda rng: rng.uniform(size=(100, 1)) < 0.9, id="mostly 1"),
        pytest.param(lambda rng: np.ones((1, 2)), id="one row"),
        pytest.param(lambda rng: np.repeat(make_points(5, 2), 20, axis=0), id="five places"),
    ],
)
def test_rows_at_one_place_stay_together(make):
    rng = np.random.default_rng(0)
    points = np.asarray(make(rng), dtype=np.float32)
    partition = learn(points)
    weights = table(partition, points)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-9)
    _, place = np.unique(points, axis=0, return_inverse=True)
    for own in np.unique(place):
        assert np.ptp(weights[place.ravel() == own], axis=0).max() < 1e-5
    elsewhere = (points + rng.normal(size=points.shape)).astype(np.float32)
    queries = table(partition, elsewhere)
    np.testing.assert_allclose(queries.sum(axis=1), 1, rtol=1e-9)
    # Where no row is nobody can answer.
    assert not (queries > 0).any(axis=0)[~(weights > 0).any(axis=0)].any()
    for leaf in range(weights.shape[1]):
        assert np.isfinite(partition.weight_slopes(leaf, elsewhere)).all()
