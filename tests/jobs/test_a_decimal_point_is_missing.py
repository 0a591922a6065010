"""One of the heights in a table lacks its decimal point: 1.78 became 178000."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import (
    ConditionalKernelDensity,
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonCV,
    NadarayaWatsonRegressor,
)


def people(n=100):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"height": rng.normal(1.7, 0.1, n), "age": rng.uniform(20, 70, n)})
    weight = 22 * X["height"] ** 2 + 6 * np.sin(X["age"] / 6) + 2 * rng.normal(size=n)
    return X, weight


@pytest.mark.parametrize(
    "model",
    [
        NadarayaWatsonRegressor(),
        NadarayaWatsonCV(["gaussian"]),
        LocalPolynomialRegressor(degree=1),
        pytest.param(NadarayaWatsonRegressor(robust=True), marks=pytest.mark.slow),
        pytest.param(LocalPolynomialRegressor(), marks=pytest.mark.slow),
        pytest.param(LocalPolynomialCV(["gaussian"]), marks=pytest.mark.slow),
        pytest.param(ConditionalKernelDensity(), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_other_people_are_predicted_as_before(model):
    X, weight = people()
    errors = []
    for height in (1.78, 178_000.0):
        X.loc[3, "height"] = height
        predicted = model.fit(X, weight).predict(X.drop(3))
        errors.append(np.std(predicted - weight.drop(3)))
    assert errors[1] < 1.1 * errors[0]
    assert errors[1] < np.std(weight) / 2


def test_the_search_tries_about_as_many_bandwidths():
    X, weight = people()
    tried = []
    for height in (1.78, 1e15):
        X.loc[3, "height"] = height
        model = LocalPolynomialRegressor(degree=1, per_feature=False).fit(X, weight)
        tried.append(len(model.bandwidth_search_["bandwidth"]))
    assert tried[1] < 1.5 * tried[0]
