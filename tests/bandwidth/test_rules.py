"""Rules of thumb against their formulas, and what every rule refuses."""

import math

import numpy as np
import pytest

from sklearn_attention import (
    AdaptiveBandwidth,
    Columns,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
)
from sklearn_attention._spread import feature_spread
from sklearn_attention.bandwidth import rule_bandwidth
from sklearn_attention.bandwidth._rules import DENSITY_RULES, SMOOTHER_RULES
from sklearn_attention.kernels import Epanechnikov, Gaussian, Matern32, Silverman, Tricube


class TestNumbers:
    X = np.array([[0.0, 5.0, 3.0], [2.0, 5.0, -1.0], [4.0, 5.0, 0.0], [0.0, 5.0, 7.0]])

    def test_formula(self):
        # Two features vary.
        spread = [math.sqrt(2.75), 1.0, math.sqrt(59 / 4 - (9 / 4) ** 2)]
        expected = 4 ** (-1 / 6) * np.array(spread)
        for rule in ("scott", "silverman"):
            np.testing.assert_allclose(rule_bandwidth(self.X, Gaussian(), rule), expected)

    def test_canonical_ratio(self):
        ratio = 1.7188 / 0.7764
        wider = rule_bandwidth(self.X, Epanechnikov())
        np.testing.assert_allclose(wider, ratio * rule_bandwidth(self.X, Gaussian()), rtol=1e-4)
        for kernel in (Silverman(), Matern32()):
            np.testing.assert_allclose(
                rule_bandwidth(self.X, kernel), rule_bandwidth(self.X, Gaussian())
            )

    def test_a_constant_feature_has_spread_one(self):
        X = np.full((10, 2), 0.1)
        X[:, 1] += 1e6  # whose mean is not exact
        np.testing.assert_array_equal(feature_spread(X), [1.0, 1.0])


class TestCategories:
    COLUMNS = Columns(
        ("numeric", "unordered", "numeric", "ordered"), (None, range(3), None, range(4))
    )

    @pytest.fixture
    def rows(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(24, 4)) * [1, 0, 5, 0]
        return X + rng.integers(3, size=(24, 4)) * [0, 1, 0, 1]

    def test_numbers_as_ever_and_lambdas_at_the_square_of_the_rate(self, rows):
        found = rule_bandwidth(rows, Tricube(), "silverman", columns=self.COLUMNS)
        numbers = rule_bandwidth(rows[:, [0, 2]], Tricube(), "silverman")
        np.testing.assert_allclose(found[[0, 2]], numbers, rtol=1e-14)
        rate = len(rows) ** (-2 / 6)
        np.testing.assert_allclose(found[[1, 3]], [2 / 3 * rate, rate])


class TestRefusals:
    """Rules by name, AdaptiveBandwidth, and numbers, where they make no sense."""

    X = np.random.default_rng(0).normal(size=(30, 2))

    @pytest.mark.parametrize("bandwidth", ["knn-loo", AdaptiveBandwidth(5)], ids=str)
    def test_one_distance_is_not_of_each_feature(self, bandwidth):
        model = NadarayaWatsonRegressor(bandwidth=bandwidth, per_feature=True)
        message = r"per_feature=True has no meaning with bandwidth=.*pass per_feature=False, or"
        with pytest.raises(ValueError, match=message):
            model.fit(self.X, self.X[:, 0])

    def test_densities_have_no_neighbours(self):
        with pytest.raises(ValueError, match=r"AdaptiveBandwidth.*is for averages of targets"):
            ProductKernelDensity(bandwidth=AdaptiveBandwidth(5)).fit(self.X)

    @pytest.mark.parametrize(
        ("model", "names"),
        [(NadarayaWatsonRegressor(), SMOOTHER_RULES), (ProductKernelDensity(), DENSITY_RULES)],
    )
    def test_unknown_names_are_told_the_known(self, model, names):
        with pytest.raises(ValueError, match="bandwidth='thumb' is unknown") as refused:
            model.set_params(bandwidth="thumb").fit(self.X, self.X[:, 0])
        assert all(repr(name) in str(refused.value) for name in names)

    def test_a_rule_of_0_1_0_is_told_what_does_its_work(self):
        with pytest.raises(ValueError, match=r"='plug-in' is gone in 0\.2: use 'loo'\.$"):
            NadarayaWatsonRegressor(bandwidth="plug-in").fit(self.X, self.X[:, 0])
        with pytest.raises(ValueError, match="'plug-in' is unknown: choose from"):
            ProductKernelDensity(bandwidth="plug-in").fit(self.X)
