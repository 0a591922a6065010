"""The step that predicts within searches and pipelines, and rows as it sees them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import LocalPolynomialRegressor
from sklearn_attention.inspection import BandwidthDisplay, SmoothDisplay
from sklearn_attention.inspection._pipelines import last_step, remembered_rows

X = np.array([[1.0], [3.0], [8.0]])
Y = np.array([0.0, 1.0, 0.0])


def test_an_estimator_is_its_own_last_step():
    model = LinearRegression().fit(X, Y)
    assert last_step(model) == (model, None)
    assert last_step(model, X) == (model, X)


@pytest.mark.parametrize("searched", [False, True])
def test_rows_are_those_that_reach_the_last_step(searched):
    whole = pipeline = make_pipeline(StandardScaler(), LinearRegression())
    if searched:
        grid = {"linearregression__fit_intercept": [False]}
        whole = GridSearchCV(pipeline, grid, scoring="neg_mean_absolute_error", cv=3)
    whole.fit(X, Y)
    model, rows = last_step(whole, X)
    assert model is (whole.best_estimator_ if searched else pipeline)[-1]
    np.testing.assert_allclose(rows, (X - 4) / np.std(X))
    np.testing.assert_allclose(model.predict(rows), whole.predict(X))
    assert last_step(whole)[1] is None


@pytest.mark.parametrize("estimator", [LinearRegression(), make_pipeline(LinearRegression())])
def test_what_is_not_fitted_is_refused(estimator):
    with pytest.raises(NotFittedError):
        last_step(clone(estimator), X)


@pytest.mark.slow
def test_searches_and_pipelines_are_opened(curve):
    model = make_pipeline(StandardScaler(), LocalPolynomialRegressor())
    grid = {"localpolynomialregressor__degree": [0, 1]}
    search = GridSearchCV(model, grid, cv=2).fit(*curve)
    found = search.best_estimator_[-1]
    assert BandwidthDisplay.from_estimator(search).bandwidth.tolist() == [*found.bandwidth_]
    display = SmoothDisplay.from_estimator(search, *curve)
    np.testing.assert_allclose(display.curve, search.predict(display.grid[:, None]))


def test_remembered_rows_have_the_form_that_was_fitted(curve, smoother, table, averages):
    rows, targets = remembered_rows(smoother)
    np.testing.assert_array_equal(rows, curve[0])
    np.testing.assert_array_equal(targets, curve[1])
    rows, targets = remembered_rows(averages)
    assert rows.columns.tolist() == ["size", "age", "noise"]
    np.testing.assert_array_equal(rows, table[0])
    search = GridSearchCV(LocalPolynomialRegressor(bandwidth=0.1), {"degree": [0]}, cv=2)
    np.testing.assert_array_equal(remembered_rows(search.fit(*curve))[0], curve[0])


@pytest.mark.parametrize("kind", [LinearRegression, 5])
def test_what_is_no_estimator(kind):
    with pytest.raises(TypeError, match=r"estimator.* pass a fitted"):
        last_step(kind)
