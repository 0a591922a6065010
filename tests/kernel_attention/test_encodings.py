"""Rows in the coordinates of each encoding, against their formulas."""

import numpy as np
import pytest
from scipy.special import ndtri

from sklearn_attention import _blocks
from sklearn_attention.kernel_attention import _encodings
from sklearn_attention.kernel_attention._encodings import (
    ENCODINGS,
    Encoding,
    rare_levels_matter,
)

NAN = np.nan


def make_rows(n=50, seed=0):
    """Two numbers, the second with missing cells, and a category of three levels."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.exponential(size=n), rng.normal(size=n), rng.integers(3, size=n)])
    X[::7, 1] = NAN
    return X


KINDS = ["numeric", "numeric", "unordered"]


def learn(name, X, kinds=None, **options):
    kinds = ["numeric"] * X.shape[1] if kinds is None else kinds
    return Encoding.learn(name, X, kinds, **options)


def test_numbers_are_standardised():
    X = make_rows()[:, :1]
    encoding = learn("standard", X)
    queries = np.array([[-3.0], [0.2], [9.0]])
    expected = (queries - X.mean()) / X.std()
    np.testing.assert_allclose(encoding.encode(queries), expected, rtol=1e-12)


def test_rare_values_are_not_many_units_away():
    X = np.zeros((500, 1))
    X[3] = 2.0
    encoding = learn("standard", X)
    found = encoding.encode(np.array([[2.0], [4.0], [2e3]]))[:, 0]
    np.testing.assert_allclose(found[0], 6)
    # What lies beyond goes on in the same units.
    slope = encoding.derivative(X[:1])[0, 0]
    np.testing.assert_allclose(np.diff(found), [2 * slope, 1996 * slope])


def test_few_values_have_their_normal_scores():
    x = np.repeat([1.0, 5.0, 6.0], [2, 5, 3])
    scores = ndtri(np.array([0.1, 0.45, 0.85]))[np.repeat([0, 1, 2], [2, 5, 3])]
    expected = (scores - scores.mean()) / scores.std()
    found = learn("quantile", x[:, None]).encode(x[:, None])
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-12)


def test_scores_are_monotone_and_about_normal():
    rng, n = np.random.default_rng(0), 3000
    X = rng.exponential(size=(n, 1)) ** 3
    encoding = learn("quantile", X)
    found = encoding.encode(X)[:, 0]
    assert (np.diff(found[np.argsort(X[:, 0])]) >= 0).all()
    # Less than 1 in 150 lies beyond where scores end.
    normal = ndtri((np.arange(n) + 0.5) / n)
    near = np.abs(normal) < 2
    np.testing.assert_allclose(np.sort(found)[near], normal[near], atol=0.05)
    beyond = encoding.encode(np.array([[-1e9], [1e9]]))[:, 0]
    np.testing.assert_array_equal(beyond, [found.min(), found.max()])


def slow_bins(x, edges):
    """How far each number reaches into each bin."""
    found = np.empty((len(x), len(edges) - 1))
    for row, number in enumerate(x):
        for b in range(len(edges) - 1):
            reached = (number - edges[b]) / (edges[b + 1] - edges[b])
            found[row, b] = min(max(reached, 0), 1)
    return found


def test_piecewise_linear_equals_its_formula():
    X = make_rows(200)[:, :1]
    encoding = learn("piecewise_linear", X)
    queries = np.linspace(-1, 1.2 * X.max(), 40)
    (edges,) = encoding.knots
    np.testing.assert_allclose(edges, np.quantile(X, np.linspace(0, 1, 13)), rtol=1e-12)
    expected = slow_bins(queries, edges) - slow_bins(X[:, 0], edges).mean(axis=0)
    np.testing.assert_allclose(encoding.encode(queries[:, None]), expected, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_edges_that_single_precision_does_not_tell_apart(unit):
    x = unit * np.append([0.0, 0.0], 1.6e9 + np.arange(30))[:, None]
    encoding = learn("piecewise_linear", x)
    (edges,) = encoding.knots
    expected = slow_bins(x[:, 0], edges)
    expected = expected - expected.mean(axis=0)
    np.testing.assert_allclose(encoding.encode(x, np.float32), expected, atol=1e-6)
    np.testing.assert_allclose(encoding.encode(x), expected, atol=1e-12)


def test_where_values_are_few_each_is_an_edge():
    X = np.array([3.0, 1.0, 1.0, 7.0, 3.0, 3.0])[:, None]
    encoding = learn("piecewise_linear", X)
    np.testing.assert_array_equal(encoding.knots[0], [1, 3, 7])
    queries = np.array([[1.0], [2.0], [3.0], [6.0], [9.0]])
    reached = np.array([[0, 0], [0.5, 0], [1, 0], [1, 0.75], [1, 1]])
    np.testing.assert_allclose(encoding.encode(queries), reached - [4 / 6, 1 / 6])
    # At an edge derivatives are those below.
    expected = [[0, 0], [0.5, 0], [0.5, 0], [0, 0.25], [0, 0]]
    np.testing.assert_allclose(encoding.derivative(queries), expected)


@pytest.mark.parametrize("name", ENCODINGS)
class TestEveryEncoding:
    def test_missing_cells_lie_at_the_mean_in_a_column_of_their_own(self, name):
        X = make_rows()[:, 1:2]
        empty = np.isnan(X[:, 0])
        found, full = learn(name, X).encode(X), learn(name, X[~empty])
        np.testing.assert_array_equal(found[:, -1], empty)
        np.testing.assert_allclose(found[~empty, :-1], full.encode(X[~empty]), atol=1e-12)
        np.testing.assert_allclose(found[empty, :-1], 0, atol=1e-12)
        # Queries with a cell that was never missing are there, where the average row is.
        np.testing.assert_allclose(full.encode(np.array([[NAN]])), 0)
        np.testing.assert_allclose(full.encode(X[~empty]).mean(axis=0), 0, atol=1e-9)

    def test_categories_have_a_column_for_each_level_that_occurs(self, name):
        X = np.array([0.0, 2.0, 2.0, 5.0, 0.0])[:, None]
        encoding = learn(name, X, ["unordered"])
        np.testing.assert_array_equal(
            encoding.encode(np.array([[0.0], [2.0], [5.0], [3.0], [-1.0]])),
            [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1]],
        )
        names = ("level0", "level2", "level5", "other_levels")
        assert encoding.column_names(["c"]) == [f"{name}__c_{own}" for own in names]
        # So any two levels, known or new, are as far from each other.
        places = encoding.encode(np.array([[0.0], [2.0], [5.0], [3.0]]))
        distances = ((places[:, None] - places) ** 2).sum(axis=2)
        np.testing.assert_array_equal(distances, 2 * (1 - np.eye(4)))

    def test_rows_are_encoded_independently_in_each_precision(self, name, monkeypatch):
        X = make_rows()
        encoding = learn(name, X, KINDS)
        found = encoding.encode(X)
        np.testing.assert_array_equal(encoding.encode(X[[5]])[0], found[5])
        single = encoding.encode(X, np.float32)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, found, atol=1e-6)
        monkeypatch.setattr(_blocks, "ROWS_AT_ONCE", 7 * len(encoding))
        np.testing.assert_allclose(encoding.encode(X), found, atol=1e-12)

    def test_derivatives_equal_differences(self, name):
        X = make_rows(30)
        encoding = learn(name, X, KINDS)
        queries = np.random.default_rng(1).normal([1, 0, 1], size=(400, 3))
        queries[::9, 1] = NAN
        found = encoding.derivative(queries)
        assert found.shape == (400, len(encoding.feature))
        for feature in range(3):
            step = 1e-6 * (np.arange(3) == feature)
            up, down = encoding.encode(queries + step), encoding.encode(queries - step)
            own = encoding.feature == feature
            # Queries hardly ever lie as near to an edge as this.
            np.testing.assert_allclose(
                found[:, own], (up - down)[:, own] / 2e-6, rtol=1e-5, atol=1e-8
            )
        assert found[:, encoding.feature == 0].any()
        assert not found[:, encoding.feature == 2].any()
        assert not found[::9, encoding.feature == 1].any()


def test_levels_that_occur_once_are_one_in_an_identifier_of_rows():
    codes = np.append(np.arange(89.0), [500.0, 500.0])[:, None]
    encoding = learn("standard", codes, ["unordered"])
    found = encoding.encode(np.array([[0.0], [1.0], [500.0], [-1.0]]))
    np.testing.assert_array_equal(found, [[0, 1], [0, 1], [1, 0], [0, 1]])
    names = ["standard__c_level500", "standard__c_other_levels"]
    assert encoding.column_names(["c"]) == names
    # Without the level that occurs twice there is nothing to compare.
    assert len(learn("standard", codes[:-2], ["unordered"])) == 0


@pytest.mark.parametrize(
    ("n_levels", "n", "n_columns"), [(21, 600, 6), (20, 600, 21), (21, 599, 22)]
)
def test_rare_levels_are_one_if_there_are_many_levels_and_rows(n_levels, n, n_columns):
    # Five levels are frequent, the others have four rows each.
    rare = np.repeat(np.arange(5.0, n_levels), 4)
    codes = np.append(rare, np.arange(n - len(rare)) % 5)[:, None]
    encoding = learn("standard", codes, ["unordered"])
    assert len(encoding) == n_columns
    found = encoding.encode(np.array([[0.0], [5.0], [6.0], [77.0]]))
    one = n_columns == 6
    np.testing.assert_array_equal(found[:, 0], [1, 0, 0, 0])
    assert (found[1] == found[2]).all() == one
    assert found[3].sum() == 1
    frequent = np.bincount(codes[:, 0].astype(int)).max()
    assert encoding.largest_level(0, codes[:, 0]) == frequent


def test_rare_levels_together_may_be_the_largest():
    codes = np.append(np.repeat(np.arange(200.0), 4), np.repeat([500.0, 501.0], 6))
    encoding = learn("standard", codes[:, None], ["unordered"])
    assert len(encoding) == 3
    assert encoding.largest_level(0, codes) == 800


@pytest.mark.parametrize(("n_levels", "widths"), [(64, [66, 66]), (65, [67, 1])])
def test_categories_of_many_levels_stand_in_the_first_encoding(n_levels, widths):
    X = np.random.default_rng(0).normal(size=(140, 2))
    X[:, 1] = np.arange(140) % n_levels
    found = Encoding.learn_all(["standard", "quantile"], X, ["numeric", "unordered"], 12)
    assert [len(encoding) for encoding in found] == widths
    assert list(found[0].high_cardinality_features) == [1] * (n_levels == 65)
    assert len(Encoding.learn_all(["quantile"], X, ["numeric", "unordered"], 12)[0]) > 60


def slow_correlation(codes, y):
    """The intraclass correlation of groups of several codes, by loops."""
    groups = [y[codes == code] for code in np.unique(codes)]
    groups = [own for own in groups if 1 < len(own) < 5]
    n, k = sum(map(len, groups)), len(groups)
    mean = np.concatenate(groups).mean()
    between = sum(len(own) * (own.mean() - mean) ** 2 for own in groups) / (k - 1)
    within = sum(((own - own.mean()) ** 2).sum() for own in groups) / (n - k)
    size = (n - sum(len(own) ** 2 for own in groups) / n) / (k - 1)
    return (between - within) / (between + (size - 1) * within)


def make_levels(effect):
    rng = np.random.default_rng(0)
    codes = np.repeat(
        np.arange(160.0), np.append([80.0] * 5, np.arange(155) % 4 + 1).astype(int)
    )
    y = effect * rng.normal(size=160)[codes.astype(int)] + rng.normal(size=len(codes))
    return codes, y


# Both sides of what decides.
@pytest.mark.parametrize("effect", [0.55, 0.65])
def test_rare_levels_tell_by_the_intraclass_correlation(effect):
    codes, y = make_levels(effect)
    expected = slow_correlation(codes, y) > _encodings._MAX_INTRACLASS_CORRELATION
    for scale in (1.0, 1e-200, 1e200):
        assert rare_levels_matter(codes, scale * y[:, None]) == expected
    assert len(learn("standard", codes[:, None], ["unordered"], targets=y[:, None])) == (
        161 if expected else 6
    )


def test_several_outputs_are_told_in_units_of_their_own():
    codes, y = make_levels(1.5)
    noise = np.random.default_rng(1).normal(size=(len(y), 9))
    assert rare_levels_matter(codes, y[:, None])
    assert rare_levels_matter(codes, np.column_stack([y, y, 1000 * noise[:, 0]]))
    assert not rare_levels_matter(codes, np.column_stack([1000 * y, noise]))


def test_levels_of_one_row_tell_nothing():
    assert not rare_levels_matter(
        np.arange(50.0), np.random.default_rng(0).normal(size=(50, 1))
    )
    assert not rare_levels_matter(np.repeat(np.arange(30.0), 2), np.ones((60, 1)))
