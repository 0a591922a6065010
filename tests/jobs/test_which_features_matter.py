"""An analyst asks which of the measurements of a plant matter for its growth."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import LocalPolynomialRegressor, NadarayaWatsonRegressor

pytestmark = pytest.mark.filterwarnings("ignore:bandwidth='penalized-loo'")


def plants(seed, n=60):
    """Growth depends on light alone; the index of plants is their name."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"light": rng.uniform(size=n), "row": rng.uniform(size=n)},
        index=[f"plant {k}" for k in range(n)],
    )
    return X, np.sin(5 * X["light"]) + 0.4 * rng.normal(size=n)


@pytest.mark.slow
def test_light_matters_and_the_place_in_the_row_does_not():
    X, growth = plants(0)
    model = LocalPolynomialRegressor(degree=1).fit(X, growth)
    light, row = model.feature_significance(n_resamples=59).p_values
    assert light <= 0.05 < row
    summary = str(NadarayaWatsonRegressor().fit(X[["light"]], growth).summary(True))
    assert "light" in summary


@pytest.mark.slow
def test_a_strong_effect_matters_although_its_bandwidth_is_narrow():
    """Rents rise and fall with the area, in each district; the year changes nothing."""
    rng = np.random.default_rng(0)
    n, factors = 120, {"harbour": 1.2, "station": 0.8}
    flats = pd.DataFrame({
        "area": rng.uniform(25, 125, n).round(), "year": rng.integers(2010, 2026, n),
        "district": rng.choice(list(factors), n),
    })  # fmt: skip
    rent = (300 + 9 * flats["area"] + 160 * np.sin(flats["area"] / 12)) * flats["district"].map(
        factors
    )
    model = NadarayaWatsonRegressor().fit(flats, rent + 40 * rng.normal(size=n))
    area, year, district = model.feature_significance(n_resamples=29).p_values
    assert max(area, district) <= 0.05 < year


@pytest.mark.slow
def test_noise_matters_as_rarely_as_the_level_says():
    """At the level 0.1 in about one of ten plants' leaves that are counted by chance."""
    found = []
    for seed in range(40):
        X, _ = plants(seed, 40)
        chance = np.random.default_rng([seed, 1]).normal(size=40)
        model = NadarayaWatsonRegressor().fit(X[["row"]], chance)
        found.append(model.feature_significance(n_resamples=29).p_values[0] <= 0.1)
    assert np.mean(found) < 0.25


def test_the_answer_is_the_same_when_it_is_asked_again():
    X, growth = plants(1, 30)
    model = NadarayaWatsonRegressor().fit(X[["light"]], growth)
    before = model.feature_significance(n_resamples=9)
    predictions = model.predict(X[["light"]])
    model.set_params(bandwidth=5.0, kernel="tricube")
    after = model.feature_significance(n_resamples=9)
    np.testing.assert_array_equal(before.p_values, after.p_values)
    np.testing.assert_array_equal(predictions, model.predict(X[["light"]]))
