"""Rows in the coordinates of each view, against their formulas."""

import numpy as np
import pytest
from scipy.special import ndtri

from sklearn_attention.kernel_attention._views import VIEWS, column_names, learn_view, look

NAN = np.nan


def make_rows(n=50, seed=0):
    """Two numbers, the second with missing cells, and a category of three levels."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.exponential(size=n), rng.normal(size=n), rng.integers(3, size=n)])
    X[::7, 1] = NAN
    return X


KINDS = ["numeric", "numeric", "unordered"]


def learn(name, X, kinds=None, clip=None):
    return learn_view(name, X, ["numeric"] * X.shape[1] if kinds is None else kinds, clip)


class TestStandard:
    def test_numbers_are_standardised(self):
        X = make_rows()[:, :1]
        view = learn("standard", X)
        queries = np.array([[-3.0], [0.2], [9.0]])
        expected = (queries - X.mean()) / X.std()
        np.testing.assert_allclose(look(view, queries), expected, rtol=1e-12)

    def test_numbers_are_clipped(self):
        X = np.append(np.random.default_rng(0).normal(size=50), 30.0)[:, None]
        found = look(learn("standard", X, clip=2.0), X)
        expected = np.clip((X - X.mean()) / X.std(), -2, 2)
        assert (found == 2).sum() == 1
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert look(learn("standard", X), X).max() > 5

    def test_normal_scores_are_clipped_and_shares_are_not(self):
        X = make_rows()[:, :1]
        free = look(learn("quantile", X), X)
        np.testing.assert_allclose(
            look(learn("quantile", X, clip=0.5), X), np.clip(free, -0.5, 0.5), rtol=1e-12
        )
        free = look(learn("piecewise_linear", X), X)
        np.testing.assert_array_equal(look(learn("piecewise_linear", X, clip=1.0), X), free)

    def test_a_column_that_hardly_varies_stays_within_the_clip(self):
        X = np.zeros((500, 1))
        X[0] = 1.0
        assert look(learn("quantile", X), X).max() > 20
        assert look(learn("quantile", X, clip=6.0), X).max() == 6


class TestQuantile:
    def test_few_values_have_their_normal_scores(self):
        x = np.repeat([1.0, 5.0, 6.0], [2, 5, 3])
        scores = ndtri(np.array([0.1, 0.45, 0.85]))[np.repeat([0, 1, 2], [2, 5, 3])]
        expected = (scores - scores.mean()) / scores.std()
        found = look(learn("quantile", x[:, None]), x[:, None])
        np.testing.assert_allclose(found[:, 0], expected, rtol=1e-12)

    @pytest.mark.parametrize("n", [300, 3000])
    def test_scores_are_monotone_and_about_normal(self, n):
        rng = np.random.default_rng(0)
        X = rng.exponential(size=(n, 1)) ** 3
        view = learn("quantile", X)
        found = look(view, X)[:, 0]
        assert (np.diff(found[np.argsort(X[:, 0])]) >= 0).all()
        # Less than 1 in 150 lies beyond where scores end.
        normal = ndtri((np.arange(n) + 0.5) / n)
        near = np.abs(normal) < 2
        np.testing.assert_allclose(np.sort(found)[near], normal[near], atol=0.05)
        assert found.std() == pytest.approx(1)
        assert len(view["knots"][0]) <= 1000

    def test_whatever_the_scale_of_the_numbers(self):
        X = make_rows()[:, :1]
        np.testing.assert_allclose(
            look(learn("quantile", X), X), look(learn("quantile", X**3), X**3), rtol=1e-12
        )

    def test_queries_beyond_the_data_are_at_its_edge(self):
        X = np.arange(20.0)[:, None]
        view = learn("quantile", X)
        edges = look(view, np.array([[0.0], [19.0]]))
        np.testing.assert_array_equal(look(view, np.array([[-1e9], [1e9]])), edges)


def slow_encoding(x, edges):
    """How far each number reaches into each bin."""
    found = np.empty((len(x), len(edges) - 1))
    for row, number in enumerate(x):
        for b in range(len(edges) - 1):
            reached = (number - edges[b]) / (edges[b + 1] - edges[b])
            found[row, b] = min(max(reached, 0), 1)
    return found


class TestPiecewiseLinear:
    def test_equals_its_formula(self):
        X = make_rows(200)[:, :1]
        view = learn("piecewise_linear", X)
        queries = np.linspace(-1, 1.2 * X.max(), 40)
        expected = slow_encoding(queries, view["knots"][0])
        np.testing.assert_allclose(look(view, queries[:, None]), expected, atol=1e-12)

    def test_edges_are_quantiles(self):
        X = make_rows(200)[:, :1]
        (edges,) = learn("piecewise_linear", X)["knots"]
        expected = np.quantile(X, np.linspace(0, 1, len(edges)))
        assert 12 <= len(edges) - 1 <= 48
        np.testing.assert_allclose(edges, expected, rtol=1e-12)

    def test_more_rows_have_more_bins(self):
        bins = [
            len(
                learn("piecewise_linear", np.random.default_rng(0).normal(size=(n, 1)))[
                    "knots"
                ][0]
            )
            for n in (100, 2000, 20_000, 100_000)
        ]
        assert bins == sorted(bins)
        assert (bins[0], bins[-1]) == (13, 49)

    def test_where_values_are_few_each_is_an_edge(self):
        X = np.array([3.0, 1.0, 1.0, 7.0, 3.0, 3.0])[:, None]
        view = learn("piecewise_linear", X)
        np.testing.assert_array_equal(view["knots"][0], [1, 3, 7])
        np.testing.assert_allclose(
            look(view, np.array([[1.0], [2.0], [3.0], [6.0], [9.0]])),
            [[0, 0], [0.5, 0], [1, 0], [1, 0.75], [1, 1]],
        )

    def test_quantiles_that_coincide_are_one_edge(self):
        X = np.append(np.zeros(500), np.random.default_rng(0).uniform(size=500))[:, None]
        (edges,) = learn("piecewise_linear", X)["knots"]
        assert (np.diff(edges) > 0).all()
        assert np.isfinite(look(learn("piecewise_linear", X), X)).all()


@pytest.mark.parametrize("name", VIEWS)
class TestEveryView:
    def test_missing_cells_lie_at_the_mean(self, name):
        X = make_rows()[:, 1:2]
        found = look(learn(name, X), X)
        numbers, missing = found[:, :-1], found[:, -1]
        empty = np.isnan(X[:, 0])
        np.testing.assert_array_equal(missing, empty)
        expected = numbers[~empty].mean(axis=0)
        np.testing.assert_allclose(
            numbers[empty], np.broadcast_to(expected, numbers[empty].shape), atol=1e-12
        )

    def test_only_missing_cells_in_training_have_a_column(self, name):
        X = make_rows()[:, [1]]
        full = X[~np.isnan(X[:, 0])]
        assert look(learn(name, X), X).shape[1] == look(learn(name, full), X).shape[1] + 1
        # Queries with a cell that was never missing are there, where the average row is.
        found = look(learn(name, full), np.array([[NAN]]))
        np.testing.assert_allclose(
            found[0], look(learn(name, full), full).mean(axis=0), atol=1e-9
        )

    def test_categories_have_a_column_for_each_level_that_occurs(self, name):
        X = np.array([0.0, 2.0, 2.0, 5.0, 0.0])[:, None]
        view = learn(name, X, ["unordered"])
        np.testing.assert_array_equal(
            look(view, np.array([[0.0], [2.0], [5.0], [3.0], [-1.0]])),
            [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]],
        )
        assert column_names(view, ["c"]) == [f"{name}__c_level{k}" for k in (0, 2, 5)]

    def test_ordered_categories_are_numbers(self, name):
        codes = np.random.default_rng(0).integers(4, size=(60, 1)).astype(float)
        np.testing.assert_array_equal(
            look(learn(name, codes, ["ordered"]), codes), look(learn(name, codes), codes)
        )

    def test_constant_and_empty_columns_have_none(self, name):
        X = make_rows()[:, [0, 0, 0, 0]]
        X[:, 1], X[:, 2], X[:, 3] = 3.3, NAN, 1.0
        view = learn(name, X, ["numeric"] * 3 + ["unordered"])
        assert set(view["feature"]) == {0}
        alone = look(learn(name, X[:, :1]), X[:, :1])
        np.testing.assert_array_equal(look(view, X), alone)
        # Queries may have what they like there.
        X[:, 1:] = np.random.default_rng(0).normal(size=(len(X), 3))
        np.testing.assert_array_equal(look(view, X), alone)

    def test_a_constant_with_missing_cells_says_which(self, name):
        X = np.array([[2.0], [NAN], [2.0]])
        np.testing.assert_array_equal(look(learn(name, X), X), [[0], [1], [0]])

    def test_no_columns_at_all(self, name):
        view = learn(name, np.ones((5, 2)))
        assert look(view, np.zeros((3, 2))).shape == (3, 0)
        assert column_names(view, ["a", "b"]) == []

    def test_columns_have_names_and_features(self, name):
        X = make_rows()
        view = learn(name, X, KINDS)
        found = look(view, X)
        names = column_names(view, ["a", "b", "c"])
        assert len(names) == len(set(names)) == found.shape[1] == len(view["feature"])
        for column, feature in zip(names, view["feature"], strict=True):
            assert column.startswith(f"{name}__{'abc'[feature]}")
        assert names[-1] == f"{name}__b_missing"
        # A column moves with its feature alone.
        rng = np.random.default_rng(1)
        for feature in range(3):
            moved = X.copy()
            moved[:, feature] = rng.permutation(X[:, feature])
            changed = (look(view, moved) != found).any(axis=0)
            np.testing.assert_array_equal(changed, view["feature"] == feature)

    def test_coordinates_in_single_precision(self, name):
        X = make_rows()
        view = learn(name, X, KINDS)
        single = look(view, X, np.float32)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, look(view, X), atol=1e-6)

    def test_a_row_is_looked_at_alone(self, name):
        X = make_rows()
        view = learn(name, X, KINDS)
        np.testing.assert_array_equal(look(view, X[[5]])[0], look(view, X)[5])
