"""Nadaraya-Watson classification as a user meets it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import linear_kernel

from sklearn_attention import NadarayaWatsonClassifier, NadarayaWatsonRegressor


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_probabilities_are_averages_of_indicators(iris, kernel):
    X, y = iris
    proba = NadarayaWatsonClassifier(kernel, bandwidth=0.7).fit(X, y).predict_proba(X)
    indicators = (y[:, None] == np.unique(y)).astype(float)
    expected = NadarayaWatsonRegressor(kernel, bandwidth=0.7).fit(X, indicators).predict(X)
    np.testing.assert_allclose(proba, expected, atol=1e-12)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-14)


def test_criterion_is_the_brier_score(iris):
    X, y = iris
    X, y = X[::6], y[::6]
    model = NadarayaWatsonClassifier(bandwidth="loo").fit(X, y)
    total = 0.0
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        fixed = NadarayaWatsonClassifier(bandwidth=model.bandwidth_).fit(X[others], y[others])
        total += ((fixed.predict_proba(X[[i]])[0] - (y[i] == fixed.classes_)) ** 2).mean()
    assert model.criterion_value_ == pytest.approx(total / len(X), rel=1e-9)


def test_labels_of_any_kind(iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(pd.DataFrame(X), pd.Series(names))
    assert set(model.predict(X)) == {"setosa", "versicolor", "virginica"}
    assert model.explain(X[:2], k=4).values.tolist() == [["setosa"] * 4] * 2
    single = NadarayaWatsonClassifier(bandwidth=0.5).fit(X[:50], names[:50])
    np.testing.assert_array_equal(single.predict_proba(X[:3]), np.ones((3, 1)))


def test_several_outputs(iris):
    X, y = iris
    both = np.column_stack([y, y == 1])
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, both)
    probabilities = model.predict_proba(X)
    assert [p.shape for p in probabilities] == [(150, 3), (150, 2)]
    for column in range(2):
        single = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, both[:, column])
        np.testing.assert_allclose(probabilities[column], single.predict_proba(X), atol=1e-12)
        np.testing.assert_array_equal(model.predict(X)[:, column], single.predict(X))
    assert model.explain(X[:3], k=2).values.shape == (3, 2, 2)
    grown = NadarayaWatsonClassifier(bandwidth=0.5)
    grown.partial_fit(X[:50], both[:50], classes=[[0, 1, 2], [0, 1]])
    grown.partial_fit(X[50:], both[50:])
    np.testing.assert_array_equal(grown.predict(X), model.predict(X))


def test_partial_fit_refuses_classes_it_was_not_told(iris):
    X, y = iris
    model = NadarayaWatsonClassifier(bandwidth=0.5).partial_fit(X[:60], y[:60])
    for more, options, message in (
        (y[60:120], {}, "that the first call of partial_fit did not have: name all"),
        (y[:60], {"classes": [0, 1, 2]}, "classes=.* differ from those of the first call"),
        (np.column_stack([y, y])[:60], {}, "y has 2 outputs, but the first call"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X[:60], more, **options)
    assert len(model.keys_) == 60


def test_signed_kernels_are_refused(iris):
    model = NadarayaWatsonClassifier("silverman", bandwidth=1.0)
    with pytest.raises(ValueError, match="kernel='silverman' takes negative values"):
        model.fit(*iris)
    assert not hasattr(model, "classes_")
    # Of a function it shows only in answers.
    X = iris[0] - iris[0].mean(axis=0) + 0.5
    model = NadarayaWatsonClassifier(linear_kernel, bandwidth=1.0).fit(X, iris[1])
    with pytest.raises(ValueError, match="takes negative values, but a probability needs"):
        model.predict_proba(X)


def test_empty_neighbourhoods(iris):
    X, y = iris
    far = np.full((1, 4), 1e3)
    nearest = y[((X - far) ** 2).sum(axis=1).argmin()]
    models = {
        empty: NadarayaWatsonClassifier("boxcar", bandwidth=1.0, empty=empty).fit(X, y)
        for empty in ("nearest", "nan")
    }
    assert models["nearest"].predict(far)[0] == nearest
    assert np.isnan(models["nan"].predict_proba(far)).all()
    with pytest.raises(ValueError, match="empty='nan' leaves 1 rows"):
        models["nan"].predict(far)
