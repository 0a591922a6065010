"""What all smoothers share: which rows explain a prediction, weights and algorithm."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from sklearn_attention import LocalPolynomialRegressor, NadarayaWatsonRegressor


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)


@pytest.mark.parametrize("kernel", ["gaussian", "silverman"])
def test_explain_names_the_heaviest_rows(data, kernel):
    X, y = data
    model = NadarayaWatsonRegressor(kernel, bandwidth=1.0).fit(X, y)
    everything = model.explain(X[:7], k=1000)
    assert everything.indices.shape == (7, len(X))
    np.testing.assert_allclose(everything.weights.sum(axis=1), 1, rtol=1e-9)
    carried = (everything.weights * everything.values).sum(axis=1)
    np.testing.assert_allclose(carried, model.predict(X[:7]), rtol=1e-9)
    assert (np.diff(abs(everything.weights), axis=1) <= 0).all()
    few = model.explain(X[:7], k=3)
    np.testing.assert_array_equal(few.weights, everything.weights[:, :3])
    np.testing.assert_array_equal(few.indices[:, 0], np.arange(7))
    np.testing.assert_array_equal(few.values, y[few.indices])


def test_explain_refuses_nonsense(data):
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(*data)
    with pytest.raises(ValueError, match="k=0 is not valid"):
        model.explain(data[0], k=0)
    with pytest.raises(NotFittedError):
        NadarayaWatsonRegressor().explain(data[0])


def test_the_algorithm_is_told():
    X = np.random.default_rng(0).normal(size=(3000, 3))
    y = X[:, 0]
    for options, columns, expected in (
        ({"bandwidth": 0.1}, 1, "linear"), ({"bandwidth": 0.1}, 2, "linear"),
        ({"bandwidth": 0.01}, 3, "near"), ({"bandwidth": 1.0}, 3, "dense"),
        ({"bandwidth": 0.1, "algorithm": "dense"}, 1, "dense"),
        ({"bandwidth": 1.0, "kernel": "periodic"}, 1, "dense"),
    ):  # fmt: skip
        rows = X[:, :columns]
        assert NadarayaWatsonRegressor(**options).fit(rows, y).algorithm_ == expected
    model = LocalPolynomialRegressor(degree=2, bandwidth=1.0).fit(X[:, :2], y)
    assert model.algorithm_ == "dense"
    assert model.set_params(degree=1).fit(X[:, :2], y).algorithm_ == "linear"
