"""Errors of forecasts, computed by hand."""

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss

from sklearn_attention.forecasting import crps, mase, msis, naive_scale, seasonal_naive


def test_the_scale_is_the_error_of_the_last_season():
    y = [1.0, 4.0, 2.0, 10.0]
    assert naive_scale(y) == pytest.approx((3 + 2 + 8) / 3)
    assert naive_scale(y, season_length=2) == pytest.approx((1 + 6) / 2)


def test_absolute_errors():
    assert mase([1.0, 2.0, 3.0], [2.0, 0.0, 3.0], 2.0) == pytest.approx((1 + 2 + 0) / 3 / 2)
    own = mase([1.0, 2.0], [2.0, 0.0], [0.5, 4.0])
    assert own == pytest.approx((1 / 0.5 + 2 / 4) / 2)


def test_intervals():
    y, lower, upper = [1.0, 5.0, 0.0], [0.0, 0.0, 1.0], [2.0, 4.0, 3.0]
    # Widths 2, 4 and 2; 1 above the second and 1 below the third interval, times 2 / 0.2.
    found = msis(y, lower, upper, coverage=0.8, scale=[1.0, 1.0, 4.0])
    assert found == pytest.approx((2 + (4 + 10) + (2 + 10) / 4) / 3)


def test_quantiles():
    y, found, levels = np.array([1.0, 3.0]), np.array([[0.0, 2.0], [4.0, 5.0]]), [0.2, 0.6]
    losses = [mean_pinball_loss(y, found[:, i], alpha=levels[i]) for i in (0, 1)]
    assert crps(y, found, levels) == pytest.approx(2 * np.mean(losses))
    assert crps(y, found, levels, scale=2.0) == pytest.approx(np.mean(losses))
    # 0.2 + 0.4 for the first, 0.8 + 0.8 for the second.
    assert crps(y, found, levels) == pytest.approx(2 * (0.6 + 1.6) / 4)


MASKED = np.ma.array([1.0], mask=[True])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: naive_scale([1.0], 1), "y has 1 steps.*season_length=1"),
        (lambda: mase([1.0], [1.0], 0.0), "scale=.*greater than 0"),
        (lambda: mase([1.0, 2.0], [1.0, 2.0], [1.0, 2.0, 3.0]), "scale=.*2 of them"),
        (lambda: mase([[1.0]], [1.0], 1.0), r"y_true has shape \(1, 1\)"),
        (lambda: msis([1.0], [0.0], [2.0], 90, 1.0), "coverage=90"),
        (lambda: crps([1.0], [[1.0, 2.0]], [0.5]), r"y_quantiles has shape \(1, 2\)"),
        (lambda: crps([1.0], [[1.0]], [1.5]), "quantiles="),
        (lambda: crps([1.0], MASKED[:, None], [0.5]), "y_quantiles is masked in part"),
        (lambda: mase([1.0], MASKED, 1.0), "y_pred is masked in part"),
    ],
)
def test_bad_input(ask, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ask()


def test_seasonal_naive_repeats_the_last_season():
    past = np.arange(12.0).reshape(2, 6)
    for season in range(1, 7):
        expected = [[row[6 - season + step % season] for step in range(9)] for row in past]
        np.testing.assert_array_equal(seasonal_naive(past, 9, season), expected)
        np.testing.assert_array_equal(seasonal_naive(past.tolist(), 9, season), expected)
    with pytest.raises(ValueError, match="season_length=7 is longer"):
        seasonal_naive(past, 2, 7)
    with pytest.raises(ValueError, match=r"past has shape \(6,\): pass windows"):
        seasonal_naive(past[0], 2, 1)
