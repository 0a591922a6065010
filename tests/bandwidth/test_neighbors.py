"""Bandwidths that reach to a neighbour, against brute force."""

import numpy as np
import pytest
from slow_local import slow_local

from sklearn_attention import AdaptiveBandwidth, Columns
from sklearn_attention._column_stats import feature_std
from sklearn_attention.bandwidth._neighbors import NeighborSearch, neighbor_distances
from sklearn_attention.bandwidth._search import Rows
from sklearn_attention.kernels import Boxcar, Epanechnikov, Gaussian
from sklearn_attention.kernels._product_kernel import mixed_kernel


def select_neighbors(X, values, kernel, *, columns=None, observe=None, **options):
    """Number of neighbours and the leave-one-out error there."""
    rows = Rows(X=X, values=values, columns=columns or Columns.numbers(X.shape[1]), **options)
    watch = observe and (lambda value, _, n_neighbors_: observe(value, n_neighbors_))
    found = NeighborSearch().choose(rows, kernel, watch)
    return found.n_neighbors, found.value


def brute_force(X, values, kernel, k, weight, columns=None, degree=0):
    """Leave-one-out error with bandwidths to the k-th of the others."""
    Z = X / feature_std(X, weight)
    columns = slice(None) if columns is None else columns
    total = 0.0
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        distance = np.linalg.norm(Z[others][:, columns] - Z[i, columns], axis=1)
        h = np.sort(distance)[k - 1] * (1 + 1e-10)
        # At no distance, the rows at the same place and no others.
        h = max(h, 1e-6 * np.linalg.norm(np.ptp(Z[:, columns], axis=0)))
        scaled = X.copy()
        scaled[:, columns] = Z[:, columns] / h
        w = kernel(scaled[[i]], scaled[others])[0] * weight[others]
        scale = np.ones(X.shape[1])
        fit, _ = slow_local(Z[i], Z[others], values[others], w, degree, scale)
        total += weight[i] * ((values[i] - fit) ** 2).mean()
    return total / weight.sum()


def make_data(n=28, d=1):
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(n, d)) * [1.0, 50.0][:d]
    return X, np.sin(4 * X[:, :1]) + 0.2 * rng.normal(size=(n, 1))


@pytest.mark.parametrize(
    ("kernel", "d", "weighted"),
    [(Gaussian(), 1, True), (Boxcar(), 2, True), (Epanechnikov(), 2, False)],
    ids=repr,
)
def test_equals_brute_force(kernel, d, weighted):
    X, values = make_data(d=d)
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, 28) * rng.uniform(0.5, 1, 28) if weighted else np.ones(28)
    k, value = select_neighbors(X, values, kernel, sample_weight=weight if weighted else None)
    kept = weight > 0
    curve = [
        brute_force(X[kept], values[kept], kernel, j, weight[kept])
        for j in range(1, kept.sum() // 2 + 1)
    ]
    assert k == 1 + np.argmin(curve)
    assert value == pytest.approx(min(curve), rel=1e-8)


def test_ties_and_copies():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (30, 1)).astype(float)
    values = X**2 + rng.normal(size=(30, 1))
    for kernel in (Boxcar(), Gaussian()):
        seen = {}

        def observe(value, k, seen=seen):
            seen[k] = value
            return False

        k, value = select_neighbors(X, values, kernel, observe=observe)
        for j, found in list(seen.items())[::3]:
            expected = brute_force(X, values, kernel, j, np.ones(30))
            assert found == pytest.approx(expected, rel=1e-8)
        assert value == min(seen.values()) == seen[k]


def test_distances_in_some_columns():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 1, 24), rng.integers(0, 3, 24)])
    values = np.sin(5 * X[:, :1]) + X[:, 1:] + 0.1 * rng.normal(size=(24, 1))
    columns = Columns(("numeric", "unordered"), (None, range(3)))
    kernel = mixed_kernel(Gaussian(), columns, [0, 2 / 3 * 24 ** (-2 / 5)])
    k, value = select_neighbors(X, values, Gaussian(), columns=columns)
    curve = [brute_force(X, values, kernel, j, np.ones(24), [0]) for j in range(1, 13)]
    assert k == 1 + np.argmin(curve)
    assert value == pytest.approx(min(curve), rel=1e-8)


def test_the_neighbour_itself_is_not_shut_out():
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(500, 3)) + 1e3
    distances = neighbor_distances(keys, keys, 6)
    exact = np.linalg.norm(keys[:, None] - keys, axis=2)
    inside = (exact <= distances[:, 5:]).sum(axis=1)
    np.testing.assert_array_equal(inside, 6)


def test_the_search_may_be_ended_and_needs_three_rows():
    X, values = make_data()
    seen = []
    select_neighbors(
        X, values, Gaussian(), observe=lambda value, k: seen.append(k) or len(seen) == 3
    )
    assert seen == [1, 2, 3]
    with pytest.raises(ValueError, match="three rows of positive weight, got n_samples=2"):
        select_neighbors(X[:2], values[:2], Boxcar())


def chosen(n_neighbors, n_rows=10):
    rows = Rows(X=np.arange(n_rows)[:, None], values=0, columns=Columns.numbers(1))
    return AdaptiveBandwidth(n_neighbors).choose(rows, Gaussian()).n_neighbors


def test_numbers_of_neighbours_are_checked():
    assert chosen(np.int64(10)) == 10
    with pytest.raises(ValueError, match="n_neighbors=11 is more than the 10 training rows"):
        chosen(11)
    for wrong in (0, 2.5, "3", True):
        with pytest.raises(ValueError, match=r"n_neighbors=.* is not valid: pass an integer"):
            chosen(wrong)
