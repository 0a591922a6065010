"""Fitted estimators that displays draw, and a matplotlib that is left as it was."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

from sklearn_attention import (
    ConditionalKernelDensity,
    KernelAttentionRegressor,
    KernelForecaster,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
    TransformerClassifier,
    TransformerForecaster,
)
from sklearn_attention.datasets import make_periodic_series, make_smoothing_curve


@pytest.fixture(autouse=True)
def matplotlib_is_left_alone():
    """Every test: the global parameters are the same after it, and figures are closed."""
    import matplotlib.pyplot as plt

    plt.close("all")  # those of doctests
    before = dict(matplotlib.rcParams)
    yield
    plt.close("all")
    assert dict(matplotlib.rcParams) == before


@pytest.fixture(scope="session")
def curve():
    return make_smoothing_curve("heavisine", 120, signal_to_noise=3, random_state=0)


@pytest.fixture(scope="session")
def smoother(curve):
    return LocalPolynomialRegressor().fit(*curve)


@pytest.fixture(scope="session")
def table():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(80, 3)), columns=["size", "age", "noise"])
    y = pd.Series(
        np.sin(X["size"]) + 0.5 * X["age"] + 0.1 * random.normal(size=80), name="price"
    )
    return X, y


@pytest.fixture(scope="session")
def averages(table):
    return NadarayaWatsonRegressor().fit(*table)


@pytest.fixture(scope="session")
def kernel_attention(table):
    return KernelAttentionRegressor(max_steps=5).fit(*table)


@pytest.fixture(scope="session")
def series():
    months = pd.date_range("2000-01", periods=240, freq="MS")
    noise = 0.2 * np.random.default_rng(0).normal(size=240)
    return pd.Series(make_periodic_series("sine", 240) + noise, months, name="height")


@pytest.fixture(scope="session")
def analogs(series):
    return KernelForecaster(12, lookback=24).fit(series[:-12])


@pytest.fixture(scope="session")
def candidates(series):
    return TransformerForecaster(12, candidates=["ridge"]).fit(series[:-12])


@pytest.fixture(scope="session")
def density(table):
    return ProductKernelDensity().fit(table[0][["size", "age"]])


@pytest.fixture(scope="session")
def conditional(curve):
    return ConditionalKernelDensity().fit(*curve)


@pytest.fixture(scope="session")
def encoder():
    texts = ["good", "not bad", "very good", "bad", "not good", "very bad"] * 10
    liked = ["yes", "yes", "yes", "no", "no", "no"] * 10
    model = TransformerClassifier(d_model=8, n_heads=2, max_epochs=2, baseline=False)
    return model.fit(texts, liked)
