"""Trips by hour of the day: ten days, so that each hour is repeated ten times."""

import numpy as np

from sklearn_attention import LocalPolynomialCV, LocalPolynomialRegressor


def test_the_rush_hour_is_the_mean_of_its_days():
    """By least squares: a window that holds the rows of one hour alone averages them."""
    rng = np.random.default_rng(0)
    hour = np.repeat(np.arange(24.0), 10)[:, None]
    trips = 5 + 20 * (hour[:, 0] == 8) + rng.normal(size=len(hour))
    at_eight = trips[hour[:, 0] == 8].mean()
    for model in (
        LocalPolynomialRegressor(), LocalPolynomialRegressor(bandwidth=0.2),
        LocalPolynomialRegressor(degree=2), LocalPolynomialCV(["gaussian"], degrees=[1]),
    ):  # fmt: skip
        model.fit(hour, trips)
        assert abs(model.predict([[8.0]])[0] - at_eight) < 0.1
