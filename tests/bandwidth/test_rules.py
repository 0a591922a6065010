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


def test_numbers_as_ever_and_lambdas_at_the_square_of_the_rate(rows):
    columns = Columns(
        ("numeric", "unordered", "numeric", "ordered"), (None, range(3), None, range(4))
    )
    found = rule_bandwidth(rows, Tricube(), "silverman", columns=columns)
    numbers = rule_bandwidth(rows[:, [0, 2]], Tricube(), "silverman")
    np.testing.assert_allclose(found[[0, 2]], numbers, rtol=1e-14)
    rate = len(rows) ** (-2 / 6)
    np.testing.assert_allclose(found[[1, 3]], [2 / 3 * rate, rate])


@pytest.mark.parametrize("rule", ["scott", "silverman"])
def test_a_constant_number_changes_neither_bandwidths_nor_lambdas(rows, rule):
    columns = Columns(("numeric", "unordered", "numeric"), (None, range(3), None))
    constant = np.where([False, False, True], 5.0, rows[:, :3])
    bandwidth = rule_bandwidth(constant, Gaussian(), rule, columns=columns)
    without = Columns(("numeric", "unordered"), (None, range(3)))
    expected = rule_bandwidth(rows[:, :2], Gaussian(), rule, columns=without)
    np.testing.assert_allclose(bandwidth[:2], expected)


ONE_DISTANCE = r"per_feature=True has no meaning with bandwidth=.*pass per_feature=False, or"


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (NadarayaWatsonRegressor(bandwidth="knn-loo", per_feature=True), ONE_DISTANCE),
        (
            NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth(5), per_feature=True),
            ONE_DISTANCE,
        ),
        (
            ProductKernelDensity(bandwidth=AdaptiveBandwidth(5)),
            r"AdaptiveBandwidth.*\(n_neighbors=5\) is only for estimators that average",
        ),
        (NadarayaWatsonRegressor(bandwidth="plug-in"), r"is gone in 0\.2: use 'loo'\.$"),
        (ProductKernelDensity(bandwidth="plug-in"), "'plug-in' is unknown: choose from"),
        (NadarayaWatsonRegressor(bandwidth="thumb"), ".*".join(sorted(SMOOTHER_RULES))),
        (ProductKernelDensity(bandwidth="thumb"), ".*".join(sorted(DENSITY_RULES))),
    ],
    ids=repr,
)
def test_rules_that_are_not_of_an_estimator_are_refused(model, words):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match=words):
        model.fit(X, X[:, 0])
