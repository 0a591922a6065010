"""Intervals, bands and quantiles off the rows, with weights, and in dependent noise."""

import numpy as np
import pytest

from sklearn_attention import LocalPolynomialRegressor

# Of curves that are flat by chance.
pytestmark = pytest.mark.filterwarnings("ignore:bandwidth=")


def curve_and_design(kind, n, rng):
    x = rng.uniform(size=n)
    x = np.where((kind == "gap") & (x > 0.4), 0.7 + (x - 0.4) / 2, x)
    return x, np.sin(2 * np.pi * x + 1) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize(
    ("method", "degree"),
    [("predict_interval", 0), ("confidence_band", 1), ("predict_quantiles", 1)],
)
def test_far_away_nothing_is_known(method, degree):
    rng = np.random.default_rng(0)
    x, y = curve_and_design("same", 100, rng)
    model = LocalPolynomialRegressor(bandwidth=0.1, degree=degree).fit(x[:, None], y)
    ends = getattr(model, method)(np.array([[0.5], [2.0], [4.0], [1e4]]))
    here, far, further, furthest = ends[:, -1] - ends[:, 0]
    assert far > 3 * here
    assert further > 1.5 * far
    assert furthest > 100 * far


def test_errors_are_those_of_rows_predicted_across_the_gap():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 60)
    y = 1.4 * np.sin(2 * np.pi * x + 1) + 0.5 * np.cumsum(rng.normal(size=60)) / 4
    model = LocalPolynomialRegressor(degree=1, gap=5).fit(x[:, None], y)
    errors = model.smoother_.errors.left_out[:, 0]
    fixed = LocalPolynomialRegressor(degree=1, bandwidth=float(model.bandwidth_[0]))
    for i in (0, 20, 57):
        far = np.abs(np.arange(60) - i) > 5
        fixed.fit(model.keys_[far], model.values_[far])
        expected = model.values_[i] - fixed.predict(model.keys_[[i]])[0]
        assert errors[i] == pytest.approx(expected, abs=1e-9)
