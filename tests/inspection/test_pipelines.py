"""Estimators within searches and pipelines, and errors that name what was called."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import (
    KernelForecaster,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.inspection import (
    BacktestDisplay,
    DensityDisplay,
    ExplanationDisplay,
    ForecastDisplay,
    KernelDisplay,
    SmoothDisplay,
)
from sklearn_attention.inspection._pipelines import last_step, remembered_rows

X = np.array([[1.0], [3.0], [8.0]])
Y = np.array([0.0, 1.0, 0.0])


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


def test_remembered_rows_have_the_form_that_was_fitted(curve, smoother, table, averages):
    rows, targets = remembered_rows(smoother)
    np.testing.assert_array_equal(rows, curve[0])
    np.testing.assert_array_equal(targets, curve[1])
    rows, targets = remembered_rows(averages)
    assert rows.columns.tolist() == ["size", "age", "noise"]
    np.testing.assert_array_equal(rows, table[0])
    search = GridSearchCV(LocalPolynomialRegressor(bandwidth=0.1), {"degree": [0]}, cv=2)
    np.testing.assert_array_equal(remembered_rows(search.fit(*curve))[0], curve[0])


ROWS = [[0.5, 1.0]]
ESTIMATORS = [
    (SmoothDisplay, ["a"], "estimator is of type str: pass a fitted"),
    (ForecastDisplay, [KernelForecaster], "estimator=KernelForecaster is a class: pass a fit"),
    (BacktestDisplay, [KernelForecaster, [1.0]], "KernelForecaster, .* no backtest: pass"),
    (SmoothDisplay, [NadarayaWatsonRegressor()], "This NadarayaWatson.* not fitted yet"),
    (SmoothDisplay, ["analogs"], "KernelForecaster, which is not a regressor .*: pass one"),
    (
        KernelDisplay,
        ["analogs"],
        "KernelForecaster, .* not have exactly one kernel with a bandwidth: p",
    ),
    (ExplanationDisplay, ["averages"], "X=None: pass the row that is explained"),
    (SmoothDisplay, ["smoother", ROWS, [0.0]], "X has 2 features, but Local.* is expecting 1"),
    (DensityDisplay, ["density", [[0.5, 1.0, 2.0]]], "X has 3 features, but .* is expecting 2"),
]


@pytest.mark.parametrize(("display", "arguments", "message"), ESTIMATORS)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_errors_name_parameter_and_remedy(display, arguments, message, request):
    first, *others = arguments
    if isinstance(first, str) and first != "a":
        first = request.getfixturevalue(first)
    with pytest.raises((TypeError, ValueError), match=rf"^(estimator is )?{message}"):
        display.from_estimator(first, *others)


def test_an_ax_that_is_none_is_refused():
    message = r"^ax=<Figure .* is not an Axes of matplotlib: pass one"
    with pytest.raises(ValueError, match=message):
        KernelDisplay.from_kernels(["gaussian"], ax=plt.figure())
