"""One number with few distinct values, such as doses, is fitted by the additive stage alone."""

import numpy as np
import pytest

from sklearn_attention import LocalPolynomialRegressor


def make_doses(n_places=7, n_rows=10, noise=0.05, seed=0):
    """Rows of a sine at equally spaced places."""
    rng = np.random.default_rng(seed)
    x = np.repeat(np.linspace(0, 1, n_places), n_rows)
    return x[:, None], np.sin(2 * np.pi * x) + noise * rng.normal(size=len(x))


def test_the_curve_between_the_places_is_followed():
    X, y = make_doses()
    queries = np.linspace(0, 1, 101)[:, None]
    predictions = LocalPolynomialRegressor().fit(X, y).predict(queries)
    # The error of local polynomials is 0.12.
    assert np.abs(predictions - np.sin(2 * np.pi * queries[:, 0])).max() < 0.06


def test_predictions_are_those_of_the_additive_stage():
    X, y = make_doses()
    model = LocalPolynomialRegressor().fit(X, y)
    alone = LocalPolynomialRegressor(structure="additive").fit(X, y)
    queries = np.linspace(-0.2, 1.2, 9)[:, None]
    assert model.additive_share_ == 1
    np.testing.assert_allclose(model.predict(queries), alone.predict(queries), rtol=1e-12)
    # Those of the joint smoother are there to be looked at.
    assert len(model.members_) == 4
    assert model.bandwidth_search_ is not None


@pytest.mark.parametrize(
    ("n_places", "n_rows", "share"), [(16, 5, 1), (17, 5, 0), (16, 4, 0), (4, 5, 1)]
)
def test_many_places_or_few_rows_at_each_are_smoothed(n_places, n_rows, share):
    X, y = make_doses(n_places, n_rows, noise=0.3)
    assert LocalPolynomialRegressor().fit(X, y).additive_share_ == share


@pytest.mark.parametrize(
    "parameters", [{"degree": 1}, {"bandwidth": 0.2}, {"gap": 1}, {"structure": "joint"}]
)
def test_parameters_that_the_stage_cannot_follow_are_followed(parameters):
    X, y = make_doses()
    assert LocalPolynomialRegressor(**parameters).fit(X, y).additive_share_ == 0


def test_rows_of_weight_0_and_constant_columns_count_as_no_places():
    X, y = make_doses(n_places=5, n_rows=5)
    spoiled = np.vstack([X, np.linspace(2, 3, 30)[:, None]])
    weights = np.repeat([1.0, 0.0], [len(X), 30])
    model = LocalPolynomialRegressor().fit(
        np.column_stack([spoiled, np.ones(len(spoiled))]),
        np.append(y, np.zeros(30)),
        sample_weight=weights,
    )
    assert model.additive_share_ == 1
    queries = np.array([[0.1], [0.55]])
    expected = LocalPolynomialRegressor().fit(X, y).predict(queries)
    found = model.predict(np.column_stack([queries, np.ones(2)]))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_band_between_the_places_is_narrow_and_holds_the_curve():
    X, y = make_doses(noise=0.3)
    queries = np.linspace(1 / 12, 11 / 12, 6)[:, None]
    lower, upper = LocalPolynomialRegressor().fit(X, y).confidence_band(queries).T
    truth = np.sin(2 * np.pi * queries[:, 0])
    assert np.sum((lower < truth) & (truth < upper)) >= 5
    # That of local polynomials is 1.5 wide.
    assert (upper - lower).mean() < 0.45
